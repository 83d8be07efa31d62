//! Computation during the transfers of a batch.

use super::{operation_name, OverlapWork, UringFile};
use crate::error::FailureCause;
use crate::{BackendError, Batch, CallStyle, Direction, Latency, Result, TransferBuffer, MAX_PENDING_CALLS};

impl UringFile {
    /// [`UringFile::run_batch`] overlapped with `during`.
    pub(super) fn overlapped(
        &mut self,
        way: (Direction, bool),
        batch: Batch,
        buffer: &TransferBuffer,
        base: *mut u8,
        during: OverlapWork<'_>,
    ) -> Result<u64> {
        self.check_prepared(way, buffer)?;
        if self.prepared.as_ref().is_none_or(|p| p.pattern.form.style != CallStyle::Request) {
            return Err(BackendError::overlap_unsupported());
        }
        if batch.calls > MAX_PENDING_CALLS {
            let text = format!("{} calls cannot be in flight at once: the limit is {MAX_PENDING_CALLS}", batch.calls);
            return Err(BackendError::new(
                operation_name(way.0),
                &self.file.files.path,
                FailureCause::Unsupported,
                text,
            ));
        }
        self.run_batch(batch, buffer, base, &mut Latency::off(), Some(during))
    }
}

#[cfg(test)]
#[path = "overlap_tests.rs"]
mod tests;
