//! `beff-raw comm`: measures b_eff.

use anyhow::anyhow;
use beff_ffi::{Comm, Universe};

use super::cli::CommArgs;
use super::config::CommConfig;
use super::plan::CommPlan;
use super::records::{Announcement, CommLine, CommResult, CommSetup};
use super::report::plan as comm_plan;
use super::report::SUFFIXES;
use super::run::Run;
use crate::frame::command::binding::bind_and_look;
use crate::frame::command::finish::conduct;
use crate::frame::command::observer::Collector;
use crate::frame::command::progress::pace;
use crate::frame::command::start::{Early, Ready};
use crate::frame::command::{memory_of_rank, publish_json_once, publish_once, start};
use crate::frame::config::Repeat;
use crate::frame::error::{Exit, UsageError};
use crate::frame::report::text::{count, percent};
use crate::frame::report::{Level, Views};
use crate::frame::run::machine_share::HostCpus;
use crate::frame::run::Observer;
use crate::frame::system::launcher::binding;
use crate::frame::system::placement::{numbering, transport};
use crate::frame::system::survey::Survey;
use crate::frame::units::format_seconds;

/// Ranks whose rings are listed one by one at most.
const MOST_LISTED: u64 = 100_000;

/// Runs the command. Every rank ends with the same exit code; rank 0 alone says why.
///
/// # Errors
/// What ended the run before a result could be made.
pub fn run(args: &CommArgs) -> anyhow::Result<Exit> {
    if let Some(ranks) = args.plan {
        return show_plan(args, ranks);
    }
    start::under_mpi(|universe, world| {
        let config = start::from_root(world, "configuration", || args.config())?;
        measure(universe, world, &config, args)
    })
}

/// The plan for any number of ranks, without MPI.
fn show_plan(args: &CommArgs, ranks: u64) -> anyhow::Result<Exit> {
    let config = args.config()?;
    let plan = make_plan(&config, ranks, memory_of_rank(config.memory_per_process_bytes, ranks)?)?;
    if args.json && ranks > MOST_LISTED {
        return Err(UsageError::new(
            format!("--json lists every ring rank by rank, which is no use for {ranks} ranks"),
            format!("Leave --json out, or give at most {MOST_LISTED} ranks."),
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
        .map_err(|e| UsageError::new(e.to_string(), "`beff-raw comm --plan N` shows what would run."))?;
    if plan.patterns.is_empty() {
        return Err(UsageError::new("--families names no pattern that these ranks have", "Add ring."));
    }
    Ok(plan)
}

fn measure(universe: &Universe, world: &Comm, config: &CommConfig, args: &CommArgs) -> Result<Exit, Early> {
    if world.size() < 2 {
        let alone = UsageError::new(
            "b_eff measures messages between processes, and there is only one",
            "Start at least two: mpirun -n 2 beff-raw comm.",
        );
        return Err(Early::Everywhere(alone.into()));
    }
    let survey = bind_and_look(world, config.bind)?;
    let memory_bytes = config.memory_per_process_bytes.unwrap_or(survey.memory_per_rank_bytes);
    let plan = start::step(world, "plan", || {
        let plan = make_plan(config, world.size(), memory_bytes)?;
        check_memory(&plan, config, &survey)?;
        Ok(plan)
    })?;
    let Ready { costs, interrupt, machine } = start::get_ready(universe, world, &survey, false)?;
    let title = || format!("b_eff on {} ranks", world.size());
    let progress = start::open_progress(world, &args.progress, title)?;
    let outputs = start::open_outputs(world, config.out.as_deref(), &SUFFIXES.map(str::to_owned))?;
    let collector = machine.map(|machine| {
        let hosts: Vec<u64> = survey.placement.iter().map(|p| p.host).collect();
        let setup = CommSetup {
            transport: transport(&machine.mpi_library),
            machine,
            numbering: numbering(&hosts),
            placement: survey.placement.clone(),
            binding: binding(|name| std::env::var(name).ok()),
            lmax_bytes: plan.lmax_bytes,
            sizes_bytes: plan.sizes_bytes.clone(),
            patterns: plan.patterns.len() as u64,
            clock_resolution_ns: costs.clock_resolution_ns,
            clock_read_ns: costs.clock_read_ns,
            barrier_ns: costs.barrier_ns,
        };
        Collector::new(CommResult::new(config.clone(), setup), outputs, progress)
    });
    // Messages of their own: nothing else can match them.
    let comm = start::or_abort(world.duplicate());
    let work = |observer: &mut dyn Observer<CommLine>| {
        let cpus = start::or_abort(HostCpus::survey(&comm));
        let mut run = start::step(world, "memory", || {
            Run::new(&comm, &plan, config, cpus, &interrupt, observer).map_err(|e| anyhow!(e))
        })?;
        let announcement = start::or_abort(run.announce());
        start::announce(world, &args.progress, || announce(config, &announcement, world.size()));
        Ok(start::or_abort(run.execute()))
    };
    conduct(world, None, collector, work, |result, derived, place| {
        result.sheet(derived, Level::of(args.full, args.details), place).into()
    })
}

/// Refuses messages that would not leave room for anything else.
fn check_memory(plan: &CommPlan, config: &CommConfig, survey: &Survey) -> Result<(), UsageError> {
    let needed = 2 * Run::layout(plan, config.buffers).mapped_bytes();
    if needed <= survey.memory_per_rank_bytes / 2 {
        return Ok(());
    }
    Err(UsageError::new(
        format!(
            "messages of up to {} bytes need {needed} bytes in each rank, more than half of the {} it has",
            plan.lmax_bytes, survey.memory_per_rank_bytes
        ),
        "Give a smaller --memory-per-process, or start fewer ranks on a node.",
    ))
}

/// What a user who waits wants to know.
fn announce(config: &CommConfig, a: &Announcement, ranks: u64) -> String {
    let expected = format_seconds(a.expected_seconds.ceil());
    let limit = format_seconds(a.limit_seconds);
    let repeats = match (config.repeat, config.until_share) {
        (Repeat::Off, _) => String::new(),
        (Repeat::Auto, None) => ", then repeats until then".to_owned(),
        (Repeat::Auto, Some(share)) => {
            format!(", then repeats until then or until b_eff is known within {}", percent(share))
        }
        (Repeat::Times(times), _) => format!(", then at most {}", count(times, "round")),
    };
    let end = pace::end_in(if config.repeat == Repeat::Off { a.expected_seconds } else { a.limit_seconds });
    let fits = if a.expected_seconds <= a.limit_seconds {
        format!("at most {limit}")
    } else {
        format!("LONGER than the {limit} of --time, which is too short for the least of it")
    };
    let whole = if config.repeat == Repeat::Off { "" } else { " for the value" };
    let quick = if config.quick { ", quick mode: no value to compare" } else { "" };
    let ranks = count(ranks, "rank");
    format!("b_eff on {ranks}: about {expected}{whole}, {fits}; until about {end}{repeats}{quick}")
}
