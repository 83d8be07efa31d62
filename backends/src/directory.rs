//! Directories that are held open, and the files in them.
//!
//! A name may come to mean something else while a run is under way: somebody renames the directory, makes another one in its
//! place, or puts a link there. A descriptor means the same directory for ever. So files are opened and removed relative to it
//! (openat(2), unlinkat(2)), a link in the place of a file is never followed (O_NOFOLLOW), and a file with a second name is
//! refused, because it may be somebody else's, too. Who can only be given a name (MPI_File_open) asks [`FilePath::check_name`]
//! before and after.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{open, openat, renameat2, AtFlags, OFlag, RenameFlags};
use nix::sys::stat::{fstat, fstatat, mkdirat, stat, FileStat, Mode, SFlag};
use nix::unistd::{unlinkat, UnlinkatFlags};

/// Nobody else looks into a directory that this program makes, or puts anything there.
const OWN: Mode = Mode::S_IRWXU;
/// How directories are held: for reading, because that is what looking through them needs.
const HELD: OFlag = OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_CLOEXEC);
/// Permissions of new files, less the umask.
const FILE_MODE: Mode = Mode::from_bits_truncate(0o666);

/// A directory that is held open. Copies hold the same one.
#[derive(Clone, Debug)]
pub struct Directory {
    handle: Arc<OwnedFd>,
    path: PathBuf,
}

impl Directory {
    /// Holds a directory that is there; links in its path are the user's and are followed.
    ///
    /// # Errors
    /// What open(2) reports.
    pub fn hold(path: &Path) -> io::Result<Self> {
        let handle = open(path, HELD, Mode::empty())?;
        Ok(Self { handle: Arc::new(handle), path: path.to_owned() })
    }

    /// Makes a new directory in this one that nobody else may enter, and holds it.
    ///
    /// # Errors
    /// What mkdirat(2) reports, also if there is anything of this name, or openat(2).
    pub fn make(&self, name: &OsStr) -> io::Result<Self> {
        mkdirat(&*self.handle, name, OWN)?;
        self.inside(name).inspect_err(|_| {
            // It is of no use, and empty.
            let _ = unlinkat(&*self.handle, name, UnlinkatFlags::RemoveDir);
        })
    }

    /// Holds a directory in this one; a link is none.
    ///
    /// # Errors
    /// What openat(2) reports.
    pub fn inside(&self, name: &OsStr) -> io::Result<Self> {
        let handle = openat(&*self.handle, name, HELD | OFlag::O_NOFOLLOW, Mode::empty())?;
        Ok(Self { handle: Arc::new(handle), path: self.path.join(name) })
    }

    /// As it was called when it was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A file in this directory, whether there is one or not. `name` has no `/`.
    #[must_use]
    pub fn file(&self, name: &OsStr) -> FilePath {
        FilePath { path: self.path.join(name), name: name.to_owned(), directory: Some(self.clone()) }
    }

    /// Refuses if the path leads to another directory by now. That it leads nowhere is no error here: whoever uses it is told so.
    ///
    /// # Errors
    /// It does, or stat(2) fails.
    pub fn check_name(&self) -> io::Result<()> {
        match stat(&self.path) {
            Ok(named) if same(&named, &fstat(&*self.handle)?) => Ok(()),
            Ok(_) => Err(io::Error::other(format!(
                "{} is no longer the directory that this program uses: it was renamed or exchanged",
                self.path.display()
            ))),
            Err(Errno::ENOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// True if the directory itself is gone: no name leads to it.
    #[must_use]
    pub fn is_removed(&self) -> bool {
        fstat(&*self.handle).is_ok_and(|facts| facts.st_nlink == 0)
    }

    /// Removes the files in it that `is_own` knows by name; links are removed and not followed. What else there is stays.
    ///
    /// # Errors
    /// The first own file that could not be removed, or names of what stays; the other own files are removed.
    pub fn empty(&self, is_own: impl Fn(&OsStr) -> bool) -> io::Result<()> {
        let mut listed = match Dir::openat(&*self.handle, ".", HELD, Mode::empty()) {
            Ok(listed) => listed,
            // Removed by somebody else: nothing is in it.
            Err(Errno::ENOENT) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let (mut first, mut others) = (Ok(()), Vec::new());
        for entry in listed.iter() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            let name = <OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(name);
            if is_own(name) {
                first = first.and(self.remove_file(name));
            } else {
                others.push(name.to_owned());
            }
        }
        first.and_then(|()| self.told_others(&others))
    }

    /// Removes a file; a directory in its place only if nothing is in it.
    fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        match gone(unlinkat(&*self.handle, name, UnlinkatFlags::NoRemoveDir)) {
            Err(error) if error.raw_os_error() == Some(libc::EISDIR) => {
                gone(unlinkat(&*self.handle, name, UnlinkatFlags::RemoveDir))
            }
            removed => removed,
        }
    }

    fn told_others(&self, others: &[OsString]) -> io::Result<()> {
        let Some(one) = others.first() else { return Ok(()) };
        let and = if others.len() > 1 { format!(" and {} more", others.len() - 1) } else { String::new() };
        let path = self.whereabouts().unwrap_or_else(|| self.path.clone()).join(one);
        Err(io::Error::other(format!("{}{and} is not of this run, and was not touched", path.display())))
    }

    /// Removes the empty directory `name` in this one, if it is `held`.
    ///
    /// # Errors
    /// Something else has the name, nothing has it, or unlinkat(2) fails.
    pub fn remove(&self, name: &OsStr, held: &Self) -> io::Result<()> {
        let path = self.path.join(name);
        match self.facts(name)? {
            Some(found) if same(&found, &fstat(&*held.handle)?) => {
                Ok(unlinkat(&*self.handle, name, UnlinkatFlags::RemoveDir)?)
            }
            Some(_) => Err(io::Error::other(format!(
                "{} is another one than the one that was made here, and was not touched; the one that was made is empty now{}",
                path.display(),
                held.told_whereabouts()
            ))),
            None if held.is_removed() => Ok(()),
            None => Err(io::Error::other(format!("it was renamed, and is empty now{}", held.told_whereabouts()))),
        }
    }

    /// Where it is now (proc_pid_fd(5)); None where the kernel does not tell, or if it is nowhere.
    #[must_use]
    pub fn whereabouts(&self) -> Option<PathBuf> {
        let link = format!("/proc/self/fd/{}", self.handle.as_raw_fd());
        // The name of what is removed has an addition; and it may have been given to something else.
        let is_own =
            |now: &PathBuf| stat(now).is_ok_and(|named| fstat(&*self.handle).is_ok_and(|own| same(&named, &own)));
        std::fs::read_link(link).ok().filter(is_own)
    }

    fn told_whereabouts(&self) -> String {
        self.whereabouts().map_or(String::new(), |now| format!(", at {}", now.display()))
    }

    /// What has this name here; a link is not followed.
    fn facts(&self, name: &OsStr) -> io::Result<Option<FileStat>> {
        match fstatat(&*self.handle, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(facts) => Ok(Some(facts)),
            Err(Errno::ENOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// True if both are the same file or directory.
fn same(a: &FileStat, b: &FileStat) -> bool {
    (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino)
}

fn is(facts: &FileStat, kind: SFlag) -> bool {
    SFlag::from_bits_truncate(facts.st_mode & SFlag::S_IFMT.bits()) == kind
}

/// What somebody else removes at the same time is gone all the same.
fn gone(removed: nix::Result<()>) -> io::Result<()> {
    match removed {
        Err(Errno::ENOENT) => Ok(()),
        removed => Ok(removed?),
    }
}

/// A file by its name in a held directory. As a [`Path`] it is for messages, and for libraries that take nothing else.
#[derive(Clone, Debug)]
pub struct FilePath {
    /// None: no such file is ever opened.
    directory: Option<Directory>,
    name: OsString,
    path: PathBuf,
}

impl FilePath {
    /// A file whose directory is held from now on.
    ///
    /// # Errors
    /// The path names no file, or its directory cannot be opened.
    pub fn of(path: &Path) -> io::Result<Self> {
        let name = path.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Ok(Self { directory: Some(Directory::hold(parent)?), name: name.to_owned(), path: path.to_owned() })
    }

    /// A name for drivers that store nothing: nothing is ever opened by it.
    #[must_use]
    pub fn nowhere(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self { directory: None, name: path.clone().into(), path }
    }

    fn held(&self) -> io::Result<&Directory> {
        self.directory.as_ref().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    /// Opens the file with these flags of open(2).
    ///
    /// # Errors
    /// What openat(2) reports, a link in its place, a second name.
    pub fn open(&self, flags: OFlag) -> io::Result<File> {
        let flags = flags | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW;
        let opened =
            openat(&*self.held()?.handle, self.name.as_os_str(), flags, FILE_MODE).map_err(|error| match error {
                // open(2): what O_NOFOLLOW says of a link.
                Errno::ELOOP => io::Error::other("a link is in the place of the file, and is not followed"),
                error => error.into(),
            })?;
        check_names(&fstat(opened.as_fd())?)?;
        Ok(opened.into())
    }

    /// Opens the file for reading.
    ///
    /// # Errors
    /// As [`FilePath::open`].
    pub fn open_to_read(&self) -> io::Result<File> {
        self.open(OFlag::O_RDONLY)
    }

    /// Opens the file for reading and writing.
    ///
    /// # Errors
    /// As [`FilePath::open`].
    pub fn open_to_update(&self) -> io::Result<File> {
        self.open(OFlag::O_RDWR)
    }

    /// Makes the file, for reading and writing.
    ///
    /// # Errors
    /// As [`FilePath::open`]; there is something of this name.
    pub fn create(&self) -> io::Result<File> {
        self.open(OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_EXCL)
    }

    /// Bytes of the file.
    ///
    /// # Errors
    /// There is none, or fstatat(2) fails.
    pub fn size_bytes(&self) -> io::Result<u64> {
        let facts = self.held()?.facts(&self.name)?.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        Ok(u64::try_from(facts.st_size).unwrap_or(0))
    }

    /// Removes the file; of a link, the link.
    ///
    /// # Errors
    /// What unlinkat(2) reports.
    pub fn remove(&self) -> io::Result<()> {
        Ok(unlinkat(&*self.held()?.handle, self.name.as_os_str(), UnlinkatFlags::NoRemoveDir)?)
    }

    /// Puts the file under the name NAME.aside, and shortens it by at least `bytes` of what it takes of the storage: as much can be
    /// written under its own name then. Quicker than removing it, where it is large.
    ///
    /// # Errors
    /// Something has that name, the file system cannot rename without replacing (NFS), or gives back less, or not at once. The file has
    /// its own name then, and may be shorter.
    pub fn put_aside(&self, bytes: u64) -> io::Result<()> {
        let held = self.held()?;
        let mut name = self.name.clone();
        name.push(".aside");
        let aside = held.file(&name);
        let rename = |from: &Self, to: &Self| {
            let (from, to) = (from.name.as_os_str(), to.name.as_os_str());
            renameat2(&*held.handle, from, &*held.handle, to, RenameFlags::RENAME_NOREPLACE)
        };
        rename(self, &aside)?;
        aside.shorten(bytes).or_else(|error| {
            rename(&aside, self)?;
            Err(error)
        })
    }

    /// Cuts off the end, until at least `bytes` are given back to the storage.
    fn shorten(&self, bytes: u64) -> io::Result<()> {
        /// Of no file system the blocks are larger.
        const BLOCK_BYTES: u64 = 1 << 20;
        let file = self.open_to_update()?;
        let before = file.metadata()?;
        let left = before.len().checked_sub(bytes).ok_or_else(|| io::Error::other("the file is too short"))?;
        file.set_len(left / BLOCK_BYTES * BLOCK_BYTES)?;
        // stat(2): in units of 512 bytes.
        let freed = before.blocks().saturating_sub(file.metadata()?.blocks()) * 512;
        if freed < bytes {
            return Err(io::Error::other(format!("{freed} of {bytes} bytes were given back")));
        }
        Ok(())
    }

    /// For who can only be given the name, before and after it is used: it leads to this directory, and what it names there is a
    /// file, or nothing.
    ///
    /// # Errors
    /// It does not; a link is in the place of the file; it has a second name.
    pub fn check_name(&self) -> io::Result<()> {
        let held = self.held()?;
        held.check_name()?;
        match held.facts(&self.name)? {
            Some(facts) if is(&facts, SFlag::S_IFREG) => check_names(&facts),
            Some(_) => {
                Err(io::Error::other("no file but something else, as a link, is in its place, and is not followed"))
            }
            None => Ok(()),
        }
    }
}

/// Refuses a file that has another name beside the one it was made with.
fn check_names(facts: &FileStat) -> io::Result<()> {
    if is(facts, SFlag::S_IFREG) && facts.st_nlink > 1 {
        return Err(io::Error::other("the file has a second name (a hard link), so it may be somebody else's"));
    }
    Ok(())
}

impl Deref for FilePath {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}

impl AsRef<Path> for FilePath {
    fn as_ref(&self) -> &Path {
        &self.path
    }
}

impl From<&FilePath> for PathBuf {
    fn from(file: &FilePath) -> Self {
        file.path.clone()
    }
}

#[cfg(test)]
#[path = "directory_tests.rs"]
mod tests;
