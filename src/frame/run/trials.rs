//! Trials: the same work with different settings, each on new files. The benchmark modules implement them; what is tried, and what
//! follows from it, is decided elsewhere.

use beff_ffi::MpiError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::frame::records::{RunOutcome, Warning};
use crate::frame::trials::Setting;

/// What a trial measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialScope {
    /// What the goal is about.
    Goal,
    /// Everything else that the same types have: the other chunk sizes. A recording has nothing else.
    Others,
}

/// A trial.
#[derive(Clone, Debug)]
pub struct TrialRequest<'a> {
    /// Options instead of the default.
    pub setting: &'a [(String, String)],
    /// Number, from 0. Each trial has files of its own and different data.
    pub number: u32,
    /// Time that the calls are to take with the default, in seconds. The number of calls follows from it, so that all trials with the same
    /// time do the same work. A recording always has its own length.
    pub seconds: f64,
    /// What is measured.
    pub scope: TrialScope,
}

/// A part of the work: a pattern.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialPart {
    /// Its name.
    pub name: String,
    /// Bytes of all ranks.
    pub bytes: u64,
    /// Time of the slowest rank, including the sync of writes.
    pub seconds: f64,
}

/// Result of a trial, equal on all ranks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialOutcome {
    /// The figure that the goal names, in bytes per second; 0 if nothing was measured.
    pub bytes_per_second: f64,
    /// Its parts.
    pub parts: Vec<TrialPart>,
    /// Words read back and compared.
    pub words_checked: u64,
    /// Wrong ones: the setting is disqualified.
    pub words_wrong: u64,
    /// Hints in force as the library reports them.
    pub hints_granted: Setting,
    /// Facts about the file as the file system reports them, such as its stripes; empty if unknown.
    pub layout: Vec<(String, String)>,
    /// Share of the read bytes that came from storage; None: unknown, or nothing was read.
    pub storage_share: Option<f64>,
    /// Why nothing was measured: the setting is refused or failed. Other settings can be tried.
    pub refusal: Option<String>,
}

/// Measures trials. All methods are collective; their results are equal on all ranks.
pub trait TrialRunner {
    /// Name of the work: types and chunk sizes, or the profile.
    fn work(&self) -> String;

    /// Hints that the library lists for a new file that is opened with `hints`; None if it lists none or the file cannot be opened.
    ///
    /// # Errors
    /// MPI between the ranks.
    fn granted_hints(&mut self, hints: &[(String, String)]) -> Result<Option<Setting>, MpiError>;

    /// Measures, and removes the files.
    ///
    /// # Errors
    /// Why no further trial is possible: a signal or the time limit (the outcome of the run), or MPI between the ranks.
    fn measure(&mut self, trial: &TrialRequest<'_>) -> Result<Result<TrialOutcome, RunOutcome>, MpiError>;

    /// Removes all files. Called once, on all ranks.
    fn clean_up(&mut self, outcome: RunOutcome) -> Option<Warning>;
}
