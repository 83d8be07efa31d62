//! Results that a workload written by hand omits, because they follow from its calls.

use std::collections::HashMap;

use crate::layout::TypeLayouts;
use crate::{AccessForm, Call, Completion, Direction, Function, Role};

pub use crate::merge::workload::{derive_order, WorkloadError, MAX_DERIVED_CALLS};

/// Completes the calls of one rank, in their order: every access transfers what was requested, and MPI_Wait, MPI_Waitall and MPI_Waitsome
/// complete all of their requests, MPI_Waitany the first.
pub struct ResultCompletion<'a> {
    layouts: &'a TypeLayouts,
    completes_reads: bool,
    requests: HashMap<u64, PendingAccess>,
    splits: HashMap<u32, PendingAccess>,
}

#[derive(Clone, Copy)]
struct PendingAccess {
    direction: Direction,
    bytes: u64,
}

impl<'a> ResultCompletion<'a> {
    /// Before the first call of a rank. Without `completes_reads` the bytes of reads, which depend on the size of the file, stay unknown.
    #[must_use]
    pub fn new(layouts: &'a TypeLayouts, completes_reads: bool) -> Self {
        Self { layouts, completes_reads, requests: HashMap::new(), splits: HashMap::new() }
    }

    /// Completes the next call.
    pub fn complete(&mut self, call: &mut Call) {
        match call.function.role() {
            Role::Data { direction, form, .. } if call.error.is_none() => self.complete_access(call, direction, form),
            Role::Request if call.error.is_none() => self.complete_requests(call),
            _ => {}
        }
    }

    fn complete_access(&mut self, call: &mut Call, direction: Direction, form: AccessForm) {
        let requested = || {
            let count = u64::try_from(call.count?).ok()?;
            count.checked_mul(self.layouts.size(call.datatype?))
        };
        let access = requested().map(|bytes| PendingAccess { direction, bytes });
        let ended = match (form, call.request, call.handle) {
            (AccessForm::Nonblocking, Some(request), _) => {
                self.requests.extend(access.map(|access| (request, access)));
                return;
            }
            (AccessForm::Begin, _, Some(handle)) => {
                self.splits.extend(access.map(|access| (handle, access)));
                return;
            }
            (AccessForm::End, _, Some(handle)) => self.splits.remove(&handle),
            (AccessForm::Blocking, ..) => access,
            _ => None,
        };
        call.bytes = call.bytes.or(ended.and_then(|access| self.known_bytes(access)));
    }

    fn complete_requests(&mut self, call: &mut Call) {
        let completed = match call.function {
            Function::Wait | Function::Waitall | Function::Waitsome => call.requests.len(),
            Function::Waitany => 1,
            _ => 0,
        };
        if call.completions.is_empty() {
            let done = |request: &u64| Completion { request: *request, bytes: None, error: None };
            call.completions = call.requests.iter().take(completed).map(done).collect();
        }
        for completion in &mut call.completions {
            let access = self.requests.remove(&completion.request).filter(|_| completion.error.is_none());
            completion.bytes = completion.bytes.or(access.and_then(|access| self.known_bytes(access)));
        }
    }

    fn known_bytes(&self, access: PendingAccess) -> Option<u64> {
        (self.completes_reads || access.direction == Direction::Write).then_some(access.bytes)
    }
}
