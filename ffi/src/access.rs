//! The calls that move data, MPI-3.1 section 13.4: blocking ones, nonblocking ones, and the two halves of split collective
//! ones.

use std::ffi::{c_int, c_void};

use mpi_sys::{MPI_Datatype, MPI_File, MPI_Offset, MPI_Request, MPI_Status};

use crate::datatype::{Element, TransferType};
use crate::error::{check, refused, MpiError, Result};
use crate::file::MpiFile;

/// What says where a call goes, and who takes part in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Individual pointer, each rank on its own: MPI_File_write.
    Pointer,
    /// Individual pointers, all ranks together: MPI_File_write_all.
    PointerAll,
    /// An offset, each rank on its own: MPI_File_write_at.
    Offset,
    /// An offset of each rank, all together: MPI_File_write_at_all.
    OffsetAll,
    /// Shared pointer, each rank on its own, in order of arrival: MPI_File_write_shared.
    Shared,
    /// Shared pointer, all ranks together, in rank order: MPI_File_write_ordered.
    Ordered,
}

impl Access {
    /// The error of a combination the standard has no call for.
    #[cold]
    fn has_no(self, what: &str) -> MpiError {
        refused("MPI_ERR_UNSUPPORTED_OPERATION", format!("MPI has no {what} call for access by {self:?}"))
    }
}

/// A status without content, for a call to fill in.
#[inline]
pub(crate) fn no_status() -> MPI_Status {
    // SAFETY: a status is plain old data, for which zeros are valid.
    unsafe { std::mem::zeroed() }
}

/// Bytes of a finished transfer, from its status. Elements are counted, not copies of the transfer's type, so that part
/// of a derived type is seen too.
#[inline]
pub(crate) fn moved(status: &MPI_Status, element: Element) -> Result<u64> {
    if element == Element::Byte {
        let mut bytes: c_int = 0;
        // SAFETY: the status was filled by a transfer of bytes. The shorter way; what an int cannot hold is undefined, negative.
        check(unsafe { mpi_sys::MPI_Get_count(status, element.handle(), &raw mut bytes) })?;
        if let Ok(bytes) = u64::try_from(bytes) {
            return Ok(bytes);
        }
    }
    let mut elements: mpi_sys::MPI_Count = 0;
    // SAFETY: the status was filled by a transfer of these elements.
    check(unsafe { mpi_sys::MPI_Get_elements_x(status, element.handle(), &raw mut elements) })?;
    // MPI_UNDEFINED is negative and means that the bytes are no whole number of elements: count it as nothing moved.
    Ok(u64::try_from(elements).unwrap_or(0) * element.bytes())
}

/// Direction of a transfer, where it chooses between two calls of MPI.
pub(crate) const WRITE: bool = true;
/// The other one.
pub(crate) const READ: bool = false;

/// The arguments of a transfer as C takes them, in whatever call.
#[derive(Clone, Copy)]
pub(crate) struct Args {
    file: MPI_File,
    memory: *mut c_void,
    count: c_int,
    kind: MPI_Datatype,
    /// For calls with an offset, in the elements that the view counts in.
    at: MPI_Offset,
    element: Element,
}

impl Args {
    /// `memory` and its length in bytes; `offset_bytes` counts from the displacement of the view.
    ///
    /// # Panics
    /// If the memory is shorter than the transfer: every call below relies on it.
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

    /// The blocking call; returns the bytes moved.
    ///
    /// # Safety
    /// The memory is readable for a write, and writable and not otherwise used for a read, until this returns.
    #[inline]
    unsafe fn blocking<const WRITES: bool>(self, access: Access) -> Result<u64> {
        let Self { file, memory, count, kind, at, element } = self;
        let mut status = no_status();
        let told = &raw mut status;
        // SAFETY: open file; the memory holds at least the bytes of count x type (`new`), by the caller's promise.
        check(unsafe {
            match (access, WRITES) {
                (Access::Pointer, WRITE) => mpi_sys::MPI_File_write(file, memory, count, kind, told),
                (Access::PointerAll, WRITE) => mpi_sys::MPI_File_write_all(file, memory, count, kind, told),
                (Access::Offset, WRITE) => mpi_sys::MPI_File_write_at(file, at, memory, count, kind, told),
                (Access::OffsetAll, WRITE) => mpi_sys::MPI_File_write_at_all(file, at, memory, count, kind, told),
                (Access::Shared, WRITE) => mpi_sys::MPI_File_write_shared(file, memory, count, kind, told),
                (Access::Ordered, WRITE) => mpi_sys::MPI_File_write_ordered(file, memory, count, kind, told),
                (Access::Pointer, READ) => mpi_sys::MPI_File_read(file, memory, count, kind, told),
                (Access::PointerAll, READ) => mpi_sys::MPI_File_read_all(file, memory, count, kind, told),
                (Access::Offset, READ) => mpi_sys::MPI_File_read_at(file, at, memory, count, kind, told),
                (Access::OffsetAll, READ) => mpi_sys::MPI_File_read_at_all(file, at, memory, count, kind, told),
                (Access::Shared, READ) => mpi_sys::MPI_File_read_shared(file, memory, count, kind, told),
                (Access::Ordered, READ) => mpi_sys::MPI_File_read_ordered(file, memory, count, kind, told),
            }
        })?;
        moved(&status, element)
    }

    /// The call that begins a transfer and fills in its request.
    ///
    /// # Safety
    /// As for [`Args::blocking`], until the request has been waited for.
    #[inline]
    pub(crate) unsafe fn begin<const WRITES: bool>(self, access: Access, request: *mut MPI_Request) -> Result<()> {
        let Self { file, memory, count, kind, at, .. } = self;
        // SAFETY: as in `blocking`; a request to be written.
        check(unsafe {
            match (access, WRITES) {
                (Access::Pointer, WRITE) => mpi_sys::MPI_File_iwrite(file, memory, count, kind, request),
                (Access::PointerAll, WRITE) => mpi_sys::MPI_File_iwrite_all(file, memory, count, kind, request),
                (Access::Offset, WRITE) => mpi_sys::MPI_File_iwrite_at(file, at, memory, count, kind, request),
                (Access::OffsetAll, WRITE) => mpi_sys::MPI_File_iwrite_at_all(file, at, memory, count, kind, request),
                (Access::Shared, WRITE) => mpi_sys::MPI_File_iwrite_shared(file, memory, count, kind, request),
                (Access::Pointer, READ) => mpi_sys::MPI_File_iread(file, memory, count, kind, request),
                (Access::PointerAll, READ) => mpi_sys::MPI_File_iread_all(file, memory, count, kind, request),
                (Access::Offset, READ) => mpi_sys::MPI_File_iread_at(file, at, memory, count, kind, request),
                (Access::OffsetAll, READ) => mpi_sys::MPI_File_iread_at_all(file, at, memory, count, kind, request),
                (Access::Shared, READ) => mpi_sys::MPI_File_iread_shared(file, memory, count, kind, request),
                (Access::Ordered, _) => return Err(access.has_no("nonblocking")),
            }
        })
    }

    /// The two halves of a split collective call, with `during` between them; returns the bytes moved.
    ///
    /// # Safety
    /// As for [`Args::blocking`]: the second half is made before this returns, also if `during` panics.
    unsafe fn split<const WRITES: bool>(self, access: Access, during: &mut dyn FnMut()) -> Result<u64> {
        let Self { file, memory, count, kind, at, element } = self;
        // SAFETY: as in `blocking`, until the second half has been called, which `Half` makes sure of.
        check(unsafe {
            match (access, WRITES) {
                (Access::PointerAll, WRITE) => mpi_sys::MPI_File_write_all_begin(file, memory, count, kind),
                (Access::OffsetAll, WRITE) => mpi_sys::MPI_File_write_at_all_begin(file, at, memory, count, kind),
                (Access::Ordered, WRITE) => mpi_sys::MPI_File_write_ordered_begin(file, memory, count, kind),
                (Access::PointerAll, READ) => mpi_sys::MPI_File_read_all_begin(file, memory, count, kind),
                (Access::OffsetAll, READ) => mpi_sys::MPI_File_read_at_all_begin(file, at, memory, count, kind),
                (Access::Ordered, READ) => mpi_sys::MPI_File_read_ordered_begin(file, memory, count, kind),
                (Access::Pointer | Access::Offset | Access::Shared, _) => {
                    return Err(access.has_no("split collective"));
                }
            }
        })?;
        let end = |status: *mut MPI_Status| {
            // SAFETY: the first half has been called with this file and memory, and this one is called once.
            unsafe {
                match (access, WRITES) {
                    (Access::OffsetAll, WRITE) => mpi_sys::MPI_File_write_at_all_end(file, memory, status),
                    (Access::Ordered, WRITE) => mpi_sys::MPI_File_write_ordered_end(file, memory, status),
                    (_, WRITE) => mpi_sys::MPI_File_write_all_end(file, memory, status),
                    (Access::OffsetAll, READ) => mpi_sys::MPI_File_read_at_all_end(file, memory, status),
                    (Access::Ordered, READ) => mpi_sys::MPI_File_read_ordered_end(file, memory, status),
                    (_, READ) => mpi_sys::MPI_File_read_all_end(file, memory, status),
                }
            }
        };
        let half = Half { end };
        during();
        half.end(element)
    }
}

impl MpiFile {
    /// Writes `data` with the blocking call of `access`; `offset_bytes` counts from the displacement of the view and matters
    /// for calls with an offset only. Returns the bytes moved.
    ///
    /// # Panics
    /// If `data` is shorter than the transfer.
    #[inline]
    pub fn write(&self, access: Access, offset_bytes: u64, data: &[u8], what: &TransferType) -> Result<u64> {
        let args = Args::new(self, offset_bytes, (data.as_ptr(), data.len()), what);
        // SAFETY: `data` is borrowed for the call, which only reads it.
        unsafe { args.blocking::<WRITE>(access) }
    }

    /// Reads into `data`, as [`MpiFile::write`] writes; fewer bytes at the end of the file.
    ///
    /// # Panics
    /// As [`MpiFile::write`].
    #[inline]
    pub fn read(&self, access: Access, offset_bytes: u64, data: &mut [u8], what: &TransferType) -> Result<u64> {
        let args = Args::new(self, offset_bytes, (data.as_mut_ptr(), data.len()), what);
        // SAFETY: `data` is exclusively borrowed for the call.
        unsafe { args.blocking::<READ>(access) }
    }

    /// Writes with the two halves of a split collective call, and runs `during` between them. Also if `during` panics the
    /// call is ended, because the others end theirs.
    ///
    /// # Errors
    /// What MPI reports; `during` has not run then if the first half failed.
    ///
    /// # Panics
    /// As [`MpiFile::write`].
    pub fn write_split(
        &self,
        access: Access,
        offset_bytes: u64,
        data: &[u8],
        what: &TransferType,
        during: &mut dyn FnMut(),
    ) -> Result<u64> {
        let args = Args::new(self, offset_bytes, (data.as_ptr(), data.len()), what);
        // SAFETY: as in `write`.
        unsafe { args.split::<WRITE>(access, during) }
    }

    /// Reads as [`MpiFile::write_split`] writes.
    ///
    /// # Panics
    /// As [`MpiFile::write`].
    pub fn read_split(
        &self,
        access: Access,
        offset_bytes: u64,
        data: &mut [u8],
        what: &TransferType,
        during: &mut dyn FnMut(),
    ) -> Result<u64> {
        let args = Args::new(self, offset_bytes, (data.as_mut_ptr(), data.len()), what);
        // SAFETY: as in `read`.
        unsafe { args.split::<READ>(access, during) }
    }
}

/// The second half of a split collective call. Dropped without it, by a panic, it makes it all the same.
struct Half<E: FnMut(*mut MPI_Status) -> c_int> {
    end: E,
}

impl<E: FnMut(*mut MPI_Status) -> c_int> Half<E> {
    fn end(self, element: Element) -> Result<u64> {
        let mut status = no_status();
        let mut half = std::mem::ManuallyDrop::new(self);
        check((half.end)(&raw mut status))?;
        moved(&status, element)
    }
}

impl<E: FnMut(*mut MPI_Status) -> c_int> Drop for Half<E> {
    fn drop(&mut self) {
        let mut status = no_status();
        (self.end)(&raw mut status);
    }
}
