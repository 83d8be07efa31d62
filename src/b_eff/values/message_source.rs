//! Source of the messages: memory or caches.

use schemars::JsonSchema;
use serde::Serialize;

use crate::b_eff::plan::walk::walk_memory_bytes;
use crate::b_eff::plan::BufferMode;
use crate::b_eff::records::CommResult;
use crate::frame::values::Criterion;

/// Source from which the processors read sent messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessageSource {
    /// Memory: the walk exceeds the last-level cache.
    Memory,
    /// Cache: with this Lmax, the walk of the definition fits into the last-level cache.
    SmallMemory,
    /// Cache: the same windows are reused.
    ReusedWindows,
}

impl MessageSource {
    /// Short label.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Memory => "from memory",
            Self::SmallMemory | Self::ReusedWindows => "from cache",
        }
    }
}

/// Derived from the configuration and the largest last-level cache of the hosts, which one rank has at most.
pub(super) fn derive_source(result: &CommResult) -> MessageSource {
    let cache_bytes = result.setup.machine.hosts.iter().map(|h| h.last_level_cache_bytes).max().unwrap_or(0);
    match result.config.buffers {
        BufferMode::Reused => MessageSource::ReusedWindows,
        BufferMode::Cyclic if walk_memory_bytes(result.setup.lmax_bytes) <= cache_bytes / 2 => {
            MessageSource::SmallMemory
        }
        BufferMode::Cyclic => MessageSource::Memory,
    }
}

pub(super) fn criterion(result: &CommResult) -> Criterion {
    let buffers = result.config.buffers;
    Criterion::new(format!("messages walk through memory ({} buffers)", buffers.name()), buffers == BufferMode::Cyclic)
        .with_lack(format!("messages from cache ({} buffers)", buffers.name()))
}
