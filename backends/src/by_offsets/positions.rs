//! File positions of data accesses, from the tracker of profiles, which follows all steps.

use std::mem::ManuallyDrop;

use beff_trace::access::{AccessTracker, CallEffect, ResolvedAccess};
use beff_trace::layout::TypeLayouts;
use beff_trace::{AccessForm, Call, Function, PointerKind, Role};

/// A tracker and the layouts it borrows.
pub(super) struct FilePositions {
    /// Borrows from `layouts`, and is dropped before it.
    tracker: ManuallyDrop<AccessTracker<'static>>,
    /// Allocated by `Box::into_raw`.
    layouts: *mut TypeLayouts,
}

impl FilePositions {
    pub(super) fn new(layouts: TypeLayouts) -> Self {
        let layouts = Box::into_raw(Box::new(layouts));
        // SAFETY: the allocation lives until the drop of this value, which drops the tracker first, and is never borrowed mutably. The
        // tracker is private, so that no copy of the reference leaves this module with its long lifetime.
        let tracker = AccessTracker::new(unsafe { &*layouts });
        Self { tracker: ManuallyDrop::new(tracker), layouts }
    }

    pub(super) fn layouts(&self) -> &TypeLayouts {
        // SAFETY: see `new`; the borrow ends before the drop.
        unsafe { &*self.layouts }
    }

    /// The position of a data access; advances the file pointer. None for the second half of a split access.
    pub(super) fn locate(&mut self, call: &Call) -> Result<Option<ResolvedAccess>, &'static str> {
        let placed = if call.error.is_some() { self.locate_failed(call) } else { self.tracker.resolve(call) };
        match placed {
            CallEffect::Access(access) => Ok(Some(access)),
            CallEffect::Unknown { reason, .. } => Err(reason),
            CallEffect::SplitEnd(_) | CallEffect::NoAccess => Ok(None),
        }
    }

    /// An access that failed when it was recorded: its intended position; the file pointer is not advanced.
    fn locate_failed(&mut self, call: &Call) -> CallEffect {
        let Role::Data { pointer, form, .. } = call.function.role() else { return CallEffect::NoAccess };
        if form == AccessForm::End {
            return self.tracker.resolve(call);
        }
        let tried = Call { error: None, bytes: None, request: None, ..call.clone() };
        if pointer == PointerKind::Individual || form == AccessForm::Begin {
            return self.tracker.clone().resolve(&tried);
        }
        self.tracker.resolve(&tried)
    }

    /// Tracks any other call.
    pub(super) fn follow(&mut self, call: &Call) {
        self.tracker.resolve(call);
        if call.function == Function::RequestFree {
            for request in &call.requests {
                self.tracker.forget(*request);
            }
        }
        for completion in &call.completions {
            self.tracker.complete(completion);
        }
    }

    /// Result of a query about the view, as far as it follows from earlier calls.
    pub(super) fn query_result(&mut self, call: &Call) -> Option<i64> {
        match call.function {
            Function::GetTypeExtent => call.datatype.map(|of| self.layouts().extent(of)),
            // The atomic mode is that of MPI.
            Function::GetAtomicity => None,
            Function::GetPosition => {
                let at = self.locate_empty(call, Function::Read, None)?.first_byte;
                let etype_bytes = self.locate_empty(call, Function::ReadAt, Some(1))?.first_byte;
                i64::try_from(at.checked_div(etype_bytes)?).ok()
            }
            Function::GetByteOffset => {
                let access = self.locate_empty(call, Function::ReadAt, call.offset)?;
                let base = access.view.displacement_bytes;
                match access.view.filetype {
                    Some(of) => {
                        self.layouts().byte_ranges(of, access.first_byte, 1, base).next().map(|extent| extent.at)
                    }
                    None => base.checked_add_unsigned(access.first_byte),
                }
            }
            _ => None,
        }
    }

    /// Position of an access of zero bytes; advances no file pointer.
    fn locate_empty(&mut self, call: &Call, function: Function, offset: Option<i64>) -> Option<ResolvedAccess> {
        let mut probe = Call::new(function, call.begin_ns, call.end_ns);
        (probe.handle, probe.offset, probe.count, probe.bytes) = (call.handle, offset, Some(0), Some(0));
        match self.tracker.resolve(&probe) {
            CallEffect::Access(access) => Some(access),
            _ => None,
        }
    }
}

impl std::fmt::Debug for FilePositions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Positions").field("tracker", &*self.tracker).finish_non_exhaustive()
    }
}

impl Drop for FilePositions {
    fn drop(&mut self) {
        // SAFETY: dropped once, here, and not used afterwards; nothing else borrows the layouts, which `Box::into_raw` returned.
        unsafe {
            ManuallyDrop::drop(&mut self.tracker);
            drop(Box::from_raw(self.layouts));
        }
    }
}
