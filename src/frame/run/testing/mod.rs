//! Environment of the real loops in unit tests: ranks that are threads of one process, a scripted clock, files with scripted outcomes.
//!
//! [`play`] runs a closure on each of N ranks. Each has a [`Script`]: the time of every call by its name, and the outcomes of files. Time
//! does not advance otherwise, so every interval, including waits for slower ranks, is a sum that can be computed by hand; every call is
//! logged on its rank with its start time. Ranks that enter different collective calls, or wait for each other forever, fail the test at
//! once with the state of each rank.

mod file;
mod script;
mod world;

pub use file::{driver, row};
pub use script::{allocations, clear_log, io, log, log_of, now, scripted_call, with_script, Script, ScriptedOutcome};
pub use world::{run_ranks, traffic};

/// True if two scripted times are equal up to rounding.
#[must_use]
pub fn approx_equal(found: f64, expected: f64) -> bool {
    (found - expected).abs() < 1e-6
}

mod tests;
