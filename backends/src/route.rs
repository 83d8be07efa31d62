//! The way of a pattern into one file: through the page cache, or directly and how, decided by arithmetic alone.

use crate::edges::MAX_SECTOR_BYTES;
use crate::{AccessKind, Collective, Direction, InForce, Parts, Pattern, Timed};

/// How the transfers of one pattern go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// Through the page cache; the reason where direct I/O would have been preferred.
    Buffered { reason: Option<String> },
    /// O_DIRECT; every offset, length and address is a multiple of `align_bytes`.
    Direct { align_bytes: u64 },
    /// O_DIRECT in whole sectors straight from or into the ring; sectors that are not wholly the pattern's are read,
    /// modified and written.
    DirectEdges { align_bytes: u64 },
    /// O_DIRECT, every chunk read, modified and written although other ranks do so in the same sectors. Loses data.
    #[cfg(feature = "test-hooks")]
    UnsafeReadModifyWrite { align_bytes: u64 },
}

impl Route {
    /// True if a transfer that stopped after `moved_bytes` can go on from there: a direct one can only from an
    /// aligned place, and stops elsewhere only at the end of the file.
    #[inline]
    pub(crate) fn can_continue(&self, moved_bytes: u64) -> bool {
        self.align_bytes().is_none_or(|align_bytes| moved_bytes.is_multiple_of(align_bytes))
    }

    /// What offsets and lengths of the transfers are multiples of, if they bypass the page cache.
    pub(crate) fn align_bytes(&self) -> Option<u64> {
        match self {
            Self::Buffered { .. } => None,
            Self::Direct { align_bytes } | Self::DirectEdges { align_bytes } => Some(*align_bytes),
            #[cfg(feature = "test-hooks")]
            Self::UnsafeReadModifyWrite { align_bytes } => Some(*align_bytes),
        }
    }

    /// True if the transfers bypass the page cache.
    pub(crate) fn is_direct(&self) -> bool {
        !matches!(self, Self::Buffered { .. })
    }

    /// The report of a pattern that goes this way: `call` and how it stands for the kind of access, then the route, aligned to
    /// `units`, sectors or blocks.
    pub(crate) fn in_force(&self, call: &str, kind: AccessKind, direction: Direction, units: &str) -> InForce {
        let kind = kind.by_offsets();
        let how = match (self, direction) {
            (Self::Direct { align_bytes }, _) => format!("O_DIRECT, aligned to {align_bytes}"),
            (Self::DirectEdges { align_bytes }, Direction::Write) => {
                format!("O_DIRECT, whole {units} of {align_bytes} straight from memory, edges read-modify-written")
            }
            (Self::DirectEdges { align_bytes }, Direction::Read) => {
                format!("O_DIRECT, whole sectors of {align_bytes} straight into memory, what they hold beside is restored")
            }
            #[cfg(feature = "test-hooks")]
            (Self::UnsafeReadModifyWrite { align_bytes }, _) => format!(
                "UNSAFE: O_DIRECT, every chunk read-modify-written in sectors of {align_bytes} that other ranks write too, \
                 one blocking call after the other; loses data on purpose"
            ),
            (Self::Buffered { reason: None }, _) => "buffered".to_owned(),
            (Self::Buffered { reason: Some(reason) }, _) => format!("buffered, not direct: {reason}"),
        };
        InForce { strategy: format!("{call}{kind}, {how}"), direct: Some(self.is_direct()), timed: Timed::Call }
    }
}

/// The direct way of a pattern on a file with this alignment, or why there is none.
pub(crate) fn direct_route(pattern: &Pattern, align_bytes: u64, collective: Collective) -> Result<Route, String> {
    if pattern.parts == Parts::Unequal && pattern.ranks > 1 {
        // Also where this rank's part is aligned: all ranks decide alike, see the module.
        return Err(format!(
            "the parts of the ranks have different lengths and may share sectors of {align_bytes} bytes"
        ));
    }
    if pattern.call_bytes() == 0 {
        // Nothing is moved, wherever it lies.
        return Ok(Route::Direct { align_bytes });
    }
    let Some(reason) = misaligned(pattern, align_bytes) else {
        return Ok(Route::Direct { align_bytes });
    };
    let Some(obstacle) = no_edges(pattern, align_bytes) else {
        return Ok(Route::DirectEdges { align_bytes });
    };
    // A sector that ranks share can only be written directly if they agree on who writes it.
    match collective {
        #[cfg(feature = "test-hooks")]
        Collective::UnsafeReadModifyWrite if align_bytes <= MAX_SECTOR_BYTES => {
            Ok(Route::UnsafeReadModifyWrite { align_bytes })
        }
        _ => Err(format!("{reason}, and {obstacle}")),
    }
}

/// True if the chunks of a pattern cut blocks, and each can be moved in whole ones, what is left at its end with the next chunk.
pub(crate) fn has_edges(pattern: &Pattern, block_bytes: u64) -> bool {
    let cuts = pattern.call_bytes() > 0 && !pattern.is_aligned(block_bytes);
    cuts && pattern.chunk_bytes >= block_bytes && no_edges(pattern, block_bytes).is_none()
}

/// Why the sectors at the edges of a pattern cannot be read, modified and written by its rank alone, straight from
/// memory. None: they can.
fn no_edges(pattern: &Pattern, align_bytes: u64) -> Option<String> {
    if !pattern.is_private(align_bytes) {
        return Some(format!("ranks share sectors of {align_bytes} bytes"));
    }
    if !pattern.is_contiguous() {
        return Some("the chunks do not follow each other".into());
    }
    if align_bytes > MAX_SECTOR_BYTES {
        return Some(format!("sectors of more than {MAX_SECTOR_BYTES} bytes are only written whole"));
    }
    if pattern.base_bytes % align_bytes != pattern.stream_bytes % align_bytes {
        return Some(format!("file offset and position in memory differ modulo {align_bytes}"));
    }
    None
}

/// Why a pattern cannot be issued directly with this alignment.
fn misaligned(pattern: &Pattern, align_bytes: u64) -> Option<String> {
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
    Some(format!("{} is no multiple of {align_bytes}", wrong.join(" and ")))
}

#[cfg(test)]
#[path = "route_tests.rs"]
mod tests;
