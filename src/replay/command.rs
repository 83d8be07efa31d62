//! `beff-raw replay`: replays a profile.

use beff_backends::driver;
use beff_ffi::{Comm, Universe};

use super::abort::abort_run;
use super::cli::ReplayArgs;
use super::config::ReplayConfig;
use super::open_profile::{check_content, derive_order, store_derived, OpenProfile};
use super::plan::cache_cold::cache_cold_bytes;
use super::plan::call_change::CallChange;
use super::prepare::{combine_totals, prepare_run, storing_backends, VariantTotals};
use super::records::{BackendOmissions, ProfileFacts, ReplayEnding, ReplayLine, ReplayResult, ReplaySetup};
use super::report::{plan as plan_text, repetitions_text, SUFFIXES};
use super::run::execution::{driver_options, execute, replay_support};
use super::run::scan::ScanTotals;
use crate::frame::command::binding::bind_and_survey;
use crate::frame::command::finish::{measure_and_report, MeasuredFiles};
use crate::frame::command::observer::ResultCollector;
use crate::frame::command::progress::RunTitle;
use crate::frame::command::start::{CommandError, MeasurementSetup};
use crate::frame::command::{
    backend_capabilities, directory, planned_cache_share, planned_memory_per_rank, publish_once, start, time_limit,
};
use crate::frame::error::{Exit, UsageError};
use crate::frame::rank_directories::RankDirectories;
use crate::frame::records::{RunOutcome, StorageRecord, TimeLimitRecord};
use crate::frame::report::text::count;
use crate::frame::report::{DetailLevel, Views};
use crate::frame::run::run_dir::RunDir;
use crate::frame::run::variants::ContestantRequests;
use crate::frame::run::RunObserver;
use crate::frame::system::survey::Survey;
use crate::frame::units::format_seconds;

/// Runs the command. Every rank ends with the same exit code; rank 0 alone reports the reason.
///
/// # Errors
/// An error before a result exists.
pub fn run(args: &ReplayArgs) -> anyhow::Result<Exit> {
    if args.output.plan {
        let config = configuration(args)?;
        let mut profile = OpenProfile::open(&config)?;
        profile.derived = store_derived(derive_order(&config)?.as_deref())?;
        let refusals = replay_support(&config);
        let ranks = profile.head.processes.len() as u64;
        let cold_bytes = cache_cold_bytes(planned_cache_share(ranks)?.1, planned_memory_per_rank(None, ranks)?);
        let scan = |change| {
            let scans = profile.scan_input(&config, &refusals, cold_bytes, change).scan_all();
            let scans = scans.map_err(|what| profile.error(&config, &what))?;
            Ok::<_, UsageError>(scans.into_iter().map(|scan| scan.totals).collect::<Vec<_>>())
        };
        let ranks: Vec<ScanTotals> = scan(None)?;
        let facts = profile.facts(&ranks.iter().collect::<Vec<_>>());
        check_content(&facts)?;
        let change = profile.plan_change(&config)?;
        let changed = change.as_ref().map(|change| scan(Some(change))).transpose()?.map(combine_totals);
        let sums = VariantTotals { unchanged: combine_totals(ranks), changed };
        let space_bytes = sums.required_space_bytes(&config, &profile.head);
        let data_bytes = sums.data_bytes(&config, cold_bytes)?;
        let omissions = sums.omissions_by_backend(&config);
        let text = plan_text::plan_text(&config, &facts, change.as_ref(), &omissions, [space_bytes, data_bytes]);
        publish_once(text.as_bytes())?;
        return Ok(Exit::Ok);
    }
    start::run_under_mpi(|universe, world| {
        let config = start::broadcast_from_root(world, "configuration", || configuration(args))?;
        run_measurement(universe, world, &config, args)
    })
}

fn configuration(args: &ReplayArgs) -> Result<ReplayConfig, UsageError> {
    args.config(&backend_capabilities(), |name| driver(name).is_some_and(|row| row.replay.is_some()))
}

/// Tries direct I/O and queries the storage sheet, where the files will be. Collective.
fn examine_storage(
    world: &Comm,
    config: &ReplayConfig,
    run_dir: &mut RunDir,
    storage: &mut StorageRecord,
    survey: &Survey,
) -> Result<(), CommandError> {
    directory::try_direct_io(world, run_dir, storage, config.first_direct(), config.dio_align_bytes)?;
    let parameters = (config.backends.as_slice(), config.storage.as_slice());
    directory::query_storage_sheet(world, run_dir, storage, parameters, &survey.description.hosts)
}

fn run_title(world: &Comm, config: &ReplayConfig) -> RunTitle {
    RunTitle::new(format!("replay on {} ranks", world.size()), &config.backends, Some(&config.path))
}

fn run_measurement(
    universe: &Universe,
    world: &Comm,
    config: &ReplayConfig,
    args: &ReplayArgs,
) -> Result<Exit, CommandError> {
    let survey = bind_and_survey(world, config.bind)?;
    let mut ready = prepare_run(world, config, &survey)?;
    let omissions = ready.calls.sums.omissions_by_backend(config);
    let MeasurementSetup { costs, interrupt, time_limit, machine } =
        start::prepare_measurement(universe, world, &survey, (false, config.time_limit))?;
    let progress = start::open_progress(world, &args.output.progress, || run_title(world, config))?;
    let outputs = start::open_outputs(world, config.out.as_deref(), &SUFFIXES.map(str::to_owned))?;
    let run_name = config.run_dir.as_deref();
    let files = (config.backends.as_slice(), RankDirectories::NONE);
    let stripe = (ready.storage.fs_type.as_str(), config.stripe);
    let (mut run_dir, outputs) =
        directory::create_run_directory(world, &config.path, run_name, files, stripe, outputs)?;
    examine_storage(world, config, &mut run_dir, &mut ready.storage, &survey)?;
    let announcement =
        announcement(config, (&ready.facts, time_limit.as_ref()), ready.calls.change.as_ref(), &omissions);
    let interrupt = interrupt.share_limit(world)?;
    let collector = machine.map(|machine| {
        let setup = ReplaySetup {
            machine,
            storage: ready.storage.clone(),
            run_dir: run_dir.path().display().to_string(),
            profile: ready.facts.clone(),
            omissions,
            space_bytes: ready.space_bytes,
            data_bytes: ready.data_bytes,
            clock_resolution_ns: costs.clock_resolution_ns,
            clock_read_ns: costs.clock_read_ns,
            barrier_ns: costs.barrier_ns,
        };
        ResultCollector::new(ReplayResult::new(config.clone(), setup), outputs, progress).with_time_limit(time_limit)
    });
    start::announce_run(world, &args.output.progress, config.out.as_deref(), || announcement);
    let work = |observer: &mut dyn RunObserver<ReplayLine>| {
        let options = |name: &str| driver_options(config, &run_dir, name);
        let contestants = config.contestants_to_check();
        let mut not_run = start::skip_unavailable_backends(world, &run_dir, &contestants, options)?;
        let requests = ContestantRequests {
            contestants: &contestants,
            hints: &|name| config.hints_of(name),
            driver: &options,
            are_alike: &|one, other| config.direct_of(one) == config.direct_of(other),
        };
        start::skip_ineffective_variants(world, &run_dir, &requests, &mut not_run)?;
        let means = ready.context(config, (&run_dir, &not_run), &interrupt);
        let replay = |means| execute(means, observer).unwrap_or_else(|stuck| abort_run(&stuck, &run_dir));
        let ending = means.as_ref().map(replay).unwrap_or_default();
        world.idle_barrier()?; // with the ranks beyond the recorded ones
        Ok(ReplayEnding { outcome: outcome_from_root(world, ending.outcome)?, ..ending })
    };
    let files = MeasuredFiles { run_dir: &run_dir, keep: config.keep_files };
    measure_and_report(world, Some(files), collector, work, |result, derived, place| {
        result.sheet(derived, DetailLevel::of(args.output.full || args.output.detail.is_some(), false), place).into()
    })
}

fn outcome_from_root(world: &Comm, mine: RunOutcome) -> Result<RunOutcome, CommandError> {
    let bytes = world.bcast_bytes(serde_json::to_vec(&mine)?, 0)?;
    Ok(serde_json::from_slice(&bytes)?)
}

/// Text before the run: its size, and omitted calls.
fn announcement(
    config: &ReplayConfig,
    (facts, time_limit): (&ProfileFacts, Option<&TimeLimitRecord>),
    change: Option<&CallChange>,
    leavings: &[BackendOmissions],
) -> String {
    let mut text = format!(
        "replaying {} of {}, {}: {}",
        count(facts.calls, "call"),
        count(facts.processes, "process"),
        match facts.is_handwritten() {
            true => "written by hand".to_owned(),
            false => format!("recorded in {}", format_seconds(facts.span_seconds)),
        },
        repetitions_text(config.repeat, config.verify && storing_backends(config) > 0)
    ) + &time_limit::announcement(time_limit);
    if let Some(change) = change {
        text.push_str(&format!("\n  what-if: {}", change.text()));
    }
    for BackendOmissions { backend, omitted: left_out } in leavings {
        for l in left_out {
            text.push_str(&format!("\n  {backend} omits {} of {}: {}", count(l.calls, "call"), l.function, l.reason));
        }
    }
    if facts.calls_discarded > 0 {
        text.push_str(&format!(
            "\n  {} not replayed: they follow a collective call that other ranks never made",
            count(facts.calls_discarded, "call")
        ));
    }
    text
}
