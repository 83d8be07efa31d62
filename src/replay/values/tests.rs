use super::fixture::{difference, run};
use super::*;
use crate::frame::records::RunOutcome;
use crate::replay::plan::CallClass;
use crate::replay::records::{ProfileRepetition, RepetitionStatus, ReplayResult, VERIFICATION};

fn line(derived: &ReplayDerived, wanted: impl Fn(&&LevelComparison) -> bool) -> LevelComparison {
    derived.levels.iter().find(wanted).unwrap().clone()
}

#[test]
fn the_ratio_is_replayed_over_recorded() {
    let derived = derive(&run(&["mpiio", "posix"], 1));
    let whole = line(&derived, |l| l.level == LevelKind::Run && l.part == CallSubset::Writes && l.backend == "mpiio");
    assert!((whole.ratio.unwrap() - 1.25).abs() < 1e-12 && (whole.deviation.unwrap() - 0.25).abs() < 1e-12);
    let seconds = 20.0 * 1e-4 + 1e-9 * f64::from(20 << 20);
    assert!((whole.recorded_bytes_per_second.unwrap() - f64::from(20 << 20) / seconds).abs() < 1e-3);
    assert_eq!(whole.ratio_range, None, "one repetition");
    let posix = line(&derived, |l| l.backend == "posix" && l.class == Some(CallClass::Open));
    assert!((posix.ratio.unwrap() - 1.5).abs() < 1e-12, "without bytes, the speed of the calls");
    assert_eq!(posix.recorded_bytes_per_second, None);
}

#[test]
fn the_null_backend_has_no_bandwidth() {
    let derived = derive(&run(&["mpiio", "null"], 2));
    let null = derived.levels.iter().filter(|l| l.backend == "null");
    assert!(null.clone().count() > 5);
    for level in null {
        assert!(level.replayed_seconds > 0.0);
        assert_eq!(
            (level.replayed_bytes_per_second, level.ratio, level.deviation, level.ratio_range),
            (None, None, None, None)
        );
    }
}

#[test]
fn levels_add_up() {
    let derived = derive(&run(&["mpiio"], 1));
    for part in [CallSubset::Reads, CallSubset::Writes, CallSubset::All] {
        let sum = |level| {
            let of_level = derived.levels.iter().filter(|l| l.level == level && l.part == part);
            of_level.map(|l| l.recorded_bytes).sum::<u64>()
        };
        assert_eq!(sum(LevelKind::Run), sum(LevelKind::File), "{part:?}");
        assert_eq!(sum(LevelKind::Run), sum(LevelKind::Process), "{part:?}");
    }
    let of_functions = derived.levels.iter().filter(|l| l.level == LevelKind::Function);
    assert_eq!(of_functions.map(|l| l.recorded_bytes).sum::<u64>(), (20 << 20) + (10 << 20) + (100 << 10));
}

#[test]
fn values_are_medians_of_the_timed_repetitions() {
    let whole = |result: &ReplayResult| {
        line(&derive(result), |l| l.level == LevelKind::Run && l.part == CallSubset::All).ratio.unwrap()
    };
    let mut result = run(&["mpiio"], 3);
    let mut slow = |number: u64, factor: f64| {
        let of = result.classes.iter_mut().filter(|class| class.repetition == number);
        of.for_each(|class| class.both.replayed.seconds *= factor);
    };
    slow(3, 100.0);
    assert!((whole(&result) - 1.125).abs() < 1e-12, "{}: one slow repetition changes the range", whole(&result));
    for class in result.classes.iter_mut().filter(|class| class.repetition == 2) {
        class.repetition = VERIFICATION;
    }
    result.repetitions[1].repetition = VERIFICATION;
    let expected = (1.25 + 1.0 / 100.0) / 2.0;
    assert!((whole(&result) - expected).abs() < 1e-12, "{}: the verification does not count", whole(&result));
}

#[test]
fn repetitions_are_summarized_and_incomplete_ones_do_not_count() {
    let mut result = run(&["mpiio"], 3);
    result.repetitions[2].ended = RepetitionStatus::Interrupted;
    let derived = derive(&result);
    let whole = line(&derived, |l| l.level == LevelKind::Run && l.part == CallSubset::All);
    assert_eq!((whole.repetitions, whole.calls), (2, 134));
    let [low, high] = whole.ratio_range.unwrap();
    assert!((low - 1.125).abs() < 1e-12 && (high - 1.25).abs() < 1e-12);
    assert!(low < whole.ratio.unwrap() && whole.ratio.unwrap() < high);
}

#[test]
fn the_verdict_names_the_worst() {
    let verdict = |change: &dyn Fn(&mut ReplayResult)| {
        let mut result = run(&["mpiio"], 2);
        change(&mut result);
        derive(&result).verdict.verdict
    };
    assert_eq!(verdict(&|_| ()), Fidelity::AsRecorded);
    assert_eq!(verdict(&|r| r.repetitions[0].calls_as_recorded -= 1), Fidelity::NotAsRecorded);
    assert_eq!(verdict(&|r| r.setup.profile.calls_discarded = 1), Fidelity::NotAsRecorded);
    assert_eq!(verdict(&|r| r.repetitions[1].ended = RepetitionStatus::Interrupted), Fidelity::NotComplete);
    let not_run =
        |repetition: &mut ProfileRepetition| repetition.ended = RepetitionStatus::NotRun("it cannot work here".into());
    assert_eq!(verdict(&|r| not_run(&mut r.repetitions[1])), Fidelity::AsRecorded, "the others are complete");
    assert_eq!(verdict(&|r| r.repetitions.iter_mut().for_each(not_run)), Fidelity::NotComplete, "nothing was run");
    assert_eq!(verdict(&|r| r.repetitions.truncate(1)), Fidelity::NotComplete);
    assert_eq!(verdict(&|r| r.ending.outcome = RunOutcome::Killed), Fidelity::NotComplete);
    assert_eq!(verdict(&|r| r.repetitions[1].bytes_wrong = 1), Fidelity::WrongData);
}

#[test]
fn warnings_follow_from_the_records() {
    assert_eq!(derive(&run(&["mpiio"], 1)).warnings, []);
    let mut result = run(&["mpiio", "null"], 1);
    for repetition in &mut result.repetitions {
        repetition.calls_as_recorded -= 2;
        repetition.differences.push(difference());
    }
    result.setup.profile.threads = 2;
    result.repetitions[0].storage_read_bytes = Some(0);
    let found = derive(&result).warnings;
    let kinds: Vec<&str> = found.iter().map(|w| w.kind.as_ref()).collect();
    assert_eq!(kinds, ["threads", "not_as_recorded", "cache_differs"], "none for the null backend");
}
