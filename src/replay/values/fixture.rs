//! Hand-made results of replays for tests, by simple formulas; no measurement.

use crate::frame::config::{BindPolicy, CachePolicy, DirectPolicy};
use crate::frame::records::*;
use crate::replay::config::{Detail, Pace, ReplayConfig};
use crate::replay::plan::{CallClass, CallTally, TallyPair};
use crate::replay::records::*;

/// A replay of two processes with these backends and repetitions; 2 files, 1.25 times as fast as recorded in repetition 1.
pub(crate) fn run(backends: &[&str], repeat: u64) -> ReplayResult {
    let mut result = ReplayResult::new(config(backends, repeat), setup(backends));
    for number in 1..=repeat {
        for (n, backend) in backends.iter().enumerate() {
            add_repetition(&mut result, backend, number, 1.25 + 0.25 * n as f64 - 0.125 * (number - 1) as f64);
        }
    }
    result.ending = ReplayEnding {
        outcome: RunOutcome::Complete,
        real_seconds: 3.5,
        prefill_seconds: 0.5,
        prepare_seconds: 0.25,
        verify_seconds: 0.125,
        cleanup_seconds: 0.0625,
        rank_memory_high_water_bytes: 48 << 20,
    };
    result
}

fn add_repetition(result: &mut ReplayResult, backend: &str, number: u64, speed: f64) {
    result.repetitions.push(repetition(backend, number));
    for (file, class, calls, bytes) in [
        (Some(1), CallClass::Open, 2, 0),
        (Some(1), CallClass::WriteCollective, 20, 20 << 20),
        (Some(1), CallClass::Close, 2, 0),
        (Some(2), CallClass::Read, 100, 100 << 10),
        (Some(2), CallClass::ReadNonblocking, 10, 10 << 20),
    ] {
        let both = tally_pair(calls, bytes, speed);
        let backend = backend.to_owned();
        result.classes.push(ClassRecord {
            backend: backend.clone(),
            repetition: number,
            file,
            class,
            processes: 2,
            both,
        });
        for rank in 0..2 {
            let both = tally_pair(calls / 2, bytes / 2, speed * (1.0 + 0.25 * rank as f64));
            result.processes.push(ProcessRecord { backend: backend.clone(), repetition: number, rank, class, both });
        }
    }
}

fn tally_pair(calls: u64, bytes: u64, speed: f64) -> TallyPair {
    let recorded = CallTally { calls, bytes, seconds: 1e-4 * calls as f64 + 1e-9 * bytes as f64 };
    TallyPair { recorded, replayed: CallTally { seconds: recorded.seconds / speed, ..recorded } }
}

/// A complete repetition with recorded results.
pub(crate) fn repetition(backend: &str, number: u64) -> ProfileRepetition {
    ProfileRepetition {
        backend: backend.into(),
        repetition: number,
        ended: RepetitionStatus::Complete,
        calls: 134,
        calls_as_recorded: 134,
        differences: Vec::new(),
        span_seconds: 0.75,
        bytes_checked: 10 << 20,
        bytes_unknown: 0,
        bytes_wrong: 0,
        waits: 3,
        wait_seconds: 0.0125,
        late_seconds: None,
        storage_read_bytes: Some(10 << 20),
        storage_written_bytes: Some(20 << 20),
        resident_before_bytes: Some(0),
        prefilled_bytes: 16 << 20,
        allocations_in_clock: 0,
        interference: None,
        real_seconds: 1.5,
    }
}

/// Calls with other bytes than recorded.
pub(crate) fn difference() -> ResultDifference {
    ResultDifference {
        kind: "bytes".into(),
        calls: 2,
        rank: 1,
        begin_ns: 123_456,
        function: "File_read_at".into(),
        recorded: "512 bytes".into(),
        replayed: "1024 bytes".into(),
    }
}

fn config(backends: &[&str], repeat: u64) -> ReplayConfig {
    ReplayConfig {
        hints: Vec::new(),
        profile: "app.csv".into(),
        backends: backends.iter().map(|&b| b.to_owned()).collect(),
        variants: Vec::new(),
        what_if: None,
        path: "/scratch/run".into(),
        run_dir: None,
        keep_files: false,
        out: Some("results/app".into()),
        pace: Pace::Fast,
        scale: 1.0,
        repeat,
        time_limit: None,
        cache: CachePolicy::Drop,
        direct: DirectPolicy::ByBackend,
        dio_align_bytes: None,
        storage: Vec::new(),
        stripe: None,
        verify: true,
        detail: Detail::Function,
        bind: BindPolicy::Auto,
        seed: 42,
        inject: false,
    }
}

fn setup(backends: &[&str]) -> ReplaySetup {
    let file = |path: &str, size_bytes| FileFacts { path: path.into(), size_bytes, fs_type: "xfs".into() };
    ReplaySetup {
        machine: fixture::machine(vec![fixture::host("node01", 2)], &["beff-raw", "replay", "app.csv", "--out", "app"]),
        storage: fixture::storage(),
        run_dir: "/scratch/run/beff-raw-1".into(),
        profile: ProfileFacts {
            library: "Open MPI v4.1.4".into(),
            command: vec!["./app".into(), "input.nml".into()],
            started_unix_ns: 1_700_000_000_000_000_000,
            cost_ns: Some(35.5),
            processes: 2,
            hosts: 1,
            ended: vec![RecordingEnd { end: "complete".into(), processes: 2 }],
            threads: 1,
            files: vec![file("/work/out.h5", None), file("/work/in\u{1b}[2J.dat", Some(16 << 20))],
            calls: 134,
            data_calls: 130,
            read_bytes: (10 << 20) + (100 << 10),
            written_bytes: 20 << 20,
            span_seconds: 2.5,
            storage_read_bytes: Some(10 << 20),
            storage_written_bytes: Some(20 << 20),
            calls_discarded: 0,
            orderings: 12,
            orderings_lost: 0,
        },
        omissions: backends.iter().map(|&b| BackendOmissions { backend: b.into(), omitted: Vec::new() }).collect(),
        space_bytes: 36 << 20,
        data_bytes: 18 << 20,
        clock_resolution_ns: 1.0,
        clock_read_ns: 24.5,
        barrier_ns: 1850.0,
    }
}
