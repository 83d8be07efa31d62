//! Derived values of a replay. Pure functions of the records.
//!
//! The bandwidth per process is bytes over the time in the calls, both summed over the processes, in the recorded run and in the
//! replay alike. The ratio is replayed over recorded: above 1 the replay was faster.

pub mod caches;
#[cfg(test)]
pub(crate) mod fixture;
pub mod kinds;
mod level;
pub mod standout;
mod verdict;
mod warning;

pub use level::{Level, LevelKind, Part};
pub use verdict::{Verdict, VerdictKind};

use schemars::JsonSchema;
use serde::Serialize;

use crate::frame::records::Warning;
use crate::replay::records::ReplayResult;

/// Everything derived from one replay.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ReplayDerived {
    /// Recorded beside replayed: the run, its files, classes and processes, for each backend.
    pub levels: Vec<Level>,
    /// Whether it is whole and can be trusted.
    pub verdict: Verdict,
    /// Warnings of the run and those that follow from the records.
    pub warnings: Vec<Warning>,
}

/// Derives everything from one result, also from one that ended early.
#[must_use]
pub fn derive(result: &ReplayResult) -> ReplayDerived {
    let levels = level::all(result);
    let verdict = verdict::of(result);
    ReplayDerived { warnings: warning::warnings(result, &verdict), levels, verdict }
}

#[cfg(test)]
mod tests;
