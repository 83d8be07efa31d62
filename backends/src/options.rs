//! Settings of the drivers, fixed for a run. Which driver looks at which stands at each, and in its row of the registry.

use crate::Direction;

/// Whether transfers must bypass the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direct {
    /// O_DIRECT for every pattern; a pattern that cannot be issued directly is not run.
    Required,
    /// O_DIRECT where the alignment allows it, buffered elsewhere; what was used is reported per pattern.
    Auto,
    /// Always through the page cache.
    Off,
}

/// How collective patterns are done by the drivers without collective calls of their own (posix, uring).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Collective {
    /// Independent where ranks share no sector, and in a new file no block, or the transfers are buffered; else two-phase.
    #[default]
    Auto,
    /// Every rank at its own offsets. What would need sectors that ranks share is then not direct.
    Independent,
    /// Ranks exchange their data; aggregators move whole aligned domains of the file.
    TwoPhase,
    /// Direct, every rank reads, modifies and writes the sectors it shares with others. Loses data (posix).
    #[cfg(feature = "test-hooks")]
    UnsafeReadModifyWrite,
}

/// How the ranks of a two-phase transfer exchange data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Exchange {
    /// Shared memory where all ranks of the file are on one host and can map each other's ring, else messages.
    #[default]
    Auto,
    /// Aggregators copy straight out of (into) their neighbours' rings; an error where that is not possible.
    SharedMemory,
    /// MPI messages.
    Messages,
}

/// How room is made in a new file before direct writes make it longer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preallocate {
    /// As [`Preallocate::Native`]; where the file system refuses, and for larger chunks that cut blocks, no room is made, which is told.
    Auto,
    /// fallocate(2), mode 0: blocks and length. A pattern is not run where the file system refuses.
    Native,
    /// As [`Preallocate::Native`], and for chunks below a block of the file system zeros are written there: such a write into a
    /// block that was never written waits for all others of its file. Twice the bytes to the storage.
    Zeros,
    /// ftruncate(2): the length alone, blocks come with the writes.
    Size,
    /// None: each write makes the file longer.
    #[default]
    Off,
}

/// Depth of the queue found best for one direction and chunk size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calibrated {
    /// Write or read.
    pub direction: Direction,
    /// For chunks of this many bytes and more, up to the next row.
    pub chunk_bytes: u64,
    /// Operations in flight at most.
    pub depth: u32,
    /// Completions to wait for in one system call while there is more to begin.
    pub wait_for: u32,
    /// A larger chunk is moved by operations of so many bytes, several in flight; None: each chunk by one.
    pub operation_bytes: Option<u64>,
}

/// Settings of the drivers, fixed for a run.
#[derive(Clone, Debug)]
pub struct DriverOptions {
    /// Direct I/O policy of the drivers that can choose (posix, uring).
    pub direct: Direct,
    /// Operations in flight at most (uring), where `calibrated` does not say otherwise.
    pub queue_depth: u32,
    /// Depths by direction and chunk size, in ascending order of chunk size; empty: `queue_depth` for all.
    pub calibrated: Vec<Calibrated>,
    /// Buffered transfers drop their pages when done, RWF_DONTCACHE (posix, uring).
    pub dont_cache: bool,
    /// Collective patterns of the drivers without collective calls.
    pub collective: Collective,
    /// Ranks that move data in a two-phase transfer; None: all ranks of the file.
    pub aggregators: Option<u64>,
    /// Bytes one aggregator moves in one step of a two-phase transfer.
    pub domain_bytes: u64,
    /// Exchange of two-phase transfers.
    pub exchange: Exchange,
    /// Room before direct writes of new files (posix, uring).
    pub preallocate: Preallocate,
    /// Why two-phase writes of new files go through the page cache although they could be direct (posix, uring); None: they are
    /// direct where they can be. Only [`Direct::Auto`] leaves this choice. The same on all ranks.
    pub buffered_first_writes: Option<String>,
    /// Open with MPI_MODE_UNIQUE_OPEN (mpiio). The paper forbids it: it may delay every sync to the close.
    pub unique_open: bool,
}

/// Bytes one aggregator moves in one step when nothing else is said.
pub const DEFAULT_DOMAIN_BYTES: u64 = 4 << 20;

impl Default for DriverOptions {
    fn default() -> Self {
        Self {
            direct: Direct::Off,
            queue_depth: 32,
            calibrated: Vec::new(),
            dont_cache: false,
            collective: Collective::Auto,
            aggregators: None,
            domain_bytes: DEFAULT_DOMAIN_BYTES,
            exchange: Exchange::Auto,
            preallocate: Preallocate::Off,
            buffered_first_writes: None,
            unique_open: false,
        }
    }
}
