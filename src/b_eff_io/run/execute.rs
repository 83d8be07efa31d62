//! A complete run: all access methods, partitions and types.

use std::path::Path;

use beff_ffi::{Comm, MpiError};

use crate::b_eff_io::config::{BufferPolicy, CorruptionPolicy, RepeatPolicy};
use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::plan::schedule::is_rewritten;
use crate::b_eff_io::plan::space::PartitionSpace;
use crate::b_eff_io::plan::two_phase;
use crate::b_eff_io::records::{IoEnding, JournalLine};
use crate::b_eff_io::run::connection_setup::set_up_connections;
use crate::b_eff_io::run::context::TypeContext;
use crate::b_eff_io::run::continuation::{self, ProvidedFiles};
use crate::b_eff_io::run::cut_run::CutRun;
#[cfg(feature = "test-hooks")]
use crate::b_eff_io::run::fault_injection;
use crate::b_eff_io::run::first_measurement::TypeDuration;
use crate::b_eff_io::run::first_writes::try_first_writes;
use crate::b_eff_io::run::limit_check::{left_seconds, omit, omits};
use crate::b_eff_io::run::orders::run_orders;
use crate::b_eff_io::run::queue_calibration::calibrate_queues;
use crate::b_eff_io::run::repetitions::{adopt_root_state, run_repetitions};
use crate::b_eff_io::run::state::{BackendState, RunState};
use crate::b_eff_io::run::sync_calibration::calibrate;
use crate::b_eff_io::run::type_run::run_type;
use crate::frame::records::{AccessMethod, CacheColdRecord, HugePagesRecord, OmittedPart, ProbeTime, RunOutcome};
use crate::frame::run::agree::{broadcast, max_seconds};
use crate::frame::run::cache_cold;
use crate::frame::run::clock::Instant;
use crate::frame::run::evidence::StorageSite;
use crate::frame::run::huge_pages;
use crate::frame::run::interference::HostCpus;
use crate::frame::run::probe::{StorageProbe, MAX_SECONDS, MIN_RUN_SECONDS};
use crate::frame::system::memory::high_water_bytes;
use beff_stamp::Generation;

/// Executes the schedule. Collective; errors of the storage are recorded, not returned.
///
/// # Errors
/// Only errors of MPI between the ranks.
pub fn execute(run: &mut RunState<'_>) -> Result<IoEnding, MpiError> {
    let (world, plan) = (run.world, run.plan);
    let split = |p: &PartitionSpace| if p.ranks == world.size() { Ok(None) } else { world.prefix(p.ranks) };
    let comms = plan.partitions.iter().map(split).collect::<Result<Vec<_>, _>>()?;
    // Communicator, CPUs and storage of each partition; None on ranks outside it.
    let mut parts = Vec::new();
    for (part, comm) in plan.partitions.iter().zip(&comms) {
        let comm = if part.ranks == world.size() { Some(world) } else { comm.as_ref() };
        let inside = comm.map(|comm| PartitionContext::survey(comm, run.run_dir.path())).transpose()?;
        parts.push((part, inside));
    }
    let probe = storage_probe(run);
    probe_storage(run, &probe, ProbeTime::Start)?;
    let begin = Instant::now();
    let moves_data = run.backends.iter().any(|backend| backend.moves_data);
    if moves_data {
        run.fill_buffer(Generation::First, run.plan.period_bytes);
    }
    record_memory_state(run, moves_data)?;
    run.begin = begin;
    let mut connection_setup_seconds = None;
    if let Some((_, Some(inside))) = parts.last() {
        connection_setup_seconds = set_up_connections(run, inside.comm)?;
        calibrate(run, inside.comm)?;
        calibrate_queues(run, inside.comm)?;
        try_first_writes(run, inside.comm)?;
        provide_driver_memory(run, inside.comm, &inside.site);
    }
    agree_on_stop(run)?;
    if let Some(cut) = run.cut {
        continue_run(run, cut, &parts)?;
    }
    let calibrate_seconds = begin.elapsed().as_secs_f64();
    run.patterns_begin = (calibrate_seconds, run.done_seconds);
    for access in AccessMethod::ALL {
        #[cfg(feature = "test-hooks")]
        fault_injection::inject_at_rest(run, access);
        for (part, inside) in &parts {
            if let (Some(inside), None) = (inside, run.stop) {
                run_partition(run, access, part, inside)?;
            }
            agree_on_stop(run)?;
        }
    }
    let orders_seconds = run_all_orders(run, &parts)?;
    if run.config.repeat != RepeatPolicy::Off && !omits(run, OmittedPart::Repetitions) {
        run_all_repetitions(run, &parts, orders_seconds)?;
    }
    let last = std::mem::take(&mut run.unreported);
    run.observer.measurement_ended(run.stop.is_none(), last);
    let real_seconds = begin.elapsed().as_secs_f64();
    if run.stop.is_none() && has_time_for_probe(run)? {
        probe_storage(run, &probe, ProbeTime::End)?;
    }
    Ok(IoEnding {
        outcome: run.stop.unwrap_or(RunOutcome::Complete),
        real_seconds,
        full_verify_seconds: run.full_verify_seconds,
        calibrate_seconds,
        connection_setup_seconds,
        cleanup_seconds: 0.0,
        rank_memory_high_water_bytes: high_water_bytes().unwrap_or(0),
        rank_memory_planned_bytes: plan.rank_memory.resident_bytes(),
        rank_memory: run.peak_memory.reduce(world, &plan.rank_memory)?,
        set_up: None,
    })
}

/// Allocates memory that files need in addition to the transfer buffer, once no driver is replaced any more.
pub(super) fn provide_driver_memory(run: &RunState<'_>, comm: &Comm, site: &StorageSite) {
    let (ranks, hosts) = (comm.size(), site.hosts());
    let needs = |backend: &&BackendState| {
        backend.is_run && run.stop.is_none() && two_phase::has_domains(run.config, &backend.name, ranks)
    };
    run.backends.iter().filter(needs).for_each(|backend| backend.driver.allocate_buffers(ranks, hosts));
}

/// Probe of the storage below the run, in the directory of the first backend that writes.
fn storage_probe(run: &RunState<'_>) -> StorageProbe {
    let path = match run.backends.iter().find(|backend| backend.moves_data) {
        None => Err("no backend of the run writes files".to_owned()),
        Some(_) if run.config.time_seconds < MIN_RUN_SECONDS => {
            Err(format!("T is below {MIN_RUN_SECONDS:.0} s: two probes would be a large part of it"))
        }
        Some(backend) => Ok(run.run_dir.file(&Path::new(&backend.name).join("probe.dat"))),
    };
    StorageProbe::new(path)
}

/// True if the time limit leaves time for a probe. Collective.
fn has_time_for_probe(run: &RunState<'_>) -> Result<bool, MpiError> {
    let left = left_seconds(run).unwrap_or(f64::INFINITY);
    Ok(run.limit.is_none() || broadcast(run.world, left)? > MAX_SECONDS)
}

/// Measures the storage on rank 0 alone, outside every clock and outside the real time.
fn probe_storage(run: &mut RunState<'_>, probe: &StorageProbe, at: ProbeTime) -> Result<(), MpiError> {
    if let Some(record) = probe.measure(run.world, at)? {
        run.observer.record(JournalLine::Probe(record));
    }
    Ok(())
}

/// Records whether the transfer buffer is cache-cold, and its page sizes. `moves_data`: a backend of the run moves data; otherwise the
/// buffer is empty.
fn record_memory_state(run: &mut RunState<'_>, moves_data: bool) -> Result<(), MpiError> {
    let cache_share_bytes = run.plan.cache_share_bytes;
    let not_looked = |why: &str| CacheColdRecord {
        cache_share_bytes,
        unknown_reason: Some(why.into()),
        ..CacheColdRecord::default()
    };
    let record = match run.config.buffers {
        _ if !moves_data => not_looked("no backend of the run moves data"),
        // The bytes beyond one period repeat its beginning; only calls that end there use them.
        BufferPolicy::Cold => cache_cold::measure(
            run.world,
            &run.buffer.bytes()[..run.buffer.period_bytes() as usize],
            cache_share_bytes,
        )?,
        BufferPolicy::Reused => not_looked("all calls use one window (--buffers reused)"),
    };
    run.observer.record(JournalLine::CacheCold(record));
    let pages = if moves_data {
        huge_pages::measure(run.world, &run.buffer)?
    } else {
        HugePagesRecord {
            unknown_reason: Some("no backend of the run moves data".into()),
            ..HugePagesRecord::default()
        }
    };
    run.observer.record(JournalLine::Pages(pages));
    Ok(())
}

struct PartitionContext<'a> {
    comm: &'a Comm,
    site: StorageSite,
    cpus: HostCpus,
}

impl<'a> PartitionContext<'a> {
    fn survey(comm: &'a Comm, directory: &Path) -> Result<Self, MpiError> {
        Ok(Self { comm, site: StorageSite::survey(comm, directory)?, cpus: HostCpus::survey(comm)? })
    }

    /// First write of the first type.
    fn first_write<'b>(&'b self, partition: &'b PartitionSpace) -> TypeContext<'b> {
        let Self { comm, site, cpus } = self;
        let (access, pattern_type) = (AccessMethod::Write, PatternType::Scatter);
        TypeContext { access, partition, comm, site, cpus, pattern_type, repetition: None, order: None }
    }
}

fn run_partition(
    run: &mut RunState<'_>,
    access: AccessMethod,
    part: &PartitionSpace,
    PartitionContext { comm, site, cpus }: &PartitionContext<'_>,
) -> Result<(), MpiError> {
    for backend in &mut run.backends {
        let cut = run.cut.map(|cut| cut.debt_seconds(&backend.name, access, part.ranks));
        backend.debt_seconds = cut.unwrap_or(0.0);
    }
    adopt_root_state(run, comm)?;
    for &pattern_type in &run.config.types {
        if access == AccessMethod::Rewrite && !is_rewritten(run.config.full_rewrite, pattern_type) {
            continue;
        }
        if run.stop.is_none() && !run.cut.is_some_and(|cut| cut.is_kept(access, part.ranks, pattern_type)) {
            let begin = Instant::now();
            run_type(
                run,
                TypeContext { access, partition: part, comm, site, cpus, pattern_type, repetition: None, order: None },
            )?;
            let seconds = max_seconds(comm, begin.elapsed().as_secs_f64())?;
            run.type_durations.push(TypeDuration { ranks: part.ranks, access, pattern_type, seconds });
        }
    }
    Ok(())
}

/// Restores what the run that this one continues has measured.
fn continue_run(
    run: &mut RunState<'_>,
    cut: &CutRun,
    parts: &[(&PartitionSpace, Option<PartitionContext<'_>>)],
) -> Result<(), MpiError> {
    continuation::record(run, cut);
    let mut provided = ProvidedFiles::default();
    for (part, inside) in parts {
        if let (Some(inside), None) = (inside, run.stop) {
            continuation::restore(run, cut, inside.first_write(part), &mut provided)?;
        }
        agree_on_stop(run)?;
    }
    if run.world.is_root() {
        run.observer.record(JournalLine::Continuation(continuation::finish(cut, provided)));
    }
    Ok(())
}

/// Measures other orders of access on all partitions; returns the time.
fn run_all_orders(
    run: &mut RunState<'_>,
    parts: &[(&PartitionSpace, Option<PartitionContext<'_>>)],
) -> Result<f64, MpiError> {
    let before_seconds = run.elapsed_seconds();
    let is_measured = !run.config.call_orders().is_empty();
    for (part, inside) in parts.iter().filter(|_| is_measured) {
        if let (Some(inside), None) = (inside, run.stop) {
            run_orders(run, inside.first_write(part))?;
        }
        agree_on_stop(run)?;
    }
    Ok(run.elapsed_seconds() - before_seconds)
}

fn run_all_repetitions(
    run: &mut RunState<'_>,
    parts: &[(&PartitionSpace, Option<PartitionContext<'_>>)],
    orders_seconds: f64,
) -> Result<(), MpiError> {
    // Storage that is slower than the schedule, or never idle, must not leave values and ratios without intervals.
    let least_seconds = match run.config.repeat {
        RepeatPolicy::Rounds => run.plan.partition_seconds,
        RepeatPolicy::Auto | RepeatPolicy::Off => run.plan.reserved_seconds(run.config),
    };
    // Orders are beside T.
    let limit_seconds = run.plan.limit_seconds(run.config) + orders_seconds;
    let mut end_seconds = limit_seconds.max(run.elapsed_seconds() + least_seconds);
    // Only rank 0's clock counts.
    let limit_seconds = left_seconds(run).map(|left| run.elapsed_seconds() + left);
    if let Some(limit_seconds) = limit_seconds.filter(|seconds| *seconds < end_seconds) {
        omit(run, &[OmittedPart::Repetitions]);
        end_seconds = limit_seconds;
    }
    for (number, (part, inside)) in parts.iter().enumerate() {
        // Rank 0 is in every partition, and only its clock counts.
        let left = end_seconds - run.elapsed_seconds();
        let seconds = left / (parts.len() - number) as f64;
        if let (Some(inside), None) = (inside, run.stop) {
            run_repetitions(run, inside.first_write(part), number, seconds)?;
        }
        agree_on_stop(run)?;
    }
    Ok(())
}

/// Ranks outside a partition wait here without using their cores; then all ranks agree whether the run continues.
fn agree_on_stop(run: &mut RunState<'_>) -> Result<(), MpiError> {
    run.world.idle_barrier()?;
    run.stop = run.interrupt.agree_on_stop(run.world, run.stop)?;
    if run.config.on_corruption == CorruptionPolicy::Skip {
        // Ranks outside the partition open files with the others in the next one.
        let mut marks: Vec<f64> = run.backends.iter().map(|backend| f64::from(backend.has_wrong_data)).collect();
        run.world.max_f64(&mut marks)?;
        run.backends.iter_mut().zip(marks).for_each(|(backend, mark)| backend.has_wrong_data = mark > 0.0);
        run.skip_corrupt();
    }
    Ok(())
}
