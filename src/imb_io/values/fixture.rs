//! Synthetic results of IMB-IO for tests, by simple formulas.

use beff_backends::Direction;

use crate::frame::config::{BindPolicy, CachePolicy, DirectPolicy, RepetitionPolicy};
use crate::frame::records::*;
use crate::imb_io::config::{ImbConfig, InitialFileState, IterationBuffers};
use crate::imb_io::plan::names::find;
use crate::imb_io::plan::{BenchmarkClass, IterationRule, Mode, ModeChoice, SampleSizes};
use crate::imb_io::records::*;

/// Four ranks on one host, without rows.
pub(crate) fn run() -> ImbResult {
    let mut result = ImbResult::new(config(), setup());
    let cpu_load = Some(CpuLoad { unit_seconds: 1.25e-6, calibration_error: 0.02 });
    result.announcement =
        Some(ImbAnnouncement { expected_seconds: 40.0, limit_seconds: Some(180.0), pilot_seconds: 1.5, cpu_load });
    result.ending = ImbEnding {
        outcome: RunOutcome::Complete,
        real_seconds: 50.0,
        verify_seconds: 3.25,
        cleanup_seconds: 0.125,
        rank_memory_high_water_bytes: 96 << 20,
        rank_memory_planned_bytes: 80 << 20,
    };
    result
}

/// A complete row: 10 us plus 1 ns per byte on the slowest rank; bytes of reads from storage.
pub(crate) fn row(benchmark: &str, ranks: u64, mode: Mode, sample_bytes: Option<u64>) -> RowRecord {
    let transfer = find(benchmark).unwrap().transfer().copied();
    let (bytes, is_read) = (sample_bytes.unwrap_or(1), transfer.is_some_and(|t| t.direction == Direction::Read));
    let repetitions = if mode == Mode::Aggregate { 1000 } else { 100 };
    let pure_seconds = 10e-6 + 1e-9 * bytes as f64;
    let overlap = find(benchmark).unwrap().has_overlap().then_some(OverlapTimes {
        blocking_seconds: Some(pure_seconds),
        alone_seconds: 1.125 * pure_seconds,
        overlapped_seconds: 1.25 * pure_seconds,
        cpu_seconds: pure_seconds,
        cpu_overlapped_seconds: 1.0625 * pure_seconds,
    });
    let max_seconds = overlap.map_or(pure_seconds, |o| o.overlapped_seconds);
    let spread = if transfer.is_some_and(|t| t.class == BenchmarkClass::Single) { 1.0 } else { 0.75 };
    let times =
        GroupTimes { min_seconds: spread * max_seconds, max_seconds, mean_seconds: (1.0 + spread) / 2.0 * max_seconds };
    let calls = IterationTimes {
        median_seconds: 0.875 * max_seconds,
        p99_seconds: 1.5 * max_seconds,
        max_seconds: 4.0 * max_seconds,
    };
    RowRecord {
        backend: "mpiio".into(),
        benchmark: benchmark.into(),
        ranks,
        groups: 1,
        mode,
        sample_bytes,
        iterations: repetitions,
        iterations_requested: repetitions,
        ended: RowStatus::Complete,
        times: vec![times],
        iteration_times: overlap.is_none().then_some(calls),
        overlap,
        sync_seconds: if is_read || sample_bytes.is_none() { 0.0 } else { 1.5e-6 },
        moved_bytes: bytes * repetitions,
        bytes_checked: bytes * repetitions * if overlap.is_some() { 3 } else { 1 },
        bytes_wrong: 0,
        allocations_in_clock: 0,
        strategy: find(benchmark).unwrap().calls.into(),
        blocking_strategy: overlap.map(|_| "blocking".into()),
        direct: None,
        hints_granted: Vec::new(),
        evidence: (is_read && bytes > 0).then(|| from_cache(0, bytes * repetitions)),
        storage_read_bytes: None,
        interference: None,
        real_seconds: 0.25,
    }
}

/// Evidence of a read of `range_bytes`, with `resident_bytes` of them in the page cache.
pub(crate) fn from_cache(resident_bytes: u64, range_bytes: u64) -> Evidence {
    Evidence {
        resident_before_bytes: Some(resident_bytes),
        resident_after_bytes: Some(range_bytes),
        range_bytes,
        residency_source: "cachestat".into(),
        ..Evidence::default()
    }
}

fn config() -> ImbConfig {
    ImbConfig {
        benchmarks: vec!["S_Write_Indv".into(), "P_Read_Expl".into()],
        backends: vec!["mpiio".into()],
        variants: Vec::new(),
        path: "/scratch/run".into(),
        run_dir: None,
        keep_files: false,
        out: Some("results/imb1".into()),
        npmin: 1,
        multi: None,
        sizes: SampleSizes::default(),
        iterations: IterationRule::default(),
        repeat: RepetitionPolicy::Off,
        until_share: None,
        time_limit: None,
        modes: ModeChoice::Both,
        file: Some(InitialFileState::Existing),
        buffers: Some(IterationBuffers::Reused),
        hints: Vec::new(),
        unique_open: false,
        cache: CachePolicy::Drop,
        direct: DirectPolicy::ByBackend,
        dio_align_bytes: None,
        storage: Vec::new(),
        stripe: None,
        queue_depth: 16,
        bind: BindPolicy::Auto,
        seed: 42,
        bare: false,
        inject: false,
    }
}

fn setup() -> ImbSetup {
    ImbSetup {
        machine: fixture::machine(vec![fixture::host("node01", 4)], &["beff-raw", "imb", "--out", "results/imb1"]),
        storage: fixture::storage(),
        run_dir: "/scratch/run/beff-raw-1".into(),
        rank_counts: vec![1, 2, 4],
        sizes_bytes: vec![0, 1, 4096, 1 << 20],
        rows: 0,
        clock_resolution_ns: 1.0,
        timestamp_ns: 24.5,
        barrier_ns: 1850.0,
    }
}
