//! Factors, trials and phases.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Values of keys that differ from the default. Empty: the default.
pub type Setting = Vec<(String, String)>;

/// A key and the values to try, the most promising first; the default is none of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Factor {
    /// Key.
    pub key: String,
    /// Values.
    pub values: Vec<String>,
}

/// Part of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Time of a trial.
    Pilot,
    /// The default against itself.
    Noise,
    /// One key at a time.
    Single,
    /// Several keys.
    Combination,
    /// The best without one of its keys.
    Elimination,
    /// The best against the default.
    Confirmation,
    /// The best against the default in the other work that the same application may do.
    Others,
}

impl Phase {
    /// Name in output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pilot => "pilot",
            Self::Noise => "noise",
            Self::Single => "single",
            Self::Combination => "combination",
            Self::Elimination => "elimination",
            Self::Confirmation => "confirmation",
            Self::Others => "other sizes",
        }
    }
}

/// A trial to measure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedTrial {
    /// Part of the search.
    pub phase: Phase,
    /// Round of the phase, from 0.
    pub round: u32,
    /// Setting; empty: the default.
    pub setting: Setting,
    /// Time that the work takes with the default.
    pub seconds: f64,
}

/// A completed trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// As planned.
    pub planned: PlannedTrial,
    /// Begin and end since the begin of the budget, with everything around the measurement.
    pub begin_seconds: f64,
    /// End.
    pub end_seconds: f64,
    /// Measured part of the time.
    pub measured_seconds: f64,
    /// Figure of the goal, in bytes per second; None: the setting is refused or disqualified and will not be tried again.
    pub bytes_per_second: Option<f64>,
}

impl Trial {
    /// Time with everything around the measurement.
    #[must_use]
    pub fn wall_seconds(&self) -> f64 {
        self.end_seconds - self.begin_seconds
    }

    /// Logarithm of the figure.
    #[must_use]
    pub fn log_rate(&self) -> Option<f64> {
        self.bytes_per_second.filter(|rate| *rate > 0.0).map(f64::ln)
    }
}

/// Text of a setting, `key=value` separated by blanks; `default` for the default.
#[must_use]
pub fn setting_text(setting: &[(String, String)]) -> String {
    if setting.is_empty() {
        return "default".to_owned();
    }
    setting.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
}
