//! What moves the pieces of a step: the seam between the program and system calls.

use std::fs::File;
use std::ops::Range;

use beff_trace::Direction;

use super::fault::{Cause, Done, Fault};
use super::pieces::{bits_of, Piece};
use crate::program::numbers::NOBODY;
use crate::program::Memory;

/// Smaller alignments are not used beside buffered transfers: a page must not be written through the cache by one rank while
/// another writes a part of it directly, which would lose data.
const PAGE_BYTES: u64 = 4096;

/// A data access. Its pieces are a range of the shared list.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) direction: Direction,
    /// Number of the open file.
    pub(super) file: u32,
    pub(super) pieces: Range<usize>,
    /// All offsets, places and lengths, see [`super::pieces::alignment_bits`].
    pub(super) bits: u64,
    /// Memory that is touched; only of accesses that are left under way.
    pub(super) memory: Range<u64>,
    /// Where the mover keeps account of it.
    pub(super) slot: u32,
}

/// The slot of accesses that are done when their step is.
pub(super) const BLOCKING: u32 = NOBODY;

/// The descriptors of a file.
#[derive(Debug)]
pub(super) struct Ways {
    pub(super) buffered: File,
    pub(super) direct: Option<DirectWay>,
    /// Every access has to be direct.
    pub(super) required: bool,
}

/// The descriptor with O_DIRECT.
#[derive(Debug)]
pub(super) struct DirectWay {
    pub(super) file: File,
    pub(super) read_align_bytes: u64,
    pub(super) write_align_bytes: u64,
}

/// The way of an access, or of a piece.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way<'a> {
    pub(super) file: &'a File,
    /// Alignment of direct transfers; 1 if it goes through the page cache.
    pub(super) align_bytes: u64,
}

impl Way<'_> {
    pub(super) fn is_direct(&self) -> bool {
        self.align_bytes > 1
    }
}

/// The way of an access.
#[derive(Clone, Copy, Debug)]
pub(super) enum Route<'a> {
    /// All of it alike.
    Whole(Way<'a>),
    /// Each piece by itself.
    Mixed { direct: Way<'a>, buffered: Way<'a> },
}

impl<'a> Route<'a> {
    /// The way of a piece.
    #[inline]
    pub(super) fn of(&self, piece: &Piece) -> Way<'a> {
        match *self {
            Self::Whole(way) => way,
            Self::Mixed { direct, buffered } => {
                if bits_of(piece) & (direct.align_bytes - 1) == 0 {
                    direct
                } else {
                    buffered
                }
            }
        }
    }
}

impl Ways {
    /// The way of an access.
    ///
    /// # Errors
    /// Direct I/O is required and not possible for it.
    #[inline]
    pub(super) fn route(&self, job: &Job, pieces: &[Piece]) -> Done<Route<'_>> {
        let buffered = Way { file: &self.buffered, align_bytes: 1 };
        let Some(direct) = &self.direct else {
            return if self.required && !pieces.is_empty() {
                Err(not_direct(pieces))
            } else {
                Ok(Route::Whole(buffered))
            };
        };
        let align_bytes = match job.direction {
            Direction::Read => direct.read_align_bytes,
            Direction::Write => direct.write_align_bytes,
        };
        let align_bytes = if self.required { align_bytes } else { align_bytes.max(PAGE_BYTES) };
        let direct = Way { file: &direct.file, align_bytes };
        if job.bits & (align_bytes - 1) == 0 {
            Ok(Route::Whole(direct))
        } else if self.required {
            Err(not_direct(pieces))
        } else if let [_] = pieces {
            Ok(Route::Whole(buffered))
        } else {
            Ok(Route::Mixed { direct, buffered })
        }
    }
}

#[cold]
fn not_direct(pieces: &[Piece]) -> Fault {
    let offset_bytes = pieces.first().map_or(0, |piece| piece.file_bytes);
    Fault { class: super::fault::named("MPI_ERR_IO"), cause: Cause::NotDirect { offset_bytes } }
}

/// Bytes that were moved past the page cache, and all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) direct_bytes: u64,
    pub(super) all_bytes: u64,
}

impl Counted {
    #[inline]
    pub(super) fn add(&mut self, is_direct: bool, bytes: u64) {
        self.all_bytes += bytes;
        self.direct_bytes += if is_direct { bytes } else { 0 };
    }
}

/// Moves pieces. Accesses that are left under way have a slot each, and touch no memory after the drop of the mover.
pub(super) trait Mover {
    /// Makes slots 0 .. `slots` - 1, and room for all that is needed to use them at once. Those there are stay.
    fn reserve(&mut self, slots: usize, memory: &mut Memory);

    /// Begins an access. What comes of it, also an error, stays in its slot.
    fn begin(&mut self, memory: &mut Memory, ways: &Ways, job: &Job, pieces: &[Piece]);

    /// Waits for the end of what was begun in a slot: bytes moved. The slot can be used again.
    ///
    /// # Errors
    /// The first error of one of its pieces.
    fn complete(&mut self, memory: &mut Memory, slot: u32) -> Done<u64>;

    /// Waits for what was begun on a file, or on any; what came of it stays in the slots.
    fn drain(&mut self, memory: &mut Memory, file: Option<u32>);

    /// True if nothing of this slot is under way any more; its memory is free then.
    fn is_idle(&mut self, memory: &mut Memory, slot: u32) -> bool;

    /// What was moved until now.
    fn counted(&self) -> Counted;

    /// How data is moved, for the report.
    fn strategy(&self) -> String;
}
