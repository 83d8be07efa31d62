//! Overruns by scripts: bounded by rules of this program, or with `--strict` as the definition has them; time for repetitions.

use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::records::{JournalLine, PatternRecord, StopReason};
use crate::b_eff_io::run::context::TypeContext;
use crate::b_eff_io::run::execute::execute;
use crate::b_eff_io::run::run_tests::{config, in_run, JournalRecorder};
use crate::b_eff_io::run::type_run::run_type;
use crate::frame::records::{AccessMethod, RunOutcome};
use crate::frame::run::testing::{with_script, Script};

/// First writes and rewrites of types 2 and 3; calls of type 3 take `slower` times as long as those of type 2, and so do syncs of both.
fn overrunning(options: &str, slower: f64) -> JournalRecorder {
    let config = config(&format!("--release 1 -T 1920s --types 2,3 --backend null --rounds 1 --repeat off {options}"));
    let costs = |factor: f64| {
        with_script(|script| {
            script.costs.insert("write", vec![factor]);
            script.costs.insert("sync", vec![4.0]);
        });
    };
    let seen = in_run(
        1,
        &config,
        |_| Script::default(),
        false,
        |run, place| {
            for access in [AccessMethod::Write, AccessMethod::Rewrite] {
                run.backends[0].debt_seconds = 0.0;
                for pattern_type in [PatternType::Separate, PatternType::Segmented] {
                    costs(if pattern_type == PatternType::Segmented { slower } else { 1.0 });
                    run_type(run, TypeContext { access, pattern_type, ..place }).unwrap();
                }
            }
            assert_eq!(run.stop, None);
        },
    );
    seen.into_iter().next().unwrap().1
}

fn timed(keeps: &JournalRecorder, access: AccessMethod, t: PatternType) -> Vec<&PatternRecord> {
    let is_it = |p: &&PatternRecord| p.access == access && p.pattern_type == t && p.time_units > 0;
    keeps.patterns().into_iter().filter(is_it).collect()
}

#[test]
fn by_default_a_slow_type_is_cut_and_overruns_are_made_up_for() {
    let keeps = overrunning("", 10.0);
    let cut = timed(&keeps, AccessMethod::Write, PatternType::Segmented);
    assert!(cut.iter().all(|p| p.ended == StopReason::TimeGuard), "{cut:?}");
    let rewrites = timed(&keeps, AccessMethod::Rewrite, PatternType::Segmented);
    assert!(rewrites.iter().any(|p| p.budget_seconds < p.scheduled_seconds));
    // Each loop keeps time for its sync.
    let first = timed(&keeps, AccessMethod::Write, PatternType::Separate);
    assert!(first[2..].iter().all(|p| p.intervals.transfer_seconds < p.scheduled_seconds - 1.0), "{first:?}");
}

#[test]
fn strictly_counts_and_time_alone_end_the_loops() {
    let (strict, usual) = (overrunning("--strict", 10.0), overrunning("--strict", 1.0));
    for keeps in [&strict, &usual] {
        assert!(keeps.patterns().iter().all(|p| p.budget_seconds == p.scheduled_seconds));
        // The sync is not part of the time in which a loop continues.
        for p in timed(keeps, AccessMethod::Write, PatternType::Separate) {
            assert_eq!(p.ended, StopReason::Time);
            assert!(p.intervals.transfer_seconds >= p.scheduled_seconds && p.intervals.sync_seconds >= 4.0, "{p:?}");
        }
    }
    let calls =
        |keeps| timed(keeps, AccessMethod::Write, PatternType::Segmented).iter().map(|p| p.calls).collect::<Vec<_>>();
    assert_eq!(calls(&strict), calls(&usual), "the counts follow from type 2, however slow type 3 is");
    let slow = timed(&strict, AccessMethod::Write, PatternType::Segmented);
    assert!(slow.iter().all(|p| p.ended == StopReason::Count && p.seconds() > 4.0 * p.scheduled_seconds), "{slow:?}");
    let rewrites = timed(&strict, AccessMethod::Rewrite, PatternType::Segmented);
    assert!(rewrites.iter().all(|p| p.ended == StopReason::Time), "rewrites are scheduled: {rewrites:?}");
}

/// On storage that never idles the first measurement uses all of T; a quarter of T follows for repetitions.
#[test]
fn repetitions_have_time_although_the_first_measurement_used_all_of_it() {
    let run = |repeat: &str| {
        let config = config(&format!("--release 1 -T 960s --backend null --rounds 1 --repeat {repeat}"));
        let costs = |_| Script::default().cost("write", 0.5).cost("read", 0.5).cost("sync", 1.0);
        let seen = in_run(1, &config, costs, false, |run, _| {
            let ending = execute(run).unwrap();
            (ending.outcome, ending.real_seconds)
        });
        let ((outcome, seconds), keeps) = seen.into_iter().next().unwrap();
        assert_eq!(outcome, RunOutcome::Complete);
        let repetitions = keeps.lines.iter().filter(|line| matches!(line, JournalLine::Repetition(_))).count();
        (seconds, repetitions)
    };
    let ((first_seconds, none), (seconds, repetitions)) = (run("off"), run("auto"));
    assert!(first_seconds > 0.9 * 960.0 && none == 0, "{first_seconds}");
    assert!(repetitions >= 43, "{repetitions}");
    // T alone would leave less than a tenth of it.
    assert!(seconds > 960.0 && seconds <= first_seconds + 0.25 * 960.0, "{first_seconds} {seconds}");
}
