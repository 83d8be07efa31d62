//! Rows on one to three ranks, by scripts: the clock, what stands around it, and what is recorded.

use beff_backends::{Batch, Direction, FilePath, Latency, OpenMode, OpenRequest, Pattern, Ring};
use beff_ffi::Comm;

use super::job::{Backend, RowJob};
use super::outcome::RowOutcome;
use super::team::Team;
use super::timed::{Syncs, Task, Timed, Way};
use super::trial::trial;
use super::{row, timed, Bench};
use crate::frame::run::run_dir::RunDir;
use crate::frame::run::testing::{clear_log, driver, log, log_of, now, play, same, with, Answer, Script};
use crate::imb_io::config::{Buffers, FileState, ImbConfig};
use crate::imb_io::plan::names::find;
use crate::imb_io::plan::processes::Groups;
use crate::imb_io::plan::{Mode, Repetitions, Row};
use crate::imb_io::records::RowEnd;
use crate::imb_io::values::fixture;

/// Rank 1, or the only one, takes twice as long.
fn slow_one(ranks: u64, rank: u64) -> Script {
    let factor = if rank == 1.min(ranks - 1) { 2.0 } else { 1.0 };
    Script::default()
        .cost("open", 0.5 * factor)
        .cost("close", 0.25 * factor)
        .cost("prepare", 4.0 * factor)
        .cost("write", factor)
        .cost("read", factor)
        .cost("sync", 0.25 * factor)
        .cost("bare barrier", 0.125)
        .cost("barrier", 32.0)
        .allocates("write", 1)
        .allocates("read", 1)
        .allocates("sync", 10)
        .allocates("bare barrier", 100)
        .allocates("prepare", 100_000)
        .allocates("barrier", 100_000)
}

/// What the clock of one task saw, and its log.
fn clocked(
    ranks: u64,
    scripts: impl Fn(u64) -> Script + Sync,
    task: impl Fn(&mut Task<'_>) + Sync,
) -> Vec<(Timed, Vec<String>)> {
    play(ranks, scripts, |comm| {
        let path = FilePath::nowhere("f");
        let request = OpenRequest { path: &path, mode: OpenMode::CreateNew, comm, hints: &[] };
        let mut file = driver(false).open(&request).unwrap();
        let pattern = Pattern::private(1000, 1, 100);
        let mut ring = Ring::new(1 << 16, 4096).unwrap();
        file.prepare(&pattern, Direction::Write, &mut ring, &[]).unwrap();
        let mut given = Task {
            kind: pattern.kind,
            direction: Direction::Write,
            syncs: Syncs::Behind,
            calls: Batch { first_call: 0, calls: 3 },
            all_calls: 3,
            pending: 2,
            one_by_one: false,
            way: Way::Blocking,
        };
        task(&mut given);
        clear_log();
        let timed = timed::run(file.as_mut(), comm, &mut ring, &given, &mut Latency::laps(9)).unwrap();
        (timed, log().iter().map(|line| line.split_once(' ').unwrap().1.to_owned()).collect())
    })
}

const BOTH: [&str; 2] = ["bare barrier", "bare barrier"];
const SYNC: [&str; 3] = ["sync", "bare barrier", "sync"];

#[test]
fn the_clock_begins_behind_both_barriers_and_ends_behind_the_last_sync() {
    for ranks in 1..=3 {
        let seen = clocked(ranks, |rank| slow_one(ranks, rank), |_| ());
        for (rank, (timed, log)) in seen.iter().enumerate() {
            assert_eq!(*log, [&BOTH[..], &["write 0+3"], &SYNC].concat());
            // Quick ranks wait between the syncs.
            let is_slow = rank as u64 == 1.min(ranks - 1);
            let [seconds, sync] = if is_slow { [3.125, 1.125] } else { [2.875, 1.875] };
            assert!(same(timed.seconds, seconds) && same(timed.sync_seconds, sync), "{timed:?}");
            assert_eq!((timed.wait_seconds, timed.cpu_seconds), (0.0, 0.0));
            assert_eq!((timed.moved_bytes, timed.allocations, &timed.error), (3000, 121, &None));
        }
        let seen = clocked(ranks, |rank| slow_one(ranks, rank), |task| task.syncs = Syncs::Each);
        let one = |call: &'static str| [&[call][..], &SYNC].concat();
        for (rank, (timed, log)) in seen.iter().enumerate() {
            assert_eq!(*log, [&BOTH[..], &one("write 0+1"), &one("write 1+1"), &one("write 2+1")].concat());
            let is_slow = rank as u64 == 1.min(ranks - 1);
            // The slow one never waits; the others are ahead by the last sync.
            let seconds = 3.0 * 3.125 - if is_slow { 0.0 } else { 0.25 };
            assert!(same(timed.seconds, seconds) && timed.sync_seconds == 0.0, "{timed:?}");
            assert_eq!((timed.moved_bytes, timed.allocations), (3000, 3 * 121));
        }
    }
}

#[test]
fn a_lap_that_is_not_the_last_ends_for_all_ranks_together() {
    let lap = |first_call| {
        move |task: &mut Task<'_>| {
            (task.direction, task.syncs, task.calls) = (Direction::Read, Syncs::None, Batch { first_call, calls: 3 });
            task.all_calls = 6;
        }
    };
    let seen = clocked(2, |rank| slow_one(2, rank), lap(0));
    assert_eq!(seen[0].1, [&BOTH[..], &["read 0+3", "bare barrier"]].concat());
    assert!(seen.iter().all(|(timed, _)| same(timed.seconds, 2.125)));
    assert!(same(seen[0].0.wait_seconds, 1.125) && same(seen[1].0.wait_seconds, 0.125));
    let seen = clocked(2, |rank| slow_one(2, rank), lap(3));
    assert_eq!(seen[0].1, [&BOTH[..], &["read 3+3"]].concat());
    assert!(same(seen[0].0.seconds, 1.0) && same(seen[1].0.seconds, 2.0) && seen[0].0.wait_seconds == 0.0);
}

/// A rank with an error still comes where others wait for it, and the first error is kept.
#[test]
fn errors_are_kept_and_keep_nobody_waiting() {
    let failing = |rank| {
        let script = slow_one(2, rank);
        if rank == 1 {
            script.answer("write", 1, Answer::Fail).answer("sync", 0, Answer::Full)
        } else {
            script
        }
    };
    let seen = clocked(2, failing, |task| task.syncs = Syncs::Each);
    assert_eq!(seen[0].1, seen[1].1);
    let error = seen[1].0.error.as_ref().unwrap();
    assert!(error.to_string().starts_with("sync on") && seen[0].0.error.is_none(), "{error}");
    assert_eq!((seen[0].0.moved_bytes, seen[1].0.moved_bytes), (3000, 2000));
    for (is_collective, writes) in [(false, 2), (true, 3)] {
        let script =
            |rank| if rank == 1 { slow_one(2, rank).answer("write", 1, Answer::Fail) } else { slow_one(2, rank) };
        let seen = clocked(2, script, |task| {
            task.one_by_one = true;
            if is_collective {
                task.kind = beff_backends::AccessKind::Collective;
            }
        });
        assert_eq!(seen[1].1.iter().filter(|line| line.starts_with("write")).count(), writes);
        assert_eq!(seen[1].1[2 + writes..], SYNC);
    }
    // The second of two syncs may be the one that says so.
    let seen = clocked(1, |_| Script::default().answer("sync", 1, Answer::Fail), |_| ());
    assert!(seen[0].0.error.is_some());
    let moved = clocked(1, |_| Script::default().answer("write", 0, Answer::Moved(5)), |_| ());
    assert_eq!(moved[0].0.moved_bytes, 5);
}

#[test]
fn pending_calls_are_begun_together() {
    for (script, calls) in [
        (Script::default(), &["begin", "write 0+2", "begin", "write 2+1"][..]),
        (Script::default().answer("write", 0, Answer::Fail), &["begin", "write 0+2"]),
    ] {
        let seen = clocked(1, |_| script.clone().cost("write", 1.0), |task| task.way = Way::Alone);
        assert_eq!(seen[0].1[2..], [calls, &SYNC].concat());
        let failed = calls.len() == 2;
        assert_eq!((seen[0].0.error.is_some(), seen[0].0.moved_bytes), (failed, if failed { 0 } else { 3000 }));
    }
}

const SAMPLE_BYTES: u64 = 1000;
const STEPS: u64 = 4;

struct Seen {
    outcome: RowOutcome,
    calls: Vec<String>,
    seconds: f64,
}

/// Works on a row of four repetitions through fake files that store their data.
fn with_bench<T: Send>(
    name: &str,
    ranks: u64,
    scripts: impl Fn(u64) -> Script + Sync,
    config: &ImbConfig,
    work: impl Fn(&mut Bench<'_>, &RowJob<'_>) -> T + Sync,
) -> Vec<T> {
    let scratch = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    play(ranks, scripts, |world: &Comm| {
        let is_mpi = name == "Open_Close" || name.starts_with('C');
        let (posix, moves_data) = ("posix".to_owned(), true);
        let backend = Backend { name: posix.clone(), driver: driver(true), moves_data, is_mpi, why_not: None };
        let run_dir = RunDir::make(world, scratch.path(), "run", &[posix]).unwrap().unwrap();
        let team = Team::make(world, Groups { ranks, groups: 1 }, run_dir.path()).unwrap().unwrap();
        let interrupt = with(|script| script.interrupt.clone());
        let mut bench = Bench {
            config,
            run_dir: &run_dir,
            ring: Ring::new(1 << 20, 0).unwrap(),
            laps: Latency::laps(100),
            warnings: Vec::new(),
            corruptions: Vec::new(),
            interrupt: &interrupt,
            load: None,
        };
        let sample_bytes = (name != "Open_Close").then_some(SAMPLE_BYTES);
        let row = Row { benchmark: find(name).unwrap(), ranks, mode: Mode::Aggregate, sample_bytes };
        let job = RowJob {
            row: &row,
            backend: &backend,
            team: &team,
            number: 7,
            keep: false,
            rule: &Repetitions::default(),
            wanted: 9,
            foreseen: None,
            previous: None,
            fixed: Some(STEPS),
            during: "a row",
        };
        clear_log();
        work(&mut bench, &job)
    })
}

fn measured(name: &str, ranks: u64, scripts: impl Fn(u64) -> Script + Sync, config: &ImbConfig) -> Vec<Seen> {
    with_bench(name, ranks, scripts, config, |bench, job| {
        let begin = now().unwrap();
        let outcome = row::measure(bench, job).unwrap();
        let seconds = (now().unwrap() - begin).as_secs_f64();
        assert!(bench.corruptions.is_empty());
        Seen { outcome, calls: log_of(&["open", "prepare", "write", "read", "sync", "hints", "close"]), seconds }
    })
}

/// The sync behind all repetitions belongs to the row and not to a repetition.
#[test]
fn a_trial_is_the_slowest_ranks_repetition_and_its_findings_are_kept() {
    for (ranks, slowest) in [(1, 2.0), (2, 2.0), (3, 2.0)] {
        let lost = |rank| slow_one(ranks, rank).answer("write", usize::from(rank != ranks - 1), Answer::Nothing);
        for (tried, found) in with_bench("P_Write_Priv", ranks, lost, &config(), |bench, job| {
            let Ok(tried) = trial(bench, job, 4) else { panic!("no trial") };
            (tried, bench.corruptions.len())
        }) {
            assert!(same(tried.one_seconds, slowest / 4.0) && same(tried.clock_seconds, slowest), "{tried:?}");
            assert_eq!(found, 1);
        }
    }
}

fn config() -> ImbConfig {
    ImbConfig {
        buffers: Some(Buffers::Cold),
        file: Some(FileState::New),
        cache: crate::frame::config::CachePolicy::Keep,
        ..fixture::run().config
    }
}

#[test]
fn a_row_of_writes_is_what_its_ranks_took_together() {
    for (name, ranks) in [("S_Write_Indv", 1), ("P_Write_Indv", 2), ("P_Write_Priv", 3), ("C_Write_Expl", 2)] {
        let direct = |rank| Script { direct: Some(rank != 1), ..slow_one(ranks, rank) };
        let seen = measured(name, ranks, direct, &config());
        let record = &seen[0].outcome.record;
        let steps = STEPS as f64;
        assert_eq!((record.ended.clone(), record.repetitions, record.repetitions_wanted), (RowEnd::Complete, STEPS, 9));
        assert_eq!((record.ranks, record.groups, record.sample_bytes), (ranks, 1, Some(SAMPLE_BYTES)));
        let [least, most] = if ranks == 1 { [3.125; 2] } else { [2.875, 3.125] };
        let times = record.times[0];
        assert!(same(times.min_seconds, least / steps) && same(times.max_seconds, most / steps), "{times:?}");
        let mean = (least * (ranks - 1) as f64 + most) / ranks as f64;
        assert!(same(times.mean_seconds, mean / steps), "{times:?}");
        assert!(same(record.sync_seconds, if ranks == 1 { 1.125 } else { 1.875 } / steps), "{}", record.sync_seconds);
        assert_eq!(record.bytes_checked, record.moved_bytes, "{name}: all of it");
        assert_eq!(record.moved_bytes, STEPS * SAMPLE_BYTES, "{name}: the ranks share a sample");
        assert_eq!((record.bytes_wrong, record.allocations_in_clock), (0, 121 * ranks), "{name}");
        assert!(record.repetition_times.is_none() && record.overlap.is_none() && record.evidence.is_none());
        let is_mixed = ranks > 1;
        assert_eq!(record.direct, Some(!is_mixed), "{name}");
        assert_eq!(record.strategy.contains("direct on"), is_mixed, "{}", record.strategy);
        for one in &seen {
            assert!(same(one.outcome.record.real_seconds, one.seconds), "{name}");
            assert!(one.outcome.error.is_none() && one.outcome.corruption.is_none());
            assert!(one.calls[0].starts_with("open CreateNew posix/row00007a"), "{}", one.calls[0]);
            let sharing = if name == "P_Write_Priv" { 1 } else { ranks };
            assert!(one.calls[0].contains(&format!("of {sharing}")), "{}", one.calls[0]);
            assert_eq!(one.calls[2..], ["write 0+4", "sync", "sync", "close"]);
        }
    }
}

#[test]
fn a_row_of_reads_compares_what_every_rank_got() {
    for (name, ranks) in [("S_Read_Expl", 1), ("P_Read_Expl", 2), ("P_Read_Priv", 3)] {
        let seen = measured(name, ranks, |rank| slow_one(ranks, rank), &config());
        let record = &seen[0].outcome.record;
        let times = record.times[0];
        let least = if ranks == 1 { 2.0 } else { 1.0 };
        assert!(same(times.min_seconds, least / 4.0) && same(times.max_seconds, 0.5), "{times:?}");
        assert_eq!((record.sync_seconds, record.bytes_checked, record.bytes_wrong), (0.0, record.moved_bytes, 0));
        assert_eq!(record.allocations_in_clock, ranks);
        assert!(record.evidence.is_some());
        assert!(seen[0].calls[0].starts_with("open ReadOnly"));
        // One bit that the last rank got wrong.
        let flipped = |rank| {
            let script = slow_one(ranks, rank);
            if rank == ranks - 1 {
                script.answer("read", 0, Answer::Flip(2))
            } else {
                script
            }
        };
        for one in measured(name, ranks, flipped, &config()) {
            let found = one.outcome.corruption.unwrap();
            assert_eq!((one.outcome.record.bytes_wrong, found.bytes_wrong, found.rank), (1, 1, ranks - 1), "{name}");
            assert_eq!((found.repetition, found.benchmark.as_str()), (Some(2), name));
            assert_eq!(found.expected.unwrap() ^ found.found.unwrap(), 0x10, "{name}");
        }
    }
}

/// The rank before the writer is the one that finds it.
#[test]
fn writes_that_never_were_are_found_by_another_rank() {
    for (name, ranks) in [("S_Write_Indv", 1), ("P_Write_Indv", 2), ("P_Write_Priv", 3)] {
        let lost = |rank| {
            let script = slow_one(ranks, rank);
            if rank == ranks - 1 {
                script.answer("write", 0, Answer::Nothing)
            } else {
                script
            }
        };
        let seen = measured(name, ranks, lost, &config());
        let found = seen[0].outcome.corruption.as_ref().unwrap();
        assert!(seen[0].outcome.record.bytes_wrong > 0, "{name}");
        // A small file is the share of one rank.
        let expected = if name == "P_Write_Indv" { ranks - 1 } else { (2 * ranks - 2) % ranks };
        assert_eq!(found.rank, expected, "{name}");
    }
}

#[test]
fn what_fails_on_one_rank_ends_the_row_of_all() {
    for (call, number) in [("open", 0), ("prepare", 0), ("write", 0), ("sync", 0), ("sync", 1), ("close", 0)] {
        let failing = |rank| {
            let script = slow_one(3, rank);
            if rank == 2 {
                script.answer(call, number, Answer::Full)
            } else {
                script
            }
        };
        for one in measured("P_Write_Priv", 3, failing, &config()) {
            let error = one.outcome.error.unwrap();
            assert_eq!((error.rank, error.ranks_affected, error.no_space), (2, 1, true), "{call}");
            assert!(error.next_step.contains("--iter") && error.during == "a row", "{error:?}");
            let RowEnd::Error(message) = &one.outcome.record.ended else { panic!("{:?}", one.outcome.record.ended) };
            assert!(message.starts_with(&format!("rank 2: {call} on")), "{message}");
            assert!(one.outcome.record.real_seconds > 0.0 && one.outcome.record.times.is_empty());
        }
    }
    let unsupported = |rank| Script { unsupported: (rank == 1).then(|| "not here".into()), ..slow_one(2, rank) };
    for one in measured("P_Write_Priv", 2, unsupported, &config()) {
        assert_eq!(one.outcome.record.ended, RowEnd::NotRun("not here".into()));
        assert_eq!(one.calls.len(), 2, "opened and closed: {:?}", one.calls);
    }
    let signalled = |rank| {
        let script = slow_one(2, rank);
        if rank == 1 {
            script.interrupt.raise();
        }
        script
    };
    for one in measured("P_Write_Priv", 2, signalled, &config()) {
        assert_eq!(one.outcome.record.ended, RowEnd::Interrupted);
        assert!(one.calls.is_empty());
    }
}

#[test]
fn opening_and_closing_are_timed_together() {
    for ranks in 1..=3 {
        let seen = measured("Open_Close", ranks, |rank| slow_one(ranks, rank), &config());
        let record = &seen[0].outcome.record;
        let slow = 2.0 * (0.5 + 4.0 + 1.0 + 0.25);
        let times = record.times[0];
        assert!(same(times.max_seconds, slow), "{times:?}");
        assert!(same(times.min_seconds, if ranks == 1 { slow } else { slow / 2.0 }), "{times:?}");
        assert_eq!((record.moved_bytes, record.bytes_checked, record.bytes_wrong), (STEPS * ranks, 1, 0));
        assert_eq!((record.sync_seconds, record.strategy.as_str()), (0.0, "fake"));
        for one in &seen {
            assert_eq!(one.calls.len() as u64, 4 * STEPS);
            assert!(one.calls[0].starts_with("open Update posix/row00007-group00000.dat of"), "{}", one.calls[0]);
            assert_eq!(one.calls[2..4], ["write 0+1", "close"]);
        }
        for (call, number) in [("open", 1), ("prepare", 1), ("write", 2), ("close", 3)] {
            let failing = |rank| {
                if call == "open" || rank == ranks - 1 {
                    slow_one(ranks, rank).answer(call, number, Answer::Fail)
                } else {
                    slow_one(ranks, rank)
                }
            };
            for one in measured("Open_Close", ranks, failing, &config()) {
                assert!(
                    matches!(&one.outcome.record.ended, RowEnd::Error(message) if message.contains(call)),
                    "{call}"
                );
                assert!(one.outcome.error.is_some());
            }
        }
    }
}
