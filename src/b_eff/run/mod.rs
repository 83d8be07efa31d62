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
mod budget;
mod check;
mod layout;
mod left;
mod memory;
mod pattern;
mod pilot;
pub mod whole;

pub use layout::Layout;
pub use pattern::Broken;
pub use whole::Run;

use crate::b_eff::records::Method;
use beff_ffi::Way;

/// The calls of a method.
fn way(method: Method) -> Way {
    match method {
        Method::Sendrecv => Way::Sendrecv,
        Method::Alltoallv => Way::Alltoallv,
        Method::Nonblocking => Way::Nonblocking,
        Method::PingPong => Way::PingPong,
    }
}
