//! Interface of progress reporters.

use std::path::Path;

use super::stage::Stage;
use crate::frame::error::Exit;
use crate::frame::records::RunOutcome;
use crate::frame::report::library::short_name;
use crate::frame::report::metrics::ResultMetric;
use crate::frame::run::ProgressReport;
use crate::frame::system::host;
use crate::frame::system::survey::LIBRARY_CHARS;

/// What is run.
#[derive(Clone, Debug, Default)]
pub struct RunTitle {
    /// The benchmark in a few words.
    pub text: String,
    /// Facts that distinguish runs.
    pub labels: Vec<(&'static str, String)>,
}

impl RunTitle {
    /// With host and MPI library, on rank 0; `path`: directory of the files.
    #[must_use]
    pub fn new(text: String, backends: &[String], path: Option<&Path>) -> Self {
        let library = beff_ffi::library_version(LIBRARY_CHARS).unwrap_or_default();
        let path = path.map(|path| path.canonicalize().unwrap_or_else(|_| path.to_owned()).display().to_string());
        let labels = [
            ("host", Some(host::host_name().unwrap_or_default())),
            ("mpi", Some(short_name(&library))),
            ("backend", Some(backends.join(",")).filter(|names| !names.is_empty())),
            ("path", path),
        ];
        let labels = labels.into_iter().filter_map(|(name, text)| Some((name, text?)));
        Self { text, labels: labels.collect() }
    }
}

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

/// How a run ended, and its values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RunEndReport {
    /// How it ended.
    pub outcome: RunOutcome,
    /// Exit code of the program.
    pub exit: Exit,
    /// Values.
    pub metrics: Vec<ResultMetric>,
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
    /// The result is complete.
    fn result(&mut self, _end: &RunEndReport) {}
}
