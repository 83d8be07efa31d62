//! Locations of calls in files.

use beff_trace::access::{AccessTracker, CallEffect, ResolvedAccess};
use beff_trace::layout::TypeLayouts;
use beff_trace::{Call, Function};

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CallLocation {
    pub access: Option<ResolvedAccess>,
    /// Why the location is unknown, for a data access.
    pub unknown_reason: Option<&'static str>,
}

pub(super) struct LocationTracker<'a>(AccessTracker<'a>);

impl<'a> LocationTracker<'a> {
    /// State before the first call.
    pub fn new(layouts: &'a TypeLayouts) -> Self {
        Self(AccessTracker::new(layouts))
    }

    /// Location of the data of the next call.
    pub fn locate(&mut self, call: &Call) -> CallLocation {
        let placed = self.0.resolve(call);
        for completion in &call.completions {
            self.0.complete(completion);
        }
        if call.function == Function::RequestFree {
            call.requests.iter().for_each(|request| {
                self.0.forget(*request);
            });
        }
        match placed {
            CallEffect::Access(access) | CallEffect::SplitEnd(access) => {
                CallLocation { access: Some(access), unknown_reason: None }
            }
            CallEffect::Unknown { reason, .. } => CallLocation { access: None, unknown_reason: Some(reason) },
            CallEffect::NoAccess => CallLocation::default(),
        }
    }
}
