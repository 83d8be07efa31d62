//! `beff-raw [io]`: measures b_eff_io.

use std::path::Path;
use std::time::Instant;

use anyhow::{anyhow, Context};
use beff_backends::driver;
use beff_ffi::{Comm, Universe};

use crate::cli::IoArgs;
use crate::commands::observer::Collector;
use crate::commands::{complain, known_backends, publish};
use crate::config::Config;
use crate::engine::interrupt::Interrupt;
use crate::engine::run::Run;
use crate::engine::run_dir::RunDir;
use crate::engine::{harness, NoObserver, Observer};
use crate::error::{Exit, UsageError};
use crate::plan::run::{Facts, RunPlan};
use crate::report::{table, Outputs};
use crate::results::{Ending, JournalLine, Outcome, RunResult, StorageRecord, Warning};
use crate::stats::derive;
use crate::system::launcher::{before_init, speaks_for_all, wrong_launcher};
use crate::system::survey::{manifest, storage_record, survey, Survey, LIBRARY_CHARS};

/// Runs the command. Every rank ends with the same exit code; rank 0 alone says why.
///
/// # Errors
/// What ended the run before a result could be made.
pub fn run(args: &IoArgs) -> anyhow::Result<Exit> {
    let env = |name: &str| std::env::var(name).ok();
    let library = beff_ffi::library_version(LIBRARY_CHARS).unwrap_or_else(|_| beff_ffi::built_with().into());
    if let Some(message) = before_init(&library, env) {
        return refuse(&message);
    }
    let universe = Universe::init().map_err(|e| anyhow!("MPI cannot be started: {e}"))?;
    abort_on_panic();
    let world = universe.world();
    if let Some(message) = wrong_launcher(world.size(), beff_ffi::built_with(), env) {
        return refuse(&message);
    }
    let outcome = configure(&world, args).and_then(|config| measure(&universe, &world, &config, args));
    outcome.or_else(|error| {
        // Rank 0 speaks before any rank ends: some launchers kill the others, and their last words, at the first exit.
        if world.is_root() {
            complain(&format!("{error:#}"));
        }
        world.barrier()?;
        Ok(if error.is::<UsageError>() { Exit::Usage } else { Exit::Failure })
    })
}

/// Rank 0 reads command line and hints file for all, so that every rank runs with the same configuration.
fn configure(world: &Comm, args: &IoArgs) -> anyhow::Result<Config> {
    let mine = if world.is_root() {
        args.config(&known_backends()).map_err(|e| (e.cause, e.next_step))
    } else {
        Err((String::new(), String::new()))
    };
    let bytes = world.bcast_bytes(serde_json::to_vec(&mine)?, 0)?;
    let shared: Result<Config, (String, String)> = serde_json::from_slice(&bytes)?;
    shared.map_err(|(cause, next_step)| UsageError::new(cause, next_step).into())
}

/// Copies of rank 0 of 1 cannot agree on who speaks: the launcher's own numbering decides.
fn refuse(message: &str) -> anyhow::Result<Exit> {
    if speaks_for_all(|name| std::env::var(name).ok()) {
        complain(message);
    }
    Ok(Exit::Usage)
}

/// A rank that panics would leave the others in a collective call for ever.
fn abort_on_panic() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        default(info);
        complain("this is a defect of beff-raw: please report it with the lines above");
        beff_ffi::universe::abort(i32::from(Exit::Failure.code()));
    }));
}

fn measure(universe: &Universe, world: &Comm, config: &Config, args: &IoArgs) -> anyhow::Result<Exit> {
    let survey = survey(world)?.map_err(|e| anyhow!(e))?;
    let storage = storage_of(world, &config.path)?;
    let plan = make_plan(config, &survey, &storage, world.size())?;
    let costs = harness::measure(world, config.latency)?;
    let interrupt = Interrupt::watch().context("signals cannot be watched")?;

    // The outputs are opened before the run: a result that cannot be kept is not worth measuring.
    let outputs = open_outputs(world, config)?;
    let name = run_dir_name(world, config)?;
    let run_dir = match RunDir::make(world, &config.path, &name, &config.backends)? {
        Ok(run_dir) => run_dir,
        Err(message) => {
            if let Some(outputs) = outputs {
                outputs.discard();
            }
            return Err(UsageError::new(message, "Nothing was measured.").into());
        }
    };

    let mut collector = None;
    if world.is_root() {
        let manifest = manifest(universe, &survey, storage.clone(), run_dir.path(), plan.period_bytes)?;
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
            let _ = clean_up(world, &run_dir, config, Outcome::Failed);
            if let Some(outputs) = collector.and_then(|c| c.finish().1) {
                outputs.discard();
            }
            return Err(anyhow!(failed.map_or_else(String::new, |(_, message)| message)));
        }
    };
    // The other ranks may wait in a call that this one will never make: nothing but an abort ends them.
    let ending = ending.unwrap_or_else(|e| {
        complain(&format!("MPI failed between the ranks: {e}; what was measured is in the journal of --out"));
        beff_ffi::universe::abort(i32::from(Exit::Failure.code()));
        std::process::exit(i32::from(Exit::Failure.code()))
    });
    conclude(world, config, args, &run_dir, ending, collector)
}

/// Cleans up and reports; the exit code is rank 0's on all ranks.
fn conclude(
    world: &Comm,
    config: &Config,
    args: &IoArgs,
    run_dir: &RunDir,
    mut ending: Ending,
    collector: Option<Collector>,
) -> anyhow::Result<Exit> {
    // After a signal the launcher may kill soon: the result first, then the files, whose names are gone already.
    let first = ending.outcome == Outcome::Interrupted;
    let mut left = None;
    if !first {
        let begin = Instant::now();
        left = clean_up(world, run_dir, config, ending.outcome);
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
        // Files before stdout: after a signal Open MPI's mpirun stops reading, and a rank that prints waits until its kill.
        let written = outputs.map(|outputs| outputs.write(&result, &derived));
        publish(table::table(&result, &derived, args.details).as_bytes());
        match written {
            None => {}
            Some(Ok(paths)) => paths.iter().for_each(|path| complain(&format!("wrote {}", path.display()))),
            Some(Err(e)) => {
                complain(&e.to_string());
                exit = Exit::Failure;
            }
        }
    }
    if first {
        if let Some(Warning::FilesLeft { path, reason }) = clean_up(world, run_dir, config, Outcome::Interrupted) {
            complain(&format!("{path} could not be removed: {reason}"));
        }
    }
    let mut code = [f64::from(exit.code())];
    world.bcast_f64(&mut code, 0)?;
    Ok(Exit::from_code(code[0] as u8))
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

/// Storage facts of rank 0 on all ranks.
fn storage_of(world: &Comm, path: &Path) -> anyhow::Result<StorageRecord> {
    let mine: Result<StorageRecord, String> =
        if world.is_root() { storage_record(path).map_err(|e| e.to_string()) } else { Err(String::new()) };
    let bytes = world.bcast_bytes(serde_json::to_vec(&mine)?, 0)?;
    let shared: Result<StorageRecord, String> = serde_json::from_slice(&bytes)?;
    shared.map_err(|e| UsageError::new(e, "Nothing was measured.").into())
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

/// Outputs on rank 0; a failure there is a failure everywhere.
fn open_outputs(world: &Comm, config: &Config) -> anyhow::Result<Option<Outputs>> {
    let mut outputs = None;
    let mut error = None;
    if let (true, Some(prefix)) = (world.is_root(), &config.out) {
        match Outputs::create(prefix, &config.backends) {
            Ok(o) => outputs = Some(o),
            Err(e) => error = Some(e.to_string()),
        }
    }
    match crate::engine::agree::first_message(world, error)? {
        None => Ok(outputs),
        Some((_, message)) => Err(UsageError::new(message, "Choose another --out.").into()),
    }
}

/// A name that no other run has: time and process of rank 0.
fn run_dir_name(world: &Comm, config: &Config) -> anyhow::Result<String> {
    let name = config.run_dir.clone().unwrap_or_else(|| {
        let now = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%S");
        format!("beff-raw-{now}-{}", std::process::id())
    });
    let bytes = world.bcast_bytes(name.into_bytes(), 0)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Removes the run directory on rank 0, unless the user wants to keep it.
fn clean_up(world: &Comm, run_dir: &RunDir, config: &Config, outcome: Outcome) -> Option<Warning> {
    // Every rank has closed its files, or will not use them any more.
    if outcome != Outcome::Failed {
        let _ = world.barrier();
    }
    if !world.is_root() || (config.keep_files && outcome == Outcome::Complete) || !run_dir.path().exists() {
        return None;
    }
    run_dir
        .remove()
        .err()
        .map(|e| Warning::FilesLeft { path: run_dir.path().display().to_string(), reason: e.to_string() })
}
