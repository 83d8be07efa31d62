use super::fixture::{difference, run};
use super::*;
use crate::frame::records::Outcome;
use crate::replay::plan::CallClass;
use crate::replay::records::{PassEnd, PassRecord};

fn line(derived: &ReplayDerived, wanted: impl Fn(&&Level) -> bool) -> Level {
    derived.levels.iter().find(wanted).unwrap().clone()
}

#[test]
fn the_ratio_is_replayed_over_recorded() {
    let derived = derive(&run(&["mpiio", "posix"], 1));
    let whole = line(&derived, |l| l.level == LevelKind::Run && l.part == Part::Writes && l.backend == "mpiio");
    assert!((whole.ratio.unwrap() - 1.25).abs() < 1e-12 && (whole.deviation.unwrap() - 0.25).abs() < 1e-12);
    let seconds = 20.0 * 1e-4 + 1e-9 * f64::from(20 << 20);
    assert!((whole.recorded_bytes_per_second.unwrap() - f64::from(20 << 20) / seconds).abs() < 1e-3);
    assert_eq!(whole.ratio_range, None, "one pass");
    let posix = line(&derived, |l| l.backend == "posix" && l.class == Some(CallClass::Open));
    assert!((posix.ratio.unwrap() - 1.5).abs() < 1e-12, "without bytes the speed of the calls");
    assert_eq!(posix.recorded_bytes_per_second, None);
}

#[test]
fn what_moves_nothing_has_no_bandwidth() {
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
    for part in [Part::Reads, Part::Writes, Part::All] {
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
fn passes_are_averaged_and_incomplete_ones_do_not_count() {
    let mut result = run(&["mpiio"], 3);
    result.passes[2].ended = PassEnd::Interrupted;
    let derived = derive(&result);
    let whole = line(&derived, |l| l.level == LevelKind::Run && l.part == Part::All);
    assert_eq!((whole.passes, whole.calls), (2, 134));
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
    assert_eq!(verdict(&|_| ()), VerdictKind::AsRecorded);
    assert_eq!(verdict(&|r| r.passes[0].calls_as_recorded -= 1), VerdictKind::NotAsRecorded);
    assert_eq!(verdict(&|r| r.setup.profile.calls_cut = 1), VerdictKind::NotAsRecorded);
    assert_eq!(verdict(&|r| r.passes[1].ended = PassEnd::Interrupted), VerdictKind::NotComplete);
    let not_run = |pass: &mut PassRecord| pass.ended = PassEnd::NotRun("it cannot work here".into());
    assert_eq!(verdict(&|r| not_run(&mut r.passes[1])), VerdictKind::AsRecorded, "the others are whole");
    assert_eq!(verdict(&|r| r.passes.iter_mut().for_each(not_run)), VerdictKind::NotComplete, "nothing was run");
    assert_eq!(verdict(&|r| r.passes.truncate(1)), VerdictKind::NotComplete);
    assert_eq!(verdict(&|r| r.ending.outcome = Outcome::Killed), VerdictKind::NotComplete);
    assert_eq!(verdict(&|r| r.passes[1].bytes_wrong = 1), VerdictKind::WrongData);
}

#[test]
fn warnings_come_when_there_is_something_to_warn_of() {
    assert_eq!(derive(&run(&["mpiio"], 1)).warnings, []);
    let mut result = run(&["mpiio", "null"], 1);
    for pass in &mut result.passes {
        pass.calls_as_recorded -= 2;
        pass.differences.push(difference());
    }
    result.setup.profile.threads = 2;
    result.passes[0].storage_read_bytes = Some(0);
    let found = derive(&result).warnings;
    let kinds: Vec<&str> = found.iter().map(|w| w.kind.as_ref()).collect();
    assert_eq!(kinds, ["threads", "not_as_recorded", "cache_differs"], "what moves nothing is not asked");
}
