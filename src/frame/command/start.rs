//! What the commands under mpirun share: starting MPI, one configuration for all ranks, output files on rank 0, and an end
//! that all ranks take together.

use std::fmt::Display;
use std::io;
use std::path::Path;

use anyhow::{anyhow, Context};
use beff_ffi::{Comm, MpiError, Universe};
use serde::de::DeserializeOwned;
use serde::Serialize;

use super::{complain, publish, refuse};
use crate::frame::error::{Exit, UsageError};
use crate::frame::records::{HarnessCost, Machine, StorageRecord};
use crate::frame::report::Outputs;
use crate::frame::run::interrupt::Interrupt;
use crate::frame::run::{agree, harness};
use crate::frame::system::launcher::{before_init, wrong_launcher};
use crate::frame::system::storage::storage_record;
use crate::frame::system::survey::{machine, survey, Survey, LIBRARY_CHARS};

/// Starts MPI, refuses the launcher of another MPI, and does `work` on every rank. Every rank ends with an exit code; of
/// what `work` failed with, rank 0 alone speaks, so it must be the same on all ranks.
///
/// # Errors
/// MPI does not start, or fails between the ranks at the end.
pub(crate) fn under_mpi(work: impl FnOnce(&Universe, &Comm) -> anyhow::Result<Exit>) -> anyhow::Result<Exit> {
    let env = |name: &str| std::env::var(name).ok();
    let library = beff_ffi::library_version(LIBRARY_CHARS).unwrap_or_else(|_| beff_ffi::built_with().into());
    if let Some(message) = before_init(&library, env) {
        return Ok(refuse(&message));
    }
    let universe = Universe::init().map_err(|e| anyhow!("MPI cannot be started: {e}"))?;
    abort_on_panic();
    let world = universe.world();
    if let Some(message) = wrong_launcher(world.size(), beff_ffi::built_with(), env) {
        return Ok(refuse(&message));
    }
    work(&universe, &world).or_else(|error| {
        // Rank 0 speaks before any rank ends: some launchers kill the others, and their last words, at the first exit.
        if world.is_root() {
            complain(&format!("{error:#}"));
        }
        world.barrier()?;
        Ok(if error.is::<UsageError>() { Exit::Usage } else { Exit::Failure })
    })
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

/// What rank 0 makes, on every rank: the configuration of the command line and its files, facts about rank 0's host.
/// Collective; `make` runs on rank 0 alone.
///
/// # Errors
/// On every rank: what `make` refused, as [`UsageError`]; MPI between the ranks.
pub(crate) fn from_root<T: Serialize + DeserializeOwned>(
    world: &Comm,
    make: impl FnOnce() -> Result<T, UsageError>,
) -> anyhow::Result<T> {
    let mine =
        if world.is_root() { make().map_err(|e| (e.cause, e.next_step)) } else { Err((String::new(), String::new())) };
    let bytes = world.bcast_bytes(serde_json::to_vec(&mine)?, 0)?;
    let shared: Result<T, (String, String)> = serde_json::from_slice(&bytes)?;
    shared.map_err(|(cause, next_step)| UsageError::new(cause, next_step).into())
}

/// What every rank has made for itself, or the error of the lowest rank that could not, on every rank. Collective.
///
/// # Errors
/// On every rank the same; MPI between the ranks.
pub(crate) fn on_all<T, E: Display>(world: &Comm, mine: Result<T, E>) -> anyhow::Result<T> {
    let mine = mine.map_err(|e| format!("{e:#}"));
    agree::all(world, mine)?.map_err(|(rank, message)| anyhow!("rank {rank}: {message}"))
}

/// The run that every rank has made, or on every rank the message of one that could not. Collective.
///
/// # Errors
/// On every rank the same; MPI between the ranks.
pub(crate) fn made<T>(world: &Comm, run: Result<T, String>) -> anyhow::Result<T> {
    agree::all(world, run)?.map_err(|(_, message)| anyhow!(message))
}

/// What a user who waits wants to know, once.
pub(crate) fn announce(world: &Comm, quiet: bool, text: impl FnOnce() -> String) {
    if world.is_root() && !quiet {
        complain(&text());
    }
}

/// Output files on rank 0, if there is a prefix; None on the other ranks. They are opened before the run: a result that
/// cannot be kept is not worth measuring. Collective.
///
/// # Errors
/// A failure on rank 0 is a failure everywhere.
pub(crate) fn open_outputs(
    world: &Comm,
    prefix: Option<&Path>,
    suffixes: &[String],
) -> anyhow::Result<Option<Outputs>> {
    let made = match prefix.filter(|_| world.is_root()) {
        Some(prefix) => Outputs::create(prefix, suffixes).map(Some).map_err(|e| e.to_string()),
        None => Ok(None),
    };
    agree::all(world, made)?.map_err(|(_, message)| UsageError::new(message, "Choose another --out.").into())
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

/// What is known of the machine when the plan is made. The same on all ranks.
///
/// # Errors
/// On every rank the same; MPI between the ranks.
pub(crate) fn look_around(world: &Comm) -> anyhow::Result<Survey> {
    survey(world)?.map_err(|e| anyhow!(e))
}

/// The storage below `path`, as rank 0 sees it. Collective.
///
/// # Errors
/// On every rank the same; MPI between the ranks.
pub(crate) fn storage_below(world: &Comm, path: &Path) -> anyhow::Result<StorageRecord> {
    from_root(world, || storage_record(path).map_err(|e| UsageError::new(e.to_string(), "Nothing was measured.")))
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
/// On every rank the same; MPI between the ranks.
pub(crate) fn get_ready(universe: &Universe, world: &Comm, survey: &Survey, latency: bool) -> anyhow::Result<Ready> {
    let costs = harness::measure(world, latency)?;
    let interrupt = on_all(world, Interrupt::watch().context("signals cannot be watched"))?;
    let machine = on_all(world, if world.is_root() { machine(universe, survey).map(Some) } else { Ok(None) })?;
    Ok(Ready { costs, interrupt, machine })
}

/// When something that takes `seconds` from now will be over.
pub(crate) fn end_in(seconds: f64) -> String {
    jiff::Timestamp::now()
        .checked_add(jiff::SignedDuration::try_from_secs_f64(seconds.max(0.0)).unwrap_or_default())
        .map_or_else(|_| "an unknown time".into(), |end| format!("{} UTC", end.strftime("%H:%M:%S")))
}

/// Fills the output files with what `view` makes for their suffixes and prints the table. For rank 0. False if a file
/// or stdout could not be written; the reason has been told.
pub(crate) fn deliver(
    outputs: Option<Outputs>,
    view: impl FnMut(&str) -> io::Result<Vec<u8>>,
    table: impl FnOnce() -> String,
) -> bool {
    // Files before stdout: after a signal Open MPI's mpirun stops reading, and a rank that prints waits until its kill.
    let written = outputs.map(|outputs| outputs.write(view));
    let published = publish(table().as_bytes());
    if let Err(error) = &published {
        complain(&error.to_string());
    }
    match written {
        None => {}
        Some(Ok(paths)) => paths.iter().for_each(|path| complain(&format!("wrote {}", path.display()))),
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
