//! Directories held open, and the files in them.
//!
//! During a run a name may come to refer to something else: the directory is renamed, another one is created in its place, or a
//! link. A descriptor always refers to the same directory. Therefore files are opened and removed relative to it (openat(2),
//! unlinkat(2)), a link in place of a file is not followed (O_NOFOLLOW), and a file with a second hard link is rejected, because it
//! may belong to somebody else. Interfaces that accept only names (MPI_File_open) require [`FilePath::check_name`] before and
//! after.

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
use nix::fcntl::{open, openat, renameat, renameat2, AtFlags, OFlag, RenameFlags};
use nix::sys::stat::{fstat, fstatat, mkdirat, stat, FileStat, Mode, SFlag};
use nix::unistd::{unlinkat, UnlinkatFlags};

/// Directories created by this program are accessible to its user alone.
const PRIVATE_MODE: Mode = Mode::S_IRWXU;
/// Open flags of directories: readable, for listing.
const DIRECTORY_FLAGS: OFlag = OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_CLOEXEC);
/// Permissions of new files, less the umask.
const FILE_MODE: Mode = Mode::from_bits_truncate(0o666);

/// An open directory. Copies share the descriptor.
#[derive(Clone, Debug)]
pub struct DirectoryHandle {
    handle: Arc<OwnedFd>,
    path: PathBuf,
}

impl DirectoryHandle {
    /// Opens an existing directory; links in its path are followed, because they are the user's.
    ///
    /// # Errors
    /// Errors of open(2).
    pub fn open(path: &Path) -> io::Result<Self> {
        let handle = open(path, DIRECTORY_FLAGS, Mode::empty())?;
        Ok(Self { handle: Arc::new(handle), path: path.to_owned() })
    }

    /// Creates a private directory in this one, and opens it.
    ///
    /// # Errors
    /// Errors of mkdirat(2), also if the name exists, or of openat(2).
    pub fn create_subdirectory(&self, name: &OsStr) -> io::Result<Self> {
        mkdirat(&*self.handle, name, PRIVATE_MODE)?;
        self.open_subdirectory(name).inspect_err(|_| {
            // Useless without a descriptor, and empty.
            let _ = unlinkat(&*self.handle, name, UnlinkatFlags::RemoveDir);
        })
    }

    /// Opens a directory in this one; a link is rejected.
    ///
    /// # Errors
    /// What openat(2) reports.
    pub fn open_subdirectory(&self, name: &OsStr) -> io::Result<Self> {
        let handle = openat(&*self.handle, name, DIRECTORY_FLAGS | OFlag::O_NOFOLLOW, Mode::empty())?;
        Ok(Self { handle: Arc::new(handle), path: self.path.join(name) })
    }

    /// Path at the time of the open.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A file in this directory, existing or not. `name` has no `/`.
    #[must_use]
    pub fn file(&self, name: &OsStr) -> FilePath {
        FilePath { path: self.path.join(name), name: name.to_owned(), directory: Some(self.clone()) }
    }

    /// Fails if the path now refers to another directory. A path that refers to nothing is reported at its use.
    ///
    /// # Errors
    /// The path refers to another directory, or stat(2) fails.
    pub fn check_name(&self) -> io::Result<()> {
        match stat(&self.path) {
            Ok(named) if is_same_file(&named, &fstat(&*self.handle)?) => Ok(()),
            Ok(_) => Err(io::Error::other(format!(
                "{} is no longer the directory that this program uses: it was renamed or exchanged",
                self.path.display()
            ))),
            Err(Errno::ENOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// True if the directory was removed: it has no name.
    #[must_use]
    pub fn is_removed(&self) -> bool {
        fstat(&*self.handle).is_ok_and(|facts| facts.st_nlink == 0)
    }

    /// Removes the files whose names `is_own` accepts; links are removed and not followed. All others stay.
    ///
    /// # Errors
    /// The first own file that could not be removed, or the names that remain; other own files are removed.
    pub fn remove_files(&self, is_own: impl Fn(&OsStr) -> bool) -> io::Result<()> {
        let mut listed = match Dir::openat(&*self.handle, ".", DIRECTORY_FLAGS, Mode::empty()) {
            Ok(listed) => listed,
            // Removed by another process, therefore empty.
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
        first.and_then(|()| self.foreign_files_error(&others))
    }

    /// Removes a file, or an empty directory in its place.
    fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        match ignore_missing(unlinkat(&*self.handle, name, UnlinkatFlags::NoRemoveDir)) {
            Err(error) if error.raw_os_error() == Some(libc::EISDIR) => {
                ignore_missing(unlinkat(&*self.handle, name, UnlinkatFlags::RemoveDir))
            }
            removed => removed,
        }
    }

    fn foreign_files_error(&self, others: &[OsString]) -> io::Result<()> {
        let Some(one) = others.first() else { return Ok(()) };
        let and = if others.len() > 1 { format!(" and {} more", others.len() - 1) } else { String::new() };
        let path = self.current_path().unwrap_or_else(|| self.path.clone()).join(one);
        Err(io::Error::other(format!("{}{and} does not belong to this run, and was not touched", path.display())))
    }

    /// Removes the empty directory `name` in this one, if it is `held`.
    ///
    /// # Errors
    /// The name refers to something else or to nothing, or unlinkat(2) fails.
    pub fn remove(&self, name: &OsStr, held: &Self) -> io::Result<()> {
        let path = self.path.join(name);
        match self.file_stat(name)? {
            Some(found) if is_same_file(&found, &fstat(&*held.handle)?) => {
                Ok(unlinkat(&*self.handle, name, UnlinkatFlags::RemoveDir)?)
            }
            Some(_) => Err(io::Error::other(format!(
                "{} is not the directory that this run created, and was not touched; the created one is now empty{}",
                path.display(),
                held.current_path_text()
            ))),
            None if held.is_removed() => Ok(()),
            None => Err(io::Error::other(format!("it was renamed, and is now empty{}", held.current_path_text()))),
        }
    }

    /// Current path (proc_pid_fd(5)); None if unknown or removed.
    #[must_use]
    pub fn current_path(&self) -> Option<PathBuf> {
        let link = format!("/proc/self/fd/{}", self.handle.as_raw_fd());
        // The path of a removed directory has a suffix, and may belong to something else.
        let is_own = |now: &PathBuf| {
            stat(now).is_ok_and(|named| fstat(&*self.handle).is_ok_and(|own| is_same_file(&named, &own)))
        };
        std::fs::read_link(link).ok().filter(is_own)
    }

    fn current_path_text(&self) -> String {
        self.current_path().map_or(String::new(), |now| format!(", at {}", now.display()))
    }

    /// A link is not followed.
    fn file_stat(&self, name: &OsStr) -> io::Result<Option<FileStat>> {
        match fstatat(&*self.handle, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(facts) => Ok(Some(facts)),
            Err(Errno::ENOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

fn is_same_file(a: &FileStat, b: &FileStat) -> bool {
    (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino)
}

fn has_type(facts: &FileStat, kind: SFlag) -> bool {
    SFlag::from_bits_truncate(facts.st_mode & SFlag::S_IFMT.bits()) == kind
}

/// A concurrent removal by another process is a success.
fn ignore_missing(removed: nix::Result<()>) -> io::Result<()> {
    match removed {
        Err(Errno::ENOENT) => Ok(()),
        removed => Ok(removed?),
    }
}

/// A file by its name in an open directory. A [`Path`] for messages, and for libraries that accept only paths.
#[derive(Clone, Debug)]
pub struct FilePath {
    /// None if no such file is ever opened.
    directory: Option<DirectoryHandle>,
    name: OsString,
    path: PathBuf,
}

impl FilePath {
    /// A file, whose directory is opened now.
    ///
    /// # Errors
    /// The path names no file, or its directory cannot be opened.
    pub fn of(path: &Path) -> io::Result<Self> {
        let name = path.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Ok(Self { directory: Some(DirectoryHandle::open(parent)?), name: name.to_owned(), path: path.to_owned() })
    }

    /// A name for drivers that store nothing: it is never opened.
    #[must_use]
    pub fn unbacked(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self { directory: None, name: path.clone().into(), path }
    }

    fn directory(&self) -> io::Result<&DirectoryHandle> {
        self.directory.as_ref().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    /// Opens the file with these flags of open(2).
    ///
    /// # Errors
    /// Errors of openat(2), a link in place of the file, a second hard link.
    pub fn open(&self, flags: OFlag) -> io::Result<File> {
        let flags = flags | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW;
        let opened =
            openat(&*self.directory()?.handle, self.name.as_os_str(), flags, FILE_MODE).map_err(
                |error| match error {
                    // open(2): the error of O_NOFOLLOW for a link.
                    Errno::ELOOP => io::Error::other("the name is a symbolic link, which is not followed"),
                    error => error.into(),
                },
            )?;
        check_link_count(&fstat(opened.as_fd())?)?;
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

    /// Creates the file, for reading and writing.
    ///
    /// # Errors
    /// As [`FilePath::open`]; the name exists.
    pub fn create(&self) -> io::Result<File> {
        self.open(OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_EXCL)
    }

    /// Bytes of the file.
    ///
    /// # Errors
    /// The file does not exist, or fstatat(2) fails.
    pub fn size_bytes(&self) -> io::Result<u64> {
        let facts = self.directory()?.file_stat(&self.name)?.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        Ok(u64::try_from(facts.st_size).unwrap_or(0))
    }

    /// Removes the file, or the link in its place.
    ///
    /// # Errors
    /// Errors of unlinkat(2).
    pub fn remove(&self) -> io::Result<()> {
        Ok(unlinkat(&*self.directory()?.handle, self.name.as_os_str(), UnlinkatFlags::NoRemoveDir)?)
    }

    /// Moves the file to another name or directory of the file system. A file of that name is replaced.
    ///
    /// # Errors
    /// Errors of renameat(2).
    pub fn move_to(&self, target: &Self) -> io::Result<()> {
        let (from, to) = (self.directory()?, target.directory()?);
        let names = (self.name.as_os_str(), target.name.as_os_str());
        Ok(renameat(&*from.handle, names.0, &*to.handle, names.1)?)
    }

    /// Renames the file to NAME.aside, and truncates it so that at least `bytes` of the storage are freed for a file of its name.
    /// Faster than removal for large files.
    ///
    /// # Errors
    /// The name exists, the file system cannot rename without replacing (NFS), or does not free the bytes immediately. The file
    /// then has its own name, and may be shorter.
    pub fn move_aside(&self, bytes: u64) -> io::Result<()> {
        let held = self.directory()?;
        let mut name = self.name.clone();
        name.push(".aside");
        let aside = held.file(&name);
        let rename = |from: &Self, to: &Self| {
            let (from, to) = (from.name.as_os_str(), to.name.as_os_str());
            renameat2(&*held.handle, from, &*held.handle, to, RenameFlags::RENAME_NOREPLACE)
        };
        rename(self, &aside)?;
        aside.shrink_by(bytes).or_else(|error| {
            rename(&aside, self)?;
            Err(error)
        })
    }

    /// Truncates the file until at least `bytes` are freed.
    fn shrink_by(&self, bytes: u64) -> io::Result<()> {
        /// No file system has larger blocks.
        const BLOCK_BYTES: u64 = 1 << 20;
        let file = self.open_to_update()?;
        let before = file.metadata()?;
        let left = before.len().checked_sub(bytes).ok_or_else(|| io::Error::other("the file is too short"))?;
        file.set_len(left / BLOCK_BYTES * BLOCK_BYTES)?;
        // stat(2): in units of 512 bytes.
        let freed = before.blocks().saturating_sub(file.metadata()?.blocks()) * 512;
        if freed < bytes {
            return Err(io::Error::other(format!("{freed} of {bytes} bytes were freed")));
        }
        Ok(())
    }

    /// For interfaces that accept only a name, before and after its use: it must refer to this directory, and there to a regular
    /// file or nothing.
    ///
    /// # Errors
    /// It does not; a link in place of the file; a second hard link.
    pub fn check_name(&self) -> io::Result<()> {
        let held = self.directory()?;
        held.check_name()?;
        match held.file_stat(&self.name)? {
            Some(facts) if has_type(&facts, SFlag::S_IFREG) => check_link_count(&facts),
            Some(_) => {
                Err(io::Error::other("the name is not a regular file (a link, for example), and is not followed"))
            }
            None => Ok(()),
        }
    }
}

/// Rejects a file with a second hard link.
fn check_link_count(facts: &FileStat) -> io::Result<()> {
    if has_type(facts, SFlag::S_IFREG) && facts.st_nlink > 1 {
        return Err(io::Error::other("the file has a second hard link, so it may belong to somebody else"));
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
