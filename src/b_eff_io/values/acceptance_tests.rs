use super::*;
use crate::b_eff_io::report::fixtures;
use crate::b_eff_io::requirements;
use crate::b_eff_io::values::derive;
use crate::b_eff_io::values::fixture::full_run;
use crate::frame::records::{InterferenceRecord, RunOutcome};
use crate::frame::values::acceptance::{Acceptance, JudgedRequirement};
use RequirementVerdict::{Fail, Pass, Undecided};

/// The run, judged by one requirement.
fn judge(result: &RunResult, line: &str) -> JudgedRequirement {
    let mut result = result.clone();
    result.config.requirements = requirements::parse(line).unwrap_or_else(|e| panic!("{e}"));
    Acceptance::of(&required_figures(&result, &derive(&result))).unwrap().requirements.remove(0)
}

fn verdicts(result: &RunResult, lines: &[&str]) -> Vec<RequirementVerdict> {
    lines.iter().map(|line| judge(result, line).verdict).collect()
}

fn notes(result: &RunResult, line: &str) -> String {
    judge(result, line).figures.iter().filter_map(|f| f.note.clone()).collect::<Vec<_>>().join("; ")
}

/// A valid run of 30 minutes with repetitions, each of which is `slower` than the one before.
fn repeated(spread: f64) -> RunResult {
    let mut result = full_run();
    result.config.repeat = RepeatPolicy::Auto;
    result.config.partitions = crate::b_eff_io::config::Partitions::List(vec![4]);
    for number in 1..=3_u32 {
        for p in &result.patterns {
            let mut measurement = p.clone();
            let odd = (u32::from(p.pattern) * 7 + number * 5 + p.access as u32) % 11;
            measurement.intervals.transfer_seconds *= 1.0 + spread * (f64::from(odd) / 5.0 - 1.0);
            measurement.at_seconds = Some(f64::from(number * 1000) + f64::from(p.pattern));
            let share = 1.0;
            result.repetitions.push(crate::b_eff_io::records::RepetitionRecord {
                repetition: number,
                share,
                measurement,
            });
        }
        for t in &result.types {
            let measurement = t.clone();
            let again = crate::b_eff_io::records::TypeRepetitionRecord { repetition: number, measurement };
            result.type_repetitions.push(again);
        }
    }
    for (n, p) in result.patterns.iter_mut().enumerate() {
        p.at_seconds = Some(n as f64);
        p.verification = Verification { words_checked: 100, words_wrong: 0 };
    }
    result
}

/// A figure and its interval, then limits below, inside and above it.
fn assert_edges(result: &RunResult, subject: &str, unit: &str) {
    let judged = judge(result, &format!("{subject} >= 1 {unit}"));
    let [one] = judged.figures.as_slice() else { panic!("{judged:?}") };
    let ([low, high], value) = (one.interval.unwrap_or_else(|| panic!("{judged:?}")), one.value.unwrap());
    assert!(low < value && value < high && judged.unit == unit, "{judged:?}");
    let of = |limit: f64| judge(result, &format!("{subject} >= {limit} {unit}")).verdict;
    assert_eq!([of(0.999 * low), of(value), of(1.001 * high)], [Pass, Undecided, Fail], "{subject} {one:?}");
}

#[test]
fn rates_are_judged_by_their_intervals() {
    let result = repeated(0.05);
    let derived = derive(&result);
    assert!(derived.validity.iter().any(|v| v.valid), "{:?}", derived.validity);
    for subject in [
        "value",
        "mean write",
        "mean read",
        "type 0 write",
        "type 3 rewrite",
        "type 4 read",
        "smallest chunk write",
        "smallest chunk read",
    ] {
        assert_edges(&result, subject, "MB/s");
    }
    // Two hundred MB/s on four ranks, whatever the unit.
    let [mb, gb, mib] = ["value >= 1 MB/s", "value >= 0.1 GB/s", "value >= 1 MiB/s"]
        .map(|line| judge(&result, line).figures[0].value.unwrap());
    assert!((mb / 1000.0 - gb).abs() < 1e-9 && (mb / 1.048_576 - mib).abs() < 1e-9 && (190.0..201.0).contains(&mb));
    let value = derived.intervals.value("mpiio", 4).unwrap();
    let judged = judge(&result, "value >= 1 MB/s").figures.remove(0);
    assert_eq!(judged.interval, Some([value.low, value.high]), "the interval of the report");
}

/// All bytes by all time of five patterns.
#[test]
fn the_smallest_chunk_is_that_of_the_table() {
    let result = repeated(0.05);
    let own = result
        .patterns
        .iter()
        .filter(|p| p.ranks == 4 && p.access == AccessMethod::Read && p.chunk_bytes == 1024 && p.time_units > 0);
    let (mut bytes, mut seconds, mut number) = (0, 0.0, 0);
    for p in own {
        (bytes, seconds, number) = (bytes + p.moved_bytes, seconds + p.seconds(), number + 1);
    }
    let judged = judge(&result, "smallest chunk read >= 1 MB/s").figures.remove(0);
    assert_eq!(number, 5);
    assert!((judged.value.unwrap() - bytes as f64 / seconds / 1e6).abs() < 1e-9);
}

#[test]
fn each_access_method_counts_where_none_is_named() {
    let mut result = repeated(0.02);
    for p in result.patterns.iter_mut().chain(result.repetitions.iter_mut().map(|r| &mut r.measurement)) {
        if p.access == AccessMethod::Read {
            p.intervals.transfer_seconds *= 4.0;
        }
    }
    let judged = judge(&result, "type 2 >= 100 MB/s");
    let found: Vec<_> = judged.figures.iter().map(|f| (f.subject.as_str(), f.verdict)).collect();
    assert_eq!(found, [("type 2, write", Pass), ("type 2, rewrite", Pass), ("type 2, read", Fail)]);
    assert_eq!(judged.verdict, Fail);
    assert_eq!(judge(&result, "type all >= 100 MB/s").figures.len(), 15);
    assert_eq!(verdicts(&result, &["type all write >= 100 MB/s", "mean >= 100 MB/s"]), [Pass, Fail]);
    result.config.full_rewrite = false;
    assert_eq!(judge(&result, "type 2 >= 100 MB/s").figures.len(), 2, "only type 0 is rewritten");
}

#[test]
fn without_repetitions_there_is_no_interval() {
    let result = full_run();
    for line in [
        "value >= 1 MB/s",
        "type 0 write >= 1 MB/s",
        "mean read >= 1 MB/s",
        "smallest chunk write >= 1 MB/s",
        "spread <= 5 %",
        "coffee cup",
    ] {
        assert_eq!(judge(&result, line).verdict, Undecided, "{line}");
        assert!(notes(&result, line).contains("--repeat auto"), "{line}");
    }
    let mut rounds = repeated(0.05);
    rounds.config.repeat = RepeatPolicy::Rounds;
    assert_eq!(verdicts(&rounds, &["mean write >= 1 MB/s", "value >= 1 MB/s"]), [Undecided; 2]);
}

#[test]
fn a_value_that_is_not_valid_is_not_accepted() {
    let mut result = repeated(0.02);
    let lines = ["value >= 1 MB/s", "type 0 write >= 1 MB/s", "valid"];
    assert_eq!(verdicts(&result, &lines), [Pass; 3]);
    result.partitions.iter_mut().for_each(|p| p.time_seconds = 60.0);
    assert_eq!(verdicts(&result, &lines), [Undecided, Pass, Fail]);
    assert!(notes(&result, "value >= 1 MB/s").starts_with("not valid: too short"));
    assert!(notes(&result, "valid").starts_with("too short"));
    // Through another backend there is no b_eff_io; the other criteria count.
    let mut other = repeated(0.02);
    other.config.backends = vec!["posix".into()];
    let rename = |p: &mut PatternRecord| p.backend = "posix".into();
    other.patterns.iter_mut().chain(other.repetitions.iter_mut().map(|r| &mut r.measurement)).for_each(rename);
    other
        .types
        .iter_mut()
        .chain(other.type_repetitions.iter_mut().map(|r| &mut r.measurement))
        .for_each(|t| t.backend = "posix".into());
    assert_eq!(verdicts(&other, &["value posix >= 1 MB/s", "value >= 1 MB/s", "valid"]), [Pass, Undecided, Fail]);
    assert_eq!(notes(&other, "value >= 1 MB/s"), "mpiio is not among the backends of the run");
}

#[test]
fn the_spread_is_the_half_width_of_the_value() {
    let result = repeated(0.05);
    let interval = derive(&result).intervals.value("mpiio", 4).unwrap().clone();
    let value = judge(&result, "value >= 1 MB/s").figures[0].value.unwrap();
    let percent = 100.0 * (interval.high / value - 1.0).max(1.0 - interval.low / value);
    let found = judge(&result, "spread <= 50 %").figures.remove(0);
    assert!((found.value.unwrap() - percent).abs() < 1e-9 && percent > 0.1, "{found:?}");
    let of = |limit: f64| judge(&result, &format!("spread <= {limit} %")).verdict;
    assert_eq!([of(1.01 * percent), of(0.99 * percent)], [Pass, Fail]);
}

/// Four backends with rounds, and the ratios that the comparison of backends states.
#[test]
fn ratios_are_those_of_the_comparison() {
    let result = fixtures::ladder();
    let derived = derive(&result);
    let mut compared = 0;
    for of_type in derived.ladder.types.iter().filter(|c| c.backend != c.best.clone().unwrap_or_default()) {
        let best = of_type.best.clone().unwrap();
        let (t, access) = (of_type.pattern_type, of_type.access.name());
        let line = format!("{} / {best} type {t} {access} >= 0.001", of_type.backend);
        let found = judge(&result, &line).figures.remove(0);
        let expected = of_type.ratio.unwrap();
        assert!((found.value.unwrap() / expected.value - 1.0).abs() < 1e-9, "{line}: {found:?} {expected:?}");
        assert_eq!(found.interval, expected.interval.map(|i| [i.low, i.high]), "{line}");
        if let Some([low, high]) = found.interval.filter(|[low, high]| *high <= 2.0 * low && low < high) {
            let of = |limit: f64| judge(&result, &line.replace("0.001", &limit.to_string())).verdict;
            assert_eq!([of(0.999 * low), of((low * high).sqrt()), of(1.001 * high)], [Pass, Undecided, Fail], "{line}");
            compared += 1;
        }
    }
    assert!(compared >= 5, "{compared}");
    assert_eq!(judge(&result, "mpiio / posix >= 0.9").figures.len(), 3);
    assert_eq!(judge(&full_run(), "mpiio / posix >= 0.9").verdict, Undecided);
    assert!(notes(&full_run(), "mpiio / posix >= 0.9").contains("posix is not among the backends"));
}

#[test]
fn wrong_words_fail_and_none_compared_is_open() {
    let mut result = repeated(0.02);
    let line = "wrong words = 0";
    assert_eq!(judge(&result, line).verdict, Pass);
    // 2 partitions, 3 access methods, 43 patterns, 100 words each.
    assert!(notes(&result, line).starts_with("of 25800 words compared"), "{}", notes(&result, line));
    result.ending.outcome = RunOutcome::Interrupted;
    assert_eq!(judge(&result, line).verdict, Undecided, "the rest was not compared");
    result.repetitions[5].measurement.verification.words_wrong = 2;
    let judged = judge(&result, line);
    assert_eq!((judged.verdict, judged.figures[0].value), (Fail, Some(2.0)), "also of a run that was cut");
    let derived = derive(&result);
    let unmet = |text: &str| derived.validity.iter().flat_map(|v| &v.criteria).any(|c| !c.met && c.text.contains(text));
    assert!(unmet("data words 2 == 0"), "those of repetitions count for the validity, too");
    let unchecked = full_run();
    assert_eq!((judge(&unchecked, line).verdict, notes(&unchecked, line)), (Undecided, "no word was compared".into()));
}

#[test]
fn the_time_of_the_shortest_partition_counts() {
    let mut result = full_run();
    result.partitions[0].time_seconds = 900.0;
    assert_eq!(verdicts(&result, &["T >= 15 min", "T >= 900 s", "T >= 901 s", "T >= 0.5 h"]), [Pass, Pass, Fail, Fail]);
    assert_eq!(judge(&result, "T >= 1 min").figures[0].value, Some(15.0));
}

#[test]
fn twenty_times_the_cache_is_the_yardstick_of_the_report() {
    let mut result = full_run();
    let bytes =
        |result: &RunResult| derive(result).cache_yardsticks.iter().find(|y| y.ranks == 4).unwrap().cached_bytes;
    let cache = |result: &mut RunResult, bytes: u64| {
        result.config.storage = vec![(crate::frame::records::StorageKey::Cache, bytes.to_string())];
    };
    let moved = bytes(&result);
    cache(&mut result, moved / 20);
    assert_eq!(judge(&result, "cache 20x write").verdict, Pass);
    cache(&mut result, moved / 20 + 1);
    assert_eq!(judge(&result, "cache 20x write").verdict, Fail);
    assert_eq!(judge(&result, "cache 20x").figures.len(), 3);
    result.config.storage.clear();
    result.patterns.iter_mut().for_each(|p| p.direct = Some(true));
    assert_eq!(
        (judge(&result, "cache 20x").verdict, notes(&result, "cache 20x read")),
        (Pass, "direct I/O bypassed the cache".into())
    );
    result.manifest.storage.fs_type = "tmpfs".into();
    assert_eq!(judge(&result, "cache 20x").verdict, Fail);
}

#[test]
fn the_coffee_cup_has_ten_minutes() {
    let mut result = repeated(0.02);
    let judged = judge(&result, "coffee cup").figures.remove(0);
    // 16 GiB at 200 MB/s.
    assert!((1.3..1.6).contains(&judged.value.unwrap()) && judged.interval.is_some(), "{judged:?}");
    assert_eq!(judge(&result, "coffee cup").verdict, Pass);
    let minutes = judged.value.unwrap();
    let mut with = |factor: f64| {
        result.manifest.machine.memory_per_rank_bytes = ((4_u64 << 30) as f64 * 10.0 / minutes * factor) as u64;
        judge(&result, "coffee cup").verdict
    };
    assert_eq!([with(0.9), with(1.0), with(1.2)], [Pass, Undecided, Fail]);
}

/// The rules by which a comparison is inconclusive.
#[test]
fn doubts_leave_speeds_open() {
    let lines = ["type 0 write >= 1 MB/s", "value >= 1 GB/s", "mean write >= 1 MB/s", "spread <= 50 %", "coffee cup"];
    let sure = repeated(0.02);
    assert_eq!(verdicts(&sure, &lines), [Pass, Fail, Pass, Pass, Pass]);
    let mut shared = sure.clone();
    for p in &mut shared.patterns {
        p.interference = Some(InterferenceRecord {
            observed_seconds: 10.0,
            cpu_seconds: 20.0,
            other_process_seconds: 3.0,
            ..InterferenceRecord::default()
        });
    }
    assert_eq!(verdicts(&shared, &lines), [Undecided; 5]);
    assert!(matches!(judge(&shared, lines[0]).figures[0].doubt, Some(Doubt::Shared { .. })));
    assert_eq!(verdicts(&shared, &["T >= 15 min", "wrong words = 0"]), [Pass; 2], "they are no speeds");
    for outcome in [RunOutcome::Interrupted, RunOutcome::Limit, RunOutcome::Failed, RunOutcome::Killed] {
        let mut cut = sure.clone();
        cut.ending.outcome = outcome;
        assert_eq!(verdicts(&cut, &lines), [Undecided; 5], "{outcome:?}");
        assert_eq!(verdicts(&cut, &["T >= 15 min", "wrong words = 0", "cache 20x"])[..2], [Undecided; 2]);
    }
}

#[test]
fn incomplete_results_of_every_kind_are_judged() {
    let all = requirements::FORMS.join("\n");
    for (name, mut result, _) in fixtures::all() {
        result.config.requirements = requirements::parse(&all).unwrap();
        let judged = Acceptance::of(&required_figures(&result, &derive(&result))).unwrap();
        assert_eq!(judged.requirements.len(), requirements::FORMS.len(), "{name}");
        let is_failed = name == "failed";
        assert_eq!(judged.requirements[6].verdict == Fail, is_failed, "{name}: wrong words");
    }
}
