//! The open files of a program, and what is done to them as a whole.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use beff_trace::{Amode, Direction, ErrorClass};
use nix::fcntl::OFlag;

use super::fault::{Cause, Done, Fault};
use super::meeting::Meetings;
use super::mover::{DirectWay, Ways};
use crate::direct::close_file;
use crate::directory::FilePath;
use crate::patience::uninterrupted;
use crate::statx::{direct_align, BLOCK_MAPPED};
use crate::Direct;

/// What memory of programs is aligned to.
const MEMORY_ALIGN_BYTES: u64 = 4096;

/// A file between MPI_File_open and MPI_File_close.
#[derive(Debug)]
pub(super) struct Opened {
    /// Number of its path.
    path: u32,
    delete_on_close: bool,
    is_readable: bool,
    is_writable: bool,
    /// Number of its communicator.
    comm: u32,
    /// None: the open failed.
    ways: Option<Ways>,
    /// Why no access is direct, where that was wanted.
    pub(super) why_not_direct: Option<String>,
}

impl Opened {
    /// The descriptors for transfers in one direction.
    ///
    /// # Errors
    /// The file is not open, or not for this.
    #[inline]
    pub(super) fn ways(&self, direction: Direction) -> Done<&Ways> {
        match direction {
            Direction::Write if !self.is_writable => {
                Err(Fault::named("MPI_ERR_READ_ONLY", "a write, but the mode is MPI_MODE_RDONLY,"))
            }
            Direction::Read if !self.is_readable => {
                Err(Fault::named("MPI_ERR_ACCESS", "a read, but the mode is MPI_MODE_WRONLY,"))
            }
            _ => self.any_way(),
        }
    }

    fn any_way(&self) -> Done<&Ways> {
        self.ways.as_ref().ok_or_else(|| Fault::named("MPI_ERR_FILE", "the file could not be opened:"))
    }
}

/// Files by number.
#[derive(Debug)]
pub(super) struct Files {
    open: Vec<Option<Opened>>,
    paths: Vec<FilePath>,
    nowhere: FilePath,
    meetings: Meetings,
    direct: Direct,
}

/// What MPI_File_open is given.
#[derive(Clone, Copy, Debug)]
pub(super) struct Opening {
    /// Number of the file from now on.
    pub(super) file: u32,
    /// Number of the communicator.
    pub(super) comm: u32,
    /// Number of the path.
    pub(super) path: u32,
    pub(super) amode: Amode,
    /// The class of an error that has nothing to do with the file.
    pub(super) refused: Option<ErrorClass>,
    /// It is used afterwards.
    pub(super) is_kept: bool,
}

/// What is wrong with a mode whatever the file is (MPI-4.0 section 14.2.1).
pub(super) fn check_amode(amode: Amode) -> Done<()> {
    let ways = ["rdonly", "rdwr", "wronly"].into_iter().filter(|way| amode.has(way)).count();
    let makes = amode.has("create") || amode.has("excl");
    if ways != 1 || amode.has("rdonly") && makes || amode.has("rdwr") && amode.has("sequential") {
        return Err(Fault::named("MPI_ERR_AMODE", "access modes that exclude each other, or none,"));
    }
    Ok(())
}

impl Files {
    pub(super) fn new(paths: Vec<FilePath>, meetings: Meetings, direct: Direct) -> Self {
        Self { open: Vec::new(), paths, nowhere: FilePath::nowhere(""), meetings, direct }
    }

    /// Room for files 0 .. `files` - 1.
    pub(super) fn reserve(&mut self, files: usize) {
        if self.open.len() < files {
            self.open.resize_with(files, || None);
        }
    }

    /// A path by its number.
    pub(super) fn path(&self, path: u32) -> &FilePath {
        self.paths.get(path as usize).unwrap_or(&self.nowhere)
    }

    /// The path of an open file.
    pub(super) fn path_of(&self, file: u32) -> Option<&Path> {
        self.get(file).map(|opened| &**self.path(opened.path))
    }

    /// MPI_File_delete.
    ///
    /// # Errors
    /// What unlink(2) reports.
    pub(super) fn delete(&self, path: u32) -> Done<()> {
        self.path(path).remove().map_err(|error| Fault::io("unlink", &error))
    }

    pub(super) fn get(&self, file: u32) -> Option<&Opened> {
        self.open.get(file as usize)?.as_ref()
    }

    /// The file for an access.
    ///
    /// # Errors
    /// It is not open.
    #[inline]
    pub(super) fn of(&self, file: u32) -> Done<&Opened> {
        self.get(file).ok_or_else(|| Fault::named("MPI_ERR_FILE", "no file is open here"))
    }

    /// MPI_File_open. Collective: the first rank of the communicator opens, and makes the file where the mode says so; the others
    /// open it when that is done. All ranks succeed, or none.
    ///
    /// # Errors
    /// The first error of a rank. The number stands for a file that is not open.
    pub(super) fn open(&mut self, opening: &Opening) -> Done<()> {
        let Opening { file, comm, path, amode, .. } = *opening;
        let recorded = |class| Fault { class, cause: Cause::Text("as recorded, not called:") };
        let mine = opening.refused.map_or(Ok(()), |class| Err(recorded(class))).and_then(|()| check_amode(amode));
        let name = self.path(path);
        let first = match mine {
            Ok(()) if self.meetings.is_first(comm) => open_plain(name, amode, true).map(Some),
            other => other.map(|()| None),
        };
        let first = self.meetings.agree(comm, first);
        let mine = first.and_then(|made| made.map_or_else(|| open_plain(name, amode, false), Ok));
        let buffered = self.meetings.agree(comm, mine);
        let (ways, why_not_direct, failed) = match buffered {
            Ok(buffered) => {
                let (direct, why_not) = self.open_direct(&buffered, name, amode);
                let required = self.direct == Direct::Required;
                (Some(Ways { buffered, direct, required }), why_not, Ok(()))
            }
            Err(fault) => (None, None, Err(fault)),
        };
        self.open[file as usize] = opening.is_kept.then(|| Opened {
            path,
            delete_on_close: amode.has("delete_on_close"),
            is_readable: !amode.has("wronly"),
            is_writable: !amode.has("rdonly"),
            comm,
            ways,
            why_not_direct,
        });
        failed
    }

    fn open_direct(&self, buffered: &File, path: &FilePath, amode: Amode) -> (Option<DirectWay>, Option<String>) {
        if self.direct == Direct::Off {
            return (None, None);
        }
        let align = match direct_align(buffered) {
            Ok(Some(align)) => align,
            Ok(None) => {
                return (None, Some("the file system gives no alignment for direct I/O (statx STATX_DIOALIGN)".into()))
            }
            Err(error) => return (None, Some(format!("statx for the alignment of direct I/O failed: {error}"))),
        };
        if !MEMORY_ALIGN_BYTES.is_multiple_of(align.memory_bytes) {
            return (None, Some(format!("the file system wants memory aligned to {} bytes", align.memory_bytes)));
        }
        if align.new_blocks_cached && self.direct == Direct::Required && !amode.has("rdonly") {
            return (None, Some(BLOCK_MAPPED.into()));
        }
        match path.open(flags(amode) | OFlag::O_DIRECT) {
            Ok(file) => {
                let read_align_bytes = align.bytes_of(crate::Direction::Read);
                let write_align_bytes = align.bytes_of(crate::Direction::Write);
                (Some(DirectWay { file, read_align_bytes, write_align_bytes }), None)
            }
            Err(error) => (None, Some(format!("the open with O_DIRECT failed: {error}"))),
        }
    }

    /// MPI_File_close. With MPI_MODE_DELETE_ON_CLOSE the first rank deletes the file when all have closed it.
    ///
    /// # Errors
    /// What close(2) or unlink(2) reports.
    pub(super) fn close(&mut self, file: u32) -> Done<()> {
        self.of(file)?;
        let Some(opened) = self.open[file as usize].take() else { return Ok(()) };
        let Opened { path, delete_on_close, comm, ways, .. } = opened;
        let was_open = ways.is_some();
        let mine = ways
            .map_or_else(|| Err(Fault::named("MPI_ERR_FILE", "a file that could not be opened is closed")), close_ways);
        if !delete_on_close {
            return mine;
        }
        let closed = self.meetings.agree(comm, mine);
        let deleted = if was_open && self.meetings.is_first(comm) { self.delete(path) } else { Ok(()) };
        closed.and(self.meetings.agree(comm, deleted))
    }

    /// Closes what is open; deletes nothing, as an application that ends so.
    ///
    /// # Errors
    /// The first file that could not be closed.
    pub(super) fn finish(&mut self) -> Result<(), (PathBuf, Fault)> {
        let mut first = Ok(());
        for Opened { path, ways, .. } in self.open.drain(..).flatten() {
            let closed = ways.map_or(Ok(()), close_ways);
            let name = || self.paths.get(path as usize).map_or_else(PathBuf::new, PathBuf::from);
            first = first.and(closed.map_err(|fault| (name(), fault)));
        }
        first
    }

    /// Lets the first rank of the file do something when all ranks have come, and gives its outcome to all.
    fn by_one(&self, file: u32, act: impl FnOnce(&File) -> Done<()>) -> Done<()> {
        let opened = self.of(file)?;
        let ways = self.meetings.agree(opened.comm, opened.any_way());
        let done = match ways {
            Ok(ways) if self.meetings.is_first(opened.comm) => act(&ways.buffered),
            Ok(_) => Ok(()),
            Err(fault) => return Err(fault),
        };
        self.meetings.agree(opened.comm, done)
    }

    /// MPI_File_set_size. Collective: one rank does it between two meetings, so that nobody writes before or after by chance.
    ///
    /// # Errors
    /// What ftruncate(2) reports.
    pub(super) fn set_size(&self, file: u32, bytes: i64) -> Done<()> {
        self.by_one(file, |file| {
            let bytes = u64::try_from(bytes).map_err(|_| Fault::named("MPI_ERR_ARG", "a negative size"))?;
            uninterrupted(|| file.set_len(bytes)).map_err(|error| Fault::io("ftruncate", &error))
        })
    }

    /// MPI_File_preallocate. Collective, as [`Files::set_size`].
    ///
    /// # Errors
    /// What posix_fallocate(3) reports.
    pub(super) fn preallocate(&self, file: u32, bytes: i64) -> Done<()> {
        self.by_one(file, |file| match bytes {
            ..0 => Err(Fault::named("MPI_ERR_ARG", "a negative size")),
            0 => Ok(()),
            // SAFETY: an open descriptor; no memory is named.
            _ => uninterrupted(|| match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, bytes) } {
                0 => Ok(()),
                errno => Err(io::Error::from_raw_os_error(errno)),
            })
            .map_err(|error| Fault::io("posix_fallocate", &error)),
        })
    }

    /// MPI_File_get_size.
    ///
    /// # Errors
    /// What fstat(2) reports.
    pub(super) fn size(&self, file: u32) -> Done<u64> {
        let ways = self.of(file)?.any_way()?;
        let told = ways.buffered.metadata().map_err(|error| Fault::io("fstat", &error))?;
        Ok(told.len())
    }

    /// MPI_File_sync, of this rank's writes; a rank waits for no other.
    ///
    /// # Errors
    /// What fdatasync(2) reports.
    pub(super) fn sync(&self, file: u32) -> Done<()> {
        let ways = self.of(file)?.any_way()?;
        uninterrupted(|| ways.buffered.sync_data()).map_err(|error| Fault::io("fdatasync", &error))
    }
}

fn flags(amode: Amode) -> OFlag {
    match (amode.has("rdonly"), amode.has("wronly")) {
        (true, _) => OFlag::O_RDONLY,
        (_, true) => OFlag::O_WRONLY,
        _ => OFlag::O_RDWR,
    }
}

fn open_plain(path: &FilePath, amode: Amode, makes: bool) -> Done<File> {
    let mut flags = flags(amode);
    if makes && amode.has("create") {
        flags |= OFlag::O_CREAT;
        if amode.has("excl") {
            flags |= OFlag::O_EXCL;
        }
    }
    path.open(flags).map_err(|error| Fault::io("open", &error))
}

fn close_ways(ways: Ways) -> Done<()> {
    let direct = ways.direct.map_or(Ok(()), |direct| close_file(direct.file));
    direct.and(close_file(ways.buffered)).map_err(|error| Fault::io("close", &error))
}
