//! Conditions of validity, and those that several benchmarks ask for in the same words.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// One that is met or not.
    pub fn new(text: impl Into<String>, met: bool) -> Self {
        Self { text: text.into(), met, lack: String::new() }
    }

    /// With words for what is missing.
    pub fn or(self, lack: impl Into<String>) -> Self {
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

    /// The run went to its end; or else `how` it ended.
    #[must_use]
    pub fn complete(how: &str, is_complete: bool) -> Self {
        Self::new(format!("run complete ({how})"), is_complete).or(format!("the run was not whole: {how}"))
    }

    /// There is nothing of something that must not be.
    pub fn no(what: &str, number: u64) -> Self {
        Self::new(format!("{what} {number} == 0"), number == 0).or(format!("{what}: {number}"))
    }

    /// Data is what was written or sent: no wrong units (words, bytes) were counted, and no places were named.
    pub fn right_data(units: &str, wrong: u64, places: usize) -> Self {
        let text = format!("wrong {units} {wrong} == 0, corrupt places {places} == 0");
        Self::new(text, wrong == 0 && places == 0).or(format!("wrong data: {wrong} {units}"))
    }
}

/// `VALID`, or `NOT VALID (2 criteria not reached)`.
#[must_use]
pub fn in_words(criteria: &[Criterion]) -> String {
    match criteria.iter().filter(|c| !c.met).count() {
        0 => "VALID".to_owned(),
        1 => "NOT VALID (1 criterion not reached)".to_owned(),
        missed => format!("NOT VALID ({missed} criteria not reached)"),
    }
}
