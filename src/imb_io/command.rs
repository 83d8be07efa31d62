//! `beff-raw imb`: runs the benchmarks of IMB-IO.

use anyhow::anyhow;
use beff_backends::driver;
use beff_ffi::{Comm, Universe};

use super::cli::ImbArgs;
use super::config::ImbConfig;
use super::plan::space::space;
use super::plan::{Benchmark, ImbPlan};
use super::records::{ImbAnnouncement, ImbLine, ImbResult, ImbSetup};
use super::report::plan as imb_plan;
use super::report::{imb_format, SUFFIXES};
use super::run::whole::{data_bytes, driver_options, Run};
use super::values::ImbDerived;
use crate::frame::command::binding::bind_and_look;
use crate::frame::command::finish::{conduct, exit_of, Files, Page};
use crate::frame::command::observer::Collector;
use crate::frame::command::progress::pace;
use crate::frame::command::start::{Early, Ready};
use crate::frame::command::{directory, known_backends, publish_once, start};
use crate::frame::config::Repeat;
use crate::frame::error::{Exit, UsageError};
use crate::frame::records::StorageRecord;
use crate::frame::report::text::count;
use crate::frame::report::{Level, Place, Views};
use crate::frame::run::{harness, Observer};
use crate::frame::system::storage::is_space_untold;
use crate::frame::system::survey::Survey;
use crate::frame::units::{format_seconds, format_size};

/// Runs the command. Every rank ends with the same exit code; rank 0 alone says why.
///
/// # Errors
/// What ended the run before a result could be made.
pub fn run(args: &ImbArgs) -> anyhow::Result<Exit> {
    if args.output.list {
        publish_once(imb_plan::list(able).as_bytes())?;
        return Ok(Exit::Ok);
    }
    if let Some(ranks) = args.output.plan {
        let config = args.config(&known_backends())?;
        let plan = make_plan(&config, ranks)?;
        publish_once(imb_plan::text(&plan, &config, ranks, runs_of(&plan, &config)).as_bytes())?;
        return Ok(Exit::Ok);
    }
    start::under_mpi(|universe, world| {
        // Rank 0 reads command line and files for all, so that every rank runs with the same configuration.
        let config = start::from_root(world, "configuration", || args.config(&known_backends()))?;
        measure(universe, world, &config, args)
    })
}

/// The backends that can run a benchmark.
fn able(benchmark: &Benchmark) -> Vec<&'static str> {
    known_backends().iter().filter(|backend| backend.runs(benchmark)).map(|backend| backend.name).collect()
}

/// Rows that run, with each backend that can.
fn runs_of(plan: &ImbPlan, config: &ImbConfig) -> u64 {
    let backends = known_backends();
    let chosen: Vec<_> = backends.iter().filter(|b| config.backends.iter().any(|name| name == b.name)).collect();
    plan.rows.iter().map(|row| chosen.iter().filter(|b| b.runs(row.benchmark)).count() as u64).sum()
}

fn make_plan(config: &ImbConfig, ranks: u64) -> Result<ImbPlan, UsageError> {
    ImbPlan::new(config, ranks)
        .map_err(|e| UsageError::new(e.to_string(), "`beff-raw imb --plan N` shows what would run."))
}

fn measure(universe: &Universe, world: &Comm, config: &ImbConfig, args: &ImbArgs) -> Result<Exit, Early> {
    let survey = bind_and_look(world, config.bind)?;
    let storage = start::storage_below(world, &config.path)?;
    let plan = start::step(world, "plan", || {
        let plan = make_plan(config, world.size())?;
        check_memory(&plan, config, &survey)?;
        check_space(&plan, config, &storage, world.size())?;
        Ok(plan)
    })?;
    let Ready { costs, interrupt, machine } = start::get_ready(universe, world, &survey, false)?;
    let title = || format!("IMB-IO on {} ranks", world.size());
    let progress = start::open_progress(world, &args.output.progress, title)?;
    let outputs = start::open_outputs(world, config.out.as_deref(), &SUFFIXES.map(str::to_owned))?;
    let (run_dir, outputs) =
        directory::make(world, &config.path, config.run_dir.as_deref(), &config.backends, outputs)?;

    let collector = machine.map(|machine| {
        let setup = ImbSetup {
            machine,
            storage,
            run_dir: run_dir.path().display().to_string(),
            rank_counts: plan.counts.clone(),
            sizes_bytes: plan.sizes_bytes.clone(),
            rows: (plan.rows.len() * config.backends.len()) as u64,
            clock_resolution_ns: costs.clock_resolution_ns,
            lap_ns: harness::lap_ns(),
            barrier_ns: costs.barrier_ns,
        };
        Collector::new(ImbResult::new(config.clone(), setup), outputs, progress)
    });
    let work = |observer: &mut dyn Observer<ImbLine>| {
        let not_run = start::leave_out(world, &run_dir, &config.backends, |name| driver_options(config, name))?;
        let mut run = start::step(world, "memory", || {
            Run::new(world, &plan, config, &run_dir, &interrupt, &not_run, observer).map_err(|e| anyhow!(e))
        })?;
        let announcement = start::or_abort(run.announce());
        let rows = || announce(config, &announcement, world.size(), runs_of(&plan, config));
        start::announce(world, &args.output.progress, rows);
        Ok(start::or_abort(run.execute()))
    };
    let files = Files { run_dir: &run_dir, keep: config.keep_files };
    conduct(world, Some(files), collector, work, |result, derived, place| page(args, result, derived, place))
}

/// What goes to stdout.
fn page(args: &ImbArgs, result: &ImbResult, derived: &ImbDerived, place: &Place) -> Page {
    if !args.output.imb_format {
        return result.sheet(derived, Level::of(args.output.full, args.output.details), place).into();
    }
    // The columns of the release have no place for this.
    let remark = (exit_of(result) != Exit::Ok).then(|| {
        let wrong: u64 = result.rows.iter().map(|row| row.bytes_wrong).sum();
        let errors = result.errors.len();
        format!(
            "not all rows are sound: {errors} errors, {wrong} wrong bytes; the table without --imb-format has the details"
        )
    });
    Page { sheet: imb_format(result, derived).into(), remark }
}

/// Refuses buffers that would not leave room for anything else. Equal on all ranks.
fn check_memory(plan: &ImbPlan, config: &ImbConfig, survey: &Survey) -> Result<(), UsageError> {
    let needed = data_bytes(plan, config).saturating_add(plan.whole_file_bytes());
    if needed <= survey.memory_per_rank_bytes / 2 {
        return Ok(());
    }
    Err(UsageError::new(
        format!(
            "the data needs {} in each rank, more than half of the {} it has",
            format_size(needed),
            format_size(survey.memory_per_rank_bytes)
        ),
        "Give a smaller --msglog or --msglen, a smaller volume with --iter, or start fewer ranks on a node.",
    ))
}

/// Refuses files that would fill the storage.
fn check_space(plan: &ImbPlan, config: &ImbConfig, storage: &StorageRecord, ranks: u64) -> Result<(), UsageError> {
    let writing = |name: &&'static str| {
        config.backends.iter().any(|chosen| chosen == name) && driver(name).is_some_and(|row| row.uses_space)
    };
    let copies = |benchmark: &Benchmark| able(benchmark).iter().filter(|name| writing(name)).count() as u64;
    let space = space(&plan.rows, &config.repetitions, (ranks, config.multi.is_some()), copies);
    let kept_bytes = if config.keep_files { space.kept_bytes } else { 0 };
    let needed = space.largest_bytes.saturating_add(kept_bytes);
    if needed <= storage.free_bytes || is_space_untold(storage) {
        return Ok(());
    }
    // No row is small enough where there is no room at all, as on /proc.
    let next_step = if storage.free_bytes == 0 {
        "Give another --path, where there is room for files."
    } else {
        "Give a smaller number or volume with --iter, a smaller --msglog or --msglen, or another --path."
    };
    let kept = if kept_bytes > 0 { format!(", and what is kept {}", format_size(kept_bytes)) } else { String::new() };
    Err(UsageError::new(
        format!(
            "the files of a row take up to {}{kept}; only {} are free under {}",
            format_size(space.largest_bytes),
            format_size(storage.free_bytes),
            storage.path
        ),
        next_step,
    ))
}

/// What a user who waits wants to know.
fn announce(config: &ImbConfig, a: &ImbAnnouncement, ranks: u64, rows: u64) -> String {
    let expected = format_seconds(a.expected_seconds.ceil());
    // What is over does not come again.
    let end = pace::end_in(a.expected_seconds - a.pilot_seconds);
    let limit = match a.limit_seconds {
        Some(limit) => format!(
            "repetitions are reduced where a row would take more than {}: at most about {}, if calls go on as in the trials",
            format_seconds(config.repetitions.limit_seconds),
            format_seconds(limit)
        ),
        None => format!("no time limit (policy {})", config.repetitions.policy.name()),
    };
    let load = a.cpu_load.map_or_else(String::new, |load| {
        format!("; the CPU load of the overlap takes its time within {:.1} %", load.calibration_error * 100.0)
    });
    let repeats = match config.repeat {
        Repeat::Off => String::new(),
        Repeat::Times(times) => format!("; measured {} in all", count(times.saturating_add(1), "time")),
        Repeat::Auto => {
            "; then rows again, each within its time limit, until they are known: not in this time".to_owned()
        }
    };
    let (ranks, rows) = (count(ranks, "rank"), count(rows, "row"));
    format!("IMB-IO on {ranks}: {rows}, about {expected}, until about {end}; {limit}{repeats}{load}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::benchmark::of_words;
    use crate::frame::system::storage::storage_record;
    use crate::imb_io::records::CpuLoad;

    fn config(options: &str) -> ImbConfig {
        of_words::<ImbArgs>(options.split_whitespace()).config(&known_backends()).unwrap()
    }

    #[test]
    fn the_announcement_says_how_long_and_how_sure() {
        let timed = ImbAnnouncement {
            expected_seconds: 379.2,
            limit_seconds: Some(10_840.0),
            pilot_seconds: 2.0,
            cpu_load: Some(CpuLoad { unit_seconds: 1e-6, calibration_error: 0.0234 }),
        };
        let text = announce(&config(""), &timed, 4, 1084);
        assert!(text.starts_with("IMB-IO on 4 ranks: 1084 rows, about 6.3 min, until about "), "{text}");
        for part in [" UTC; ", "where a row would take more than 10.0 s: at most about 3.0 h", "within 2.3 %"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let free = ImbAnnouncement { limit_seconds: None, cpu_load: None, expected_seconds: f64::MAX, ..timed };
        let text = announce(&config("--iter-policy off"), &free, 1, 1);
        assert!(
            text.starts_with("IMB-IO on 1 rank: 1 row, ") && text.ends_with("no time limit (policy off)"),
            "{text}"
        );
    }

    #[test]
    fn files_that_do_not_fit_are_refused_with_what_helps() {
        let refused = |free_bytes: u64| {
            let config = config("S_Write_Indv --msglog 16:16");
            let storage = StorageRecord { free_bytes, ..storage_record(std::path::Path::new("/proc")).unwrap() };
            check_space(&make_plan(&config, 1).unwrap(), &config, &storage, 1).unwrap_err()
        };
        let none = refused(0);
        assert!(none.cause.contains("only 0 B are free under /proc"), "{none}");
        assert!(none.next_step.starts_with("Give another --path"), "{none}");
        let some = refused(1 << 20);
        assert!(some.cause.contains("only 1 MiB") && some.next_step.starts_with("Give a smaller"), "{some}");
    }

    #[test]
    fn rows_count_once_for_each_backend_that_runs_them() {
        let runs = |options: &str| {
            let config = config(options);
            runs_of(&make_plan(&config, 2).unwrap(), &config)
        };
        // Two sizes: S_Write has two modes on one rank, P_IRead one mode on 1 and 2 ranks.
        assert_eq!(runs("S_Write_Indv,P_IRead_Expl,Open_Close --msglog 3:3"), 4 + 4 + 2);
        assert_eq!(runs("S_Write_Indv,P_IRead_Expl,Open_Close --msglog 3:3 --backend mpiio,posix,uring"), 12 + 8 + 2);
    }

    #[test]
    fn files_that_do_not_fit_are_refused() {
        let check = |options: &str, free_bytes| {
            let config = config(options);
            let storage = StorageRecord {
                path: "/scratch".into(),
                mount_point: "/".into(),
                source: "disk".into(),
                fs_type: "ext4".into(),
                mount_options: String::new(),
                device: None,
                total_bytes: u64::MAX,
                free_bytes,
                direct_offset_align_bytes: None,
                direct_memory_align_bytes: None,
            };
            check_space(&make_plan(&config, 2).unwrap(), &config, &storage, 2)
        };
        let options = "S_Read_Indv,P_Read_Expl --msglog 20:20";
        assert_eq!(check(options, 40 << 20), Ok(()));
        let error = check(options, (40 << 20) - 1).unwrap_err().to_string();
        assert!(error.contains("up to 40 MiB;") && error.contains("/scratch") && error.contains("--iter"), "{error}");
        assert_eq!(check(&format!("{options} --keep-files"), 120 << 20), Ok(()));
        let error = check(&format!("{options} --keep-files"), (120 << 20) - 1).unwrap_err().to_string();
        assert!(error.contains("what is kept 80 MiB"), "{error}");
        assert_eq!(check(&format!("{options} --backend null"), 0), Ok(()));
    }
}
