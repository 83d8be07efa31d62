//! `beff-raw [io]`: measures b_eff_io.

use std::path::Path;

use anyhow::anyhow;
use beff_backends::TransferBuffer;
use beff_ffi::{Comm, Universe};

use super::cli::IoArgs;
use super::config::{Config, ExchangePolicy, SpaceLimit, Variant};
use super::continuation;
use super::pattern_type::PatternType;
use super::plan::hints::for_open;
use super::plan::run::{writing_backends, Facts, RunPlan};
use super::plan::space::PartitionSpace;
use super::plan::time_limit::fitting_time_seconds;
use super::records::{IoEnding, JournalLine, Manifest, PartitionRecord, RunResult, SetUpTimes};
use super::report::suffixes;
use super::run::cut_run::CutRun;
use super::run::drivers::driver_options;
use super::run::execute::execute;
use super::run::run_limit::RunLimit;
use super::run::state::{find_unshareable, RunState};
use crate::frame::backends;
use crate::frame::command::binding::bind_and_survey;
use crate::frame::command::finish::{acceptance_exit, measure_and_report, MeasuredFiles, ScreenOutput};
use crate::frame::command::observer::ResultCollector;
use crate::frame::command::progress::remaining;
use crate::frame::command::progress::RunTitle;
use crate::frame::command::start::{CommandError, MeasurementSetup};
use crate::frame::command::{backend_capabilities, directory, start, time_limit};
use crate::frame::error::{Exit, UsageError};
use crate::frame::rank_directories::RankDirectories;
use crate::frame::records::{AccessMethod, StorageRecord, TimeLimitRecord};
use crate::frame::report::{DetailLevel, Outputs, Views};
use crate::frame::run::availability::{self, SkippedBackend};
use crate::frame::run::clock::Instant;
use crate::frame::run::run_dir::RunDir;
use crate::frame::run::variants::ContestantRequests;
use crate::frame::run::RunObserver;
use crate::frame::system::memory::process_age_seconds;
use crate::frame::system::storage::is_space_unknown;
use crate::frame::system::survey::{io_layer, Survey};
use crate::frame::units::{count, format_seconds, format_size};
use crate::frame::values::acceptance::Acceptance;

/// Runs the command. Every rank returns the same exit code; rank 0 alone reports the cause.
///
/// # Errors
/// The cause that ended the run before there was a result.
pub fn run(args: &IoArgs) -> anyhow::Result<Exit> {
    start::run_under_mpi(|universe, world| {
        // Rank 0 reads the command line and the hints file for all, so that every rank has the same configuration.
        let config = start::broadcast_from_root(world, "configuration", || args.config(&backend_capabilities()))?;
        measure(universe, world, &config, args)
    })
}

fn measure(universe: &Universe, world: &Comm, config: &Config, args: &IoArgs) -> Result<Exit, CommandError> {
    let (start_seconds, mut begin) = (process_age_seconds(), Instant::now());
    let survey = bind_and_survey(world, config.bind)?;
    let mut storage = start::survey_storage(world, &config.path)?;
    let journal = args.run.continued.as_deref();
    let cut = start::broadcast_from_root(world, "journal", || {
        journal.map(|path| continuation::load(path, config, world.size())).transpose()
    })?;
    let plan = start::collective_step(world, "plan", || match journal.zip(cut.as_ref()) {
        None => build_plan(config, survey.memory_per_rank_bytes, &survey, &storage, world.size()),
        Some((path, cut)) => build_plan_of(path, cut, config, &survey, world.size()),
    })?;
    let MeasurementSetup { costs, interrupt, time_limit, machine } =
        start::prepare_measurement(universe, world, &survey, (config.latency, config.time_limit))?;
    let time_limit = time_limit.map(|record| with_fitting_time(record, config, &plan));

    let cut = start::collective_step(world, "continuation", || {
        if let (Some((path, cut)), Some(machine)) = (journal.zip(cut.as_ref()), &machine) {
            continuation::check_machine(path, &cut.manifest.machine, machine)?;
        }
        Ok(journal.zip(cut).map(|(path, cut)| CutRun::new(path.display().to_string(), cut)))
    })?;
    let text = format!("b_eff_io on {} ranks", world.size());
    let title = || RunTitle::new(text, &config.backends, Some(&config.path));
    let progress = start::open_progress(world, &args.progress, title)?;
    let outputs = start::open_outputs(world, config.out.as_deref(), &suffixes(&config.backends))?;
    let (run_dir, outputs) = prepare_directory(world, config, &mut storage, &survey, outputs)?;
    let cut = cut.map(|cut| cut.with_directory(&run_dir));
    let collector = machine.map(|machine| {
        let manifest = Manifest {
            mpi_io_layer: io_layer(&machine.mpi_library, &machine.environment),
            machine,
            storage,
            run_dir: run_dir.path().display().to_string(),
            period_bytes: plan.period_bytes,
        };
        let result = RunResult::new(config.clone(), manifest, costs, partition_records(&plan));
        ResultCollector::new(result, outputs, progress)
            .with_evaluator(super::values::repetition_needs)
            .with_time_limit(time_limit.clone())
    });
    let survey_seconds = lap_seconds(&mut begin);
    let work = |observer: &mut dyn RunObserver<JournalLine>| {
        let not_run = skip_contestants(world, config, &run_dir)?;
        let mut run = start::collective_step(world, "memory", || {
            RunState::new(world, config, &plan, &run_dir, &interrupt, &not_run, observer).map_err(|e| anyhow!(e))
        })?;
        run.limit = RunLimit::new(time_limit.clone());
        run.cut = cut.as_ref();
        run.hosts = survey.hosts as usize;
        run.recorder.host = survey.host;
        start::announce_run(world, &args.progress, config.out.as_deref(), || {
            announce(config, world.size(), run.all_seconds) + &time_limit::announcement(time_limit.as_ref())
        });
        let preparation_seconds = lap_seconds(&mut begin);
        let set_up = SetUpTimes { start_seconds, survey_seconds, preparation_seconds, journal_seconds: 0.0 };
        Ok(IoEnding { set_up: Some(set_up), ..start::unwrap_or_abort(execute(&mut run)) })
    };
    let files = MeasuredFiles { run_dir: &run_dir, keep: config.keep_files };
    measure_and_report(world, Some(files), collector, work, |result, derived, place| {
        let sheet = result.sheet(derived, DetailLevel::of(args.full, args.details), place);
        let judged = Acceptance::of(&result.required_figures(derived));
        let exit = judged.map_or(Exit::Ok, |judged| acceptance_exit(judged.verdict, args.undecided.inconclusive));
        ScreenOutput { sheet, remark: None, exit }
    })
}

/// Creates the run directory, and completes the record of the storage with a trial of direct I/O and the storage sheet. Collective.
///
/// # Errors
/// Equal on every rank; MPI errors.
fn prepare_directory(
    world: &Comm,
    config: &Config,
    storage: &mut StorageRecord,
    survey: &Survey,
    outputs: Option<Outputs>,
) -> Result<(RunDir, Option<Outputs>), CommandError> {
    let run_name = config.run_dir.as_deref();
    let files = (config.backends.as_slice(), RankDirectories::new(world.size(), config.files_per_directory));
    let stripe = (storage.fs_type.as_str(), config.stripe);
    let (mut run_dir, outputs) =
        directory::create_run_directory(world, &config.path, run_name, files, stripe, outputs)?;
    directory::try_direct_io(world, &mut run_dir, storage, config.first_direct(), config.dio_align_bytes)?;
    let parameters = (config.backends.as_slice(), config.storage.as_slice());
    directory::query_storage_sheet(world, &run_dir, storage, parameters, &survey.description.hosts)?;
    Ok((run_dir, outputs))
}

/// The contestants that cannot work here, or would measure what another one does. Collective.
///
/// # Errors
/// Everywhere: none is left, or the storage failed in a trial. MPI errors.
fn skip_contestants(world: &Comm, config: &Config, run_dir: &RunDir) -> Result<Vec<SkippedBackend>, CommandError> {
    let options = |name: &str| driver_options(config, run_dir, name);
    let mut not_run = start::skip_unavailable_backends(world, run_dir, &config.backends, options)?;
    let mut refused = find_unshareable(world, config, TransferBuffer::sharing_refusal)?;
    refused.retain(|found| availability::skip_reason(&not_run, &found.backend).is_none());
    start::report_skipped(world, &refused);
    not_run.extend(refused);
    availability::check_any_available(&config.backends, &not_run).map_err(|e| CommandError::Collective(e.into()))?;
    let hints = |name: &str| for_open(&config.of(name).hints, world.size(), AccessMethod::Write, PatternType::Scatter);
    let without_hints = |name: &str| {
        let own = config.variants.iter().find(|variant| variant.backend == name).cloned().unwrap_or_default();
        Variant { backend: backends::backend_of(name).to_owned(), hints: Vec::new(), ..own }
    };
    let requests = ContestantRequests {
        contestants: &config.backends,
        hints: &hints,
        driver: &options,
        are_alike: &|one, other| without_hints(one) == without_hints(other),
    };
    start::skip_ineffective_variants(world, run_dir, &requests, &mut not_run)?;
    Ok(not_run)
}

/// Seconds since `begin`, which is then now.
fn lap_seconds(begin: &mut Instant) -> f64 {
    let now = Instant::now();
    now.duration_since(std::mem::replace(begin, now)).as_secs_f64()
}

/// Adds the T that fits into the limit, if the requested one does not.
fn with_fitting_time(record: TimeLimitRecord, config: &Config, plan: &RunPlan) -> TimeLimitRecord {
    let available = record.seconds.map(|seconds| seconds - record.reserve_seconds);
    let planned_seconds = plan.planned_seconds(config);
    let fitting = available.and_then(|seconds| fitting_time_seconds(config.time_seconds, planned_seconds, seconds));
    TimeLimitRecord { fitting_time_seconds: fitting, ..record }
}

/// Line that announces the expected duration.
fn announce(config: &Config, ranks: u64, seconds: f64) -> String {
    let (backends, time, end) =
        (config.backends.join(", "), format_seconds(seconds.ceil()), remaining::end_time(seconds));
    let ranks = count(ranks, "rank");
    format!("b_eff_io on {ranks}, {backends}: about {time} of measurement, until about {end}")
}

/// The plan of a run that is continued: with its memory and its free space.
fn build_plan_of(
    path: &Path,
    cut: &RunResult,
    config: &Config,
    survey: &Survey,
    ranks: u64,
) -> anyhow::Result<RunPlan> {
    let Manifest { machine, storage, period_bytes, .. } = &cut.manifest;
    let plan = build_plan(config, machine.memory_per_rank_bytes, survey, storage, ranks)?;
    let planned = partition_records(&plan);
    continuation::check_plan(path, (&cut.partitions, *period_bytes), (&planned, plan.period_bytes))?;
    Ok(plan)
}

/// The plan of a run on this machine.
pub(super) fn build_plan(
    config: &Config,
    memory_per_rank_bytes: u64,
    survey: &Survey,
    storage: &StorageRecord,
    ranks: u64,
) -> anyhow::Result<RunPlan> {
    let writing = writing_backends(config);
    let limit = config.space_limit.bytes(storage.free_bytes);
    let is_untold = is_space_unknown(storage);
    if writing > 0 && is_untold && !matches!(config.space_limit, SpaceLimit::Bytes(_)) {
        return Err(UsageError::new(
            format!("{} under {} does not report its free space", storage.fs_type, storage.path),
            "Give --space in bytes, no more than are available.",
        )
        .into());
    }
    if writing > 0 && !is_untold && limit > storage.free_bytes {
        return Err(UsageError::new(
            format!("--space requests {limit} bytes, but only {} are free under {}", storage.free_bytes, storage.path),
            "Give a smaller --space or another --path.",
        )
        .into());
    }
    let facts = Facts {
        ranks,
        ranks_of_first_host: survey.ranks_of_first_host,
        memory_per_rank_bytes,
        cache_share_bytes: survey.cache_share_bytes,
        limit_bytes: (writing > 0).then_some(limit),
        writing_backends: writing,
    };
    let plan = RunPlan::new(config, &facts)
        .map_err(|e| UsageError::new(e.to_string(), "`beff-raw plan` shows what would fit."))?;
    check_memory(&plan, config, memory_per_rank_bytes)?;
    check_rank_options(config, ranks)?;
    Ok(plan)
}

fn check_rank_options(config: &Config, ranks: u64) -> Result<(), UsageError> {
    if let Some((given, wanted)) = aggregators(config).into_iter().find(|(_, wanted)| *wanted > ranks) {
        return Err(UsageError::new(
            format!("{given} {wanted}: only {ranks} ranks were started"),
            "Give at most the number of ranks, or omit the option.",
        ));
    }
    if ranks == 1 && config.exchange != ExchangePolicy::Auto {
        return Err(UsageError::new(
            "--set exchange has no effect: one rank alone has no exchange",
            "Omit it, or start more ranks.",
        ));
    }
    Ok(())
}

/// Requested numbers of aggregators, with the option that requests each.
fn aggregators(config: &Config) -> Vec<(String, u64)> {
    let of_run = config.aggregators.map(|wanted| ("--aggregators".to_owned(), wanted));
    let of_variant =
        |variant: &Variant| Some((format!("--variant {}: aggregators", variant.name()), variant.aggregators?));
    of_run.into_iter().chain(config.variants.iter().filter_map(of_variant)).collect()
}

/// Rejects calls and domains that exceed the memory of a rank, which would be killed during the run, or swap. Equal on all ranks.
fn check_memory(plan: &RunPlan, config: &Config, memory_per_rank_bytes: u64) -> Result<(), UsageError> {
    // Buffers of neighbours are counted at their owners, mapped files belong to the page cache.
    let needed = plan.rank_memory.own_bytes;
    if needed <= memory_per_rank_bytes {
        return Ok(());
    }
    Err(UsageError::new(
        format!(
            "calls of up to {}{} need {} in each rank, which has {}",
            format_size(plan.max_call_bytes),
            config.domain_bytes.map_or_else(String::new, |bytes| format!(" and domains of {}", format_size(bytes))),
            format_size(needed),
            format_size(memory_per_rank_bytes)
        ),
        "Give a smaller --memory-per-process, --set segment-multiple or --domain, or start fewer ranks on a node.",
    ))
}

fn partition_records(plan: &RunPlan) -> Vec<PartitionRecord> {
    let record = |p: &PartitionSpace| PartitionRecord {
        ranks: p.ranks,
        m_part_bytes: p.m_part_bytes,
        m_part_defined_bytes: p.m_part_defined_bytes,
        space_bytes: p.space_bytes,
        time_seconds: plan.partition_seconds,
    };
    plan.partitions.iter().map(record).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::records::{RunResult, StopReason};
    use crate::b_eff_io::report::fixtures;
    use crate::frame::benchmark::options_from_words;
    use crate::frame::command::finish::exit_code;
    use crate::frame::error::Exit;
    use crate::frame::records::RunOutcome;

    #[test]
    fn a_run_in_which_all_was_refused_is_no_measurement() {
        let refuse = |result: &mut RunResult, from: usize| {
            for p in &mut result.patterns[from..] {
                (p.ended, p.calls) = (StopReason::NotRun("no".into()), 0);
            }
        };
        let mut result = fixtures::ladder();
        result.errors.clear();
        assert_eq!(exit_code(&result), Exit::Ok);
        refuse(&mut result, 1);
        assert_eq!(exit_code(&result), Exit::Ok, "one pattern was run");
        refuse(&mut result, 0);
        assert_eq!(exit_code(&result), Exit::Usage);
        result.ending.outcome = RunOutcome::Interrupted;
        assert_eq!(exit_code(&result), Exit::Interrupted, "the rest of the run is unknown");
        result.ending.outcome = RunOutcome::Complete;
        result.errors = fixtures::failed().errors;
        assert_eq!(exit_code(&result), Exit::Failure);
    }

    #[test]
    fn what_needs_other_ranks_is_refused_without_them() {
        let check = |options: &str, ranks: u64| {
            let config =
                options_from_words::<IoArgs>(options.split_whitespace()).config(&backend_capabilities()).unwrap();
            check_rank_options(&config, ranks).map_err(|error| error.cause)
        };
        assert_eq!(check("--backend uring --aggregators 3 --set exchange=messages", 3), Ok(()));
        assert!(check("--backend uring --aggregators 4", 3).unwrap_err().contains("--aggregators 4: only 3"));
        assert!(check("--backend uring --set exchange=messages", 1).unwrap_err().contains("one rank alone"));
    }

    #[test]
    fn what_no_rank_has_the_memory_for_is_refused() {
        let check = |options: &str| {
            let config =
                options_from_words::<IoArgs>(options.split_whitespace()).config(&backend_capabilities()).unwrap();
            let facts = Facts {
                ranks: 2,
                ranks_of_first_host: 2,
                memory_per_rank_bytes: 1 << 30,
                cache_share_bytes: 1 << 20,
                limit_bytes: None,
                writing_backends: 0,
            };
            check_memory(&RunPlan::new(&config, &facts).unwrap(), &config, facts.memory_per_rank_bytes)
        };
        assert_eq!(check(""), Ok(()));
        assert_eq!(check("--memory-per-process 64G --backend uring --domain 64M"), Ok(()));
        let error = check("--memory-per-process 300T").unwrap_err();
        assert!(error.cause.contains("which has 1 GiB") && error.next_step.contains("--memory-per-process"), "{error}");
        let error = check("--backend uring --domain 1G").unwrap_err();
        assert!(error.cause.contains("domains of 1 GiB"), "{error}");
        let error = check("--set segment-multiple=2G").unwrap_err();
        assert!(error.cause.contains("calls of up to 2 GiB"), "{error}");
    }
}
