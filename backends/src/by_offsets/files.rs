//! The open files of a program, and the operations on whole files.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use beff_trace::{Amode, Direction, ErrorClass};
use nix::fcntl::OFlag;

use super::communicators::FileCommunicators;
use super::step_error::{StepError, StepErrorCause, StepResult};
use super::transfer_engine::{DirectDescriptor, FileDescriptors};
use crate::direct::close_file;
use crate::directory::FilePath;
use crate::retry::retry_interrupted;
use crate::statx::usable_align;
use crate::{Direct, DirectTrial};

/// Alignment of the memory of programs.
const MEMORY_ALIGN_BYTES: u64 = 4096;

/// A file between MPI_File_open and MPI_File_close.
#[derive(Debug)]
pub(super) struct ReplayFile {
    /// Number of its path.
    path: u32,
    delete_on_close: bool,
    is_readable: bool,
    is_writable: bool,
    /// Number of its communicator.
    comm: u32,
    /// None if the open failed.
    descriptors: Option<FileDescriptors>,
    /// Why no access is direct, if direct I/O was requested.
    pub(super) why_not_direct: Option<String>,
}

impl ReplayFile {
    /// The descriptors for transfers in one direction.
    ///
    /// # Errors
    /// The file is not open, or not in this direction.
    #[inline]
    pub(super) fn descriptors_for(&self, direction: Direction) -> StepResult<&FileDescriptors> {
        match direction {
            Direction::Write if !self.is_writable => {
                Err(StepError::with_class("MPI_ERR_READ_ONLY", "a write, but the mode is MPI_MODE_RDONLY,"))
            }
            Direction::Read if !self.is_readable => {
                Err(StepError::with_class("MPI_ERR_ACCESS", "a read, but the mode is MPI_MODE_WRONLY,"))
            }
            _ => self.descriptors(),
        }
    }

    fn descriptors(&self) -> StepResult<&FileDescriptors> {
        self.descriptors.as_ref().ok_or_else(|| StepError::with_class("MPI_ERR_FILE", "the file could not be opened:"))
    }
}

#[derive(Debug)]
pub(super) struct FileTable {
    open: Vec<Option<ReplayFile>>,
    paths: Vec<FilePath>,
    unknown_path: FilePath,
    communicators: FileCommunicators,
    direct: Direct,
    direct_trial: Option<DirectTrial>,
}

/// Arguments of MPI_File_open.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenArguments {
    pub(super) file: u32,
    pub(super) comm: u32,
    pub(super) path: u32,
    pub(super) amode: Amode,
    /// Class of an error that is independent of the file.
    pub(super) refused: Option<ErrorClass>,
    /// The file is used later.
    pub(super) is_kept: bool,
}

/// Rejects modes that are invalid for any file (MPI-4.0 section 14.2.1).
pub(super) fn check_amode(amode: Amode) -> StepResult<()> {
    let ways = ["rdonly", "rdwr", "wronly"].into_iter().filter(|way| amode.has(way)).count();
    let makes = amode.has("create") || amode.has("excl");
    if ways != 1 || amode.has("rdonly") && makes || amode.has("rdwr") && amode.has("sequential") {
        return Err(StepError::with_class("MPI_ERR_AMODE", "conflicting or missing access modes,"));
    }
    Ok(())
}

impl FileTable {
    pub(super) fn new(
        paths: Vec<FilePath>,
        communicators: FileCommunicators,
        (direct, direct_trial): (Direct, Option<DirectTrial>),
    ) -> Self {
        Self { open: Vec::new(), paths, unknown_path: FilePath::unbacked(""), communicators, direct, direct_trial }
    }

    /// Allocates entries for files 0 .. `files` - 1.
    pub(super) fn reserve(&mut self, files: usize) {
        if self.open.len() < files {
            self.open.resize_with(files, || None);
        }
    }

    pub(super) fn path(&self, path: u32) -> &FilePath {
        self.paths.get(path as usize).unwrap_or(&self.unknown_path)
    }

    pub(super) fn path_of(&self, file: u32) -> Option<&Path> {
        self.entry(file).map(|opened| &**self.path(opened.path))
    }

    /// MPI_File_delete.
    pub(super) fn delete(&self, path: u32) -> StepResult<()> {
        self.path(path).remove().map_err(|error| StepError::io("unlink", &error))
    }

    pub(super) fn entry(&self, file: u32) -> Option<&ReplayFile> {
        self.open.get(file as usize)?.as_ref()
    }

    /// The file of an access.
    #[inline]
    pub(super) fn open_file(&self, file: u32) -> StepResult<&ReplayFile> {
        self.entry(file).ok_or_else(|| StepError::with_class("MPI_ERR_FILE", "the file is not open"))
    }

    /// MPI_File_open. Collective: after all ranks have arrived, the first of the communicator opens the file, and creates it if the mode
    /// requests this; then the others open it. All ranks succeed, or none.
    ///
    /// # Errors
    /// The first error of a rank. The number then denotes a file that is not open.
    pub(super) fn open(&mut self, opening: &OpenArguments) -> StepResult<()> {
        let OpenArguments { file, comm, path, amode, .. } = *opening;
        let recorded = |class| StepError { class, cause: StepErrorCause::Text("recorded error, call not executed:") };
        let mine = opening.refused.map_or(Ok(()), |class| Err(recorded(class))).and_then(|()| check_amode(amode));
        let name = self.path(path);
        // Earlier calls of a rank may concern the file that the first rank creates.
        let first = match self.communicators.agree(comm, mine) {
            Ok(()) if self.communicators.is_first(comm) => open_buffered(name, amode, true).map(Some),
            other => other.map(|()| None),
        };
        let first = self.communicators.agree(comm, first);
        let mine = first.and_then(|created| created.map_or_else(|| open_buffered(name, amode, false), Ok));
        let buffered = self.communicators.agree(comm, mine);
        let (ways, why_not_direct, failed) = match buffered {
            Ok(buffered) => {
                let (direct, why_not) = self.open_direct(&buffered, name, amode);
                let required = self.direct == Direct::Required;
                (Some(FileDescriptors { buffered, direct, required }), why_not, Ok(()))
            }
            Err(fault) => (None, None, Err(fault)),
        };
        self.open[file as usize] = opening.is_kept.then(|| ReplayFile {
            path,
            delete_on_close: amode.has("delete_on_close"),
            is_readable: !amode.has("wronly"),
            is_writable: !amode.has("rdonly"),
            comm,
            descriptors: ways,
            why_not_direct,
        });
        failed
    }

    fn open_direct(
        &self,
        buffered: &File,
        path: &FilePath,
        amode: Amode,
    ) -> (Option<DirectDescriptor>, Option<String>) {
        if self.direct == Direct::Off {
            return (None, None);
        }
        let (is_written, trial) = (!amode.has("rdonly"), self.direct_trial.as_ref());
        let align = match usable_align(buffered, self.direct, is_written, trial, MEMORY_ALIGN_BYTES) {
            Ok(align) => align,
            Err(reason) => return (None, Some(reason)),
        };
        match path.open(flags(amode) | OFlag::O_DIRECT) {
            Ok(file) => {
                let read_align_bytes = align.direction_bytes(crate::Direction::Read);
                let write_align_bytes = align.direction_bytes(crate::Direction::Write);
                (Some(DirectDescriptor { file, read_align_bytes, write_align_bytes }), None)
            }
            Err(error) => (None, Some(format!("the open with O_DIRECT failed: {error}"))),
        }
    }

    /// MPI_File_close. Collective: ends when all ranks have closed the file. With MPI_MODE_DELETE_ON_CLOSE the first rank then deletes it.
    pub(super) fn close(&mut self, file: u32) -> StepResult<()> {
        self.open_file(file)?;
        let Some(opened) = self.open[file as usize].take() else { return Ok(()) };
        let ReplayFile { path, delete_on_close, comm, descriptors: ways, .. } = opened;
        let was_open = ways.is_some();
        let mine = ways.map_or_else(
            || Err(StepError::with_class("MPI_ERR_FILE", "close of a file that could not be opened")),
            close_descriptors,
        );
        let closed = self.communicators.agree(comm, mine);
        if !delete_on_close {
            return closed;
        }
        let deleted = if was_open && self.communicators.is_first(comm) { self.delete(path) } else { Ok(()) };
        closed.and(self.communicators.agree(comm, deleted))
    }

    /// Closes all open files without deleting any, as when an application exits without closing.
    pub(super) fn close_all(&mut self) -> Result<(), (PathBuf, StepError)> {
        let mut first = Ok(());
        for ReplayFile { path, descriptors: ways, .. } in self.open.drain(..).flatten() {
            let closed = ways.map_or(Ok(()), close_descriptors);
            let name = || self.paths.get(path as usize).map_or_else(PathBuf::new, PathBuf::from);
            first = first.and(closed.map_err(|fault| (name(), fault)));
        }
        first
    }

    /// Runs `act` on the first rank of the file after all ranks have arrived, and returns its outcome on all ranks.
    fn run_on_first_rank(&self, file: u32, act: impl FnOnce(&File) -> StepResult<()>) -> StepResult<()> {
        let opened = self.open_file(file)?;
        let ways = self.communicators.agree(opened.comm, opened.descriptors());
        let done = match ways {
            Ok(ways) if self.communicators.is_first(opened.comm) => act(&ways.buffered),
            Ok(_) => Ok(()),
            Err(fault) => return Err(fault),
        };
        self.communicators.agree(opened.comm, done)
    }

    /// MPI_File_set_size. Collective: one rank truncates between two agreements, so that no write can overlap with it.
    pub(super) fn set_size(&self, file: u32, bytes: i64) -> StepResult<()> {
        self.run_on_first_rank(file, |file| {
            let bytes = u64::try_from(bytes).map_err(|_| StepError::with_class("MPI_ERR_ARG", "a negative size"))?;
            retry_interrupted(|| file.set_len(bytes)).map_err(|error| StepError::io("ftruncate", &error))
        })
    }

    /// MPI_File_preallocate. Collective, as [`FileTable::set_size`].
    pub(super) fn preallocate(&self, file: u32, bytes: i64) -> StepResult<()> {
        self.run_on_first_rank(file, |file| match bytes {
            ..0 => Err(StepError::with_class("MPI_ERR_ARG", "a negative size")),
            0 => Ok(()),
            // SAFETY: an open descriptor; no memory is passed.
            _ => retry_interrupted(|| match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, bytes) } {
                0 => Ok(()),
                errno => Err(io::Error::from_raw_os_error(errno)),
            })
            .map_err(|error| StepError::io("posix_fallocate", &error)),
        })
    }

    /// MPI_File_get_size.
    pub(super) fn size(&self, file: u32) -> StepResult<u64> {
        let ways = self.open_file(file)?.descriptors()?;
        let stat = ways.buffered.metadata().map_err(|error| StepError::io("fstat", &error))?;
        Ok(stat.len())
    }

    /// MPI_File_sync. Collective: ends when all ranks have synced their writes.
    pub(super) fn sync(&self, file: u32) -> StepResult<()> {
        let opened = self.open_file(file)?;
        let mine = opened.descriptors().and_then(|ways| {
            retry_interrupted(|| ways.buffered.sync_data()).map_err(|error| StepError::io("fdatasync", &error))
        });
        self.communicators.agree(opened.comm, mine)
    }
}

fn flags(amode: Amode) -> OFlag {
    match (amode.has("rdonly"), amode.has("wronly")) {
        (true, _) => OFlag::O_RDONLY,
        (_, true) => OFlag::O_WRONLY,
        _ => OFlag::O_RDWR,
    }
}

fn open_buffered(path: &FilePath, amode: Amode, makes: bool) -> StepResult<File> {
    let mut flags = flags(amode);
    if makes && amode.has("create") {
        flags |= OFlag::O_CREAT;
        if amode.has("excl") {
            flags |= OFlag::O_EXCL;
        }
    }
    path.open(flags).map_err(|error| StepError::io("open", &error))
}

fn close_descriptors(ways: FileDescriptors) -> StepResult<()> {
    let direct = ways.direct.map_or(Ok(()), |direct| close_file(direct.file));
    direct.and(close_file(ways.buffered)).map_err(|error| StepError::io("close", &error))
}
