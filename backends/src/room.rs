//! Room before direct first writes. A direct write that makes its file longer holds the lock of the file and waits for a transaction
//! of its own, and io_uring hands it to a worker of the kernel. So blocks and length are made before a batch, for all of its calls at once.
//!
//! Room is made further than the batch goes ([`target`]), so that many batches share a call, which waits for all direct transfers of the
//! file; but never further than the pattern may. What lies behind the last batch goes back before the sync. Nothing depends on it: where
//! space is missing, the writes go on without room, and that is told.

mod calls;
mod trial;

use std::fs::File;
use std::io;
use std::ops::{Range, RangeInclusive};
use std::os::unix::fs::{FileExt, MetadataExt};

use memmap2::MmapMut;
use nix::errno::Errno;
use nix::fcntl::FallocateFlags;

use self::calls::{allocate, fallocate_with, is_full, is_refusal};
use self::trial::{agreed_refusal, is_dear};
use crate::direct::FdPair;
use crate::patience::uninterrupted;
use crate::route::Route;
use crate::{BackendError, Batch, Direction, OpenMode, OpenRequest, Pattern, Preallocate, Result};

/// Room is made so far behind a batch at most: some tenths of a second of a fast storage.
const MOST_AHEAD_BYTES: u64 = 1 << 30;
/// And so far at least in a segment: a call waits for the transfers of the other ranks too, and they for it.
const LEAST_AHEAD_OF_SEGMENT_BYTES: u64 = 128 << 20;
/// The most where making it takes a time for each byte: a thousand calls of the smallest chunk for one system call, and little to be
/// made for nothing.
const MOST_AHEAD_DEAR_BYTES: u64 = 4 << 20;
/// Zeros that are written at once.
const ZEROS_BYTES: usize = 1 << 20;
/// What is made ahead ends at a multiple of it. No sector is larger, so whoever writes the last sector of the data and then cuts the
/// file off never takes room of others for data.
const AHEAD_UNIT_BYTES: u64 = 4096;

/// How room is made in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Means {
    /// fallocate(2), mode 0.
    Blocks,
    /// ftruncate(2): a longer file with a hole.
    Length,
    /// Not at all: it was not wanted, or the file is no new one.
    Nothing,
    /// Not at all, for this reason.
    Refused { reason: String },
}

/// How the chunks of a pattern come to the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writes {
    direct: bool,
    /// Each chunk for itself, cut at multiples of so many bytes; None: put together with others.
    alone_bytes: Option<u64>,
}

impl Writes {
    /// Each rank writes its own chunks, this way.
    pub(crate) fn alone(route: &Route) -> Self {
        let cut_at = if let Route::DirectEdges { align_bytes } = route { *align_bytes } else { 1 };
        Self { direct: route.is_direct(), alone_bytes: Some(cut_at) }
    }

    /// Chunks of a batch are put together to domains.
    pub(crate) fn combined(direct: bool) -> Self {
        Self { direct, alone_bytes: None }
    }
}

/// Room in one file.
#[derive(Debug)]
pub(crate) struct Room {
    means: Means,
    /// Room was asked for by name: that there is none is told of every pattern.
    by_name: bool,
    /// What is written before chunks below a block, if it is; none otherwise.
    zeros: Option<MmapMut>,
    /// What is told of the prepared pattern.
    told: String,
    /// Blocks take a time for each byte here, as where a file system writes zeros into them.
    is_dear: bool,
    /// The prepared pattern, if room is made for it.
    made: Option<Made>,
}

/// Room for one pattern.
#[derive(Debug)]
struct Made {
    pattern: Pattern,
    /// Where the first call of the pattern begins, and where the last one that may be asked for ends.
    begin: u64,
    limit: u64,
    /// Length of the file before the pattern: it never gets shorter than that.
    length: u64,
    /// Up to here the batches so far go.
    needed: u64,
    /// Up to here there is room.
    end: u64,
    /// Room is made so far behind a batch, at least and at most.
    ahead_bytes: RangeInclusive<u64>,
    /// True if there may be room behind `needed` that this rank has made.
    ahead: bool,
    /// Length of a block, if blocks are to hold zeros before the chunks come.
    zero_block: Option<u64>,
    /// Why there is no more.
    ended: Option<String>,
}

impl Room {
    /// What can be done in the file of a request, tried on it while it is empty. Collective over its communicator where
    /// the options ask for room. `files`: None if this rank could not open it.
    ///
    /// # Errors
    /// A storage that fails, or MPI between the ranks.
    pub(crate) fn find(request: &OpenRequest<'_>, wanted: Preallocate, files: Option<&FdPair>) -> Result<Self> {
        let means = match (request.mode, wanted) {
            (OpenMode::Update | OpenMode::ReadOnly, _) | (_, Preallocate::Off) => Means::Nothing,
            (OpenMode::CreateNew, Preallocate::Size) => Means::Length,
            (OpenMode::CreateNew, Preallocate::Native | Preallocate::Zeros | Preallocate::Auto) => {
                match agreed_refusal(request, files)? {
                    None => Means::Blocks,
                    Some(reason) => Means::Refused { reason },
                }
            }
        };
        let is_dear = means == Means::Blocks && files.is_some_and(|files| is_dear(&files.buffered));
        let by_name = wanted != Preallocate::Auto;
        let zeros = (wanted == Preallocate::Zeros && means == Means::Blocks).then(|| MmapMut::map_anon(ZEROS_BYTES));
        let zeros = zeros.transpose().map_err(|e| BackendError::from_io("mmap (zeros)", request.path, None, &e))?;
        Ok(Self { means, by_name, zeros, told: String::new(), is_dear, made: None })
    }

    /// Of a file in which none is made.
    #[cfg(test)]
    pub(crate) fn none() -> Self {
        Self { means: Means::Nothing, by_name: false, zeros: None, told: String::new(), is_dear: false, made: None }
    }

    /// Why a pattern that goes directly is not run.
    pub(crate) fn unsupported(&self) -> Option<String> {
        match &self.means {
            Means::Refused { reason } if self.by_name => {
                Some(format!("no room can be made before its writes: {reason}; use --preallocate auto, size or off"))
            }
            _ => None,
        }
    }

    /// Begins a pattern.
    pub(crate) fn prepare(
        &mut self,
        files: &FdPair,
        pattern: &Pattern,
        direction: Direction,
        writes: Writes,
    ) -> Result<()> {
        (self.told, self.made) = (String::new(), None);
        let is_one = pattern.call_bytes() > 0 && pattern.max_calls > 0;
        if direction == Direction::Read || self.means == Means::Nothing || !is_one {
            return Ok(());
        }
        if !writes.direct {
            // Pages find their blocks at write-back, many at once: nothing waits for room.
            self.told = if self.by_name { ", no room made: not direct".into() } else { String::new() };
            return Ok(());
        }
        self.told = match &self.means {
            Means::Nothing => return Ok(()),
            Means::Refused { reason } => {
                self.told = format!(", no room made: {reason}");
                return Ok(());
            }
            Means::Blocks => ", room made by fallocate".into(),
            Means::Length => ", room made by ftruncate".into(),
        };
        let told = files.buffered.metadata().map_err(|e| BackendError::from_io("fstat", &files.path, None, &e))?;
        let length = told.len();
        let in_parts = writes.alone_bytes.is_some_and(|bytes| bytes < told.blksize());
        if !self.by_name && in_parts && cuts_blocks(pattern, told.blksize()) {
            self.told = format!(", no room made: chunks begin or end inside of blocks of {}", told.blksize());
            return Ok(());
        }
        // Between chunks of other ranks nobody may write.
        let below = self.zeros.is_some() && pattern.chunk_bytes < told.blksize() && !pattern.is_interleaved();
        let zero_block = below.then_some(told.blksize());
        if let Some(bytes) = zero_block {
            self.told += &format!(", zeros written into its blocks of {bytes}");
        }
        let (begin, limit) = pattern.reach(Batch { first_call: 0, calls: pattern.max_calls });
        let ahead_bytes = match (self.is_dear || zero_block.is_some(), is_segment(pattern)) {
            (true, _) => 0..=MOST_AHEAD_DEAR_BYTES,
            (false, true) => LEAST_AHEAD_OF_SEGMENT_BYTES..=MOST_AHEAD_BYTES,
            (false, false) => 0..=MOST_AHEAD_BYTES,
        };
        self.made = Some(Made {
            pattern: *pattern,
            begin,
            limit,
            length,
            needed: begin,
            end: begin,
            ahead_bytes,
            ahead: false,
            zero_block,
            ended: None,
        });
        Ok(())
    }

    /// For the report of the prepared pattern.
    pub(crate) fn told(&self) -> &str {
        &self.told
    }

    /// The answer of [`crate::OpenFile::calls_with_room`].
    pub(crate) fn calls(&self) -> u64 {
        let made = self.made.as_ref().filter(|made| made.ended.is_none());
        made.map_or(u64::MAX, |made| made.pattern.calls_within(made.end))
    }

    /// A batch was written for which room had been made before.
    pub(crate) fn used(&mut self, batch: Batch) {
        if let Some(made) = self.made.as_mut().filter(|_| batch.calls > 0) {
            made.needs(batch);
        }
    }

    /// [`crate::Protocol::lockstep`]: ftruncate takes away what a rank that is a batch further has written behind the new
    /// end between the look at the length and the call.
    pub(crate) fn keeps_step(&self) -> bool {
        self.means == Means::Length && self.made.as_ref().is_some_and(|made| made.pattern.is_interleaved())
    }

    /// Why there is no more room for the prepared pattern.
    pub(crate) fn ended(&self) -> Option<String> {
        self.made.as_ref().and_then(|made| made.ended.clone())
    }

    /// Makes room for `batch`. Without space for it nothing is made any more, and the writes go on without.
    pub(crate) fn make(&mut self, files: &FdPair, batch: Batch) -> Result<()> {
        let Some(made) = self.made.as_mut().filter(|_| batch.calls > 0) else { return Ok(()) };
        made.needs(batch);
        if made.needed <= made.end || made.ended.is_some() {
            return Ok(());
        }
        let from = made.end;
        let done = match self.means {
            Means::Blocks => {
                let blocks = made.blocks(&files.buffered).map_err(|e| ("fallocate", e));
                let zeros = |()| made.zeros(from, files.direct_file(), self.zeros.as_deref());
                blocks.and_then(|done| zeros(done).map_err(|e| ("pwrite of zeros", e)))
            }
            Means::Length => made.length(&files.buffered).map_err(|e| ("ftruncate", e)),
            Means::Nothing | Means::Refused { .. } => Ok(()),
        };
        let Err((operation, error)) = done else { return Ok(()) };
        // Not tried again, whatever it is.
        made.ended = Some(format!("no room made from offset {from} on: {error}"));
        if is_refusal(&error) || is_full(&error) {
            return Ok(());
        }
        Err(BackendError::from_io(operation, &files.path, Some(from), &error))
    }

    /// Gives back what is behind the last batch.
    pub(crate) fn give_back(&mut self, files: &FdPair) -> Result<()> {
        self.cut(files, |made| made.ahead)
    }

    /// The same once the last sectors are in the file: where ranks share it, the one that has written the last sector may have found the
    /// file longer before another rank cut it off, and then made it longer again.
    pub(crate) fn settle(&mut self, files: &FdPair) -> Result<()> {
        self.cut(files, |made| made.pattern.is_interleaved())
    }

    fn cut(&mut self, files: &FdPair, wanted: impl Fn(&Made) -> bool) -> Result<()> {
        let Some(made) = self.made.as_mut().filter(|made| wanted(made)) else { return Ok(()) };
        made.cut(&files.buffered)
            .map_err(|e| BackendError::from_io("ftruncate of unused room", &files.path, Some(made.needed), &e))
    }
}

impl Made {
    /// Whose part ends the file.
    fn is_last(&self) -> bool {
        self.pattern.rank + 1 >= self.pattern.ranks
    }

    fn needs(&mut self, batch: Batch) {
        self.needed = self.needed.max(self.pattern.reach(batch).1);
    }

    fn target(&self) -> u64 {
        target(self.begin..self.end, self.needed, self.limit, &self.ahead_bytes)
    }

    fn blocks(&mut self, file: &File) -> io::Result<()> {
        let target = self.target();
        // Another rank has been here: the stretch is that of all ranks, they come with the same batches, and whoever makes a file
        // longer has room up to where it ended.
        if self.pattern.is_interleaved() && length(file)? >= target {
            self.end = target;
            return Ok(());
        }
        // A refusal may leave a part.
        self.ahead = true;
        match allocate(file, self.end, target) {
            Err(error) if target > self.needed && is_full(&error) => {
                allocate(file, self.end, self.needed)?;
                self.end = self.needed;
            }
            other => {
                other?;
                self.end = target;
            }
        }
        Ok(())
    }

    /// Writes zeros into the new blocks from `from` on, those that hold no data yet.
    fn zeros(&self, from: u64, file: Option<&File>, zeros: Option<&[u8]>) -> io::Result<()> {
        let (Some(block), Some(file), Some(zeros)) = (self.zero_block, file, zeros) else { return Ok(()) };
        let (mut at, end) = (from.next_multiple_of(block), self.end / block * block);
        while at < end {
            let len = (end - at).min(zeros.len() as u64);
            match uninterrupted(|| file.write_at(&zeros[..len as usize], at))? as u64 {
                // The space has ended; the writes of the data will say so too.
                moved if moved % block != 0 || moved == 0 => return Err(io::Error::from(Errno::ENOSPC)),
                moved => at += moved,
            }
        }
        Ok(())
    }

    /// The rank whose part comes last does it alone: of two ranks the one with the shorter file would take away what the other has
    /// written.
    fn length(&mut self, file: &File) -> io::Result<()> {
        // A hole needs nothing ahead, and could not be given back before the segments of others.
        let target = if is_segment(&self.pattern) { self.needed } else { self.target() };
        if self.is_last() {
            if length(file)? < target {
                uninterrupted(|| file.set_len(target))?;
            }
            self.ahead = !is_segment(&self.pattern);
        }
        self.end = target;
        Ok(())
    }

    /// Between its own data and the segment of the next rank the file cannot become shorter: the blocks go back alone. Where the file system
    /// cannot do that they stay, for the patterns that this rank writes there.
    fn punch(&self, file: &File) -> io::Result<()> {
        let (from, end) = (self.needed.next_multiple_of(AHEAD_UNIT_BYTES), self.end);
        if from >= end {
            return Ok(());
        }
        let flags = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
        match fallocate_with(flags, file, from, end) {
            Err(error) if is_refusal(&error) => Ok(()),
            other => other,
        }
    }

    /// Ranks that are not as far yet write before `needed` too, which is the same for all.
    fn cut(&mut self, file: &File) -> io::Result<()> {
        if is_segment(&self.pattern) && !self.is_last() {
            self.punch(file)?;
            (self.end, self.ahead) = (self.needed, false);
            return Ok(());
        }
        let end = self.needed.max(self.length);
        if length(file)? > end {
            uninterrupted(|| file.set_len(end))?;
        }
        (self.end, self.ahead) = (self.needed, false);
        Ok(())
    }
}

/// A rank's own stretch in a file of several: others have theirs behind it.
fn is_segment(pattern: &Pattern) -> bool {
    pattern.ranks > 1 && !pattern.is_interleaved()
}

/// Up to where room is made for a batch that ends at `needed`, where there is room in `has`, from the begin of the pattern on: as far
/// behind it as the pattern has come, within `ahead_bytes`, so that batches share one system call. One that is as large as the most of them
/// needs none ahead.
fn target(has: Range<u64>, needed: u64, limit: u64, ahead_bytes: &RangeInclusive<u64>) -> u64 {
    if needed - has.end >= *ahead_bytes.end() {
        return needed;
    }
    let ahead = needed + (needed - has.start).clamp(*ahead_bytes.start(), *ahead_bytes.end());
    let whole = ahead.min(limit) / AHEAD_UNIT_BYTES * AHEAD_UNIT_BYTES;
    whole.max(needed)
}

/// Chunks larger than a block that share blocks with their neighbours, each written at its own place by the only rank there. A file system
/// writes such a chunk alone, with room as without: room gains nothing, and reserved blocks cost more than new ones, because the rest of
/// a block is filled and each block is marked as written (counts: docs/lab/README.md). Where ranks share a stretch, room keeps them
/// from making the file longer in turns.
fn cuts_blocks(pattern: &Pattern, block: u64) -> bool {
    let is_whole = |bytes: u64| block == 0 || bytes.is_multiple_of(block);
    pattern.chunk_bytes > block
        && !pattern.is_interleaved()
        && !(is_whole(pattern.chunk_bytes) && is_whole(pattern.base_bytes))
}

fn length(file: &File) -> io::Result<u64> {
    Ok(file.metadata()?.len())
}

#[cfg(test)]
#[path = "room_tests.rs"]
mod tests;
