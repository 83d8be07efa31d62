//! Pieces through io_uring: those of an access are in flight together, and accesses that are left under way stay there until they
//! are completed.

use std::os::fd::AsRawFd;
use std::path::Path;

use beff_trace::Direction;
use io_uring::types::Fd;
use io_uring::{opcode, squeue};

use super::fault::{Done, Fault};
use super::mover::{Counted, Job, Mover, Way, Ways, BLOCKING};
use super::pieces::Piece;
use crate::patience::{Ended, Patience};
use crate::program::memory::{Area, Landing};
use crate::program::Memory;
use crate::queue::flight::Flight;
use crate::queue::{Queue, MAX_PIECE_SHIFT};
use crate::{dontcache, DriverOptions, Result};

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

/// A queue that outlives steps: between them it is left with what is in flight. Its drop waits for that.
pub(super) struct Uring {
    queue: Queue,
    table: Table,
    dont_cache: bool,
}

/// What is in flight.
struct Table {
    operations: Vec<Operation>,
    free: Vec<u32>,
    accesses: Vec<Access>,
    counted: Counted,
    /// With operations that shall be tried again.
    patience: Patience,
}

impl Uring {
    /// A queue of the depth of the options.
    ///
    /// # Errors
    /// If io_uring is not available, with what to look at.
    pub(super) fn new(options: &DriverOptions) -> Result<Self> {
        let queue = Queue::without_files(options.queue_depth, MAX_PIECE_SHIFT, Path::new(""))?;
        let depth = queue.depth();
        let table = Table {
            operations: vec![NOTHING; depth as usize],
            free: (0..depth).rev().collect(),
            accesses: Vec::new(),
            counted: Counted::default(),
            patience: Patience::default(),
        };
        Ok(Self { queue, table, dont_cache: options.dont_cache })
    }

    /// The queue as it was left.
    fn in_use<T>(&mut self, work: impl FnOnce(&mut Table, &mut Flight<'_>) -> T) -> T {
        let mut flight = Flight::new(&mut self.queue);
        let done = work(&mut self.table, &mut flight);
        flight.leave();
        done
    }
}

impl Table {
    /// Puts an operation into the queue, waiting for another one to end where the depth is reached.
    fn push(&mut self, flight: &mut Flight<'_>, operation: Operation) {
        let place = loop {
            match self.free.pop() {
                Some(place) => break place,
                None => self.wait(flight, 1),
            }
        };
        self.operations[place as usize] = operation;
        self.accesses[operation.slot as usize].open += 1;
        self.enter(flight, place);
    }

    /// Puts the operation of a place into the queue.
    fn enter(&self, flight: &mut Flight<'_>, place: u32) {
        let entry = entry(&self.operations[place as usize]).user_data(u64::from(place));
        // SAFETY: the memory of the operation lies inside the source or the landing area (checked by `flatten`), which live until the
        // drop of `Uring`, whose queue waits for it; the file is closed after it (see `Mover::drain`), and a descriptor that was closed
        // early would only fail.
        unsafe { flight.push(&entry) };
    }

    /// Hands over what is in the queue; with `want`, waits until that many completions are there.
    fn wait(&mut self, flight: &mut Flight<'_>, want: usize) {
        loop {
            let entered = flight.submit_and_wait(want);
            if self.reap(flight) || want == 0 && entered.is_ok() {
                return;
            }
            if let Err(error) = entered {
                // Returning would let the kernel write into memory that is no longer ours.
                flight.give_up(&error);
            }
        }
    }

    /// Takes the completions that are there; true if there were any.
    fn reap(&mut self, flight: &mut Flight<'_>) -> bool {
        let mut is_any = false;
        while let Some((place, result)) = flight.next_completion() {
            is_any = true;
            // The user data is the place.
            self.ended(flight, place as u32, result);
        }
        is_any
    }

    /// An operation ended: it goes on where it came short, or is taken off its access.
    fn ended(&mut self, flight: &mut Flight<'_>, place: u32, result: i32) {
        let operation = self.operations[place as usize];
        let access = &mut self.accesses[operation.slot as usize];
        let failed = |errno| Fault::system(name(operation.direction), errno, Some(operation.offset));
        match self.patience.judge(result) {
            Ended::Again => return self.enter(flight, place),
            Ended::Failed(errno) => set_fault(&mut access.moved, failed(errno)),
            Ended::Moved(0) if operation.direction == Direction::Write => {
                set_fault(&mut access.moved, failed(libc::EIO))
            }
            Ended::Moved(got) => {
                self.counted.add(operation.align_bytes > 1, got);
                if let Ok(moved) = &mut access.moved {
                    *moved += got;
                }
                let is_ragged = got % operation.align_bytes != 0;
                match operation.direction {
                    _ if got == u64::from(operation.len) || got == 0 => {}
                    // A direct read stops beside a sector only at the end of the file.
                    Direction::Read if is_ragged => {}
                    Direction::Write if is_ragged => set_fault(&mut access.moved, failed(libc::EIO)),
                    _ => {
                        let rest = &mut self.operations[place as usize];
                        rest.memory = rest.memory.wrapping_add(got as usize);
                        // Less than its length, which has 32 bits.
                        rest.len -= got as u32;
                        rest.offset += got;
                        return self.enter(flight, place);
                    }
                }
            }
        }
        access.open -= 1;
        self.free.push(place);
    }

    /// Waits until nothing of an access is in flight.
    fn settle(&mut self, flight: &mut Flight<'_>, memory: &mut Memory, slot: u32) {
        while self.accesses[slot as usize].open > 0 {
            self.wait(flight, 1);
        }
        if let Some(landing) = self.accesses[slot as usize].landing.take() {
            memory.end(landing);
        }
    }

    /// A piece as operations of a length that the kernel takes. `flags`: of those through the page cache.
    fn push_piece(
        &mut self,
        flight: &mut Flight<'_>,
        way: Way<'_>,
        flags: i32,
        base: *mut u8,
        job: &Job,
        piece: &Piece,
    ) {
        let mut done = 0;
        while done < piece.len_bytes {
            let len = (piece.len_bytes - done).min(MOST_BYTES);
            let operation = Operation {
                slot: job.slot,
                fd: way.file.as_raw_fd(),
                memory: base.wrapping_add((piece.memory_bytes + done) as usize),
                len: len as u32,
                offset: piece.file_bytes + done,
                direction: job.direction,
                align_bytes: way.align_bytes,
                flags: if way.is_direct() { 0 } else { flags },
            };
            self.push(flight, operation);
            done += len;
        }
    }
}

impl Mover for Uring {
    fn reserve(&mut self, slots: usize, memory: &mut Memory) {
        let accesses = &mut self.table.accesses;
        if accesses.len() < slots {
            accesses.resize_with(slots, || Access { file: 0, moved: Ok(0), open: 0, landing: None });
        }
        memory.reserve(slots);
    }

    fn begin(&mut self, memory: &mut Memory, ways: &Ways, job: &Job, pieces: &[Piece]) {
        let flags = if self.dont_cache { dontcache::FLAG } else { 0 };
        self.in_use(|table, flight| {
            // A slot whose access was never completed, and which is given out again.
            table.settle(flight, memory, job.slot);
            let base = match job.direction {
                Direction::Read => memory.landing_at(),
                Direction::Write => memory.source_at().cast_mut(),
            };
            let access = &mut table.accesses[job.slot as usize];
            let route = match ways.route(job, pieces) {
                Ok(route) => route,
                Err(fault) => {
                    access.moved = Err(fault);
                    return;
                }
            };
            (access.file, access.moved) = (job.file, Ok(0));
            let landing = || memory.begin(Area::of(job.direction), job.memory.clone());
            access.landing = (!job.memory.is_empty()).then(landing);
            for piece in pieces {
                table.push_piece(flight, route.of(piece), flags, base, job, piece);
            }
            // The kernel begins now what is left pending; a blocking access is handed over when it is waited for.
            if job.slot != BLOCKING && flight.in_flight() > 0 {
                table.wait(flight, 0);
            }
        });
    }

    fn complete(&mut self, memory: &mut Memory, slot: u32) -> Done<u64> {
        self.in_use(|table, flight| table.settle(flight, memory, slot));
        std::mem::replace(&mut self.table.accesses[slot as usize].moved, Ok(0))
    }

    fn drain(&mut self, memory: &mut Memory, file: Option<u32>) {
        self.in_use(|table, flight| {
            if flight.in_flight() == 0 {
                return;
            }
            for slot in 0..table.accesses.len() {
                if file.is_none_or(|file| file == table.accesses[slot].file) {
                    // Slots are counted by numbers of 32 bits.
                    table.settle(flight, memory, slot as u32);
                }
            }
        });
    }

    fn is_idle(&mut self, memory: &mut Memory, slot: u32) -> bool {
        self.in_use(|table, flight| {
            let is_open = |table: &Table| table.accesses.get(slot as usize).is_some_and(|access| access.open > 0);
            if is_open(table) {
                flight.look();
                table.reap(flight);
            }
            let is_idle = !is_open(table);
            if is_idle && (slot as usize) < table.accesses.len() {
                table.settle(flight, memory, slot);
            }
            is_idle
        })
    }

    fn counted(&self) -> Counted {
        self.table.counted
    }

    fn strategy(&self) -> String {
        let dropped = if self.dont_cache { ", buffered pages dropped when done (RWF_DONTCACHE)" } else { "" };
        format!(
            "io_uring, the runs of an access in flight together, depth {}, {}{dropped}; non-blocking calls are under way until they \
             are completed; where more runs are begun than the depth, the begin waits for the first",
            self.queue.depth(),
            self.queue.flags()
        )
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        // Whoever takes over what was left waits for it.
        drop(Flight::new(&mut self.queue));
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
