//! Verification results, corruptions, and injected faults.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::b_eff_io::config::{CallOrder, ChunkOrder, InjectionPoint, ReadShare};
use crate::frame::records::AccessMethod;

/// Outcome of the comparison of data read with data written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verification {
    /// 8-byte words compared, all ranks.
    pub words_checked: u64,
    /// Words that were wrong, all ranks.
    pub words_wrong: u64,
}

impl Verification {
    /// Adds a further comparison.
    pub fn add(&mut self, more: Self) {
        self.words_checked = self.words_checked.saturating_add(more.words_checked);
        self.words_wrong = self.words_wrong.saturating_add(more.words_wrong);
    }
}

/// Sample of a pattern's bytes in the file(s), read back after it, outside the measured time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SampleRecord {
    /// Samples read back, all ranks.
    pub samples: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes of the pattern in its file(s).
    pub of_bytes: u64,
    /// Of `bytes`, those that did not come from the page cache of the host that read them.
    pub past_cache_bytes: u64,
    /// 8-byte words that were wrong.
    pub words_wrong: u64,
    /// Slowest rank.
    pub seconds: f64,
    /// Why the file could not be opened by name, if so; then nothing was read.
    pub unread_reason: Option<String>,
}

impl SampleRecord {
    /// Share of the bytes in the file(s) that was sampled, 0 to 1.
    #[must_use]
    pub fn share(&self) -> f64 {
        if self.of_bytes == 0 {
            return 0.0;
        }
        self.bytes as f64 / self.of_bytes as f64
    }
}

/// A wrong word detected by the verification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CorruptionRecord {
    /// Backend name.
    pub backend: String,
    /// Ranks of the partition.
    pub ranks: u64,
    /// Access method after or during which it was detected.
    pub access: AccessMethod,
    /// Order of access after or during which it was detected, in a measurement beside the definition; None: in one of the definition.
    #[serde(default)]
    pub order: Option<ChunkOrder>,
    /// Share of reads of that measurement, if it mixes them with writes.
    #[serde(default)]
    pub mix: Option<ReadShare>,
    /// Number of the pattern that wrote this offset.
    pub pattern: u8,
    /// Rank that should have written it.
    pub rank: u64,
    /// File name below the run directory.
    pub file: String,
    /// Offset of the first wrong word in the file.
    pub offset_bytes: u64,
    /// Expected word.
    pub expected: u64,
    /// Actual word.
    pub actual: u64,
    /// Diagnosis: "one bit flipped", "data of rank 3", "data of the first write", "hole (zeros)", ...
    pub diagnosis: String,
    /// Wrong words at this location. If the last reads show it already, the following sample adds to the counts only.
    pub words_wrong: u64,
}

impl CorruptionRecord {
    /// Order of the measurement beside the definition.
    #[must_use]
    pub fn call_order(&self) -> Option<CallOrder> {
        self.order.map(|order| CallOrder { order, mix: self.mix })
    }
}

/// Injected fault (`--inject-at`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InjectedFaultRecord {
    /// Backend name.
    pub backend: String,
    /// Ranks of the partition.
    pub ranks: u64,
    /// Time of injection.
    pub at: InjectionPoint,
    /// Number of the pattern that wrote this offset.
    pub pattern: u8,
    /// Rank that wrote the data.
    pub rank: u64,
    /// File name below the run directory.
    pub file: String,
    /// Offset in the file.
    pub offset_bytes: u64,
    /// Length.
    pub bytes: u64,
}
