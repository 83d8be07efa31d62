//! The run directory: created by this run, refused if it exists, removed with the files of this run at the end. Files of others in it
//! stay, and the directory with them.
//!
//! It is held open, with its directories of the backends. Files are opened and removed relative to these descriptors, so no other file is
//! lost if a directory is renamed, exchanged or replaced by a link during the run.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use beff_backends::{DirectTrial, DirectoryHandle, FilePath};
use beff_ffi::{Comm, MpiError};

use crate::frame::fault_injection;
use crate::frame::run::agree;

/// File in the new directory until all ranks have opened it: a directory of the same name on another host may be a different one.
const MARKER: &str = ".made-by-rank-0-of-beff-raw";

/// A directory that this run has created. Nothing outside it is ever written or removed.
#[derive(Clone, Debug)]
pub struct RunDir {
    /// Directory in which it was created.
    parent: DirectoryHandle,
    own: DirectoryHandle,
    backends: Vec<DirectoryHandle>,
    removed: Cell<bool>,
    /// Trial of direct I/O on its files; None: not needed.
    direct_trial: Option<DirectTrial>,
    /// Patterns of the file names that this rank has used, shared by all clones. Names of other ranks differ in numbers only.
    names: Arc<Mutex<BTreeSet<Vec<u8>>>>,
}

/// A name with `#` in place of each number.
fn name_pattern(name: &OsStr) -> Vec<u8> {
    let mut form = Vec::with_capacity(name.len());
    for byte in name.as_bytes() {
        match byte {
            b'0'..=b'9' if form.last() == Some(&b'#') => {}
            b'0'..=b'9' => form.push(b'#'),
            other => form.push(*other),
        }
    }
    form
}

/// True for files of this run, for files that MPI libraries create with them (`.NAME.shfp.N`, `MAX_NAME.locktest.N`), and for removed files
/// that are still open (NFS, FUSE).
fn is_own(names: &BTreeSet<Vec<u8>>, name: &OsStr) -> bool {
    let form = name_pattern(name);
    let begin = form.iter().position(|byte| *byte != b'.').unwrap_or(0);
    let is_removed = [b".nfs#".as_slice(), b".fuse_hidden"].iter().any(|removed| form.starts_with(removed));
    is_removed || names.iter().any(|own| form[begin..].starts_with(own))
}

impl RunDir {
    /// Creates `parent/name` on rank 0, with one directory per backend, and checks that every rank sees it.
    ///
    /// # Errors
    /// Outer: MPI errors. Inner: the message for the user, equal on all ranks.
    pub fn create(
        world: &Comm,
        parent: &Path,
        name: &str,
        backends: &[String],
    ) -> Result<Result<Self, String>, MpiError> {
        let planted = fault_injection::injected_failure("run directory", world.rank());
        let mut created = None;
        let tree = planted.and_then(|()| match world.is_root() {
            true => create_tree(parent, name, backends).map(|tree| created = Some(tree)),
            false => Ok(()),
        });
        let failed = agree::all_or_first_error(world, tree)?.err();
        // The same path may be on another file system on another host.
        let see = || match &created {
            Some(created) => Ok(created.clone()),
            None => open_tree(parent, name, backends).map_err(|e| not_visible(&parent.join(name), world.rank(), &e)),
        };
        let seen = match failed {
            Some(failed) => Err(failed),
            None => {
                let planted = fault_injection::injected_failure("sight of the run directory", world.rank());
                agree::all_or_first_error(world, planted.and_then(|()| see()))?
            }
        };
        if let Some(created) = &created {
            // No longer needed, or removed with the directory.
            let _ = created.own.file(OsStr::new(MARKER)).remove();
            if seen.is_err() {
                let _ = created.remove();
            }
        }
        Ok(seen.map_err(|(_, message)| message))
    }

    /// Opens the directory of another run, with the same names of files.
    ///
    /// # Errors
    /// It does not exist, or lacks the directory of a backend.
    pub fn open_other(&self, path: &Path, backends: &[String]) -> io::Result<Self> {
        let name = path.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        let parent = DirectoryHandle::open(path.parent().unwrap_or(Path::new("/")))?;
        let own = parent.open_subdirectory(name)?;
        let backends =
            backends.iter().map(|backend| own.open_subdirectory(OsStr::new(backend))).collect::<io::Result<_>>()?;
        Ok(Self {
            parent,
            own,
            backends,
            removed: Cell::new(false),
            names: Arc::clone(&self.names),
            direct_trial: None,
        })
    }

    /// Result of a trial of direct I/O on its files.
    #[must_use]
    pub fn direct_trial(&self) -> Option<DirectTrial> {
        self.direct_trial.clone()
    }

    /// Sets the result of the trial, the same on all ranks.
    pub fn set_direct_trial(&mut self, trial: DirectTrial) {
        self.direct_trial = Some(trial);
    }

    /// Path under which the directory was created.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.own.path()
    }

    /// Current path, for a user who may remove the directory; never the path of another directory.
    #[must_use]
    pub fn current_path(&self) -> String {
        let current = self.own.current_path().or_else(|| self.own.check_name().is_ok().then(|| self.path().to_owned()));
        current.map_or_else(|| "(moved to an unknown path)".into(), |path| path.display().to_string())
    }

    /// The directories of the backends.
    pub fn directories(&self) -> impl Iterator<Item = &Path> {
        self.backends.iter().map(DirectoryHandle::path)
    }

    /// File BACKEND/NAME in the directory.
    #[must_use]
    pub fn file(&self, name: &Path) -> FilePath {
        let path = self.path().join(name);
        let of_backend = self.backends.iter().find(|backend| path.parent() == Some(backend.path()));
        match (of_backend, name.file_name()) {
            (Some(directory), Some(name)) => {
                self.names.lock().unwrap_or_else(PoisonError::into_inner).insert(name_pattern(name));
                directory.file(name)
            }
            _ => FilePath::unbacked(path),
        }
    }

    fn is_own(&self, name: &OsStr) -> bool {
        is_own(&self.names.lock().unwrap_or_else(PoisonError::into_inner), name)
    }

    /// Removes the files of a backend.
    ///
    /// # Errors
    /// The first file that could not be removed; a file that is not of this run.
    pub fn empty(&self, backend: &str) -> io::Result<()> {
        let of_backend = self.backends.iter().find(|found| found.path().file_name() == Some(OsStr::new(backend)));
        of_backend.map_or(Ok(()), |directory| directory.remove_files(|name| self.is_own(name)))
    }

    /// Removes the files of this run, wherever their directory is now, and the directory if it still has its name. Further calls do
    /// nothing.
    ///
    /// # Errors
    /// Errors of the file system; a file that is not of this run; another directory of the name, which is not touched.
    pub fn remove(&self) -> io::Result<()> {
        if self.removed.get() {
            return Ok(());
        }
        let emptied = if self.own.is_removed() { Ok(()) } else { self.empty_all() };
        let name = self.path().file_name().unwrap_or_default();
        // The error of a file that remains is more specific than that of rmdir(2).
        emptied.and_then(|()| self.parent.remove(name, &self.own))?;
        self.removed.set(true);
        Ok(())
    }

    fn empty_all(&self) -> io::Result<()> {
        let mut first = Ok(());
        for backend in &self.backends {
            let emptied = backend.remove_files(|name| self.is_own(name));
            let name = backend.path().file_name().unwrap_or_default();
            first = first.and(emptied.and_then(|()| self.own.remove(name, backend)));
        }
        // The marker is left if the start failed early.
        first.and(self.own.remove_files(|name| name == MARKER))
    }
}

fn not_visible(path: &Path, rank: u64, e: &io::Error) -> String {
    format!(
        "the run directory {} made by rank 0 is not visible on rank {rank}: {e}. --path must name a directory that all hosts share",
        path.display()
    )
}

fn create_tree(parent: &Path, name: &str, backends: &[String]) -> Result<RunDir, String> {
    let path = parent.join(name);
    let refused = |e: io::Error| {
        let next = match e.kind() {
            io::ErrorKind::AlreadyExists => "choose another --run-dir; existing files are never touched",
            io::ErrorKind::NotFound => "--path must be an existing directory",
            io::ErrorKind::PermissionDenied => "choose a --path where you may write",
            _ => "choose another --path",
        };
        format!("cannot create the run directory {}: {e}; {next}", path.display())
    };
    let held = DirectoryHandle::open(parent).map_err(refused)?;
    let own = held.create_subdirectory(OsStr::new(name)).map_err(refused)?;
    let mut run_dir = RunDir {
        parent: held,
        own,
        backends: Vec::new(),
        removed: Cell::new(false),
        direct_trial: None,
        names: Arc::default(),
    };
    for backend in backends {
        match run_dir.own.create_subdirectory(OsStr::new(backend)) {
            Ok(directory) => run_dir.backends.push(directory),
            Err(e) => {
                let _ = run_dir.remove();
                let path = path.join(backend);
                return Err(format!("cannot create the directory {}: {e}; choose another --path", path.display()));
            }
        }
    }
    run_dir.own.file(OsStr::new(MARKER)).create().map_err(|e| {
        let _ = run_dir.remove();
        format!("cannot create a file in {}: {e}; choose another --path", path.display())
    })?;
    Ok(run_dir)
}

/// Opens the directories that rank 0 has created.
fn open_tree(parent: &Path, name: &str, backends: &[String]) -> io::Result<RunDir> {
    let parent = DirectoryHandle::open(parent)?;
    let own = parent.open_subdirectory(OsStr::new(name))?;
    let mark = own.file(OsStr::new(MARKER));
    mark.open_to_read()
        .map_err(|e| io::Error::other(format!("a directory of this name exists, but not that of rank 0 ({e})")))?;
    let backends =
        backends.iter().map(|backend| own.open_subdirectory(OsStr::new(backend))).collect::<io::Result<_>>()?;
    Ok(RunDir { parent, own, backends, removed: Cell::new(false), direct_trial: None, names: Arc::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_files_differ_in_numbers_only() {
        let names = ["n2-type0.dat", "file-0001"].map(|name| name_pattern(OsStr::new(name))).into();
        for own in [
            "n2-type0.dat",
            "n16-type4.dat",
            "file-0312",
            ".n2-type0.dat.shfp.4711",
            "file-0001.locktest.3",
            ".nfs000000000a1",
        ] {
            assert!(is_own(&names, OsStr::new(own)), "{own}");
        }
        for other in ["thesis.txt", "n2-type0.bak", "n-type0.dat", "my-file-0001", ".bashrc", "file-", "", "..."] {
            assert!(!is_own(&names, OsStr::new(other)), "{other}");
        }
    }
}
