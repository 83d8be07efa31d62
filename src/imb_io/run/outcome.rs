//! What comes back of a row and of its files.

use std::path::PathBuf;

use beff_backends::InForce;
use beff_ffi::MpiError;

use super::found::Checked;
use super::timed::Timed;
use crate::frame::records::{ErrorRecord, Evidence};
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
    pub(super) pure_seconds: f64,
    pub(super) cpu_seconds: f64,
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

/// A file whose calls were all made and were all whole.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub(super) timed: Timed,
    pub(super) checked: Checked,
    pub(super) in_force: InForce,
    /// Of the hints asked for.
    pub(super) hints_granted: Vec<(String, String)>,
    pub(super) evidence: Option<Evidence>,
    pub(super) storage_read_bytes: Option<u64>,
    pub(super) verify_seconds: f64,
    /// File name below the run directory.
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
