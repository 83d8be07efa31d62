//! `beff-raw comm`: measures b_eff.

use anyhow::anyhow;
use beff_ffi::{Comm, Universe};

use super::cli::CommArgs;
use super::config::CommConfig;
use super::plan::CommPlan;
use super::records::{Announcement, CommLine, CommResult, CommSetup};
use super::report::plan as comm_plan;
use super::report::SUFFIXES;
use super::run::CommRun;
use crate::frame::command::binding::bind_and_survey;
use crate::frame::command::finish::measure_and_report;
use crate::frame::command::observer::ResultCollector;
use crate::frame::command::progress::remaining;
use crate::frame::command::progress::RunTitle;
use crate::frame::command::start::{CommandError, MeasurementSetup};
use crate::frame::command::{planned_memory_per_rank, publish_json_once, publish_once, start, time_limit};
use crate::frame::config::RepetitionPolicy;
use crate::frame::error::{Exit, UsageError};
use crate::frame::report::text::{count, percent};
use crate::frame::report::{DetailLevel, Views};
use crate::frame::run::agree;
use crate::frame::run::interference::HostCpus;
use crate::frame::run::job_limit::JobLimit;
use crate::frame::run::RunObserver;
use crate::frame::system::launcher::binding_source;
use crate::frame::system::placement::{detect_transport, rank_numbering};
use crate::frame::system::survey::Survey;
use crate::frame::units::format_seconds;

/// Largest number of ranks for which the rings are listed rank by rank.
const MAX_LISTED_RANKS: u64 = 100_000;

/// Runs the command. Every rank exits with the same code; rank 0 alone reports the reason.
///
/// # Errors
/// An error that ended the run before there was a result.
pub fn run(args: &CommArgs) -> anyhow::Result<Exit> {
    if let Some(ranks) = args.plan {
        return show_plan(args, ranks);
    }
    start::run_under_mpi(|universe, world| {
        let config = start::broadcast_from_root(world, "configuration", || args.config())?;
        run_measurement(universe, world, &config, args)
    })
}

fn show_plan(args: &CommArgs, ranks: u64) -> anyhow::Result<Exit> {
    let config = args.config()?;
    let plan = make_plan(&config, ranks, planned_memory_per_rank(config.memory_per_process_bytes, ranks)?)?;
    if args.json && ranks > MAX_LISTED_RANKS {
        return Err(UsageError::new(
            format!("--json lists every ring rank by rank: too long for {ranks} ranks"),
            format!("Omit --json, or specify at most {MAX_LISTED_RANKS} ranks."),
        )
        .into());
    }
    if args.json {
        publish_json_once(&plan)?;
    } else {
        publish_once(comm_plan::text(&plan).as_bytes())?;
    }
    Ok(Exit::Ok)
}

fn make_plan(config: &CommConfig, ranks: u64, memory_bytes: u64) -> Result<CommPlan, UsageError> {
    let plan = CommPlan::new(ranks, config.seed, memory_bytes, &config.families)
        .map_err(|e| UsageError::new(e.to_string(), "`beff-raw comm --plan N` shows the plan."))?;
    if plan.patterns.is_empty() {
        return Err(UsageError::new("--families names no pattern that these ranks have", "Add ring."));
    }
    Ok(plan)
}

fn run_measurement(
    universe: &Universe,
    world: &Comm,
    config: &CommConfig,
    args: &CommArgs,
) -> Result<Exit, CommandError> {
    if world.size() < 2 {
        let alone = UsageError::new(
            "b_eff measures messages between processes, and there is only one",
            "Start at least two: mpirun -n 2 beff-raw comm.",
        );
        return Err(CommandError::Collective(alone.into()));
    }
    let survey = bind_and_survey(world, config.bind)?;
    let memory_bytes = config.memory_per_process_bytes.unwrap_or(survey.memory_per_rank_bytes);
    let plan = start::collective_step(world, "plan", || {
        let plan = make_plan(config, world.size(), memory_bytes)?;
        check_memory(&plan, config, &survey)?;
        Ok(plan)
    })?;
    let MeasurementSetup { costs, interrupt, time_limit, machine } =
        start::prepare_measurement(universe, world, &survey, (false, config.time_limit))?;
    let title = || RunTitle::new(format!("b_eff on {} ranks", world.size()), &[], None);
    let progress = start::open_progress(world, &args.progress, title)?;
    let outputs = start::open_outputs(world, config.out.as_deref(), &SUFFIXES.map(str::to_owned))?;
    let collector = machine.map(|machine| {
        let placement = survey.description.placement();
        let hosts: Vec<u64> = placement.iter().map(|p| p.host).collect();
        let setup = CommSetup {
            transport: detect_transport(&machine.mpi_library),
            machine,
            numbering: rank_numbering(&hosts),
            placement,
            binding: binding_source(|name| std::env::var(name).ok()),
            lmax_bytes: plan.lmax_bytes,
            sizes_bytes: plan.sizes_bytes.clone(),
            patterns: plan.patterns.len() as u64,
            clock_resolution_ns: costs.clock_resolution_ns,
            clock_read_ns: costs.clock_read_ns,
            barrier_ns: costs.barrier_ns,
        };
        ResultCollector::new(CommResult::new(config.clone(), setup), outputs, progress)
            .with_time_limit(time_limit.clone())
    });
    // A communicator of their own: no other message can match.
    let comm = start::unwrap_or_abort(world.duplicate());
    let work = |observer: &mut dyn RunObserver<CommLine>| {
        let left_seconds = interrupt.limit().map_or(f64::INFINITY, JobLimit::left_seconds);
        // The effort is chosen for the time that the limit leaves.
        let limit_seconds = config.time_seconds.min(agree::broadcast(world, left_seconds)?);
        let cpus = start::unwrap_or_abort(HostCpus::survey(&comm));
        let mut run = start::collective_step(world, "memory", || {
            CommRun::new(&comm, &plan, (config, limit_seconds), cpus, &interrupt, observer).map_err(|e| anyhow!(e))
        })?;
        let announcement = start::unwrap_or_abort(run.announce());
        start::announce_run(world, &args.progress, config.out.as_deref(), || {
            announcement_text(config, &announcement, world.size()) + &time_limit::announcement(time_limit.as_ref())
        });
        Ok(start::unwrap_or_abort(run.execute()))
    };
    measure_and_report(world, None, collector, work, |result, derived, place| {
        result.sheet(derived, DetailLevel::of(args.full, args.details), place).into()
    })
}

/// Rejects message memory above half of the memory of a rank.
fn check_memory(plan: &CommPlan, config: &CommConfig, survey: &Survey) -> Result<(), UsageError> {
    let needed = 2 * CommRun::layout(plan, config.buffers).mapped_bytes();
    if needed <= survey.memory_per_rank_bytes / 2 {
        return Ok(());
    }
    Err(UsageError::new(
        format!(
            "messages of up to {} bytes need {needed} bytes in each rank, more than half of the {} it has",
            plan.lmax_bytes, survey.memory_per_rank_bytes
        ),
        "Specify a smaller --memory-per-process, or start fewer ranks per node.",
    ))
}

fn announcement_text(config: &CommConfig, a: &Announcement, ranks: u64) -> String {
    let expected = format_seconds(a.expected_seconds.ceil());
    let limit = format_seconds(a.limit_seconds);
    let repetitions = match (config.repeat, config.until_share) {
        (RepetitionPolicy::Off, _) => String::new(),
        (RepetitionPolicy::Auto, None) => ", then repetitions until then".to_owned(),
        (RepetitionPolicy::Auto, Some(share)) => {
            format!(", then repetitions until then or until the interval of b_eff is within {}", percent(share))
        }
        (RepetitionPolicy::Times(times), _) => format!(", then at most {}", count(times, "round")),
    };
    let end =
        remaining::end_time(if config.repeat == RepetitionPolicy::Off { a.expected_seconds } else { a.limit_seconds });
    let fits = if a.expected_seconds <= a.limit_seconds {
        format!("at most {limit}")
    } else {
        format!("LONGER than the {limit} of --time, which is too short even for the least effort")
    };
    let whole = if config.repeat == RepetitionPolicy::Off { "" } else { " for the value" };
    let quick = if config.quick { ", quick mode: value not comparable" } else { "" };
    let ranks = count(ranks, "rank");
    format!("b_eff on {ranks}: about {expected}{whole}, {fits}; until about {end}{repetitions}{quick}")
}
