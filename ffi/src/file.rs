//! MPI files: open, view, hints, size, sync and close. Transfers are in [`crate::access`] and [`crate::transfers`].

use std::ffi::c_int;
use std::path::Path;

use mpi_sys::MPI_File;

use crate::comm::Comm;
use crate::datatype::FileType;
use crate::error::{c_string, check, Result};
use crate::info::Info;
use crate::shim;

/// Access mode of an open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessMode {
    /// MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR.
    CreateNew,
    /// MPI_MODE_RDWR: for writes too, because data sieving reads.
    Update,
    /// MPI_MODE_RDONLY.
    ReadOnly,
}

/// An open MPI file. Closing is collective and therefore explicit; a dropped file stays open until the process ends.
#[derive(Debug)]
pub struct MpiFile {
    pub(crate) handle: MPI_File,
}

impl MpiFile {
    /// MPI_File_open; collective over `comm`. Errors are returned, the default for files (MPI-3.1 13.7).
    pub fn open(comm: &Comm, path: &Path, how: AccessMode, unique: bool, info: &Info) -> Result<Self> {
        // SAFETY: constants of the shim.
        let mut mode = unsafe {
            match how {
                AccessMode::CreateNew => shim::beff_mode_create | shim::beff_mode_excl | shim::beff_mode_rdwr,
                AccessMode::Update => shim::beff_mode_rdwr,
                AccessMode::ReadOnly => shim::beff_mode_rdonly,
            }
        };
        if unique {
            mode |= constant!(shim::beff_mode_unique_open);
        }
        Self::open_with_mode(comm, path, mode, info)
    }

    /// MPI_File_open with a mode of the library.
    pub(crate) fn open_with_mode(comm: &Comm, path: &Path, mode: c_int, info: &Info) -> Result<Self> {
        let name = c_string(path.as_os_str().as_encoded_bytes(), "MPI_ERR_BAD_FILE")?;
        let mut file = Self { handle: constant!(mpi_sys::RSMPI_FILE_NULL) };
        // SAFETY: collective call; the name is a C string that outlives the call; the handle is owned by `file`.
        check(unsafe {
            mpi_sys::MPI_File_open(comm.handle(), name.as_ptr(), mode, info.handle(), &raw mut file.handle)
        })?;
        Ok(file)
    }

    /// MPI_File_set_view with the element of `filetype` as etype and the native representation; collective. Resets both file pointers.
    pub fn set_view(&self, displacement_bytes: u64, filetype: &FileType, info: &Info) -> Result<()> {
        let displacement = mpi_sys::MPI_Offset::try_from(displacement_bytes).unwrap_or(mpi_sys::MPI_Offset::MAX);
        // SAFETY: open file, committed types, C string literal.
        check(unsafe {
            mpi_sys::MPI_File_set_view(
                self.handle,
                displacement,
                filetype.element().handle(),
                filetype.handle(),
                c"native".as_ptr(),
                info.handle(),
            )
        })
    }

    /// Hints in force as the library reports them (MPI_File_get_info).
    pub fn hints(&self) -> Result<Vec<(String, String)>> {
        let mut handle = constant!(shim::beff_info_null);
        // SAFETY: open file; the call returns a new object that Info frees.
        check(unsafe { mpi_sys::MPI_File_get_info(self.handle, &raw mut handle) })?;
        Info::from_handle(handle).pairs()
    }

    /// Current size of the file.
    pub fn size_bytes(&self) -> Result<u64> {
        let mut size: mpi_sys::MPI_Offset = 0;
        // SAFETY: open file, one integer written.
        check(unsafe { mpi_sys::MPI_File_get_size(self.handle, &raw mut size) })?;
        Ok(u64::try_from(size).unwrap_or(0))
    }

    /// MPI_File_sync; collective. Reports deferred write errors.
    pub fn sync(&self) -> Result<()> {
        // SAFETY: open file.
        check(unsafe { mpi_sys::MPI_File_sync(self.handle) })
    }

    /// MPI_File_close; collective.
    pub fn close(mut self) -> Result<()> {
        // SAFETY: open file, closed once: the value is consumed.
        check(unsafe { mpi_sys::MPI_File_close(&raw mut self.handle) })
    }
}
