//! Extents through io_uring: those of one access are in flight together, and nonblocking accesses stay in flight until they are
//! completed.

use std::os::fd::AsRawFd;
use std::path::Path;

use beff_trace::Direction;
use io_uring::types::Fd;
use io_uring::{opcode, squeue};

use super::extents::IoExtent;
use super::step_error::{StepError, StepResult};
use super::transfer_engine::{
    FileDescriptors, PlannedAccess, TransferDescriptor, TransferEngine, TransferredBytes, NO_SLOT,
};
use crate::program::memory::{AccessId, MemoryArea};
use crate::program::ProgramMemory;
use crate::queue::in_flight::InFlightOperations;
use crate::queue::{Queue, MAX_BUFFER_SHIFT};
use crate::retry::{CompletionOutcome, RetryBudget};
use crate::{dontcache, DriverOptions, Result};

const MAX_OPERATION_BYTES: u64 = 1 << MAX_BUFFER_SHIFT;

/// An access from its start to its completion.
#[derive(Debug)]
struct AccessState {
    /// Number of its file.
    file: u32,
    moved: StepResult<u64>,
    /// Operations that are in flight.
    pending_operations: u32,
    landing: Option<AccessId>,
}

#[derive(Clone, Copy, Debug)]
struct AccessOperation {
    slot: u32,
    fd: i32,
    memory: *mut u8,
    len: u32,
    offset: u64,
    direction: Direction,
    align_bytes: u64,
    flags: i32,
}

/// An unused entry.
const EMPTY_OPERATION: AccessOperation = AccessOperation {
    slot: 0,
    fd: -1,
    memory: std::ptr::null_mut(),
    len: 0,
    offset: 0,
    direction: Direction::Read,
    align_bytes: 1,
    flags: 0,
};

/// A queue that outlives steps: operations stay in flight between them. Its drop waits for them.
pub(super) struct Uring {
    queue: Queue,
    table: OperationTable,
    dont_cache: bool,
}

struct OperationTable {
    operations: Vec<AccessOperation>,
    free: Vec<u32>,
    accesses: Vec<AccessState>,
    counted: TransferredBytes,
    /// For retried operations.
    patience: RetryBudget,
}

impl Uring {
    pub(super) fn new(options: &DriverOptions) -> Result<Self> {
        let queue = Queue::without_files(options.queue_depth, MAX_BUFFER_SHIFT, Path::new(""))?;
        let depth = queue.depth();
        let table = OperationTable {
            operations: vec![EMPTY_OPERATION; depth as usize],
            free: (0..depth).rev().collect(),
            accesses: Vec::new(),
            counted: TransferredBytes::default(),
            patience: RetryBudget::default(),
        };
        Ok(Self { queue, table, dont_cache: options.dont_cache })
    }

    /// Runs `work` with the queue and the operations in flight.
    fn with_queue<T>(&mut self, work: impl FnOnce(&mut OperationTable, &mut InFlightOperations<'_>) -> T) -> T {
        let mut flight = InFlightOperations::new(&mut self.queue);
        let done = work(&mut self.table, &mut flight);
        flight.detach();
        done
    }
}

impl OperationTable {
    /// Pushes an operation; waits for another one to complete if the queue depth is reached.
    fn push(&mut self, flight: &mut InFlightOperations<'_>, operation: AccessOperation) {
        let place = loop {
            match self.free.pop() {
                Some(place) => break place,
                None => self.wait(flight, 1),
            }
        };
        self.operations[place as usize] = operation;
        self.accesses[operation.slot as usize].pending_operations += 1;
        self.submit_slot(flight, place);
    }

    /// Pushes the operation of an entry.
    fn submit_slot(&self, flight: &mut InFlightOperations<'_>, place: u32) {
        let entry = submission_entry(&self.operations[place as usize]).user_data(u64::from(place));
        // SAFETY: the memory of the operation lies inside the source or the landing area (checked by `flatten`), which live until the
        // drop of `Uring`, whose queue waits for it; the file is closed after it (see `drain`), and a descriptor closed too early would
        // only fail.
        unsafe { flight.push(&entry) };
    }

    /// Submits the queue and waits for `want` completions.
    fn wait(&mut self, flight: &mut InFlightOperations<'_>, want: usize) {
        loop {
            let entered = flight.submit_and_wait(want);
            if self.reap(flight) || want == 0 && entered.is_ok() {
                return;
            }
            if let Err(error) = entered {
                // Returning would let the kernel write into memory that is no longer owned.
                flight.abort_in_flight(&error);
            }
        }
    }

    /// Processes the available completions; true if there were any.
    fn reap(&mut self, flight: &mut InFlightOperations<'_>) -> bool {
        let mut is_any = false;
        while let Some((place, result)) = flight.next_completion() {
            is_any = true;
            // The user data is the index.
            self.complete_operation(flight, place as u32, result);
        }
        is_any
    }

    /// Processes the completion of an operation: resubmits a short one, otherwise removes it from its access.
    fn complete_operation(&mut self, flight: &mut InFlightOperations<'_>, place: u32, result: i32) {
        let operation = self.operations[place as usize];
        let access = &mut self.accesses[operation.slot as usize];
        let failed = |errno| StepError::system(operation_name(operation.direction), errno, Some(operation.offset));
        match self.patience.classify(result) {
            CompletionOutcome::Retry => return self.submit_slot(flight, place),
            CompletionOutcome::Failed(errno) => set_error(&mut access.moved, failed(errno)),
            CompletionOutcome::Moved(0) if operation.direction == Direction::Write => {
                set_error(&mut access.moved, failed(libc::EIO))
            }
            CompletionOutcome::Moved(got) => {
                self.counted.add(operation.align_bytes > 1, got);
                if let Ok(moved) = &mut access.moved {
                    *moved += got;
                }
                let is_ragged = got % operation.align_bytes != 0;
                match operation.direction {
                    _ if got == u64::from(operation.len) || got == 0 => {}
                    // A direct read stops at an unaligned offset only at the end of the file.
                    Direction::Read if is_ragged => {}
                    Direction::Write if is_ragged => set_error(&mut access.moved, failed(libc::EIO)),
                    _ => {
                        let rest = &mut self.operations[place as usize];
                        rest.memory = rest.memory.wrapping_add(got as usize);
                        // Less than its length, which has 32 bits.
                        rest.len -= got as u32;
                        rest.offset += got;
                        return self.submit_slot(flight, place);
                    }
                }
            }
        }
        access.pending_operations -= 1;
        self.free.push(place);
    }

    /// Waits until no operation of an access is in flight.
    fn complete_access(&mut self, flight: &mut InFlightOperations<'_>, memory: &mut ProgramMemory, slot: u32) {
        while self.accesses[slot as usize].pending_operations > 0 {
            self.wait(flight, 1);
        }
        if let Some(landing) = self.accesses[slot as usize].landing.take() {
            memory.end_access(landing);
        }
    }

    /// Splits an extent into operations that do not exceed the maximum length. `flags`: for transfers through the page cache.
    fn push_extent(
        &mut self,
        flight: &mut InFlightOperations<'_>,
        way: TransferDescriptor<'_>,
        flags: i32,
        base: *mut u8,
        job: &PlannedAccess,
        piece: &IoExtent,
    ) {
        let mut done = 0;
        while done < piece.len_bytes {
            let len = (piece.len_bytes - done).min(MAX_OPERATION_BYTES);
            let operation = AccessOperation {
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

impl TransferEngine for Uring {
    fn reserve(&mut self, slots: usize, memory: &mut ProgramMemory) {
        let accesses = &mut self.table.accesses;
        if accesses.len() < slots {
            accesses.resize_with(slots, || AccessState { file: 0, moved: Ok(0), pending_operations: 0, landing: None });
        }
        memory.reserve(slots);
    }

    fn begin(&mut self, memory: &mut ProgramMemory, ways: &FileDescriptors, job: &PlannedAccess, pieces: &[IoExtent]) {
        let flags = if self.dont_cache { dontcache::FLAG } else { 0 };
        self.with_queue(|table, flight| {
            // A reused slot whose access was never completed.
            table.complete_access(flight, memory, job.slot);
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
            let landing = || memory.begin_access(MemoryArea::of(job.direction), job.memory.clone());
            access.landing = (!job.memory.is_empty()).then(landing);
            for piece in pieces {
                table.push_extent(flight, route.descriptor_for(piece), flags, base, job, piece);
            }
            // Nonblocking accesses are submitted now, blocking ones when they are completed.
            if job.slot != NO_SLOT && flight.in_flight() > 0 {
                table.wait(flight, 0);
            }
        });
    }

    fn complete(&mut self, memory: &mut ProgramMemory, slot: u32) -> StepResult<u64> {
        self.with_queue(|table, flight| table.complete_access(flight, memory, slot));
        std::mem::replace(&mut self.table.accesses[slot as usize].moved, Ok(0))
    }

    fn drain(&mut self, memory: &mut ProgramMemory, file: Option<u32>) {
        self.with_queue(|table, flight| {
            if flight.in_flight() == 0 {
                return;
            }
            for slot in 0..table.accesses.len() {
                if file.is_none_or(|file| file == table.accesses[slot].file) {
                    // Slot numbers have 32 bits.
                    table.complete_access(flight, memory, slot as u32);
                }
            }
        });
    }

    fn is_idle(&mut self, memory: &mut ProgramMemory, slot: u32) -> bool {
        self.with_queue(|table, flight| {
            let is_open = |table: &OperationTable| {
                table.accesses.get(slot as usize).is_some_and(|access| access.pending_operations > 0)
            };
            if is_open(table) {
                flight.poll_completions();
                table.reap(flight);
            }
            let is_idle = !is_open(table);
            if is_idle && (slot as usize) < table.accesses.len() {
                table.complete_access(flight, memory, slot);
            }
            is_idle
        })
    }

    fn transferred_bytes(&self) -> TransferredBytes {
        self.table.counted
    }

    fn strategy(&self) -> String {
        let dropped = if self.dont_cache { ", buffered pages dropped when done (RWF_DONTCACHE)" } else { "" };
        format!(
            "io_uring, the extents of an access in flight together, depth {}, {}{dropped}; nonblocking calls stay in flight until \
             they are completed; a start beyond the depth waits for earlier operations",
            self.queue.depth(),
            self.queue.flags()
        )
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        // Its drop waits for the operations in flight.
        drop(InFlightOperations::new(&mut self.queue));
    }
}

fn submission_entry(operation: &AccessOperation) -> squeue::Entry {
    let AccessOperation { fd, memory, len, offset, flags, .. } = *operation;
    match operation.direction {
        Direction::Write => opcode::Write::new(Fd(fd), memory, len).offset(offset).rw_flags(flags).build(),
        Direction::Read => opcode::Read::new(Fd(fd), memory, len).offset(offset).rw_flags(flags).build(),
    }
}

fn operation_name(direction: Direction) -> &'static str {
    match direction {
        Direction::Write => "io_uring write",
        Direction::Read => "io_uring read",
    }
}

fn set_error(moved: &mut StepResult<u64>, fault: StepError) {
    if moved.is_ok() {
        *moved = Err(fault);
    }
}
