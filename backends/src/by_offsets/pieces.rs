//! A data access as a flat list: which bytes of the file lie where in memory.

use beff_trace::layout::{Extent, Layouts};

/// A run of bytes that is one in the file and in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Offset in the file.
    pub(super) file_bytes: u64,
    /// From the begin of the area.
    pub(super) memory_bytes: u64,
    /// Its length.
    pub(super) len_bytes: u64,
}

/// Pieces that are ready at once at most, 1.6 GB of them.
pub(super) const MOST_PIECES: usize = 1 << 26;

/// Why an access has no list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beyond {
    /// A place in the file is before its begin or beyond 63 bits.
    File,
    /// A place in memory is outside its area.
    Memory,
    /// More than [`MOST_PIECES`].
    Pieces,
}

/// A row of elements: `bytes` bytes of data from the byte `first_byte` on, the row begins at `base_bytes`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    /// None: plain bytes.
    pub(super) of: Option<u32>,
    pub(super) first_byte: u64,
    pub(super) base_bytes: i64,
}

/// Appends the pieces of an access of `bytes` bytes, neighbours joined. `area_bytes`: length of the memory.
///
/// # Errors
/// See [`Beyond`]; what was appended is taken back.
pub(super) fn flatten(
    pieces: &mut Vec<Piece>,
    layouts: &Layouts,
    file: Row,
    memory: Row,
    bytes: u64,
    area_bytes: u64,
) -> Result<(), Beyond> {
    let begin = pieces.len();
    let done = match_runs(pieces, walk(layouts, file, bytes), walk(layouts, memory, bytes), bytes, area_bytes);
    if done.is_err() {
        pieces.truncate(begin);
    }
    done
}

/// The runs of a row; they end early where they leave 63 bits.
fn walk(layouts: &Layouts, row: Row, bytes: u64) -> impl Iterator<Item = Extent> + '_ {
    let of_type = row.of.map(|of| layouts.walk(of, row.first_byte, bytes, row.base_bytes));
    let at = row.base_bytes.checked_add_unsigned(row.first_byte);
    let plain = at.filter(|at| row.of.is_none() && at.checked_add_unsigned(bytes).is_some());
    plain.map(|at| Extent { at, bytes }).into_iter().chain(of_type.into_iter().flatten())
}

/// Runs in the file against runs in memory; both have the same bytes in the same order.
fn match_runs(
    pieces: &mut Vec<Piece>,
    mut file: impl Iterator<Item = Extent>,
    mut memory: impl Iterator<Item = Extent>,
    bytes: u64,
    area_bytes: u64,
) -> Result<(), Beyond> {
    let begin = pieces.len();
    let (mut here, mut there) = (Extent { at: 0, bytes: 0 }, Extent { at: 0, bytes: 0 });
    let mut left = bytes;
    while left > 0 {
        if here.bytes == 0 {
            here = file.next().ok_or(Beyond::File)?;
        }
        if there.bytes == 0 {
            there = memory.next().ok_or(Beyond::Memory)?;
        }
        let len_bytes = here.bytes.min(there.bytes).min(left);
        let file_bytes = u64::try_from(here.at).map_err(|_| Beyond::File)?;
        let memory_bytes = u64::try_from(there.at).map_err(|_| Beyond::Memory)?;
        // Walks end before 63 bits.
        if memory_bytes + len_bytes > area_bytes {
            return Err(Beyond::Memory);
        }
        push(pieces, begin, Piece { file_bytes, memory_bytes, len_bytes })?;
        for run in [&mut here, &mut there] {
            run.at = run.at.saturating_add_unsigned(len_bytes);
            run.bytes -= len_bytes;
        }
        left -= len_bytes;
    }
    Ok(())
}

/// Adds a piece, or makes the last one of the same access longer.
fn push(pieces: &mut Vec<Piece>, begin: usize, piece: Piece) -> Result<(), Beyond> {
    if let Some(last) = pieces[begin..].last_mut() {
        let touches = last.file_bytes + last.len_bytes == piece.file_bytes
            && last.memory_bytes + last.len_bytes == piece.memory_bytes;
        if touches {
            last.len_bytes += piece.len_bytes;
            return Ok(());
        }
    }
    if pieces.len() >= MOST_PIECES {
        return Err(Beyond::Pieces);
    }
    pieces.push(piece);
    Ok(())
}

/// All bits that are set in an offset, a place or a length: they are aligned if those below the alignment are not in it.
pub(super) fn alignment_bits(pieces: &[Piece]) -> u64 {
    pieces.iter().fold(0, |bits, piece| bits | bits_of(piece))
}

/// [`alignment_bits`] of one piece.
#[inline]
pub(super) fn bits_of(piece: &Piece) -> u64 {
    piece.file_bytes | piece.memory_bytes | piece.len_bytes
}

/// The memory from the first to behind the last byte that is touched; empty for no bytes.
pub(super) fn span(pieces: &[Piece]) -> std::ops::Range<u64> {
    let start = pieces.iter().map(|piece| piece.memory_bytes).min().unwrap_or(0);
    let end = pieces.iter().map(|piece| piece.memory_bytes + piece.len_bytes).max().unwrap_or(0);
    start..end
}

#[cfg(test)]
#[path = "pieces_tests.rs"]
mod tests;
