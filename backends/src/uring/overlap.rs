//! Work under the transfers of a batch.

use super::{operation, During, UringFile};
use crate::error::Cause;
use crate::{AccessKind, BackendError, Batch, CallStyle, Direction, Latency, Pattern, Result, Ring, MOST_PENDING};

/// Why the queue cannot take the place of the calls of a pattern.
pub(super) fn refuses(pattern: &Pattern) -> Option<String> {
    match (pattern.kind, pattern.form.style) {
        (AccessKind::Independent, CallStyle::Request) => None,
        (AccessKind::Collective | AccessKind::SharedOrdered, CallStyle::Request | CallStyle::Split) => {
            Some("io_uring has no collective calls to begin and to end; use mpiio".into())
        }
        _ => pattern.needs_more_than_offsets(),
    }
}

/// For the report: which operations are under way while there is work.
pub(super) fn told(pattern: &Pattern, depth: u32) -> &'static str {
    let operations = pattern.max_calls.min(MOST_PENDING).saturating_mul(pattern.chunks_per_call);
    if operations > u64::from(depth) {
        "; what exceeds the depth is submitted after the work under it"
    } else {
        "; all calls are submitted before the work under them"
    }
}

impl UringFile {
    /// [`UringFile::run`] with `during` under it.
    pub(super) fn overlapped(
        &mut self,
        direction: Direction,
        batch: Batch,
        ring: &Ring,
        base: *mut u8,
        during: During<'_>,
    ) -> Result<u64> {
        if self.file.two_phase.is_active() {
            return Err(BackendError::nothing_under_way());
        }
        self.check(direction, ring)?;
        let prepared = self.prepared.as_ref().filter(|p| p.scratch.is_none());
        if prepared.is_none_or(|p| p.pattern.form.style != CallStyle::Request) {
            return Err(BackendError::nothing_under_way());
        }
        if batch.calls > MOST_PENDING {
            let text = format!("{} calls cannot be under way at once: there is room for {MOST_PENDING}", batch.calls);
            return Err(BackendError::new(operation(direction), &self.file.files.path, Cause::Unsupported, text));
        }
        self.run(batch, ring, base, &mut Latency::off(), Some(during))
    }
}

#[cfg(test)]
#[path = "overlap_tests.rs"]
mod tests;
