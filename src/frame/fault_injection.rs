//! Fault injection, to prove that no step before the measurement leaves ranks waiting for one that has failed. Only in a build with test
//! hooks, by the environment variable BEFF_RAW_FAIL_START: `STEP@RANK` makes that step fail on that rank; `list` prints the steps on
//! stderr as rank 0 reaches them.

#[cfg(feature = "test-hooks")]
use std::io::Write as _;

#[cfg(feature = "test-hooks")]
const VARIABLE: &str = "BEFF_RAW_FAIL_START";

/// Fails if a fault was requested for `step` on `rank`.
///
/// # Errors
/// The injected fault.
#[cfg(feature = "test-hooks")]
pub fn injected_failure(step: &str, rank: u64) -> Result<(), String> {
    let Ok(asked) = std::env::var(VARIABLE) else { return Ok(()) };
    if asked == "list" && rank == 0 {
        // A closed stderr is not an error.
        let _ = writeln!(std::io::stderr(), "step: {step}");
    }
    if asked == format!("{step}@{rank}") {
        return Err(format!("injected fault on rank {rank} ({VARIABLE}={asked})"));
    }
    Ok(())
}

/// No faults without test hooks.
///
/// # Errors
/// None.
#[cfg(not(feature = "test-hooks"))]
pub fn injected_failure(_step: &str, _rank: u64) -> Result<(), String> {
    Ok(())
}
