//! Makes the calls that complete requests, or ask about them.
//!
//! A test that found something is repeated until it does so here, and a call that completed some of several requests until those
//! have been completed: a replay is free to complete others first, which is remembered for the calls that did so when they were
//! recorded.

use beff_ffi::replay::requests::{Found, Several};
use beff_ffi::replay::{Code, Request, Status, Timed};
use beff_trace::{Completion, ErrorClass, Function};

use super::flight::{Flight, State};
use super::machine::{not_made, tell};
use super::ready::List;
use crate::program::numbers::NOBODY;
use crate::program::Outcome;

/// How long tests are repeated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// Of Test and its like, in ns.
    test_ns: u64,
    /// Of Request_get_status, and of reads cut off by the end of the file: some libraries never let these succeed.
    status_ns: u64,
}

impl Default for Patience {
    fn default() -> Self {
        Self { test_ns: 60_000_000_000, status_ns: 2_000_000_000 }
    }
}

impl Patience {
    fn of(&mut self, function: Function) -> &mut u64 {
        match function {
            Function::Test | Function::Testany | Function::Testall | Function::Testsome => &mut self.test_ns,
            _ => &mut self.status_ns,
        }
    }

    /// True while it is worth asking again. Lost once, there is only a fiftieth of it left, at least a millisecond.
    fn lasts(&mut self, (function, endless): (Function, bool), first_ns: u64, now_ns: u64) -> bool {
        let left = if endless { &mut self.status_ns } else { self.of(function) };
        if now_ns - first_ns < *left {
            return true;
        }
        *left = (*left / 50).max(1_000_000);
        false
    }
}

/// What asking needs beside the requests.
#[derive(Debug, Default)]
pub(super) struct Asking {
    pub(super) several: Several,
    pub(super) patience: Patience,
}

/// What the outcome of a test is that never found what it found when it was recorded.
fn out_of_patience(outcome: &mut Outcome) {
    outcome.error = ErrorClass::named("MPI_ERR_PENDING");
}

/// Moves what is remembered of the slots to the outcome, in the room that has their numbers.
fn tell_completions(flight: &mut Flight, slots: &[u32], room: &mut Vec<Completion>, outcome: &mut Outcome) {
    std::mem::swap(room, &mut outcome.completions);
    let mut places = slots.iter();
    outcome.completions.retain_mut(|told| {
        let Some(slot) = places.next().filter(|slot| **slot != NOBODY) else {
            // It was never begun here.
            told.error = ErrorClass::named("MPI_ERR_REQUEST");
            return true;
        };
        let it = &mut flight.slots[*slot as usize];
        match it.state {
            State::Pending => false,
            State::Done { bytes, error } => {
                (told.bytes, told.error) = (bytes, error);
                it.state = State::Empty;
                true
            }
            State::Empty => {
                told.error = ErrorClass::named("MPI_ERR_REQUEST");
                true
            }
        }
    });
}

impl Asking {
    /// A call on one request.
    pub(super) fn one(
        &mut self,
        flight: &mut Flight,
        (function, slot, expects, endless): (Function, u32, bool, bool),
        room: &mut Vec<Completion>,
        outcome: &mut Outcome,
    ) -> Code {
        match function {
            Function::Wait => {
                let mut status = Status::none();
                let timed = flight.slots[slot as usize].request.wait(&mut status);
                let code = tell(timed, outcome);
                self.ended(flight, slot, &status, code);
                if expects {
                    tell_completions(flight, &[slot], room, outcome);
                }
                code
            }
            Function::Test => self.test(flight, (slot, endless), expects, room, outcome),
            Function::RequestFree if flight.slots[slot as usize].request.is_pending() => {
                let timed = flight.slots[slot as usize].request.free();
                flight.freed(slot);
                tell(timed, outcome)
            }
            Function::Cancel if flight.slots[slot as usize].request.is_pending() => {
                tell(flight.slots[slot as usize].request.cancel(), outcome)
            }
            // What came early is gone, and MPI refuses to free or cancel no request.
            Function::RequestFree | Function::Cancel => not_made(None, outcome),
            _ => self.get_status(flight, slot, expects, room, outcome),
        }
    }

    /// Remembers what a call on one pending request told of it.
    fn ended(&mut self, flight: &mut Flight, slot: u32, status: &Status, code: Code) {
        if flight.slots[slot as usize].state == State::Pending {
            flight.completed(slot, status, code);
        }
    }

    fn test(
        &mut self,
        flight: &mut Flight,
        (slot, endless): (u32, bool),
        expects: bool,
        room: &mut Vec<Completion>,
        outcome: &mut Outcome,
    ) -> Code {
        let (mut status, mut first_ns) = (Status::none(), None);
        loop {
            let (timed, done) = flight.slots[slot as usize].request.test(&mut status);
            let first_ns = *first_ns.get_or_insert(timed.begin_ns);
            let ends = done || !expects || !timed.code.is_success();
            if !ends && self.patience.lasts((Function::Test, endless), first_ns, timed.end_ns) {
                outcome.polls += 1;
                continue;
            }
            let code = tell(timed, outcome);
            if done || !code.is_success() {
                self.ended(flight, slot, &status, code);
            }
            outcome.number = Some(i64::from(done));
            if !ends {
                out_of_patience(outcome);
                if endless {
                    flight.give_up(slot);
                }
            } else if expects {
                tell_completions(flight, &[slot], room, outcome);
            }
            return code;
        }
    }

    fn get_status(
        &mut self,
        flight: &mut Flight,
        slot: u32,
        expects: bool,
        room: &mut Vec<Completion>,
        outcome: &mut Outcome,
    ) -> Code {
        let (mut status, mut first_ns) = (Status::none(), None);
        let it = &flight.slots[slot as usize];
        loop {
            let (timed, done) = it.request.get_status(&mut status);
            let first_ns = *first_ns.get_or_insert(timed.begin_ns);
            let ends = done || !expects || !timed.code.is_success();
            if !ends && self.patience.lasts((Function::RequestGetStatus, false), first_ns, timed.end_ns) {
                outcome.polls += 1;
                continue;
            }
            let code = tell(timed, outcome);
            outcome.number = Some(i64::from(done));
            if !ends {
                out_of_patience(outcome);
            }
            if done {
                std::mem::swap(room, &mut outcome.completions);
                for told in &mut outcome.completions {
                    told.bytes = match it.state {
                        State::Done { bytes, .. } => bytes,
                        _ => status.bytes(),
                    };
                }
            }
            return code;
        }
    }

    /// A call on several requests. `slots` are those of the lists.
    pub(super) fn list(
        &mut self,
        flight: &mut Flight,
        list: &List,
        slots: &[u32],
        room: &mut Vec<Completion>,
        outcome: &mut Outcome,
    ) -> Code {
        let (all, recorded) = (&slots[list.slots.clone()], &slots[list.recorded.clone()]);
        let mut first_ns = None;
        let waits = matches!(list.function, Function::Waitany | Function::Waitsome | Function::Waitall);
        let stays = stays(list.function);
        let code = loop {
            let left =
                |flight: &Flight| recorded.iter().any(|slot| flight.slots[*slot as usize].state == State::Pending);
            // A wait that found nothing among these, or whose finds came early, must not wait for others.
            let empty = waits && list.function != Function::Waitall && !left(flight);
            self.gather(flight, all, empty);
            let Some(found) = self.call(list.function) else {
                self.scatter(flight, all);
                return not_made(ErrorClass::named("MPI_ERR_UNSUPPORTED_OPERATION"), outcome);
            };
            if !stays {
                self.take_in(flight, all, list.function, &found);
            }
            self.scatter(flight, all);
            let begin_ns = *first_ns.get_or_insert(found.timed.begin_ns);
            let found_it = if stays || list.function == Function::Testall { found.any } else { !left(flight) };
            // Waitall and a wait that finds nothing pending say all they can at once.
            let last = list.function == Function::Waitall || (waits && found.count == 0);
            let ends = found_it || last || !list.expects || !found.timed.code.is_success();
            if !ends && (waits || self.patience.lasts((list.function, list.endless), begin_ns, found.timed.end_ns)) {
                outcome.polls += u64::from(!found.any);
                continue;
            }
            // The time of a wait is all of it; that of a test is that of the last one, as it is recorded.
            let begin_ns = if waits { begin_ns } else { found.timed.begin_ns };
            let code = tell(Timed { begin_ns, ..found.timed }, outcome);
            if !ends {
                out_of_patience(outcome);
            }
            break code;
        };
        if list.expects && !stays {
            tell_completions(flight, recorded, room, outcome);
        } else if stays && list.expects {
            std::mem::swap(room, &mut outcome.completions);
        }
        if list.endless && outcome.error.is_some() {
            recorded.iter().for_each(|slot| flight.give_up(*slot));
        }
        code
    }

    fn call(&mut self, function: Function) -> Option<Found> {
        let several = &mut self.several;
        match function {
            Function::Waitall => Some(several.wait_all()),
            Function::Waitany => Some(several.wait_any()),
            Function::Waitsome => Some(several.wait_some()),
            Function::Testall => Some(several.test_all()),
            Function::Testany => Some(several.test_any()),
            Function::Testsome => Some(several.test_some()),
            Function::RequestGetStatusAny => several.get_status_any(),
            Function::RequestGetStatusAll => several.get_status_all(),
            _ => several.get_status_some(),
        }
    }

    /// The requests of the slots as a list, or a list of none.
    fn gather(&mut self, flight: &mut Flight, slots: &[u32], empty: bool) {
        self.several.requests.clear();
        let request = |slot: &u32| if empty { Request::none() } else { flight.slots[*slot as usize].request.take() };
        self.several.requests.extend(slots.iter().map(request));
    }

    /// Gives back what is still pending.
    fn scatter(&mut self, flight: &mut Flight, slots: &[u32]) {
        for (request, slot) in self.several.requests.iter_mut().zip(slots) {
            if request.is_pending() {
                flight.slots[*slot as usize].request = request.take();
            }
        }
    }

    /// Remembers what was completed.
    fn take_in(&self, flight: &mut Flight, slots: &[u32], function: Function, found: &Found) {
        if !found.any && found.timed.code.is_success() {
            return;
        }
        let in_status = found.timed.code.is_in_status();
        let code_of = |status: &Status| if in_status { status.code() } else { found.timed.code };
        let take = |flight: &mut Flight, place: usize, status: &Status| {
            let pending = self.several.requests[place].is_pending();
            if !pending && flight.slots[slots[place] as usize].state == State::Pending {
                flight.completed(slots[place], status, code_of(status));
            }
        };
        let Several { statuses, done, .. } = &self.several;
        if matches!(function, Function::Waitall | Function::Testall) {
            for (place, status) in statuses.iter().enumerate().take(slots.len()) {
                take(flight, place, status);
            }
            return;
        }
        for (place, status) in done.iter().zip(statuses).take(found.count) {
            if let Ok(place) = usize::try_from(*place) {
                if place < slots.len() {
                    take(flight, place, status);
                }
            }
        }
    }
}

/// True for functions that leave the requests.
fn stays(function: Function) -> bool {
    matches!(function, Function::RequestGetStatusAny | Function::RequestGetStatusAll | Function::RequestGetStatusSome)
}
