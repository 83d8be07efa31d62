//! The values: averages of the access methods, b_eff_io by each definition, the value of the system, and how far they are known.

use std::collections::{HashMap, HashSet};

use crate::b_eff_io::config::{Buffers, Release, RepeatPolicy};
use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::records::RunResult;
use crate::b_eff_io::values::{Derived, PartitionValue, ReleaseValues, SystemValue, Validity, ValueInterval};
use crate::frame::records::Access;
use crate::frame::report::model::{Block, Judged, Section, Tone, Value};
use crate::frame::report::table::Table;
use crate::frame::report::text::{count, list, percent};
use crate::frame::report::{common, ending};
use crate::frame::values::in_words;
use crate::frame::values::{MPI_IO, NULL_BACKEND};
use crate::frame::words::rate;
use crate::frame::words::NONE;

use super::layout::{access_index, measuring, partition_value, BESIDE_RELEASE_2_1};

pub(super) const RELEASES: [Release; 3] = [Release::R0_5, Release::R1, Release::R2_1];

/// The value by one release.
pub(super) fn value(values: &ReleaseValues, release: Release) -> Option<f64> {
    match release {
        Release::R0_5 => values.release_0_5,
        Release::R1 => values.release_1,
        Release::R2_1 => values.release_2_1,
    }
}

/// Ranks of the partition with the best value.
pub(super) fn best_ranks(system: &SystemValue, release: Release) -> Option<u64> {
    let [r0_5, r1, r2_1] = system.ranks;
    match release {
        Release::R0_5 => r0_5,
        Release::R1 => r1,
        Release::R2_1 => r2_1,
    }
}

/// The judgement of one backend by one release.
fn judgement<'a>(derived: &'a Derived, backend: &str, release: Release) -> Option<&'a Validity> {
    derived.validity.iter().find(|v| v.backend == backend && v.release == release)
}

/// The partition that is shown: that of the best value through MPI-IO, else through any backend, else the largest that was
/// reached.
pub(super) fn partition(result: &RunResult, derived: &Derived) -> Option<u64> {
    let release = result.config.release;
    let backends: Vec<&str> = measuring(result).map(String::as_str).collect();
    let of = |backend: &str| derived.systems.iter().find(|s| s.backend == backend).and_then(|s| best_ranks(s, release));
    let valued = Some(MPI_IO).filter(|b| backends.contains(b)).and_then(of);
    let valued = valued.or_else(|| backends.iter().find_map(|backend| of(backend)));
    let reached = result.patterns.iter().filter(|p| backends.contains(&p.backend.as_str())).map(|p| p.ranks);
    let reached: HashSet<u64> = reached.collect();
    valued.or_else(|| result.partitions.iter().map(|p| p.ranks).filter(|ranks| reached.contains(ranks)).max())
}

/// A value for each backend that moves data; of a run without any that there is none.
pub(super) fn values(result: &RunResult, derived: &Derived, most: usize) -> Vec<Value> {
    let values: Vec<Value> = measuring(result).take(most).map(|backend| of_backend(result, derived, backend)).collect();
    if !values.is_empty() {
        return values;
    }
    let none = "The null backend moves nothing: there is no b_eff_io, only the cost of the program";
    vec![Value {
        label: "b_eff_io".into(),
        value: "none".into(),
        unit: "",
        verdict: (Tone::Plain, "the null backend moves nothing".into()),
        numbers: Vec::new(),
        line: vec![(Tone::Plain, format!("{none}."))],
        closing: format!("{none} itself."),
    }]
}

fn of_backend(result: &RunResult, derived: &Derived, backend: &str) -> Value {
    let release = result.config.release;
    let name = format!("b_eff_io (release {})", release.name());
    let system = derived.systems.iter().find(|s| s.backend == backend);
    let found = system.and_then(|s| value(&s.values, release));
    let ranks = system.and_then(|s| best_ranks(s, release));
    let interval = ranks.and_then(|ranks| derived.intervals.value(backend, ranks));
    let shown = |v: f64| rate(v, None);
    let within = interval.map(|i| format!(" [{}, {}]", shown(i.low), shown(i.high))).unwrap_or_default();
    let on = ranks.map(|ranks| format!(" on {}", count(ranks, "rank"))).unwrap_or_default();
    let said = |number: fn(f64) -> String, within: &str| {
        found.map_or_else(|| "not measured".to_owned(), |v| format!("{} MB/s{within}{on}", number(v)))
    };
    let own = judgement(derived, backend, release);
    let (tone, verdict) = common::verdict(own.is_some_and(|v| v.valid), result);
    let lacks = own.map_or_else(|| "NOT VALID".to_owned(), |v| in_words(&v.criteria));
    let warm = if result.config.buffers == Buffers::Reused { ", from warm buffers" } else { "" };
    let averages = ranks.and_then(|ranks| partition_value(derived, backend, ranks));
    let numbers = Access::ALL.iter().filter_map(|access| {
        let mean = averages?.access_mb_per_second[access_index(*access)]?;
        Some((access.name().to_owned(), shown(mean)))
    });
    let closing = said(|v| format!("{v:.3}"), "");
    Value {
        label: format!("{name}, {backend}{}", on.replace(" on ", ", ")),
        value: found.map_or_else(|| "not measured".into(), |v| shown(v) + &within),
        unit: if found.is_some() { "MB/s" } else { "" },
        numbers: numbers.collect(),
        line: vec![
            (Tone::Plain, format!("{name} = ")),
            (Tone::Strong, said(|v| rate(v, None), &within)),
            (Tone::Plain, format!(", {backend}{warm}, ")),
            (tone, verdict.clone()),
        ],
        verdict: (tone, verdict),
        closing: format!("{name} = {closing}, {backend}{warm}, {lacks}{}", ending::marks(result)),
    }
}

/// Backends that have lines on a screen.
pub(super) const BACKENDS: usize = 4;

/// What must be known of all values: what the interval is, or why there is none although something was to be measured again; what is not
/// MPI-IO; how many backends a screen leaves out.
pub(super) fn notes(result: &RunResult, derived: &Derived, has_failed: bool) -> Vec<String> {
    let others: Vec<String> = measuring(result).filter(|b| *b != MPI_IO).take(BACKENDS).cloned().collect();
    let is_beside = measuring(result).any(|b| b == MPI_IO) && !others.is_empty();
    let not_mpi_io = is_beside.then(|| format!("{}: not MPI-IO, only to compare with", list(&others)));
    let more = measuring(result).count().saturating_sub(BACKENDS) as u64;
    let more = (more > 0).then(|| format!("{} more in --full", count(more, "backend")));
    let is_asked = result.config.repeat == RepeatPolicy::Auto && measuring(result).next().is_some() && !has_failed;
    [is_asked.then(|| known(result, derived)), not_mpi_io, more].into_iter().flatten().collect()
}

fn known(result: &RunResult, derived: &Derived) -> String {
    let repeats = count(result.repeats.len() as u64, "repeat");
    let is_known = derived.intervals.values.iter().any(|i| i.backend != NULL_BACKEND);
    if is_known {
        let cut = result.repeats.iter().filter(|r| r.share < 1.0).count() as u64;
        let cut = if cut > 0 { format!(", {cut} of them short") } else { String::new() };
        format!("[low, high]: 95 % interval, from {repeats} within T{cut}")
    } else {
        format!("no interval: {repeats} of patterns within T are too few; a smaller --space leaves time for more")
    }
}

/// The criteria of each backend by one release. Without MPI-IO there is no b_eff_io at all: of the others only what else is missing would
/// be news.
pub(super) fn judged(result: &RunResult, derived: &Derived, release: Release) -> Vec<Judged> {
    let has_mpi_io = measuring(result).any(|backend| backend == MPI_IO);
    let of_backend = |backend: &String| {
        let is_main = !has_mpi_io || backend == MPI_IO;
        judgement(derived, backend, release).map(|v| Judged {
            name: backend.clone(),
            criteria: v.criteria.clone(),
            is_main,
        })
    };
    measuring(result).filter_map(of_backend).collect()
}

/// The same by the other releases.
pub(super) fn judged_otherwise(result: &RunResult, derived: &Derived) -> Vec<(String, Vec<Judged>)> {
    let others = RELEASES.into_iter().filter(|release| *release != result.config.release);
    let by = |release: Release| (format!("release {}", release.name()), judged(result, derived, release));
    others.map(by).filter(|(_, judged)| !judged.is_empty()).collect()
}

pub(super) fn section(result: &RunResult, derived: &Derived) -> Section {
    let has_values = derived.partitions.iter().any(|p| p.backend != NULL_BACKEND);
    let of_2_1 = derived.partitions.iter().any(|p| p.values.release_2_1.is_some());
    let of_2_1 = of_2_1.then(|| Block::Notes(vec![format!("release 2.1: {}", BESIDE_RELEASE_2_1.join(" "))]));
    let blocks = if has_values {
        let partitions = Block::Folded("Every partition, MB/s".into(), vec![Block::Table(partitions(derived))]);
        let tables =
            [Some(Block::Table(systems(result, derived))), Some(partitions), intervals(result, derived), of_2_1];
        tables.into_iter().flatten().collect()
    } else {
        vec![Block::List(vec!["nothing was measured".into()])]
    };
    Section { name: "values", title: "Values".into(), note: String::new(), blocks }
}

fn systems(result: &RunResult, derived: &Derived) -> Table {
    let head = ["backend", "b_eff_io", "MB/s", "ranks", ""];
    let mut table = Table::new("Values of the system: the best partition", 2, head).with_words();
    for system in derived.systems.iter().filter(|s| s.backend != NULL_BACKEND) {
        for release in RELEASES {
            let found = value(&system.values, release);
            let ranks = best_ranks(system, release).filter(|_| found.is_some());
            let valid =
                judgement(derived, &system.backend, release).map(|v| if v.valid { "VALID" } else { "NOT VALID" });
            let words = [
                found.is_none().then_some("not measured as a whole"),
                valid.filter(|_| found.is_some()),
                (release == result.config.release).then_some("definition of this run"),
            ];
            table.row([
                system.backend.clone(),
                name(release).to_owned(),
                found.map_or_else(|| NONE.to_owned(), |v| format!("{v:.3}")),
                ranks.map_or_else(|| NONE.to_owned(), |ranks| ranks.to_string()),
                words.into_iter().flatten().collect::<Vec<_>>().join(", "),
            ]);
        }
        table.gap();
    }
    table
}

fn name(release: Release) -> &'static str {
    match release {
        Release::R0_5 => "release 0.5 (Euro-Par 2000)",
        Release::R1 => "release 1 (paper)",
        Release::R2_1 => "release 2.1 (program of 2001)",
    }
}

fn partitions(derived: &Derived) -> Table {
    let accesses = Access::ALL.map(|access| access.name().to_owned());
    let head = ["backend", "ranks"].map(str::to_owned).into_iter().chain(accesses);
    let head = head.chain(RELEASES.map(|release| format!("release {}", release.name())));
    let row = |p: &PartitionValue| {
        let numbers = p.access_mb_per_second.into_iter().chain(RELEASES.map(|release| value(&p.values, release)));
        let cells = numbers.map(|v| v.map_or_else(|| NONE.to_owned(), |v| format!("{v:.3}")));
        [p.backend.clone(), p.ranks.to_string()].into_iter().chain(cells).collect::<Vec<_>>()
    };
    Table::new("MB/s", 2, head)
        .with(derived.partitions.iter().filter(|p| p.backend != NULL_BACKEND).map(row))
        .noted("write, rewrite, read: weighted average of the types; scatter counts twice.")
}

/// Of what an interval is; without an access method it is b_eff_io.
type Place<'a> = (&'a str, u64, Option<Access>, Option<PatternType>);

/// What was measured again: b_eff_io and the types, with how far they are known.
fn intervals(result: &RunResult, derived: &Derived) -> Option<Block> {
    let known = &derived.intervals;
    if result.config.repeat != RepeatPolicy::Auto {
        return None;
    }
    let mut repeats: HashMap<(&str, u64), u64> = HashMap::new();
    for i in known.patterns.iter().filter(|i| i.backend != NULL_BACKEND) {
        *repeats.entry((&i.backend, i.ranks)).or_default() += i.measured.saturating_sub(1);
    }
    let all = known.values.iter().chain(&known.types);
    let found: HashMap<Place<'_>, &ValueInterval> =
        all.map(|i| ((i.backend.as_str(), i.ranks, i.access, i.pattern_type), i)).collect();
    let head = ["backend", "ranks", "MB/s", "value", "95 %: from", "to", "repeats alone", "by similar"];
    let mut table = Table::new("", 3, head);
    let mut row = |value: Option<f64>, at: Place<'_>, name: String| {
        let Some(value) = value.filter(|_| repeats.contains_key(&(at.0, at.1))) else { return };
        let interval = found.get(&at);
        let number = |v: Option<f64>| v.map_or_else(|| NONE.to_owned(), |v| format!("{v:.3}"));
        let ends = [interval.map(|i| i.low), interval.map(|i| i.high), interval.map(|i| i.repeats_mb_per_second)];
        let [low, high, alone] = ends.map(number);
        let pooled = interval.map(|i| i.pooled_share).filter(|share| *share > 0.005).map(percent).unwrap_or_default();
        table.row([at.0.to_owned(), at.1.to_string(), name, number(Some(value)), low, high, alone, pooled]);
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
    let number = count(repeats.values().sum(), "repeat");
    let title =
        format!("95 % intervals, from {number} of patterns in the time left of T (values are of the first pass)");
    let note = "by similar: the share of the interval that rests on the spread of similar patterns. - not known.";
    (!repeats.is_empty()).then(|| Block::Folded(title, vec![Block::Table(table.noted(note))]))
}
