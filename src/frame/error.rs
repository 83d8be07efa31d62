//! Exit codes of the program, and the error for a request that cannot be run.

use std::convert::Infallible;
use std::process::ExitCode;

/// Exit status of the program, as scripts see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Everything requested was done.
    Ok = 0,
    /// An I/O or MPI operation failed; what was measured before is kept.
    Failure = 1,
    /// The command line, the hints file or the launcher is not usable; nothing was measured.
    Usage = 2,
    /// Data read was not the data written.
    Corruption = 3,
    /// `compare --fail-below`: a speed is below the limit. `gate`: the run is slower. `--require`: a requirement fails.
    BelowLimit = 4,
    /// `compare --fail-below`, `gate`, `--require`: the results do not decide it.
    Inconclusive = 5,
    /// A signal ended the run (128 + SIGINT, as shells count); what was measured before is kept.
    Interrupted = 130,
}

impl Exit {
    /// The number for the operating system.
    #[must_use]
    pub fn code(self) -> u8 {
        self as u8
    }
}

impl Exit {
    /// The exit with this number; [`Exit::Failure`] for any other.
    #[must_use]
    pub fn from_code(code: u8) -> Self {
        [Self::Ok, Self::Usage, Self::Corruption, Self::BelowLimit, Self::Inconclusive, Self::Interrupted]
            .into_iter()
            .find(|e| e.code() == code)
            .unwrap_or(Self::Failure)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// A request that cannot be run: cause, and next step. Ends with [`Exit::Usage`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{cause}\n  {next_step}")]
pub struct UsageError {
    /// Cause.
    pub cause: String,
    /// Next step, as a sentence.
    pub next_step: String,
}

impl UsageError {
    /// Error from its two parts.
    #[must_use]
    pub fn new(cause: impl Into<String>, next_step: impl Into<String>) -> Self {
        Self { cause: cause.into(), next_step: next_step.into() }
    }
}

/// A plan that is impossible, with the next step. `Own` is an error in the plan of one benchmark alone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanningError<Own = Infallible> {
    /// A partition that does not fit the world.
    #[error(
        "a partition of {ranks} ranks is impossible: the program runs with {world_ranks} rank(s); \
         ask for 1 to {world_ranks} ranks or start more of them"
    )]
    Partition {
        /// Requested ranks.
        ranks: u64,
        /// Ranks of the world.
        world_ranks: u64,
    },
    /// Invalid input.
    #[error("cannot plan: {what}")]
    Argument {
        /// The input, its value and the allowed values.
        what: String,
    },
    /// Error of this benchmark alone.
    #[error(transparent)]
    Specific(#[from] Own),
}

impl<Own> PlanningError<Own> {
    pub(crate) fn argument(what: impl Into<String>) -> Self {
        Self::Argument { what: what.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_the_documented_ones() {
        let codes = [
            Exit::Ok,
            Exit::Failure,
            Exit::Usage,
            Exit::Corruption,
            Exit::BelowLimit,
            Exit::Inconclusive,
            Exit::Interrupted,
        ];
        assert_eq!(codes.map(Exit::code), [0, 1, 2, 3, 4, 5, 130]);
        assert!(codes.iter().all(|exit| Exit::from_code(exit.code()) == *exit));
    }

    #[test]
    fn a_usage_error_shows_cause_and_next_step() {
        let error = UsageError::new("no backend 'x'", "Choose one of: null.");
        assert_eq!(error.to_string(), "no backend 'x'\n  Choose one of: null.");
    }
}
