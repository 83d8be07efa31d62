//! Conditions of validity, and those that several benchmarks ask for in the same words.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::frame::records::Outcome;

/// One condition of validity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Criterion {
    /// What is asked, e.g. `scheduled time 15.0 min >= 15 min`.
    pub text: String,
    /// Reached or not.
    pub met: bool,
    /// What is missing, for people, e.g. `too short: 15 s, 15 min needed`; empty: the text says it.
    #[serde(skip)]
    pub lack: String,
}

impl Criterion {
    pub(crate) fn new(text: impl Into<String>, met: bool) -> Self {
        Self { text: text.into(), met, lack: String::new() }
    }

    /// With words for what is missing.
    pub(crate) fn or(self, lack: impl Into<String>) -> Self {
        Self { lack: if self.met { String::new() } else { lack.into() }, ..self }
    }

    /// What is missing, in words.
    #[must_use]
    pub fn lack(&self) -> &str {
        if self.lack.is_empty() {
            &self.text
        } else {
            &self.lack
        }
    }

    /// The run went to its end. `interrupted` says how one ended that a signal stopped.
    pub(crate) fn complete(outcome: Outcome, interrupted: &str) -> Self {
        let how = match outcome {
            Outcome::Complete => "complete",
            Outcome::Interrupted => interrupted,
            Outcome::Failed => "failed",
            Outcome::Killed => "killed",
        };
        Self::new(format!("run complete ({how})"), outcome == Outcome::Complete)
            .or(format!("the run was not whole: {how}"))
    }

    /// There is nothing of something that must not be.
    pub(crate) fn no(what: &str, number: u64) -> Self {
        Self::new(format!("{what} {number} == 0"), number == 0).or(format!("{what}: {number}"))
    }

    /// Data is what was written or sent: no wrong units (words, bytes) were counted, and no places were named.
    pub(crate) fn right_data(units: &str, wrong: u64, places: usize) -> Self {
        let text = format!("wrong {units} {wrong} == 0, corrupt places {places} == 0");
        Self::new(text, wrong == 0 && places == 0).or(format!("wrong data: {wrong} {units}"))
    }
}
