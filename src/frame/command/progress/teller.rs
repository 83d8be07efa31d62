//! Who tells where a run stands, and what is told.

use super::stage::Stage;
use crate::frame::run::Standing;

/// A moment of a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Moment<'a> {
    /// What comes next.
    pub standing: &'a Standing,
    /// Since the run began.
    pub elapsed_seconds: f64,
    /// Until it ends, by what was measured so far.
    pub left_seconds: f64,
    /// How much of all that is planned is done, 0 to 1, by time.
    pub share: f64,
}

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct End {
    /// Since the run began.
    pub elapsed_seconds: f64,
    /// How much of all that was planned was done, 0 to 1, by time.
    pub share: f64,
    /// Whether all of it was done: neither a signal nor an error ended the run.
    pub is_complete: bool,
}

/// Who tells it.
pub(super) trait Teller {
    /// The run begins.
    fn begin(&mut self, _title: &str) {}
    /// A new part begins.
    fn part(&mut self, _now: &Moment<'_>) {}
    /// A stage is over.
    fn stage(&mut self, _over: &Stage, _now: &Moment<'_>) {}
    /// Nothing more comes.
    fn end(&mut self, _end: End) {}
}
