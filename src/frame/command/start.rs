//! Common parts of the commands under mpirun: start of MPI, one configuration for all ranks, output files on rank 0, and a common end of
//! all ranks.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::io;
use std::path::Path;

use anyhow::{anyhow, Context};
use beff_backends::DriverOptions;
use beff_ffi::{collective_timeout, Comm, MpiError, MpiErrorCause, Universe};
use nix::sys::resource::{getrlimit, Resource};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::finalize::{finalize, hang_seconds};
use super::progress::{ProgressMonitor, RunTitle};
use super::variables::Limits;
use super::{print_diagnostic, reject_launch, reject_usage, stdout, time_limit};
use crate::frame::config::TimeLimit;
use crate::frame::error::{Exit, UsageError};
use crate::frame::fault_injection;
use crate::frame::options::ProgressArgs;
use crate::frame::records::{HarnessCost, MachineRecord, StorageRecord, TimeLimitRecord};
use crate::frame::report::library::short_name;
use crate::frame::report::{DisplayContext, Outputs, SaveStatus, TerminalOutput};
use crate::frame::run::availability::SkippedBackend;
use crate::frame::run::interrupt::Interrupt;
use crate::frame::run::run_dir::RunDir;
use crate::frame::run::variants::{find_ineffective, ContestantRequests};
use crate::frame::run::{agree, availability, harness};
use crate::frame::system::launcher::{is_reporting_process, launcher_mismatch, pre_init_mismatch};
use crate::frame::system::storage::storage_record;
use crate::frame::system::survey::{machine, Survey, LIBRARY_CHARS};

/// Error before a command has a result. `?` alone never yields [`CommandError::Collective`], which requires agreement.
#[derive(Debug)]
pub enum CommandError {
    /// Equal on every rank by agreement: all ranks leave together.
    Collective(anyhow::Error),
    /// Possibly on this rank alone: the others may wait for it in a call that it will never make.
    Local(anyhow::Error),
}

impl From<MpiError> for CommandError {
    fn from(error: MpiError) -> Self {
        Self::Local(error.into())
    }
}

impl From<serde_json::Error> for CommandError {
    fn from(error: serde_json::Error) -> Self {
        Self::Local(error.into())
    }
}

/// Starts MPI, refuses the launcher of another MPI, and runs `work` on every rank. Every rank ends with an exit code; rank 0 alone prints
/// an error of all ranks. An error of one rank ends all ranks.
///
/// # Errors
/// MPI does not start, or fails at the end.
pub(crate) fn run_under_mpi(work: impl FnOnce(&Universe, &Comm) -> Result<Exit, CommandError>) -> anyhow::Result<Exit> {
    time_limit::note_start();
    // As the launcher set it: MPI_Init may change it.
    let environment: HashMap<OsString, OsString> = std::env::vars_os().collect();
    let env = |name: &str| environment.get(OsStr::new(name))?.to_str().map(str::to_owned);
    let library = beff_ffi::library_version(LIBRARY_CHARS).unwrap_or_else(|_| beff_ffi::built_with().into());
    if let Some(message) = pre_init_mismatch(&library, &short_name(&library), env) {
        return Ok(reject_usage(&message));
    }
    let limits = match Limits::of(env) {
        Ok(limits) => limits,
        Err(error) => return Ok(reject_usage(&error.to_string())),
    };
    if let Err(error) = check_open_files(open_file_limit()) {
        return Ok(reject_usage(&error.to_string()));
    }
    let universe = match Universe::init() {
        Ok(universe) => universe,
        // The same on all ranks.
        Err(error) if error.cause == MpiErrorCause::Unsupported => {
            let message = format!("{} cannot be used: {}", short_name(&library), error.text);
            return Ok(reject_launch(&message, is_reporting_process(env)));
        }
        Err(error) => return Err(anyhow!("MPI cannot be started: {error}")),
    };
    abort_on_panic();
    let world = universe.world();
    collective_timeout::configure(
        world.rank(),
        limits.stranded_seconds,
        print_diagnostic,
        i32::from(Exit::Failure.code()),
    );
    let mpi = if beff_ffi::is_standard_abi() { short_name(&library) } else { beff_ffi::built_with().to_owned() };
    if let Some(mismatch) = launcher_mismatch(world.size(), &mpi, env) {
        return Ok(reject_launch(&mismatch.message, mismatch.is_reporting));
    }
    let exit = match work(&universe, &world) {
        Ok(exit) => exit,
        Err(CommandError::Local(error)) => unwrap_or_abort(Err(format!("{error:#}"))),
        Err(CommandError::Collective(error)) => {
            // Rank 0 prints before any rank ends: some launchers kill the others, with their last output, at the first exit.
            if world.is_root() {
                print_diagnostic(&format!("{error:#}"));
            }
            if error.is::<UsageError>() {
                Exit::Usage
            } else {
                Exit::Failure
            }
        }
    };
    finalize(universe, &world, library, limits.finalize_seconds, exit)?;
    Ok(exit)
}

/// Minimum of open files that MPI and a run need. With fewer than 32 MPICH 4.0 and Open MPI 4.1 end or hang in MPI_Init, with a few more
/// a run cannot clean up.
const MIN_OPEN_FILES: u64 = 64;

/// Soft limit of open files.
fn open_file_limit() -> u64 {
    getrlimit(Resource::RLIMIT_NOFILE).map_or(u64::MAX, |(soft, _)| soft)
}

fn check_open_files(limit: u64) -> Result<(), UsageError> {
    if limit >= MIN_OPEN_FILES {
        return Ok(());
    }
    Err(UsageError::new(
        format!(
            "the limit of open files is {limit}: MPI needs {MIN_OPEN_FILES} or more, and may hang in MPI_Init with fewer"
        ),
        "Raise it where the ranks start: ulimit -n 1024",
    ))
}

/// A rank that panics would leave the others in a collective call forever.
fn abort_on_panic() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        default(info);
        print_diagnostic("this is a defect of beff-raw: please report it with the lines above");
        beff_ffi::universe::abort(i32::from(Exit::Failure.code()));
    }));
}

#[derive(Default, Serialize, Deserialize)]
struct PackedError {
    /// The two parts of a [`UsageError`].
    usage: Option<(String, String)>,
    other: String,
}

impl From<anyhow::Error> for PackedError {
    fn from(error: anyhow::Error) -> Self {
        match error.downcast::<UsageError>() {
            Ok(e) => Self { usage: Some((e.cause, e.next_step)), ..Self::default() },
            Err(e) => Self { other: format!("{e:#}"), ..Self::default() },
        }
    }
}

impl From<PackedError> for anyhow::Error {
    fn from(packed: PackedError) -> Self {
        match packed.usage {
            Some((cause, next_step)) => UsageError::new(cause, next_step).into(),
            None => anyhow!(packed.other),
        }
    }
}

/// One step before the measurement: value of each rank, or on every rank the error of the lowest rank that failed. Collective; every step
/// that may fail on one rank alone is run by it, so that no rank waits for another.
///
/// # Errors
/// Everywhere: `make` failed on some rank.
pub(crate) fn collective_step<T>(
    world: &Comm,
    name: &str,
    make: impl FnOnce() -> anyhow::Result<T>,
) -> Result<T, CommandError> {
    let outcome =
        fault_injection::injected_failure(name, world.rank()).map_err(|message| anyhow!(message)).and_then(|()| make());
    let packed = outcome.map_err(|error| serde_json::to_string(&PackedError::from(error)).unwrap_or_default());
    agree::all_or_first_error(world, packed)?.map_err(|(rank, packed)| {
        let unreadable =
            |_| PackedError { other: format!("rank {rank} failed in the step {name}"), ..PackedError::default() };
        CommandError::Collective(serde_json::from_str::<PackedError>(&packed).unwrap_or_else(unreadable).into())
    })
}

/// Value of rank 0 on every rank: the configuration from the command line and its files, facts about rank 0's host. Collective; `make`
/// runs on rank 0 alone.
///
/// # Errors
/// Everywhere: the error of `make`.
pub(crate) fn broadcast_from_root<T: Serialize + DeserializeOwned>(
    world: &Comm,
    name: &str,
    make: impl FnOnce() -> Result<T, UsageError>,
) -> Result<T, CommandError> {
    // A serialization error is an error of the step, too.
    let pack = || if world.is_root() { Ok(serde_json::to_vec(&make()?)?) } else { Ok(Vec::new()) };
    let packed = collective_step(world, name, pack)?;
    Ok(serde_json::from_slice(&world.bcast_bytes(packed, 0)?)?)
}

/// The backends that cannot work here: they are not run, which is reported at once. Collective.
///
/// # Errors
/// Everywhere: no backend is left, or the storage failed in a trial. MPI errors.
pub(crate) fn skip_unavailable_backends(
    world: &Comm,
    run_dir: &RunDir,
    backends: &[String],
    options: impl Fn(&str) -> DriverOptions,
) -> Result<Vec<SkippedBackend>, CommandError> {
    let not_run = availability::find_unavailable(world, run_dir, backends, options)?.map_err(|(rank, message)| {
        CommandError::Collective(anyhow!(
            "rank {rank}: {message}; nothing was measured: check the storage, or choose another --path"
        ))
    })?;
    availability::check_any_available(backends, &not_run).map_err(|e| CommandError::Collective(e.into()))?;
    report_skipped(world, &not_run);
    Ok(not_run)
}

/// Adds the variants that would measure what another contestant does, because the library grants them the same hints. Collective.
///
/// # Errors
/// MPI errors.
pub(crate) fn skip_ineffective_variants(
    world: &Comm,
    run_dir: &RunDir,
    requests: &ContestantRequests<'_>,
    not_run: &mut Vec<SkippedBackend>,
) -> Result<(), CommandError> {
    let ineffective = find_ineffective(world, run_dir, requests, not_run)?;
    report_skipped(world, &ineffective);
    not_run.extend(ineffective);
    Ok(())
}

/// Reports at once what is not run.
pub(crate) fn report_skipped(world: &Comm, not_run: &[SkippedBackend]) {
    for SkippedBackend { backend, reason } in not_run.iter().filter(|_| world.is_root()) {
        print_diagnostic(&format!("{backend} is not run, the others are: {reason}"));
    }
}

/// Prints an announcement for a waiting user, once.
pub(crate) fn announce(world: &Comm, progress: &ProgressArgs, text: impl FnOnce() -> String) {
    if world.is_root() && progress.announces() {
        print_diagnostic(&text());
    }
}

/// Announces a run and the files of its result: what a rank prints after a signal may be lost in the launcher.
pub(crate) fn announce_run(world: &Comm, progress: &ProgressArgs, out: Option<&Path>, text: impl FnOnce() -> String) {
    let results = || out.map_or_else(String::new, |prefix| format!("; results in {}.*", prefix.display()));
    announce(world, progress, || text() + &results());
}

/// Progress reporters on rank 0, none on other ranks. They are opened before the run: one that cannot be monitored as requested is not
/// begun. Collective.
///
/// # Errors
/// Everywhere: a bar without a terminal, a file of metrics that cannot be written.
pub(crate) fn open_progress(
    world: &Comm,
    args: &ProgressArgs,
    title: impl FnOnce() -> RunTitle,
) -> Result<ProgressMonitor, CommandError> {
    let mut monitor = ProgressMonitor::silent();
    let open = || {
        if world.is_root() {
            monitor = ProgressMonitor::open(args, &title())?;
        }
        Ok(())
    };
    collective_step(world, "progress", open)?;
    Ok(monitor)
}

/// Output files on rank 0, if there is a prefix; None on other ranks. They are opened before the run: a result that cannot be kept is not
/// worth measuring. Collective.
///
/// # Errors
/// Everywhere: an error on some rank.
pub(crate) fn open_outputs(
    world: &Comm,
    prefix: Option<&Path>,
    suffixes: &[String],
) -> Result<Option<Outputs>, CommandError> {
    let mut created = None;
    let make = || match prefix.filter(|_| world.is_root()) {
        Some(prefix) => Outputs::create(prefix, suffixes)
            .map(|outputs| created = Some(outputs))
            .map_err(|e| UsageError::new(e.to_string(), "Choose another --out.").into()),
        None => Ok(()),
    };
    let agreed = collective_step(world, "output files", make);
    if agreed.is_err() {
        // Another rank failed: the files stay empty.
        created.take().into_iter().for_each(Outputs::discard);
    }
    agreed.map(|()| created)
}

/// Unwraps the result of the run, or aborts all ranks: the others may wait in a call that this one will never make.
pub(crate) fn unwrap_or_abort<T>(result: Result<T, impl Display>) -> T {
    result.unwrap_or_else(|e| {
        print_diagnostic(&format!("MPI failed between the ranks: {e}; what was measured is in the journal of --out"));
        beff_ffi::universe::abort(i32::from(Exit::Failure.code()));
        std::process::exit(i32::from(Exit::Failure.code()))
    })
}

/// Facts about the storage below `path`, as rank 0 sees it. Collective.
///
/// # Errors
/// Everywhere: errors of the system.
pub(crate) fn survey_storage(world: &Comm, path: &Path) -> Result<StorageRecord, CommandError> {
    broadcast_from_root(world, "storage", || {
        storage_record(path).map_err(|e| UsageError::new(e.to_string(), "Nothing was measured."))
    })
}

pub(crate) struct MeasurementSetup {
    pub costs: HarnessCost,
    pub interrupt: Interrupt,
    /// None without `--time-limit`; equal on all ranks.
    pub time_limit: Option<TimeLimitRecord>,
    pub machine: Option<MachineRecord>,
}

/// Prepares a measurement: runs what can fail on one rank alone, before anything is created. Collective.
///
/// # Errors
/// Everywhere: an error on some rank.
pub(crate) fn prepare_measurement(
    universe: &Universe,
    world: &Comm,
    survey: &Survey,
    (latency, limit): (bool, Option<TimeLimit>),
) -> Result<MeasurementSetup, CommandError> {
    let mut job_limit = None;
    let mut resolve = |requested| {
        let (record, limit) = time_limit::resolve(requested, finalize_hang_seconds(survey))?;
        job_limit = limit;
        Ok(record)
    };
    let time_limit = match limit {
        None => None,
        Some(requested) => Some(broadcast_from_root(world, "time limit", || resolve(requested))?),
    };
    let costs = harness::measure(world, latency)?;
    let of_rank = || format!("rank {}", world.rank());
    let interrupt = collective_step(world, "signals", || {
        Interrupt::watch().context("signals cannot be watched").with_context(of_rank)
    })?;
    let machine = collective_step(world, "machine", || match world.is_root() {
        true => machine(universe, survey).map(Some).with_context(of_rank),
        false => Ok(None),
    })?;
    Ok(MeasurementSetup { costs, interrupt: interrupt.with_limit(job_limit), time_limit, machine })
}

/// Time that this run is expected to wait for MPI_Finalize in vain.
fn finalize_hang_seconds(survey: &Survey) -> f64 {
    let library = beff_ffi::library_version(LIBRARY_CHARS).unwrap_or_default();
    let given = Limits::of(|name| std::env::var(name).ok()).ok().and_then(|limits| limits.finalize_seconds);
    hang_seconds(&library, survey.hosts > 1, given) as f64
}

/// Fills the output files with what `view` returns for their suffixes and prints the table, on rank 0. False if a file or stdout could
/// not be written; the reason has been printed.
pub(crate) fn write_outputs(
    outputs: Option<Outputs>,
    view: impl FnMut(&str) -> io::Result<Vec<u8>>,
    sheet: impl FnOnce(&DisplayContext) -> TerminalOutput,
) -> bool {
    // Files before stdout: after a signal Open MPI's mpirun stops reading, and a rank that prints blocks until it is killed.
    let written = outputs.map(|outputs| outputs.write(view));
    let saved = match &written {
        None => SaveStatus::NotSaved,
        Some(Ok(paths)) => SaveStatus::SavedTo(paths.clone()),
        Some(Err(_)) => SaveStatus::Failed,
    };
    let published = stdout::publish_sheet(sheet, saved);
    if let Err(error) = &published {
        print_diagnostic(&error.to_string());
    }
    match written {
        None => {}
        Some(Ok(paths)) => {
            let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
            print_diagnostic(&format!("wrote {}", names.join(" ")));
        }
        Some(Err(e)) => {
            print_diagnostic(&e.to_string());
            return false;
        }
    }
    published.is_ok()
}

/// Rank 0's exit code on all ranks. Collective.
///
/// # Errors
/// MPI errors.
pub(crate) fn broadcast_exit(world: &Comm, exit: Exit) -> Result<Exit, MpiError> {
    let mut code = [f64::from(exit.code())];
    world.bcast_f64(&mut code, 0)?;
    Ok(Exit::from_code(code[0] as u8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_that_would_hang_is_refused() {
        assert!(check_open_files(MIN_OPEN_FILES).is_ok() && check_open_files(open_file_limit()).is_ok());
        let error = check_open_files(8).unwrap_err().to_string();
        assert!(error.contains("open files is 8") && error.contains("ulimit -n"), "{error}");
    }
}
