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
    /// Bytes of one write: a domain, in whole pages.
    pub chunk_bytes: u64,
    /// Bytes of all ranks in one trial, the same both ways: at least four domains and 4 MiB of a rank, at most 256 MiB, half a second or
    /// a quarter of the space; 0: nothing was tried.
    pub bytes: u64,
    /// All pairs in order: the first and third began direct, the others buffered.
    pub pairs: Vec<FirstWritePair>,
    /// How two-phase first writes go in this run: `buffered` if that was faster in every pair and the median of the direct times is at
    /// least 1.1 times that of the buffered ones.
    pub chosen: FirstWriteWay,
    /// Median of the direct times over that of the buffered ones; None: nothing was tried.
    pub ratio: Option<f64>,
    /// Why nothing was tried: T below 20 s, a trial that takes longer than there is time for, too little space, no direct I/O. Then
    /// `direct` stays. None: it was tried.
    pub not_tried: Option<String>,
}
