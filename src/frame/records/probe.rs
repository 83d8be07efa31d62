//! Probes of the storage: a short fixed pattern before and after a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Time of a probe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProbeTime {
    /// Before all measurements.
    #[default]
    Start,
    /// After all measurements.
    End,
}

impl ProbeTime {
    /// Printed name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::End => "end",
        }
    }
}

/// Probe of the storage by rank 0 alone with direct I/O, while all other ranks wait: rewrites and reads of blocks of one file, in rounds.
/// A round rewrites and then reads the same number of bytes; times cover its calls only.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeRecord {
    /// Start or end of the run.
    pub at: ProbeTime,
    /// Bytes of one call.
    pub block_bytes: u64,
    /// Bytes that a round rewrites and then reads.
    pub round_bytes: u64,
    /// Time of the rewrites of each round; at least 5 rounds if these take no more than 3 s.
    pub write_seconds: Vec<f64>,
    /// Time of the reads of each round.
    pub read_seconds: Vec<f64>,
    /// Time of the whole probe, including creation and initial write of the file.
    pub seconds: f64,
    /// Why there are no rounds: a short T, no backend that writes, no direct I/O, an error; None if there are.
    pub unknown_reason: Option<String>,
}
