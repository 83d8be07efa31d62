//! The run directory: made by this run, refused if it exists, removed with the files of this run at the end. What somebody else has put
//! there stays, and the directory with it.
//!
//! It is held open, with its directories of the backends. Files are opened and removed relative to these descriptors, so a directory
//! that is renamed, exchanged or replaced by a link while the run is under way costs nobody a file.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use beff_backends::{Directory, FilePath};
use beff_ffi::{Comm, MpiError};

use crate::frame::planted;
use crate::frame::run::agree;

/// In the new directory until all ranks have seen it there: a directory of the same name on another host is another one.
const MARK: &str = ".made-by-rank-0-of-beff-raw";

/// A directory that this run has made. Nothing outside it is ever written or removed.
#[derive(Clone, Debug)]
pub struct RunDir {
    /// Where it was made.
    parent: Directory,
    own: Directory,
    backends: Vec<Directory>,
    /// By this rank.
    removed: Cell<bool>,
    /// Forms of the names that this rank has asked for. Files of other ranks differ in numbers only.
    names: RefCell<BTreeSet<Vec<u8>>>,
}

/// A name with `#` for each number.
fn form_of(name: &OsStr) -> Vec<u8> {
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

/// True for files of this run, for those that MPI libraries make beside them (`.NAME.shfp.N`, `NAME.locktest.N`), and for what the
/// kernel calls a removed file that somebody still has open (NFS, FUSE).
fn is_own(names: &BTreeSet<Vec<u8>>, name: &OsStr) -> bool {
    let form = form_of(name);
    let begin = form.iter().position(|byte| *byte != b'.').unwrap_or(0);
    let is_removed = [b".nfs#".as_slice(), b".fuse_hidden"].iter().any(|removed| form.starts_with(removed));
    is_removed || names.iter().any(|own| form[begin..].starts_with(own))
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
        let planted = planted::failure("run directory", world.rank());
        let mut made = None;
        let tree = planted.and_then(|()| match world.is_root() {
            true => make_tree(parent, name, backends).map(|tree| made = Some(tree)),
            false => Ok(()),
        });
        let failed = agree::all(world, tree)?.err();
        // The parent's path may mean another file system on another host.
        let see = || match &made {
            Some(made) => Ok(made.clone()),
            None => see_tree(parent, name, backends).map_err(|e| unseen(&parent.join(name), world.rank(), &e)),
        };
        let seen = match failed {
            Some(failed) => Err(failed),
            None => {
                let planted = planted::failure("sight of the run directory", world.rank());
                agree::all(world, planted.and_then(|()| see()))?
            }
        };
        if let Some(made) = &made {
            // Of no use any more, or gone with the directory.
            let _ = made.own.file(OsStr::new(MARK)).remove();
            if seen.is_err() {
                let _ = made.remove();
            }
        }
        Ok(seen.map_err(|(_, message)| message))
    }

    /// The directory, as it was made.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.own.path()
    }

    /// Where it is now, to be told to somebody who may remove it: never the name of another directory.
    #[must_use]
    pub fn whereabouts(&self) -> String {
        let told = self.own.whereabouts().or_else(|| self.own.check_name().is_ok().then(|| self.path().to_owned()));
        told.map_or_else(|| "(where it was moved to)".into(), |path| path.display().to_string())
    }

    /// A file in it: BACKEND/NAME.
    #[must_use]
    pub fn file(&self, name: &Path) -> FilePath {
        let path = self.path().join(name);
        let of_backend = self.backends.iter().find(|backend| path.parent() == Some(backend.path()));
        match (of_backend, name.file_name()) {
            (Some(directory), Some(name)) => {
                self.names.borrow_mut().insert(form_of(name));
                directory.file(name)
            }
            _ => FilePath::nowhere(path),
        }
    }

    fn is_own(&self, name: &OsStr) -> bool {
        is_own(&self.names.borrow(), name)
    }

    /// Removes the files of a backend.
    ///
    /// # Errors
    /// The first that could not be removed; something is there that is not of this run.
    pub fn empty(&self, backend: &str) -> io::Result<()> {
        let of_backend = self.backends.iter().find(|found| found.path().file_name() == Some(OsStr::new(backend)));
        of_backend.map_or(Ok(()), |directory| directory.empty(|name| self.is_own(name)))
    }

    /// Removes the files of this run, wherever their directory is by now, and the directory if it still has its name. Again: nothing.
    ///
    /// # Errors
    /// What the file system says; something is in it that is not of this run; another directory has the name, and is not touched.
    pub fn remove(&self) -> io::Result<()> {
        if self.removed.get() {
            return Ok(());
        }
        let emptied = if self.own.is_removed() { Ok(()) } else { self.empty_all() };
        let name = self.path().file_name().unwrap_or_default();
        // A directory that is not empty is refused with less to learn from than what kept a file in it.
        emptied.and_then(|()| self.parent.remove(name, &self.own))?;
        self.removed.set(true);
        Ok(())
    }

    fn empty_all(&self) -> io::Result<()> {
        let mut first = Ok(());
        for backend in &self.backends {
            let emptied = backend.empty(|name| self.is_own(name));
            let name = backend.path().file_name().unwrap_or_default();
            first = first.and(emptied.and_then(|()| self.own.remove(name, backend)));
        }
        // Mine is the mark, if the start ended early.
        first.and(self.own.empty(|name| name == MARK))
    }
}

fn unseen(path: &Path, rank: u64, e: &io::Error) -> String {
    format!(
        "the run directory {} made by rank 0 is not visible on rank {rank}: {e}. --path must name a directory that all hosts share",
        path.display()
    )
}

/// Makes the directories and the mark.
fn make_tree(parent: &Path, name: &str, backends: &[String]) -> Result<RunDir, String> {
    let path = parent.join(name);
    let refused = |e: io::Error| {
        let next = match e.kind() {
            io::ErrorKind::AlreadyExists => "choose another --run-dir; existing files are never touched",
            io::ErrorKind::NotFound => "--path must be an existing directory",
            io::ErrorKind::PermissionDenied => "choose a --path where you may write",
            _ => "choose another --path",
        };
        format!("cannot make the run directory {}: {e}; {next}", path.display())
    };
    let held = Directory::hold(parent).map_err(refused)?;
    let own = held.make(OsStr::new(name)).map_err(refused)?;
    let mut made =
        RunDir { parent: held, own, backends: Vec::new(), removed: Cell::new(false), names: RefCell::default() };
    for backend in backends {
        match made.own.make(OsStr::new(backend)) {
            Ok(directory) => made.backends.push(directory),
            Err(e) => {
                let _ = made.remove();
                let path = path.join(backend);
                return Err(format!("cannot make the directory {}: {e}; choose another --path", path.display()));
            }
        }
    }
    made.own.file(OsStr::new(MARK)).create().map_err(|e| {
        let _ = made.remove();
        format!("cannot make a file in {}: {e}; choose another --path", path.display())
    })?;
    Ok(made)
}

/// Holds the directories that rank 0 has made.
fn see_tree(parent: &Path, name: &str, backends: &[String]) -> io::Result<RunDir> {
    let parent = Directory::hold(parent)?;
    let own = parent.inside(OsStr::new(name))?;
    let mark = own.file(OsStr::new(MARK));
    mark.open_to_read().map_err(|e| io::Error::other(format!("there is one, but not that of rank 0 ({e})")))?;
    let backends = backends.iter().map(|backend| own.inside(OsStr::new(backend))).collect::<io::Result<_>>()?;
    Ok(RunDir { parent, own, backends, removed: Cell::new(false), names: RefCell::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_files_differ_in_numbers_only() {
        let names = ["n2-type0.dat", "file-0001"].map(|name| form_of(OsStr::new(name))).into();
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
