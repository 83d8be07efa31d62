//! The loop of a pattern on one to three ranks, by scripts: everything it asks for in order, and every number that comes out.

use std::sync::atomic::Ordering;

use beff_backends::{FilePath, OpenMode, OpenRequest};

use super::*;
use crate::b_eff_io::run::batching::CallsEnd;
use crate::frame::run::testing::{clear_log, driver, log, log_of, passes, play, same, with, Answer, Script};
use crate::frame::run::Live;

const CALL_BYTES: u64 = 1024;

/// What a loop is to do.
#[derive(Clone)]
struct Given {
    direction: Direction,
    limits: Limits,
    resume: Option<Progress>,
    hints: Vec<(String, String)>,
    /// Looks after so many calls.
    inspects: Option<u64>,
}

fn given(direction: Direction, max_calls: u64, time_seconds: Option<f64>) -> Given {
    let limits = Limits {
        max_calls,
        calls_end: CallsEnd::Count,
        time_seconds,
        whole_seconds: time_seconds,
        rounds: 1,
        time_is_guard: false,
        sync: None,
        expected_call_seconds: None,
        call_bytes_all_ranks: CALL_BYTES,
        termination: Termination::Geometric,
    };
    Given { direction, limits, resume: None, hints: Vec::new(), inspects: None }
}

/// What came out on one rank.
struct Seen {
    m: Measured,
    log: Vec<String>,
    /// Batches and what belongs to them.
    calls: Vec<String>,
    live_bytes: u64,
    latencies: u64,
}

fn played(ranks: u64, scripts: impl Fn(u64) -> Script + Sync, given: &Given) -> Vec<Seen> {
    let seen = play(ranks, scripts, |comm| {
        let path = FilePath::nowhere("f");
        let request = OpenRequest { path: &path, mode: OpenMode::CreateNew, comm, hints: &[] };
        let mut file = driver(false).open(&request).unwrap();
        let mut ring = Ring::new(4096, 4096).unwrap();
        let pattern = Pattern::private(CALL_BYTES, 1, 1000);
        let (direction, limits, resume) = (given.direction, &given.limits, given.resume);
        let task = Task { pattern: &pattern, direction, limits, hints: &given.hints, resume };
        let live = Live::default();
        let mut notes = Notes::new(true, Live::clone(&live));
        if resume.is_some() {
            // An earlier round has prepared and left its notes.
            file.prepare(&pattern, direction, &mut ring, &[]).unwrap();
            notes.decided(1e6);
            notes.batch(77, 1e6);
            notes.moved(1 << 40);
            notes.latency.end(notes.latency.begin());
            live.store(0, Ordering::Relaxed);
        }
        clear_log();
        let mut look = |_: &mut Ring, calls: Range<u64>| {
            passes("look", &format!("{}..{}", calls.start, calls.end));
        };
        let inspector = given.inspects.map(|most_calls| Inspector { most_calls, look: &mut look });
        let interrupt = with(|script| script.interrupt.clone());
        let m = run(file.as_mut(), comm, &mut ring, task, &mut notes, (&interrupt, inspector)).unwrap();
        let calls = log_of(&["prepare", "preallocate", "write", "read", "look", "trim", "sync"]);
        let latencies = notes.latency.histogram().map_or(0, |histogram| histogram.len());
        Seen { m, log: log(), calls, live_bytes: live.load(Ordering::Relaxed), latencies }
    });
    // All come out with the same numbers.
    let shared = |m: &Measured| format!("{:?}", Measured { error: None, in_force: None, ..m.clone() });
    assert!(
        seen.iter().all(|one| shared(&one.m) == shared(&seen[0].m)),
        "{:?}",
        seen.iter().map(|s| &s.m).collect::<Vec<_>>()
    );
    seen
}

/// The five parts.
fn parts(m: &Measured) -> [f64; 5] {
    let i = m.intervals;
    [i.view_seconds, i.room_seconds, i.transfer_seconds, i.decide_seconds, i.sync_seconds]
}

fn assert_parts(m: &Measured, expected: [f64; 5]) {
    let found = parts(m);
    assert!(found.iter().zip(expected).all(|(found, expected)| same(*found, expected)), "{found:?} {expected:?}");
}

/// Rank 1, or where there is none rank 0, is slower by everything it does.
fn slow_one(ranks: u64, rank: u64) -> Script {
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
        let given = Given { hints: vec![("k".into(), "v".into())], ..given(Direction::Write, 3, None) };
        let seen = played(ranks, |rank| slow_one(ranks, rank), &given);
        let slow = &seen[1.min(ranks as usize - 1)];
        let m = &slow.m;
        assert_parts(m, [3.0, 3.0 * 0.25 + 0.5, 24.0, 0.09, 32.0]);
        assert_eq!((m.calls, m.moved_bytes, m.decisions), (3, 3 * CALL_BYTES * ranks, 3));
        assert!(same(m.decision_cost_seconds, 0.09) && same(m.held_up_seconds, 0.09), "{m:?}");
        let batches: Vec<_> = m.batches.iter().map(|batch| (batch.calls, (batch.seconds * 1e6).round())).collect();
        assert_eq!(batches, [(1, 8.25e6); 3]);
        assert_eq!((&m.ended, m.error.is_none(), &m.without_room), (&Ended::Count, true, &None));
        assert_eq!(m.allocations_in_clock, ranks * (3 * 11 + 100 + 1000));
        let io = m.io.unwrap();
        let bytes = 3 * CALL_BYTES * ranks;
        assert_eq!((io.call_written_bytes, io.written_bytes), (bytes, 3 * bytes));
        assert_eq!((io.call_read_bytes, io.read_bytes), (0, 0));
        let handed = m.submissions.unwrap();
        assert_eq!((handed.registered, handed.plain), (3 * ranks, 30 * ranks));
        let p = m.progress;
        assert_eq!((p.calls, p.synced_calls, p.last_calls, p.largest_calls, p.is_direct), (3, 3, 1, 1, false));
        assert!(same(p.elapsed_seconds, parts(m).iter().sum()) && same(p.last_seconds, 8.25), "{p:?}");
        assert!(same(p.call_seconds_before.unwrap(), 8.25), "{p:?}");
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
fn a_read_has_neither_room_nor_sync() {
    for ranks in 1..=3 {
        let seen = played(ranks, |rank| slow_one(ranks, rank), &given(Direction::Read, 2, None));
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

/// Ranks that are slow in turn hold each other up: 4, 1, 1 and 1, 4, 2 seconds.
#[test]
fn waiting_is_no_cost_of_a_decision_but_it_holds_up() {
    let costs = |rank| Script::default().costs("write", if rank == 0 { &[4.0, 1.0, 1.0] } else { &[1.0, 4.0, 2.0] });
    let m = played(2, costs, &given(Direction::Write, 3, None)).remove(0).m;
    assert_parts(&m, [0.0, 0.0, 7.0, 3.0, 0.0]);
    assert!(same(m.held_up_seconds, 3.0) && same(m.decision_cost_seconds, 0.0), "{m:?}");
    assert_eq!(m.batches.iter().map(|batch| batch.seconds).collect::<Vec<_>>(), [4.0, 4.0, 2.0]);
    assert_eq!((m.progress.elapsed_seconds, m.progress.last_seconds), (10.0, 2.0));
}

#[test]
fn a_round_goes_on_where_the_one_before_ended() {
    let before = Progress {
        calls: 2,
        elapsed_seconds: 7.0,
        last_calls: 1,
        largest_calls: 1,
        last_seconds: 1.0,
        call_seconds_before: Some(1.0),
        synced_calls: 2,
        is_direct: true,
    };
    let given = Given { resume: Some(before), ..given(Direction::Write, 100, Some(10.0)) };
    for ranks in 1..=3 {
        let is_slow = |rank: u64| rank == 1.min(ranks - 1);
        let script = |rank| {
            Script { direct: Some(true), ..Script::default() }
                .cost("write", if rank == 1 { 1.0 } else { 0.5 })
                .cost("trim", if is_slow(rank) { 0.25 } else { 0.0 })
        };
        let slow = if ranks == 1 { 0.5 } else { 1.0 };
        let seen = played(ranks, script, &given);
        let m = &seen[0].m;
        // Three seconds are left of ten.
        let calls = (3.0 / slow) as u64;
        assert_eq!((m.calls, m.progress.calls, &m.ended), (calls, 2 + calls, &Ended::Time));
        assert_eq!((m.progress.synced_calls, m.progress.is_direct), (2 + calls, true));
        assert_eq!((m.progress.elapsed_seconds, parts(m)), (10.25, [0.0, 0.25, 3.0, 0.0, 0.0]));
        assert_eq!(m.batches.iter().map(|batch| batch.calls).sum::<u64>(), calls, "of this round alone");
        assert_eq!(
            (m.moved_bytes, seen[0].live_bytes, seen[0].latencies),
            (calls * ranks * CALL_BYTES, calls * CALL_BYTES, calls)
        );
        assert!(m.in_force.is_none() && same(m.decision_cost_seconds, 0.0), "{m:?}");
        assert_eq!(seen[0].calls[..2], ["preallocate 2+1", "write 2+1"]);
        assert!(!seen[0].log.iter().any(|line| line.contains("prepare")));
        // Not even what all have prepared is asked.
        assert_eq!(seen[0].log[1], "0 preallocate 2+1");
    }
}

/// What one rank does wrong all ranks know of, and nobody else is blamed.
#[test]
fn an_error_of_one_rank_ends_the_loop_of_all() {
    let of_rank_1 = |call, number, answer| {
        move |rank| {
            if rank == 1 { Script::default().answer(call, number, answer) } else { Script::default() }
                .cost("write", 1.0)
        }
    };
    let write = given(Direction::Write, 4, None);
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
            let seen = played(ranks, of_rank_1(call, number, Answer::Fail), &write);
            for (rank, one) in seen.iter().enumerate() {
                let (m, place) = (&one.m, format!("{call} {number} rank {rank} of {ranks}"));
                assert_eq!(
                    (&m.ended, m.calls, m.moved_bytes),
                    (&Ended::Error, calls, moved(ranks, own, calls)),
                    "{place}"
                );
                assert_eq!(
                    m.error.as_ref().map(|e| e.to_string().contains(error)),
                    (rank == 1).then_some(true),
                    "{place}"
                );
                assert_eq!(m.in_force.is_some(), (call, rank) != ("prepare", 1), "{place}");
                // Collective: all sync what any has written.
                let ends = if calls > 0 { &["trim", "sync"][..] } else { &[] };
                assert!(one.calls.ends_with(&ends.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>()), "{place}");
                assert_eq!(one.calls.iter().any(|line| line == "sync"), calls > 0, "{place}");
            }
            let own_writes = seen[1].calls.iter().filter(|line| line.starts_with("write")).count() as u64;
            assert_eq!(own_writes, own + u64::from(call == "write"), "{call}: nothing is written without room");
        }
    }
}

#[test]
fn the_first_error_of_a_rank_is_the_one_that_is_told() {
    let script = |_| Script::default().answer("write", 0, Answer::Fail).answer("sync", 0, Answer::Full);
    let m = played(1, script, &given(Direction::Write, 4, None)).remove(0).m;
    assert!(m.error.unwrap().to_string().starts_with("write on"));
}

/// Before the others know of an error, the rank goes on only where they need it.
#[test]
fn a_rank_with_an_error_comes_to_the_calls_in_which_ranks_meet() {
    let mut given = given(Direction::Write, 100, Some(100.0));
    given.limits.expected_call_seconds = Some(0.01);
    for (meets, expected) in [(false, &["write 0+1"][..]), (true, &["write 0+1", "write 1+2"])] {
        let script = |rank| {
            let script = Script { meets: Some(meets), ..Script::default() }.cost("write", 0.01);
            if rank == 1 {
                script.answer("write", 0, Answer::Fail)
            } else {
                script
            }
        };
        let seen = played(2, script, &given);
        let writes =
            |one: &Seen| one.calls.iter().filter(|line| line.starts_with("write")).cloned().collect::<Vec<_>>();
        assert_eq!(writes(&seen[1]), expected);
        assert_eq!(writes(&seen[0]), ["write 0+1", "write 1+2"]);
        assert_eq!((&seen[0].m.ended, seen[0].m.calls), (&Ended::Error, 3));
    }
}

#[test]
fn ranks_keep_step_if_one_of_them_has_to() {
    let mut given = given(Direction::Read, 100, Some(100.0));
    given.limits.expected_call_seconds = Some(0.01);
    for (keeps, second) in [(false, "read 1+2"), (true, "hear")] {
        let script = |rank| {
            Script { keeps_step: keeps && rank == 1, ..Script::default() }.cost("read", 0.01).answer(
                "read",
                2,
                Answer::Signal,
            )
        };
        let seen = played(2, script, &given);
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
            script.answer("read", 1, Answer::Signal)
        } else {
            script
        }
    };
    for one in played(3, script, &given(Direction::Read, 50, None)) {
        assert_eq!((one.m.ended, one.m.calls, one.m.error.is_none()), (Ended::Interrupted, 2, true));
    }
}

#[test]
fn bytes_are_those_that_were_moved() {
    let script =
        |rank| if rank == 1 { Script::default().answer("read", 0, Answer::Moved(24)) } else { Script::default() };
    let seen = played(2, |rank| script(rank).cost("read", 1.0), &given(Direction::Read, 2, None));
    assert_eq!((seen[0].m.moved_bytes, seen[1].live_bytes), (3 * CALL_BYTES + 24, CALL_BYTES + 24));
}

/// Barrier, the root's clock, broadcast.
#[test]
fn decisions_after_each_call_are_those_of_the_root() {
    let mut given = given(Direction::Write, 100, Some(10.0));
    given.limits.termination = Termination::PerCall;
    let script = |rank| {
        let seconds = if rank == 1 { 3.0 } else { 1.0 };
        let script = Script::default().cost("trim", if rank == 1 { 0.25 } else { 0.0 });
        script.cost("write", seconds).cost("bare barrier", 0.25).cost("bare bcast", 0.125).cost("tell", 0.5)
    };
    // One more call while its time is there by the mean so far: 3 s each, and what decisions take.
    for (ranks, calls) in [(1, 6), (2, 2)] {
        let seen = played(ranks, script, &given);
        let m = &seen[0].m;
        assert_eq!((m.calls, &m.ended, m.decisions), (calls, &Ended::Time, calls + 1), "{ranks}");
        let own = if ranks == 1 { 1.0 } else { 3.0 };
        let room = if ranks == 1 { 0.0 } else { 0.25 };
        assert_parts(m, [0.0, room, own * calls as f64, 0.5 + 0.375 * calls as f64, 0.0]);
        assert!(same(m.decision_cost_seconds, 0.5 + 0.375 * calls as f64), "{m:?}");
        let after_first = seen[0].log.iter().position(|line| line.contains("write 0+1")).unwrap();
        let next: Vec<_> =
            seen[0].log[after_first + 1..after_first + 3].iter().map(|l| l.split_once(' ').unwrap().1).collect();
        assert_eq!(next, ["bare barrier", "bare bcast"]);
    }
}

/// The clock stands still while what was read is looked at.
#[test]
fn looks_are_in_no_time_and_no_count() {
    let given = Given { inspects: Some(1), ..given(Direction::Read, 100, Some(10.0)) };
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
        let seen = played(ranks, script, &given);
        for one in &seen {
            assert_eq!((one.m.calls, &one.m.ended, one.m.allocations_in_clock), (3, &Ended::Time, 3 * ranks));
            assert_parts(&one.m, [0.0, 0.0, 9.0, 0.0, 0.0]);
            let looks = ["read 0+1", "look 0..1", "read 1+1", "look 1..2", "read 2+1", "look 2..3"];
            assert_eq!(one.calls[1..], looks);
        }
    }
    // Of what failed nothing is looked at.
    let script = |_| Script::default().cost("read", 3.0).answer("read", 1, Answer::Fail);
    let seen = played(1, script, &given);
    assert_eq!(seen[0].calls[1..], ["read 0+1", "look 0..1", "read 1+1"]);
}

#[test]
fn batches_that_flow_are_told_as_they_go() {
    let script = |rank| {
        Script { flows: Some(vec![1]), ..Script::default() }
            .cost("preallocate", 0.125)
            .cost("write", if rank == 1 { 1.0 } else { 0.5 })
            .cost("tell", 0.25)
            .cost("hear", 0.5)
            .cost("sync", 2.0)
    };
    for ranks in 1..=3 {
        let seen = played(ranks, script, &given(Direction::Write, 3, None));
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

/// What is under way will take its time too.
#[test]
fn a_flow_counts_what_it_has_begun() {
    let script = |_| Script { flows: Some(vec![1]), ..Script::default() }.cost("preallocate", 0.125).cost("write", 1.0);
    let m = played(1, script, &given(Direction::Write, 100, Some(4.5))).remove(0).m;
    assert_eq!((m.calls, m.ended), (2, Ended::Time));
    let limited = |_| Script { calls_with_room: Some(2), ..script(0) };
    let seen = played(1, limited, &given(Direction::Write, 3, None));
    assert_eq!(seen[0].calls[1..6], ["preallocate 0+1", "write 0+1", "write 1+1", "preallocate 2+1", "write 2+1"]);
}

#[test]
fn an_error_in_a_flow_is_told_and_counts_what_had_ended() {
    let script = |rank| {
        let script = Script { flows: Some(vec![0]), ..Script::default() }.cost("read", 1.0);
        if rank == 1 {
            script.answer("read", 2, Answer::Fail)
        } else {
            script
        }
    };
    let seen = played(2, script, &given(Direction::Read, 9, None));
    for (rank, one) in seen.iter().enumerate() {
        assert_eq!((&one.m.ended, one.m.calls, one.m.error.is_some()), (&Ended::Error, 3, rank == 1));
        assert_eq!(one.m.moved_bytes, 5 * CALL_BYTES, "three of one rank, two of the other");
    }
}

#[test]
fn what_is_in_force_is_that_of_all_ranks() {
    let of = |direct: [Option<bool>; 2]| {
        let script = move |rank: u64| Script { direct: direct[rank as usize], ..Script::default() }.cost("write", 1.0);
        let m = played(2, script, &given(Direction::Write, 2, None)).remove(0).m;
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
fn what_one_rank_lacks_is_said_of_all() {
    let script = |rank| Script { without_room: (rank == 1).then(|| "no blocks".into()), ..Script::default() };
    for (direction, told) in [(Direction::Write, Some("no blocks (rank 1)")), (Direction::Read, None)] {
        let m = played(2, |rank| script(rank).cost("write", 1.0), &given(direction, 2, None)).remove(0).m;
        assert_eq!(m.without_room.as_deref(), told);
    }
    // Counters that one rank does not know are not known.
    let script = |rank| Script { counted: (rank == 0).then_some([1, 1]), ..Script::default() }.cost("write", 1.0);
    let m = played(2, script, &given(Direction::Write, 2, None)).remove(0).m;
    assert!(m.io.is_none() && m.submissions.is_none());
}

/// A single call that each makes for itself leaves nothing to decide; one in which ranks meet does.
#[test]
fn nothing_is_asked_about_a_single_call() {
    for (meets, decisions) in [(false, 0), (true, 1)] {
        let script = |_| Script { meets: Some(meets), ..Script::default() }.cost("write", 1.0);
        let seen = played(2, script, &given(Direction::Write, 1, Some(5.0)));
        assert_eq!((seen[0].m.decisions, seen[0].m.calls, &seen[0].m.ended), (decisions, 1, &Ended::Count));
        assert_eq!(seen[0].m.batches.len(), 1, "the last batch, of which nothing was told");
    }
}
