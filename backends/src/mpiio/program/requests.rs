//! Pending requests in slots, and the memory that they use.

use std::mem::ManuallyDrop;
use std::time::Duration;

use beff_ffi::replay::{now_ns, Request, ReturnCode, Status};
use beff_trace::ErrorClass;

use crate::program::memory::{AccessId, ProgramMemory};
use crate::program::slot_numbers::NO_SLOT;

/// Time limit for requests that the program left pending, in ns.
const FINISH_TIMEOUT_NS: u64 = 30_000_000_000;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum RequestState {
    /// Not started, or its completion was reported.
    #[default]
    Empty,
    Pending,
    /// Complete; the call that completed it in the recording is still to come.
    Complete {
        bytes: Option<u64>,
        error: Option<ErrorClass>,
    },
}

#[derive(Debug)]
pub(super) struct RequestSlot {
    pub(super) request: Request,
    access: Option<AccessId>,
    pub(super) state: RequestState,
}

impl RequestSlot {
    fn empty() -> Self {
        Self { request: Request::null(), access: None, state: RequestState::Empty }
    }
}

/// Requests and their memory. Drop waits for the requests; memory that a request may still use is leaked.
#[derive(Debug)]
pub(super) struct RequestTable {
    pub(super) slots: Vec<RequestSlot>,
    /// Pending requests without a slot: recorded as failed, or never completed.
    unslotted: Vec<RequestSlot>,
    memory: ManuallyDrop<ProgramMemory>,
    /// The memory may stay in use for an unknown time.
    leaks_memory: bool,
}

impl RequestTable {
    pub(super) fn new(memory: ProgramMemory) -> Self {
        Self {
            slots: vec![RequestSlot::empty()],
            unslotted: Vec::new(),
            memory: ManuallyDrop::new(memory),
            leaks_memory: false,
        }
    }

    /// Reserves slots, and `besides` memory accesses.
    pub(super) fn reserve(&mut self, slots: usize, besides: usize) {
        if self.slots.len() < slots {
            self.slots.resize_with(slots, RequestSlot::empty);
        }
        self.memory.reserve(slots + besides);
    }

    pub(super) fn memory(&mut self) -> &mut ProgramMemory {
        &mut self.memory
    }

    pub(super) fn memory_ref(&self) -> &ProgramMemory {
        &self.memory
    }

    /// For a freed request, or a split collective call without an end.
    pub(super) fn leak_memory(&mut self) {
        self.leaks_memory = true;
    }

    pub(super) fn insert(&mut self, slot: u32, request: Request, landing: Option<AccessId>) {
        let mut new = RequestSlot { request, access: landing, state: RequestState::Pending };
        if slot != NO_SLOT {
            // A request never completed leaves the slot.
            std::mem::swap(&mut new, &mut self.slots[slot as usize]);
        }
        if new.state == RequestState::Pending {
            self.unslotted.push(new);
        }
    }

    /// Stores the error of a request that could not be started.
    pub(super) fn insert_failed(&mut self, slot: u32, error: Option<ErrorClass>) {
        if slot != NO_SLOT {
            let old = std::mem::replace(&mut self.slots[slot as usize], RequestSlot::empty());
            self.slots[slot as usize].state = RequestState::Complete { bytes: None, error };
            if old.state == RequestState::Pending {
                self.unslotted.push(old);
            }
        }
    }

    /// Completes a request that MPI has released.
    pub(super) fn complete(&mut self, slot: u32, status: &Status, code: ReturnCode) {
        let it = &mut self.slots[slot as usize];
        if it.request.is_pending() {
            return;
        }
        let bytes = if code.is_success() { status.bytes() } else { None };
        it.state = RequestState::Complete { bytes, error: code.class() };
        if let Some(landing) = it.access.take() {
            self.memory.end_access(landing);
        }
    }

    /// The end of a freed request's transfer is unknown.
    pub(super) fn free(&mut self, slot: u32) {
        let it = &mut self.slots[slot as usize];
        if !it.request.is_pending() {
            it.state = RequestState::Empty;
            // Its part of the landing area stays in use.
            it.access = None;
            self.leaks_memory = true;
        }
    }

    /// For a request that the library will never complete.
    pub(super) fn abandon(&mut self, slot: u32) {
        let it = &mut self.slots[slot as usize];
        if it.state == RequestState::Pending {
            *it = RequestSlot::empty();
            self.leaks_memory = true;
        }
    }

    /// Returns the number of requests that stay pending, and the first error.
    pub(super) fn complete_all(&mut self) -> (usize, Option<ReturnCode>) {
        let (begin, mut first) = (now_ns(), None);
        loop {
            let mut left = 0;
            for it in self.slots.iter_mut().chain(&mut self.unslotted).filter(|it| it.state == RequestState::Pending) {
                let (timed, _) = it.request.test(&mut Status::empty());
                if !timed.code.is_success() {
                    first = first.or(Some(timed.code));
                }
                if it.request.is_pending() {
                    left += 1;
                    continue;
                }
                it.state = RequestState::Empty;
                if let Some(landing) = it.access.take() {
                    self.memory.end_access(landing);
                }
            }
            if left == 0 || now_ns() - begin > FINISH_TIMEOUT_NS {
                return (left, first);
            }
            std::thread::sleep(Duration::from_micros(100));
        }
    }
}

impl Drop for RequestTable {
    fn drop(&mut self) {
        let (left, _) = self.complete_all();
        if left == 0 && !self.leaks_memory {
            // SAFETY: dropped once, here; nothing uses the memory: every started request has been completed.
            unsafe { ManuallyDrop::drop(&mut self.memory) };
        }
    }
}
