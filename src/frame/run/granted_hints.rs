//! Hints that a library lists for a new file: what it accepted, and its defaults.

use std::path::Path;

use beff_backends::{Driver, OpenMode, OpenRequest};
use beff_ffi::{Comm, MpiError};

use crate::frame::run::agree;
use crate::frame::run::path_check::check_name;
use crate::frame::run::run_dir::RunDir;

/// Opens a new file of this contestant with `hints`, and removes it. The hints in force as rank 0 lists them, in the order of their keys;
/// None if the file cannot be opened, or the library lists none. Equal on all ranks. Collective.
///
/// # Errors
/// MPI errors.
pub fn granted_hints(
    world: &Comm,
    run_dir: &RunDir,
    driver: &dyn Driver,
    contestant: &str,
    hints: &[(String, String)],
) -> Result<Option<Vec<(String, String)>>, MpiError> {
    let path = run_dir.file(&Path::new(contestant).join("hints.dat"));
    let mut granted: Option<Vec<(String, String)>> = None;
    if !agree::any_rank(world, check_name(contestant, &path).is_err())? {
        let opened = driver.open(&OpenRequest { path: &path, mode: OpenMode::CreateNew, comm: world, hints }).ok();
        if agree::any_rank(world, opened.is_none())? {
            // Close is collective.
            std::mem::forget(opened);
        } else if let Some(file) = opened {
            granted = file.hints_in_use().ok();
            let _ = file.close();
        }
        world.barrier()?;
        if world.is_root() {
            let _ = path.remove();
        }
    }
    granted.iter_mut().for_each(|hints| hints.sort());
    // A list of texts can always be written and read.
    let packed = world.bcast_bytes(serde_json::to_vec(&granted).unwrap_or_default(), 0)?;
    Ok(serde_json::from_slice(&packed).unwrap_or_default())
}
