//! Synthetic runs for tests: full rewrite, everything exactly on schedule.

use crate::b_eff_io::config::{Config, CorruptionPolicy, Partitions, Release, Termination, Verify};
use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::plan::patterns::{patterns, PATTERNS};
use crate::b_eff_io::plan::schedule::pattern_seconds;
use crate::b_eff_io::plan::{PatternSpec, Role};
use crate::b_eff_io::records::{
    Manifest, PartitionRecord, PatternRecord, RunResult, StopReason, TimeBreakdown, TypeRecord, Verification,
};
use crate::frame::config::{BindPolicy, DirectPolicy};
use crate::frame::rank_directories::DEFAULT_FILES_PER_DIRECTORY;
use crate::frame::records::{fixture, AccessMethod, HarnessCost, HostRecord, MachineRecord, RunOutcome};
use crate::frame::units::MIB;

const M_PART_BYTES: u64 = 32 * MIB;
const PARTITION_SECONDS: f64 = 1800.0;
const FILL_UP_BYTES: u64 = 4096;

/// Release 1 on 2 and on 4 ranks.
pub(super) fn full_run() -> RunResult {
    run_of_release(Release::R1)
}

/// 50 MB/s per rank, with release 2.1 on its partitions of 4 ranks; opening and closing take about 1 % of the time of each type.
pub(in crate::b_eff_io) fn run_of_release(release: Release) -> RunResult {
    let sizes: &[u64] = if release == Release::R2_1 { &[2, 3, 4] } else { &[2, 4] };
    let partition = |&ranks: &u64| PartitionRecord {
        ranks,
        m_part_bytes: M_PART_BYTES,
        m_part_defined_bytes: M_PART_BYTES,
        space_bytes: Some(1 << 40),
        time_seconds: PARTITION_SECONDS,
    };
    let config = default_config(release, sizes);
    let partitions = sizes.iter().map(partition).collect();
    let mut result = RunResult::new(config, manifest(), HarnessCost::default(), partitions);
    let specs: [PatternSpec; PATTERNS] = patterns(M_PART_BYTES);
    for access in AccessMethod::ALL {
        for &ranks in sizes {
            result.patterns.extend(specs.iter().map(|spec| pattern(release, spec, ranks, access)));
            result.types.extend(PatternType::ALL.into_iter().map(|t| file(t, ranks, access)));
        }
    }
    result.ending.outcome = RunOutcome::Complete;
    result
}

pub(super) fn edit_pattern(
    result: &mut RunResult,
    ranks: u64,
    access: AccessMethod,
    pattern: u8,
    mut change: impl FnMut(&mut PatternRecord),
) {
    let records = result.patterns.iter_mut();
    records.filter(|p| p.ranks == ranks && p.access == access && p.pattern == pattern).for_each(&mut change);
}

fn pattern(release: Release, spec: &PatternSpec, ranks: u64, access: AccessMethod) -> PatternRecord {
    let scheduled_seconds = pattern_seconds(release, true, PARTITION_SECONDS, spec, access);
    let transfer_seconds = if spec.role == Role::Timed { scheduled_seconds } else { 0.01 };
    let fill_up = spec.role == Role::FillUp;
    let moved_bytes = (5e7 * ranks as f64 * transfer_seconds) as u64;
    PatternRecord {
        backend: "mpiio".into(),
        ranks,
        access,
        pattern_type: spec.pattern_type,
        pattern: spec.number,
        chunk_bytes: if fill_up { FILL_UP_BYTES } else { spec.chunk_bytes },
        call_bytes: if fill_up { FILL_UP_BYTES } else { spec.call_bytes },
        time_units: spec.time_units,
        calls: if spec.role == Role::Timed { 1000 } else { 1 },
        moved_bytes,
        scheduled_seconds,
        budget_seconds: scheduled_seconds,
        intervals: TimeBreakdown { transfer_seconds, ..TimeBreakdown::default() },
        decisions: 0,
        decision_cost_seconds: 0.0,
        imbalance_seconds: None,
        slowest_ranks: Vec::new(),
        batches: Vec::new(),
        rounds: Vec::new(),
        ended: if spec.role == Role::Timed { StopReason::Time } else { StopReason::Count },
        verification: Verification::default(),
        strategy: "MPI_File_write_all".into(),
        submissions: None,
        direct: None,
        hints_requested: Vec::new(),
        hints_granted: vec![("cb_nodes".into(), "2".into())],
        call_read_bytes: None,
        call_written_bytes: None,
        sample: None,
        storage_read_bytes: (access == AccessMethod::Read).then_some(moved_bytes),
        storage_written_bytes: None,
        evidence: crate::frame::records::Evidence::default(),
        interference: None,
        latency: None,
        at_seconds: None,
        allocations_in_clock: 0,
    }
}

fn file(pattern_type: PatternType, ranks: u64, access: AccessMethod) -> TypeRecord {
    TypeRecord {
        backend: "mpiio".into(),
        ranks,
        access,
        pattern_type,
        open_seconds: 0.25,
        close_seconds: 0.75,
        file_bytes: 0,
        segment_bytes: None,
        hints_requested: Vec::new(),
        hints_granted: vec![("cb_nodes".into(), "2".into())],
        hosts: Vec::new(),
        full_verification: None,
    }
}

/// Every option at its default.
pub(in crate::b_eff_io) fn default_config(release: Release, sizes: &[u64]) -> Config {
    Config {
        release,
        strict: false,
        time_seconds: if release == Release::R2_1 { 3.0 } else { 1.0 } * PARTITION_SECONDS,
        backends: vec!["mpiio".into()],
        path: "scratch".into(),
        run_dir: None,
        keep_files: false,
        files_per_directory: DEFAULT_FILES_PER_DIRECTORY,
        out: None,
        partitions: Partitions::List(sizes.to_vec()),
        types: PatternType::ALL.to_vec(),
        full_rewrite: true,
        shared_pointer: true,
        connection_setup: true,
        memory_per_process_bytes: None,
        space_limit: crate::b_eff_io::config::SpaceLimit::Percent(80.0),
        segment_multiple_bytes: MIB,
        termination: Termination::Geometric,
        verify: Verify::Sample,
        on_corruption: CorruptionPolicy::Continue,
        direct: DirectPolicy::Auto,
        variants: Vec::new(),
        dio_align_bytes: None,
        storage: Vec::new(),
        stripe: None,
        queue_depth: Some(32),
        cache: crate::frame::config::CachePolicy::Keep,
        collective: crate::b_eff_io::config::CollectivePolicy::Auto,
        aggregators: None,
        domain_bytes: None,
        exchange: crate::b_eff_io::config::ExchangePolicy::Auto,
        preallocate: crate::b_eff_io::config::PreallocatePolicy::Auto,
        buffers: crate::b_eff_io::config::BufferPolicy::Cold,
        rounds: 1,
        repeat: crate::b_eff_io::config::RepeatPolicy::Off,
        until_percent: None,
        orders: Vec::new(),
        mix: None,
        time_limit: None,
        latency: false,
        unique_open: false,
        hints: Vec::new(),
        bind: BindPolicy::Auto,
        rmax_gflops: None,
        requirements: Vec::new(),
        seed: 1,
        inject: None,
        inject_at: None,
    }
}

fn manifest() -> Manifest {
    let host = HostRecord { memory_bytes: 16 << 30, cgroup_memory_limit_bytes: None, ..fixture::host("node1", 4) };
    Manifest {
        machine: MachineRecord { memory_per_rank_bytes: 4 << 30, ..fixture::machine(vec![host], &[]) },
        mpi_io_layer: "ROMIO".into(),
        storage: fixture::storage(),
        run_dir: "run".into(),
        period_bytes: 8209 * 4096,
    }
}
