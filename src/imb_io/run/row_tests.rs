//! Scripted rows on one to three ranks: timed loops, surrounding calls, records.

use beff_backends::{AccessPattern, Batch, Direction, FilePath, Latency, OpenMode, OpenRequest, TransferBuffer};
use beff_ffi::Comm;

use super::job::{ConfiguredBackend, RowJob};
use super::outcome::RowOutcome;
use super::row_pilot::pilot_row;
use super::team::Team;
use super::timed_loop::{IterationLoop, LoopTiming, OverlapMode, SyncPlacement};
use super::{row, timed_loop, RowContext};
use crate::frame::rank_directories::RankDirectories;
use crate::frame::run::run_dir::RunDir;
use crate::frame::run::testing::{
    approx_equal, clear_log, driver, log, log_of, now, run_ranks, with_script, Script, ScriptedOutcome,
};
use crate::imb_io::config::{ImbConfig, InitialFileState, IterationBuffers};
use crate::imb_io::plan::names::find;
use crate::imb_io::plan::processes::Groups;
use crate::imb_io::plan::{IterationRule, Mode, PlannedRow};
use crate::imb_io::records::RowStatus;
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

/// Times and log of one timed loop on each rank.
fn run_loops(
    ranks: u64,
    scripts: impl Fn(u64) -> Script + Sync,
    task: impl Fn(&mut IterationLoop<'_>) + Sync,
) -> Vec<(LoopTiming, Vec<String>)> {
    run_ranks(ranks, scripts, |comm| {
        let path = FilePath::unbacked("f");
        let request = OpenRequest { path: &path, mode: OpenMode::CreateNew, comm, hints: &[] };
        let mut file = driver(false).open(&request).unwrap();
        let pattern = AccessPattern::private(1000, 1, 100);
        let mut buffer = TransferBuffer::new(1 << 16, 4096).unwrap();
        file.prepare(&pattern, Direction::Write, &mut buffer, &[]).unwrap();
        let mut given = IterationLoop {
            kind: pattern.kind,
            direction: Direction::Write,
            syncs: SyncPlacement::AfterAll,
            calls: Batch { first_call: 0, calls: 3 },
            total_calls: 3,
            pending: 2,
            single_calls: false,
            overlap_mode: OverlapMode::Blocking,
        };
        task(&mut given);
        clear_log();
        let timed = timed_loop::run(file.as_mut(), comm, &mut buffer, &given, &mut Latency::intervals(9)).unwrap();
        (timed, log().iter().map(|line| line.split_once(' ').unwrap().1.to_owned()).collect())
    })
}

const BOTH: [&str; 2] = ["bare barrier", "bare barrier"];
const SYNC: [&str; 3] = ["sync", "bare barrier", "sync"];

#[test]
fn the_clock_starts_after_both_barriers_and_stops_after_the_last_sync() {
    for ranks in 1..=3 {
        let seen = run_loops(ranks, |rank| slow_one(ranks, rank), |_| ());
        for (rank, (timed, log)) in seen.iter().enumerate() {
            assert_eq!(*log, [&BOTH[..], &["write 0+3"], &SYNC].concat());
            // Fast ranks wait between the syncs.
            let is_slow = rank as u64 == 1.min(ranks - 1);
            let [seconds, sync] = if is_slow { [3.125, 1.125] } else { [2.875, 1.875] };
            assert!(approx_equal(timed.seconds, seconds) && approx_equal(timed.sync_seconds, sync), "{timed:?}");
            assert_eq!((timed.wait_seconds, timed.cpu_seconds), (0.0, 0.0));
            assert_eq!((timed.moved_bytes, timed.allocations, &timed.error), (3000, 121, &None));
        }
        let seen = run_loops(ranks, |rank| slow_one(ranks, rank), |task| task.syncs = SyncPlacement::AfterEach);
        let one = |call: &'static str| [&[call][..], &SYNC].concat();
        for (rank, (timed, log)) in seen.iter().enumerate() {
            assert_eq!(*log, [&BOTH[..], &one("write 0+1"), &one("write 1+1"), &one("write 2+1")].concat());
            let is_slow = rank as u64 == 1.min(ranks - 1);
            // The slow rank never waits; the others end earlier by the last sync.
            let seconds = 3.0 * 3.125 - if is_slow { 0.0 } else { 0.25 };
            assert!(approx_equal(timed.seconds, seconds) && timed.sync_seconds == 0.0, "{timed:?}");
            assert_eq!((timed.moved_bytes, timed.allocations), (3000, 3 * 121));
        }
    }
}

#[test]
fn a_batch_that_is_not_the_last_ends_for_all_ranks_together() {
    let lap = |first_call| {
        move |task: &mut IterationLoop<'_>| {
            (task.direction, task.syncs, task.calls) =
                (Direction::Read, SyncPlacement::None, Batch { first_call, calls: 3 });
            task.total_calls = 6;
        }
    };
    let seen = run_loops(2, |rank| slow_one(2, rank), lap(0));
    assert_eq!(seen[0].1, [&BOTH[..], &["read 0+3", "bare barrier"]].concat());
    assert!(seen.iter().all(|(timed, _)| approx_equal(timed.seconds, 2.125)));
    assert!(approx_equal(seen[0].0.wait_seconds, 1.125) && approx_equal(seen[1].0.wait_seconds, 0.125));
    let seen = run_loops(2, |rank| slow_one(2, rank), lap(3));
    assert_eq!(seen[0].1, [&BOTH[..], &["read 3+3"]].concat());
    assert!(
        approx_equal(seen[0].0.seconds, 1.0) && approx_equal(seen[1].0.seconds, 2.0) && seen[0].0.wait_seconds == 0.0
    );
}

/// A rank with an error reaches all collective calls, and the first error is kept.
#[test]
fn the_first_error_is_kept_and_no_rank_waits_forever() {
    let failing = |rank| {
        let script = slow_one(2, rank);
        if rank == 1 {
            script.outcome("write", 1, ScriptedOutcome::Fail).outcome("sync", 0, ScriptedOutcome::Full)
        } else {
            script
        }
    };
    let seen = run_loops(2, failing, |task| task.syncs = SyncPlacement::AfterEach);
    assert_eq!(seen[0].1, seen[1].1);
    let error = seen[1].0.error.as_ref().unwrap();
    assert!(error.to_string().starts_with("sync on") && seen[0].0.error.is_none(), "{error}");
    assert_eq!((seen[0].0.moved_bytes, seen[1].0.moved_bytes), (3000, 2000));
    for (is_collective, writes) in [(false, 2), (true, 3)] {
        let script = |rank| {
            if rank == 1 {
                slow_one(2, rank).outcome("write", 1, ScriptedOutcome::Fail)
            } else {
                slow_one(2, rank)
            }
        };
        let seen = run_loops(2, script, |task| {
            task.single_calls = true;
            if is_collective {
                task.kind = beff_backends::AccessKind::Collective;
            }
        });
        assert_eq!(seen[1].1.iter().filter(|line| line.starts_with("write")).count(), writes);
        assert_eq!(seen[1].1[2 + writes..], SYNC);
    }
    // The second of two syncs may report the error.
    let seen = run_loops(1, |_| Script::default().outcome("sync", 1, ScriptedOutcome::Fail), |_| ());
    assert!(seen[0].0.error.is_some());
    let moved = run_loops(1, |_| Script::default().outcome("write", 0, ScriptedOutcome::Moved(5)), |_| ());
    assert_eq!(moved[0].0.moved_bytes, 5);
}

#[test]
fn pending_calls_are_begun_together() {
    for (script, calls) in [
        (Script::default(), &["begin", "write 0+2", "begin", "write 2+1"][..]),
        (Script::default().outcome("write", 0, ScriptedOutcome::Fail), &["begin", "write 0+2"]),
    ] {
        let seen = run_loops(1, |_| script.clone().cost("write", 1.0), |task| task.overlap_mode = OverlapMode::Alone);
        assert_eq!(seen[0].1[2..], [calls, &SYNC].concat());
        let failed = calls.len() == 2;
        assert_eq!((seen[0].0.error.is_some(), seen[0].0.moved_bytes), (failed, if failed { 0 } else { 3000 }));
    }
}

const SAMPLE_BYTES: u64 = 1000;
const STEPS: u64 = 4;

struct RowObservation {
    outcome: RowOutcome,
    calls: Vec<String>,
    seconds: f64,
}

/// Runs `work` on a row of four iterations through fake files that store their data.
fn with_bench<T: Send>(
    name: &str,
    ranks: u64,
    scripts: impl Fn(u64) -> Script + Sync,
    config: &ImbConfig,
    work: impl Fn(&mut RowContext<'_>, &RowJob<'_>) -> T + Sync,
) -> Vec<T> {
    let scratch = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    run_ranks(ranks, scripts, |world: &Comm| {
        let is_mpi = name == "Open_Close" || name.starts_with('C');
        let (posix, moves_data) = ("posix".to_owned(), true);
        let backend = ConfiguredBackend {
            options: beff_backends::DriverOptions::default(),
            name: posix.clone(),
            driver: driver(true),
            moves_data,
            is_mpi,
            unavailable_reason: None,
            hints: Vec::new(),
        };
        let run_dir = RunDir::create(world, scratch.path(), "run", (&[posix], RankDirectories::NONE)).unwrap().unwrap();
        let team = Team::create(world, Groups { ranks, groups: 1 }, run_dir.path()).unwrap().unwrap();
        let interrupt = with_script(|script| script.interrupt.clone());
        let mut bench = RowContext {
            config,
            run_dir: &run_dir,
            buffer: TransferBuffer::new(1 << 20, 0).unwrap(),
            iteration_times: Latency::intervals(100),
            warnings: Vec::new(),
            corruptions: Vec::new(),
            interrupt: &interrupt,
            load: None,
        };
        let sample_bytes = (name != "Open_Close").then_some(SAMPLE_BYTES);
        let row = PlannedRow { benchmark: find(name).unwrap(), ranks, mode: Mode::Aggregate, sample_bytes };
        let job = RowJob {
            row: &row,
            backend: &backend,
            team: &team,
            number: 7,
            keep_files: false,
            rule: &IterationRule::default(),
            requested_iterations: 9,
            estimate: None,
            previous_iterations: None,
            fixed_iterations: Some(STEPS),
            during: "a row",
        };
        clear_log();
        work(&mut bench, &job)
    })
}

fn measured_rows(
    name: &str,
    ranks: u64,
    scripts: impl Fn(u64) -> Script + Sync,
    config: &ImbConfig,
) -> Vec<RowObservation> {
    with_bench(name, ranks, scripts, config, |bench, job| {
        let begin = now().unwrap();
        let outcome = row::measure(bench, job).unwrap();
        let seconds = (now().unwrap() - begin).as_secs_f64();
        assert!(bench.corruptions.is_empty());
        RowObservation {
            outcome,
            calls: log_of(&["open", "prepare", "write", "read", "sync", "hints", "close"]),
            seconds,
        }
    })
}

/// The sync after all iterations belongs to the row, not to an iteration.
#[test]
fn a_pilot_is_the_slowest_ranks_iteration_and_its_wrong_data_is_kept() {
    for (ranks, slowest) in [(1, 2.0), (2, 2.0), (3, 2.0)] {
        let lost =
            |rank| slow_one(ranks, rank).outcome("write", usize::from(rank != ranks - 1), ScriptedOutcome::Nothing);
        for (tried, found) in with_bench("P_Write_Priv", ranks, lost, &config(), |bench, job| {
            let Ok(tried) = pilot_row(bench, job, 4) else { panic!("no pilot measurement") };
            (tried, bench.corruptions.len())
        }) {
            assert!(
                approx_equal(tried.iteration_seconds, slowest / 4.0) && approx_equal(tried.clock_seconds, slowest),
                "{tried:?}"
            );
            assert_eq!(found, 1);
        }
    }
}

fn config() -> ImbConfig {
    ImbConfig {
        buffers: Some(IterationBuffers::Cold),
        file: Some(InitialFileState::New),
        cache: crate::frame::config::CachePolicy::Keep,
        ..fixture::run().config
    }
}

#[test]
fn a_row_of_writes_combines_the_times_of_its_ranks() {
    for (name, ranks) in [("S_Write_Indv", 1), ("P_Write_Indv", 2), ("P_Write_Priv", 3), ("C_Write_Expl", 2)] {
        let direct = |rank| Script { direct: Some(rank != 1), ..slow_one(ranks, rank) };
        let seen = measured_rows(name, ranks, direct, &config());
        let record = &seen[0].outcome.record;
        let steps = STEPS as f64;
        assert_eq!(
            (record.ended.clone(), record.iterations, record.iterations_requested),
            (RowStatus::Complete, STEPS, 9)
        );
        assert_eq!((record.ranks, record.groups, record.sample_bytes), (ranks, 1, Some(SAMPLE_BYTES)));
        let [least, most] = if ranks == 1 { [3.125; 2] } else { [2.875, 3.125] };
        let times = record.times[0];
        assert!(
            approx_equal(times.min_seconds, least / steps) && approx_equal(times.max_seconds, most / steps),
            "{times:?}"
        );
        let mean = (least * (ranks - 1) as f64 + most) / ranks as f64;
        assert!(approx_equal(times.mean_seconds, mean / steps), "{times:?}");
        assert!(
            approx_equal(record.sync_seconds, if ranks == 1 { 1.125 } else { 1.875 } / steps),
            "{}",
            record.sync_seconds
        );
        assert_eq!(record.bytes_checked, record.moved_bytes, "{name}: all of it");
        assert_eq!(record.moved_bytes, STEPS * SAMPLE_BYTES, "{name}: the ranks share a sample");
        assert_eq!((record.bytes_wrong, record.allocations_in_clock), (0, 121 * ranks), "{name}");
        assert!(record.iteration_times.is_none() && record.overlap.is_none() && record.evidence.is_none());
        let is_mixed = ranks > 1;
        assert_eq!(record.direct, Some(!is_mixed), "{name}");
        assert_eq!(record.strategy.contains("direct on"), is_mixed, "{}", record.strategy);
        for one in &seen {
            assert!(approx_equal(one.outcome.record.real_seconds, one.seconds), "{name}");
            assert!(one.outcome.error.is_none() && one.outcome.corruption.is_none());
            assert!(one.calls[0].starts_with("open CreateNew posix/row00007a"), "{}", one.calls[0]);
            let sharing = if name == "P_Write_Priv" { 1 } else { ranks };
            assert!(one.calls[0].contains(&format!("of {sharing}")), "{}", one.calls[0]);
            assert_eq!(one.calls[2..], ["write 0+4", "sync", "sync", "close"]);
        }
    }
}

#[test]
fn a_row_of_reads_compares_the_data_of_every_rank() {
    for (name, ranks) in [("S_Read_Expl", 1), ("P_Read_Expl", 2), ("P_Read_Priv", 3)] {
        let seen = measured_rows(name, ranks, |rank| slow_one(ranks, rank), &config());
        let record = &seen[0].outcome.record;
        let times = record.times[0];
        let least = if ranks == 1 { 2.0 } else { 1.0 };
        assert!(approx_equal(times.min_seconds, least / 4.0) && approx_equal(times.max_seconds, 0.5), "{times:?}");
        assert_eq!((record.sync_seconds, record.bytes_checked, record.bytes_wrong), (0.0, record.moved_bytes, 0));
        assert_eq!(record.allocations_in_clock, ranks);
        assert!(record.evidence.is_some());
        assert!(seen[0].calls[0].starts_with("open ReadOnly"));
        // One bit is flipped in a read of the last rank.
        let flipped = |rank| {
            let script = slow_one(ranks, rank);
            if rank == ranks - 1 {
                script.outcome("read", 0, ScriptedOutcome::Flip(2))
            } else {
                script
            }
        };
        for one in measured_rows(name, ranks, flipped, &config()) {
            let found = one.outcome.corruption.unwrap();
            assert_eq!((one.outcome.record.bytes_wrong, found.bytes_wrong, found.rank), (1, 1, ranks - 1), "{name}");
            assert_eq!((found.iteration, found.benchmark.as_str()), (Some(2), name));
            assert_eq!(found.expected.unwrap() ^ found.actual.unwrap(), 0x10, "{name}");
        }
    }
}

/// The rank before the writer detects it.
#[test]
fn lost_writes_are_detected_by_another_rank() {
    for (name, ranks) in [("S_Write_Indv", 1), ("P_Write_Indv", 2), ("P_Write_Priv", 3)] {
        let lost = |rank| {
            let script = slow_one(ranks, rank);
            if rank == ranks - 1 {
                script.outcome("write", 0, ScriptedOutcome::Nothing)
            } else {
                script
            }
        };
        let seen = measured_rows(name, ranks, lost, &config());
        let found = seen[0].outcome.corruption.as_ref().unwrap();
        assert!(seen[0].outcome.record.bytes_wrong > 0, "{name}");
        // A small file is the share of one rank.
        let expected = if name == "P_Write_Indv" { ranks - 1 } else { (2 * ranks - 2) % ranks };
        assert_eq!(found.rank, expected, "{name}");
    }
}

#[test]
fn a_failure_of_one_rank_ends_the_row_of_all() {
    for (call, number) in [("open", 0), ("prepare", 0), ("write", 0), ("sync", 0), ("sync", 1), ("close", 0)] {
        let failing = |rank| {
            let script = slow_one(3, rank);
            if rank == 2 {
                script.outcome(call, number, ScriptedOutcome::Full)
            } else {
                script
            }
        };
        for one in measured_rows("P_Write_Priv", 3, failing, &config()) {
            let error = one.outcome.error.unwrap();
            assert_eq!((error.rank, error.ranks_affected, error.no_space), (2, 1, true), "{call}");
            assert!(error.next_step.contains("--iter") && error.during == "a row", "{error:?}");
            let RowStatus::Error(message) = &one.outcome.record.ended else { panic!("{:?}", one.outcome.record.ended) };
            assert!(message.starts_with(&format!("rank 2: {call} on")), "{message}");
            assert!(one.outcome.record.real_seconds > 0.0 && one.outcome.record.times.is_empty());
        }
    }
    let unsupported = |rank| Script { unsupported: (rank == 1).then(|| "not here".into()), ..slow_one(2, rank) };
    for one in measured_rows("P_Write_Priv", 2, unsupported, &config()) {
        assert_eq!(one.outcome.record.ended, RowStatus::NotRun("not here".into()));
        assert_eq!(one.calls.len(), 2, "opened and closed: {:?}", one.calls);
    }
    let signalled = |rank| {
        let script = slow_one(2, rank);
        if rank == 1 {
            script.interrupt.raise();
        }
        script
    };
    for one in measured_rows("P_Write_Priv", 2, signalled, &config()) {
        assert_eq!(one.outcome.record.ended, RowStatus::Interrupted);
        assert!(one.calls.is_empty());
    }
}

#[test]
fn opening_and_closing_are_timed_together() {
    for ranks in 1..=3 {
        let seen = measured_rows("Open_Close", ranks, |rank| slow_one(ranks, rank), &config());
        let record = &seen[0].outcome.record;
        let slow = 2.0 * (0.5 + 4.0 + 1.0 + 0.25);
        let times = record.times[0];
        assert!(approx_equal(times.max_seconds, slow), "{times:?}");
        assert!(approx_equal(times.min_seconds, if ranks == 1 { slow } else { slow / 2.0 }), "{times:?}");
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
                    slow_one(ranks, rank).outcome(call, number, ScriptedOutcome::Fail)
                } else {
                    slow_one(ranks, rank)
                }
            };
            for one in measured_rows("Open_Close", ranks, failing, &config()) {
                assert!(
                    matches!(&one.outcome.record.ended, RowStatus::Error(message) if message.contains(call)),
                    "{call}"
                );
                assert!(one.outcome.error.is_some());
            }
        }
    }
}
