//! The run directory of a command: created with a name that no other run has, removed at the end.

use std::path::Path;

use beff_backends::{DirectTrial, TrialAlign};
use beff_ffi::{Comm, MpiError};

use super::crash_report;
use super::start::{self, CommandError};
use crate::frame::config::Stripe;
use crate::frame::error::UsageError;
use crate::frame::rank_directories::RankDirectories;
use crate::frame::records::{kinds, DirectAlignBasis, HostRecord, RunOutcome, StorageKey, StorageRecord, Warning};
use crate::frame::report::Outputs;
use crate::frame::run::agree;
use crate::frame::run::direct_trial;
use crate::frame::run::run_dir::RunDir;
use crate::frame::run::storage_sheet;
use crate::frame::run::striping::{check_stripe, set_stripes};
use crate::frame::values::usable_memory_bytes;
use crate::frame::words::clause;

/// Creates the directory; without a `name`, one from time and process of rank 0. New files have this stripe on a file system of this type.
/// `outputs` are returned if it is created, and removed if not. Collective.
///
/// # Errors
/// Equal on every rank; MPI errors.
pub(crate) fn create_run_directory(
    world: &Comm,
    parent: &Path,
    name: Option<&str>,
    files: (&[String], RankDirectories),
    (fs_type, stripe): (&str, Option<Stripe>),
    outputs: Option<Outputs>,
) -> Result<(RunDir, Option<Outputs>), CommandError> {
    let name = agree_on_name(world, name)?;
    let created = match stripe.map_or(Ok(()), |_| check_stripe(fs_type)) {
        Ok(()) => RunDir::create(world, parent, &name, files)?,
        Err(cause) => Err(format!("--stripe: {cause}")),
    };
    let striped = match (created, stripe) {
        (Ok(run_dir), Some(stripe)) => set_run_stripes(world, run_dir, (fs_type, stripe))?,
        (created, _) => created,
    };
    match striped {
        Ok(run_dir) => {
            crash_report::watch(&run_dir, world.rank(), world.size());
            Ok((run_dir, outputs))
        }
        Err(message) => {
            if let Some(outputs) = outputs {
                outputs.discard();
            }
            Err(CommandError::Collective(UsageError::new(message, "Nothing was measured.").into()))
        }
    }
}

/// Sets the stripes of new files; removes the directory if that fails. Outer: MPI errors. Inner: the message for the user. Collective.
fn set_run_stripes(
    world: &Comm,
    run_dir: RunDir,
    (fs_type, stripe): (&str, Stripe),
) -> Result<Result<RunDir, String>, MpiError> {
    let set = if world.is_root() { set_stripes(fs_type, run_dir.directories(), stripe) } else { Ok(()) };
    let set = agree::all_or_first_error(world, set)?;
    if set.is_err() && world.is_root() {
        let _ = run_dir.remove();
    }
    Ok(set.map(|()| run_dir).map_err(|(_, cause)| format!("--stripe: {cause}")))
}

/// Tries direct I/O on a file of the run on rank 0, if a `backend` may be direct and the file system does not report the alignment, or
/// `option_bytes` replaces it. Collective.
///
/// # Errors
/// MPI errors.
pub(crate) fn try_direct_io(
    world: &Comm,
    run_dir: &mut RunDir,
    storage: &mut StorageRecord,
    backend: Option<&str>,
    option_bytes: Option<u64>,
) -> Result<(), CommandError> {
    let Some(backend) = backend.filter(|_| option_bytes.is_some() || storage.direct_align_basis.is_none()) else {
        return Ok(());
    };
    *storage = start::broadcast_from_root(world, "direct I/O", || {
        let mut tried = storage.clone();
        let path = run_dir.file(&Path::new(backend).join("direct-trial.dat"));
        direct_trial::determine_alignment(&path, &mut tried, option_bytes);
        Ok(tried)
    })?;
    if let Some(trial) = driver_trial(storage, option_bytes.is_some()) {
        run_dir.set_direct_trial(trial);
    }
    Ok(())
}

/// Adds the storage sheet, queried on rank 0 from a new file of the first backend. Collective.
///
/// # Errors
/// MPI errors.
pub(crate) fn query_storage_sheet(
    world: &Comm,
    run_dir: &RunDir,
    storage: &mut StorageRecord,
    (backends, given): (&[String], &[(StorageKey, String)]),
    hosts: &[HostRecord],
) -> Result<(), CommandError> {
    let mut packed = Vec::new();
    if world.is_root() {
        let path = run_dir.file(&Path::new(backends.first().map_or("", String::as_str)).join("storage-sheet.dat"));
        storage.sheet = storage_sheet::of_new_file(&path, &storage.fs_type, given, usable_memory_bytes(hosts));
        packed = serde_json::to_vec(&storage.sheet).unwrap_or_default();
    }
    // No step that can fail: there is a run directory by now.
    storage.sheet = serde_json::from_slice(&world.bcast_bytes(packed, 0)?).unwrap_or_default();
    Ok(())
}

/// The result of a trial for the drivers.
fn driver_trial(storage: &StorageRecord, overrides_statx: bool) -> Option<DirectTrial> {
    let found = storage.direct_trial.as_deref()?;
    let is_proven = storage.direct_align_basis.is_some_and(DirectAlignBasis::is_proven);
    let align = match (storage.direct_offset_align_bytes, storage.direct_memory_align_bytes) {
        (Some(offset_bytes), Some(memory_bytes)) => Ok(TrialAlign { offset_bytes, memory_bytes, is_proven }),
        _ => Err(found.into()),
    };
    Some(DirectTrial { overrides_statx, align })
}

fn agree_on_name(world: &Comm, name: Option<&str>) -> Result<String, MpiError> {
    let name = name.map(str::to_owned).unwrap_or_else(|| {
        let now = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%S");
        format!("beff-raw-{now}-{}", std::process::id())
    });
    let bytes = world.bcast_bytes(name.into_bytes(), 0)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Removes the files of ranks on each of them, and the directory on rank 0, unless the files of a complete run are kept.
pub(crate) fn clean_up(world: &Comm, run_dir: &RunDir, keep_files: bool, outcome: RunOutcome) -> Option<Warning> {
    let is_kept = keep_files && outcome == RunOutcome::Complete;
    // Every rank has closed its files, or will not use them any more.
    if outcome != RunOutcome::Failed {
        let _ = world.barrier();
        if !is_kept {
            run_dir.remove_rank_files();
            let _ = world.barrier();
        }
    }
    if !world.is_root() || is_kept {
        return None;
    }
    run_dir.remove().err().map(|e| removal_warning(&run_dir.current_path(), &e.to_string()))
}

/// Warning for a run directory that could not be removed.
pub(crate) fn removal_warning(path: &str, reason: &str) -> Warning {
    kinds::FILES_LEFT
        .warning()
        .with_figure("path", path)
        .with_figure("reason", reason)
        .with_text(
            format!("files remain in {path}"),
            format!("The run directory {path} could not be removed: {}.", clause(reason)),
        )
        .with_next_step(format!("Check {path}, and remove it by hand if nobody needs the files."))
}
