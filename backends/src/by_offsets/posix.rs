//! Pieces by pread(2) and pwrite(2); where they follow each other in the file alone, by preadv(2) and pwritev(2).

use std::io;
use std::os::fd::AsRawFd;

use beff_trace::Direction;

use super::fault::{Done, Fault};
use super::mover::{Counted, Job, Mover, Way, Ways};
use super::pieces::Piece;
use crate::patience::uninterrupted;
use crate::program::Memory;
use crate::{dontcache, DriverOptions};

/// Pieces in one system call at most (IOV_MAX of Linux).
const MOST_VECTORS: usize = 1024;

/// Moves everything when it is begun.
pub(super) struct Posix {
    /// What came of the access of each slot.
    slots: Vec<Done<u64>>,
    vectors: Vec<libc::iovec>,
    counted: Counted,
    dont_cache: bool,
}

impl Posix {
    pub(super) fn new(options: &DriverOptions) -> Self {
        let vectors = Vec::with_capacity(MOST_VECTORS);
        Self { slots: Vec::new(), vectors, counted: Counted::default(), dont_cache: options.dont_cache }
    }

    fn transfer(&mut self, base: *mut u8, ways: &Ways, job: &Job, pieces: &[Piece]) -> Done<u64> {
        let route = ways.route(job, pieces)?;
        let (mut moved, mut rest) = (0, pieces);
        while let Some(first) = rest.first() {
            let way = route.of(first);
            let run = rest
                .len()
                .min(1 + rest.windows(2).take_while(|two| follows(two) && same(way, route.of(&two[1]))).count());
            let (now, later) = rest.split_at(run);
            let (bytes, whole) = self.run(base, way, job.direction, now)?;
            self.counted.add(way.is_direct(), bytes);
            moved += bytes;
            if !whole {
                // The end of the file: what follows lies behind it.
                break;
            }
            rest = later;
        }
        Ok(moved)
    }

    /// Moves pieces that follow each other in the file: how many bytes, and whether that was all.
    fn run(&mut self, base: *mut u8, way: Way<'_>, direction: Direction, pieces: &[Piece]) -> Done<(u64, bool)> {
        let call = name(direction, pieces.len());
        let flags = if self.dont_cache && !way.is_direct() { dontcache::FLAG } else { 0 };
        let (mut at, mut skip, mut moved) = (0, 0_u64, 0_u64);
        while at < pieces.len() {
            let offset = pieces[at].file_bytes + skip;
            self.vectors.clear();
            self.vectors.extend(pieces[at..].iter().take(MOST_VECTORS).enumerate().map(|(n, piece)| {
                let skip = if n == 0 { skip } else { 0 };
                // Inside the area: `flatten` has checked it.
                let memory = base.wrapping_add((piece.memory_bytes + skip) as usize);
                libc::iovec { iov_base: memory.cast(), iov_len: (piece.len_bytes - skip) as usize }
            }));
            // SAFETY: each vector is a piece inside the source (of writes) or the landing area (of reads), see the caller.
            let mut got = match uninterrupted(|| unsafe { system_call(direction, way, &self.vectors, offset, flags) }) {
                Ok(0) if direction == Direction::Read => return Ok((moved, false)),
                Ok(0) => return Err(Fault::system(call, libc::EIO, Some(offset))),
                Ok(got) => got as u64,
                Err(error) => return Err(Fault::system(call, error.raw_os_error().unwrap_or(libc::EIO), Some(offset))),
            };
            moved += got;
            let is_ragged = got % way.align_bytes != 0;
            while at < pieces.len() && got >= pieces[at].len_bytes - skip {
                got -= pieces[at].len_bytes - skip;
                (at, skip) = (at + 1, 0);
            }
            skip += got;
            if is_ragged && at < pieces.len() {
                // A direct transfer stops beside a sector only at the end of the file, or where the space ends.
                return match direction {
                    Direction::Read => Ok((moved, false)),
                    Direction::Write => Err(Fault::system(call, libc::EIO, Some(offset))),
                };
            }
        }
        Ok((moved, true))
    }
}

/// True if the second piece begins in the file where the first ends.
fn follows(two: &[Piece]) -> bool {
    two[0].file_bytes + two[0].len_bytes == two[1].file_bytes
}

fn same(one: Way<'_>, other: Way<'_>) -> bool {
    one.is_direct() == other.is_direct()
}

fn name(direction: Direction, pieces: usize) -> &'static str {
    match (direction, pieces) {
        (Direction::Read, 1) => "pread",
        (Direction::Read, _) => "preadv",
        (Direction::Write, 1) => "pwrite",
        (Direction::Write, _) => "pwritev",
    }
}

/// One transfer of these vectors.
///
/// # Safety
/// The memory of all vectors is mapped; that of a read is borrowed by nobody.
unsafe fn system_call(
    direction: Direction,
    way: Way<'_>,
    vectors: &[libc::iovec],
    offset: u64,
    flags: i32,
) -> io::Result<usize> {
    let fd = way.file.as_raw_fd();
    // Offsets of pieces are below 63 bits.
    let (at, count) = (offset as libc::off_t, vectors.len() as libc::c_int);
    // SAFETY: the descriptor is open while `way` borrows its file; the memory is the caller's promise.
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

impl Mover for Posix {
    fn reserve(&mut self, slots: usize, _memory: &mut Memory) {
        if self.slots.len() < slots {
            self.slots.resize(slots, Ok(0));
        }
    }

    fn begin(&mut self, memory: &mut Memory, ways: &Ways, job: &Job, pieces: &[Piece]) {
        // All pieces lie inside their area, which `flatten` has checked. The source is only read from; no part of the landing
        // area is borrowed, because `landed` needs the program for itself.
        let base = match job.direction {
            Direction::Read => memory.landing_at(),
            Direction::Write => memory.source_at().cast_mut(),
        };
        self.slots[job.slot as usize] = self.transfer(base, ways, job, pieces);
    }

    fn complete(&mut self, _memory: &mut Memory, slot: u32) -> Done<u64> {
        std::mem::replace(&mut self.slots[slot as usize], Ok(0))
    }

    fn drain(&mut self, _memory: &mut Memory, _file: Option<u32>) {}

    fn is_idle(&mut self, _memory: &mut Memory, _slot: u32) -> bool {
        true
    }

    fn counted(&self) -> Counted {
        self.counted
    }

    fn strategy(&self) -> String {
        let dropped = if self.dont_cache { ", buffered pages dropped when done (RWF_DONTCACHE)" } else { "" };
        format!("pread and pwrite of each run in the file, preadv and pwritev where memory has holes{dropped}; non-blocking calls are done whole where they begin")
    }
}
