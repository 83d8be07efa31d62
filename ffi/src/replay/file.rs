//! Files of a replay: everything but data access. Every call is made, whatever it returns.

use std::ffi::{c_char, c_int, CStr};

use beff_trace::{Amode, Whence};
use mpi_sys::{MPI_File, MPI_Offset};

use super::timed::{timed, Timed};
use super::types::TypeHandle;
use crate::comm::Comm;
use crate::error::{check, Result};
use crate::info::Info;
use crate::shim;

/// A file, or none. Closing is collective and therefore explicit.
#[derive(Debug)]
pub struct File(MPI_File);

/// With what a file is opened.
#[derive(Debug)]
pub struct Opening<'a> {
    /// Who opens it; None: MPI_COMM_NULL.
    pub comm: Option<&'a Comm>,
    /// Its name.
    pub path: &'a CStr,
    /// How.
    pub amode: Amode,
    /// Hints.
    pub info: &'a Info,
}

/// Errors of files are returned also if there is none: of MPI_File_open and MPI_File_delete.
///
/// # Errors
/// What MPI reports.
pub fn return_errors() -> Result<()> {
    // SAFETY: predefined handles.
    check(unsafe { mpi_sys::MPI_File_set_errhandler(mpi_sys::RSMPI_FILE_NULL, mpi_sys::RSMPI_ERRORS_RETURN) })
}

/// The bits of this library.
fn library_mode(amode: Amode) -> c_int {
    let bits = constant!(shim::beff_amodes);
    bits.iter().enumerate().filter(|(n, _)| amode.0 & (1 << n) != 0).fold(0, |all, (_, bit)| all | bit)
}

/// MPI_File_delete.
#[must_use]
pub fn delete(path: &CStr, info: &Info) -> Timed {
    // SAFETY: a C string and an info object, both alive.
    timed(|| unsafe { mpi_sys::MPI_File_delete(path.as_ptr(), info.handle()) })
}

/// MPI_File_create_errhandler, with a function that does nothing; the handler is freed behind the clock.
#[must_use]
pub fn create_errhandler() -> Timed {
    let mut made = constant!(mpi_sys::RSMPI_ERRORS_RETURN);
    // SAFETY: one handle is written.
    let timed = timed(|| unsafe { shim::beff_create_errhandler(&raw mut made) });
    if timed.code.is_success() {
        // SAFETY: the handle that was just made, freed once.
        unsafe { mpi_sys::MPI_Errhandler_free(&raw mut made) };
    }
    timed
}

impl File {
    /// MPI_FILE_NULL.
    #[must_use]
    pub fn none() -> Self {
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
    pub fn open(with: &Opening<'_>) -> (Self, Timed) {
        let mut file = Self::none();
        let comm = with.comm.map_or_else(|| constant!(shim::beff_comm_null), Comm::handle);
        let (mode, info) = (library_mode(with.amode), with.info.handle());
        // SAFETY: a communicator and an info object that are alive, a C string; the handle is owned by `file`.
        let timed = timed(|| unsafe { mpi_sys::MPI_File_open(comm, with.path.as_ptr(), mode, info, &raw mut file.0) });
        if !timed.code.is_success() {
            file = Self::none();
        }
        (file, timed)
    }

    /// MPI_File_close; collective. The file is closed also if that fails.
    pub fn close(&mut self) -> Timed {
        // SAFETY: an open file, closed once: the handle is forgotten.
        let timed = timed(|| unsafe { mpi_sys::MPI_File_close(&raw mut self.0) });
        *self = Self::none();
        timed
    }

    /// MPI_File_set_size.
    #[must_use]
    pub fn set_size(&self, bytes: i64) -> Timed {
        // SAFETY: an open file.
        timed(|| unsafe { mpi_sys::MPI_File_set_size(self.0, bytes) })
    }

    /// MPI_File_preallocate.
    #[must_use]
    pub fn preallocate(&self, bytes: i64) -> Timed {
        // SAFETY: an open file.
        timed(|| unsafe { mpi_sys::MPI_File_preallocate(self.0, bytes) })
    }

    /// MPI_File_get_size, and the answer.
    #[must_use]
    pub fn get_size(&self) -> (Timed, i64) {
        // SAFETY: an open file; `ask` gives memory for the answer.
        self.ask(|file, answer| unsafe { mpi_sys::MPI_File_get_size(file, answer) })
    }

    /// MPI_File_get_position, and the answer.
    #[must_use]
    pub fn get_position(&self) -> (Timed, i64) {
        // SAFETY: an open file; `ask` gives memory for the answer.
        self.ask(|file, answer| unsafe { mpi_sys::MPI_File_get_position(file, answer) })
    }

    /// MPI_File_get_position_shared, and the answer.
    #[must_use]
    pub fn get_position_shared(&self) -> (Timed, i64) {
        // SAFETY: an open file; `ask` gives memory for the answer.
        self.ask(|file, answer| unsafe { mpi_sys::MPI_File_get_position_shared(file, answer) })
    }

    /// MPI_File_get_byte_offset of an offset in etypes, and the answer.
    #[must_use]
    pub fn get_byte_offset(&self, offset: i64) -> (Timed, i64) {
        // SAFETY: an open file; `ask` gives memory for the answer.
        self.ask(|file, answer| unsafe { mpi_sys::MPI_File_get_byte_offset(file, offset, answer) })
    }

    #[inline]
    fn ask(&self, call: impl FnOnce(MPI_File, *mut MPI_Offset) -> c_int) -> (Timed, i64) {
        let mut answer: MPI_Offset = 0;
        let timed = timed(|| call(self.0, &raw mut answer));
        (timed, answer)
    }

    /// MPI_File_get_type_extent, or its twin with large counts if `large` and the library has it; and the answer.
    ///
    /// # Safety
    /// The type is alive.
    #[must_use]
    pub unsafe fn get_type_extent(&self, datatype: TypeHandle, large: bool) -> (Timed, i64) {
        if let (true, Some(call)) = (large, constant!(shim::beff_get_type_extent_c)) {
            let mut extent: mpi_sys::MPI_Count = 0;
            // SAFETY: an open file, a type that is alive; one integer is written.
            let timed = timed(|| unsafe { call(self.0, datatype.0, &raw mut extent) });
            return (timed, extent);
        }
        let mut extent: mpi_sys::MPI_Aint = 0;
        // SAFETY: as above.
        let timed = timed(|| unsafe { mpi_sys::MPI_File_get_type_extent(self.0, datatype.0, &raw mut extent) });
        (timed, extent as i64)
    }

    /// MPI_File_get_group; the group is freed behind the clock.
    #[must_use]
    pub fn get_group(&self) -> Timed {
        let mut group = constant!(mpi_sys::RSMPI_GROUP_NULL);
        // SAFETY: an open file; the handle is written.
        let timed = timed(|| unsafe { mpi_sys::MPI_File_get_group(self.0, &raw mut group) });
        if timed.code.is_success() {
            // SAFETY: the group that was just made, freed once.
            unsafe { mpi_sys::MPI_Group_free(&raw mut group) };
        }
        timed
    }

    /// MPI_File_get_amode.
    #[must_use]
    pub fn get_amode(&self) -> Timed {
        let mut mode: c_int = 0;
        // SAFETY: an open file; one integer is written.
        timed(|| unsafe { mpi_sys::MPI_File_get_amode(self.0, &raw mut mode) })
    }

    /// MPI_File_set_info; collective.
    #[must_use]
    pub fn set_info(&self, info: &Info) -> Timed {
        // SAFETY: an open file, an info object that is alive.
        timed(|| unsafe { mpi_sys::MPI_File_set_info(self.0, info.handle()) })
    }

    /// MPI_File_get_info, and the hints in force.
    #[must_use]
    pub fn get_info(&self) -> (Timed, Info) {
        let mut handle = constant!(shim::beff_info_null);
        // SAFETY: an open file; the new object is owned by the result.
        let timed = timed(|| unsafe { mpi_sys::MPI_File_get_info(self.0, &raw mut handle) });
        (timed, Info::from_handle(handle))
    }

    /// MPI_File_set_view; collective.
    ///
    /// # Safety
    /// The types are alive.
    #[must_use]
    pub unsafe fn set_view(
        &self,
        displacement_bytes: i64,
        etype: TypeHandle,
        filetype: TypeHandle,
        representation: &CStr,
        info: &Info,
    ) -> Timed {
        let (name, info) = (representation.as_ptr(), info.handle());
        // SAFETY: an open file, types that are alive, a C string and an info object.
        timed(|| unsafe { mpi_sys::MPI_File_set_view(self.0, displacement_bytes, etype.0, filetype.0, name, info) })
    }

    /// MPI_File_get_view, and the displacement in bytes; the types are freed behind the clock where they have to be.
    #[must_use]
    pub fn get_view(&self) -> (Timed, i64) {
        let mut displacement: MPI_Offset = 0;
        let null = constant!(shim::beff_datatype_null);
        let (mut etype, mut filetype) = (null, null);
        // Longer than any library's MPI_MAX_DATAREP_STRING (128); checked, as the call would write behind it.
        let mut name = [0 as c_char; 1024];
        assert!((constant!(shim::beff_max_datarep_string) as usize) < name.len());
        // SAFETY: an open file; a number, two handles and a name that fits are written.
        let timed = timed(|| unsafe {
            mpi_sys::MPI_File_get_view(
                self.0,
                &raw mut displacement,
                &raw mut etype,
                &raw mut filetype,
                name.as_mut_ptr(),
            )
        });
        if timed.code.is_success() {
            super::types::free_answer(etype);
            super::types::free_answer(filetype);
        }
        (timed, displacement)
    }

    /// MPI_File_seek.
    #[must_use]
    pub fn seek(&self, offset: i64, whence: Whence) -> Timed {
        // SAFETY: an open file.
        timed(|| unsafe { mpi_sys::MPI_File_seek(self.0, offset, library_whence(whence)) })
    }

    /// MPI_File_seek_shared; collective.
    #[must_use]
    pub fn seek_shared(&self, offset: i64, whence: Whence) -> Timed {
        // SAFETY: an open file.
        timed(|| unsafe { mpi_sys::MPI_File_seek_shared(self.0, offset, library_whence(whence)) })
    }

    /// MPI_File_set_atomicity; collective.
    #[must_use]
    pub fn set_atomicity(&self, atomic: bool) -> Timed {
        // SAFETY: an open file.
        timed(|| unsafe { mpi_sys::MPI_File_set_atomicity(self.0, c_int::from(atomic)) })
    }

    /// MPI_File_get_atomicity, and the answer.
    #[must_use]
    pub fn get_atomicity(&self) -> (Timed, bool) {
        let mut atomic: c_int = 0;
        // SAFETY: an open file; one integer is written.
        let timed = timed(|| unsafe { mpi_sys::MPI_File_get_atomicity(self.0, &raw mut atomic) });
        (timed, atomic != 0)
    }

    /// MPI_File_sync; collective.
    #[must_use]
    pub fn sync(&self) -> Timed {
        // SAFETY: an open file.
        timed(|| unsafe { mpi_sys::MPI_File_sync(self.0) })
    }

    /// MPI_File_set_errhandler to MPI_ERRORS_RETURN, on MPI_FILE_NULL too.
    #[must_use]
    pub fn set_errhandler(&self) -> Timed {
        // SAFETY: an open file or none, a predefined handler.
        timed(|| unsafe { mpi_sys::MPI_File_set_errhandler(self.0, mpi_sys::RSMPI_ERRORS_RETURN) })
    }

    /// MPI_File_get_errhandler, on MPI_FILE_NULL too; the handler is freed behind the clock.
    #[must_use]
    pub fn get_errhandler(&self) -> Timed {
        let mut handler = constant!(mpi_sys::RSMPI_ERRORS_RETURN);
        // SAFETY: an open file or none; the handle is written.
        let timed = timed(|| unsafe { mpi_sys::MPI_File_get_errhandler(self.0, &raw mut handler) });
        if timed.code.is_success() {
            // SAFETY: a reference of our own, given back once (MPI-4.0 section 9.3.4), also to a predefined handler.
            unsafe { mpi_sys::MPI_Errhandler_free(&raw mut handler) };
        }
        timed
    }

    /// MPI_File_call_errhandler with MPI_ERR_OTHER. Only after [`File::set_errhandler`] is it certain that it returns.
    #[must_use]
    pub fn call_errhandler(&self) -> Timed {
        // SAFETY: an open file or none; any class of the standard is a code.
        timed(|| unsafe { mpi_sys::MPI_File_call_errhandler(self.0, shim::beff_err_other) })
    }
}

fn library_whence(whence: Whence) -> c_int {
    match whence {
        Whence::Set => constant!(shim::beff_seek_set),
        Whence::Current => constant!(shim::beff_seek_cur),
        Whence::End => constant!(shim::beff_seek_end),
    }
}
