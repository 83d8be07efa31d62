//! What the commands under mpirun share: starting MPI, one configuration for all ranks, output files on rank 0, and an end
//! that all ranks take together.

use std::fmt::Display;
use std::io;
use std::path::Path;

use anyhow::{anyhow, Context};
use beff_backends::DriverOptions;
use beff_ffi::{stranded, Comm, MpiError, Universe};
use nix::sys::resource::{getrlimit, Resource};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::progress::Progress;
use super::{complain, refuse, stdout};
use crate::frame::error::{Exit, UsageError};
use crate::frame::options::ProgressArgs;
use crate::frame::planted;
use crate::frame::records::{HarnessCost, Machine, StorageRecord};
use crate::frame::report::library::short_name;
use crate::frame::report::{Outputs, Place, Saved, Sheet};
use crate::frame::run::able::NotRun;
use crate::frame::run::interrupt::Interrupt;
use crate::frame::run::run_dir::RunDir;
use crate::frame::run::{able, agree, harness};
use crate::frame::system::launcher::{before_init, wrong_launcher};
use crate::frame::system::storage::storage_record;
use crate::frame::system::survey::{machine, Survey, LIBRARY_CHARS};

/// Seconds after which ranks that an MPI library leaves waiting are ended: [`stranded`].
const PATIENCE: &str = "BEFF_RAW_STRANDED_SECONDS";

/// Why a command ends before it has a result. Nothing becomes [`Early::Everywhere`] by `?` alone: who agrees on an error says so.
#[derive(Debug)]
pub(crate) enum Early {
    /// The same on every rank, agreed: all of them leave together.
    Everywhere(anyhow::Error),
    /// Perhaps of this rank alone: the others may wait for it in a call that it will never make.
    Alone(anyhow::Error),
}

impl From<MpiError> for Early {
    fn from(error: MpiError) -> Self {
        Self::Alone(error.into())
    }
}

impl From<serde_json::Error> for Early {
    fn from(error: serde_json::Error) -> Self {
        Self::Alone(error.into())
    }
}

/// Starts MPI, refuses the launcher of another MPI, and does `work` on every rank. Every rank ends with an exit code; of
/// what `work` failed with everywhere, rank 0 alone speaks. What one rank alone failed with ends all ranks.
///
/// # Errors
/// MPI does not start, or fails between the ranks at the end.
pub(crate) fn under_mpi(work: impl FnOnce(&Universe, &Comm) -> Result<Exit, Early>) -> anyhow::Result<Exit> {
    let env = |name: &str| std::env::var(name).ok();
    let library = beff_ffi::library_version(LIBRARY_CHARS).unwrap_or_else(|_| beff_ffi::built_with().into());
    if let Some(message) = before_init(&library, &short_name(&library), env) {
        return Ok(refuse(&message));
    }
    let patience_seconds = match patience(env(PATIENCE).as_deref()) {
        Ok(seconds) => seconds,
        Err(error) => return Ok(refuse(&error.to_string())),
    };
    if let Err(error) = enough_files(open_files()) {
        return Ok(refuse(&error.to_string()));
    }
    let universe = Universe::init().map_err(|e| anyhow!("MPI cannot be started: {e}"))?;
    abort_on_panic();
    let world = universe.world();
    stranded::arrange(world.rank(), patience_seconds, complain, i32::from(Exit::Failure.code()));
    if let Some(message) = wrong_launcher(world.size(), beff_ffi::built_with(), env) {
        return Ok(refuse(&message));
    }
    match work(&universe, &world) {
        Ok(exit) => Ok(exit),
        Err(Early::Alone(error)) => Ok(or_abort(Err(format!("{error:#}")))),
        Err(Early::Everywhere(error)) => {
            // Rank 0 speaks before any rank ends: some launchers kill the others, and their last words, at the first exit.
            if world.is_root() {
                complain(&format!("{error:#}"));
            }
            world.barrier()?;
            Ok(if error.is::<UsageError>() { Exit::Usage } else { Exit::Failure })
        }
    }
}

/// How long ranks are waited for that a library may have left in a call; `given` is the value of the variable.
fn patience(given: Option<&str>) -> Result<u64, UsageError> {
    let Some(text) = given else { return Ok(stranded::LIMIT_SECONDS) };
    text.parse().ok().filter(|seconds| *seconds > 0).ok_or_else(|| {
        UsageError::new(
            format!("{PATIENCE}={text} is no number of seconds"),
            "Give a whole number above 0, or unset the variable.",
        )
    })
}

/// Open files that MPI and a run need at the least. With fewer than 32 MPICH 4.0 and Open MPI 4.1 end or hang in MPI_Init, with a
/// few more a run cannot clean up behind itself.
const LEAST_FILES: u64 = 64;

/// Soft limit of open files.
fn open_files() -> u64 {
    getrlimit(Resource::RLIMIT_NOFILE).map_or(u64::MAX, |(soft, _)| soft)
}

fn enough_files(limit: u64) -> Result<(), UsageError> {
    if limit >= LEAST_FILES {
        return Ok(());
    }
    Err(UsageError::new(
        format!(
            "the limit of open files is {limit}: MPI needs {LEAST_FILES} or more, and may hang in its start with fewer"
        ),
        "Raise it where the ranks begin: ulimit -n 1024",
    ))
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

/// An error on its way to the other ranks.
#[derive(Default, Serialize, Deserialize)]
struct Told {
    /// What cannot be run, in two halves: [`UsageError`].
    usage: Option<(String, String)>,
    other: String,
}

impl From<anyhow::Error> for Told {
    fn from(error: anyhow::Error) -> Self {
        match error.downcast::<UsageError>() {
            Ok(e) => Self { usage: Some((e.cause, e.next_step)), ..Self::default() },
            Err(e) => Self { other: format!("{e:#}"), ..Self::default() },
        }
    }
}

impl From<Told> for anyhow::Error {
    fn from(told: Told) -> Self {
        match told.usage {
            Some((cause, next_step)) => UsageError::new(cause, next_step).into(),
            None => anyhow!(told.other),
        }
    }
}

/// One step before the measurement: what every rank has made, or on every rank the error of the lowest rank that could not.
/// Collective; every step that may fail on one rank alone goes through here, so none leaves the others behind.
///
/// # Errors
/// Everywhere: what `make` failed with on some rank.
pub(crate) fn step<T>(world: &Comm, name: &str, make: impl FnOnce() -> anyhow::Result<T>) -> Result<T, Early> {
    let made = planted::failure(name, world.rank()).map_err(|message| anyhow!(message)).and_then(|()| make());
    let packed = made.map_err(|error| serde_json::to_string(&Told::from(error)).unwrap_or_default());
    agree::all(world, packed)?.map_err(|(rank, packed)| {
        let unreadable = |_| Told { other: format!("rank {rank} failed in the step {name}"), ..Told::default() };
        Early::Everywhere(serde_json::from_str::<Told>(&packed).unwrap_or_else(unreadable).into())
    })
}

/// What rank 0 makes, on every rank: the configuration of the command line and its files, facts about rank 0's host.
/// Collective; `make` runs on rank 0 alone.
///
/// # Errors
/// Everywhere: what `make` refused.
pub(crate) fn from_root<T: Serialize + DeserializeOwned>(
    world: &Comm,
    name: &str,
    make: impl FnOnce() -> Result<T, UsageError>,
) -> Result<T, Early> {
    // What cannot be written for the others is an error of the step, too.
    let pack = || if world.is_root() { Ok(serde_json::to_vec(&make()?)?) } else { Ok(Vec::new()) };
    let packed = step(world, name, pack)?;
    Ok(serde_json::from_slice(&world.bcast_bytes(packed, 0)?)?)
}

/// The backends that cannot work here: they are not run, which is said at once. Collective.
///
/// # Errors
/// Everywhere: no other backend is left, or the storage failed a trial. MPI between the ranks.
pub(crate) fn leave_out(
    world: &Comm,
    run_dir: &RunDir,
    backends: &[String],
    options: impl Fn(&str) -> DriverOptions,
) -> Result<Vec<NotRun>, Early> {
    let not_run = able::not_run(world, run_dir, backends, options)?.map_err(|(rank, message)| {
        Early::Everywhere(anyhow!(
            "rank {rank}: {message}; nothing was measured: look at the storage, or choose another --path"
        ))
    })?;
    able::refuse_if_all(backends, &not_run).map_err(|e| Early::Everywhere(e.into()))?;
    if world.is_root() {
        not_run.iter().for_each(|n| complain(&format!("{} is not run, the others are: {}", n.backend, n.reason)));
    }
    Ok(not_run)
}

/// What a user who waits wants to know, once.
pub(crate) fn announce(world: &Comm, progress: &ProgressArgs, text: impl FnOnce() -> String) {
    if world.is_root() && progress.announces() {
        complain(&text());
    }
}

/// Who watches the run, on rank 0; nobody on the other ranks. Before the run: what cannot be watched as asked is not begun. Collective.
///
/// # Errors
/// Everywhere: a bar without a terminal, a file of metrics that cannot be written.
pub(crate) fn open_progress(
    world: &Comm,
    args: &ProgressArgs,
    title: impl FnOnce() -> String,
) -> Result<Progress, Early> {
    let mut made = Progress::silent();
    let open = || {
        if world.is_root() {
            made = Progress::open(args, &title())?;
        }
        Ok(())
    };
    step(world, "progress", open)?;
    Ok(made)
}

/// Output files on rank 0, if there is a prefix; None on the other ranks. They are opened before the run: a result that
/// cannot be kept is not worth measuring. Collective.
///
/// # Errors
/// Everywhere: what failed on some rank.
pub(crate) fn open_outputs(world: &Comm, prefix: Option<&Path>, suffixes: &[String]) -> Result<Option<Outputs>, Early> {
    let mut made = None;
    let make = || match prefix.filter(|_| world.is_root()) {
        Some(prefix) => Outputs::create(prefix, suffixes)
            .map(|outputs| made = Some(outputs))
            .map_err(|e| UsageError::new(e.to_string(), "Choose another --out.").into()),
        None => Ok(()),
    };
    let agreed = step(world, "output files", make);
    if agreed.is_err() {
        // Another rank failed: nothing will fill them.
        made.take().into_iter().for_each(Outputs::discard);
    }
    agreed.map(|()| made)
}

/// What the run brought, or the end of all ranks: the others may wait in a call that this one will never make, and
/// nothing but an abort ends them.
pub(crate) fn or_abort<T>(result: Result<T, impl Display>) -> T {
    result.unwrap_or_else(|e| {
        complain(&format!("MPI failed between the ranks: {e}; what was measured is in the journal of --out"));
        beff_ffi::universe::abort(i32::from(Exit::Failure.code()));
        std::process::exit(i32::from(Exit::Failure.code()))
    })
}

/// The storage below `path`, as rank 0 sees it. Collective.
///
/// # Errors
/// Everywhere: what the system says.
pub(crate) fn storage_below(world: &Comm, path: &Path) -> Result<StorageRecord, Early> {
    from_root(world, "storage", || {
        storage_record(path).map_err(|e| UsageError::new(e.to_string(), "Nothing was measured."))
    })
}

/// What a measurement needs besides its plan.
pub(crate) struct Ready {
    /// What the harness costs.
    pub costs: HarnessCost,
    /// Signals.
    pub interrupt: Interrupt,
    /// On rank 0.
    pub machine: Option<Machine>,
}

/// Gets ready to measure: what can fail on one rank alone comes here, before anything is made. Collective.
///
/// # Errors
/// Everywhere: what failed on some rank.
pub(crate) fn get_ready(universe: &Universe, world: &Comm, survey: &Survey, latency: bool) -> Result<Ready, Early> {
    let costs = harness::measure(world, latency)?;
    let of_rank = || format!("rank {}", world.rank());
    let interrupt =
        step(world, "signals", || Interrupt::watch().context("signals cannot be watched").with_context(of_rank))?;
    let machine = step(world, "machine", || match world.is_root() {
        true => machine(universe, survey).map(Some).with_context(of_rank),
        false => Ok(None),
    })?;
    Ok(Ready { costs, interrupt, machine })
}

/// Fills the output files with what `view` makes for their suffixes and prints the table. For rank 0. False if a file
/// or stdout could not be written; the reason has been told.
pub(crate) fn deliver(
    outputs: Option<Outputs>,
    view: impl FnMut(&str) -> io::Result<Vec<u8>>,
    sheet: impl FnOnce(&Place) -> Sheet,
) -> bool {
    // Files before stdout: after a signal Open MPI's mpirun stops reading, and a rank that prints waits until its kill.
    let written = outputs.map(|outputs| outputs.write(view));
    let saved = match &written {
        None => Saved::Nothing,
        Some(Ok(paths)) => Saved::Files(paths.clone()),
        Some(Err(_)) => Saved::Failed,
    };
    let published = stdout::publish_sheet(sheet, saved);
    if let Err(error) = &published {
        complain(&error.to_string());
    }
    match written {
        None => {}
        Some(Ok(paths)) => {
            let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
            complain(&format!("wrote {}", names.join(" ")));
        }
        Some(Err(e)) => {
            complain(&e.to_string());
            return false;
        }
    }
    published.is_ok()
}

/// Rank 0's exit code on all ranks. Collective.
///
/// # Errors
/// MPI between the ranks.
pub(crate) fn exit_of_root(world: &Comm, exit: Exit) -> Result<Exit, MpiError> {
    let mut code = [f64::from(exit.code())];
    world.bcast_f64(&mut code, 0)?;
    Ok(Exit::from_code(code[0] as u8))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value that would be ignored would be a limit that nobody has set.
    #[test]
    fn the_patience_is_a_number_of_seconds_or_refused() {
        assert_eq!(patience(None).unwrap(), stranded::LIMIT_SECONDS);
        assert_eq!(patience(Some("600")).unwrap(), 600);
        for odd in ["", "0", "-1", "5s", "1e9"] {
            let error = patience(Some(odd)).unwrap_err();
            assert!(error.to_string().contains(PATIENCE), "{error}");
            assert!(error.next_step.contains("above 0"), "{error}");
        }
    }

    #[test]
    fn a_start_that_would_hang_is_refused() {
        assert!(enough_files(LEAST_FILES).is_ok() && enough_files(open_files()).is_ok());
        let error = enough_files(8).unwrap_err().to_string();
        assert!(error.contains("open files is 8") && error.contains("ulimit -n"), "{error}");
    }
}
