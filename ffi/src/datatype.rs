//! Datatypes of transfers and file views. The etype is an 8-byte double everywhere, as in the paper.

use std::ffi::c_int;

use mpi_sys::MPI_Datatype;

use crate::error::{check, Result};
use crate::shim;

/// Bytes of the etype.
pub const ETYPE_BYTES: u64 = 8;

/// An owned, committed derived datatype.
#[derive(Debug)]
struct Derived(MPI_Datatype);

impl Drop for Derived {
    fn drop(&mut self) {
        // SAFETY: a derived type that this value owns, freed once; MPI keeps what pending operations need.
        unsafe { mpi_sys::MPI_Type_free(&raw mut self.0) };
    }
}

impl Derived {
    fn commit(mut self) -> Result<Self> {
        // SAFETY: a valid derived type.
        check(unsafe { mpi_sys::MPI_Type_commit(&raw mut self.0) })?;
        Ok(self)
    }
}

pub(crate) fn etype() -> MPI_Datatype {
    // SAFETY: a constant of the library.
    unsafe { shim::beff_double }
}

/// `elements` doubles, contiguous, as one derived type that needs no count beyond `max_count`.
fn contiguous(elements: u64, max_count: u64) -> Result<Derived> {
    let mut new = etype();
    if elements <= max_count {
        let count = c_int::try_from(elements).unwrap_or(c_int::MAX);
        // SAFETY: predefined old type; the new handle is owned by the result.
        check(unsafe { mpi_sys::MPI_Type_contiguous(count, etype(), &raw mut new) })?;
        return Ok(Derived(new));
    }
    // Blocks of max_count elements, and the rest behind them.
    let block = contiguous(max_count, max_count)?;
    let blocks = elements / max_count;
    let rest = elements % max_count;
    let lengths = [c_int::try_from(blocks).unwrap_or(c_int::MAX), c_int::try_from(rest).unwrap_or(c_int::MAX)];
    let displacements =
        [0, mpi_sys::MPI_Aint::try_from(blocks * max_count * ETYPE_BYTES).unwrap_or(mpi_sys::MPI_Aint::MAX)];
    let types = [block.0, etype()];
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
    Ok(Derived(new))
}

/// What one call moves: a number of doubles, as count and type that fit a C integer.
#[derive(Debug)]
pub struct TransferType {
    derived: Option<Derived>,
    count: c_int,
    bytes: u64,
}

impl TransferType {
    /// A transfer of `bytes`, a multiple of 8. Above `max_count` elements (None: what a C integer holds) a derived
    /// datatype takes the place of the count, so that nothing ever wraps.
    ///
    /// # Errors
    /// What MPI reports.
    ///
    /// # Panics
    /// If `bytes` is no multiple of 8.
    pub fn new(bytes: u64, max_count: Option<u64>) -> Result<Self> {
        assert!(bytes % ETYPE_BYTES == 0, "transfers are whole etypes");
        let elements = bytes / ETYPE_BYTES;
        let max_count = max_count.unwrap_or(i32::MAX as u64);
        if elements <= max_count {
            let count = c_int::try_from(elements).unwrap_or(c_int::MAX);
            return Ok(Self { derived: None, count, bytes });
        }
        Ok(Self { derived: Some(contiguous(elements, max_count)?.commit()?), count: 1, bytes })
    }

    /// Bytes of the transfer.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn handle(&self) -> MPI_Datatype {
        self.derived.as_ref().map_or_else(etype, |d| d.0)
    }

    pub(crate) fn count(&self) -> c_int {
        self.count
    }
}

/// The tile of a file view: one chunk of data, then a gap up to the extent.
#[derive(Debug)]
pub struct FileType {
    derived: Option<Derived>,
}

impl FileType {
    /// One chunk of `chunk_bytes` every `stride_bytes`; without a gap the etype itself is the tile.
    ///
    /// # Errors
    /// What MPI reports.
    pub fn strided(chunk_bytes: u64, stride_bytes: u64) -> Result<Self> {
        if chunk_bytes == stride_bytes {
            return Ok(Self { derived: None });
        }
        let chunk = contiguous(chunk_bytes / ETYPE_BYTES, i32::MAX as u64)?;
        let extent = mpi_sys::MPI_Aint::try_from(stride_bytes).unwrap_or(mpi_sys::MPI_Aint::MAX);
        let mut new = etype();
        // SAFETY: a valid old type; the new handle is owned by the result.
        check(unsafe { mpi_sys::MPI_Type_create_resized(chunk.0, 0, extent, &raw mut new) })?;
        Ok(Self { derived: Some(Derived(new).commit()?) })
    }

    pub(crate) fn handle(&self) -> MPI_Datatype {
        self.derived.as_ref().map_or_else(etype, |d| d.0)
    }
}
