//! Selects the path of a pattern to one file: through the page cache, or direct, by arithmetic alone.

use crate::edges::MAX_SECTOR_BYTES;
use crate::{AccessKind, AccessPattern, Collective, Direction, LatencyUnit, RankPartition, TransferStrategy};

/// How the transfers of one pattern access the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FileRoute {
    /// Through the page cache, with the reason if direct I/O was preferred.
    Buffered { reason: Option<String> },
    /// O_DIRECT; every offset, length and address is a multiple of `align_bytes`.
    Direct { align_bytes: u64 },
    /// O_DIRECT in whole sectors directly from or into the transfer buffer; sectors that also contain other bytes are read, modified and
    /// written.
    DirectEdges { align_bytes: u64 },
    /// O_DIRECT, with every chunk read, modified and written although other ranks modify the same sectors. Loses data.
    #[cfg(feature = "test-hooks")]
    UnsafeReadModifyWrite { align_bytes: u64 },
}

impl FileRoute {
    /// True if a transfer that stopped after `moved_bytes` can be continued: a direct one only at an aligned offset; it stops elsewhere
    /// only at the end of the file.
    #[inline]
    pub(crate) fn can_continue(&self, moved_bytes: u64) -> bool {
        self.align_bytes().is_none_or(|align_bytes| moved_bytes.is_multiple_of(align_bytes))
    }

    /// Alignment of offsets and lengths, if the transfers bypass the page cache.
    pub(crate) fn align_bytes(&self) -> Option<u64> {
        match self {
            Self::Buffered { .. } => None,
            Self::Direct { align_bytes } | Self::DirectEdges { align_bytes } => Some(*align_bytes),
            #[cfg(feature = "test-hooks")]
            Self::UnsafeReadModifyWrite { align_bytes } => Some(*align_bytes),
        }
    }

    pub(crate) fn is_direct(&self) -> bool {
        !matches!(self, Self::Buffered { .. })
    }

    /// The strategy for the report: `call` with its replacement for the kind of access, then the route, aligned to `units` (sectors or
    /// blocks).
    pub(crate) fn strategy(&self, call: &str, kind: AccessKind, direction: Direction, units: &str) -> TransferStrategy {
        let kind = kind.substitution_note();
        let how = match (self, direction) {
            (Self::Direct { align_bytes }, _) => format!("O_DIRECT, aligned to {align_bytes}"),
            (Self::DirectEdges { align_bytes }, Direction::Write) => {
                format!("O_DIRECT, whole {units} of {align_bytes} directly from memory, edges read-modify-written")
            }
            (Self::DirectEdges { align_bytes }, Direction::Read) => {
                format!("O_DIRECT, whole sectors of {align_bytes} directly into memory, adjacent bytes restored")
            }
            #[cfg(feature = "test-hooks")]
            (Self::UnsafeReadModifyWrite { align_bytes }, _) => format!(
                "UNSAFE: O_DIRECT, every chunk read-modify-written in sectors of {align_bytes} that other ranks write too, \
                 one blocking call after the other; loses data on purpose"
            ),
            (Self::Buffered { reason: None }, _) => "buffered".to_owned(),
            (Self::Buffered { reason: Some(reason) }, _) => format!("buffered, not direct: {reason}"),
        };
        TransferStrategy {
            strategy: format!("{call}{kind}, {how}"),
            direct: Some(self.is_direct()),
            latency_unit: LatencyUnit::Call,
        }
    }
}

/// The direct route of a pattern on a file with this alignment, or why there is none.
pub(crate) fn direct_route(
    pattern: &AccessPattern,
    align_bytes: u64,
    collective: Collective,
) -> Result<FileRoute, String> {
    if pattern.partition == RankPartition::Unequal && pattern.ranks > 1 {
        // Also if this rank's part is aligned, because all ranks must decide alike.
        return Err(format!(
            "the parts of the ranks have different lengths and may share sectors of {align_bytes} bytes"
        ));
    }
    if pattern.call_bytes() == 0 {
        // Nothing is transferred.
        return Ok(FileRoute::Direct { align_bytes });
    }
    let Some(reason) = misalignment(pattern, align_bytes) else {
        return Ok(FileRoute::Direct { align_bytes });
    };
    let Some(obstacle) = edge_obstacle(pattern, align_bytes) else {
        return Ok(FileRoute::DirectEdges { align_bytes });
    };
    // A sector shared by ranks can only be written directly if they agree on its writer.
    match collective {
        #[cfg(feature = "test-hooks")]
        Collective::UnsafeReadModifyWrite if align_bytes <= MAX_SECTOR_BYTES => {
            Ok(FileRoute::UnsafeReadModifyWrite { align_bytes })
        }
        _ => Err(format!("{reason}, and {obstacle}")),
    }
}

/// True if chunks of the pattern end inside blocks, but each can be transferred in whole blocks, with its last partial block in the next
/// chunk.
pub(crate) fn has_whole_blocks(pattern: &AccessPattern, block_bytes: u64) -> bool {
    let cuts = pattern.call_bytes() > 0 && !pattern.is_aligned(block_bytes);
    cuts && pattern.chunk_bytes >= block_bytes && edge_obstacle(pattern, block_bytes).is_none()
}

/// Why the rank cannot read, modify and write the sectors at the edges of a pattern by itself, directly from memory. None if it can.
fn edge_obstacle(pattern: &AccessPattern, align_bytes: u64) -> Option<String> {
    if !pattern.is_private(align_bytes) {
        return Some(format!("ranks share sectors of {align_bytes} bytes"));
    }
    if !pattern.is_contiguous() {
        return Some("the chunks are not contiguous".into());
    }
    if pattern.order.is_some() {
        return Some("the chunks that share a sector do not follow each other".into());
    }
    if align_bytes > MAX_SECTOR_BYTES {
        return Some(format!("sectors of more than {MAX_SECTOR_BYTES} bytes are only written completely"));
    }
    if pattern.base_bytes % align_bytes != pattern.stream_bytes % align_bytes {
        return Some(format!("file offset and position in memory differ modulo {align_bytes}"));
    }
    None
}

/// Why a pattern cannot be issued directly with this alignment.
fn misalignment(pattern: &AccessPattern, align_bytes: u64) -> Option<String> {
    if pattern.is_aligned(align_bytes) {
        return None;
    }
    let parts = [
        ("chunk", pattern.chunk_bytes),
        ("stride", pattern.stride_bytes),
        ("first offset", pattern.base_bytes),
        ("position in memory", pattern.stream_bytes),
    ];
    let wrong = parts.iter().filter(|(_, value)| value % align_bytes != 0);
    let wrong: Vec<_> = wrong.map(|(name, value)| format!("{name} {value}")).collect();
    Some(format!("{} is not a multiple of {align_bytes}", wrong.join(" and ")))
}

#[cfg(test)]
#[path = "route_tests.rs"]
mod tests;
