//! Where data accesses go in their file: the tracker of profiles, fed with the steps as they come.

use std::mem::ManuallyDrop;

use beff_trace::layout::Layouts;
use beff_trace::places::{Access, Placed, Tracker};
use beff_trace::{Call, Form, Function, Pointer, Role};

/// A tracker with the layouts that it looks at.
pub(super) struct Positions {
    /// Borrows from `layouts`, and is dropped before it.
    tracker: ManuallyDrop<Tracker<'static>>,
    /// Made by `Box::into_raw`.
    layouts: *mut Layouts,
}

impl Positions {
    pub(super) fn new(layouts: Layouts) -> Self {
        let layouts = Box::into_raw(Box::new(layouts));
        // SAFETY: the allocation lives until the drop of this value, which drops the tracker first, and nothing ever has it mutably.
        // The tracker is never handed out, so that no copy of the reference leaves this module with its long lifetime.
        let tracker = Tracker::new(unsafe { &*layouts });
        Self { tracker: ManuallyDrop::new(tracker), layouts }
    }

    pub(super) fn layouts(&self) -> &Layouts {
        // SAFETY: see `new`; the borrow ends before the drop.
        unsafe { &*self.layouts }
    }

    /// Where a data access goes; moves the pointer. The second half of a split access goes nowhere: None.
    ///
    /// # Errors
    /// Why that is not known.
    pub(super) fn place(&mut self, call: &Call) -> Result<Option<Access>, &'static str> {
        let placed = if call.error.is_some() { self.place_failed(call) } else { self.tracker.place(call) };
        match placed {
            Placed::Data(access) => Ok(Some(access)),
            Placed::Unknown { reason, .. } => Err(reason),
            Placed::Ends(_) | Placed::Nothing => Ok(None),
        }
    }

    /// One that failed when it was recorded goes where it would have gone, and changes nothing.
    fn place_failed(&mut self, call: &Call) -> Placed {
        let Role::Data { pointer, form, .. } = call.function.role() else { return Placed::Nothing };
        if form == Form::End {
            return self.tracker.place(call);
        }
        let tried = Call { error: None, bytes: None, request: None, ..call.clone() };
        if pointer == Pointer::Individual || form == Form::Begin {
            return self.tracker.clone().place(&tried);
        }
        self.tracker.place(&tried)
    }

    /// Follows any other call.
    pub(super) fn follow(&mut self, call: &Call) {
        self.tracker.place(call);
        if call.function == Function::RequestFree {
            for request in &call.requests {
                self.tracker.forget(*request);
            }
        }
        for completion in &call.completions {
            self.tracker.completed(completion);
        }
    }

    /// What a question about the view is answered, as far as that follows from the calls before.
    pub(super) fn answer(&mut self, call: &Call) -> Option<i64> {
        match call.function {
            Function::GetTypeExtent => call.datatype.map(|of| self.layouts().extent(of)),
            Function::GetAtomicity => Some(0),
            Function::GetPosition => {
                let at = self.probe(call, Function::Read, None)?.first_byte;
                let etype_bytes = self.probe(call, Function::ReadAt, Some(1))?.first_byte;
                i64::try_from(at.checked_div(etype_bytes)?).ok()
            }
            Function::GetByteOffset => {
                let access = self.probe(call, Function::ReadAt, call.offset)?;
                let base = access.view.displacement_bytes;
                match access.view.filetype {
                    Some(of) => self.layouts().walk(of, access.first_byte, 1, base).next().map(|extent| extent.at),
                    None => base.checked_add_unsigned(access.first_byte),
                }
            }
            _ => None,
        }
    }

    /// Where an access of no bytes would go; it moves no pointer.
    fn probe(&mut self, call: &Call, function: Function, offset: Option<i64>) -> Option<Access> {
        let mut probe = Call::new(function, call.begin_ns, call.end_ns);
        (probe.handle, probe.offset, probe.count, probe.bytes) = (call.handle, offset, Some(0), Some(0));
        match self.tracker.place(&probe) {
            Placed::Data(access) => Some(access),
            _ => None,
        }
    }
}

impl std::fmt::Debug for Positions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Positions").field("tracker", &*self.tracker).finish_non_exhaustive()
    }
}

impl Drop for Positions {
    fn drop(&mut self) {
        // SAFETY: dropped once, here, and not used afterwards; nothing else borrows the layouts, which `Box::into_raw` gave.
        unsafe {
            ManuallyDrop::drop(&mut self.tracker);
            drop(Box::from_raw(self.layouts));
        }
    }
}
