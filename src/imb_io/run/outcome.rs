//! Results of a row and of its files.

use std::path::PathBuf;

use beff_backends::TransferStrategy;
use beff_ffi::MpiError;

use super::timed_loop::LoopTiming;
use super::verify_result::VerifyResult;
use crate::frame::records::{ErrorRecord, Evidence};
use crate::frame::run::interference::CpuObservation;
use crate::imb_io::plan::PlanningError;
use crate::imb_io::records::{ImbCorruption, RowRecord};

/// Outcome of a row; equal on all active ranks.
pub(super) struct RowOutcome {
    pub(super) record: RowRecord,
    pub(super) error: Option<ErrorRecord>,
    pub(super) corruption: Option<ImbCorruption>,
    /// Time of comparing data, slowest rank.
    pub(super) verify_seconds: f64,
}

/// Results of the files of a row, of this rank.
#[derive(Default)]
pub(super) struct FileResults {
    pub(super) reported: FileResult,
    pub(super) reference: Option<OverlapReference>,
    pub(super) checked: VerifyResult,
    pub(super) verify_seconds: f64,
}

impl From<FileResult> for FileResults {
    fn from(mut done: FileResult) -> Self {
        Self {
            checked: std::mem::take(&mut done.checked),
            verify_seconds: done.verify_seconds,
            reported: done,
            ..Self::default()
        }
    }
}

impl FileResults {
    /// Merges the result of an earlier file. The evidence is that of the file with the most bytes in the cache.
    pub(super) fn merge_earlier(&mut self, earlier: FileResult) {
        self.verify_seconds += earlier.verify_seconds;
        let cached = |done: &FileResult| done.evidence.as_ref().and_then(|e| e.resident_before_bytes);
        if cached(&earlier) > cached(&self.reported) {
            (self.reported.evidence, self.reported.storage_read_bytes) = (earlier.evidence, earlier.storage_read_bytes);
        }
        if earlier.checked.first_wrong.is_some() {
            self.reported.file = earlier.file;
        }
        let later = std::mem::replace(&mut self.checked, earlier.checked);
        self.checked.add(later);
    }
}

/// Reference times for a non-blocking call with a load, for all iterations.
pub(super) struct OverlapReference {
    pub(super) blocking_seconds: f64,
    pub(super) blocking_strategy: String,
    pub(super) alone_seconds: f64,
    pub(super) cpu_seconds: f64,
}

/// Result of a file whose calls all completed with full length.
#[derive(Debug, Default)]
pub(super) struct FileResult {
    pub(super) timed: LoopTiming,
    pub(super) checked: VerifyResult,
    pub(super) in_force: TransferStrategy,
    pub(super) hints_granted: Vec<(String, String)>,
    pub(super) evidence: Option<Evidence>,
    pub(super) cpu_watch: CpuObservation,
    pub(super) storage_read_bytes: Option<u64>,
    pub(super) verify_seconds: f64,
    /// Name below the run directory of the file, or of the one with the finding.
    pub(super) file: PathBuf,
}

/// Reason why a row has no result. Equal on all active ranks, except for `Mpi`.
pub(super) enum RowAbort {
    NotRun(String),
    Failed(ErrorRecord),
    Interrupted,
    Limit,
    /// Error between the ranks, which ends the run.
    Mpi(MpiError),
}

impl From<MpiError> for RowAbort {
    fn from(error: MpiError) -> Self {
        Self::Mpi(error)
    }
}

impl From<PlanningError> for RowAbort {
    /// The plan is the same on all ranks, and so is its failure.
    fn from(error: PlanningError) -> Self {
        Self::NotRun(error.to_string())
    }
}
