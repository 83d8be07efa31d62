//! `beff-raw imb`: runs the benchmarks of IMB-IO.

use anyhow::anyhow;
use beff_ffi::{Comm, Universe};

use super::cli::ImbArgs;
use super::config::ImbConfig;
use super::legacy::not_applied_note;
use super::plan::space::required_space;
use super::plan::{ImbBenchmark, ImbPlan};
use super::records::{ImbAnnouncement, ImbLine, ImbResult, ImbSetup};
use super::report::plan as imb_plan;
use super::report::{imb_format, SUFFIXES};
use super::run::runner::{data_bytes, driver_options, RowRunner};
use super::values::ImbDerived;
use crate::frame::backends;
use crate::frame::command::binding::bind_and_survey;
use crate::frame::command::finish::{exit_code, measure_and_report, MeasuredFiles, ScreenOutput};
use crate::frame::command::observer::ResultCollector;
use crate::frame::command::progress::remaining;
use crate::frame::command::progress::RunTitle;
use crate::frame::command::start::{CommandError, MeasurementSetup};
use crate::frame::command::{backend_capabilities, directory, print_diagnostic, publish_once, start, time_limit};
use crate::frame::config::RepetitionPolicy;
use crate::frame::error::{Exit, UsageError};
use crate::frame::rank_directories::RankDirectories;
use crate::frame::records::StorageRecord;
use crate::frame::report::text::count;
use crate::frame::report::{DetailLevel, DisplayContext, Views};
use crate::frame::run::variants::ContestantRequests;
use crate::frame::run::{harness, RunObserver};
use crate::frame::system::storage::is_space_unknown;
use crate::frame::system::survey::Survey;
use crate::frame::units::{format_seconds, format_size};

/// Runs the command. Every rank returns the same exit code; rank 0 alone prints the reason.
///
/// # Errors
/// An error before a result exists.
pub fn run(args: &ImbArgs) -> anyhow::Result<Exit> {
    if args.output.list {
        publish_once(imb_plan::benchmark_list(backends_for).as_bytes())?;
        return Ok(Exit::Ok);
    }
    if let Some(ranks) = args.output.plan {
        let config = args.config(&backend_capabilities())?;
        let plan = make_plan(&config, ranks)?;
        if let Some(note) = not_applied_note(&args.measure.not_applied) {
            print_diagnostic(&note);
        }
        publish_once(imb_plan::plan_text(&plan, &config, ranks, row_count(&plan, &config)).as_bytes())?;
        return Ok(Exit::Ok);
    }
    start::run_under_mpi(|universe, world| {
        // Rank 0 reads command line and files for all ranks, so that the configuration is the same.
        let config = start::broadcast_from_root(world, "configuration", || args.config(&backend_capabilities()))?;
        if let Some(note) = not_applied_note(&args.measure.not_applied) {
            start::announce(world, &args.output.progress, || note);
        }
        measure(universe, world, &config, args)
    })
}

/// The contestants of a run that support a benchmark.
fn contestants_for<'a>(config: &'a ImbConfig, benchmark: &ImbBenchmark) -> impl Iterator<Item = &'a String> {
    let able = backends_for(benchmark);
    config.backends.iter().filter(move |name| able.contains(&backends::backend_of(name)))
}

/// Backends that support a benchmark.
fn backends_for(benchmark: &ImbBenchmark) -> Vec<&'static str> {
    backend_capabilities().iter().filter(|backend| backend.runs(benchmark)).map(|backend| backend.name).collect()
}

/// Number of rows over all contestants that support them.
fn row_count(plan: &ImbPlan, config: &ImbConfig) -> u64 {
    plan.rows.iter().map(|row| contestants_for(config, row.benchmark).count() as u64).sum()
}

fn make_plan(config: &ImbConfig, ranks: u64) -> Result<ImbPlan, UsageError> {
    ImbPlan::new(config, ranks)
        .map_err(|e| UsageError::new(e.to_string(), "`beff-raw imb --plan N` shows what would run."))
}

/// One rank that is to be two or more was started without a launcher: all rows would run on it, for an hour.
fn check_launcher(npmin: u64, ranks: u64) -> Result<(), UsageError> {
    if ranks > 1 || npmin <= 1 {
        return Ok(());
    }
    Err(UsageError::new(
        format!("--npmin {npmin}: one rank was started"),
        format!("Start as many: mpirun -n {npmin} beff-raw imb --npmin {npmin}; or omit --npmin to measure one rank."),
    ))
}

fn measure(universe: &Universe, world: &Comm, config: &ImbConfig, args: &ImbArgs) -> Result<Exit, CommandError> {
    let survey = bind_and_survey(world, config.bind)?;
    let mut storage = start::survey_storage(world, &config.path)?;
    let plan = start::collective_step(world, "plan", || {
        let plan = make_plan(config, world.size())?;
        check_launcher(config.npmin, world.size())?;
        check_memory(&plan, config, &survey)?;
        check_space(&plan, config, &storage, world.size())?;
        Ok(plan)
    })?;
    let MeasurementSetup { costs, interrupt, time_limit, machine } =
        start::prepare_measurement(universe, world, &survey, (false, config.time_limit))?;
    let text = format!("IMB-IO on {} ranks", world.size());
    let title = || RunTitle::new(text, &config.backends, Some(&config.path));
    let progress = start::open_progress(world, &args.output.progress, title)?;
    let outputs = start::open_outputs(world, config.out.as_deref(), &SUFFIXES.map(str::to_owned))?;
    let run_name = config.run_dir.as_deref();
    let files = (config.backends.as_slice(), RankDirectories::NONE);
    let stripe = (storage.fs_type.as_str(), config.stripe);
    let (mut run_dir, outputs) =
        directory::create_run_directory(world, &config.path, run_name, files, stripe, outputs)?;
    directory::try_direct_io(world, &mut run_dir, &mut storage, config.first_direct(), config.dio_align_bytes)?;
    let parameters = (config.backends.as_slice(), config.storage.as_slice());
    directory::query_storage_sheet(world, &run_dir, &mut storage, parameters, &survey.description.hosts)?;

    let collector = machine.map(|machine| {
        let setup = ImbSetup {
            machine,
            storage,
            run_dir: run_dir.path().display().to_string(),
            rank_counts: plan.counts.clone(),
            sizes_bytes: plan.sizes_bytes.clone(),
            rows: (plan.rows.len() * config.backends.len()) as u64,
            clock_resolution_ns: costs.clock_resolution_ns,
            timestamp_ns: harness::timestamp_ns(),
            barrier_ns: costs.barrier_ns,
        };
        ResultCollector::new(ImbResult::new(config.clone(), setup), outputs, progress)
            .with_time_limit(time_limit.clone())
    });
    let work = |observer: &mut dyn RunObserver<ImbLine>| {
        let options = |name: &str| driver_options(config, &run_dir, name);
        let mut not_run = start::skip_unavailable_backends(world, &run_dir, &config.backends, options)?;
        let requests = ContestantRequests {
            contestants: &config.backends,
            hints: &|name| config.hints_of(name),
            driver: &options,
            are_alike: &|one, other| {
                (config.direct_of(one), config.queue_depth_of(one))
                    == (config.direct_of(other), config.queue_depth_of(other))
            },
        };
        start::skip_ineffective_variants(world, &run_dir, &requests, &mut not_run)?;
        let mut run = start::collective_step(world, "memory", || {
            RowRunner::new(world, &plan, config, &run_dir, &interrupt, &not_run, observer).map_err(|e| anyhow!(e))
        })?;
        let announcement = start::unwrap_or_abort(run.announce());
        let rows = || {
            announce(config, &announcement, world.size(), row_count(&plan, config))
                + &time_limit::announcement(time_limit.as_ref())
        };
        start::announce_run(world, &args.output.progress, config.out.as_deref(), rows);
        Ok(start::unwrap_or_abort(run.execute()))
    };
    let files = MeasuredFiles { run_dir: &run_dir, keep: config.keep_files };
    measure_and_report(world, Some(files), collector, work, |result, derived, place| {
        result_page(args, result, derived, place)
    })
}

fn result_page(args: &ImbArgs, result: &ImbResult, derived: &ImbDerived, place: &DisplayContext) -> ScreenOutput {
    if !args.output.imb_format {
        return result.sheet(derived, DetailLevel::of(args.output.full, args.output.details), place).into();
    }
    // The columns of the release cannot show this.
    let remark = (exit_code(result) != Exit::Ok).then(|| {
        let wrong: u64 = result.rows.iter().map(|row| row.bytes_wrong).sum();
        let errors = result.errors.len();
        format!(
            "not all rows are valid: {errors} errors, {wrong} wrong bytes; the table without --imb-format has the details"
        )
    });
    ScreenOutput { sheet: imb_format(result, derived).into(), remark, exit: Exit::Ok }
}

/// Refuses buffers larger than half of the memory of a rank. Equal on all ranks.
fn check_memory(plan: &ImbPlan, config: &ImbConfig, survey: &Survey) -> Result<(), UsageError> {
    let needed = data_bytes(plan, config).saturating_add(plan.whole_file_bytes());
    if needed <= survey.memory_per_rank_bytes / 2 {
        return Ok(());
    }
    Err(UsageError::new(
        format!(
            "the data needs {} per rank, more than half of the {} available to it",
            format_size(needed),
            format_size(survey.memory_per_rank_bytes)
        ),
        "Give a smaller --msglog or --msglen, a smaller volume with --iter, or start fewer ranks on a node.",
    ))
}

fn check_space(plan: &ImbPlan, config: &ImbConfig, storage: &StorageRecord, ranks: u64) -> Result<(), UsageError> {
    let writing = |name: &&String| backends::supports(name, |row| row.uses_space);
    let copies = |benchmark: &ImbBenchmark| contestants_for(config, benchmark).filter(writing).count() as u64;
    let space = required_space(&plan.rows, &config.iterations, (ranks, config.multi.is_some()), copies);
    let kept_bytes = if config.keep_files { space.kept_bytes } else { 0 };
    let needed = space.largest_bytes.saturating_add(kept_bytes);
    if needed <= storage.free_bytes || is_space_unknown(storage) {
        return Ok(());
    }
    // Without any free space, as on /proc, no row fits.
    let next_step = if storage.free_bytes == 0 {
        "Give another --path, with free space for files."
    } else {
        "Give a smaller number or volume with --iter, a smaller --msglog or --msglen, or another --path."
    };
    let kept = if kept_bytes > 0 { format!(", and kept files {}", format_size(kept_bytes)) } else { String::new() };
    Err(UsageError::new(
        format!(
            "the files of a row need up to {}{kept}; only {} are free under {}",
            format_size(space.largest_bytes),
            format_size(storage.free_bytes),
            storage.path
        ),
        next_step,
    ))
}

fn announce(config: &ImbConfig, a: &ImbAnnouncement, ranks: u64, rows: u64) -> String {
    let expected = format_seconds(a.expected_seconds.ceil());
    // The pilot is over.
    let end = remaining::end_time(a.expected_seconds - a.pilot_seconds);
    let limit = match a.limit_seconds {
        Some(limit) => format!(
            "iterations are reduced where a row would take more than {}: at most about {}, if calls remain as in the pilot",
            format_seconds(config.iterations.limit_seconds),
            format_seconds(limit)
        ),
        None => format!("no time limit (policy {})", config.iterations.policy.name()),
    };
    let load = a.cpu_load.map_or_else(String::new, |load| {
        format!("; the CPU load of the overlap is calibrated within {:.1} %", load.calibration_error * 100.0)
    });
    let repetitions = match config.repeat {
        RepetitionPolicy::Off => String::new(),
        RepetitionPolicy::Times(times) => format!("; measured {} in all", count(times.saturating_add(1), "time")),
        RepetitionPolicy::Auto => {
            "; then repetitions, each row within its time limit, not included in this time".to_owned()
        }
    };
    let (ranks, rows) = (count(ranks, "rank"), count(rows, "row"));
    format!("IMB-IO on {ranks}: {rows}, about {expected}, until about {end}; {limit}{repetitions}{load}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::benchmark::options_from_words;
    use crate::frame::system::storage::storage_record;
    use crate::imb_io::records::CpuLoad;

    fn config(options: &str) -> ImbConfig {
        options_from_words::<ImbArgs>(options.split_whitespace()).config(&backend_capabilities()).unwrap()
    }

    #[test]
    fn one_rank_that_is_to_be_two_is_told_the_launcher() {
        let error = check_launcher(2, 1).unwrap_err().to_string();
        assert!(error.contains("mpirun -n 2 beff-raw imb --npmin 2"), "{error}");
        for (npmin, ranks) in [(1, 1), (2, 2), (64, 2)] {
            assert_eq!(check_launcher(npmin, ranks), Ok(()));
        }
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
            row_count(&make_plan(&config, 2).unwrap(), &config)
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
                direct_align_basis: None,
                direct_trial: None,
                sheet: Vec::new(),
            };
            check_space(&make_plan(&config, 2).unwrap(), &config, &storage, 2)
        };
        let options = "S_Read_Indv,P_Read_Expl --msglog 20:20";
        assert_eq!(check(options, 40 << 20), Ok(()));
        let error = check(options, (40 << 20) - 1).unwrap_err().to_string();
        assert!(error.contains("up to 40 MiB;") && error.contains("/scratch") && error.contains("--iter"), "{error}");
        assert_eq!(check(&format!("{options} --keep-files"), 120 << 20), Ok(()));
        let error = check(&format!("{options} --keep-files"), (120 << 20) - 1).unwrap_err().to_string();
        assert!(error.contains("kept files 80 MiB"), "{error}");
        assert_eq!(check(&format!("{options} --backend null"), 0), Ok(()));
    }
}
