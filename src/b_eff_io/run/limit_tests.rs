//! Runs with a time limit, by scripts: they end before it on all ranks, and omit parts in order.

use crate::b_eff_io::records::{JournalLine, PatternRecord, StopReason};
use crate::b_eff_io::run::execute::execute;
use crate::b_eff_io::run::run_limit::RunLimit;
use crate::b_eff_io::run::run_tests::{config, in_run, JournalRecorder};
use crate::b_eff_io::run::state::RunState;
use crate::frame::records::{AccessMethod, OmittedPart, RunOutcome, TimeLimitRecord};
use crate::frame::run::clock::Instant;
use crate::frame::run::job_limit::JobLimit;
use crate::frame::run::testing::{Script, ScriptedOutcome};
use OmittedPart::{Repetitions, Rounds, VerificationSamples};

fn script(slower: f64) -> Script {
    let costs = [("open", 0.02), ("close", 0.03), ("prepare", 0.001), ("write", 0.05), ("read", 0.04), ("sync", 0.1)];
    costs.into_iter().fold(Script::default(), |script, (call, seconds)| script.cost(call, slower * seconds))
}

/// Rank 1 is the slowest.
fn rank_script(rank: u64) -> Script {
    script(if rank == 1 { 1.5 } else { 1.0 })
}

fn set_limit(run: &mut RunState<'_>, seconds: f64) {
    let limit = run.world.is_root().then(|| JobLimit::new(seconds, 0.0));
    run.interrupt = Box::leak(Box::new(run.interrupt.clone().with_limit(limit)));
    let record = TimeLimitRecord { seconds: Some(seconds), source: "squeue".into(), ..TimeLimitRecord::default() };
    run.limit = RunLimit::new(Some(record));
}

struct LimitedRun {
    outcome: RunOutcome,
    seconds: f64,
    journal: JournalRecorder,
}

impl LimitedRun {
    fn omitted(&self) -> Vec<OmittedPart> {
        let omitted = |line: &JournalLine| match line {
            JournalLine::TimeLimit(record) => Some(record.omitted.clone()),
            _ => None,
        };
        self.journal.lines.iter().filter_map(omitted).next_back().unwrap_or_default()
    }

    fn repetitions(&self) -> usize {
        self.journal.lines.iter().filter(|line| matches!(line, JournalLine::Repetition(_))).count()
    }
}

fn limited(ranks: u64, options: &str, data: bool, limit_seconds: f64, scripts: fn(u64) -> Script) -> Vec<LimitedRun> {
    let seen = in_run(ranks, &config(options), scripts, data, |run, _| {
        set_limit(run, limit_seconds);
        let begin = Instant::now();
        let ending = execute(run).unwrap();
        (ending.outcome, begin.elapsed().as_secs_f64())
    });
    seen.into_iter().map(|((outcome, seconds), journal)| LimitedRun { outcome, seconds, journal }).collect()
}

const OPTIONS: &str = "--release 1 -T 60s --types 0,2 --backend null --repeat off";

/// The limit may be reached in any pattern, between them, in a file that is opened or closed, and after the last one.
#[test]
fn a_run_ends_before_any_limit() {
    let mut complete = 0;
    for (ranks, partitions) in [(1, "1"), (3, "3"), (3, "1,3")] {
        for step in 0..30 {
            let limit_seconds = 2.0 + 2.37 * f64::from(step) * if partitions == "1,3" { 2.0 } else { 1.0 };
            let options = format!("{OPTIONS} --partitions {partitions}");
            let runs = limited(ranks, &options, false, limit_seconds, rank_script);
            assert!(runs.iter().all(|run| run.outcome == runs[0].outcome), "the outcome is the same on all ranks");
            let LimitedRun { outcome, seconds, journal } = &runs[0];
            let case = format!("{limit_seconds} s, partitions {partitions}: {outcome:?} after {seconds} s");
            assert!(*seconds <= limit_seconds, "{case}");
            match outcome {
                RunOutcome::Complete => complete += 1,
                RunOutcome::Limit => assert!(*seconds >= 0.5 * limit_seconds - 0.5, "{case}: much too early"),
                _ => panic!("{case}"),
            }
            let cut = |record: &&&PatternRecord| record.ended == StopReason::Limit;
            let records = journal.patterns();
            assert!(records.iter().filter(cut).count() <= 1, "{case}");
            assert!(records[..records.len() - 1].iter().all(|record| record.ended != StopReason::Limit), "{case}");
            assert!(!records.is_empty() && records.iter().all(|record| record.ended != StopReason::Interrupted));
        }
    }
    assert!(complete > 5, "some limits are longer than the run: {complete}");
}

/// A single rank's clock decides: other ranks have no limit, and agree.
#[test]
fn a_signal_outweighs_the_limit() {
    let scripts = |rank| {
        if rank == 2 {
            rank_script(rank).outcome("write", 100, ScriptedOutcome::Signal)
        } else {
            rank_script(rank)
        }
    };
    for run in limited(3, OPTIONS, false, 1000.0, scripts) {
        assert_eq!(run.outcome, RunOutcome::Interrupted);
    }
}

/// Unlike with a signal the cut pattern is closed and synced in the time that was reserved.
#[test]
fn the_last_pattern_says_that_the_limit_ended_it() {
    let runs = limited(3, OPTIONS, false, 12.0, rank_script);
    assert_eq!((runs[0].outcome, runs[0].omitted()), (RunOutcome::Limit, vec![]));
    let last = runs[0].journal.patterns().into_iter().next_back().unwrap();
    assert_eq!((&last.ended, last.access), (&StopReason::Limit, AccessMethod::Write));
    assert!(last.calls > 0 && last.intervals.sync_seconds > 0.0, "{last:?}");
}

#[test]
fn a_limit_that_is_far_away_changes_nothing() {
    let scripts = |_| script(1.0);
    let options = "--release 1 -T 30s --types 2 --backend null --repeat auto --rounds 2";
    let runs = limited(1, options, false, 1e6, scripts);
    let without = in_run(1, &config(options), scripts, false, |run, _| execute(run).unwrap().outcome);
    assert_eq!((runs[0].outcome, runs[0].omitted()), (RunOutcome::Complete, vec![]));
    assert_eq!(runs[0].journal.lines.len(), without[0].1.lines.len());
    assert!(runs[0].repetitions() > 0);
}

#[test]
fn repetitions_end_at_the_limit_of_a_complete_run() {
    let options = "--release 1 -T 60s --types 2 --backend null --repeat auto";
    let all = limited(1, options, false, 1e6, |_| script(1.0)).remove(0);
    let first_seconds = limited(1, &options.replace("auto", "off"), false, 1e6, |_| script(1.0))[0].seconds;
    for limit_seconds in [first_seconds + 3.0, first_seconds + 15.0] {
        let run = limited(1, options, false, limit_seconds, |_| script(1.0)).remove(0);
        assert_eq!(run.outcome, RunOutcome::Complete, "{limit_seconds}");
        assert!(run.seconds <= limit_seconds, "{} of {limit_seconds}", run.seconds);
        assert!(run.omitted().first() == Some(&Repetitions) && run.repetitions() < all.repetitions());
    }
}

/// Rounds and samples of later patterns are missing; the earlier ones have theirs.
#[test]
fn parts_beyond_the_first_measurement_are_omitted_in_order() {
    let options = "--release 1 -T 120s --types 2 --backend posix --verify sample --cache keep --rounds 3 --repeat auto";
    let omitted = |limit_seconds: f64| {
        let run = limited(1, options, true, limit_seconds, |_| script(1.0)).remove(0);
        assert!(run.seconds <= limit_seconds, "{} of {limit_seconds}", run.seconds);
        let records = run.journal.patterns();
        let last = records.iter().rev().find(|record| record.calls > 1 && record.ended != StopReason::Limit).unwrap();
        let parts = run.omitted();
        assert_eq!(last.rounds.len() == 1, parts.contains(&Rounds), "{limit_seconds}: {last:?}");
        assert_eq!(last.sample.is_none(), parts.contains(&VerificationSamples), "{limit_seconds}: {last:?}");
        assert!(!parts.contains(&Rounds) || run.repetitions() == 0);
        parts
    };
    let scheduled = |run: &mut RunState<'_>| run.plan.scheduled_seconds(run.config);
    let seconds = in_run(1, &config(options), |_| script(1.0), true, |run, _| scheduled(run))[0].0;
    // Beside the reserve.
    let seen = [1e4, 0.9, 0.6, 0.3].map(|share| omitted(share * seconds + 2.5));
    assert_eq!(seen[0], []);
    assert!(seen[1].starts_with(&[Repetitions, Rounds]), "{seen:?}");
    assert_eq!(seen[3], [Repetitions, Rounds, VerificationSamples]);
    for pair in seen.windows(2) {
        assert!(pair[1].starts_with(&pair[0]), "a shorter limit omits no less: {seen:?}");
    }
}
