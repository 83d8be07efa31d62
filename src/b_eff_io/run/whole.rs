//! A whole run: all access methods, partitions, types.

use std::path::Path;

use beff_ffi::{Comm, MpiError};

use crate::b_eff_io::config::{Buffers, RepeatPolicy};
use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::plan::schedule::is_rewritten;
use crate::b_eff_io::plan::space::PartitionSpace;
use crate::b_eff_io::plan::two_phase;
use crate::b_eff_io::records::{Ending, JournalLine};
use crate::b_eff_io::run::calibrate::calibrate;
use crate::b_eff_io::run::first_writes::try_first_writes;
#[cfg(feature = "test-hooks")]
use crate::b_eff_io::run::inject;
use crate::b_eff_io::run::passed::Took;
use crate::b_eff_io::run::place::Place;
use crate::b_eff_io::run::queue_calibration::calibrate_queues;
use crate::b_eff_io::run::repeat::{learn_of_root, run_again};
use crate::b_eff_io::run::state::{Backend, Run};
use crate::b_eff_io::run::type_run::run_type;
use crate::frame::records::{Access, ColdRecord, Outcome, PagesRecord, ProbeAt};
use crate::frame::run::agree::slowest;
use crate::frame::run::clock::Instant;
use crate::frame::run::cold;
use crate::frame::run::evidence::Site;
use crate::frame::run::machine_share::HostCpus;
use crate::frame::run::pages;
use crate::frame::run::probe::{Probe, LEAST_RUN_SECONDS};
use crate::frame::system::memory::high_water_bytes;
use beff_stamp::Generation;

/// Works through the schedule. Collective; a failure of the storage is in the records, not in the result.
///
/// # Errors
/// Only when MPI fails between the ranks.
pub fn execute(run: &mut Run<'_>) -> Result<Ending, MpiError> {
    let (world, plan) = (run.world, run.plan);
    let split = |p: &PartitionSpace| if p.ranks == world.size() { Ok(None) } else { world.prefix(p.ranks) };
    let comms = plan.partitions.iter().map(split).collect::<Result<Vec<_>, _>>()?;
    // The communicator of each partition, its CPUs, and what is below its files; None on ranks outside.
    let mut parts = Vec::new();
    for (part, comm) in plan.partitions.iter().zip(&comms) {
        let comm = if part.ranks == world.size() { Some(world) } else { comm.as_ref() };
        let inside = comm.map(|comm| Inside::survey(comm, run.run_dir.path())).transpose()?;
        parts.push((part, inside));
    }
    let probe = probe_of(run);
    probe_storage(run, &probe, ProbeAt::Start)?;
    let begin = Instant::now();
    let moves_data = run.backends.iter().any(|backend| backend.moves_data);
    if moves_data {
        run.hold(Generation::First, run.plan.period_bytes);
    }
    look_at_memory(run, moves_data)?;
    run.begin = begin;
    if let Some((_, Some(inside))) = parts.last() {
        calibrate(run, inside.comm)?;
        calibrate_queues(run, inside.comm)?;
        try_first_writes(run, inside.comm)?;
        provide(run, inside);
    }
    agree_on_stop(run)?;
    let calibrate_seconds = begin.elapsed().as_secs_f64();
    for access in Access::ALL {
        #[cfg(feature = "test-hooks")]
        inject::at_rest(run, access);
        for (part, inside) in &parts {
            if let (Some(inside), None) = (inside, run.stop) {
                run_partition(run, access, part, inside)?;
            }
            agree_on_stop(run)?;
        }
    }
    if run.config.repeat != RepeatPolicy::Off {
        repeats(run, &parts)?;
    }
    let last = std::mem::take(&mut run.last);
    run.observer.measured(run.stop.is_none(), last);
    let real_seconds = begin.elapsed().as_secs_f64();
    if run.stop.is_none() {
        probe_storage(run, &probe, ProbeAt::End)?;
    }
    Ok(Ending {
        outcome: run.stop.unwrap_or(Outcome::Complete),
        real_seconds,
        full_verify_seconds: run.full_verify_seconds,
        calibrate_seconds,
        cleanup_seconds: 0.0,
        rank_memory_high_water_bytes: high_water_bytes().unwrap_or(0),
        rank_memory_planned_bytes: plan.rank_memory.resident_bytes(),
        rank_memory: run.memory_seen.together(world, &plan.rank_memory)?,
    })
}

/// Memory that files need beside the ring appears before the first of them: behind what may still replace a driver.
fn provide(run: &Run<'_>, inside: &Inside<'_>) {
    let (ranks, hosts) = (inside.comm.size(), inside.site.hosts());
    let needs = |backend: &&Backend| {
        backend.is_run && run.stop.is_none() && two_phase::has_domains(run.config, &backend.name, ranks)
    };
    run.backends.iter().filter(needs).for_each(|backend| backend.driver.provide(ranks, hosts));
}

/// Of the storage below the run, in the directory of the first backend that writes.
fn probe_of(run: &Run<'_>) -> Probe {
    let path = match run.backends.iter().find(|backend| backend.moves_data) {
        None => Err("no backend of the run writes files".to_owned()),
        Some(_) if run.config.time_seconds < LEAST_RUN_SECONDS => {
            Err(format!("T is below {LEAST_RUN_SECONDS:.0} s: two probes would be a large part of it"))
        }
        Some(backend) => Ok(run.run_dir.file(&Path::new(&backend.name).join("probe.dat"))),
    };
    Probe::new(path)
}

/// What the storage does for rank 0 alone. Outside of every clock and of the real time.
fn probe_storage(run: &mut Run<'_>, probe: &Probe, at: ProbeAt) -> Result<(), MpiError> {
    if let Some(record) = probe.measure(run.world, at)? {
        run.observer.record(JournalLine::Probe(record));
    }
    Ok(())
}

/// Measures whether what calls go through in the ring is cold; then how large the pages of the ring are.
/// `moves_data`: some backend of the run does, else it is empty.
fn look_at_memory(run: &mut Run<'_>, moves_data: bool) -> Result<(), MpiError> {
    let cache_share_bytes = run.plan.cache_share_bytes;
    let not_looked = |why: &str| ColdRecord { cache_share_bytes, not_known: Some(why.into()), ..ColdRecord::default() };
    let record = match run.config.buffers {
        _ if !moves_data => not_looked("no backend of the run moves data"),
        // Behind one period lies its beginning again, which only calls use that end there.
        Buffers::Cold => {
            cold::measure(run.world, &run.ring.bytes()[..run.ring.period_bytes() as usize], cache_share_bytes)?
        }
        Buffers::Reused => not_looked("one window is used for all calls, on purpose (--buffers reused)"),
    };
    run.observer.record(JournalLine::Cold(record));
    let pages = if moves_data {
        pages::look(run.world, &run.ring)?
    } else {
        PagesRecord { not_known: Some("no backend of the run moves data".into()), ..PagesRecord::default() }
    };
    run.observer.record(JournalLine::Pages(pages));
    Ok(())
}

/// What a rank of a partition works with.
struct Inside<'a> {
    comm: &'a Comm,
    site: Site,
    cpus: HostCpus,
}

impl<'a> Inside<'a> {
    fn survey(comm: &'a Comm, directory: &Path) -> Result<Self, MpiError> {
        Ok(Self { comm, site: Site::survey(comm, directory)?, cpus: HostCpus::survey(comm)? })
    }
}

fn run_partition(
    run: &mut Run<'_>,
    access: Access,
    part: &PartitionSpace,
    Inside { comm, site, cpus }: &Inside<'_>,
) -> Result<(), MpiError> {
    for backend in &mut run.backends {
        backend.debt_seconds = 0.0;
    }
    learn_of_root(run, comm)?;
    for &pattern_type in &run.config.types {
        if access == Access::Rewrite && !is_rewritten(run.config.full_rewrite, pattern_type) {
            continue;
        }
        if run.stop.is_none() {
            let begin = Instant::now();
            run_type(run, Place { access, part, comm, site, cpus, pattern_type, repeat: None })?;
            let seconds = slowest(comm, begin.elapsed().as_secs_f64())?;
            run.took.push(Took { ranks: part.ranks, access, pattern_type, seconds });
        }
    }
    Ok(())
}

/// The time that is left, divided among the partitions.
fn repeats(run: &mut Run<'_>, parts: &[(&PartitionSpace, Option<Inside<'_>>)]) -> Result<(), MpiError> {
    let mut end_seconds = run.plan.limit_seconds(run.config);
    if run.config.repeat == RepeatPolicy::Rounds {
        // Storage that is slower than the schedule must not leave ratios without intervals.
        end_seconds = end_seconds.max(run.begin.elapsed().as_secs_f64() + run.plan.partition_seconds);
    }
    for (number, (part, inside)) in parts.iter().enumerate() {
        // Rank 0 is in every partition, and its clock is the one that counts.
        let left = end_seconds - run.begin.elapsed().as_secs_f64();
        let seconds = left / (parts.len() - number) as f64;
        if let (Some(Inside { comm, site, cpus }), None) = (inside, run.stop) {
            let place = Place {
                access: Access::Write,
                part,
                comm,
                site,
                cpus,
                pattern_type: PatternType::Scatter,
                repeat: None,
            };
            run_again(run, place, number, seconds)?;
        }
        agree_on_stop(run)?;
    }
    Ok(())
}

/// The ranks outside a partition wait here without burning their cores, and learn whether the run goes on.
fn agree_on_stop(run: &mut Run<'_>) -> Result<(), MpiError> {
    run.world.idle_barrier()?;
    let mut codes = [match run.stop {
        None => u64::from(run.interrupt.raised()),
        Some(Outcome::Failed) => 2,
        Some(_) => 1,
    }];
    run.world.max_u64(&mut codes)?;
    run.stop = match codes[0] {
        0 => None,
        1 => Some(Outcome::Interrupted),
        _ => Some(Outcome::Failed),
    };
    Ok(())
}
