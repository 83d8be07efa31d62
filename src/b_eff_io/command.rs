//! `beff-raw [io]`: measures b_eff_io.

use anyhow::anyhow;
use beff_ffi::{Comm, Universe};

use super::cli::IoArgs;
use super::config::Config;
use super::plan::run::{writing_backends, Facts, RunPlan};
use super::plan::space::PartitionSpace;
use super::records::{JournalLine, Manifest, PartitionRecord, RunResult};
use super::report::suffixes;
use super::run::state::Run;
use super::run::whole::execute;
use crate::frame::command::finish::{conduct, Files};
use crate::frame::command::observer::Collector;
use crate::frame::command::start::{Early, Ready};
use crate::frame::command::{directory, known_backends, start};
use crate::frame::error::{Exit, UsageError};
use crate::frame::records::StorageRecord;
use crate::frame::report::Views;
use crate::frame::run::Observer;
use crate::frame::system::survey::{io_layer, Survey};

/// Runs the command. Every rank ends with the same exit code; rank 0 alone says why.
///
/// # Errors
/// What ended the run before a result could be made.
pub fn run(args: &IoArgs) -> anyhow::Result<Exit> {
    start::under_mpi(|universe, world| {
        // Rank 0 reads command line and hints file for all, so that every rank runs with the same configuration.
        let config = start::from_root(world, "configuration", || args.config(&known_backends()))?;
        measure(universe, world, &config, args)
    })
}

fn measure(universe: &Universe, world: &Comm, config: &Config, args: &IoArgs) -> Result<Exit, Early> {
    let survey = start::look_around(world)?;
    let storage = start::storage_below(world, &config.path)?;
    let plan = start::step(world, "plan", || make_plan(config, &survey, &storage, world.size()))?;
    let Ready { costs, interrupt, machine } = start::get_ready(universe, world, &survey, config.latency)?;

    let outputs = start::open_outputs(world, config.out.as_deref(), &suffixes(&config.backends))?;
    let (run_dir, outputs) =
        directory::make(world, &config.path, config.run_dir.as_deref(), &config.backends, outputs)?;
    let collector = machine.map(|machine| {
        let manifest = Manifest {
            mpi_io_layer: io_layer(&machine.mpi_library, &machine.environment),
            machine,
            storage,
            run_dir: run_dir.path().display().to_string(),
            period_bytes: plan.period_bytes,
        };
        let result = RunResult::new(config.clone(), manifest, costs, partitions(&plan));
        Collector::new(result, outputs, args.quiet)
    });
    let work = |observer: &mut dyn Observer<JournalLine>| {
        let mut run = start::step(world, "memory", || {
            Run::new(world, config, &plan, &run_dir, &interrupt, observer).map_err(|e| anyhow!(e))
        })?;
        Ok(start::or_abort(execute(&mut run)))
    };
    let files = Files { run_dir: &run_dir, keep: config.keep_files };
    conduct(world, Some(files), collector, work, |result, derived| result.table(derived, args.details).into())
}

fn make_plan(config: &Config, survey: &Survey, storage: &StorageRecord, ranks: u64) -> anyhow::Result<RunPlan> {
    let writing = writing_backends(config);
    let limit = config.space_limit.bytes(storage.free_bytes);
    if writing > 0 && limit > storage.free_bytes {
        return Err(UsageError::new(
            format!("--space asks for {limit} bytes, but only {} are free under {}", storage.free_bytes, storage.path),
            "Give a smaller --space or another --path.",
        )
        .into());
    }
    let facts = Facts {
        ranks,
        ranks_of_first_host: survey.hosts.first().map_or(1, |host| host.ranks),
        memory_per_rank_bytes: survey.memory_per_rank_bytes,
        last_level_cache_bytes: survey.last_level_cache_bytes,
        limit_bytes: (writing > 0).then_some(limit),
        writing_backends: writing,
    };
    RunPlan::new(config, &facts)
        .map_err(|e| UsageError::new(e.to_string(), "`beff-raw plan` shows what would fit.").into())
}

/// The partitions as they are written into the result.
fn partitions(plan: &RunPlan) -> Vec<PartitionRecord> {
    let record = |p: &PartitionSpace| PartitionRecord {
        ranks: p.ranks,
        m_part_bytes: p.m_part_bytes,
        m_part_wanted_bytes: p.m_part_wanted_bytes,
        space_bytes: p.space_bytes,
        time_seconds: plan.partition_seconds,
    };
    plan.partitions.iter().map(record).collect()
}
