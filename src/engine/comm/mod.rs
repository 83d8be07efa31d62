//! b_eff inside the clock: for each pattern and size, loops of messages by each method, compared outside the clock.
//!
//! ```text
//! pilot: one ring of all ranks, every size and method once     -> what fits into the time
//! for pattern in plan:
//!     for size in 21 sizes:
//!         for repetition, for method:
//!             barrier; loop of iterations                      <- the clock
//!             compare what was received                        <- outside
//!         one common maximum over the ranks: times, signal
//!     one common sum: bytes compared, wrong, allocations
//! ```

mod bare;
mod check;
mod memory;
mod pattern;
mod pilot;
mod run;

pub use memory::Layout;
pub use pattern::Broken;
pub use run::Run;

use crate::results::comm::Method;
use beff_ffi::Way;

/// Where the run stands, told before each pattern.
#[derive(Clone, Debug)]
pub struct Standing {
    /// Name of the pattern.
    pub pattern: String,
    /// Seconds so far.
    pub done_seconds: f64,
    /// Seconds of everything, as expected now.
    pub all_seconds: f64,
    /// Best bandwidth of the last pattern at its largest size, in 1e6 bytes/s.
    pub last_mb_per_second: Option<f64>,
}

/// The calls of a method.
fn way(method: Method) -> Way {
    match method {
        Method::Sendrecv => Way::Sendrecv,
        Method::Alltoallv => Way::Alltoallv,
        Method::Nonblocking => Way::Nonblocking,
        Method::PingPong => Way::PingPong,
    }
}
