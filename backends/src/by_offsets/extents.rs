//! A data access as a flat list of extents in file and memory.

use beff_trace::layout::{ByteRange, TypeLayouts};

/// Bytes that are contiguous both in the file and in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IoExtent {
    pub(super) file_bytes: u64,
    /// Offset from the beginning of the memory area.
    pub(super) memory_bytes: u64,
    pub(super) len_bytes: u64,
}

/// Maximum number of extents prepared at once (1.6 GB).
pub(super) const MAX_EXTENTS: usize = 1 << 26;

/// Why an access cannot be flattened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExtentError {
    /// An offset in the file is negative or exceeds 63 bits.
    File,
    /// An address is outside the memory area.
    Memory,
    /// More than [`MAX_EXTENTS`].
    TooMany,
}

/// A sequence of elements with its origin at `base_bytes`, used from data byte `first_byte` on.
#[derive(Clone, Copy, Debug)]
pub(super) struct TypedSequence {
    /// None for plain bytes.
    pub(super) datatype: Option<u32>,
    pub(super) first_byte: u64,
    pub(super) base_bytes: i64,
}

/// Appends the extents of an access of `bytes` bytes and merges adjacent ones. `area_bytes`: length of the memory area.
///
/// # Errors
/// See [`ExtentError`]; the list is then unchanged.
pub(super) fn flatten(
    pieces: &mut Vec<IoExtent>,
    layouts: &TypeLayouts,
    file: TypedSequence,
    memory: TypedSequence,
    bytes: u64,
    area_bytes: u64,
) -> Result<(), ExtentError> {
    let begin = pieces.len();
    let done = match_extents(
        pieces,
        sequence_extents(layouts, file, bytes),
        sequence_extents(layouts, memory, bytes),
        bytes,
        area_bytes,
    );
    if done.is_err() {
        pieces.truncate(begin);
    }
    done
}

/// The extents of a sequence; they end where an offset would exceed 63 bits.
fn sequence_extents(layouts: &TypeLayouts, row: TypedSequence, bytes: u64) -> impl Iterator<Item = ByteRange> + '_ {
    let of_type = row.datatype.map(|of| layouts.byte_ranges(of, row.first_byte, bytes, row.base_bytes));
    let at = row.base_bytes.checked_add_unsigned(row.first_byte);
    let plain = at.filter(|at| row.datatype.is_none() && at.checked_add_unsigned(bytes).is_some());
    plain.map(|at| ByteRange { at, bytes }).into_iter().chain(of_type.into_iter().flatten())
}

/// Combines extents in the file with extents in memory; both have the same bytes in the same order.
fn match_extents(
    pieces: &mut Vec<IoExtent>,
    mut file: impl Iterator<Item = ByteRange>,
    mut memory: impl Iterator<Item = ByteRange>,
    bytes: u64,
    area_bytes: u64,
) -> Result<(), ExtentError> {
    let begin = pieces.len();
    let (mut here, mut there) = (ByteRange { at: 0, bytes: 0 }, ByteRange { at: 0, bytes: 0 });
    let mut left = bytes;
    while left > 0 {
        if here.bytes == 0 {
            here = file.next().ok_or(ExtentError::File)?;
        }
        if there.bytes == 0 {
            there = memory.next().ok_or(ExtentError::Memory)?;
        }
        let len_bytes = here.bytes.min(there.bytes).min(left);
        let file_bytes = u64::try_from(here.at).map_err(|_| ExtentError::File)?;
        let memory_bytes = u64::try_from(there.at).map_err(|_| ExtentError::Memory)?;
        // The iterators end before 63 bits are exceeded.
        if memory_bytes + len_bytes > area_bytes {
            return Err(ExtentError::Memory);
        }
        push_extent(pieces, begin, IoExtent { file_bytes, memory_bytes, len_bytes })?;
        for run in [&mut here, &mut there] {
            run.at = run.at.saturating_add_unsigned(len_bytes);
            run.bytes -= len_bytes;
        }
        left -= len_bytes;
    }
    Ok(())
}

/// Appends an extent, or merges it with the last one of the same access.
fn push_extent(pieces: &mut Vec<IoExtent>, begin: usize, piece: IoExtent) -> Result<(), ExtentError> {
    if let Some(last) = pieces[begin..].last_mut() {
        let touches = last.file_bytes + last.len_bytes == piece.file_bytes
            && last.memory_bytes + last.len_bytes == piece.memory_bytes;
        if touches {
            last.len_bytes += piece.len_bytes;
            return Ok(());
        }
    }
    if pieces.len() >= MAX_EXTENTS {
        return Err(ExtentError::TooMany);
    }
    pieces.push(piece);
    Ok(())
}

/// Bitwise OR of all offsets, addresses and lengths: they are aligned if no bit below the alignment is set.
pub(super) fn alignment_bits(pieces: &[IoExtent]) -> u64 {
    pieces.iter().fold(0, |bits, piece| bits | extent_bits(piece))
}

/// [`alignment_bits`] of one piece.
#[inline]
pub(super) fn extent_bits(piece: &IoExtent) -> u64 {
    piece.file_bytes | piece.memory_bytes | piece.len_bytes
}

/// Range of memory that is accessed; empty if there are no bytes.
pub(super) fn memory_span(pieces: &[IoExtent]) -> std::ops::Range<u64> {
    let start = pieces.iter().map(|piece| piece.memory_bytes).min().unwrap_or(0);
    let end = pieces.iter().map(|piece| piece.memory_bytes + piece.len_bytes).max().unwrap_or(0);
    start..end
}

#[cfg(test)]
#[path = "extents_tests.rs"]
mod tests;
