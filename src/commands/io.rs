//! `beff-raw [io]`: measures b_eff_io.

use std::time::Instant;

use anyhow::{anyhow, Context};
use beff_backends::driver;
use beff_ffi::{Comm, Universe};

use crate::cli::IoArgs;
use crate::commands::observer::Collector;
use crate::commands::{complain, directory, known_backends, start};
use crate::config::Config;
use crate::engine::interrupt::Interrupt;
use crate::engine::run::Run;
use crate::engine::run_dir::RunDir;
use crate::engine::{harness, NoObserver, Observer};
use crate::error::{Exit, UsageError};
use crate::plan::run::{Facts, RunPlan};
use crate::report::{io_views, table};
use crate::results::{Ending, JournalLine, Outcome, RunResult, StorageRecord, Warning};
use crate::stats::derive;
use crate::system::survey::{machine, manifest, storage_record, survey, Survey};

/// Runs the command. Every rank ends with the same exit code; rank 0 alone says why.
///
/// # Errors
/// What ended the run before a result could be made.
pub fn run(args: &IoArgs) -> anyhow::Result<Exit> {
    start::under_mpi(|universe, world| {
        // Rank 0 reads command line and hints file for all, so that every rank runs with the same configuration.
        let config = start::from_root(world, || args.config(&known_backends()))?;
        measure(universe, world, &config, args)
    })
}

fn measure(universe: &Universe, world: &Comm, config: &Config, args: &IoArgs) -> anyhow::Result<Exit> {
    let survey = survey(world)?.map_err(|e| anyhow!(e))?;
    let storage = start::from_root(world, || {
        storage_record(&config.path).map_err(|e| UsageError::new(e.to_string(), "Nothing was measured."))
    })?;
    let plan = make_plan(config, &survey, &storage, world.size())?;
    let costs = harness::measure(world, config.latency)?;
    let interrupt = start::on_all(world, Interrupt::watch().context("signals cannot be watched"))?;
    // What can fail on one rank alone comes before anything is made.
    let machine = start::on_all(world, if world.is_root() { machine(universe, &survey).map(Some) } else { Ok(None) })?;

    let outputs = start::open_outputs(world, config.out.as_deref(), &io_views::suffixes(&config.backends))?;
    let (run_dir, outputs) =
        directory::make(world, &config.path, config.run_dir.as_deref(), &config.backends, outputs)?;

    let mut collector = None;
    if let Some(machine) = machine {
        let manifest = manifest(machine, storage.clone(), run_dir.path(), plan.period_bytes);
        let result = RunResult::new(config.clone(), manifest, costs, plan.records());
        collector = Some(Collector::new(result, outputs, args.quiet));
    }
    let mut nobody = NoObserver;
    let observer: &mut dyn Observer = match &mut collector {
        Some(c) => c,
        None => &mut nobody,
    };
    let run = Run::new(world, config, &plan, &run_dir, &interrupt, observer);
    let failed = crate::engine::agree::first_message(world, run.as_ref().err().cloned())?;
    let ending = match (run, failed) {
        (Ok(mut run), None) => run.execute(),
        (_, failed) => {
            let _ = directory::clean_up(world, &run_dir, false, Outcome::Failed);
            if let Some(outputs) = collector.and_then(|c| c.finish().1) {
                outputs.discard();
            }
            return Err(anyhow!(failed.map_or_else(String::new, |(_, message)| message)));
        }
    };
    conclude(world, config, args, &run_dir, start::or_abort(ending), collector)
}

/// Cleans up and reports; the exit code is rank 0's on all ranks.
fn conclude(
    world: &Comm,
    config: &Config,
    args: &IoArgs,
    run_dir: &RunDir,
    mut ending: Ending,
    collector: Option<Collector<RunResult>>,
) -> anyhow::Result<Exit> {
    // After a signal the launcher may kill soon: the result first, then the files, whose names are gone already.
    let first = ending.outcome == Outcome::Interrupted;
    let mut left = None;
    if !first {
        let begin = Instant::now();
        left = directory::clean_up(world, run_dir, config.keep_files, ending.outcome);
        ending.cleanup_seconds = begin.elapsed().as_secs_f64();
    }
    let mut exit = Exit::Ok;
    if let Some(mut collector) = collector {
        if let Some(warning) = left.take() {
            collector.record(JournalLine::Warning(warning));
        }
        collector.record(JournalLine::End(ending));
        let (result, outputs) = collector.finish();
        let derived = derive(&result);
        exit = exit_of(&result);
        let view = |suffix: &str| io_views::view(&result, &derived, suffix);
        if !start::deliver(outputs, view, || table::table(&result, &derived, args.details)) {
            exit = Exit::Failure;
        }
    }
    if first {
        if let Some(Warning::FilesLeft { path, reason }) =
            directory::clean_up(world, run_dir, config.keep_files, Outcome::Interrupted)
        {
            complain(&format!("{path} could not be removed: {reason}"));
        }
    }
    Ok(start::exit_of_root(world, exit)?)
}

fn exit_of(result: &RunResult) -> Exit {
    let full = result.types.iter().filter_map(|t| t.full_verification);
    let wrong = result.patterns.iter().map(|p| p.verification).chain(full).any(|v| v.words_wrong > 0);
    match result.ending.outcome {
        _ if wrong || !result.corruptions.is_empty() => Exit::Corruption,
        Outcome::Interrupted => Exit::Interrupted,
        Outcome::Complete if result.errors.is_empty() => Exit::Ok,
        _ => Exit::Failure,
    }
}

fn make_plan(config: &Config, survey: &Survey, storage: &StorageRecord, ranks: u64) -> anyhow::Result<RunPlan> {
    let writing = config.backends.iter().filter_map(|name| driver(name)).filter(|row| row.uses_space).count() as u64;
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
