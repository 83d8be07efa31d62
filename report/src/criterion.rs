//! Criteria of validity, including those common to several benchmarks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One criterion of validity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Criterion {
    /// Requirement, e.g. `scheduled time 15.0 min >= 15 min`.
    pub text: String,
    /// True if it is met.
    pub met: bool,
    /// Explanation if it is not met, e.g. `too short: 15 s, 15 min needed`; empty if the text suffices.
    #[serde(skip)]
    pub lack: String,
}

impl Criterion {
    /// Creates a criterion.
    pub fn new(text: impl Into<String>, met: bool) -> Self {
        Self { text: text.into(), met, lack: String::new() }
    }

    /// Sets the explanation used if the criterion is not met.
    pub fn with_lack(self, lack: impl Into<String>) -> Self {
        Self { lack: if self.met { String::new() } else { lack.into() }, ..self }
    }

    /// Explanation of an unmet criterion.
    #[must_use]
    pub fn lack(&self) -> &str {
        if self.lack.is_empty() {
            &self.text
        } else {
            &self.lack
        }
    }

    /// The run is complete; `how` is its outcome.
    #[must_use]
    pub fn complete(how: &str, is_complete: bool) -> Self {
        Self::new(format!("run complete ({how})"), is_complete).with_lack(format!("the run was not complete: {how}"))
    }

    /// The number of `what` is 0.
    pub fn none_of(what: &str, number: u64) -> Self {
        Self::new(format!("{what} {number} == 0"), number == 0).with_lack(format!("{what}: {number}"))
    }

    /// Data is as written or sent: no wrong units (words, bytes) and no corrupt places.
    pub fn correct_data(units: &str, wrong: u64, places: usize) -> Self {
        let text = format!("wrong {units} {wrong} == 0, corrupt places {places} == 0");
        Self::new(text, wrong == 0 && places == 0).with_lack(format!("wrong data: {wrong} {units}"))
    }
}

/// `VALID`, or `NOT VALID (2 criteria not met)`, and the number of caveats.
#[must_use]
pub fn validity_text(criteria: &[Criterion], caveats: usize) -> String {
    let caveats = match caveats {
        0 => String::new(),
        1 => ", 1 caveat".to_owned(),
        number => format!(", {number} caveats"),
    };
    verdict(criteria) + &caveats
}

fn verdict(criteria: &[Criterion]) -> String {
    match criteria.iter().filter(|c| !c.met).count() {
        0 => "VALID".to_owned(),
        1 => "NOT VALID (1 criterion not met)".to_owned(),
        missed => format!("NOT VALID ({missed} criteria not met)"),
    }
}
