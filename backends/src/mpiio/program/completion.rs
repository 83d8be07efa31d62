//! Calls that complete or query requests.
//!
//! A test that found a completion in the recording is repeated until it finds one in the replay, and a call that completed some of
//! several requests until those are complete. Requests that complete earlier are remembered for the calls that completed them in
//! the recording.

use beff_ffi::replay::requests::{MultiCompletion, RequestArray};
use beff_ffi::replay::{Request, ReturnCode, Status, TimedCall};
use beff_trace::{Completion, ErrorClass, Function};

use super::executor::{record_call, skip_call};
use super::prepared_call::RequestList;
use super::requests::{RequestState, RequestTable};
use crate::program::slot_numbers::NO_SLOT;
use crate::program::StepOutcome;

/// Time limits for the repetition of tests.
#[derive(Clone, Copy, Debug)]
pub(super) struct PollLimits {
    /// For Test, Testany, Testall and Testsome, in ns.
    test_ns: u64,
    /// For Request_get_status, and reads cut off by the end of the file, which never succeed in some libraries.
    status_ns: u64,
}

impl Default for PollLimits {
    fn default() -> Self {
        Self { test_ns: 60_000_000_000, status_ns: 2_000_000_000 }
    }
}

impl PollLimits {
    fn limit_mut(&mut self, function: Function) -> &mut u64 {
        match function {
            Function::Test | Function::Testany | Function::Testall | Function::Testsome => &mut self.test_ns,
            _ => &mut self.status_ns,
        }
    }

    /// True within the limit. Once exceeded, a fiftieth of it remains, at least a millisecond.
    fn may_poll_again(&mut self, (function, endless): (Function, bool), first_ns: u64, now_ns: u64) -> bool {
        let left = if endless { &mut self.status_ns } else { self.limit_mut(function) };
        if now_ns - first_ns < *left {
            return true;
        }
        *left = (*left / 50).max(1_000_000);
        false
    }
}

#[derive(Debug, Default)]
pub(super) struct CompletionCalls {
    pub(super) request_list: RequestArray,
    pub(super) poll_limits: PollLimits,
}

/// Outcome of a test that never found the recorded completion.
fn set_pending_error(outcome: &mut StepOutcome) {
    outcome.error = ErrorClass::from_name("MPI_ERR_PENDING");
}

/// Moves the remembered completions of the slots to the outcome.
fn report_completions(
    flight: &mut RequestTable,
    slots: &[u32],
    buffer: &mut Vec<Completion>,
    outcome: &mut StepOutcome,
) {
    std::mem::swap(buffer, &mut outcome.completions);
    let mut places = slots.iter();
    outcome.completions.retain_mut(|completion| {
        let Some(slot) = places.next().filter(|slot| **slot != NO_SLOT) else {
            // Never started in the replay.
            completion.error = ErrorClass::from_name("MPI_ERR_REQUEST");
            return true;
        };
        let it = &mut flight.slots[*slot as usize];
        match it.state {
            RequestState::Pending => false,
            RequestState::Complete { bytes, error } => {
                (completion.bytes, completion.error) = (bytes, error);
                it.state = RequestState::Empty;
                true
            }
            RequestState::Empty => {
                completion.error = ErrorClass::from_name("MPI_ERR_REQUEST");
                true
            }
        }
    });
}

impl CompletionCalls {
    pub(super) fn call_on_request(
        &mut self,
        flight: &mut RequestTable,
        (function, slot, expects, endless): (Function, u32, bool, bool),
        buffer: &mut Vec<Completion>,
        outcome: &mut StepOutcome,
    ) -> ReturnCode {
        match function {
            Function::Wait => {
                let mut status = Status::empty();
                let timed = flight.slots[slot as usize].request.wait(&mut status);
                let code = record_call(timed, outcome);
                self.record_completion(flight, slot, &status, code);
                if expects {
                    report_completions(flight, &[slot], buffer, outcome);
                }
                code
            }
            Function::Test => self.test(flight, (slot, endless), expects, buffer, outcome),
            Function::RequestFree if flight.slots[slot as usize].request.is_pending() => {
                let timed = flight.slots[slot as usize].request.free();
                flight.free(slot);
                record_call(timed, outcome)
            }
            Function::Cancel if flight.slots[slot as usize].request.is_pending() => {
                record_call(flight.slots[slot as usize].request.cancel(), outcome)
            }
            // After an early completion: MPI does not free or cancel a null request.
            Function::RequestFree | Function::Cancel => skip_call(None, outcome),
            _ => self.get_status(flight, slot, expects, buffer, outcome),
        }
    }

    fn record_completion(&mut self, flight: &mut RequestTable, slot: u32, status: &Status, code: ReturnCode) {
        if flight.slots[slot as usize].state == RequestState::Pending {
            flight.complete(slot, status, code);
        }
    }

    fn test(
        &mut self,
        flight: &mut RequestTable,
        (slot, endless): (u32, bool),
        expects: bool,
        buffer: &mut Vec<Completion>,
        outcome: &mut StepOutcome,
    ) -> ReturnCode {
        let (mut status, mut first_ns) = (Status::empty(), None);
        loop {
            let (timed, done) = flight.slots[slot as usize].request.test(&mut status);
            let first_ns = *first_ns.get_or_insert(timed.begin_ns);
            let ends = done || !expects || !timed.code.is_success();
            if !ends && self.poll_limits.may_poll_again((Function::Test, endless), first_ns, timed.end_ns) {
                outcome.polls += 1;
                continue;
            }
            let code = record_call(timed, outcome);
            if done || !code.is_success() {
                self.record_completion(flight, slot, &status, code);
            }
            outcome.number = Some(i64::from(done));
            if !ends {
                set_pending_error(outcome);
                if endless {
                    flight.abandon(slot);
                }
            } else if expects {
                report_completions(flight, &[slot], buffer, outcome);
            }
            return code;
        }
    }

    fn get_status(
        &mut self,
        flight: &mut RequestTable,
        slot: u32,
        expects: bool,
        buffer: &mut Vec<Completion>,
        outcome: &mut StepOutcome,
    ) -> ReturnCode {
        let (mut status, mut first_ns) = (Status::empty(), None);
        let it = &flight.slots[slot as usize];
        loop {
            let (timed, done) = it.request.get_status(&mut status);
            let first_ns = *first_ns.get_or_insert(timed.begin_ns);
            let ends = done || !expects || !timed.code.is_success();
            if !ends && self.poll_limits.may_poll_again((Function::RequestGetStatus, false), first_ns, timed.end_ns) {
                outcome.polls += 1;
                continue;
            }
            let code = record_call(timed, outcome);
            outcome.number = Some(i64::from(done));
            if !ends {
                set_pending_error(outcome);
            }
            if done {
                std::mem::swap(buffer, &mut outcome.completions);
                for completion in &mut outcome.completions {
                    completion.bytes = match it.state {
                        RequestState::Complete { bytes, .. } => bytes,
                        _ => status.bytes(),
                    };
                }
            }
            return code;
        }
    }

    /// `slots` are those of the lists.
    pub(super) fn call_on_list(
        &mut self,
        flight: &mut RequestTable,
        list: &RequestList,
        slots: &[u32],
        buffer: &mut Vec<Completion>,
        outcome: &mut StepOutcome,
    ) -> ReturnCode {
        let (all, recorded) = (&slots[list.slots.clone()], &slots[list.recorded_slots.clone()]);
        let mut first_ns = None;
        let waits = matches!(list.function, Function::Waitany | Function::Waitsome | Function::Waitall);
        let stays = keeps_requests(list.function);
        let code = loop {
            let left = |flight: &RequestTable| {
                recorded.iter().any(|slot| flight.slots[*slot as usize].state == RequestState::Pending)
            };
            // A wait without outstanding recorded completions must not wait for other requests.
            let empty = waits && list.function != Function::Waitall && !left(flight);
            self.gather_requests(flight, all, empty);
            let Some(found) = self.call_function(list.function) else {
                self.restore_pending(flight, all);
                return skip_call(ErrorClass::from_name("MPI_ERR_UNSUPPORTED_OPERATION"), outcome);
            };
            if !stays {
                self.record_completions(flight, all, list.function, &found);
            }
            self.restore_pending(flight, all);
            let begin_ns = *first_ns.get_or_insert(found.timed.begin_ns);
            let found_it = if stays || list.function == Function::Testall { found.flag } else { !left(flight) };
            // Waitall, and a wait without pending requests, report everything at once.
            let last = list.function == Function::Waitall || (waits && found.count == 0);
            let ends = found_it || last || !list.found_when_recorded || !found.timed.code.is_success();
            if !ends
                && (waits
                    || self.poll_limits.may_poll_again(
                        (list.function, list.never_completes),
                        begin_ns,
                        found.timed.end_ns,
                    ))
            {
                outcome.polls += u64::from(!found.flag);
                continue;
            }
            // The time of a wait covers all its calls, that of a test the last one, as recorded.
            let begin_ns = if waits { begin_ns } else { found.timed.begin_ns };
            let code = record_call(TimedCall { begin_ns, ..found.timed }, outcome);
            if !ends {
                set_pending_error(outcome);
            }
            break code;
        };
        if list.found_when_recorded && !stays {
            report_completions(flight, recorded, buffer, outcome);
        } else if stays && list.found_when_recorded {
            std::mem::swap(buffer, &mut outcome.completions);
        }
        if list.never_completes && outcome.error.is_some() {
            recorded.iter().for_each(|slot| flight.abandon(*slot));
        }
        code
    }

    fn call_function(&mut self, function: Function) -> Option<MultiCompletion> {
        let several = &mut self.request_list;
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

    /// Requests of the slots, or null requests if `empty`.
    fn gather_requests(&mut self, flight: &mut RequestTable, slots: &[u32], empty: bool) {
        self.request_list.requests.clear();
        let request = |slot: &u32| if empty { Request::null() } else { flight.slots[*slot as usize].request.take() };
        self.request_list.requests.extend(slots.iter().map(request));
    }

    fn restore_pending(&mut self, flight: &mut RequestTable, slots: &[u32]) {
        for (request, slot) in self.request_list.requests.iter_mut().zip(slots) {
            if request.is_pending() {
                flight.slots[*slot as usize].request = request.take();
            }
        }
    }

    fn record_completions(
        &self,
        flight: &mut RequestTable,
        slots: &[u32],
        function: Function,
        found: &MultiCompletion,
    ) {
        if !found.flag && found.timed.code.is_success() {
            return;
        }
        let in_status = found.timed.code.is_in_status();
        let code_of = |status: &Status| if in_status { status.code() } else { found.timed.code };
        let take = |flight: &mut RequestTable, place: usize, status: &Status| {
            let pending = self.request_list.requests[place].is_pending();
            if !pending && flight.slots[slots[place] as usize].state == RequestState::Pending {
                flight.complete(slots[place], status, code_of(status));
            }
        };
        let RequestArray { statuses, indices: done, .. } = &self.request_list;
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

/// True for functions that do not deallocate the requests.
fn keeps_requests(function: Function) -> bool {
    matches!(function, Function::RequestGetStatusAny | Function::RequestGetStatusAll | Function::RequestGetStatusSome)
}
