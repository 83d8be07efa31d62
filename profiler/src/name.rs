//! By which name a function was called, and whether that call is recorded.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

use beff_trace::{Call, Function};

use crate::mpi::class;
use crate::thread::Inside;

static WITHOUT_PMPI: AtomicBool = AtomicBool::new(false);

/// True if calls by `PMPI_` names are not recorded.
#[inline(always)]
pub fn without_pmpi() -> bool {
    WITHOUT_PMPI.load(Ordering::Relaxed)
}

/// From now on calls by `PMPI_` names are not recorded, if `yes`.
pub fn without_pmpi_from_here(yes: bool) {
    WITHOUT_PMPI.fetch_or(yes, Ordering::Relaxed);
}

/// At the load of the library: whether calls by `PMPI_` names are recorded.
pub fn loaded() {
    without_pmpi_from_here(std::env::var_os("BEFF_PROFILE_PMPI").is_some_and(|value| value == "0"));
}

/// Which function, and by which of its names.
#[derive(Clone, Copy)]
pub struct Name {
    pub function: Function,
    pub large: bool,
    pub pmpi: bool,
}

impl Name {
    /// Begins to record a call. None: it is only passed on.
    #[inline(always)]
    pub fn enter(self) -> Option<Inside> {
        if self.pmpi && without_pmpi() {
            return None;
        }
        Inside::enter()
    }

    /// A call without arguments.
    pub fn call(self, begin: u64, end: u64, code: c_int) -> Call {
        let mut call = Call::new(self.function, begin, end);
        call.large = self.large;
        call.error = (code != 0).then(|| class(code));
        call
    }
}
