//! What comes back of a row and of its files.

use std::path::PathBuf;

use beff_backends::InForce;
use beff_ffi::MpiError;

use super::found::Checked;
use super::timed::Timed;
use crate::frame::records::{ErrorRecord, Evidence};
use crate::frame::run::machine_share::CpuWatch;
use crate::imb_io::plan::PlanError;
use crate::imb_io::records::{ImbCorruption, RowRecord};

/// What became of a row; equal on all active ranks.
pub(super) struct RowOutcome {
    pub(super) record: RowRecord,
    pub(super) error: Option<ErrorRecord>,
    pub(super) corruption: Option<ImbCorruption>,
    /// Comparing, slowest rank.
    pub(super) verify_seconds: f64,
}

/// The files of a row that were worked through, of this rank.
#[derive(Default)]
pub(super) struct Stages {
    /// The one that is reported.
    pub(super) last: Done,
    /// Of a non-blocking benchmark: what came beside it.
    pub(super) beside: Option<Beside>,
    pub(super) checked: Checked,
    pub(super) verify_seconds: f64,
}

impl From<Done> for Stages {
    /// A single file.
    fn from(mut done: Done) -> Self {
        Self {
            checked: std::mem::take(&mut done.checked),
            verify_seconds: done.verify_seconds,
            last: done,
            ..Self::default()
        }
    }
}

impl Stages {
    /// Takes in a file that was worked through before. Of all, the one that found most in the cache is the evidence.
    pub(super) fn put_before(&mut self, earlier: Done) {
        self.verify_seconds += earlier.verify_seconds;
        let cached = |done: &Done| done.evidence.as_ref().and_then(|e| e.resident_before_bytes);
        if cached(&earlier) > cached(&self.last) {
            (self.last.evidence, self.last.storage_read_bytes) = (earlier.evidence, earlier.storage_read_bytes);
        }
        if earlier.checked.finding.is_some() {
            self.last.file = earlier.file;
        }
        let later = std::mem::replace(&mut self.checked, earlier.checked);
        self.checked.add(later);
    }
}

/// What a non-blocking call with a load is compared with: times of all repetitions.
pub(super) struct Beside {
    pub(super) blocking_seconds: f64,
    pub(super) blocking_strategy: String,
    pub(super) alone_seconds: f64,
    pub(super) cpu_seconds: f64,
}

/// A file whose calls were all made and were all whole.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub(super) timed: Timed,
    pub(super) checked: Checked,
    pub(super) in_force: InForce,
    /// Of the hints asked for.
    pub(super) hints_granted: Vec<(String, String)>,
    pub(super) evidence: Option<Evidence>,
    pub(super) cpu_watch: CpuWatch,
    pub(super) storage_read_bytes: Option<u64>,
    pub(super) verify_seconds: f64,
    /// Name below the run directory of the file, or of the one with the finding.
    pub(super) file: PathBuf,
}

/// Why there is none. But for the last, equal on all active ranks.
pub(super) enum Stopped {
    NotRun(String),
    Failed(ErrorRecord),
    Interrupted,
    /// Between the ranks: the end of the run.
    Mpi(MpiError),
}

impl From<MpiError> for Stopped {
    fn from(error: MpiError) -> Self {
        Self::Mpi(error)
    }
}

impl From<PlanError> for Stopped {
    /// The plan is the same on all ranks, and so is its failure.
    fn from(error: PlanError) -> Self {
        Self::NotRun(error.to_string())
    }
}
