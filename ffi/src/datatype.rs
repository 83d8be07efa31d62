//! Datatypes of transfers and file views, in one etype: 8-byte doubles, as in the b_eff_io paper, or bytes.

use std::ffi::c_int;

use mpi_sys::MPI_Datatype;

use crate::error::{check, Result};
use crate::shim;

/// The etype of a view and its transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// MPI_DOUBLE.
    Double,
    /// MPI_BYTE.
    Byte,
}

impl Element {
    /// Bytes of an element.
    #[must_use]
    #[inline]
    pub fn bytes(self) -> u64 {
        match self {
            Self::Double => 8,
            Self::Byte => 1,
        }
    }

    #[inline]
    pub(crate) fn handle(self) -> MPI_Datatype {
        // SAFETY: constants of the library.
        unsafe {
            match self {
                Self::Double => shim::beff_double,
                Self::Byte => shim::beff_byte,
            }
        }
    }
}

#[derive(Debug)]
struct DerivedType(MPI_Datatype);

impl Drop for DerivedType {
    fn drop(&mut self) {
        // SAFETY: a derived type owned by this value, freed once; MPI keeps what pending operations need.
        unsafe { mpi_sys::MPI_Type_free(&raw mut self.0) };
    }
}

impl DerivedType {
    fn commit(mut self) -> Result<Self> {
        // SAFETY: a valid derived type.
        check(unsafe { mpi_sys::MPI_Type_commit(&raw mut self.0) })?;
        Ok(self)
    }
}

/// `elements` contiguous elements as one derived type without a count beyond `max_count`.
fn contiguous(element: Element, elements: u64, max_count: u64) -> Result<DerivedType> {
    let mut new = element.handle();
    if elements <= max_count {
        let count = c_int::try_from(elements).unwrap_or(c_int::MAX);
        // SAFETY: predefined old type; the new handle is owned by the result.
        check(unsafe { mpi_sys::MPI_Type_contiguous(count, element.handle(), &raw mut new) })?;
        return Ok(DerivedType(new));
    }
    // Blocks of max_count elements, then the remainder.
    let block = contiguous(element, max_count, max_count)?;
    let blocks = elements / max_count;
    let rest = elements % max_count;
    let lengths = [c_int::try_from(blocks).unwrap_or(c_int::MAX), c_int::try_from(rest).unwrap_or(c_int::MAX)];
    let whole_bytes = blocks * max_count * element.bytes();
    let displacements = [0, mpi_sys::MPI_Aint::try_from(whole_bytes).unwrap_or(mpi_sys::MPI_Aint::MAX)];
    let types = [block.0, element.handle()];
    // SAFETY: three arrays of two entries; the block type is released after the new type refers to it (MPI-3.1 4.1.9).
    check(unsafe {
        mpi_sys::MPI_Type_create_struct(
            if rest > 0 { 2 } else { 1 },
            lengths.as_ptr(),
            displacements.as_ptr(),
            types.as_ptr(),
            &raw mut new,
        )
    })?;
    Ok(DerivedType(new))
}

/// Memory of one call: count and type, which fit a C integer.
#[derive(Debug)]
pub struct TransferType {
    derived: Option<DerivedType>,
    element: Element,
    count: c_int,
    bytes: u64,
}

impl TransferType {
    /// `bytes` in elements, of which they are a multiple. Above `max_count` elements (None: INT_MAX) a derived datatype replaces the
    /// count, which never wraps.
    ///
    /// # Panics
    /// If `bytes` is not a multiple of the element.
    pub fn new(element: Element, bytes: u64, max_count: Option<u64>) -> Result<Self> {
        assert!(bytes.is_multiple_of(element.bytes()), "the bytes are not a multiple of the element");
        let elements = bytes / element.bytes();
        let max_count = max_count.unwrap_or(i32::MAX as u64);
        if elements <= max_count {
            let count = c_int::try_from(elements).unwrap_or(c_int::MAX);
            return Ok(Self { derived: None, element, count, bytes });
        }
        let derived = contiguous(element, elements, max_count)?.commit()?;
        Ok(Self { derived: Some(derived), element, count: 1, bytes })
    }

    /// A transfer of 0 bytes.
    #[must_use]
    pub fn empty(element: Element) -> Self {
        Self { derived: None, element, count: 0, bytes: 0 }
    }

    /// Bytes of the transfer.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Element in which it is counted.
    #[must_use]
    #[inline]
    pub fn element(&self) -> Element {
        self.element
    }

    #[inline]
    pub(crate) fn handle(&self) -> MPI_Datatype {
        self.derived.as_ref().map_or_else(|| self.element.handle(), |d| d.0)
    }

    #[inline]
    pub(crate) fn count(&self) -> c_int {
        self.count
    }
}

/// The filetype of a view: one chunk of data, then a gap up to the extent.
#[derive(Debug)]
pub struct FileType {
    derived: Option<DerivedType>,
    element: Element,
}

impl FileType {
    /// The element itself: every byte from the displacement on.
    #[must_use]
    pub fn plain(element: Element) -> Self {
        Self { derived: None, element }
    }

    /// One chunk of `chunk_bytes` every `stride_bytes`; without a gap the filetype is the element itself.
    pub fn strided(element: Element, chunk_bytes: u64, stride_bytes: u64) -> Result<Self> {
        if chunk_bytes == stride_bytes {
            return Ok(Self::plain(element));
        }
        let chunk = contiguous(element, chunk_bytes / element.bytes(), i32::MAX as u64)?;
        let extent = mpi_sys::MPI_Aint::try_from(stride_bytes).unwrap_or(mpi_sys::MPI_Aint::MAX);
        let mut new = element.handle();
        // SAFETY: a valid old type; the new handle is owned by the result.
        check(unsafe { mpi_sys::MPI_Type_create_resized(chunk.0, 0, extent, &raw mut new) })?;
        Ok(Self { derived: Some(DerivedType(new).commit()?), element })
    }

    /// Etype of the view.
    #[must_use]
    pub fn element(&self) -> Element {
        self.element
    }

    pub(crate) fn handle(&self) -> MPI_Datatype {
        self.derived.as_ref().map_or_else(|| self.element.handle(), |d| d.0)
    }
}
