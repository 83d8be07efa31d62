//! The run directory: created by this run, refused if it exists, removed with the files of this run at the end. Files of others in it
//! stay, and the directory with them.
//!
//! It is held open, with its directories of the backends. Files are opened and removed relative to these descriptors, so no other file is
//! lost if a directory is renamed, exchanged or replaced by a link during the run.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use beff_backends::{DirectTrial, DirectoryHandle, FilePath};
use beff_ffi::{Comm, MpiError};

use crate::frame::fault_injection;
use crate::frame::rank_directories::{rank_of_file, RankDirectories};
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
    directories: RankDirectories,
    /// Subdirectories for the files of ranks, held open: on rank 0 all, on other ranks those of the own files.
    of_ranks: Vec<DirectoryHandle>,
    rank: u64,
    /// Files of this rank by their paths, shared by all clones.
    own_files: Arc<Mutex<BTreeMap<PathBuf, FilePath>>>,
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
    /// Creates `parent/name` on rank 0, with one directory per backend, in each the subdirectories for files of ranks, and checks that
    /// every rank sees it.
    ///
    /// # Errors
    /// Outer: MPI errors. Inner: the message for the user, equal on all ranks.
    pub fn create(
        world: &Comm,
        parent: &Path,
        name: &str,
        (backends, directories): (&[String], RankDirectories),
    ) -> Result<Result<Self, String>, MpiError> {
        let planted = fault_injection::injected_failure("run directory", world.rank());
        let mut created = None;
        let tree = planted.and_then(|()| match world.is_root() {
            true => create_tree(parent, name, (backends, directories)).map(|tree| created = Some(tree)),
            false => Ok(()),
        });
        let failed = agree::all_or_first_error(world, tree)?.err();
        // The same path may be on another file system on another host.
        let see = || match &created {
            Some(created) => Ok(created.clone()),
            None => open_tree(parent, name, (backends, directories), world.rank())
                .map_err(|e| not_visible(&parent.join(name), world.rank(), &e)),
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
            names: Arc::clone(&self.names),
            ..Self::new(parent, own, backends, self.directories, Vec::new(), self.rank)
        })
    }

    fn new(
        parent: DirectoryHandle,
        own: DirectoryHandle,
        backends: Vec<DirectoryHandle>,
        directories: RankDirectories,
        of_ranks: Vec<DirectoryHandle>,
        rank: u64,
    ) -> Self {
        Self {
            parent,
            own,
            backends,
            directories,
            of_ranks,
            rank,
            own_files: Arc::default(),
            removed: Cell::new(false),
            direct_trial: None,
            names: Arc::default(),
        }
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

    /// The directories of files that are held: those of the backends, and those in them for files of ranks.
    pub fn directories(&self) -> impl Iterator<Item = &Path> {
        self.backends.iter().chain(&self.of_ranks).map(DirectoryHandle::path)
    }

    /// Path of file BACKEND/NAME below the directory, for that of a rank with its subdirectory.
    #[must_use]
    pub fn located(&self, name: &Path) -> PathBuf {
        let of_rank = name.file_name().and_then(rank_of_file).and_then(|rank| self.directories.of_rank(rank));
        match (of_rank, name.parent(), name.file_name()) {
            (Some(subdirectory), Some(parent), Some(name)) => parent.join(subdirectory).join(name),
            _ => name.to_owned(),
        }
    }

    /// File BACKEND/NAME in the directory.
    #[must_use]
    pub fn file(&self, name: &Path) -> FilePath {
        let path = self.path().join(self.located(name));
        let (Some(directory), Some(name)) = (path.parent().and_then(|path| self.directory(path)), path.file_name())
        else {
            return FilePath::unbacked(path);
        };
        self.names.lock().unwrap_or_else(PoisonError::into_inner).insert(name_pattern(name));
        let file = directory.file(name);
        if rank_of_file(name) == Some(self.rank) {
            self.own_files.lock().unwrap_or_else(PoisonError::into_inner).insert(path, file.clone());
        }
        file
    }

    /// The directory of a backend, or one in it for files of ranks.
    fn directory(&self, path: &Path) -> Option<DirectoryHandle> {
        let held = self.backends.iter().chain(&self.of_ranks).find(|held| held.path() == path);
        // Files of a rank in another subdirectory are only read.
        let open = || {
            let of_backend = self.backends.iter().find(|backend| path.parent() == Some(backend.path()))?;
            of_backend.open_subdirectory(path.file_name()?).ok()
        };
        held.cloned().or_else(open)
    }

    /// Removes the files of this rank, on every rank at once: rank 0 alone would take minutes for those of 100 000. Those that remain
    /// are left to [`RunDir::remove`], which reports them.
    pub fn remove_rank_files(&self) {
        let own = std::mem::take(&mut *self.own_files.lock().unwrap_or_else(PoisonError::into_inner));
        for file in own.values() {
            let _ = file.remove();
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
            for name in self.directories.names() {
                first = first.and(self.remove_subdirectory(backend, OsStr::new(&name)));
            }
            let emptied = backend.remove_files(|name| self.is_own(name));
            let name = backend.path().file_name().unwrap_or_default();
            first = first.and(emptied.and_then(|()| self.own.remove(name, backend)));
        }
        // The marker is left if the start failed early.
        first.and(self.own.remove_files(|name| name == MARKER))
    }

    /// Removes a subdirectory for files of ranks, with the files of this run.
    fn remove_subdirectory(&self, backend: &DirectoryHandle, name: &OsStr) -> io::Result<()> {
        let directory = match self.directory(&backend.path().join(name)) {
            Some(directory) => directory,
            // Not created, or removed by another process.
            None => return Ok(()),
        };
        directory.remove_files(|name| self.is_own(name))?;
        backend.remove(name, &directory)
    }
}

fn not_visible(path: &Path, rank: u64, e: &io::Error) -> String {
    format!(
        "the run directory {} made by rank 0 is not visible on rank {rank}: {e}. --path must name a directory that all hosts share",
        path.display()
    )
}

fn create_tree(
    parent: &Path,
    name: &str,
    (backends, directories): (&[String], RankDirectories),
) -> Result<RunDir, String> {
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
    let mut run_dir = RunDir::new(held, own, Vec::new(), directories, Vec::new(), 0);
    for backend in backends {
        if let Err((name, e)) = create_backend_directory(&mut run_dir, backend) {
            let _ = run_dir.remove();
            let next = match e.raw_os_error() {
                Some(nix::libc::EMFILE) => {
                    "give a larger --files-per-directory, or raise the limit of open files (ulimit -n)"
                }
                _ => "choose another --path",
            };
            return Err(format!("cannot create the directory {}: {e}; {next}", path.join(name).display()));
        }
    }
    run_dir.own.file(OsStr::new(MARKER)).create().map_err(|e| {
        let _ = run_dir.remove();
        format!("cannot create a file in {}: {e}; choose another --path", path.display())
    })?;
    Ok(run_dir)
}

/// Creates the directory of a backend with its subdirectories; on error with the name of the one that failed.
fn create_backend_directory(run_dir: &mut RunDir, backend: &str) -> Result<(), (PathBuf, io::Error)> {
    let of_backend = run_dir.own.create_subdirectory(OsStr::new(backend)).map_err(|e| (backend.into(), e))?;
    // Known from now on, so that an error removes it.
    run_dir.backends.push(of_backend.clone());
    for name in run_dir.directories.names() {
        let created = of_backend.create_subdirectory(OsStr::new(&name));
        run_dir.of_ranks.push(created.map_err(|e| (Path::new(backend).join(&name), e))?);
    }
    Ok(())
}

/// Opens the directories that rank 0 has created, of those for files of ranks the ones with files of `rank`.
fn open_tree(
    parent: &Path,
    name: &str,
    (backends, directories): (&[String], RankDirectories),
    rank: u64,
) -> io::Result<RunDir> {
    let parent = DirectoryHandle::open(parent)?;
    let own = parent.open_subdirectory(OsStr::new(name))?;
    let mark = own.file(OsStr::new(MARKER));
    mark.open_to_read()
        .map_err(|e| io::Error::other(format!("a directory of this name exists, but not that of rank 0 ({e})")))?;
    let open = |backend: &String| own.open_subdirectory(OsStr::new(backend));
    let backends = backends.iter().map(open).collect::<io::Result<Vec<_>>>()?;
    let of_rank = directories.of_rank(rank);
    let open = |backend: &DirectoryHandle| Some(backend.open_subdirectory(OsStr::new(of_rank.as_ref()?)));
    let of_ranks = backends.iter().filter_map(open).collect::<io::Result<_>>()?;
    Ok(RunDir::new(parent, own, backends, directories, of_ranks, rank))
}

#[cfg(test)]
#[path = "run_dir_tests.rs"]
mod tests;
