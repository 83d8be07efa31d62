//! Derived values of a replay. Pure functions of the records.
//!
//! Bandwidth per process is bytes over the time in the calls, both summed over the processes, in the recorded run and in the replay. The
//! ratio is replayed over recorded: above 1 the replay was faster.

#[cfg(test)]
pub(crate) mod fixture;
pub mod kinds;
mod level;
pub mod standout;
pub mod storage_reads;
pub mod trial;
mod verdict;
mod warning;
mod what_if;

pub use level::{CallSubset, LevelComparison, LevelKind};
pub use verdict::{Fidelity, FidelityVerdict};
pub use what_if::{ChangeEffect, ReplayVariant};

use schemars::JsonSchema;
use serde::Serialize;

use crate::frame::records::Warning;
use crate::replay::records::ReplayResult;

/// All derived values of a replay.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ReplayDerived {
    /// Recorded and replayed values: the run, its files, classes and processes, for each backend.
    pub levels: Vec<LevelComparison>,
    /// Completeness and trust.
    pub verdict: FidelityVerdict,
    /// Effect of the change (`--what-if`).
    pub what_if: Option<ChangeEffect>,
    /// Variants compared with their backends.
    pub variants: Vec<ReplayVariant>,
    /// Recorded and derived warnings.
    pub warnings: Vec<Warning>,
}

/// Derives all values of a result, which may be incomplete.
#[must_use]
pub fn derive(result: &ReplayResult) -> ReplayDerived {
    let levels = level::all_levels(result);
    let verdict = verdict::fidelity_verdict(result);
    let what_if = what_if::change_effect(result);
    ReplayDerived {
        warnings: warning::warnings(result, &verdict),
        levels,
        verdict,
        what_if,
        variants: what_if::variants(result),
    }
}

#[cfg(test)]
mod tests;
