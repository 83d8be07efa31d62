//! `beff-raw tune`: searches a setting.

use std::path::Path;

use beff_ffi::{Comm, MpiError, Universe};
use beff_tuning::search::{Search, SearchPlan};
use beff_tuning::trial::{Factor, Trial};

use super::cli::TuneArgs;
use super::config::{SpaceLine, TuneConfig};
use super::continuation;
use super::plan::script;
use super::plan::space::{known_factors, Interpreter, SpaceFacts};
use super::records::{OmittedKey, TrialRecord, TuneEnding, TuneLine, TuneResult, TuneSetup};
use super::report::SUFFIXES;
use super::run::grants::{without_ungranted, SearchSpace};
use super::run::{execute, SearchRun};
use crate::frame::backends;
use crate::frame::command::binding::bind_and_survey;
use crate::frame::command::finish::measure_and_report;
use crate::frame::command::observer::ResultCollector;
use crate::frame::command::progress::{remaining, RunTitle};
use crate::frame::command::start::{CommandError, MeasurementSetup};
use crate::frame::command::{publish_once, start, time_limit};
use crate::frame::error::{Exit, UsageError};
use crate::frame::records::{InterferenceRecord, MachineRecord, RunOutcome, StorageRecord};
use crate::frame::report::{DetailLevel, Outputs, Views};
use crate::frame::run::clock::Instant;
use crate::frame::run::interference::{CpuObservation, HostCpus};
use crate::frame::run::interrupt::Interrupt;
use crate::frame::run::trials::TrialRunner;
use crate::frame::run::RunObserver;
use crate::frame::system::memory::high_water_bytes;
use crate::frame::system::survey::{io_layer, Survey, LIBRARY_CHARS};
use crate::frame::trials::{TrialConfig, TrialGoal};
use crate::frame::units::{count, format_seconds};

/// Opens the trials of patterns or of a recording. Collective.
pub(crate) type OpenTrials =
    for<'a> fn(&'a Comm, &'a Interrupt, &'a Survey, &TrialConfig) -> Result<Box<dyn TrialRunner + 'a>, CommandError>;

/// Runs the command. Every rank returns the same exit code; rank 0 alone reports the cause.
///
/// # Errors
/// The cause that ended the search before there was a result.
pub(crate) fn run(args: &TuneArgs, open_trials: OpenTrials) -> anyhow::Result<Exit> {
    if args.script {
        let library = beff_ffi::library_version(LIBRARY_CHARS).unwrap_or_else(|_| beff_ffi::built_with().into());
        let text = script::launches(&args.config()?, interpreter(&library, &args.backend));
        let text = text.ok_or_else(|| {
            let cause = format!("--script: no setting of {} with {library} needs a launch of its own", args.backend);
            UsageError::new(cause, "Omit --script: tune tries all settings in one launch.")
        })?;
        publish_once(text.as_bytes())?;
        return Ok(Exit::Ok);
    }
    start::run_under_mpi(|universe, world| {
        let config = start::broadcast_from_root(world, "configuration", || args.config())?;
        search(universe, world, (&config, args), open_trials)
    })
}

fn search(
    universe: &Universe,
    world: &Comm,
    (config, args): (&TuneConfig, &TuneArgs),
    open_trials: OpenTrials,
) -> Result<Exit, CommandError> {
    let begin = Instant::now();
    let survey = bind_and_survey(world, config.trials.bind)?;
    let storage = start::survey_storage(world, &config.trials.path)?;
    let journal = args.continued.as_deref();
    let cut = start::broadcast_from_root(world, "journal", || {
        journal.map(|path| continuation::load(path, config)).transpose()
    })?;
    let MeasurementSetup { interrupt, time_limit, machine, .. } =
        start::prepare_measurement(universe, world, &survey, (false, config.time_limit))?;
    let title = || RunTitle::new(format!("tune on {} ranks", world.size()), &[], Some(&config.trials.path));
    let progress = start::open_progress(world, &args.progress, title)?;
    let outputs = start::open_outputs(world, config.out.as_deref(), &SUFFIXES.map(str::to_owned))?;
    let opened = open_trials(world, &interrupt, &survey, &config.trials).and_then(|mut runner| {
        let found = prepare(world, runner.as_mut(), (config, machine), &survey, storage, journal.zip(cut.as_ref()));
        if found.is_err() {
            let _ = runner.clean_up(RunOutcome::Failed);
        }
        Ok((runner, found?))
    });
    let (mut runner, (plan, setup)) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            outputs.into_iter().for_each(Outputs::discard);
            return Err(error);
        }
    };
    let kept: Vec<TrialRecord> = cut.map_or_else(Vec::new, |cut| cut.trials);
    let judged: Vec<Trial> = kept.iter().map(TrialRecord::judged).collect();
    let (mut search, used) = Search::resume(plan, &judged);
    let collector = setup.map(|setup| {
        let mut collector = ResultCollector::new(TuneResult::new(config.clone(), setup), outputs, progress)
            .with_time_limit(time_limit.clone());
        kept[..used].iter().for_each(|record| collector.record(TuneLine::Trial(Box::new(record.clone()))));
        collector
    });
    let work = |observer: &mut dyn RunObserver<TuneLine>| {
        start::announce_run(world, &args.progress, config.out.as_deref(), || {
            announcement(config, &runner.work(), world.size()) + &time_limit::announcement(time_limit.as_ref())
        });
        let earlier_seconds = search.trials().last().map_or(0.0, |trial| trial.end_seconds);
        let mut run = SearchRun {
            world,
            runner: runner.as_mut(),
            observer,
            begin,
            earlier_seconds,
            budget_seconds: config.budget_seconds,
            backend: config.trials.backend.clone(),
        };
        let (outcome, interference) = start::unwrap_or_abort(observed(&mut run, &mut search));
        let left = runner.clean_up(outcome);
        left.into_iter().for_each(|warning| observer.record(TuneLine::Warning(warning)));
        let real_seconds = begin.elapsed().as_secs_f64();
        let rank_memory_high_water_bytes = high_water_bytes().unwrap_or(0);
        Ok(TuneEnding { outcome, real_seconds, rank_memory_high_water_bytes, interference })
    };
    measure_and_report(world, None, collector, work, |result, derived, place| {
        result.sheet(derived, DetailLevel::of(args.full, false), place).into()
    })
}

/// The search, and how far others used the CPUs meanwhile. Collective.
fn observed(run: &mut SearchRun, search: &mut Search) -> Result<(RunOutcome, Option<InterferenceRecord>), MpiError> {
    let cpus = HostCpus::survey(run.world)?;
    let mut observation = CpuObservation::default();
    observation.resume(&cpus);
    let outcome = execute(run, search)?;
    observation.pause(&cpus);
    Ok((outcome, observation.end(&cpus, run.world)?))
}

/// The plan of the search, and its set-up on rank 0. Collective.
fn prepare(
    world: &Comm,
    runner: &mut dyn TrialRunner,
    (config, machine): (&TuneConfig, Option<MachineRecord>),
    survey: &Survey,
    storage: StorageRecord,
    continued: Option<(&Path, &TuneResult)>,
) -> Result<(SearchPlan, Option<TuneSetup>), CommandError> {
    let space = search_space(world, runner, config, survey, &storage)?;
    let has_others = has_others(config);
    let setup = machine.map(|machine| TuneSetup {
        mpi_io_layer: io_layer(&machine.mpi_library, &machine.environment),
        machine,
        storage,
        work: runner.work(),
        default_hints: space.default_hints.clone(),
        factors: space.factors.clone(),
        omitted: space.omitted.clone(),
        has_others,
    });
    start::collective_step(world, "continuation", || {
        if let (Some((path, cut)), Some(setup)) = (continued, setup.as_ref()) {
            continuation::check(path, &cut.setup, setup)?;
        }
        Ok(())
    })?;
    Ok((SearchPlan { factors: space.factors, budget_seconds: config.budget_seconds, has_others }, setup))
}

fn announcement(config: &TuneConfig, work: &str, ranks: u64) -> String {
    let (time, end) = (format_seconds(config.budget_seconds), remaining::end_time(config.budget_seconds));
    format!("tune on {}, {}: {work}, at most {time}, until {end}", count(ranks, "rank"), config.trials.backend)
}

/// Who interprets the keys of a backend.
fn interpreter(library: &str, backend: &str) -> Interpreter {
    match backend {
        "uring" => Interpreter::Uring,
        "posix" => Interpreter::Posix,
        "mpiio" => {
            let environment: Vec<(String, String)> = std::env::vars().collect();
            let layer = io_layer(library, &environment);
            match layer.to_ascii_lowercase() {
                layer if layer.starts_with("ompio") => Interpreter::Ompio,
                layer if layer.starts_with("romio") => Interpreter::Romio,
                _ => Interpreter::Other,
            }
        }
        _ => Interpreter::Other,
    }
}

/// True if the types have other chunk sizes than those of the goal.
fn has_others(config: &TuneConfig) -> bool {
    let trials = &config.trials;
    trials.profile.is_none() && (!trials.chunks_bytes.is_empty() || matches!(trials.goal, TrialGoal::Pattern(_)))
}

/// Keys and values to try: those of the space file, or those that this program knows, without those that the library does not grant.
fn search_space(
    world: &Comm,
    runner: &mut dyn TrialRunner,
    config: &TuneConfig,
    survey: &Survey,
    storage: &StorageRecord,
) -> Result<SearchSpace, CommandError> {
    let trials = &config.trials;
    let library = beff_ffi::library_version(LIBRARY_CHARS)?;
    let default_hints = runner.granted_hints(&trials.hints)?.unwrap_or_default();
    let facts = SpaceFacts {
        interpreter: interpreter(&library, &trials.backend),
        access: trials.access,
        types: &trials.types,
        ranks: world.size(),
        hosts: survey.hosts,
        memory_per_rank_bytes: survey.memory_per_rank_bytes,
        fs_type: &storage.fs_type,
        default_hints: &default_hints,
    };
    let (factors, omitted) = match &config.space {
        Some(lines) => {
            let factor = |line: &SpaceLine| Factor { key: line.key.clone(), values: line.values.clone() };
            (lines.iter().map(factor).collect(), Vec::new())
        }
        None => known_factors(&facts),
    };
    let omitted = omitted.into_iter().map(|(key, reason)| OmittedKey { key, reason }).collect();
    let has_hints = backends::supports(&trials.backend, |row| row.has_hints);
    let found = SearchSpace { factors, omitted, default_hints };
    Ok(if has_hints { without_ungranted(runner, &trials.hints, found)? } else { found })
}
