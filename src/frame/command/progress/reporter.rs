//! Interface of progress reporters.

use super::stage::Stage;
use crate::frame::run::ProgressReport;

/// State of a run when a part begins.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ProgressSnapshot<'a> {
    /// The next part.
    pub standing: &'a ProgressReport,
    /// Time since the begin of the run.
    pub elapsed_seconds: f64,
    /// Estimated time to its end.
    pub left_seconds: f64,
    /// Completed share of the plan, 0 to 1, by time.
    pub share: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FinalProgress {
    /// Time since the begin of the run.
    pub elapsed_seconds: f64,
    /// Completed share of the plan, 0 to 1, by time.
    pub share: f64,
    /// True if neither a signal nor an error ended the run.
    pub is_complete: bool,
}

pub(super) trait ProgressReporter {
    /// The run begins.
    fn begin(&mut self, _title: &str) {}
    /// A new part begins.
    fn part(&mut self, _now: &ProgressSnapshot<'_>) {}
    /// A stage is complete.
    fn stage(&mut self, _over: &Stage, _now: &ProgressSnapshot<'_>) {}
    /// The run ends.
    fn end(&mut self, _end: FinalProgress) {}
}
