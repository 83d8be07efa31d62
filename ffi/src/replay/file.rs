//! Files of a replay, except data access. Calls are issued unconditionally, and their codes are returned.

use std::ffi::{c_char, c_int, CStr};

use beff_trace::{Amode, Whence};
use mpi_sys::{MPI_File, MPI_Offset};

use super::timing::{time_call, TimedCall};
use super::types::TypeHandle;
use crate::comm::Comm;
use crate::error::{check, Result};
use crate::info::Info;
use crate::shim;

/// A file handle, or MPI_FILE_NULL. Closing is collective and therefore explicit.
#[derive(Debug)]
pub struct FileHandle(MPI_File);

/// Arguments of MPI_File_open.
#[derive(Debug)]
pub struct OpenParameters<'a> {
    /// Communicator; None for MPI_COMM_NULL.
    pub comm: Option<&'a Comm>,
    /// File name.
    pub path: &'a CStr,
    /// Access mode.
    pub amode: Amode,
    /// Hints.
    pub info: &'a Info,
}

/// Sets MPI_ERRORS_RETURN on MPI_FILE_NULL, for errors of MPI_File_open and MPI_File_delete.
///
/// # Errors
/// Any MPI error.
pub fn return_errors() -> Result<()> {
    // SAFETY: predefined handles.
    check(unsafe { mpi_sys::MPI_File_set_errhandler(mpi_sys::RSMPI_FILE_NULL, mpi_sys::RSMPI_ERRORS_RETURN) })
}

/// The access mode in bits of this library.
fn mpi_amode(amode: Amode) -> c_int {
    let bits = constant!(shim::beff_amodes);
    bits.iter().enumerate().filter(|(n, _)| amode.0 & (1 << n) != 0).fold(0, |all, (_, bit)| all | bit)
}

/// MPI_File_delete.
#[must_use]
pub fn delete(path: &CStr, info: &Info) -> TimedCall {
    // SAFETY: a valid C string and info object.
    time_call(|| unsafe { mpi_sys::MPI_File_delete(path.as_ptr(), info.handle()) })
}

/// MPI_File_create_errhandler with an empty function; the handler is freed outside the timed call.
#[must_use]
pub fn create_errhandler() -> TimedCall {
    let mut handler = constant!(mpi_sys::RSMPI_ERRORS_RETURN);
    // SAFETY: one handle is written.
    let timed = time_call(|| unsafe { shim::beff_create_errhandler(&raw mut handler) });
    if timed.code.is_success() {
        // SAFETY: the new handle, freed once.
        unsafe { mpi_sys::MPI_Errhandler_free(&raw mut handler) };
    }
    timed
}

impl FileHandle {
    /// MPI_FILE_NULL.
    #[must_use]
    pub fn null() -> Self {
        Self(constant!(mpi_sys::RSMPI_FILE_NULL))
    }

    /// True between a successful open and the close.
    #[must_use]
    #[inline]
    pub fn is_open(&self) -> bool {
        self.0 != constant!(mpi_sys::RSMPI_FILE_NULL)
    }

    #[inline]
    pub(super) fn handle(&self) -> MPI_File {
        self.0
    }

    /// MPI_File_open; collective over its communicator.
    #[must_use]
    pub fn open(with: &OpenParameters<'_>) -> (Self, TimedCall) {
        let mut file = Self::null();
        let comm = with.comm.map_or_else(|| constant!(shim::beff_comm_null), Comm::handle);
        let (mode, info) = (mpi_amode(with.amode), with.info.handle());
        // SAFETY: a valid communicator and info object, a C string; the handle is owned by `file`.
        let timed =
            time_call(|| unsafe { mpi_sys::MPI_File_open(comm, with.path.as_ptr(), mode, info, &raw mut file.0) });
        if !timed.code.is_success() {
            file = Self::null();
        }
        (file, timed)
    }

    /// MPI_File_close; collective. The file counts as closed even if this fails.
    pub fn close(&mut self) -> TimedCall {
        // SAFETY: an open file, closed once: the handle is discarded.
        let timed = time_call(|| unsafe { mpi_sys::MPI_File_close(&raw mut self.0) });
        *self = Self::null();
        timed
    }

    /// MPI_File_set_size.
    #[must_use]
    pub fn set_size(&self, bytes: i64) -> TimedCall {
        // SAFETY: an open file.
        time_call(|| unsafe { mpi_sys::MPI_File_set_size(self.0, bytes) })
    }

    /// MPI_File_preallocate.
    #[must_use]
    pub fn preallocate(&self, bytes: i64) -> TimedCall {
        // SAFETY: an open file.
        time_call(|| unsafe { mpi_sys::MPI_File_preallocate(self.0, bytes) })
    }

    /// MPI_File_get_size; returns the size.
    #[must_use]
    pub fn get_size(&self) -> (TimedCall, i64) {
        // SAFETY: an open file; `query` provides memory for the result.
        self.query(|file, answer| unsafe { mpi_sys::MPI_File_get_size(file, answer) })
    }

    /// MPI_File_get_position; returns the position.
    #[must_use]
    pub fn get_position(&self) -> (TimedCall, i64) {
        // SAFETY: an open file; `query` provides memory for the result.
        self.query(|file, answer| unsafe { mpi_sys::MPI_File_get_position(file, answer) })
    }

    /// MPI_File_get_position_shared; returns the position.
    #[must_use]
    pub fn get_position_shared(&self) -> (TimedCall, i64) {
        // SAFETY: an open file; `query` provides memory for the result.
        self.query(|file, answer| unsafe { mpi_sys::MPI_File_get_position_shared(file, answer) })
    }

    /// MPI_File_get_byte_offset of an offset in etypes; returns the byte offset.
    #[must_use]
    pub fn get_byte_offset(&self, offset: i64) -> (TimedCall, i64) {
        // SAFETY: an open file; `query` provides memory for the result.
        self.query(|file, answer| unsafe { mpi_sys::MPI_File_get_byte_offset(file, offset, answer) })
    }

    #[inline]
    fn query(&self, call: impl FnOnce(MPI_File, *mut MPI_Offset) -> c_int) -> (TimedCall, i64) {
        let mut answer: MPI_Offset = 0;
        let timed = time_call(|| call(self.0, &raw mut answer));
        (timed, answer)
    }

    /// MPI_File_get_type_extent, or its large-count variant if `large` and available; returns the extent.
    ///
    /// # Safety
    /// The type is valid.
    #[must_use]
    pub unsafe fn get_type_extent(&self, datatype: TypeHandle, large: bool) -> (TimedCall, i64) {
        if let (true, Some(call)) = (large, constant!(shim::beff_get_type_extent_c)) {
            let mut extent: mpi_sys::MPI_Count = 0;
            // SAFETY: an open file, a valid type; one integer is written.
            let timed = time_call(|| unsafe { call(self.0, datatype.0, &raw mut extent) });
            return (timed, extent);
        }
        let mut extent: mpi_sys::MPI_Aint = 0;
        // SAFETY: as above.
        let timed = time_call(|| unsafe { mpi_sys::MPI_File_get_type_extent(self.0, datatype.0, &raw mut extent) });
        (timed, extent as i64)
    }

    /// MPI_File_get_group; the group is freed outside the timed call.
    #[must_use]
    pub fn get_group(&self) -> TimedCall {
        let mut group = constant!(mpi_sys::RSMPI_GROUP_NULL);
        // SAFETY: an open file; the handle is written.
        let timed = time_call(|| unsafe { mpi_sys::MPI_File_get_group(self.0, &raw mut group) });
        if timed.code.is_success() {
            // SAFETY: the new group, freed once.
            unsafe { mpi_sys::MPI_Group_free(&raw mut group) };
        }
        timed
    }

    /// MPI_File_get_amode.
    #[must_use]
    pub fn get_amode(&self) -> TimedCall {
        let mut mode: c_int = 0;
        // SAFETY: an open file; one integer is written.
        time_call(|| unsafe { mpi_sys::MPI_File_get_amode(self.0, &raw mut mode) })
    }

    /// MPI_File_set_info; collective.
    #[must_use]
    pub fn set_info(&self, info: &Info) -> TimedCall {
        // SAFETY: an open file, a valid info object.
        time_call(|| unsafe { mpi_sys::MPI_File_set_info(self.0, info.handle()) })
    }

    /// MPI_File_get_info; returns the hints in force.
    #[must_use]
    pub fn get_info(&self) -> (TimedCall, Info) {
        let mut handle = constant!(shim::beff_info_null);
        // SAFETY: an open file; the new object is owned by the result.
        let timed = time_call(|| unsafe { mpi_sys::MPI_File_get_info(self.0, &raw mut handle) });
        (timed, Info::from_handle(handle))
    }

    /// MPI_File_set_view; collective.
    ///
    /// # Safety
    /// The types are valid.
    #[must_use]
    pub unsafe fn set_view(
        &self,
        displacement_bytes: i64,
        etype: TypeHandle,
        filetype: TypeHandle,
        representation: &CStr,
        info: &Info,
    ) -> TimedCall {
        let (name, info) = (representation.as_ptr(), info.handle());
        // SAFETY: an open file, valid types, a C string and an info object.
        time_call(|| unsafe { mpi_sys::MPI_File_set_view(self.0, displacement_bytes, etype.0, filetype.0, name, info) })
    }

    /// MPI_File_get_view; returns the displacement in bytes. Derived types are freed outside the timed call.
    #[must_use]
    pub fn get_view(&self) -> (TimedCall, i64) {
        let mut displacement: MPI_Offset = 0;
        let null = constant!(shim::beff_datatype_null);
        let (mut etype, mut filetype) = (null, null);
        // Longer than any library's MPI_MAX_DATAREP_STRING (128); asserted, because the call would write beyond the end.
        let mut name = [0 as c_char; 1024];
        assert!((constant!(shim::beff_max_datarep_string) as usize) < name.len());
        // SAFETY: an open file; a number, two handles and a name that fits are written.
        let timed = time_call(|| unsafe {
            mpi_sys::MPI_File_get_view(
                self.0,
                &raw mut displacement,
                &raw mut etype,
                &raw mut filetype,
                name.as_mut_ptr(),
            )
        });
        if timed.code.is_success() {
            super::types::free_returned_type(etype);
            super::types::free_returned_type(filetype);
        }
        (timed, displacement)
    }

    /// MPI_File_seek.
    #[must_use]
    pub fn seek(&self, offset: i64, whence: Whence) -> TimedCall {
        // SAFETY: an open file.
        time_call(|| unsafe { mpi_sys::MPI_File_seek(self.0, offset, mpi_whence(whence)) })
    }

    /// MPI_File_seek_shared; collective.
    #[must_use]
    pub fn seek_shared(&self, offset: i64, whence: Whence) -> TimedCall {
        // SAFETY: an open file.
        time_call(|| unsafe { mpi_sys::MPI_File_seek_shared(self.0, offset, mpi_whence(whence)) })
    }

    /// MPI_File_set_atomicity; collective.
    #[must_use]
    pub fn set_atomicity(&self, atomic: bool) -> TimedCall {
        // SAFETY: an open file.
        time_call(|| unsafe { mpi_sys::MPI_File_set_atomicity(self.0, c_int::from(atomic)) })
    }

    /// MPI_File_get_atomicity; returns the flag.
    #[must_use]
    pub fn get_atomicity(&self) -> (TimedCall, bool) {
        let mut atomic: c_int = 0;
        // SAFETY: an open file; one integer is written.
        let timed = time_call(|| unsafe { mpi_sys::MPI_File_get_atomicity(self.0, &raw mut atomic) });
        (timed, atomic != 0)
    }

    /// MPI_File_sync; collective.
    #[must_use]
    pub fn sync(&self) -> TimedCall {
        // SAFETY: an open file.
        time_call(|| unsafe { mpi_sys::MPI_File_sync(self.0) })
    }

    /// MPI_File_set_errhandler to MPI_ERRORS_RETURN, on MPI_FILE_NULL too.
    #[must_use]
    pub fn set_errhandler(&self) -> TimedCall {
        // SAFETY: an open file or MPI_FILE_NULL, a predefined handler.
        time_call(|| unsafe { mpi_sys::MPI_File_set_errhandler(self.0, mpi_sys::RSMPI_ERRORS_RETURN) })
    }

    /// MPI_File_get_errhandler, on MPI_FILE_NULL too; the handler is freed outside the timed call.
    #[must_use]
    pub fn get_errhandler(&self) -> TimedCall {
        let mut handler = constant!(mpi_sys::RSMPI_ERRORS_RETURN);
        // SAFETY: an open file or MPI_FILE_NULL; the handle is written.
        let timed = time_call(|| unsafe { mpi_sys::MPI_File_get_errhandler(self.0, &raw mut handler) });
        if timed.code.is_success() {
            // SAFETY: a reference owned here, released once (MPI-4.0 section 9.3.4), also for a predefined handler.
            unsafe { mpi_sys::MPI_Errhandler_free(&raw mut handler) };
        }
        timed
    }

    /// MPI_File_call_errhandler with MPI_ERR_OTHER. Certain to return only after [`FileHandle::set_errhandler`].
    #[must_use]
    pub fn call_errhandler(&self) -> TimedCall {
        // SAFETY: an open file or MPI_FILE_NULL; any error class of the standard is a code.
        time_call(|| unsafe { mpi_sys::MPI_File_call_errhandler(self.0, shim::beff_err_other) })
    }
}

fn mpi_whence(whence: Whence) -> c_int {
    match whence {
        Whence::Set => constant!(shim::beff_seek_set),
        Whence::Current => constant!(shim::beff_seek_cur),
        Whence::End => constant!(shim::beff_seek_end),
    }
}
