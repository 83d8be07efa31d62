//! Data access routines (MPI-3.1 section 13.4): blocking, nonblocking and split collective.

use std::ffi::{c_int, c_void};

use mpi_sys::{MPI_Datatype, MPI_File, MPI_Offset, MPI_Request, MPI_Status};

use crate::datatype::{Element, TransferType};
use crate::error::{check, rejection, MpiError, Result};
use crate::file::MpiFile;

/// Positioning and coordination of a data access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataAccess {
    /// Individual file pointer, noncollective: MPI_File_write.
    Pointer,
    /// Individual file pointers, collective: MPI_File_write_all.
    PointerAll,
    /// Explicit offset, noncollective: MPI_File_write_at.
    Offset,
    /// Explicit offsets, collective: MPI_File_write_at_all.
    OffsetAll,
    /// Shared file pointer, noncollective, in order of arrival: MPI_File_write_shared.
    Shared,
    /// Shared file pointer, collective, in rank order: MPI_File_write_ordered.
    Ordered,
}

impl DataAccess {
    #[cold]
    fn unsupported_form(self, what: &str) -> MpiError {
        rejection("MPI_ERR_UNSUPPORTED_OPERATION", format!("MPI has no {what} call for access by {self:?}"))
    }
}

#[inline]
pub(crate) fn empty_status() -> MPI_Status {
    // SAFETY: a status is plain old data, for which zeros are valid.
    unsafe { std::mem::zeroed() }
}

/// Bytes of a completed transfer. Counts elements, so that partial derived types count too.
#[inline]
pub(crate) fn transferred_bytes(status: &MPI_Status, element: Element) -> Result<u64> {
    if element == Element::Byte {
        let mut bytes: c_int = 0;
        // SAFETY: the status of a transfer of bytes. Cheaper than the call below; MPI_UNDEFINED (beyond an int) is negative.
        check(unsafe { mpi_sys::MPI_Get_count(status, element.handle(), &raw mut bytes) })?;
        if let Ok(bytes) = u64::try_from(bytes) {
            return Ok(bytes);
        }
    }
    let mut elements: mpi_sys::MPI_Count = 0;
    // SAFETY: the status of a transfer of these elements.
    check(unsafe { mpi_sys::MPI_Get_elements_x(status, element.handle(), &raw mut elements) })?;
    // MPI_UNDEFINED is negative: the bytes are not a multiple of the element.
    Ok(u64::try_from(elements).unwrap_or(0) * element.bytes())
}

/// Direction of a transfer as a const parameter that selects between two MPI functions.
pub(crate) const WRITE: bool = true;
pub(crate) const READ: bool = false;

/// Arguments of a data access in C.
#[derive(Clone, Copy)]
pub(crate) struct TransferArguments {
    file: MPI_File,
    memory: *mut c_void,
    count: c_int,
    kind: MPI_Datatype,
    /// For explicit offsets, in etypes of the view.
    at: MPI_Offset,
    element: Element,
}

impl TransferArguments {
    /// `memory` is pointer and length in bytes; `offset_bytes` is relative to the displacement of the view.
    ///
    /// # Panics
    /// If the memory is shorter than the transfer: the calls below rely on it.
    #[inline]
    pub(crate) fn new(file: &MpiFile, offset_bytes: u64, memory: (*const u8, usize), what: &TransferType) -> Self {
        assert!(memory.1 as u64 >= what.bytes(), "buffer shorter than the transfer");
        let element = what.element();
        let at = match element {
            Element::Double => offset_bytes / 8,
            Element::Byte => offset_bytes,
        };
        Self {
            file: file.handle,
            memory: memory.0.cast_mut().cast(),
            count: what.count(),
            kind: what.handle(),
            at: MPI_Offset::try_from(at).unwrap_or(MPI_Offset::MAX),
            element,
        }
    }

    /// Issues the blocking call; returns the transferred bytes.
    ///
    /// # Safety
    /// Until this returns, the memory is readable for a write, writable and not otherwise used for a read.
    #[inline]
    unsafe fn blocking<const WRITES: bool>(self, access: DataAccess) -> Result<u64> {
        let Self { file, memory, count, kind, at, element } = self;
        let mut status = empty_status();
        let status_ptr = &raw mut status;
        // SAFETY: open file; the memory holds at least count x type (`new`), as the caller guarantees.
        check(unsafe {
            match (access, WRITES) {
                (DataAccess::Pointer, WRITE) => mpi_sys::MPI_File_write(file, memory, count, kind, status_ptr),
                (DataAccess::PointerAll, WRITE) => mpi_sys::MPI_File_write_all(file, memory, count, kind, status_ptr),
                (DataAccess::Offset, WRITE) => mpi_sys::MPI_File_write_at(file, at, memory, count, kind, status_ptr),
                (DataAccess::OffsetAll, WRITE) => {
                    mpi_sys::MPI_File_write_at_all(file, at, memory, count, kind, status_ptr)
                }
                (DataAccess::Shared, WRITE) => mpi_sys::MPI_File_write_shared(file, memory, count, kind, status_ptr),
                (DataAccess::Ordered, WRITE) => mpi_sys::MPI_File_write_ordered(file, memory, count, kind, status_ptr),
                (DataAccess::Pointer, READ) => mpi_sys::MPI_File_read(file, memory, count, kind, status_ptr),
                (DataAccess::PointerAll, READ) => mpi_sys::MPI_File_read_all(file, memory, count, kind, status_ptr),
                (DataAccess::Offset, READ) => mpi_sys::MPI_File_read_at(file, at, memory, count, kind, status_ptr),
                (DataAccess::OffsetAll, READ) => {
                    mpi_sys::MPI_File_read_at_all(file, at, memory, count, kind, status_ptr)
                }
                (DataAccess::Shared, READ) => mpi_sys::MPI_File_read_shared(file, memory, count, kind, status_ptr),
                (DataAccess::Ordered, READ) => mpi_sys::MPI_File_read_ordered(file, memory, count, kind, status_ptr),
            }
        })?;
        transferred_bytes(&status, element)
    }

    /// Posts the nonblocking call and sets its request.
    ///
    /// # Safety
    /// As for [`TransferArguments::blocking`], until the request is complete.
    #[inline]
    pub(crate) unsafe fn post<const WRITES: bool>(self, access: DataAccess, request: *mut MPI_Request) -> Result<()> {
        let Self { file, memory, count, kind, at, .. } = self;
        // SAFETY: as in `blocking`; the request is written.
        check(unsafe {
            match (access, WRITES) {
                (DataAccess::Pointer, WRITE) => mpi_sys::MPI_File_iwrite(file, memory, count, kind, request),
                (DataAccess::PointerAll, WRITE) => mpi_sys::MPI_File_iwrite_all(file, memory, count, kind, request),
                (DataAccess::Offset, WRITE) => mpi_sys::MPI_File_iwrite_at(file, at, memory, count, kind, request),
                (DataAccess::OffsetAll, WRITE) => {
                    mpi_sys::MPI_File_iwrite_at_all(file, at, memory, count, kind, request)
                }
                (DataAccess::Shared, WRITE) => mpi_sys::MPI_File_iwrite_shared(file, memory, count, kind, request),
                (DataAccess::Pointer, READ) => mpi_sys::MPI_File_iread(file, memory, count, kind, request),
                (DataAccess::PointerAll, READ) => mpi_sys::MPI_File_iread_all(file, memory, count, kind, request),
                (DataAccess::Offset, READ) => mpi_sys::MPI_File_iread_at(file, at, memory, count, kind, request),
                (DataAccess::OffsetAll, READ) => mpi_sys::MPI_File_iread_at_all(file, at, memory, count, kind, request),
                (DataAccess::Shared, READ) => mpi_sys::MPI_File_iread_shared(file, memory, count, kind, request),
                (DataAccess::Ordered, _) => return Err(access.unsupported_form("nonblocking")),
            }
        })
    }

    /// Both calls of a split collective access, with `during` in between; returns the transferred bytes.
    ///
    /// # Safety
    /// As for [`TransferArguments::blocking`]: the second call is issued before this returns, even if `during` panics.
    unsafe fn split_collective<const WRITES: bool>(self, access: DataAccess, during: &mut dyn FnMut()) -> Result<u64> {
        let Self { file, memory, count, kind, at, element } = self;
        // SAFETY: as in `blocking`, until the second call has been issued, which `PendingSplit` ensures.
        check(unsafe {
            match (access, WRITES) {
                (DataAccess::PointerAll, WRITE) => mpi_sys::MPI_File_write_all_begin(file, memory, count, kind),
                (DataAccess::OffsetAll, WRITE) => mpi_sys::MPI_File_write_at_all_begin(file, at, memory, count, kind),
                (DataAccess::Ordered, WRITE) => mpi_sys::MPI_File_write_ordered_begin(file, memory, count, kind),
                (DataAccess::PointerAll, READ) => mpi_sys::MPI_File_read_all_begin(file, memory, count, kind),
                (DataAccess::OffsetAll, READ) => mpi_sys::MPI_File_read_at_all_begin(file, at, memory, count, kind),
                (DataAccess::Ordered, READ) => mpi_sys::MPI_File_read_ordered_begin(file, memory, count, kind),
                (DataAccess::Pointer | DataAccess::Offset | DataAccess::Shared, _) => {
                    return Err(access.unsupported_form("split collective"));
                }
            }
        })?;
        let end = |status: *mut MPI_Status| {
            // SAFETY: the first call was issued with this file and memory; this one is issued once.
            unsafe {
                match (access, WRITES) {
                    (DataAccess::OffsetAll, WRITE) => mpi_sys::MPI_File_write_at_all_end(file, memory, status),
                    (DataAccess::Ordered, WRITE) => mpi_sys::MPI_File_write_ordered_end(file, memory, status),
                    (_, WRITE) => mpi_sys::MPI_File_write_all_end(file, memory, status),
                    (DataAccess::OffsetAll, READ) => mpi_sys::MPI_File_read_at_all_end(file, memory, status),
                    (DataAccess::Ordered, READ) => mpi_sys::MPI_File_read_ordered_end(file, memory, status),
                    (_, READ) => mpi_sys::MPI_File_read_all_end(file, memory, status),
                }
            }
        };
        let half = PendingSplit { end };
        during();
        half.complete(element)
    }
}

impl MpiFile {
    /// Writes `data` with the blocking call of `access`; `offset_bytes` is relative to the displacement of the view, for explicit offsets
    /// only. Returns the transferred bytes.
    ///
    /// # Panics
    /// If `data` is shorter than the transfer.
    #[inline]
    pub fn write(&self, access: DataAccess, offset_bytes: u64, data: &[u8], what: &TransferType) -> Result<u64> {
        let args = TransferArguments::new(self, offset_bytes, (data.as_ptr(), data.len()), what);
        // SAFETY: `data` is borrowed for the call, which only reads it.
        unsafe { args.blocking::<WRITE>(access) }
    }

    /// Reads as [`MpiFile::write`] writes; fewer bytes at the end of the file.
    ///
    /// # Panics
    /// As [`MpiFile::write`].
    #[inline]
    pub fn read(&self, access: DataAccess, offset_bytes: u64, data: &mut [u8], what: &TransferType) -> Result<u64> {
        let args = TransferArguments::new(self, offset_bytes, (data.as_mut_ptr(), data.len()), what);
        // SAFETY: `data` is exclusively borrowed for the call.
        unsafe { args.blocking::<READ>(access) }
    }

    /// Writes with a split collective call and runs `during` in between. Completes the access even if `during` panics, as the other ranks
    /// do.
    ///
    /// # Errors
    /// Any MPI error; `during` has not run if the first call failed.
    ///
    /// # Panics
    /// As [`MpiFile::write`].
    pub fn write_split(
        &self,
        access: DataAccess,
        offset_bytes: u64,
        data: &[u8],
        what: &TransferType,
        during: &mut dyn FnMut(),
    ) -> Result<u64> {
        let args = TransferArguments::new(self, offset_bytes, (data.as_ptr(), data.len()), what);
        // SAFETY: as in `write`.
        unsafe { args.split_collective::<WRITE>(access, during) }
    }

    /// Reads as [`MpiFile::write_split`] writes.
    ///
    /// # Panics
    /// As [`MpiFile::write`].
    pub fn read_split(
        &self,
        access: DataAccess,
        offset_bytes: u64,
        data: &mut [u8],
        what: &TransferType,
        during: &mut dyn FnMut(),
    ) -> Result<u64> {
        let args = TransferArguments::new(self, offset_bytes, (data.as_mut_ptr(), data.len()), what);
        // SAFETY: as in `read`.
        unsafe { args.split_collective::<READ>(access, during) }
    }
}

/// Second call of a split collective access. Dropped, as by a panic, it issues the call too.
struct PendingSplit<E: FnMut(*mut MPI_Status) -> c_int> {
    end: E,
}

impl<E: FnMut(*mut MPI_Status) -> c_int> PendingSplit<E> {
    fn complete(self, element: Element) -> Result<u64> {
        let mut status = empty_status();
        let mut half = std::mem::ManuallyDrop::new(self);
        check((half.end)(&raw mut status))?;
        transferred_bytes(&status, element)
    }
}

impl<E: FnMut(*mut MPI_Status) -> c_int> Drop for PendingSplit<E> {
    fn drop(&mut self) {
        let mut status = empty_status();
        (self.end)(&raw mut status);
    }
}
