//! What was compared, what was found, and what was damaged on purpose.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::b_eff_io::config::InjectAt;
use crate::frame::records::Access;

/// Outcome of the comparison of what was read with what was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verification {
    /// 8-byte words compared, all ranks.
    pub words_checked: u64,
    /// Words that were wrong, all ranks.
    pub words_wrong: u64,
}

impl Verification {
    /// Takes in what else was compared.
    pub fn add(&mut self, more: Self) {
        self.words_checked += more.words_checked;
        self.words_wrong += more.words_wrong;
    }
}

/// What was read again of a pattern's bytes right after it, outside the clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SampleRecord {
    /// Places that were read again, all ranks.
    pub places: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes that the pattern has in its file(s).
    pub of_bytes: u64,
    /// Of `bytes`, those that did not come out of the page cache of the host that read them.
    pub past_cache_bytes: u64,
    /// 8-byte words that were wrong.
    pub words_wrong: u64,
    /// Slowest rank.
    pub seconds: f64,
    /// Why the file could not be opened by its name, if so; then nothing was looked at.
    pub not_read: Option<String>,
}

impl SampleRecord {
    /// Share of the bytes in the file(s) that was looked at, 0 to 1.
    #[must_use]
    pub fn share(&self) -> f64 {
        if self.of_bytes == 0 {
            return 0.0;
        }
        self.bytes as f64 / self.of_bytes as f64
    }
}

/// A wrong word found by the verification, named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CorruptionRecord {
    /// Backend name.
    pub backend: String,
    /// Ranks of the partition.
    pub ranks: u64,
    /// Access method after or during which it was found.
    pub access: Access,
    /// Pattern number that wrote the place.
    pub pattern: u8,
    /// Rank whose data it should be.
    pub rank: u64,
    /// File name below the run directory.
    pub file: String,
    /// Offset of the first wrong word in the file.
    pub offset_bytes: u64,
    /// Expected word.
    pub expected: u64,
    /// Word found.
    pub found: u64,
    /// What it looks like: "one bit flipped", "data of rank 3", "data of the first write", "hole (zeros)", ...
    pub looks_like: String,
    /// Wrong words in this place altogether. Where the last reads show it already, the sample after them adds to the counts only.
    pub words_wrong: u64,
}

/// Damage that was done on purpose (`--inject-at`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DamageRecord {
    /// Backend name.
    pub backend: String,
    /// Ranks of the partition.
    pub ranks: u64,
    /// When.
    pub at: InjectAt,
    /// Pattern number that wrote the place.
    pub pattern: u8,
    /// Rank whose data it was.
    pub rank: u64,
    /// File name below the run directory.
    pub file: String,
    /// Offset in the file.
    pub offset_bytes: u64,
    /// Length.
    pub bytes: u64,
}
