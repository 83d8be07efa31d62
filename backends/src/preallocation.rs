//! Preallocation for direct first writes. A direct write that extends its file holds the lock of the file and waits for a
//! transaction of its own, and io_uring passes it to a kernel worker. Therefore blocks and length are allocated before a batch, for
//! all of its calls.
//!
//! Preallocation runs ahead of the batch ([`target_end`]), because each call waits for all direct transfers of the file, but never
//! beyond the limit of the pattern. The excess is trimmed before the sync. Preallocation is optional: without space the writes
//! continue without it, which is reported.

mod fallocate;
mod support;

use std::fs::File;
use std::io;
use std::ops::{Range, RangeInclusive};
use std::os::unix::fs::{FileExt, MetadataExt};

use memmap2::MmapMut;
use nix::errno::Errno;
use nix::fcntl::FallocateFlags;

use self::fallocate::{allocate, fallocate_with, is_out_of_space, is_unsupported};
use self::support::{agreed_refusal_reason, is_allocation_costly};
use crate::direct::FdPair;
use crate::retry::retry_interrupted;
use crate::route::FileRoute;
use crate::{AccessPattern, BackendError, Batch, Direction, OpenMode, OpenRequest, Preallocate, Result};

/// Maximum preallocated beyond a batch: some tenths of a second of a fast storage.
const MAX_AHEAD_BYTES: u64 = 1 << 30;
/// Minimum in a segment: a call waits for the transfers of the other ranks too, and they for it.
const MIN_SEGMENT_AHEAD_BYTES: u64 = 128 << 20;
/// Maximum where allocation takes time per byte: a thousand calls of the smallest chunk per system call, and little in vain.
const MAX_COSTLY_AHEAD_BYTES: u64 = 4 << 20;
/// Zeros written by one call.
const ZERO_BUFFER_BYTES: usize = 1 << 20;
/// The excess ends at a multiple of it. No sector is larger, so the rank that writes the last sector and truncates the file never
/// mistakes space preallocated by others for data.
const AHEAD_ALIGN_BYTES: u64 = 4096;

#[derive(Clone, Debug, PartialEq, Eq)]
enum PreallocationMethod {
    /// fallocate(2), mode 0.
    Fallocate,
    /// ftruncate(2): the length alone, with a hole.
    Truncate,
    /// No preallocation: not requested, or the file is not new.
    Disabled,
    /// No preallocation, for this reason.
    Refused { reason: String },
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct WritePath {
    is_direct: bool,
    /// Each chunk individually, cut at multiples of so many bytes; None if combined.
    individual_align_bytes: Option<u64>,
}

impl WritePath {
    /// Each rank writes its own chunks.
    pub(crate) fn individual(route: &FileRoute) -> Self {
        let cut_at = if let FileRoute::DirectEdges { align_bytes } = route { *align_bytes } else { 1 };
        Self { is_direct: route.is_direct(), individual_align_bytes: Some(cut_at) }
    }

    /// Batches are combined into domains.
    pub(crate) fn aggregated(is_direct: bool) -> Self {
        Self { is_direct, individual_align_bytes: None }
    }
}

#[derive(Debug)]
pub(crate) struct Preallocation {
    method: PreallocationMethod,
    /// Requested explicitly: absence is reported for every pattern.
    is_explicit: bool,
    /// Zeros written before chunks smaller than a block, if requested.
    zeros: Option<MmapMut>,
    /// For the report of the prepared pattern.
    description: String,
    /// Allocation takes time per byte, as where a file system writes zeros into the blocks.
    is_costly: bool,
    /// Of the prepared pattern, if preallocated.
    range: Option<PreallocatedRange>,
}

#[derive(Debug)]
struct PreallocatedRange {
    pattern: AccessPattern,
    /// Begin of the pattern's first call, end of the last possible one.
    begin: u64,
    limit: u64,
    /// Length of the file before the pattern, below which it is never truncated.
    initial_bytes: u64,
    /// End of the batches so far.
    required_end: u64,
    /// End of the preallocated range.
    allocated_end: u64,
    /// Minimum and maximum preallocated beyond a batch.
    ahead_bytes: RangeInclusive<u64>,
    /// True if this rank may have preallocated space beyond `needed`.
    has_excess: bool,
    /// Block size, if zeros are written into blocks before the chunks.
    zero_block_bytes: Option<u64>,
    /// Why preallocation stopped.
    stop_reason: Option<String>,
}

impl Preallocation {
    /// Tests the method on the file of a request while it is empty. Collective over its communicator if preallocation is requested.
    /// `files`: None if this rank could not open it.
    ///
    /// # Errors
    /// Errors of the storage or of MPI.
    pub(crate) fn detect(request: &OpenRequest<'_>, wanted: Preallocate, files: Option<&FdPair>) -> Result<Self> {
        let means = match (request.mode, wanted) {
            (OpenMode::Update | OpenMode::ReadOnly, _) | (_, Preallocate::Off) => PreallocationMethod::Disabled,
            (OpenMode::CreateNew, Preallocate::Size) => PreallocationMethod::Truncate,
            (OpenMode::CreateNew, Preallocate::Native | Preallocate::Zeros | Preallocate::Auto) => {
                match agreed_refusal_reason(request, files)? {
                    None => PreallocationMethod::Fallocate,
                    Some(reason) => PreallocationMethod::Refused { reason },
                }
            }
        };
        let is_dear =
            means == PreallocationMethod::Fallocate && files.is_some_and(|files| is_allocation_costly(&files.buffered));
        let by_name = wanted != Preallocate::Auto;
        let zeros = (wanted == Preallocate::Zeros && means == PreallocationMethod::Fallocate)
            .then(|| MmapMut::map_anon(ZERO_BUFFER_BYTES));
        let zeros = zeros.transpose().map_err(|e| BackendError::from_io("mmap (zeros)", request.path, None, &e))?;
        Ok(Self {
            method: means,
            is_explicit: by_name,
            zeros,
            description: String::new(),
            is_costly: is_dear,
            range: None,
        })
    }

    #[cfg(test)]
    pub(crate) fn disabled() -> Self {
        Self {
            method: PreallocationMethod::Disabled,
            is_explicit: false,
            zeros: None,
            description: String::new(),
            is_costly: false,
            range: None,
        }
    }

    /// Why a pattern with direct transfers is not run.
    pub(crate) fn unsupported(&self) -> Option<String> {
        match &self.method {
            PreallocationMethod::Refused { reason } if self.is_explicit => {
                Some(format!("its writes cannot be preallocated: {reason}; use --preallocate auto, size or off"))
            }
            _ => None,
        }
    }

    pub(crate) fn prepare(
        &mut self,
        files: &FdPair,
        pattern: &AccessPattern,
        direction: Direction,
        writes: WritePath,
    ) -> Result<()> {
        (self.description, self.range) = (String::new(), None);
        let is_one = pattern.call_bytes() > 0 && pattern.max_calls > 0;
        if direction == Direction::Read || self.method == PreallocationMethod::Disabled || !is_one {
            return Ok(());
        }
        if !writes.is_direct {
            // Blocks of cached pages are allocated at write-back, many at once: nothing waits for them.
            self.description = if self.is_explicit { ", not preallocated: not direct".into() } else { String::new() };
            return Ok(());
        }
        self.description = match &self.method {
            PreallocationMethod::Disabled => return Ok(()),
            PreallocationMethod::Refused { reason } => {
                self.description = format!(", not preallocated: {reason}");
                return Ok(());
            }
            PreallocationMethod::Fallocate => ", preallocated by fallocate".into(),
            PreallocationMethod::Truncate => ", preallocated by ftruncate".into(),
        };
        let stat = files.buffered.metadata().map_err(|e| BackendError::from_io("fstat", &files.path, None, &e))?;
        let length = stat.len();
        let in_parts = writes.individual_align_bytes.is_some_and(|bytes| bytes < stat.blksize());
        if !self.is_explicit && in_parts && shares_blocks(pattern, stat.blksize()) {
            self.description = format!(", not preallocated: chunks begin or end inside blocks of {}", stat.blksize());
            return Ok(());
        }
        // Zeros must not be written between chunks of other ranks.
        let below = self.zeros.is_some() && pattern.chunk_bytes < stat.blksize() && !pattern.is_interleaved();
        let zero_block = below.then_some(stat.blksize());
        if let Some(bytes) = zero_block {
            self.description += &format!(", zeros written into its blocks of {bytes}");
        }
        let (begin, limit) = pattern.byte_range(Batch { first_call: 0, calls: pattern.max_calls });
        let ahead_bytes = match (self.is_costly || zero_block.is_some(), is_segment(pattern)) {
            (true, _) => 0..=MAX_COSTLY_AHEAD_BYTES,
            (false, true) => MIN_SEGMENT_AHEAD_BYTES..=MAX_AHEAD_BYTES,
            (false, false) => 0..=MAX_AHEAD_BYTES,
        };
        self.range = Some(PreallocatedRange {
            pattern: *pattern,
            begin,
            limit,
            initial_bytes: length,
            required_end: begin,
            allocated_end: begin,
            ahead_bytes,
            has_excess: false,
            zero_block_bytes: zero_block,
            stop_reason: None,
        });
        Ok(())
    }

    pub(crate) fn description(&self) -> &str {
        &self.description
    }

    /// Number of calls within the preallocated range, returned by [`crate::OpenFile::preallocate`].
    pub(crate) fn covered_calls(&self) -> u64 {
        let preallocated = self.range.as_ref().filter(|preallocated| preallocated.stop_reason.is_none());
        preallocated.map_or(u64::MAX, |preallocated| preallocated.pattern.calls_within(preallocated.allocated_end))
    }

    /// Records a batch written without a preallocation of its own.
    pub(crate) fn record_written(&mut self, batch: Batch) {
        if let Some(preallocated) = self.range.as_mut().filter(|_| batch.calls > 0) {
            preallocated.require(batch);
        }
    }

    /// [`crate::Protocol::lockstep`]: ftruncate would remove what a rank one batch ahead writes beyond the new end between the
    /// fstat and the call.
    pub(crate) fn needs_lockstep(&self) -> bool {
        self.method == PreallocationMethod::Truncate
            && self.range.as_ref().is_some_and(|preallocated| preallocated.pattern.is_interleaved())
    }

    pub(crate) fn stop_reason(&self) -> Option<String> {
        self.range.as_ref().and_then(|preallocated| preallocated.stop_reason.clone())
    }

    /// Preallocates for `batch`. Without space it stops, and the writes continue.
    pub(crate) fn extend(&mut self, files: &FdPair, batch: Batch) -> Result<()> {
        let Some(preallocated) = self.range.as_mut().filter(|_| batch.calls > 0) else { return Ok(()) };
        preallocated.require(batch);
        if preallocated.required_end <= preallocated.allocated_end || preallocated.stop_reason.is_some() {
            return Ok(());
        }
        let from = preallocated.allocated_end;
        let done = match self.method {
            PreallocationMethod::Fallocate => {
                let blocks = preallocated.allocate_blocks(&files.buffered).map_err(|e| ("fallocate", e));
                let zeros = |()| preallocated.write_zeros(from, files.direct_file(), self.zeros.as_deref());
                blocks.and_then(|done| zeros(done).map_err(|e| ("pwrite of zeros", e)))
            }
            PreallocationMethod::Truncate => preallocated.extend_length(&files.buffered).map_err(|e| ("ftruncate", e)),
            PreallocationMethod::Disabled | PreallocationMethod::Refused { .. } => Ok(()),
        };
        let Err((operation, error)) = done else { return Ok(()) };
        preallocated.stop_reason = Some(format!("not preallocated from offset {from} on: {error}"));
        if is_unsupported(&error) || is_out_of_space(&error) {
            return Ok(());
        }
        Err(BackendError::from_io(operation, &files.path, Some(from), &error))
    }

    pub(crate) fn trim(&mut self, files: &FdPair) -> Result<()> {
        self.trim_if(files, |preallocated| preallocated.has_excess)
    }

    /// As [`Preallocation::trim`], after the last sectors: the rank that wrote the shared last sector may have seen the longer file
    /// before another rank truncated it, and extended it again.
    pub(crate) fn trim_shared(&mut self, files: &FdPair) -> Result<()> {
        self.trim_if(files, |preallocated| preallocated.pattern.is_interleaved())
    }

    fn trim_if(&mut self, files: &FdPair, wanted: impl Fn(&PreallocatedRange) -> bool) -> Result<()> {
        let Some(preallocated) = self.range.as_mut().filter(|preallocated| wanted(preallocated)) else { return Ok(()) };
        preallocated.trim(&files.buffered).map_err(|e| {
            BackendError::from_io("ftruncate of unused space", &files.path, Some(preallocated.required_end), &e)
        })
    }
}

impl PreallocatedRange {
    fn is_last_rank(&self) -> bool {
        self.pattern.rank + 1 >= self.pattern.ranks
    }

    fn require(&mut self, batch: Batch) {
        self.required_end = self.required_end.max(self.pattern.byte_range(batch).1);
    }

    fn target_end(&self) -> u64 {
        target_end(self.begin..self.allocated_end, self.required_end, self.limit, &self.ahead_bytes)
    }

    fn allocate_blocks(&mut self, file: &File) -> io::Result<()> {
        let target = self.target_end();
        // Another rank has done it: all ranks preallocate the same range, and the file length shows its end.
        if self.pattern.is_interleaved() && file_bytes(file)? >= target {
            self.allocated_end = target;
            return Ok(());
        }
        // A failed call may leave a part allocated.
        self.has_excess = true;
        match allocate(file, self.allocated_end, target) {
            Err(error) if target > self.required_end && is_out_of_space(&error) => {
                allocate(file, self.allocated_end, self.required_end)?;
                self.allocated_end = self.required_end;
            }
            other => {
                other?;
                self.allocated_end = target;
            }
        }
        Ok(())
    }

    /// Writes zeros into the new blocks without data from `from` on.
    fn write_zeros(&self, from: u64, file: Option<&File>, zeros: Option<&[u8]>) -> io::Result<()> {
        let (Some(block), Some(file), Some(zeros)) = (self.zero_block_bytes, file, zeros) else { return Ok(()) };
        let (mut at, end) = (from.next_multiple_of(block), self.allocated_end / block * block);
        while at < end {
            let len = (end - at).min(zeros.len() as u64);
            match retry_interrupted(|| file.write_at(&zeros[..len as usize], at))? as u64 {
                // The writes of the data will report the lack of space too.
                moved if moved % block != 0 || moved == 0 => return Err(io::Error::from(Errno::ENOSPC)),
                moved => at += moved,
            }
        }
        Ok(())
    }

    /// On the last rank only: of two ranks, the one with the shorter file would truncate data of the other.
    fn extend_length(&mut self, file: &File) -> io::Result<()> {
        // A hole needs no excess, which could not be trimmed below the segments of others.
        let target = if is_segment(&self.pattern) { self.required_end } else { self.target_end() };
        if self.is_last_rank() {
            if file_bytes(file)? < target {
                retry_interrupted(|| file.set_len(target))?;
            }
            self.has_excess = !is_segment(&self.pattern);
        }
        self.allocated_end = target;
        Ok(())
    }

    /// The file cannot be truncated between its own data and the segment of the next rank: a hole is punched. Without support for
    /// that the blocks stay, for the patterns that this rank writes there.
    fn punch_hole(&self, file: &File) -> io::Result<()> {
        let (from, end) = (self.required_end.next_multiple_of(AHEAD_ALIGN_BYTES), self.allocated_end);
        if from >= end {
            return Ok(());
        }
        let flags = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
        match fallocate_with(flags, file, from, end) {
            Err(error) if is_unsupported(&error) => Ok(()),
            other => other,
        }
    }

    /// Ranks that are behind write below `needed` too, which is the same for all.
    fn trim(&mut self, file: &File) -> io::Result<()> {
        if is_segment(&self.pattern) && !self.is_last_rank() {
            self.punch_hole(file)?;
            (self.allocated_end, self.has_excess) = (self.required_end, false);
            return Ok(());
        }
        let end = self.required_end.max(self.initial_bytes);
        if file_bytes(file)? > end {
            retry_interrupted(|| file.set_len(end))?;
        }
        (self.allocated_end, self.has_excess) = (self.required_end, false);
        Ok(())
    }
}

/// True if each of several ranks has a contiguous range.
fn is_segment(pattern: &AccessPattern) -> bool {
    pattern.ranks > 1 && !pattern.is_interleaved()
}

/// End of the preallocation for a batch that ends at `needed`, if `has` is preallocated. The excess is as long as the pattern so
/// far, within `ahead_bytes`, so that batches share a system call; a batch as large as the maximum needs none.
fn target_end(has: Range<u64>, needed: u64, limit: u64, ahead_bytes: &RangeInclusive<u64>) -> u64 {
    if needed - has.end >= *ahead_bytes.end() {
        return needed;
    }
    let ahead = needed + (needed - has.start).clamp(*ahead_bytes.start(), *ahead_bytes.end());
    let whole = ahead.min(limit) / AHEAD_ALIGN_BYTES * AHEAD_ALIGN_BYTES;
    whole.max(needed)
}

/// True for chunks larger than a block that share blocks with their neighbours and are not interleaved with other ranks. A file
/// system writes such a chunk alone, preallocated or not; unwritten blocks cost more than new ones, because the rest of a block is
/// filled and each block is marked as written (counts: docs/lab/README.md). Interleaved ranks are preallocated, or they would
/// extend the file in turns.
fn shares_blocks(pattern: &AccessPattern, block: u64) -> bool {
    let is_whole = |bytes: u64| block == 0 || bytes.is_multiple_of(block);
    pattern.chunk_bytes > block
        && !pattern.is_interleaved()
        && !(is_whole(pattern.chunk_bytes) && is_whole(pattern.base_bytes))
}

fn file_bytes(file: &File) -> io::Result<u64> {
    Ok(file.metadata()?.len())
}

#[cfg(test)]
#[path = "preallocation_tests.rs"]
mod tests;
