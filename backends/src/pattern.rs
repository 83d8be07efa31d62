//! An access pattern of one rank as arithmetic: from call number to file offsets and memory positions.

use crate::{AccessOrder, Batch, Direction, OrderKind, ReadWriteMix, TransferBuffer};

/// How the ranks of a file's communicator take part in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// Each rank by itself, at its own offsets.
    Independent,
    /// All ranks collectively, each at its own offsets.
    Collective,
    /// All ranks collectively through a shared file pointer, in rank order. The offsets of [`AccessPattern`] follow from that order; a driver
    /// without shared pointers uses them directly.
    SharedOrdered,
    /// Each rank by itself through a shared file pointer, in order of arrival: the offsets of [`AccessPattern`] apply if the ranks arrive in
    /// rank order, which is not guaranteed. For drivers with a shared pointer only.
    SharedArrival,
}

impl AccessKind {
    /// True if an MPI library may synchronize the ranks in a call.
    #[must_use]
    pub fn is_collective(self) -> bool {
        matches!(self, Self::Collective | Self::SharedOrdered)
    }

    /// Note, after the name of the call, on its replacement in a driver without collective calls and shared pointers.
    pub(crate) fn substitution_note(self) -> &'static str {
        match self {
            Self::Independent => "",
            Self::Collective => " at the same offsets (no collective call)",
            Self::SharedArrival => " (no shared pointer in this backend)",
            Self::SharedOrdered => " at offsets in rank order (no shared pointer, no collective call)",
        }
    }
}

/// How the file position of a call is specified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallAddressing {
    /// By the file pointer, in a view of this rank's chunks only.
    #[default]
    Pointer,
    /// By an explicit offset, in the default view of the whole file.
    Explicit,
}

/// How a call completes. Drivers without MPI transfer the same bytes with their own calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallStyle {
    /// It returns when the memory may be reused.
    #[default]
    Blocking,
    /// It returns a request: MPI_File_iwrite and similar.
    Request,
    /// A split collective call: MPI_File_write_all_begin and _end and similar.
    Split,
}

/// Unit of the bytes of a call: the etype of the view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ElementUnit {
    /// MPI_DOUBLE. Chunks, strides and offsets are multiples of 8.
    #[default]
    Word,
    /// MPI_BYTE. Any length, including zero.
    Byte,
}

/// Selects among the MPI calls that transfer the same bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallForm {
    /// Pointer or explicit offset.
    pub addressing: CallAddressing,
    /// Completion of a call.
    pub style: CallStyle,
    /// Etype.
    pub unit: ElementUnit,
}

/// Whether all ranks have chunks of one length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RankPartition {
    /// All ranks have chunks of one length, at equal distances: [`AccessPattern::for_rank`] computes those of another rank.
    #[default]
    Equal,
    /// Lengths differ, and some may be 0. The parts of other ranks are unknown; `rank_distance_bytes` is undefined.
    Unequal,
}

/// One rank's part of a pattern. Call `i` moves `chunks_per_call` chunks of `chunk_bytes`, contiguous in memory;
/// chunk number `k = i * chunks_per_call + j` lies at file offset `base_bytes + k * stride_bytes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessPattern {
    /// Participation of the ranks.
    pub kind: AccessKind,
    /// Contiguous bytes in the file, l of the paper. A multiple of 8 unless the unit is a byte; 0: the rank transfers nothing.
    pub chunk_bytes: u64,
    /// Chunks per call: L / l.
    pub chunks_per_call: u64,
    /// File offset of this rank's first chunk.
    pub base_bytes: u64,
    /// Distance between successive chunks of this rank.
    pub stride_bytes: u64,
    /// File offset at which the pattern begins for all ranks (the displacement of a shared view).
    pub origin_bytes: u64,
    /// Rank whose part this is, below `ranks`. Differs from the rank in the communicator if ranks read each other's data.
    pub rank: u64,
    /// Ranks with a part in this file; 1 for a private file.
    pub ranks: u64,
    /// Distance between the first chunks of successive ranks; 0 for a private file.
    pub rank_distance_bytes: u64,
    /// Whether the parts of the other ranks follow from this one.
    pub partition: RankPartition,
    /// Call variant, for drivers that have several.
    pub form: CallForm,
    /// Position of the first byte in this rank's stream through the file; determines the window of the transfer buffer.
    pub stream_bytes: u64,
    /// Maximum number of calls; no batch exceeds it.
    pub max_calls: u64,
    /// Order in which the calls access their chunks; None: ascending. With an order call number `i` accesses the chunks that call
    /// [`AccessOrder::at`]`(i)` has without one, and data in the file does not depend on the order: a write takes the data of these chunks
    /// from the buffer. A read leaves its data where call `i` has it without an order, so that calls in flight share no memory.
    pub order: Option<AccessOrder>,
    /// Which calls of an order read, in a pattern with reads and writes, which is prepared as a write and run by
    /// [`crate::OpenFile::transfer_mixed`]. The reads leave their data in the landing zone of the buffer, so that it never becomes the data of
    /// a write. None: all calls have one direction.
    pub mix: Option<ReadWriteMix>,
}

impl AccessPattern {
    /// One rank with a private file: contiguous chunks from the beginning, by blocking calls. Other patterns are derived from it.
    #[must_use]
    pub fn private(chunk_bytes: u64, chunks_per_call: u64, max_calls: u64) -> Self {
        Self {
            kind: AccessKind::Independent,
            chunk_bytes,
            chunks_per_call,
            base_bytes: 0,
            stride_bytes: chunk_bytes,
            origin_bytes: 0,
            rank: 0,
            ranks: 1,
            rank_distance_bytes: 0,
            partition: RankPartition::Equal,
            form: CallForm::default(),
            stream_bytes: 0,
            max_calls,
            order: None,
            mix: None,
        }
    }

    /// This pattern, which has an order, with reads among its writes.
    #[must_use]
    pub fn with_mix(&self, mix: ReadWriteMix) -> Self {
        debug_assert!(self.order.is_some() && self.chunks_per_call == 1, "a mix divides the chunks of an order");
        Self { mix: Some(mix), ..*self }
    }

    /// The chunks of this pattern in this order, one by each call, at explicit offsets: a file pointer cannot move backwards.
    #[must_use]
    pub fn in_order(&self, kind: OrderKind, seed: u64) -> Self {
        let calls = self.max_calls * self.chunks_per_call;
        Self {
            chunks_per_call: 1,
            form: CallForm { addressing: CallAddressing::Explicit, ..self.form },
            max_calls: calls,
            order: Some(AccessOrder::new(kind, calls, seed)),
            ..*self
        }
    }

    /// Bytes of one call of this rank, L of the paper.
    #[must_use]
    pub fn call_bytes(&self) -> u64 {
        self.chunk_bytes * self.chunks_per_call
    }

    /// File offset of chunk `chunk` (counted over all calls).
    #[must_use]
    #[inline]
    pub fn chunk_offset(&self, chunk: u64) -> u64 {
        self.base_bytes + chunk * self.stride_bytes
    }

    /// Position in this rank's stream of the first byte of call `call`.
    #[must_use]
    #[inline]
    pub fn stream_position(&self, call: u64) -> u64 {
        self.stream_bytes + call * self.call_bytes()
    }

    /// Number of the call that has the chunks of call `call` without an order.
    #[must_use]
    #[inline]
    pub fn ordered_call(&self, call: u64) -> u64 {
        self.order.as_ref().map_or(call, |order| order.at(call))
    }

    /// File offset of the first chunk that call `call` accesses.
    #[must_use]
    #[inline]
    pub fn call_offset(&self, call: u64) -> u64 {
        self.chunk_offset(self.ordered_call(call) * self.chunks_per_call)
    }

    /// Position in this rank's stream whose window of the buffer call `call` uses.
    #[must_use]
    #[inline]
    pub fn memory_position(&self, direction: Direction, call: u64) -> u64 {
        match direction {
            Direction::Write => self.stream_position(self.ordered_call(call)),
            Direction::Read => self.stream_position(call),
        }
    }

    /// Index of the first byte of that window. Reads of a mixed pattern have theirs in the landing zone.
    #[must_use]
    #[inline]
    pub fn memory_index(&self, buffer: &TransferBuffer, direction: Direction, call: u64) -> usize {
        let position = self.memory_position(direction, call);
        match (direction, self.mix) {
            (Direction::Read, Some(_)) => buffer.landing_index(position),
            _ => buffer.index(position),
        }
    }

    /// Direction of call `call`; `prepared`: that of all calls without a mix.
    #[must_use]
    #[inline]
    pub fn call_direction(&self, prepared: Direction, call: u64) -> Direction {
        self.mix.map_or(prepared, |mix| mix.direction(call))
    }

    /// The part of another rank in the same pattern, for equal parts.
    ///
    /// # Panics
    /// Never for `rank` below [`AccessPattern::ranks`]: the offsets of all ranks were checked when the pattern was constructed.
    #[must_use]
    pub fn for_rank(&self, rank: u64) -> Self {
        debug_assert_eq!(self.partition, RankPartition::Equal, "the parts of other ranks are unknown");
        let first = self.base_bytes - self.rank * self.rank_distance_bytes;
        Self { rank, base_bytes: first + rank * self.rank_distance_bytes, ..*self }
    }

    /// True if no block of `align_bytes` contains bytes of two ranks: the file is private, or each rank has one contiguous range that
    /// begins at an aligned offset, or everything is aligned.
    #[must_use]
    pub fn is_private(&self, align_bytes: u64) -> bool {
        if self.ranks <= 1 {
            return true;
        }
        if self.partition == RankPartition::Unequal {
            // The ends of the other ranks' parts are unknown.
            return false;
        }
        if self.is_contiguous() {
            let first = self.base_bytes - self.rank * self.rank_distance_bytes;
            // Segments begin `stream_bytes` before the pattern.
            return self.rank_distance_bytes.is_multiple_of(align_bytes) && first == self.stream_bytes;
        }
        self.is_aligned(align_bytes) && self.rank_distance_bytes.is_multiple_of(align_bytes)
    }

    /// True if the chunks of this rank are contiguous in the file.
    #[must_use]
    pub fn is_contiguous(&self) -> bool {
        self.stride_bytes == self.chunk_bytes
    }

    /// True if the chunks of several ranks are interleaved.
    pub(crate) fn is_interleaved(&self) -> bool {
        self.ranks > 1 && !self.is_contiguous()
    }

    /// The bytes of the file (begin, end) that must exist before this rank writes the calls of `batch`, which has at least one call. For
    /// interleaved ranks, which share pages and blocks, it is the range of all ranks: none can run ahead into a hole of another. With an
    /// order it is the range of all calls.
    pub(crate) fn byte_range(&self, batch: Batch) -> (u64, u64) {
        let (low, high) =
            if self.is_interleaved() { (self.for_rank(0), self.for_rank(self.ranks - 1)) } else { (*self, *self) };
        let (first_call, end_call) = match self.order {
            None => (batch.first_call, batch.first_call + batch.calls),
            Some(order) => (0, order.calls().max(1)),
        };
        let (first, last) = (first_call * self.chunks_per_call, end_call * self.chunks_per_call - 1);
        (low.chunk_offset(first), high.chunk_offset(last) + self.chunk_bytes)
    }

    /// Number of calls, from the first one on, whose [range](Self::byte_range) ends at or before `end`. Calls have bytes and ascending
    /// offsets.
    pub(crate) fn calls_within(&self, end: u64) -> u64 {
        let end_of = |first_call| self.byte_range(Batch { first_call, calls: 1 }).1;
        let (first, second) = (end_of(0), end_of(1));
        if self.order.is_some() {
            return if end >= first { u64::MAX } else { 0 };
        }
        end.checked_sub(first).map_or(0, |behind| 1 + behind / (second - first).max(1))
    }

    /// Why a driver with explicit offsets and blocking calls cannot run the pattern.
    pub(crate) fn offset_access_obstacle(&self) -> Option<String> {
        if self.kind == AccessKind::SharedArrival {
            return Some("access in the order of arrival needs a shared file pointer; use mpiio".into());
        }
        match self.form.style {
            CallStyle::Blocking => None,
            CallStyle::Request => Some("it supports blocking calls only; use mpiio or uring".into()),
            CallStyle::Split => Some("it has no split collective calls; use mpiio".into()),
        }
    }

    /// True if the windows of all calls begin at multiples of `align_bytes` in a buffer of this period, provided that their positions in
    /// the stream do.
    pub(crate) fn has_aligned_windows(&self, period_bytes: u64, align_bytes: u64) -> bool {
        let end = self.max_calls.checked_mul(self.call_bytes()).and_then(|bytes| bytes.checked_add(self.stream_bytes));
        period_bytes.is_multiple_of(align_bytes) || end.is_some_and(|end| end <= period_bytes)
    }

    /// True if every offset, length and memory position is a multiple of `align_bytes`.
    #[must_use]
    pub fn is_aligned(&self, align_bytes: u64) -> bool {
        [self.base_bytes, self.chunk_bytes, self.stride_bytes, self.stream_bytes].iter().all(|v| v % align_bytes == 0)
    }
}
