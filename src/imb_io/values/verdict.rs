//! Whether a run is whole and its data right.

use schemars::JsonSchema;
use serde::Serialize;

use crate::frame::config::Repeat;
use crate::frame::records::Outcome;
use crate::frame::values::NULL_BACKEND;
use crate::imb_io::records::{ImbResult, RowEnd, RowRecord};

/// The verdict on a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Every row that can run is complete, and as many bytes as it moved were compared and right: of the files that were written
    /// all; of reads into one buffer the last one's and those of a second pass.
    Verified,
    /// Every row that can run is complete; of some not every byte was compared.
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
    pub verdict: Verdict,
    /// Rows that were to run.
    pub rows: u64,
    /// Of these complete.
    pub rows_complete: u64,
    /// Not run, with a reason.
    pub rows_not_run: u64,
    /// Ended by an error.
    pub rows_failed: u64,
    /// Ended by a signal.
    pub rows_interrupted: u64,
    /// Without any record: the run did not get there.
    pub rows_missing: u64,
    /// Complete rows that moved bytes of which not every byte was compared; the null backend does not count.
    pub rows_not_verified: u64,
    /// Rows with wrong bytes.
    pub rows_wrong: u64,
    /// Bytes compared.
    pub bytes_checked: u64,
    /// Of these wrong.
    pub bytes_wrong: u64,
    /// Time announced; None: it ended before that.
    pub expected_seconds: Option<f64>,
    /// Time taken; None: no end was recorded.
    pub real_seconds: Option<f64>,
    /// real / announced, without the repeats of `--repeat auto`, which nobody foresees.
    pub real_to_expected: Option<f64>,
}

pub(super) fn of(result: &ImbResult) -> ImbVerdict {
    let rows = &result.rows;
    let number = |is: &dyn Fn(&RowRecord) -> bool| rows.iter().filter(|r| is(r)).count() as u64;
    let expected_seconds = result.announcement.as_ref().map(|a| a.expected_seconds);
    let real_seconds = (result.ending.outcome != Outcome::Killed).then_some(result.ending.real_seconds);
    // How many rounds there would be was not announced.
    let unforeseen: f64 = match result.config.repeat {
        Repeat::Auto => result.repeats.iter().map(|again| again.measured.real_seconds).sum(),
        Repeat::Off | Repeat::Times(_) => 0.0,
    };
    let ratio = |(real, expected): (f64, f64)| (expected > 0.0).then(|| (real - unforeseen).max(0.0) / expected);
    let mut found = ImbVerdict {
        verdict: Verdict::NotComplete,
        rows: result.setup.rows.max(rows.len() as u64),
        rows_complete: number(&|r| r.ended == RowEnd::Complete),
        rows_not_run: number(&|r| matches!(r.ended, RowEnd::NotRun(_))),
        rows_failed: number(&|r| matches!(r.ended, RowEnd::Error(_))),
        rows_interrupted: number(&|r| r.ended == RowEnd::Interrupted),
        rows_missing: result.setup.rows.saturating_sub(rows.len() as u64),
        rows_not_verified: number(&is_not_verified),
        rows_wrong: number(&|r| r.bytes_wrong > 0),
        bytes_checked: result.measured().map(|r| r.bytes_checked).fold(0, u64::saturating_add),
        bytes_wrong: result.measured().map(|r| r.bytes_wrong).fold(0, u64::saturating_add),
        expected_seconds,
        real_seconds,
        real_to_expected: real_seconds.zip(expected_seconds).and_then(ratio),
    };
    found.verdict = verdict(result, &found);
    found
}

/// A row whose numbers rest on bytes that nobody has looked at, also if these are only some. Non-blocking benchmarks move
/// theirs three times; without the blocking call, as it was once, twice.
pub(super) fn is_not_verified(record: &RowRecord) -> bool {
    let runs = record.overlap.map_or(1, |overlap| 2 + u64::from(overlap.blocking_seconds.is_some()));
    record.ended == RowEnd::Complete
        && record.backend != NULL_BACKEND
        && record.sample_bytes.is_some()
        && record.bytes_checked < record.moved_bytes.saturating_mul(runs)
}

fn verdict(result: &ImbResult, found: &ImbVerdict) -> Verdict {
    // What ends the repeats takes nothing from the rows.
    let in_repeats = !result.repeats.is_empty() && result.ending.outcome != Outcome::Failed;
    let incomplete = found.rows_failed + found.rows_interrupted + found.rows_missing > 0;
    if found.bytes_wrong > 0 || !result.corruptions.is_empty() {
        Verdict::WrongData
    } else if incomplete || found.rows_complete == 0 || !(in_repeats || result.ending.outcome == Outcome::Complete) {
        Verdict::NotComplete
    } else if found.rows_not_verified > 0 || found.bytes_checked == 0 {
        Verdict::NotVerified
    } else {
        Verdict::Verified
    }
}
