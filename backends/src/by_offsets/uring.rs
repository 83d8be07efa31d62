//! Pieces through io_uring: those of an access are in flight together, and accesses that are left under way stay there until they
//! are completed.

use std::os::fd::AsRawFd;

use beff_trace::Direction;
use io_uring::types::Fd;
use io_uring::{opcode, squeue, EnterFlags, IoUring};

use super::fault::{Done, Fault};
use super::mover::{Counted, Job, Mover, Way, Ways, BLOCKING};
use super::pieces::Piece;
use crate::patience::Patience;
use crate::program::memory::{Area, Landing};
use crate::program::Memory;
use crate::queue::{Queue, MAX_PIECE_SHIFT};
use crate::{dontcache, last_words, DriverOptions, Result};

/// Bytes of one operation at most.
const MOST_BYTES: u64 = 1 << MAX_PIECE_SHIFT;

/// An access of the program, while it is under way and until it is completed.
#[derive(Debug)]
struct Access {
    /// Number of its file.
    file: u32,
    moved: Done<u64>,
    /// Operations that the kernel works on.
    open: u32,
    landing: Option<Landing>,
}

/// An operation in flight.
#[derive(Clone, Copy, Debug)]
struct Operation {
    slot: u32,
    fd: i32,
    memory: *mut u8,
    len: u32,
    offset: u64,
    direction: Direction,
    align_bytes: u64,
    flags: i32,
}

/// A place without an operation.
const NOTHING: Operation = Operation {
    slot: 0,
    fd: -1,
    memory: std::ptr::null_mut(),
    len: 0,
    offset: 0,
    direction: Direction::Read,
    align_bytes: 1,
    flags: 0,
};

/// A queue that outlives steps. Its drop waits for everything in flight.
pub(super) struct Uring {
    ring: IoUring,
    flags: &'static str,
    operations: Vec<Operation>,
    free: Vec<u32>,
    accesses: Vec<Access>,
    counted: Counted,
    dont_cache: bool,
    /// With operations that shall be tried again.
    patience: Patience,
}

impl Uring {
    /// A queue of the depth of the options.
    ///
    /// # Errors
    /// If io_uring is not available, with what to look at.
    pub(super) fn new(options: &DriverOptions) -> Result<Self> {
        let (ring, depth, flags) = Queue::without_files(options.queue_depth)?;
        Ok(Self {
            ring,
            flags,
            operations: vec![NOTHING; depth as usize],
            free: (0..depth).rev().collect(),
            accesses: Vec::new(),
            counted: Counted::default(),
            dont_cache: options.dont_cache,
            patience: Patience::default(),
        })
    }

    fn in_flight(&self) -> usize {
        self.operations.len() - self.free.len()
    }

    /// Puts an operation into the queue, waiting for another one to end where the depth is reached.
    fn push(&mut self, operation: Operation) {
        let place = loop {
            match self.free.pop() {
                Some(place) => break place,
                None => self.wait(1),
            }
        };
        self.operations[place as usize] = operation;
        self.accesses[operation.slot as usize].open += 1;
        self.enter(place);
    }

    /// Puts the operation of a place into the queue.
    fn enter(&mut self, place: u32) {
        let entry = entry(&self.operations[place as usize]).user_data(u64::from(place));
        loop {
            // SAFETY: the memory of the operation lies inside the source or the landing area (checked by `flatten`), which live
            // until the drop of this value has waited for it; the file is closed after it (see `Mover::drain`), and a descriptor
            // that was closed early would only fail.
            let pushed = unsafe { self.ring.submission().push(&entry) };
            if pushed.is_ok() {
                return;
            }
            // Only a polling thread is ever behind: the queue has room for the whole depth.
            let _ = self.ring.submit();
            std::thread::yield_now();
        }
    }

    /// Hands over what is in the queue and waits for `want` completions or more.
    fn wait(&mut self, want: usize) {
        let mut patience = Patience::default();
        loop {
            match self.ring.submit_and_wait(want) {
                Ok(_) => break,
                Err(_) if !self.ring.completion().is_empty() => break,
                Err(error)
                    if matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY))
                        && patience.try_again() => {}
                Err(error) => give_up(self.in_flight(), &error),
            }
        }
        self.reap();
    }

    /// Takes the completions that are there.
    fn reap(&mut self) {
        loop {
            let Some(completion) = self.ring.completion().next() else { return };
            // The user data is the place.
            self.ended(completion.user_data() as u32, completion.result());
        }
    }

    /// An operation ended: it goes on where it came short, or is taken off its access.
    fn ended(&mut self, place: u32, result: i32) {
        let operation = self.operations[place as usize];
        let access = &mut self.accesses[operation.slot as usize];
        let failed = |errno| Fault::system(name(operation.direction), errno, Some(operation.offset));
        match u32::try_from(result) {
            Err(_) if matches!(-result, libc::EINTR | libc::EAGAIN) && self.patience.try_again() => {
                return self.enter(place);
            }
            Err(_) => set_fault(&mut access.moved, failed(-result)),
            Ok(0) if operation.direction == Direction::Write => set_fault(&mut access.moved, failed(libc::EIO)),
            Ok(got) => {
                self.patience.restore();
                self.counted.add(operation.align_bytes > 1, u64::from(got));
                if let Ok(moved) = &mut access.moved {
                    *moved += u64::from(got);
                }
                let is_ragged = u64::from(got) % operation.align_bytes != 0;
                match operation.direction {
                    _ if got == operation.len || got == 0 => {}
                    // A direct read stops beside a sector only at the end of the file.
                    Direction::Read if is_ragged => {}
                    Direction::Write if is_ragged => set_fault(&mut access.moved, failed(libc::EIO)),
                    _ => {
                        let rest = &mut self.operations[place as usize];
                        rest.memory = rest.memory.wrapping_add(got as usize);
                        rest.len -= got;
                        rest.offset += u64::from(got);
                        return self.enter(place);
                    }
                }
            }
        }
        access.open -= 1;
        self.free.push(place);
    }

    /// Waits until nothing of an access is in flight.
    fn settle(&mut self, memory: &mut Memory, slot: u32) {
        while self.accesses[slot as usize].open > 0 {
            self.wait(1);
        }
        if let Some(landing) = self.accesses[slot as usize].landing.take() {
            memory.end(landing);
        }
    }
}

impl Mover for Uring {
    fn reserve(&mut self, slots: usize, memory: &mut Memory) {
        if self.accesses.len() < slots {
            self.accesses.resize_with(slots, || Access { file: 0, moved: Ok(0), open: 0, landing: None });
        }
        memory.reserve(slots);
    }

    fn begin(&mut self, memory: &mut Memory, ways: &Ways, job: &Job, pieces: &[Piece]) {
        // A slot whose access was never completed, and which is given out again.
        self.settle(memory, job.slot);
        let base = match job.direction {
            Direction::Read => memory.landing_at(),
            Direction::Write => memory.source_at().cast_mut(),
        };
        let access = &mut self.accesses[job.slot as usize];
        let route = match ways.route(job, pieces) {
            Ok(route) => route,
            Err(fault) => {
                access.moved = Err(fault);
                return;
            }
        };
        (access.file, access.moved) = (job.file, Ok(0));
        access.landing = (!job.memory.is_empty()).then(|| memory.begin(Area::of(job.direction), job.memory.clone()));
        for piece in pieces {
            self.push_piece(route.of(piece), base, job, piece);
        }
        // The kernel begins now what is left under way; a blocking access is handed over when it is waited for.
        if job.slot != BLOCKING && self.in_flight() > 0 {
            self.wait(0);
        }
    }

    fn complete(&mut self, memory: &mut Memory, slot: u32) -> Done<u64> {
        self.settle(memory, slot);
        std::mem::replace(&mut self.accesses[slot as usize].moved, Ok(0))
    }

    fn drain(&mut self, memory: &mut Memory, file: Option<u32>) {
        if self.in_flight() == 0 {
            return;
        }
        for slot in 0..self.accesses.len() {
            if file.is_none_or(|file| file == self.accesses[slot].file) {
                // Slots are counted by numbers of 32 bits.
                self.settle(memory, slot as u32);
            }
        }
    }

    fn is_idle(&mut self, memory: &mut Memory, slot: u32) -> bool {
        let is_open = |accesses: &[Access]| accesses.get(slot as usize).is_some_and(|access| access.open > 0);
        if is_open(&self.accesses) {
            // Where completions are only posted in a system call of ours, this is it. An error shows when they are waited for.
            // SAFETY: nothing is submitted (0) and no argument is passed, so no memory is named.
            let _ = unsafe { self.ring.submitter().enter::<()>(0, 0, EnterFlags::GETEVENTS.bits(), None) };
            self.reap();
        }
        let is_idle = !is_open(&self.accesses);
        if is_idle && (slot as usize) < self.accesses.len() {
            self.settle(memory, slot);
        }
        is_idle
    }

    fn counted(&self) -> Counted {
        self.counted
    }

    fn strategy(&self) -> String {
        let dropped = if self.dont_cache { ", buffered pages dropped when done (RWF_DONTCACHE)" } else { "" };
        format!(
            "io_uring, the runs of an access in flight together, depth {}, {}{dropped}; non-blocking calls are under way until they \
             are completed; where more runs are begun than the depth, the begin waits for the first",
            self.operations.len(),
            self.flags
        )
    }
}

impl Uring {
    /// A piece as operations of a length that the kernel takes.
    fn push_piece(&mut self, way: Way<'_>, base: *mut u8, job: &Job, piece: &Piece) {
        let mut done = 0;
        while done < piece.len_bytes {
            let len = (piece.len_bytes - done).min(MOST_BYTES);
            self.push(Operation {
                slot: job.slot,
                fd: way.file.as_raw_fd(),
                memory: base.wrapping_add((piece.memory_bytes + done) as usize),
                len: len as u32,
                offset: piece.file_bytes + done,
                direction: job.direction,
                align_bytes: way.align_bytes,
                flags: if self.dont_cache && !way.is_direct() { dontcache::FLAG } else { 0 },
            });
            done += len;
        }
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        while self.in_flight() > 0 {
            self.wait(1);
        }
    }
}

fn entry(operation: &Operation) -> squeue::Entry {
    let Operation { fd, memory, len, offset, flags, .. } = *operation;
    match operation.direction {
        Direction::Write => opcode::Write::new(Fd(fd), memory, len).offset(offset).rw_flags(flags).build(),
        Direction::Read => opcode::Read::new(Fd(fd), memory, len).offset(offset).rw_flags(flags).build(),
    }
}

fn name(direction: Direction) -> &'static str {
    match direction {
        Direction::Write => "io_uring write",
        Direction::Read => "io_uring read",
    }
}

fn set_fault(moved: &mut Done<u64>, fault: Fault) {
    if moved.is_ok() {
        *moved = Err(fault);
    }
}

/// Returning would let the kernel write into memory that is no longer ours.
fn give_up(in_flight: usize, error: &std::io::Error) -> ! {
    last_words::say(&format!("io_uring_enter: cannot wait for {in_flight} transfers in flight: {error}; giving up"));
    std::process::abort();
}
