//! Extents by pread(2) and pwrite(2); extents that are adjacent in the file only, by preadv(2) and pwritev(2).

use std::io;
use std::os::fd::AsRawFd;

use beff_trace::Direction;

use super::extents::IoExtent;
use super::step_error::{StepError, StepResult};
use super::transfer_engine::{FileDescriptors, PlannedAccess, TransferDescriptor, TransferEngine, TransferredBytes};
use crate::program::ProgramMemory;
use crate::retry::retry_interrupted;
use crate::{dontcache, DriverOptions};

/// Maximum number of extents in one system call (IOV_MAX of Linux).
const MAX_VECTORS: usize = 1024;

/// Completes every access when it is started.
pub(super) struct Posix {
    /// Outcome of the access in each slot.
    slots: Vec<StepResult<u64>>,
    vectors: Vec<libc::iovec>,
    counted: TransferredBytes,
    dont_cache: bool,
}

impl Posix {
    pub(super) fn new(options: &DriverOptions) -> Self {
        let vectors = Vec::with_capacity(MAX_VECTORS);
        Self { slots: Vec::new(), vectors, counted: TransferredBytes::default(), dont_cache: options.dont_cache }
    }

    fn transfer(
        &mut self,
        base: *mut u8,
        ways: &FileDescriptors,
        job: &PlannedAccess,
        pieces: &[IoExtent],
    ) -> StepResult<u64> {
        let route = ways.route(job, pieces)?;
        let (mut moved, mut rest) = (0, pieces);
        while let Some(first) = rest.first() {
            let way = route.descriptor_for(first);
            let run = rest.len().min(
                1 + rest
                    .windows(2)
                    .take_while(|two| is_adjacent(two) && is_same_mode(way, route.descriptor_for(&two[1])))
                    .count(),
            );
            let (now, later) = rest.split_at(run);
            let (bytes, whole) = self.transfer_run(base, way, job.direction, now)?;
            self.counted.add(way.is_direct(), bytes);
            moved += bytes;
            if !whole {
                // End of file: the following extents are beyond it.
                break;
            }
            rest = later;
        }
        Ok(moved)
    }

    /// Transfers extents that are adjacent in the file; returns the bytes moved, and whether these are all.
    fn transfer_run(
        &mut self,
        base: *mut u8,
        way: TransferDescriptor<'_>,
        direction: Direction,
        pieces: &[IoExtent],
    ) -> StepResult<(u64, bool)> {
        let call = call_name(direction, pieces.len());
        let flags = if self.dont_cache && !way.is_direct() { dontcache::FLAG } else { 0 };
        let (mut at, mut skip, mut moved) = (0, 0_u64, 0_u64);
        while at < pieces.len() {
            let offset = pieces[at].file_bytes + skip;
            self.vectors.clear();
            self.vectors.extend(pieces[at..].iter().take(MAX_VECTORS).enumerate().map(|(n, piece)| {
                let skip = if n == 0 { skip } else { 0 };
                // Inside the area, as checked by `flatten`.
                let memory = base.wrapping_add((piece.memory_bytes + skip) as usize);
                libc::iovec { iov_base: memory.cast(), iov_len: (piece.len_bytes - skip) as usize }
            }));
            // SAFETY: each vector is an extent inside the source (of writes) or the landing area (of reads), see the caller.
            let mut got =
                match retry_interrupted(|| unsafe { transfer_vectors(direction, way, &self.vectors, offset, flags) }) {
                    Ok(0) if direction == Direction::Read => return Ok((moved, false)),
                    Ok(0) => return Err(StepError::system(call, libc::EIO, Some(offset))),
                    Ok(got) => got as u64,
                    Err(error) => {
                        return Err(StepError::system(call, error.raw_os_error().unwrap_or(libc::EIO), Some(offset)))
                    }
                };
            moved += got;
            let is_ragged = got % way.align_bytes != 0;
            while at < pieces.len() && got >= pieces[at].len_bytes - skip {
                got -= pieces[at].len_bytes - skip;
                (at, skip) = (at + 1, 0);
            }
            skip += got;
            if is_ragged && at < pieces.len() {
                // A direct transfer stops at an unaligned offset only at the end of the file or if no space is left.
                return match direction {
                    Direction::Read => Ok((moved, false)),
                    Direction::Write => Err(StepError::system(call, libc::EIO, Some(offset))),
                };
            }
        }
        Ok((moved, true))
    }
}

/// True if the second extent begins where the first ends in the file.
fn is_adjacent(two: &[IoExtent]) -> bool {
    two[0].file_bytes + two[0].len_bytes == two[1].file_bytes
}

fn is_same_mode(one: TransferDescriptor<'_>, other: TransferDescriptor<'_>) -> bool {
    one.is_direct() == other.is_direct()
}

fn call_name(direction: Direction, pieces: usize) -> &'static str {
    match (direction, pieces) {
        (Direction::Read, 1) => "pread",
        (Direction::Read, _) => "preadv",
        (Direction::Write, 1) => "pwrite",
        (Direction::Write, _) => "pwritev",
    }
}

/// One system call for these vectors.
///
/// # Safety
/// The memory of all vectors is mapped; that of a read is not borrowed.
unsafe fn transfer_vectors(
    direction: Direction,
    way: TransferDescriptor<'_>,
    vectors: &[libc::iovec],
    offset: u64,
    flags: i32,
) -> io::Result<usize> {
    let fd = way.file.as_raw_fd();
    // Offsets are below 63 bits.
    let (at, count) = (offset as libc::off_t, vectors.len() as libc::c_int);
    // SAFETY: the descriptor is open while `way` borrows its file; the caller guarantees the memory.
    let moved = unsafe {
        match (direction, vectors) {
            (Direction::Read, [one]) if flags == 0 => libc::pread(fd, one.iov_base, one.iov_len, at),
            (Direction::Write, [one]) if flags == 0 => libc::pwrite(fd, one.iov_base, one.iov_len, at),
            (Direction::Read, _) => libc::preadv2(fd, vectors.as_ptr(), count, at, flags),
            (Direction::Write, _) => libc::pwritev2(fd, vectors.as_ptr(), count, at, flags),
        }
    };
    usize::try_from(moved).map_err(|_| io::Error::last_os_error())
}

impl TransferEngine for Posix {
    fn reserve(&mut self, slots: usize, _memory: &mut ProgramMemory) {
        if self.slots.len() < slots {
            self.slots.resize(slots, Ok(0));
        }
    }

    fn begin(&mut self, memory: &mut ProgramMemory, ways: &FileDescriptors, job: &PlannedAccess, pieces: &[IoExtent]) {
        // All extents lie inside their area, as checked by `flatten`. The source is only read; no part of the landing area is borrowed,
        // because `landed` borrows the program mutably.
        let base = match job.direction {
            Direction::Read => memory.landing_at(),
            Direction::Write => memory.source_at().cast_mut(),
        };
        self.slots[job.slot as usize] = self.transfer(base, ways, job, pieces);
    }

    fn complete(&mut self, _memory: &mut ProgramMemory, slot: u32) -> StepResult<u64> {
        std::mem::replace(&mut self.slots[slot as usize], Ok(0))
    }

    fn drain(&mut self, _memory: &mut ProgramMemory, _file: Option<u32>) {}

    fn is_idle(&mut self, _memory: &mut ProgramMemory, _slot: u32) -> bool {
        true
    }

    fn transferred_bytes(&self) -> TransferredBytes {
        self.counted
    }

    fn strategy(&self) -> String {
        let dropped = if self.dont_cache { ", buffered pages dropped when done (RWF_DONTCACHE)" } else { "" };
        format!(
            "pread and pwrite of contiguous extents, preadv and pwritev for noncontiguous memory{dropped}; nonblocking calls complete \
             when they are started"
        )
    }
}
