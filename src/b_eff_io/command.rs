//! `beff-raw [io]`: measures b_eff_io.

use anyhow::anyhow;
use beff_ffi::{Comm, Universe};

use super::cli::IoArgs;
use super::config::{Config, ExchangePolicy, SpaceLimit};
use super::plan::run::{writing_backends, Facts, RunPlan};
use super::plan::space::PartitionSpace;
use super::records::{JournalLine, Manifest, PartitionRecord, RunResult};
use super::report::suffixes;
use super::run::drivers::driver_options;
use super::run::state::Run;
use super::run::whole::execute;
use crate::frame::command::binding::bind_and_look;
use crate::frame::command::finish::{conduct, Files};
use crate::frame::command::observer::Collector;
use crate::frame::command::progress::pace;
use crate::frame::command::start::{Early, Ready};
use crate::frame::command::{directory, known_backends, start};
use crate::frame::error::{Exit, UsageError};
use crate::frame::records::StorageRecord;
use crate::frame::report::{Level, Views};
use crate::frame::run::Observer;
use crate::frame::system::storage::is_space_untold;
use crate::frame::system::survey::{io_layer, Survey};
use crate::frame::units::{count, format_seconds, format_size};

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
    let survey = bind_and_look(world, config.bind)?;
    let storage = start::storage_below(world, &config.path)?;
    let plan = start::step(world, "plan", || make_plan(config, &survey, &storage, world.size()))?;
    let Ready { costs, interrupt, machine } = start::get_ready(universe, world, &survey, config.latency)?;

    let title = || format!("b_eff_io on {} ranks", world.size());
    let progress = start::open_progress(world, &args.progress, title)?;
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
        Collector::new(result, outputs, progress).judged_by(super::values::judgement)
    });
    let work = |observer: &mut dyn Observer<JournalLine>| {
        let not_run = start::leave_out(world, &run_dir, &config.backends, |name| driver_options(config, name))?;
        let mut run = start::step(world, "memory", || {
            Run::new(world, config, &plan, &run_dir, &interrupt, &not_run, observer).map_err(|e| anyhow!(e))
        })?;
        start::announce(world, &args.progress, || announce(config, world.size(), run.all_seconds));
        Ok(start::or_abort(execute(&mut run)))
    };
    let files = Files { run_dir: &run_dir, keep: config.keep_files };
    conduct(world, Some(files), collector, work, |result, derived, place| {
        result.sheet(derived, Level::of(args.full, args.details), place).into()
    })
}

/// What a user who waits wants to know.
fn announce(config: &Config, ranks: u64, seconds: f64) -> String {
    let (backends, time, end) = (config.backends.join(", "), format_seconds(seconds.ceil()), pace::end_in(seconds));
    let ranks = count(ranks, "rank");
    format!("b_eff_io on {ranks}, {backends}: about {time} of measuring, until about {end}")
}

fn make_plan(config: &Config, survey: &Survey, storage: &StorageRecord, ranks: u64) -> anyhow::Result<RunPlan> {
    let writing = writing_backends(config);
    let limit = config.space_limit.bytes(storage.free_bytes);
    let is_untold = is_space_untold(storage);
    if writing > 0 && is_untold && !matches!(config.space_limit, SpaceLimit::Bytes(_)) {
        return Err(UsageError::new(
            format!("{} under {} does not tell its free space", storage.fs_type, storage.path),
            "Give --space as a number of bytes that are there.",
        )
        .into());
    }
    if writing > 0 && !is_untold && limit > storage.free_bytes {
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
        cache_share_bytes: survey.cache_share_bytes,
        limit_bytes: (writing > 0).then_some(limit),
        writing_backends: writing,
    };
    let plan = RunPlan::new(config, &facts)
        .map_err(|e| UsageError::new(e.to_string(), "`beff-raw plan` shows what would fit."))?;
    check_memory(&plan, config, survey.memory_per_rank_bytes)?;
    check_peers(config, ranks)?;
    Ok(plan)
}

/// Refuses what only other ranks would heed.
fn check_peers(config: &Config, ranks: u64) -> Result<(), UsageError> {
    if let Some(wanted) = config.aggregators.filter(|wanted| *wanted > ranks) {
        return Err(UsageError::new(
            format!("--aggregators {wanted}: only {ranks} were started that could move data"),
            "Give no more than there are ranks, or leave it out: then all of them do.",
        ));
    }
    if ranks == 1 && config.exchange != ExchangePolicy::Auto {
        return Err(UsageError::new(
            "--set exchange has no effect: one rank alone exchanges nothing",
            "Leave it out, or start more ranks.",
        ));
    }
    Ok(())
}

/// Refuses calls and domains that no rank has the memory for: it would be ended in the middle, or swap. Equal on all ranks.
fn check_memory(plan: &RunPlan, config: &Config, memory_per_rank_bytes: u64) -> Result<(), UsageError> {
    // Rings of neighbours are theirs, pages of files the page cache's.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::records::{Ended, RunResult};
    use crate::b_eff_io::report::fixtures;
    use crate::frame::benchmark::of_words;
    use crate::frame::command::finish::exit_of;
    use crate::frame::error::Exit;
    use crate::frame::records::Outcome;

    #[test]
    fn a_run_in_which_all_was_refused_is_no_measurement() {
        let refuse = |result: &mut RunResult, from: usize| {
            for p in &mut result.patterns[from..] {
                (p.ended, p.calls) = (Ended::NotRun("no".into()), 0);
            }
        };
        let mut result = fixtures::ladder();
        result.errors.clear();
        assert_eq!(exit_of(&result), Exit::Ok);
        refuse(&mut result, 1);
        assert_eq!(exit_of(&result), Exit::Ok, "one pattern was run");
        refuse(&mut result, 0);
        assert_eq!(exit_of(&result), Exit::Usage);
        result.ending.outcome = Outcome::Interrupted;
        assert_eq!(exit_of(&result), Exit::Interrupted, "what comes next is not known");
        result.ending.outcome = Outcome::Complete;
        result.errors = fixtures::failed().errors;
        assert_eq!(exit_of(&result), Exit::Failure);
    }

    #[test]
    fn what_needs_other_ranks_is_refused_without_them() {
        let check = |options: &str, ranks: u64| {
            let config = of_words::<IoArgs>(options.split_whitespace()).config(&known_backends()).unwrap();
            check_peers(&config, ranks).map_err(|error| error.cause)
        };
        assert_eq!(check("--backend uring --aggregators 3 --set exchange=messages", 3), Ok(()));
        assert!(check("--backend uring --aggregators 4", 3).unwrap_err().contains("--aggregators 4: only 3"));
        assert!(check("--backend uring --set exchange=messages", 1).unwrap_err().contains("one rank alone"));
    }

    #[test]
    fn what_no_rank_has_the_memory_for_is_refused() {
        let check = |options: &str| {
            let config = of_words::<IoArgs>(options.split_whitespace()).config(&known_backends()).unwrap();
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
