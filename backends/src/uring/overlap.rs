//! Batches under the transfers of a batch.

use super::{operation, During, UringFile};
use crate::error::Cause;
use crate::{BackendError, Batch, CallStyle, Direction, Latency, Result, Ring, MOST_PENDING};

impl UringFile {
    /// [`UringFile::run_batch`] with `during` under it.
    pub(super) fn overlapped(
        &mut self,
        direction: Direction,
        batch: Batch,
        ring: &Ring,
        base: *mut u8,
        during: During<'_>,
    ) -> Result<u64> {
        self.check(direction, ring)?;
        if self.prepared.as_ref().is_none_or(|p| p.pattern.form.style != CallStyle::Request) {
            return Err(BackendError::nothing_under_way());
        }
        if batch.calls > MOST_PENDING {
            let text = format!("{} calls cannot be under way at once: there is room for {MOST_PENDING}", batch.calls);
            return Err(BackendError::new(operation(direction), &self.file.files.path, Cause::Unsupported, text));
        }
        self.run_batch(batch, ring, base, &mut Latency::off(), Some(during))
    }
}

#[cfg(test)]
#[path = "overlap_tests.rs"]
mod tests;
