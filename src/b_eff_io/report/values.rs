//! The values: averages of the access methods, b_eff_io by each definition, the value of the system, and their confidence intervals.

use std::collections::{HashMap, HashSet};

use crate::b_eff_io::config::{BufferPolicy, Release, RepeatPolicy};
use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::records::RunResult;
use crate::b_eff_io::values::{Derived, PartitionValue, ReleaseValues, SystemValue, Validity, ValueInterval};
use crate::frame::backends::is_variant;
use crate::frame::records::AccessMethod;
use crate::frame::report::model::{HeadlineValue, ReportBlock, ReportSection, TextStyle, ValidityAssessment};
use crate::frame::report::table::Table;
use crate::frame::report::text::{count, list, percent};
use crate::frame::report::{common, outcome_text};
use crate::frame::values::validity_text;
use crate::frame::values::{MPI_IO, NULL_BACKEND};
use crate::frame::words::rate;
use crate::frame::words::NO_VALUE;

use super::coffee_cup;
use super::interval_notes::{self, time_option};
use super::layout::{access_index, partition_value, storage_backends, RELEASE_2_1_CAVEAT};

pub(super) const RELEASES: [Release; 3] = [Release::R0_5, Release::R1, Release::R2_1];

pub(super) fn value(values: &ReleaseValues, release: Release) -> Option<f64> {
    match release {
        Release::R0_5 => values.release_0_5,
        Release::R1 => values.release_1,
        Release::R2_1 => values.release_2_1,
    }
}

pub(super) fn best_ranks(system: &SystemValue, release: Release) -> Option<u64> {
    let [r0_5, r1, r2_1] = system.ranks;
    match release {
        Release::R0_5 => r0_5,
        Release::R1 => r1,
        Release::R2_1 => r2_1,
    }
}

fn judgement<'a>(derived: &'a Derived, backend: &str, release: Release) -> Option<&'a Validity> {
    derived.validity.iter().find(|v| v.backend == backend && v.release == release)
}

/// Partition to show: that of the best value through MPI-IO, else through any backend, else the largest that was measured.
pub(super) fn shown_partition(result: &RunResult, derived: &Derived) -> Option<u64> {
    let release = result.config.release;
    let backends: Vec<&str> = storage_backends(result).map(String::as_str).collect();
    let of = |backend: &str| derived.systems.iter().find(|s| s.backend == backend).and_then(|s| best_ranks(s, release));
    let valued = Some(MPI_IO).filter(|b| backends.contains(b)).and_then(of);
    let valued = valued.or_else(|| backends.iter().find_map(|backend| of(backend)));
    let reached = result.patterns.iter().filter(|p| backends.contains(&p.backend.as_str())).map(|p| p.ranks);
    let reached: HashSet<u64> = reached.collect();
    valued.or_else(|| result.partitions.iter().map(|p| p.ranks).filter(|ranks| reached.contains(ranks)).max())
}

/// A value for each of these backends, which move data; without any, the statement that there is none.
pub(super) fn values(result: &RunResult, derived: &Derived, backends: &[String]) -> Vec<HeadlineValue> {
    let values: Vec<HeadlineValue> = backends.iter().map(|backend| backend_value(result, derived, backend)).collect();
    if !values.is_empty() {
        return values;
    }
    let none = "The null backend moves nothing: there is no b_eff_io, only the overhead of the program";
    vec![HeadlineValue {
        label: "b_eff_io".into(),
        value: "none".into(),
        unit: "",
        verdict: (TextStyle::Plain, "the null backend moves nothing".into()),
        numbers: Vec::new(),
        screen_line: vec![(TextStyle::Plain, format!("{none}."))],
        closing_line: format!("{none} itself."),
    }]
}

fn backend_value(result: &RunResult, derived: &Derived, backend: &str) -> HeadlineValue {
    let release = result.config.release;
    let name = format!("b_eff_io (release {})", release.name());
    let system = derived.systems.iter().find(|s| s.backend == backend);
    let found = system.and_then(|s| value(&s.values, release));
    let ranks = system.and_then(|s| best_ranks(s, release));
    let interval = ranks.and_then(|ranks| derived.intervals.value(backend, ranks));
    let shown = |v: f64| rate(v, None);
    let within = interval.and_then(ValueInterval::resolved);
    let within = within.map(|i| format!(" [{}, {}]", shown(i.low), shown(i.high))).unwrap_or_default();
    let on = ranks.map(|ranks| format!(" on {}", count(ranks, "rank"))).unwrap_or_default();
    let said = |number: fn(f64) -> String, within: &str| {
        found.map_or_else(|| "not measured".to_owned(), |v| format!("{} MB/s{within}{on}", number(v)))
    };
    let own = judgement(derived, backend, release);
    let (tone, verdict) = match is_variant(backend) {
        true => (TextStyle::Plain, "a variant".to_owned()),
        false => common::verdict(own.is_some_and(|v| v.valid), result),
    };
    let lacks = match own {
        Some(v) => validity_text(&v.criteria, v.caveats.len()),
        None => if is_variant(backend) { "a variant" } else { "NOT VALID" }.to_owned(),
    };
    let warm = if result.config.buffers == BufferPolicy::Reused { ", reused buffers" } else { "" };
    let averages = ranks.and_then(|ranks| partition_value(derived, backend, ranks));
    let numbers = AccessMethod::ALL.iter().filter_map(|access| {
        let mean = averages?.access_mb_per_second[access_index(*access)]?;
        Some((access.name().to_owned(), shown(mean)))
    });
    let closing = said(|v| format!("{v:.3}"), "");
    HeadlineValue {
        label: format!("{name}, {backend}{}", on.replace(" on ", ", ")),
        value: found.map_or_else(|| "not measured".into(), |v| shown(v) + &within),
        unit: if found.is_some() { "MB/s" } else { "" },
        numbers: numbers.collect(),
        screen_line: vec![
            (TextStyle::Plain, format!("{name} = ")),
            (TextStyle::Strong, said(|v| rate(v, None), &within)),
            (TextStyle::Plain, format!(", {backend}{warm}, ")),
            (tone, verdict.clone()),
        ],
        verdict: (tone, verdict),
        closing_line: format!("{name} = {closing}, {backend}{warm}, {lacks}{}", outcome_text::result_suffix(result)),
    }
}

pub(super) const MAX_SCREEN_BACKENDS: usize = 4;

/// Notes on all values: what the interval is, or why there is none although requested; which backends are not MPI-IO; how many backends a
/// screen omits.
pub(super) fn notes(result: &RunResult, derived: &Derived, has_failed: bool) -> Vec<String> {
    let others: Vec<String> = storage_backends(result)
        .filter(|b| *b != MPI_IO && !is_variant(b))
        .take(MAX_SCREEN_BACKENDS)
        .cloned()
        .collect();
    let is_beside = storage_backends(result).any(|b| b == MPI_IO) && !others.is_empty();
    let not_mpi_io = is_beside.then(|| format!("{}: not MPI-IO, for comparison only", list(&others)));
    let more = storage_backends(result).filter(|b| !is_variant(b)).count().saturating_sub(MAX_SCREEN_BACKENDS) as u64;
    let more = (more > 0).then(|| format!("{} more in --full", count(more, "backend")));
    let is_asked =
        result.config.repeat == RepeatPolicy::Auto && storage_backends(result).next().is_some() && !has_failed;
    let intervals = if is_asked { interval_notes::notes(result, derived) } else { Vec::new() };
    intervals.into_iter().chain(not_mpi_io).chain(more).collect()
}

/// The criteria of each backend by one release. Without MPI-IO there is no b_eff_io: for other backends only further unmet criteria are of
/// interest.
pub(super) fn criteria_by_backend(result: &RunResult, derived: &Derived, release: Release) -> Vec<ValidityAssessment> {
    let has_mpi_io = storage_backends(result).any(|backend| backend == MPI_IO);
    let of_backend = |backend: &String| {
        let is_main = !has_mpi_io || backend == MPI_IO;
        judgement(derived, backend, release).map(|v| ValidityAssessment {
            name: backend.clone(),
            criteria: v.criteria.clone(),
            caveats: v.caveats.clone(),
            is_main,
        })
    };
    storage_backends(result).filter_map(of_backend).collect()
}

pub(super) fn other_release_criteria(result: &RunResult, derived: &Derived) -> Vec<(String, Vec<ValidityAssessment>)> {
    let others = RELEASES.into_iter().filter(|release| *release != result.config.release);
    let by = |release: Release| (format!("release {}", release.name()), criteria_by_backend(result, derived, release));
    others.map(by).filter(|(_, judged)| !judged.is_empty()).collect()
}

pub(super) fn section(result: &RunResult, derived: &Derived) -> ReportSection {
    let has_values = derived.partitions.iter().any(|p| p.backend != NULL_BACKEND);
    let of_2_1 = derived.partitions.iter().any(|p| p.values.release_2_1.is_some());
    let of_2_1 = of_2_1.then(|| ReportBlock::Notes(vec![format!("release 2.1: {}", RELEASE_2_1_CAVEAT.join(" "))]));
    let blocks = if has_values {
        let partitions =
            ReportBlock::Folded("Every partition, MB/s".into(), vec![ReportBlock::Table(partitions(derived))]);
        let tables = [
            Some(ReportBlock::Table(systems(result, derived))),
            coffee_cup::table(derived),
            Some(partitions),
            intervals(result, derived),
            of_2_1,
        ];
        tables.into_iter().flatten().collect()
    } else {
        vec![ReportBlock::List(vec!["nothing was measured".into()])]
    };
    ReportSection { name: "values", title: "Values".into(), note: String::new(), blocks }
}

fn systems(result: &RunResult, derived: &Derived) -> Table {
    let head = ["backend", "b_eff_io", "MB/s", "ranks", ""];
    let mut table = Table::new("Values of the system: the best partition", 2, head).with_words();
    for system in derived.systems.iter().filter(|s| s.backend != NULL_BACKEND) {
        for release in RELEASES {
            let found = value(&system.values, release);
            let ranks = best_ranks(system, release).filter(|_| found.is_some());
            let judged = judgement(derived, &system.backend, release).filter(|_| found.is_some());
            let words = [
                found.is_none().then(|| "incomplete".to_owned()),
                judged.map(|v| if v.valid { "VALID" } else { "NOT VALID" }.to_owned()),
                judged.filter(|v| !v.caveats.is_empty()).map(|v| count(v.caveats.len() as u64, "caveat")),
                (release == result.config.release).then(|| "definition of this run".to_owned()),
            ];
            table.row([
                system.backend.clone(),
                release_title(release).to_owned(),
                found.map_or_else(|| NO_VALUE.to_owned(), |v| format!("{v:.3}")),
                ranks.map_or_else(|| NO_VALUE.to_owned(), |ranks| ranks.to_string()),
                words.into_iter().flatten().collect::<Vec<_>>().join(", "),
            ]);
        }
        table.end_group();
    }
    table
}

fn release_title(release: Release) -> &'static str {
    match release {
        Release::R0_5 => "release 0.5 (Euro-Par 2000)",
        Release::R1 => "release 1 (paper)",
        Release::R2_1 => "release 2.1 (program of 2001)",
    }
}

fn partitions(derived: &Derived) -> Table {
    let accesses = AccessMethod::ALL.map(|access| access.name().to_owned());
    let head = ["backend", "ranks"].map(str::to_owned).into_iter().chain(accesses);
    let head = head.chain(RELEASES.map(|release| format!("release {}", release.name())));
    let row = |p: &PartitionValue| {
        let numbers = p.access_mb_per_second.into_iter().chain(RELEASES.map(|release| value(&p.values, release)));
        let cells = numbers.map(|v| v.map_or_else(|| NO_VALUE.to_owned(), |v| format!("{v:.3}")));
        [p.backend.clone(), p.ranks.to_string()].into_iter().chain(cells).collect::<Vec<_>>()
    };
    Table::new("MB/s", 2, head)
        .with_rows(derived.partitions.iter().filter(|p| p.backend != NULL_BACKEND).map(row))
        .with_note("write, rewrite, read: weighted average of the types; scatter counts twice.")
}

/// Key of an interval; without an access method it is that of b_eff_io.
type IntervalKey<'a> = (&'a str, u64, Option<AccessMethod>, Option<PatternType>);

fn intervals(result: &RunResult, derived: &Derived) -> Option<ReportBlock> {
    let known = &derived.intervals;
    if result.config.repeat != RepeatPolicy::Auto {
        return None;
    }
    let mut repetition_counts: HashMap<(&str, u64), u64> = HashMap::new();
    for i in known.patterns.iter().filter(|i| i.backend != NULL_BACKEND) {
        *repetition_counts.entry((&i.backend, i.ranks)).or_default() += i.measurements.saturating_sub(1);
    }
    let all = known.values.iter().chain(&known.types);
    let found: HashMap<IntervalKey<'_>, &ValueInterval> =
        all.map(|i| ((i.backend.as_str(), i.ranks, i.access, i.pattern_type), i)).collect();
    let is_wide = |i: &&ValueInterval| i.resolving_time_seconds.is_some();
    let has_wide = known.values.iter().chain(&known.types).any(|i| is_wide(&i));
    let head = ["backend", "ranks", "MB/s", "value", "95 %: from", "to", "repetitions", "pooled"];
    let head = head.into_iter().chain(has_wide.then_some("needs T"));
    let mut table = Table::new("", 3, head);
    let mut row = |value: Option<f64>, at: IntervalKey<'_>, name: String| {
        let Some(value) = value.filter(|_| repetition_counts.contains_key(&(at.0, at.1))) else { return };
        let interval = found.get(&at);
        let number = |v: Option<f64>| v.map_or_else(|| NO_VALUE.to_owned(), |v| format!("{v:.3}"));
        let shown = interval.and_then(|i| i.resolved());
        let ends = [shown.map(|i| i.low), shown.map(|i| i.high), interval.map(|i| i.repetitions_mb_per_second)];
        let [low, high, alone] = ends.map(number);
        let needed = interval.and_then(|i| i.resolving_time_seconds).map(time_option).unwrap_or_default();
        let pooled = interval.map(|i| i.pooled_share).filter(|share| *share > 0.005).map(percent).unwrap_or_default();
        let cells = [at.0.to_owned(), at.1.to_string(), name, number(Some(value)), low, high, alone, pooled];
        table.row(cells.into_iter().chain(has_wide.then_some(needed)));
    };
    let release = result.config.release;
    for p in &derived.partitions {
        let name = format!("b_eff_io, release {}", release.name());
        row(value(&p.values, release), (&p.backend, p.ranks, None, None), name);
    }
    for t in &derived.types {
        let at = (t.backend.as_str(), t.ranks, Some(t.access), Some(t.pattern_type));
        row(t.mb_per_second, at, format!("{}, type {}", t.access.name(), t.pattern_type.label()));
    }
    let number = count(repetition_counts.values().sum(), "repetition");
    let title =
        format!("95 % intervals, from {number} of patterns in the remaining time of T (values are first measurements)");
    let note = "pooled: share of the interval from the pooled variance of similar patterns. - unknown.";
    let table = table.with_note(note);
    let wide_note = "needs T: the interval is wider than a factor of two and not shown; T that would resolve it, if the scatter averages \
                     out with the square root of the time.";
    let table = if has_wide { table.with_note(wide_note) } else { table };
    (!repetition_counts.is_empty()).then(|| ReportBlock::Folded(title, vec![ReportBlock::Table(table)]))
}
