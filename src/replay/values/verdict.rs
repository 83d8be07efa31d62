//! Completeness and trust of a replay.

use schemars::JsonSchema;
use serde::Serialize;

use crate::frame::records::RunOutcome;
use crate::replay::records::{ProfileRepetition, RepetitionStatus, ReplayResult};

/// Verdict without counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fidelity {
    /// All repetitions are complete, and every call had its recorded result.
    AsRecorded,
    /// All repetitions are complete; some calls had another result or were omitted.
    NotAsRecorded,
    /// Repetitions are missing or failed.
    NotComplete,
    /// Bytes differ from those expected by the profile.
    WrongData,
}

/// Verdict with its counts.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FidelityVerdict {
    /// The verdict.
    pub verdict: Fidelity,
    /// Planned repetitions, with those that verify data.
    pub repetitions: u64,
    /// Complete ones.
    pub repetitions_complete: u64,
    /// Not run because of an unavailable backend.
    pub repetitions_not_run: u64,
    /// Calls of all repetitions.
    pub calls: u64,
    /// Calls with the recorded result.
    pub calls_as_recorded: u64,
    /// Omitted calls, summed over the backends.
    pub calls_omitted: u64,
    /// Bytes read that were compared.
    pub bytes_checked: u64,
    /// Share of the bytes read that was compared, 0 to 1; None if nothing was read.
    pub checked_share: Option<f64>,
    /// Wrong bytes.
    pub bytes_wrong: u64,
    /// Duration; None if no end was recorded.
    pub real_seconds: Option<f64>,
}

pub(super) fn fidelity_verdict(result: &ReplayResult) -> FidelityVerdict {
    let records = &result.repetitions;
    let sum = |value: fn(&ProfileRepetition) -> u64| records.iter().map(value).fold(0, u64::saturating_add);
    let bytes_checked = sum(|p| p.bytes_checked);
    let bytes_read = bytes_checked.saturating_add(sum(|p| p.bytes_unknown));
    let left_out = result.setup.omissions.iter().flat_map(|l| &l.omitted).map(|l| l.calls).fold(0, u64::saturating_add);
    let verifications = records.iter().filter(|p| !p.is_timed()).count() as u64;
    let mut found = FidelityVerdict {
        verdict: Fidelity::NotComplete,
        repetitions: result
            .config
            .repeat
            .saturating_mul(result.config.backends.len() as u64)
            .saturating_add(verifications),
        repetitions_complete: records.iter().filter(|p| p.ended == RepetitionStatus::Complete).count() as u64,
        repetitions_not_run: records.iter().filter(|p| matches!(p.ended, RepetitionStatus::NotRun(_))).count() as u64,
        calls: sum(|p| p.calls),
        calls_as_recorded: sum(|p| p.calls_as_recorded),
        calls_omitted: left_out,
        bytes_checked,
        checked_share: (bytes_read > 0).then(|| bytes_checked as f64 / bytes_read as f64),
        bytes_wrong: sum(|p| p.bytes_wrong),
        real_seconds: (result.ending.outcome != RunOutcome::Killed).then_some(result.ending.real_seconds),
    };
    let whole = found.repetitions_complete > 0
        && found.repetitions_complete + found.repetitions_not_run == found.repetitions
        && result.ending.outcome == RunOutcome::Complete;
    found.verdict = if found.bytes_wrong > 0 || !result.corruptions.is_empty() {
        Fidelity::WrongData
    } else if !whole {
        Fidelity::NotComplete
    } else if found.calls_as_recorded < found.calls || left_out.max(result.setup.profile.calls_discarded) > 0 {
        Fidelity::NotAsRecorded
    } else {
        Fidelity::AsRecorded
    };
    found
}
