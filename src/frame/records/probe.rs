//! What the storage did for a short fixed pattern before and after a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When a probe was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProbeAt {
    /// Before everything that is measured.
    #[default]
    Start,
    /// After it.
    End,
}

impl ProbeAt {
    /// The word as it is printed.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::End => "end",
        }
    }
}

/// Rank 0 alone, past the page cache, while all others wait: rewrites and reads of blocks of one file, in rounds. A round rewrites and
/// then reads the same number of bytes; times are those of its calls alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeRecord {
    /// When.
    pub at: ProbeAt,
    /// Bytes of one call.
    pub block_bytes: u64,
    /// Bytes that a round rewrites, and then reads.
    pub round_bytes: u64,
    /// Time of the rewrites of each round; at least 5 rounds, if these take no more than 3 s.
    pub write_seconds: Vec<f64>,
    /// Time of the reads of each round.
    pub read_seconds: Vec<f64>,
    /// Time of all of the probe, creating and filling the file too.
    pub seconds: f64,
    /// Why there is nothing: a short T, no backend that writes, no direct I/O, an error; None: there is something.
    pub not_known: Option<String>,
}
