//! Settings of the drivers, fixed for a run.

use std::sync::Arc;

use crate::Direction;

/// Whether transfers must bypass the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direct {
    /// O_DIRECT for every pattern; a pattern that cannot be issued directly is not run.
    Required,
    /// O_DIRECT where the alignment allows it, else buffered; the choice is reported per pattern.
    Auto,
    /// Always through the page cache.
    Off,
}

/// Collective patterns in drivers without collective calls (posix, uring).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Collective {
    /// Independent where ranks share no sector, and in a new file no block, or the transfers are buffered; else two-phase.
    #[default]
    Auto,
    /// Every rank at its own offsets. Patterns with shared sectors are then not direct.
    Independent,
    /// Ranks exchange their data; aggregators move whole aligned domains of the file.
    TwoPhase,
    /// Direct; every rank reads, modifies and writes the sectors it shares with others. Loses data (posix).
    #[cfg(feature = "test-hooks")]
    UnsafeReadModifyWrite,
}

/// How the ranks of a two-phase transfer exchange data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExchangeMethod {
    /// Shared memory where all ranks of the file are on one host and can map each other's buffer, else messages.
    #[default]
    Auto,
    /// Aggregators copy directly out of (into) the buffers of the other ranks; an error where that is not possible.
    SharedMemory,
    /// MPI messages.
    Messages,
}

/// Preallocation in a new file before direct writes extend it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preallocate {
    /// As [`Preallocate::Native`], but omitted (and reported) where the file system refuses, and for larger chunks that share
    /// blocks.
    Auto,
    /// fallocate(2), mode 0: blocks and length. A pattern is not run where the file system refuses.
    Native,
    /// As [`Preallocate::Native`], with zeros written for chunks smaller than a file-system block: a write into an unwritten block
    /// waits for all others of its file. Twice the bytes to the storage.
    Zeros,
    /// ftruncate(2): the length alone, blocks come with the writes.
    Size,
    /// None: each write extends the file.
    #[default]
    Off,
}

/// Calibrated queue depth for one direction and chunk size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CalibratedDepth {
    /// Write or read.
    pub direction: Direction,
    /// For chunks of at least this many bytes, up to the next row.
    pub chunk_bytes: u64,
    /// Maximum number of operations in flight.
    pub depth: u32,
    /// Completions to wait for in one system call while there is more to submit.
    pub wait_for: u32,
    /// A larger chunk is split into simultaneous operations of so many bytes; None: one operation per chunk.
    pub operation_bytes: Option<u64>,
}

/// Alignment that a trial with O_DIRECT on a file of the run found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrialAlign {
    /// File offsets and lengths must be multiples of this many bytes.
    pub offset_bytes: u64,
    /// Addresses in memory must be multiples of this many bytes.
    pub memory_bytes: u64,
    /// The transfers of the trial bypassed the page cache; false: they were accepted, and nothing more is known.
    pub is_proven: bool,
}

/// Result of a trial of direct I/O in the directory of the files. The same on all ranks, so that all choose the same route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectTrial {
    /// The user requested the alignment: it counts instead of that of statx(2), and unproven transfers are accepted as direct.
    pub overrides_statx: bool,
    /// The alignment, or why no transfer is direct.
    pub align: Result<TrialAlign, Arc<str>>,
}

/// Most aggregators of a two-phase transfer by default, if the ranks are on several hosts: each exchanges messages with all ranks.
const MAX_DEFAULT_AGGREGATORS: u64 = 64;

/// Number of aggregators by default: all ranks of one host, which copy through shared memory; else one on each host, at most 64.
#[must_use]
pub fn default_aggregators(ranks: u64, hosts: u64) -> u64 {
    if hosts > 1 {
        hosts.min(MAX_DEFAULT_AGGREGATORS)
    } else {
        ranks
    }
}

/// Settings of the drivers, fixed for a run.
#[derive(Clone, Debug)]
pub struct DriverOptions {
    /// Direct-I/O policy (posix, uring).
    pub direct: Direct,
    /// Trial of direct I/O; None: only statx(2) counts (posix, uring).
    pub direct_trial: Option<DirectTrial>,
    /// Maximum number of operations in flight (uring), unless `calibrated` applies.
    pub queue_depth: u32,
    /// Depths by direction and chunk size, in ascending order of chunk size; empty: `queue_depth` for all.
    pub calibrated: Vec<CalibratedDepth>,
    /// Buffered transfers drop their pages when done, RWF_DONTCACHE (posix, uring).
    pub dont_cache: bool,
    /// Collective patterns of the drivers without collective calls.
    pub collective: Collective,
    /// Ranks that move data in a two-phase transfer; None: [`default_aggregators`].
    pub aggregators: Option<u64>,
    /// Bytes one aggregator moves in one step of a two-phase transfer.
    pub domain_bytes: u64,
    /// Data exchange of two-phase transfers.
    pub exchange: ExchangeMethod,
    /// Preallocation before direct writes of new files (posix, uring).
    pub preallocate: Preallocate,
    /// Why two-phase writes of new files are buffered (posix, uring); None if direct where possible. Only with [`Direct::Auto`].
    /// The same on all ranks.
    pub buffered_first_writes: Option<String>,
    /// Open with MPI_MODE_UNIQUE_OPEN (mpiio). The paper forbids it: it may delay every sync to the close.
    pub unique_open: bool,
}

impl DriverOptions {
    /// Whether transfers bypass the page cache: None instead of true if a trial did not prove that those with O_DIRECT do.
    #[must_use]
    pub fn proven_direct(&self, direct: Option<bool>) -> Option<bool> {
        let is_unproven = matches!(&self.direct_trial, Some(DirectTrial { align: Ok(align), .. }) if !align.is_proven);
        direct.filter(|is_direct| !(*is_direct && is_unproven))
    }
}

/// Default of [`DriverOptions::domain_bytes`].
pub const DEFAULT_DOMAIN_BYTES: u64 = 4 << 20;

impl Default for DriverOptions {
    fn default() -> Self {
        Self {
            direct: Direct::Off,
            direct_trial: None,
            queue_depth: 32,
            calibrated: Vec::new(),
            dont_cache: false,
            collective: Collective::Auto,
            aggregators: None,
            domain_bytes: DEFAULT_DOMAIN_BYTES,
            exchange: ExchangeMethod::Auto,
            preallocate: Preallocate::Off,
            buffered_first_writes: None,
            unique_open: false,
        }
    }
}
