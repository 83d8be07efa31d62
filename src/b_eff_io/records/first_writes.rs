//! The trial that selects direct or buffered two-phase first writes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// I/O mode of first writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FirstWriteMode {
    /// Direct, where possible.
    Direct,
    /// Buffered.
    Buffered,
}

impl FirstWriteMode {
    /// Name in output and records.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Buffered => "buffered",
        }
    }
}

/// The same bytes written to new files in both modes, one right after the other. Each time is that of the slowest rank, sync included.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FirstWritePair {
    /// Direct.
    pub direct_seconds: f64,
    /// Buffered.
    pub buffered_seconds: f64,
}

/// Trial of first writes through one backend before the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FirstWriteTrial {
    /// Backend name.
    pub backend: String,
    /// Bytes of one write: a domain, in whole pages.
    pub chunk_bytes: u64,
    /// Bytes of all ranks in one trial, the same in both modes: at least four domains and 4 MiB per rank, at most 256 MiB, half a second or
    /// a quarter of the space; 0: no trial.
    pub bytes: u64,
    /// All pairs in order: the first and third begin direct, the others buffered.
    pub pairs: Vec<FirstWritePair>,
    /// Mode of two-phase first writes in this run: `buffered` if that was faster in every pair and the median of the direct times is at
    /// least 1.1 times that of the buffered ones.
    pub chosen: FirstWriteMode,
    /// Median of the direct times divided by that of the buffered ones; None: no trial.
    pub ratio: Option<f64>,
    /// Why there was no trial: T below 20 s, too little time or space for a trial, no direct I/O. The mode is then `direct`. None: trial
    /// done.
    pub skip_reason: Option<String>,
}
