//! Whether a replay is whole, and whether it can be trusted.

use schemars::JsonSchema;
use serde::Serialize;

use crate::frame::records::Outcome;
use crate::replay::records::{PassEnd, PassRecord, ReplayResult};

/// The verdict in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerdictKind {
    /// All passes are complete, and every call had its recorded result.
    AsRecorded,
    /// All passes are complete; some calls had another result, or were left out.
    NotAsRecorded,
    /// Passes are missing or failed.
    NotComplete,
    /// Bytes were not what the profile says must be there.
    WrongData,
}

/// The verdict with its counts.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Verdict {
    /// The verdict.
    pub verdict: VerdictKind,
    /// Passes that were to run.
    pub passes: u64,
    /// Of these complete.
    pub passes_complete: u64,
    /// Not run, because their backend cannot work here.
    pub passes_not_run: u64,
    /// Calls made in all passes.
    pub calls: u64,
    /// Of these with the recorded result.
    pub calls_as_recorded: u64,
    /// Calls that no backend, or not every backend, replayed; summed over the backends.
    pub calls_left_out: u64,
    /// Bytes read that were compared.
    pub bytes_checked: u64,
    /// Share of the bytes read that was compared, 0 to 1; None: nothing was read.
    pub checked_share: Option<f64>,
    /// Bytes that were wrong.
    pub bytes_wrong: u64,
    /// Time taken; None: no end was recorded.
    pub real_seconds: Option<f64>,
}

pub(super) fn of(result: &ReplayResult) -> Verdict {
    let passes = &result.passes;
    let sum = |value: fn(&PassRecord) -> u64| passes.iter().map(value).fold(0, u64::saturating_add);
    let bytes_checked = sum(|p| p.bytes_checked);
    let bytes_read = bytes_checked.saturating_add(sum(|p| p.bytes_unknown));
    let left_out = result.setup.leavings.iter().flat_map(|l| &l.left_out).map(|l| l.calls).fold(0, u64::saturating_add);
    let mut found = Verdict {
        verdict: VerdictKind::NotComplete,
        passes: result.config.repeat.saturating_mul(result.config.backends.len() as u64),
        passes_complete: passes.iter().filter(|p| p.ended == PassEnd::Complete).count() as u64,
        passes_not_run: passes.iter().filter(|p| matches!(p.ended, PassEnd::NotRun(_))).count() as u64,
        calls: sum(|p| p.calls),
        calls_as_recorded: sum(|p| p.calls_as_recorded),
        calls_left_out: left_out,
        bytes_checked,
        checked_share: (bytes_read > 0).then(|| bytes_checked as f64 / bytes_read as f64),
        bytes_wrong: sum(|p| p.bytes_wrong),
        real_seconds: (result.ending.outcome != Outcome::Killed).then_some(result.ending.real_seconds),
    };
    let whole = found.passes_complete > 0
        && found.passes_complete + found.passes_not_run == found.passes
        && result.ending.outcome == Outcome::Complete;
    found.verdict = if found.bytes_wrong > 0 || !result.corruptions.is_empty() {
        VerdictKind::WrongData
    } else if !whole {
        VerdictKind::NotComplete
    } else if found.calls_as_recorded < found.calls || left_out.max(result.setup.profile.calls_cut) > 0 {
        VerdictKind::NotAsRecorded
    } else {
        VerdictKind::AsRecorded
    };
    found
}
