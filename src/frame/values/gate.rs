//! A comparison against a limit for speeds.

use serde::Serialize;

use super::causes::ChangeCause;
use super::comparable::QuantityLevel;
use super::compare::{ComparedQuantity, Comparison, ComparisonVerdict, MissingQuantity};

/// Outcome of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GateOutcome {
    /// Nothing is below the limit, missing or wrong.
    Passed,
    /// Something is.
    Failed,
    /// The results do not decide it: a shared machine, a run that was cut, storage drift, too little time.
    Inconclusive,
}

/// Result of checking a comparison against a limit for speeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GateResult {
    /// Smallest ratio that passes.
    pub limit: f64,
    /// Numbers that are called slower and are below the limit: indices into [`Comparison::compared`].
    pub below: Vec<usize>,
    /// Those that are, but were measured under interference.
    pub disturbed: Vec<usize>,
    /// Values and groups of the first side only.
    pub missing: Vec<String>,
    /// Values and groups below the limit that are not decided.
    pub undecided: u64,
    /// The data of the second side was wrong.
    pub corrupt: bool,
    /// Outcome.
    pub outcome: GateOutcome,
    /// True if the outcome is `passed`.
    pub passed: bool,
}

/// Checks a comparison against the limit. Wrong data fails whatever else is in doubt.
#[must_use]
pub fn gate(comparison: &Comparison, limit: f64) -> GateResult {
    let all = &comparison.compared;
    let is_below = |at: &usize| all[*at].call == ComparisonVerdict::Slower && all[*at].ratio < limit;
    let is_disturbed = |at: &usize| all[*at].causes.iter().any(|cause| matches!(cause, ChangeCause::Busy { .. }));
    let (disturbed, below): (Vec<usize>, Vec<usize>) = (0..all.len()).filter(is_below).partition(is_disturbed);
    let is_lost = |m: &&MissingQuantity| m.side == 0 && m.level != QuantityLevel::Detail;
    let missing: Vec<String> = comparison.missing.iter().filter(is_lost).map(|missing| missing.name.clone()).collect();
    let is_open = |c: &&ComparedQuantity| {
        c.level != QuantityLevel::Detail && c.ratio < limit && c.call == ComparisonVerdict::NotDecided
    };
    let undecided = all.iter().filter(is_open).count() as u64;
    let corrupt = comparison.corrupt[1];
    let outcome = match () {
        () if corrupt => GateOutcome::Failed,
        () if !comparison.inconclusive.is_empty() => GateOutcome::Inconclusive,
        () if !below.is_empty() || !missing.is_empty() || all.is_empty() => GateOutcome::Failed,
        () if !disturbed.is_empty() => GateOutcome::Inconclusive,
        () => GateOutcome::Passed,
    };
    let passed = outcome == GateOutcome::Passed;
    GateResult { limit, below, disturbed, missing, undecided, corrupt, outcome, passed }
}
