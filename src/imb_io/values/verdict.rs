//! Completeness of a run and correctness of its data.

use schemars::JsonSchema;
use serde::Serialize;

use crate::frame::config::RepetitionPolicy;
use crate::frame::records::RunOutcome;
use crate::frame::values::NULL_BACKEND;
use crate::imb_io::records::{ImbResult, RowRecord, RowStatus};

/// The verdict on a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerificationVerdict {
    /// Every row that can run is complete, and as many bytes as it moved were compared and right: all bytes of written files; of
    /// reads into one buffer those of the last one and of the reads repeated for comparison.
    Verified,
    /// Every row that can run is complete, but not every byte was compared.
    NotVerified,
    /// Rows are missing or failed.
    NotComplete,
    /// Bytes were not the bytes written.
    WrongData,
}

/// The verdict with its counts.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ImbVerdict {
    /// The verdict.
    pub verdict: VerificationVerdict,
    /// Planned rows.
    pub rows: u64,
    /// Complete rows.
    pub rows_complete: u64,
    /// Rows not run, with a reason.
    pub rows_not_run: u64,
    /// Rows ended by an error.
    pub rows_failed: u64,
    /// Rows ended by a signal.
    pub rows_interrupted: u64,
    /// Rows without a record: the run ended before.
    pub rows_missing: u64,
    /// Complete rows of which not every byte moved was compared; without the null backend.
    pub rows_not_verified: u64,
    /// Rows with wrong bytes.
    pub rows_wrong: u64,
    /// Bytes compared.
    pub bytes_checked: u64,
    /// Wrong bytes.
    pub bytes_wrong: u64,
    /// Announced time; None: the run ended before.
    pub expected_seconds: Option<f64>,
    /// Real time; None: no end was recorded.
    pub real_seconds: Option<f64>,
    /// Real / announced time, without the repetitions of `--repeat auto`, whose number is unknown in advance.
    pub real_to_expected: Option<f64>,
}

pub(super) fn of(result: &ImbResult) -> ImbVerdict {
    let rows = &result.rows;
    let number = |is: &dyn Fn(&RowRecord) -> bool| rows.iter().filter(|r| is(r)).count() as u64;
    let expected_seconds = result.announcement.as_ref().map(|a| a.expected_seconds);
    let real_seconds = (result.ending.outcome != RunOutcome::Killed).then_some(result.ending.real_seconds);
    // The number of rounds was not announced.
    let unforeseen: f64 = match result.config.repeat {
        RepetitionPolicy::Auto => result.repetitions.iter().map(|again| again.measurement.real_seconds).sum(),
        RepetitionPolicy::Off | RepetitionPolicy::Times(_) => 0.0,
    };
    let ratio = |(real, expected): (f64, f64)| (expected > 0.0).then(|| (real - unforeseen).max(0.0) / expected);
    let mut found = ImbVerdict {
        verdict: VerificationVerdict::NotComplete,
        rows: result.setup.rows.max(rows.len() as u64),
        rows_complete: number(&|r| r.ended == RowStatus::Complete),
        rows_not_run: number(&|r| matches!(r.ended, RowStatus::NotRun(_))),
        rows_failed: number(&|r| matches!(r.ended, RowStatus::Error(_))),
        rows_interrupted: number(&|r| r.ended == RowStatus::Interrupted),
        rows_missing: result.setup.rows.saturating_sub(rows.len() as u64),
        rows_not_verified: number(&is_not_verified),
        rows_wrong: number(&|r| r.bytes_wrong > 0),
        bytes_checked: result.measurements().map(|r| r.bytes_checked).fold(0, u64::saturating_add),
        bytes_wrong: result.measurements().map(|r| r.bytes_wrong).fold(0, u64::saturating_add),
        expected_seconds,
        real_seconds,
        real_to_expected: real_seconds.zip(expected_seconds).and_then(ratio),
    };
    found.verdict = verdict(result, &found);
    found
}

/// True for a row with moved bytes that were not compared. Non-blocking benchmarks move their bytes three times, in older files
/// without the blocking call twice.
pub(super) fn is_not_verified(record: &RowRecord) -> bool {
    let runs = record.overlap.map_or(1, |overlap| 2 + u64::from(overlap.blocking_seconds.is_some()));
    record.ended == RowStatus::Complete
        && record.backend != NULL_BACKEND
        && record.sample_bytes.is_some()
        && record.bytes_checked < record.moved_bytes.saturating_mul(runs)
}

fn verdict(result: &ImbResult, found: &ImbVerdict) -> VerificationVerdict {
    // An end during the repetitions does not affect the rows.
    let in_repetitions = !result.repetitions.is_empty() && result.ending.outcome != RunOutcome::Failed;
    let incomplete = found.rows_failed + found.rows_interrupted + found.rows_missing > 0;
    if found.bytes_wrong > 0 || !result.corruptions.is_empty() {
        VerificationVerdict::WrongData
    } else if incomplete
        || found.rows_complete == 0
        || !(in_repetitions || result.ending.outcome == RunOutcome::Complete)
    {
        VerificationVerdict::NotComplete
    } else if found.rows_not_verified > 0 || found.bytes_checked == 0 {
        VerificationVerdict::NotVerified
    } else {
        VerificationVerdict::Verified
    }
}
