//! The loop of a pattern on one to three ranks, by scripts: its calls in order, and every number of the result.

use std::sync::atomic::Ordering;

use beff_backends::{FilePath, OpenMode, OpenRequest};

use super::*;
use crate::b_eff_io::run::batching::CallsEnd;
use crate::b_eff_io::run::measurement::OwnTransfer;
use crate::frame::run::testing::{
    approx_equal, clear_log, driver, log, log_of, run_ranks, scripted_call, with_script, Script, ScriptedOutcome,
};
use crate::frame::run::ByteCounter;

const CALL_BYTES: u64 = 1024;

#[derive(Clone)]
struct LoopCase {
    direction: Direction,
    limits: LoopLimits,
    resume: Option<LoopProgress>,
    hints: Vec<(String, String)>,
    inspected_calls: Option<u64>,
}

fn loop_case(direction: Direction, max_calls: u64, time_seconds: Option<f64>) -> LoopCase {
    let limits = LoopLimits {
        max_calls,
        calls_end: CallsEnd::Count,
        time_seconds,
        pattern_seconds: time_seconds,
        rounds: 1,
        time_is_guard: false,
        sync: None,
        expected_call_seconds: None,
        call_bytes_all_ranks: CALL_BYTES,
        termination: Termination::Geometric,
    };
    LoopCase { direction, limits, resume: None, hints: Vec::new(), inspected_calls: None }
}

struct RankResult {
    m: LoopMeasurement,
    log: Vec<String>,
    /// Batches and related calls.
    calls: Vec<String>,
    live_bytes: u64,
    latencies: u64,
}

fn run_case(ranks: u64, scripts: impl Fn(u64) -> Script + Sync, given: &LoopCase) -> Vec<RankResult> {
    let seen = run_ranks(ranks, scripts, |comm| {
        let path = FilePath::unbacked("f");
        let request = OpenRequest { path: &path, mode: OpenMode::CreateNew, comm, hints: &[] };
        let mut file = driver(false).open(&request).unwrap();
        let mut buffer = TransferBuffer::new(4096, 4096).unwrap();
        let pattern = AccessPattern::private(CALL_BYTES, 1, 1000);
        let (direction, limits, resume) = (given.direction, &given.limits, given.resume);
        let task = LoopTask { pattern: &pattern, direction, limits, hints: &given.hints, resume };
        let live = ByteCounter::default();
        let mut notes = LoopRecorder::new(true, ByteCounter::clone(&live));
        notes.host = 10 + comm.rank();
        if resume.is_some() {
            // An earlier round has prepared and left its notes.
            file.prepare(&pattern, direction, &mut buffer, &[]).unwrap();
            notes.record_decision(1e6);
            notes.record_batch(77, 1e6);
            notes.add_moved_bytes(1 << 40);
            notes.latency.end(notes.latency.begin());
            live.store(0, Ordering::Relaxed);
        }
        clear_log();
        let mut look = |_: &mut TransferBuffer, calls: Range<u64>| {
            scripted_call("look", &format!("{}..{}", calls.start, calls.end));
        };
        let inspector = given.inspected_calls.map(|most_calls| Inspector { max_calls: most_calls, inspect: &mut look });
        let interrupt = with_script(|script| script.interrupt.clone());
        let m = run(file.as_mut(), comm, &mut buffer, task, &mut notes, (&interrupt, inspector)).unwrap();
        let calls = log_of(&["prepare", "preallocate", "write", "read", "look", "trim", "sync"]);
        let latencies = notes.latency.histogram().map_or(0, |histogram| histogram.len());
        RankResult { m, log: log(), calls, live_bytes: live.load(Ordering::Relaxed), latencies }
    });
    // All ranks have the same numbers.
    let shared = |m: &LoopMeasurement| {
        format!("{:?}", LoopMeasurement { error: None, in_force: None, own: OwnTransfer::default(), ..m.clone() })
    };
    assert!(
        seen.iter().all(|one| shared(&one.m) == shared(&seen[0].m)),
        "{:?}",
        seen.iter().map(|s| &s.m).collect::<Vec<_>>()
    );
    seen
}

fn parts(m: &LoopMeasurement) -> [f64; 5] {
    let i = m.intervals;
    [i.view_seconds, i.preallocate_seconds, i.transfer_seconds, i.decide_seconds, i.sync_seconds]
}

fn assert_parts(m: &LoopMeasurement, expected: [f64; 5]) {
    let found = parts(m);
    assert!(
        found.iter().zip(expected).all(|(found, expected)| approx_equal(*found, expected)),
        "{found:?} {expected:?}"
    );
}

/// Rank 1, or rank 0 if it is alone, is slower in everything.
fn slow_rank(ranks: u64, rank: u64) -> Script {
    let factor = if rank == 1.min(ranks - 1) { 2.0 } else { 1.0 };
    Script { counted: Some([1, 3]), submitted: Some(1), ..Script::default() }
        .cost("barrier", 100.0)
        .cost("prepare", 1.5 * factor)
        .cost("preallocate", 0.125 * factor)
        .cost("write", 4.0 * factor)
        .cost("read", 4.0 * factor)
        .cost("trim", 0.25 * factor)
        .cost("sync", 16.0 * factor)
        .cost("tell", 0.01)
        .cost("hear", 0.02)
        .allocates("barrier", 1_000_000)
        .allocates("prepare", 1_000_000)
        .allocates("preallocate", 1)
        .allocates("write", 10)
        .allocates("read", 10)
        .allocates("trim", 100)
        .allocates("sync", 1000)
}

#[test]
fn a_write_is_timed_part_by_part_on_the_slowest_rank() {
    for ranks in 1..=3 {
        let given = LoopCase { hints: vec![("k".into(), "v".into())], ..loop_case(Direction::Write, 3, None) };
        let seen = run_case(ranks, |rank| slow_rank(ranks, rank), &given);
        let slow = &seen[1.min(ranks as usize - 1)];
        let m = &slow.m;
        assert_parts(m, [3.0, 3.0 * 0.25 + 0.5, 24.0, 0.09, 32.0]);
        assert_eq!((m.calls, m.moved_bytes, m.decisions), (3, 3 * CALL_BYTES * ranks, 3));
        assert!(approx_equal(m.decision_cost_seconds, 0.09) && approx_equal(m.imbalance_seconds, 0.09), "{m:?}");
        // The others need half of that.
        let own_seconds = 3.0 + 3.0 * 0.25 + 0.5 + 24.0 + 32.0;
        for (rank, one) in seen.iter().enumerate() {
            let expected = if rank == 1.min(ranks as usize - 1) { own_seconds } else { own_seconds / 2.0 };
            assert!(one.m.own.bytes == 3 * CALL_BYTES && approx_equal(one.m.own.seconds, expected), "{:?}", one.m.own);
        }
        match m.slowest_ranks.as_slice() {
            [] => assert_eq!(ranks, 1),
            [slowest] => {
                assert_eq!((slowest.rank, slowest.host), (1, 11));
                let all_seconds = own_seconds * (1.0 + (ranks - 1) as f64 / 2.0);
                assert!(approx_equal(slowest.seconds, own_seconds), "{slowest:?}");
                assert!(approx_equal(slowest.all_ranks_seconds, all_seconds), "{slowest:?}");
            }
            several => panic!("{several:?}"),
        }
        let batches: Vec<_> = m.batches.iter().map(|batch| (batch.calls, (batch.seconds * 1e6).round())).collect();
        assert_eq!(batches, [(1, 8.25e6); 3]);
        assert_eq!((&m.ended, m.error.is_none(), &m.preallocation_error), (&StopReason::Count, true, &None));
        assert_eq!(m.allocations_in_clock, ranks * (3 * 11 + 100 + 1000));
        let io = m.io.unwrap();
        let bytes = 3 * CALL_BYTES * ranks;
        assert_eq!((io.call_written_bytes, io.written_bytes), (bytes, 3 * bytes));
        assert_eq!((io.call_read_bytes, io.read_bytes), (0, 0));
        let submitted = m.submissions.unwrap();
        assert_eq!((submitted.registered, submitted.plain), (3 * ranks, 30 * ranks));
        let p = m.progress;
        assert_eq!((p.calls, p.synced_calls, p.last_calls, p.largest_calls, p.is_direct), (3, 3, 1, 1, false));
        assert!(approx_equal(p.elapsed_seconds, parts(m).iter().sum()) && approx_equal(p.last_seconds, 8.25), "{p:?}");
        assert!(approx_equal(p.call_seconds_before.unwrap(), 8.25), "{p:?}");
        assert_eq!((slow.live_bytes, slow.latencies), (3 * CALL_BYTES, 3));
        let expected = [
            "0 barrier",
            "100 prepare Write 1000x1024 of 0 k=v",
            "103 tell",
            "103.01 hear",
            "103.03 preallocate 0+1",
            "103.28 write 0+1",
            "111.28 tell",
            "111.29 hear",
            "111.31 preallocate 1+1",
            "111.56 write 1+1",
            "119.56 tell",
            "119.57 hear",
            "119.59 preallocate 2+1",
            "119.84 write 2+1",
            "127.84 trim",
            "128.34 sync",
        ];
        assert_eq!(slow.log[..expected.len()], expected);
        for one in &seen {
            assert_eq!(one.calls, slow.calls);
        }
    }
}

#[test]
fn a_read_neither_preallocates_nor_syncs() {
    for ranks in 1..=3 {
        let seen = run_case(ranks, |rank| slow_rank(ranks, rank), &loop_case(Direction::Read, 2, None));
        let m = &seen[0].m;
        assert_parts(m, [3.0, 0.0, 16.0, 0.06, 0.0]);
        assert_eq!((m.calls, m.moved_bytes, m.decisions), (2, 2 * CALL_BYTES * ranks, 2));
        assert_eq!(m.allocations_in_clock, ranks * 20);
        let (io, bytes) = (m.io.unwrap(), 2 * CALL_BYTES * ranks);
        assert_eq!((io.call_read_bytes, io.read_bytes), (bytes, 3 * bytes));
        assert_eq!((io.call_written_bytes, io.written_bytes), (0, 0));
        for one in &seen {
            assert_eq!(one.calls, ["prepare Read 1000x1024 of 0", "read 0+1", "read 1+1"]);
        }
    }
}

/// Ranks that are slow in turn delay each other: 4, 1, 1 and 1, 4, 2 seconds.
#[test]
fn waiting_is_imbalance_and_no_cost_of_a_decision() {
    let costs = |rank| Script::default().costs("write", if rank == 0 { &[4.0, 1.0, 1.0] } else { &[1.0, 4.0, 2.0] });
    let m = run_case(2, costs, &loop_case(Direction::Write, 3, None)).remove(0).m;
    assert_parts(&m, [0.0, 0.0, 7.0, 3.0, 0.0]);
    assert!(approx_equal(m.imbalance_seconds, 3.0) && approx_equal(m.decision_cost_seconds, 0.0), "{m:?}");
    assert_eq!(m.batches.iter().map(|batch| batch.seconds).collect::<Vec<_>>(), [4.0, 4.0, 2.0]);
    assert_eq!((m.progress.elapsed_seconds, m.progress.last_seconds), (10.0, 2.0));
}

#[test]
fn a_round_continues_where_the_previous_one_ended() {
    let before = LoopProgress {
        calls: 2,
        elapsed_seconds: 7.0,
        last_calls: 1,
        largest_calls: 1,
        last_seconds: 1.0,
        call_seconds_before: Some(1.0),
        synced_calls: 2,
        is_direct: true,
    };
    let given = LoopCase { resume: Some(before), ..loop_case(Direction::Write, 100, Some(10.0)) };
    for ranks in 1..=3 {
        let is_slow = |rank: u64| rank == 1.min(ranks - 1);
        let script = |rank| {
            Script { direct: Some(true), ..Script::default() }
                .cost("write", if rank == 1 { 1.0 } else { 0.5 })
                .cost("trim", if is_slow(rank) { 0.25 } else { 0.0 })
        };
        let slow = if ranks == 1 { 0.5 } else { 1.0 };
        let seen = run_case(ranks, script, &given);
        let m = &seen[0].m;
        let calls = (3.0 / slow) as u64;
        assert_eq!((m.calls, m.progress.calls, &m.ended), (calls, 2 + calls, &StopReason::Time));
        assert_eq!((m.progress.synced_calls, m.progress.is_direct), (2 + calls, true));
        assert_eq!((m.progress.elapsed_seconds, parts(m)), (10.25, [0.0, 0.25, 3.0, 0.0, 0.0]));
        assert_eq!(m.batches.iter().map(|batch| batch.calls).sum::<u64>(), calls, "of this round alone");
        assert_eq!(
            (m.moved_bytes, seen[0].live_bytes, seen[0].latencies),
            (calls * ranks * CALL_BYTES, calls * CALL_BYTES, calls)
        );
        assert!(m.in_force.is_none() && approx_equal(m.decision_cost_seconds, 0.0), "{m:?}");
        assert_eq!(seen[0].calls[..2], ["preallocate 2+1", "write 2+1"]);
        assert!(!seen[0].log.iter().any(|line| line.contains("prepare")));
        // There is no reduction of the preparation either.
        assert_eq!(seen[0].log[1], "0 preallocate 2+1");
    }
}

/// All ranks learn of the error of one rank, and it is attributed to that rank only.
#[test]
fn an_error_of_one_rank_ends_the_loop_of_all() {
    let of_rank_1 = |call, number, answer| {
        move |rank| {
            if rank == 1 { Script::default().outcome(call, number, answer) } else { Script::default() }
                .cost("write", 1.0)
        }
    };
    let write = loop_case(Direction::Write, 4, None);
    let moved = |ranks: u64, own: u64, calls: u64| CALL_BYTES * (calls * (ranks - 1) + own);
    for ranks in 2..=3 {
        for (call, number, calls, own, error) in [
            ("prepare", 0, 0, 0, "prepare on"),
            ("preallocate", 1, 2, 1, "preallocate on"),
            ("write", 1, 2, 1, "write on"),
            ("write", 3, 4, 3, "write on"),
            ("trim", 0, 4, 4, "trim on"),
            ("sync", 0, 4, 4, "sync on"),
        ] {
            let seen = run_case(ranks, of_rank_1(call, number, ScriptedOutcome::Fail), &write);
            for (rank, one) in seen.iter().enumerate() {
                let (m, place) = (&one.m, format!("{call} {number} rank {rank} of {ranks}"));
                assert_eq!(
                    (&m.ended, m.calls, m.moved_bytes),
                    (&StopReason::Error, calls, moved(ranks, own, calls)),
                    "{place}"
                );
                assert_eq!(
                    m.error.as_ref().map(|e| e.to_string().contains(error)),
                    (rank == 1).then_some(true),
                    "{place}"
                );
                assert_eq!(m.in_force.is_some(), (call, rank) != ("prepare", 1), "{place}");
                // Collective: all ranks sync if any has written.
                let ends = if calls > 0 { &["trim", "sync"][..] } else { &[] };
                assert!(one.calls.ends_with(&ends.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>()), "{place}");
                assert_eq!(one.calls.iter().any(|line| line == "sync"), calls > 0, "{place}");
            }
            let own_writes = seen[1].calls.iter().filter(|line| line.starts_with("write")).count() as u64;
            assert_eq!(own_writes, own + u64::from(call == "write"), "{call}: no write without preallocation");
        }
    }
}

#[test]
fn the_first_error_of_a_rank_is_reported() {
    let script =
        |_| Script::default().outcome("write", 0, ScriptedOutcome::Fail).outcome("sync", 0, ScriptedOutcome::Full);
    let m = run_case(1, script, &loop_case(Direction::Write, 4, None)).remove(0).m;
    assert!(m.error.unwrap().to_string().starts_with("write on"));
}

/// Until the others learn of an error, the rank continues only where the pattern synchronizes ranks.
#[test]
fn a_rank_with_an_error_still_makes_synchronizing_calls() {
    let mut given = loop_case(Direction::Write, 100, Some(100.0));
    given.limits.expected_call_seconds = Some(0.01);
    for (synchronizing, expected) in [(false, &["write 0+1"][..]), (true, &["write 0+1", "write 1+2"])] {
        let script = |rank| {
            let script = Script { synchronizes: Some(synchronizing), ..Script::default() }.cost("write", 0.01);
            if rank == 1 {
                script.outcome("write", 0, ScriptedOutcome::Fail)
            } else {
                script
            }
        };
        let seen = run_case(2, script, &given);
        let writes =
            |one: &RankResult| one.calls.iter().filter(|line| line.starts_with("write")).cloned().collect::<Vec<_>>();
        assert_eq!(writes(&seen[1]), expected);
        assert_eq!(writes(&seen[0]), ["write 0+1", "write 1+2"]);
        assert_eq!((&seen[0].m.ended, seen[0].m.calls), (&StopReason::Error, 3));
    }
}

#[test]
fn all_ranks_run_in_lockstep_if_one_needs_it() {
    let mut given = loop_case(Direction::Read, 100, Some(100.0));
    given.limits.expected_call_seconds = Some(0.01);
    for (keeps, second) in [(false, "read 1+2"), (true, "hear")] {
        let script = |rank| {
            Script { lockstep: keeps && rank == 1, ..Script::default() }.cost("read", 0.01).outcome(
                "read",
                2,
                ScriptedOutcome::Signal,
            )
        };
        let seen = run_case(2, script, &given);
        for one in &seen {
            let lines: Vec<_> = one.log.iter().map(|line| line.split_once(' ').unwrap().1).collect();
            assert_eq!(
                lines[..7],
                ["barrier", "prepare Read 1000x1024 of 0", "tell", "hear", "read 0+1", "tell", second]
            );
        }
    }
}

#[test]
fn a_signal_on_any_rank_ends_the_loop_of_all() {
    let script = |rank| {
        let script = Script::default().cost("read", 1.0);
        if rank == 2 {
            script.outcome("read", 1, ScriptedOutcome::Signal)
        } else {
            script
        }
    };
    for one in run_case(3, script, &loop_case(Direction::Read, 50, None)) {
        assert_eq!((one.m.ended, one.m.calls, one.m.error.is_none()), (StopReason::Interrupted, 2, true));
    }
}

#[test]
fn bytes_are_those_that_were_moved() {
    let script = |rank| {
        if rank == 1 {
            Script::default().outcome("read", 0, ScriptedOutcome::Moved(24))
        } else {
            Script::default()
        }
    };
    let seen = run_case(2, |rank| script(rank).cost("read", 1.0), &loop_case(Direction::Read, 2, None));
    assert_eq!((seen[0].m.moved_bytes, seen[1].live_bytes), (3 * CALL_BYTES + 24, CALL_BYTES + 24));
}

/// Barrier, the root's clock, broadcast.
#[test]
fn decisions_after_each_call_are_those_of_the_root() {
    let mut given = loop_case(Direction::Write, 100, Some(10.0));
    given.limits.termination = Termination::PerCall;
    let script = |rank| {
        let seconds = if rank == 1 { 3.0 } else { 1.0 };
        let script = Script::default().cost("trim", if rank == 1 { 0.25 } else { 0.0 });
        script.cost("write", seconds).cost("bare barrier", 0.25).cost("bare bcast", 0.125).cost("tell", 0.5)
    };
    // One more call while its time remains, by the mean so far: 3 s each plus the decisions.
    for (ranks, calls) in [(1, 6), (2, 2)] {
        let seen = run_case(ranks, script, &given);
        let m = &seen[0].m;
        assert_eq!((m.calls, &m.ended, m.decisions), (calls, &StopReason::Time, calls + 1), "{ranks}");
        let own = if ranks == 1 { 1.0 } else { 3.0 };
        let preallocation = if ranks == 1 { 0.0 } else { 0.25 };
        assert_parts(m, [0.0, preallocation, own * calls as f64, 0.5 + 0.375 * calls as f64, 0.0]);
        assert!(approx_equal(m.decision_cost_seconds, 0.5 + 0.375 * calls as f64), "{m:?}");
        let after_first = seen[0].log.iter().position(|line| line.contains("write 0+1")).unwrap();
        let next: Vec<_> =
            seen[0].log[after_first + 1..after_first + 3].iter().map(|l| l.split_once(' ').unwrap().1).collect();
        assert_eq!(next, ["bare barrier", "bare bcast"]);
    }
}

/// The clock is stopped during inspections.
#[test]
fn inspections_are_excluded_from_times_and_counts() {
    let given = LoopCase { inspected_calls: Some(1), ..loop_case(Direction::Read, 100, Some(10.0)) };
    for ranks in 1..=2 {
        let script = |rank| {
            let looks = if rank == 1 { 70.0 } else { 50.0 };
            Script::default()
                .cost("read", 3.0)
                .cost("look", looks)
                .costs("barrier", &[100.0, 5.0])
                .allocates("look", 7)
                .allocates("barrier", 3)
                .allocates("read", 1)
        };
        let seen = run_case(ranks, script, &given);
        for one in &seen {
            assert_eq!((one.m.calls, &one.m.ended, one.m.allocations_in_clock), (3, &StopReason::Time, 3 * ranks));
            assert_parts(&one.m, [0.0, 0.0, 9.0, 0.0, 0.0]);
            let looks = ["read 0+1", "look 0..1", "read 1+1", "look 1..2", "read 2+1", "look 2..3"];
            assert_eq!(one.calls[1..], looks);
        }
    }
    // Failed calls are not inspected.
    let script = |_| Script::default().cost("read", 3.0).outcome("read", 1, ScriptedOutcome::Fail);
    let seen = run_case(1, script, &given);
    assert_eq!(seen[0].calls[1..], ["read 0+1", "look 0..1", "read 1+1"]);
}

#[test]
fn pipelined_batches_are_reduced_while_they_run() {
    let script = |rank| {
        Script { pending_chunks: Some(vec![1]), ..Script::default() }
            .cost("preallocate", 0.125)
            .cost("write", if rank == 1 { 1.0 } else { 0.5 })
            .cost("tell", 0.25)
            .cost("hear", 0.5)
            .cost("sync", 2.0)
    };
    for ranks in 1..=3 {
        let seen = run_case(ranks, script, &loop_case(Direction::Write, 3, None));
        let (m, slow) = (&seen[0].m, &seen[1.min(ranks as usize - 1)]);
        let one = if ranks == 1 { 0.5 } else { 1.0 };
        assert_parts(m, [0.0, 0.125, 3.0 * one, 3.0 * 0.75, 2.0]);
        assert_eq!((m.calls, m.moved_bytes, m.decisions), (3, 3 * ranks * CALL_BYTES, 3));
        assert_eq!((slow.live_bytes, slow.latencies), (3 * CALL_BYTES, 3));
        let lines: Vec<_> = slow.log.iter().map(|line| line.split_once(' ').unwrap().1).collect();
        let expected = [
            "tell",
            "hear",
            "preallocate 0+1",
            "write 0+1",
            "tell",
            "hear",
            "write 1+1",
            "tell",
            "hear",
            "write 2+1",
            "trim",
            "sync",
        ];
        assert_eq!(lines[2..14], expected);
    }
}

/// The remaining time of chunks in flight counts.
#[test]
fn a_flow_counts_calls_in_flight() {
    let script =
        |_| Script { pending_chunks: Some(vec![1]), ..Script::default() }.cost("preallocate", 0.125).cost("write", 1.0);
    let m = run_case(1, script, &loop_case(Direction::Write, 100, Some(4.5))).remove(0).m;
    assert_eq!((m.calls, m.ended), (2, StopReason::Time));
    let limited = |_| Script { preallocated_calls: Some(2), ..script(0) };
    let seen = run_case(1, limited, &loop_case(Direction::Write, 3, None));
    assert_eq!(seen[0].calls[1..6], ["preallocate 0+1", "write 0+1", "write 1+1", "preallocate 2+1", "write 2+1"]);
}

#[test]
fn an_error_in_a_flow_is_reduced_and_counts_completed_calls() {
    let script = |rank| {
        let script = Script { pending_chunks: Some(vec![0]), ..Script::default() }.cost("read", 1.0);
        if rank == 1 {
            script.outcome("read", 2, ScriptedOutcome::Fail)
        } else {
            script
        }
    };
    let seen = run_case(2, script, &loop_case(Direction::Read, 9, None));
    for (rank, one) in seen.iter().enumerate() {
        assert_eq!((&one.m.ended, one.m.calls, one.m.error.is_some()), (&StopReason::Error, 3, rank == 1));
        assert_eq!(one.m.moved_bytes, 5 * CALL_BYTES, "three of one rank, two of the other");
    }
}

#[test]
fn what_is_in_force_is_that_of_all_ranks() {
    let of = |direct: [Option<bool>; 2]| {
        let script = move |rank: u64| Script { direct: direct[rank as usize], ..Script::default() }.cost("write", 1.0);
        let m = run_case(2, script, &loop_case(Direction::Write, 2, None)).remove(0).m;
        let in_force = m.in_force.unwrap();
        (m.progress.is_direct, in_force.direct, in_force.strategy)
    };
    assert_eq!(of([Some(true); 2]), (true, Some(true), "fake".into()));
    assert_eq!(of([Some(false); 2]), (false, Some(false), "fake".into()));
    assert_eq!(of([None; 2]), (false, None, "fake".into()));
    let mixed = of([Some(true), Some(false)]);
    assert_eq!(mixed, (false, Some(false), "direct on 1 ranks, buffered on 1; rank 0: fake".into()));
}

#[test]
fn a_failure_of_one_rank_is_reported_for_all() {
    let script = |rank| Script { preallocation_error: (rank == 1).then(|| "no blocks".into()), ..Script::default() };
    for (direction, expected) in [(Direction::Write, Some("no blocks (rank 1)")), (Direction::Read, None)] {
        let m = run_case(2, |rank| script(rank).cost("write", 1.0), &loop_case(direction, 2, None)).remove(0).m;
        assert_eq!(m.preallocation_error.as_deref(), expected);
    }
    // Counters unknown on one rank are unknown for all.
    let script = |rank| Script { counted: (rank == 0).then_some([1, 1]), ..Script::default() }.cost("write", 1.0);
    let m = run_case(2, script, &loop_case(Direction::Write, 2, None)).remove(0).m;
    assert!(m.io.is_none() && m.submissions.is_none());
}

/// A single call that synchronizes no ranks needs no decision; a synchronizing one does.
#[test]
fn a_single_call_needs_no_decision() {
    for (synchronizing, decisions) in [(false, 0), (true, 1)] {
        let script = |_| Script { synchronizes: Some(synchronizing), ..Script::default() }.cost("write", 1.0);
        let seen = run_case(2, script, &loop_case(Direction::Write, 1, Some(5.0)));
        assert_eq!((seen[0].m.decisions, seen[0].m.calls, &seen[0].m.ended), (decisions, 1, &StopReason::Count));
        assert_eq!(seen[0].m.batches.len(), 1, "the last batch, for which no reduction was posted");
    }
}
