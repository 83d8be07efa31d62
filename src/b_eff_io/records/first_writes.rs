//! Whether two-phase first writes are direct or buffered, and what was seen before that was chosen.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A way of first writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FirstWriteWay {
    /// Past the page cache, where it can be.
    Direct,
    /// Through the page cache.
    Buffered,
}

impl FirstWriteWay {
    /// As it is printed and recorded.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Buffered => "buffered",
        }
    }
}

/// The same bytes into new files both ways, one right after the other. Each time is that of the slowest rank, its sync
/// included.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FirstWritePair {
    /// Past the page cache.
    pub direct_seconds: f64,
    /// Through it.
    pub buffered_seconds: f64,
}

/// Trial of first writes through one backend before the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FirstWriteTrial {
    /// Backend name.
    pub backend: String,
    /// Bytes of one write: a domain.
    pub chunk_bytes: u64,
    /// Bytes of all ranks, once each way in every pair; 0: nothing was tried.
    pub bytes: u64,
    /// All pairs in order: the first began direct, the second buffered, and so on.
    pub pairs: Vec<FirstWritePair>,
    /// How two-phase first writes go in this run.
    pub chosen: FirstWriteWay,
    /// Median of the direct times over that of the buffered ones; None: nothing was tried.
    pub ratio: Option<f64>,
    /// Why nothing was tried; None: it was.
    pub not_tried: Option<String>,
}
