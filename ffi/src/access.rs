//! The calls that move data, MPI-3.1 section 13.4: blocking ones, and the two halves of split collective ones.

use std::ffi::{c_int, c_void};

use mpi_sys::{MPI_Offset, MPI_Status};

use crate::datatype::{Element, TransferType};
use crate::error::{check, Cause, MpiError, Result};
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
    pub(crate) fn has_no(self, what: &str) -> MpiError {
        let text = format!("MPI has no {what} call for access by {self:?}");
        MpiError { class: "MPI_ERR_UNSUPPORTED_OPERATION".into(), text, cause: Cause::Unsupported }
    }
}

/// An offset in the elements that the view counts in.
#[inline]
pub(crate) fn in_elements(offset_bytes: u64, element: Element) -> MPI_Offset {
    let offset = match element {
        Element::Double => offset_bytes / 8,
        Element::Byte => offset_bytes,
    };
    MPI_Offset::try_from(offset).unwrap_or(MPI_Offset::MAX)
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

impl MpiFile {
    /// Writes `data` with the blocking call of `access`; `offset_bytes` counts from the displacement of the view and matters
    /// for calls with an offset only. Returns the bytes moved.
    ///
    /// # Errors
    /// What MPI reports.
    ///
    /// # Panics
    /// If `data` is shorter than the transfer.
    #[inline]
    pub fn write(&self, access: Access, offset_bytes: u64, data: &[u8], what: &TransferType) -> Result<u64> {
        assert!(data.len() as u64 >= what.bytes(), "buffer shorter than the transfer");
        let (file, memory) = (self.handle, data.as_ptr().cast::<c_void>());
        let (count, kind, at) = (what.count(), what.handle(), in_elements(offset_bytes, what.element()));
        let mut status = no_status();
        let told = &raw mut status;
        // SAFETY: open file; the buffer holds at least the bytes of count x type (asserted); blocking calls.
        check(unsafe {
            match access {
                Access::Pointer => mpi_sys::MPI_File_write(file, memory, count, kind, told),
                Access::PointerAll => mpi_sys::MPI_File_write_all(file, memory, count, kind, told),
                Access::Offset => mpi_sys::MPI_File_write_at(file, at, memory, count, kind, told),
                Access::OffsetAll => mpi_sys::MPI_File_write_at_all(file, at, memory, count, kind, told),
                Access::Shared => mpi_sys::MPI_File_write_shared(file, memory, count, kind, told),
                Access::Ordered => mpi_sys::MPI_File_write_ordered(file, memory, count, kind, told),
            }
        })?;
        moved(&status, what.element())
    }

    /// Reads into `data`, as [`MpiFile::write`] writes; fewer bytes at the end of the file.
    ///
    /// # Errors
    /// What MPI reports.
    ///
    /// # Panics
    /// As [`MpiFile::write`].
    #[inline]
    pub fn read(&self, access: Access, offset_bytes: u64, data: &mut [u8], what: &TransferType) -> Result<u64> {
        assert!(data.len() as u64 >= what.bytes(), "buffer shorter than the transfer");
        let (file, memory) = (self.handle, data.as_mut_ptr().cast::<c_void>());
        let (count, kind, at) = (what.count(), what.handle(), in_elements(offset_bytes, what.element()));
        let mut status = no_status();
        let told = &raw mut status;
        // SAFETY: as in `write`; the buffer is exclusively borrowed for the blocking call.
        check(unsafe {
            match access {
                Access::Pointer => mpi_sys::MPI_File_read(file, memory, count, kind, told),
                Access::PointerAll => mpi_sys::MPI_File_read_all(file, memory, count, kind, told),
                Access::Offset => mpi_sys::MPI_File_read_at(file, at, memory, count, kind, told),
                Access::OffsetAll => mpi_sys::MPI_File_read_at_all(file, at, memory, count, kind, told),
                Access::Shared => mpi_sys::MPI_File_read_shared(file, memory, count, kind, told),
                Access::Ordered => mpi_sys::MPI_File_read_ordered(file, memory, count, kind, told),
            }
        })?;
        moved(&status, what.element())
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
        assert!(data.len() as u64 >= what.bytes(), "buffer shorter than the transfer");
        let (file, memory) = (self.handle, data.as_ptr().cast::<c_void>());
        let (count, kind, at) = (what.count(), what.handle(), in_elements(offset_bytes, what.element()));
        // SAFETY: open file; the buffer holds at least the bytes of count x type (asserted) and is borrowed until this
        // function returns, which it does after the second half only: `Half` makes that sure.
        let begun = unsafe {
            match access {
                Access::PointerAll => mpi_sys::MPI_File_write_all_begin(file, memory, count, kind),
                Access::OffsetAll => mpi_sys::MPI_File_write_at_all_begin(file, at, memory, count, kind),
                Access::Ordered => mpi_sys::MPI_File_write_ordered_begin(file, memory, count, kind),
                Access::Pointer | Access::Offset | Access::Shared => return Err(access.has_no("split collective")),
            }
        };
        check(begun)?;
        let half = Half {
            end: |status| {
                // SAFETY: the first half has been called with this file and buffer, and this one is called once.
                unsafe {
                    match access {
                        Access::OffsetAll => mpi_sys::MPI_File_write_at_all_end(file, memory, status),
                        Access::Ordered => mpi_sys::MPI_File_write_ordered_end(file, memory, status),
                        _ => mpi_sys::MPI_File_write_all_end(file, memory, status),
                    }
                }
            },
        };
        during();
        half.end(what.element())
    }

    /// Reads as [`MpiFile::write_split`] writes.
    ///
    /// # Errors
    /// As [`MpiFile::write_split`].
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
        assert!(data.len() as u64 >= what.bytes(), "buffer shorter than the transfer");
        let (file, memory) = (self.handle, data.as_mut_ptr().cast::<c_void>());
        let (count, kind, at) = (what.count(), what.handle(), in_elements(offset_bytes, what.element()));
        // SAFETY: as in `write_split`; the buffer is exclusively borrowed.
        let begun = unsafe {
            match access {
                Access::PointerAll => mpi_sys::MPI_File_read_all_begin(file, memory, count, kind),
                Access::OffsetAll => mpi_sys::MPI_File_read_at_all_begin(file, at, memory, count, kind),
                Access::Ordered => mpi_sys::MPI_File_read_ordered_begin(file, memory, count, kind),
                Access::Pointer | Access::Offset | Access::Shared => return Err(access.has_no("split collective")),
            }
        };
        check(begun)?;
        let half = Half {
            end: |status| {
                // SAFETY: as in `write_split`.
                unsafe {
                    match access {
                        Access::OffsetAll => mpi_sys::MPI_File_read_at_all_end(file, memory, status),
                        Access::Ordered => mpi_sys::MPI_File_read_ordered_end(file, memory, status),
                        _ => mpi_sys::MPI_File_read_all_end(file, memory, status),
                    }
                }
            },
        };
        during();
        half.end(what.element())
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
