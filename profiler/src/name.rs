//! Name under which a function was called, and whether the call is recorded.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

use beff_trace::{Call, Function};

use crate::mpi::error_class;
use crate::thread::CallGuard;

static PMPI_EXCLUDED: AtomicBool = AtomicBool::new(false);

#[inline(always)]
pub fn is_pmpi_excluded() -> bool {
    PMPI_EXCLUDED.load(Ordering::Relaxed)
}

/// Excludes calls by `PMPI_` names from now on, if `yes`.
pub fn exclude_pmpi(yes: bool) {
    PMPI_EXCLUDED.fetch_or(yes, Ordering::Relaxed);
}

pub fn on_load() {
    exclude_pmpi(std::env::var_os("BEFF_PROFILE_PMPI").is_some_and(|value| value == "0"));
}

/// A function and its called name.
#[derive(Clone, Copy)]
pub struct Name {
    pub function: Function,
    pub large: bool,
    pub pmpi: bool,
}

impl Name {
    /// Begins to record a call. None if it is only passed on.
    #[inline(always)]
    pub fn enter(self) -> Option<CallGuard> {
        if self.pmpi && is_pmpi_excluded() {
            return None;
        }
        CallGuard::enter()
    }

    /// A call without arguments.
    pub fn new_call(self, begin: u64, end: u64, code: c_int) -> Call {
        let mut call = Call::new(self.function, begin, end);
        call.large_count = self.large;
        call.error = (code != 0).then(|| error_class(code));
        call
    }
}
