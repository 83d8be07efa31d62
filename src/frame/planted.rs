//! Failures on purpose, to prove that no step before the measurement leaves ranks waiting for one that has left. Only in a build
//! with test hooks, by the environment variable BEFF_RAW_FAIL_START: `STEP@RANK` lets that step fail on that rank; `list` names
//! the steps on stderr as rank 0 comes to them.

#[cfg(feature = "test-hooks")]
use std::io::Write as _;

/// The variable.
#[cfg(feature = "test-hooks")]
const VARIABLE: &str = "BEFF_RAW_FAIL_START";

/// The failure of `step` on `rank`, if it was asked for.
///
/// # Errors
/// It was.
#[cfg(feature = "test-hooks")]
pub fn failure(step: &str, rank: u64) -> Result<(), String> {
    let Ok(asked) = std::env::var(VARIABLE) else { return Ok(()) };
    if asked == "list" && rank == 0 {
        // A closed stderr is no reason to fail.
        let _ = writeln!(std::io::stderr(), "step: {step}");
    }
    if asked == format!("{step}@{rank}") {
        return Err(format!("rank {rank} was made to fail ({VARIABLE}={asked})"));
    }
    Ok(())
}

/// Never asked for.
///
/// # Errors
/// None.
#[cfg(not(feature = "test-hooks"))]
pub fn failure(_step: &str, _rank: u64) -> Result<(), String> {
    Ok(())
}
