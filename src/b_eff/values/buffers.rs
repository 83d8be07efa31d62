//! Whether messages came from memory or from caches.

use schemars::JsonSchema;
use serde::Serialize;

use crate::b_eff::plan::walk::memory_bytes;
use crate::b_eff::plan::Buffers;
use crate::b_eff::records::CommResult;
use crate::frame::values::Criterion;

/// Where the processors found what was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessagesFrom {
    /// The walk goes through more than the last-level cache.
    Memory,
    /// It goes through less: with this Lmax the definition itself measures caches.
    SmallMemory,
    /// The same windows again and again.
    ReusedWindows,
}

impl MessagesFrom {
    /// In two words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Memory => "from memory",
            Self::SmallMemory | Self::ReusedWindows => "from cache",
        }
    }
}

/// By the configuration, and by the largest last-level cache of the hosts: a rank has it for itself at best.
pub(super) fn of(result: &CommResult) -> MessagesFrom {
    let cache_bytes = result.setup.machine.hosts.iter().map(|h| h.last_level_cache_bytes).max().unwrap_or(0);
    match result.config.buffers {
        Buffers::Reused => MessagesFrom::ReusedWindows,
        Buffers::Cyclic if memory_bytes(result.setup.lmax_bytes) <= cache_bytes / 2 => MessagesFrom::SmallMemory,
        Buffers::Cyclic => MessagesFrom::Memory,
    }
}

/// The definition walks.
pub(super) fn criterion(result: &CommResult) -> Criterion {
    let buffers = result.config.buffers;
    Criterion::new(format!("messages walk through memory ({} buffers)", buffers.name()), buffers == Buffers::Cyclic)
        .or(format!("messages from cache ({} buffers)", buffers.name()))
}
