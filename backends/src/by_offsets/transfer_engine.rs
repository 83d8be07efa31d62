//! Executes the extents of a step: the interface between the program and system calls.

use std::fs::File;
use std::ops::Range;

use beff_trace::Direction;

use super::extents::{extent_bits, IoExtent};
use super::step_error::{StepError, StepErrorCause, StepResult};
pub(super) use crate::program::slot_numbers::NO_SLOT;
use crate::program::ProgramMemory;

/// Smaller alignments are not used together with buffered transfers: data would be lost if one rank wrote a page through the page cache
/// while another wrote a part of it directly.
const PAGE_BYTES: u64 = 4096;

/// A data access. Its extents are a range of the shared list.
#[derive(Clone, Debug)]
pub(super) struct PlannedAccess {
    pub(super) direction: Direction,
    pub(super) file: u32,
    pub(super) extents: Range<usize>,
    /// Bitwise OR of all offsets, addresses and lengths, see [`super::extents::alignment_bits`].
    pub(super) alignment_bits: u64,
    /// Memory that is accessed; only for nonblocking accesses.
    pub(super) memory: Range<u64>,
    /// Slot in which the engine keeps its state.
    pub(super) slot: u32,
}

/// Slot of accesses that complete within their step.

#[derive(Debug)]
pub(super) struct FileDescriptors {
    pub(super) buffered: File,
    pub(super) direct: Option<DirectDescriptor>,
    /// Every access must be direct.
    pub(super) required: bool,
}

#[derive(Debug)]
pub(super) struct DirectDescriptor {
    pub(super) file: File,
    pub(super) read_align_bytes: u64,
    pub(super) write_align_bytes: u64,
}

/// Descriptor for an access or an extent.
#[derive(Clone, Copy, Debug)]
pub(super) struct TransferDescriptor<'a> {
    pub(super) file: &'a File,
    /// Alignment of direct transfers; 1 for transfers through the page cache.
    pub(super) align_bytes: u64,
}

impl TransferDescriptor<'_> {
    pub(super) fn is_direct(&self) -> bool {
        self.align_bytes > 1
    }
}

/// Descriptors for the extents of an access.
#[derive(Clone, Copy, Debug)]
pub(super) enum DescriptorRoute<'a> {
    /// One for all extents.
    Uniform(TransferDescriptor<'a>),
    /// Selected for each extent.
    Mixed { direct: TransferDescriptor<'a>, buffered: TransferDescriptor<'a> },
}

impl<'a> DescriptorRoute<'a> {
    #[inline]
    pub(super) fn descriptor_for(&self, piece: &IoExtent) -> TransferDescriptor<'a> {
        match *self {
            Self::Uniform(way) => way,
            Self::Mixed { direct, buffered } => {
                if extent_bits(piece) & (direct.align_bytes - 1) == 0 {
                    direct
                } else {
                    buffered
                }
            }
        }
    }
}

impl FileDescriptors {
    /// Selects the descriptors of an access.
    ///
    /// # Errors
    /// Direct I/O is required but not possible.
    #[inline]
    pub(super) fn route(&self, job: &PlannedAccess, pieces: &[IoExtent]) -> StepResult<DescriptorRoute<'_>> {
        let buffered = TransferDescriptor { file: &self.buffered, align_bytes: 1 };
        let Some(direct) = &self.direct else {
            return if self.required && !pieces.is_empty() {
                Err(not_direct_error(pieces))
            } else {
                Ok(DescriptorRoute::Uniform(buffered))
            };
        };
        let align_bytes = match job.direction {
            Direction::Read => direct.read_align_bytes,
            Direction::Write => direct.write_align_bytes,
        };
        let align_bytes = if self.required { align_bytes } else { align_bytes.max(PAGE_BYTES) };
        let direct = TransferDescriptor { file: &direct.file, align_bytes };
        if job.alignment_bits & (align_bytes - 1) == 0 {
            Ok(DescriptorRoute::Uniform(direct))
        } else if self.required {
            Err(not_direct_error(pieces))
        } else if let [_] = pieces {
            Ok(DescriptorRoute::Uniform(buffered))
        } else {
            Ok(DescriptorRoute::Mixed { direct, buffered })
        }
    }
}

#[cold]
fn not_direct_error(pieces: &[IoExtent]) -> StepError {
    let offset_bytes = pieces.first().map_or(0, |piece| piece.file_bytes);
    StepError {
        class: super::step_error::class_by_name("MPI_ERR_IO"),
        cause: StepErrorCause::NotDirect { offset_bytes },
    }
}

/// Bytes transferred directly, and in total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TransferredBytes {
    pub(super) direct_bytes: u64,
    pub(super) all_bytes: u64,
}

impl TransferredBytes {
    #[inline]
    pub(super) fn add(&mut self, is_direct: bool, bytes: u64) {
        self.all_bytes += bytes;
        self.direct_bytes += if is_direct { bytes } else { 0 };
    }
}

/// Executes extents. Each pending access has a slot. After the engine is dropped no memory is accessed.
pub(super) trait TransferEngine {
    /// Allocates slots 0 .. `slots` - 1 and everything needed to use them at once. Existing slots are kept.
    fn reserve(&mut self, slots: usize, memory: &mut ProgramMemory);

    /// Starts an access. Its outcome, also an error, is stored in its slot.
    fn begin(&mut self, memory: &mut ProgramMemory, ways: &FileDescriptors, job: &PlannedAccess, pieces: &[IoExtent]);

    /// Waits for the access in a slot, returns the bytes transferred and frees the slot.
    ///
    /// # Errors
    /// The first error of one of its extents.
    fn complete(&mut self, memory: &mut ProgramMemory, slot: u32) -> StepResult<u64>;

    /// Waits for the accesses to one file, or to all; their outcomes stay in the slots.
    fn drain(&mut self, memory: &mut ProgramMemory, file: Option<u32>);

    /// True if no operation of this slot is pending; its memory is unused then.
    fn is_idle(&mut self, memory: &mut ProgramMemory, slot: u32) -> bool;

    fn transferred_bytes(&self) -> TransferredBytes;

    fn strategy(&self) -> String;
}
