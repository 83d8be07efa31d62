//! An access pattern of one rank as arithmetic: from call number to file offsets and memory positions.

/// How the ranks of a file's communicator take part in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// Each rank on its own, at its own offsets.
    Independent,
    /// All ranks together, each at its own offsets.
    Collective,
    /// All ranks together through a shared file pointer, in rank order. The offsets of [`Pattern`] are where
    /// that order puts the bytes; a driver without shared pointers uses them directly.
    SharedOrdered,
    /// Each rank on its own through a shared file pointer, in order of arrival: the offsets of [`Pattern`] say where the
    /// bytes lie if the ranks arrive in rank order, which nothing promises. For drivers with a shared pointer only.
    SharedArrival,
}

impl AccessKind {
    /// True if ranks meet in a call of a library that has such calls: one that stays away keeps the others waiting.
    #[must_use]
    pub fn is_collective(self) -> bool {
        matches!(self, Self::Collective | Self::SharedOrdered)
    }

    /// How a driver without collective calls and shared pointers stands for it, behind the name of its call.
    pub(crate) fn by_offsets(self) -> &'static str {
        match self {
            Self::Independent => "",
            Self::Collective => " at the same offsets (no collective call)",
            Self::SharedArrival => " (a shared pointer, which this backend has not)",
            Self::SharedOrdered => " at the offsets of the rank order (no shared pointer, no collective call)",
        }
    }
}

/// What says where a call goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallPlace {
    /// The file pointer, on a view that shows this rank's chunks only.
    #[default]
    Pointer,
    /// An offset in each call, on the plain view of the whole file.
    Explicit,
}

/// How a call of MPI ends. Drivers without MPI do the same bytes their own way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallStyle {
    /// It returns when the memory may be used again.
    #[default]
    Blocking,
    /// It returns a request that is waited for: MPI_File_iwrite and the like.
    Request,
    /// A collective call in two halves, MPI_File_write_all_begin and _end and the like.
    Split,
}

/// What the bytes of a call are counted in: the etype of the view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// MPI_DOUBLE. Chunks, strides and offsets are multiples of 8.
    #[default]
    Word,
    /// MPI_BYTE. Any length, also none.
    Byte,
}

/// Which of the MPI calls that move the same bytes a pattern is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallForm {
    /// Pointer or offset.
    pub place: CallPlace,
    /// How a call ends.
    pub style: CallStyle,
    /// Etype.
    pub unit: Unit,
}

/// Whether all ranks have chunks of one length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Parts {
    /// All ranks have chunks of one length, at equal distances: [`Pattern::of_rank`] tells where another rank's are.
    #[default]
    Equal,
    /// Lengths differ, some may be 0. What other ranks do is not known; `rank_distance_bytes` means nothing.
    Unequal,
}

/// Write or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Memory to file.
    Write,
    /// File to memory.
    Read,
}

/// One rank's part of a pattern. Call `i` moves `chunks_per_call` chunks of `chunk_bytes`, contiguous in memory;
/// chunk number `k = i * chunks_per_call + j` lies at file offset `base_bytes + k * stride_bytes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// How the ranks take part.
    pub kind: AccessKind,
    /// Contiguous bytes in the file, l of the paper. A multiple of 8 unless the unit is a byte; 0: the rank takes part with nothing.
    pub chunk_bytes: u64,
    /// Chunks moved by one call: L / l.
    pub chunks_per_call: u64,
    /// File offset of this rank's first chunk.
    pub base_bytes: u64,
    /// Distance from one chunk of this rank to its next.
    pub stride_bytes: u64,
    /// File offset where the pattern begins for all ranks together (the displacement of a shared view).
    pub origin_bytes: u64,
    /// Whose part this is, below `ranks`. Differs from the rank in the communicator when ranks read each other's data.
    pub rank: u64,
    /// Ranks with a part in this file; 1 for a private file.
    pub ranks: u64,
    /// Distance from one rank's first chunk to the next rank's; 0 for a private file.
    pub rank_distance_bytes: u64,
    /// Whether the other ranks' parts follow from this one.
    pub parts: Parts,
    /// Which calls, for drivers that have several.
    pub form: CallForm,
    /// Position of the first byte in this rank's stream through the file; decides the window of the ring.
    pub stream_bytes: u64,
    /// Calls that may ever be asked for; no batch goes beyond.
    pub max_calls: u64,
}

impl Pattern {
    /// One rank alone with its file: chunk after chunk from the beginning, by blocking calls. What other patterns are made
    /// from.
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
            parts: Parts::Equal,
            form: CallForm::default(),
            stream_bytes: 0,
            max_calls,
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

    /// The part of another rank in the same pattern, whose parts are equal.
    ///
    /// # Panics
    /// Never for `rank` below [`Pattern::ranks`]: their offsets were checked when the pattern was made.
    #[must_use]
    pub fn of_rank(&self, rank: u64) -> Self {
        debug_assert_eq!(self.parts, Parts::Equal, "other ranks' parts are not known");
        let first = self.base_bytes - self.rank * self.rank_distance_bytes;
        Self { rank, base_bytes: first + rank * self.rank_distance_bytes, ..*self }
    }

    /// True if no block of `align_bytes` holds bytes of two ranks: the file is private, or each rank has one contiguous
    /// range and these begin at aligned offsets, or everything is aligned.
    #[must_use]
    pub fn is_private(&self, align_bytes: u64) -> bool {
        if self.ranks <= 1 {
            return true;
        }
        if self.parts == Parts::Unequal {
            // Where the others' parts end is not known.
            return false;
        }
        if self.is_contiguous() {
            let first = self.base_bytes - self.rank * self.rank_distance_bytes;
            // Segments: their beginning lies `stream_bytes` before the pattern.
            return self.rank_distance_bytes.is_multiple_of(align_bytes) && first == self.stream_bytes;
        }
        self.is_aligned(align_bytes) && self.rank_distance_bytes.is_multiple_of(align_bytes)
    }

    /// True if the chunks of this rank follow each other without a gap.
    #[must_use]
    pub fn is_contiguous(&self) -> bool {
        self.stride_bytes == self.chunk_bytes
    }

    /// True if the chunks of several ranks lie between each other.
    pub(crate) fn is_interleaved(&self) -> bool {
        self.ranks > 1 && !self.is_contiguous()
    }

    /// The bytes of the file (begin, end) that must be there before this rank writes the calls of `batch`, of which there is at least
    /// one. Interleaved ranks share pages and blocks, so it is the whole stretch of all: none can run ahead into a hole of another.
    pub(crate) fn reach(&self, batch: Batch) -> (u64, u64) {
        let (low, high) =
            if self.is_interleaved() { (self.of_rank(0), self.of_rank(self.ranks - 1)) } else { (*self, *self) };
        let first = batch.first_call * self.chunks_per_call;
        let last = (batch.first_call + batch.calls) * self.chunks_per_call - 1;
        (low.chunk_offset(first), high.chunk_offset(last) + self.chunk_bytes)
    }

    /// Calls, from the first one on, that [reach](Self::reach) no further than `end`. A call has bytes, and the next one comes behind it.
    pub(crate) fn calls_within(&self, end: u64) -> u64 {
        let reach = |first_call| self.reach(Batch { first_call, calls: 1 }).1;
        let (first, second) = (reach(0), reach(1));
        end.checked_sub(first).map_or(0, |behind| 1 + behind / (second - first).max(1))
    }

    /// Why a driver that uses the offsets of the pattern, and whose calls are done when they return, cannot run it.
    pub(crate) fn needs_more_than_offsets(&self) -> Option<String> {
        if self.kind == AccessKind::SharedArrival {
            return Some("access in the order of arrival needs a shared file pointer; use mpiio".into());
        }
        match self.form.style {
            CallStyle::Blocking => None,
            CallStyle::Request => Some("its calls are done when they return; use mpiio or uring".into()),
            CallStyle::Split => Some("its calls are done when they return, there are no two halves; use mpiio".into()),
        }
    }

    /// True if the windows of all calls lie at multiples of `align_bytes` in a ring of this period, if their positions in
    /// the stream do.
    pub(crate) fn stays_aligned(&self, period_bytes: u64, align_bytes: u64) -> bool {
        let end = self.max_calls.checked_mul(self.call_bytes()).and_then(|bytes| bytes.checked_add(self.stream_bytes));
        period_bytes.is_multiple_of(align_bytes) || end.is_some_and(|end| end <= period_bytes)
    }

    /// True if every offset, length and memory position is a multiple of `align_bytes`.
    #[must_use]
    pub fn is_aligned(&self, align_bytes: u64) -> bool {
        [self.base_bytes, self.chunk_bytes, self.stride_bytes, self.stream_bytes].iter().all(|v| v % align_bytes == 0)
    }
}

/// Calls `first_call .. first_call + calls` of the prepared pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Number of the first call.
    pub first_call: u64,
    /// How many calls.
    pub calls: u64,
}
