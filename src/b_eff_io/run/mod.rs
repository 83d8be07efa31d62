//! Doing what the plan says: timed loops, common decisions, data stamps and their verification.
//!
//! The order of work is access method, partition, type, pattern, backend. The loops know backends only through
//! their trait and the outside world only through [`Observer`](crate::frame::run::Observer); they format nothing and write
//! no result files.
//!
//! From outside to inside: `whole` (the outermost loops), `type_run` (open files), `pattern_run` (backends in turn), `turn`
//! (one round), `clocked` (the clock), `told` (agreements under way). All of them work on `state`, at a `place`; `calibrate`, `queue_calibration`
//! and `first_writes` come before, `repeat` behind the first pass.

pub mod batching;
pub mod calibrate;
pub mod clocked;
pub mod counted;
pub mod drivers;
pub mod files;
pub mod first_writes;
pub mod handed;
#[cfg(feature = "test-hooks")]
pub mod inject;
pub mod measured;
pub mod memory_seen;
pub mod passed;
pub mod pattern_run;
pub mod place;
pub mod places;
pub mod prelude;
pub mod queue_calibration;
pub mod recheck;
pub mod region;
pub mod repeat;
#[cfg(test)]
mod run_tests;
pub mod state;
pub mod told;
pub mod turn;
pub mod type_run;
pub mod verify;
pub mod whole;
