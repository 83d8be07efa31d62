//! b_eff inside the clock: for each pattern and size, loops of messages by each method, compared outside the clock.
//!
//! ```text
//! pilot: one ring of all ranks, every size and method once     -> what fits into the time
//! for repetition in 0..3:                        # outermost: the three of one cell are far apart in time
//!     for pattern in plan:                       # ping-pong, 6 rings, 30 random rings, what is only reported
//!         for size in 21 sizes, for method:
//!             barrier, loop of iterations        <- the clock: calls of MPI and nothing else
//!             compare what was received, wipe it <- outside
//!             one maximum over the ranks for each size: times of the loops, time so far, signal
//!         one sum over the ranks; record
//! while time is left: a pattern again, as in one repetition     -> intervals; the value stays
//! ```

mod bare;
mod budget;
mod check;
mod layout;
mod left;
mod memory;
mod pattern;
mod pilot;
mod repeats;
#[cfg(test)]
mod run_tests;
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
