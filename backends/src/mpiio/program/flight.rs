//! What is under way: requests in slots, and the memory that they use.

use std::mem::ManuallyDrop;
use std::time::Duration;

use beff_ffi::replay::{now_ns, Code, Request, Status};
use beff_trace::ErrorClass;

use crate::program::memory::{Landing, Memory};
use crate::program::numbers::NOBODY;

/// How long the end waits for what the program left pending, in ns.
const LAST_PATIENCE_NS: u64 = 30_000_000_000;

/// What became of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing was begun, or its end has been told.
    #[default]
    Empty,
    Pending,
    /// It has ended, and the call that told so when it was recorded is still to come.
    Done {
        bytes: Option<u64>,
        error: Option<ErrorClass>,
    },
}

#[derive(Debug)]
pub(super) struct Slot {
    pub(super) request: Request,
    landing: Option<Landing>,
    pub(super) state: State,
}

impl Slot {
    fn empty() -> Self {
        Self { request: Request::none(), landing: None, state: State::Empty }
    }
}

/// Requests and their memory. Dropped, it waits for them; what cannot be waited for keeps its memory for ever.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) slots: Vec<Slot>,
    /// Pending requests without a slot: begun though they failed when they were recorded, or never completed.
    lost: Vec<Slot>,
    memory: ManuallyDrop<Memory>,
    /// Something may use the memory, and nobody can know how long.
    for_ever: bool,
}

impl Flight {
    pub(super) fn new(memory: Memory) -> Self {
        Self { slots: vec![Slot::empty()], lost: Vec::new(), memory: ManuallyDrop::new(memory), for_ever: false }
    }

    /// Room for so many slots, and accesses under way besides.
    pub(super) fn reserve(&mut self, slots: usize, besides: usize) {
        if self.slots.len() < slots {
            self.slots.resize_with(slots, Slot::empty);
        }
        self.memory.reserve(slots + besides);
    }

    pub(super) fn memory(&mut self) -> &mut Memory {
        &mut self.memory
    }

    pub(super) fn memory_ref(&self) -> &Memory {
        &self.memory
    }

    /// The memory of something stays in use: a request that was freed, a split collective call that was not ended.
    pub(super) fn keep_for_ever(&mut self) {
        self.for_ever = true;
    }

    /// A request that was begun.
    pub(super) fn begun(&mut self, slot: u32, request: Request, landing: Option<Landing>) {
        let mut new = Slot { request, landing, state: State::Pending };
        if slot != NOBODY {
            // What was never completed makes room for the next request.
            std::mem::swap(&mut new, &mut self.slots[slot as usize]);
        }
        if new.state == State::Pending {
            self.lost.push(new);
        }
    }

    /// A request that could not be begun.
    pub(super) fn failed(&mut self, slot: u32, error: Option<ErrorClass>) {
        if slot != NOBODY {
            let old = std::mem::replace(&mut self.slots[slot as usize], Slot::empty());
            self.slots[slot as usize].state = State::Done { bytes: None, error };
            if old.state == State::Pending {
                self.lost.push(old);
            }
        }
    }

    /// A request that is complete, unless MPI has kept it.
    pub(super) fn completed(&mut self, slot: u32, status: &Status, code: Code) {
        let it = &mut self.slots[slot as usize];
        if it.request.is_pending() {
            return;
        }
        let bytes = if code.is_success() { status.bytes() } else { None };
        it.state = State::Done { bytes, error: code.class() };
        if let Some(landing) = it.landing.take() {
            self.memory.end(landing);
        }
    }

    /// A request that was freed: nobody can know when its transfer ends.
    pub(super) fn freed(&mut self, slot: u32) {
        let it = &mut self.slots[slot as usize];
        if !it.request.is_pending() {
            it.state = State::Empty;
            // Its part of the landing area stays under way.
            it.landing = None;
            self.for_ever = true;
        }
    }

    /// A request that the library will never complete: its memory stays in use for ever.
    pub(super) fn give_up(&mut self, slot: u32) {
        let it = &mut self.slots[slot as usize];
        if it.state == State::Pending {
            *it = Slot::empty();
            self.for_ever = true;
        }
    }

    /// Completes what is pending. How many could not be.
    pub(super) fn complete_all(&mut self) -> (usize, Option<Code>) {
        let (begin, mut first) = (now_ns(), None);
        loop {
            let mut left = 0;
            for it in self.slots.iter_mut().chain(&mut self.lost).filter(|it| it.state == State::Pending) {
                let (timed, _) = it.request.test(&mut Status::none());
                if !timed.code.is_success() {
                    first = first.or(Some(timed.code));
                }
                if it.request.is_pending() {
                    left += 1;
                    continue;
                }
                it.state = State::Empty;
                if let Some(landing) = it.landing.take() {
                    self.memory.end(landing);
                }
            }
            if left == 0 || now_ns() - begin > LAST_PATIENCE_NS {
                return (left, first);
            }
            std::thread::sleep(Duration::from_micros(100));
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let (left, _) = self.complete_all();
        if left == 0 && !self.for_ever {
            // SAFETY: dropped once, here; nothing uses the memory: every request that was begun has been completed.
            unsafe { ManuallyDrop::drop(&mut self.memory) };
        }
    }
}
