//! The run directory: made by this run, refused if it exists, removed with everything in it at the end.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use beff_ffi::{Comm, MpiError};

use crate::frame::planted;
use crate::frame::run::agree::first_message;

/// A directory that this run has made. Nothing outside it is ever written or removed.
#[derive(Clone, Debug)]
pub struct RunDir {
    path: PathBuf,
}

impl RunDir {
    /// Makes `parent/name` on rank 0, with one directory per backend, and checks that every rank sees it.
    ///
    /// # Errors
    /// Outer: MPI between the ranks. Inner: the message for the user, equal on all ranks.
    pub fn make(
        world: &Comm,
        parent: &Path,
        name: &str,
        backends: &[String],
    ) -> Result<Result<Self, String>, MpiError> {
        let path = parent.join(name);
        let this = Self { path };
        let path = &this.path;
        let planted = planted::failure("run directory", world.rank());
        let made = planted.and_then(|()| if world.is_root() { make_tree(path, backends) } else { Ok(()) });
        let is_made = world.is_root() && made.is_ok();
        if let Some((_, message)) = first_message(world, made.err())? {
            if is_made {
                let _ = this.remove();
            }
            return Ok(Err(message));
        }
        // The parent's path may mean another file system on another host.
        let sight = || match fs::metadata(path) {
            Ok(_) => Ok(()),
            Err(e) => Err(format!(
                "the run directory {} made by rank 0 is not visible on rank {}: {e}. --path must name a directory \
                 that all hosts share",
                path.display(),
                world.rank()
            )),
        };
        let seen = planted::failure("sight of the run directory", world.rank()).and_then(|()| sight());
        match first_message(world, seen.err())? {
            None => Ok(Ok(this)),
            Some((_, message)) => {
                if world.is_root() {
                    let _ = this.remove();
                }
                Ok(Err(message))
            }
        }
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the directory and everything in it.
    ///
    /// # Errors
    /// What the file system says.
    pub fn remove(&self) -> io::Result<()> {
        fs::remove_dir_all(&self.path)
    }
}

fn make_tree(path: &Path, backends: &[String]) -> Result<(), String> {
    fs::create_dir(path).map_err(|e| {
        let next = match e.kind() {
            io::ErrorKind::AlreadyExists => "choose another --run-dir; existing files are never touched",
            io::ErrorKind::NotFound => "--path must be an existing directory",
            io::ErrorKind::PermissionDenied => "choose a --path where you may write",
            _ => "choose another --path",
        };
        format!("cannot make the run directory {}: {e}; {next}", path.display())
    })?;
    for backend in backends {
        let directory = path.join(backend);
        fs::create_dir(&directory).map_err(|e| {
            let _ = fs::remove_dir_all(path);
            format!("cannot make the directory {}: {e}; choose another --path", directory.display())
        })?;
    }
    Ok(())
}
