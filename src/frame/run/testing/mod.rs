//! What unit tests put around the real loops: ranks that are threads of one process, a clock that moves by a script, files that answer by
//! a script. Only in tests.
//!
//! [`play`] runs a closure on each of N ranks. Each has a [`Script`]: what every call takes, by its name, and how files answer. Time
//! stands still otherwise, so every interval, also the waiting for slower ranks, is a sum that can be worked out by hand; and every call is
//! in the log of its rank, with the time at its begin. Ranks that come to different collective calls, or wait for each other for
//! ever, end the test at once and say where they stand.

mod file;
mod script;
mod world;

pub use file::{driver, row};
pub use script::{allocations, clear_log, io, log, log_of, now, passes, with, Answer, Script};
pub use world::play;

/// Two times that a script has made of the same parts.
#[must_use]
pub fn same(found: f64, expected: f64) -> bool {
    (found - expected).abs() < 1e-6
}

mod tests;
