//! Operations that a loop submits to io_uring, and the kernel's worker threads for them.

use beff_backends::{OpenFile, SubmissionStatistics};
use beff_ffi::{Comm, MpiError};

use crate::b_eff_io::records::SubmissionRecord;
use crate::frame::system::workers::{io_workers, IoWorkers};

/// Counters before a loop; None for files without a queue.
#[derive(Clone, Copy, Debug)]
pub struct SubmissionCounter {
    before: Option<(SubmissionStatistics, IoWorkers)>,
}

impl SubmissionCounter {
    /// Reads the counters before the clock.
    #[must_use]
    pub fn begin(file: &dyn OpenFile) -> Self {
        Self { before: file.submission_statistics().map(|submitted| (submitted, io_workers())) }
    }

    /// Reads them after the clock; returns the difference, over all ranks. Collective for files with a queue, which all ranks have or none.
    ///
    /// # Errors
    /// MPI between the ranks.
    pub fn end(self, file: &dyn OpenFile, comm: &Comm) -> Result<Option<SubmissionRecord>, MpiError> {
        let (Some((before, old)), Some(after)) = (self.before, file.submission_statistics()) else { return Ok(None) };
        let now = io_workers();
        // A prepare may have replaced the queue of two-phase transfers; idle workers end.
        let since = |now: u64, before: u64| if now >= before { now - before } else { now };
        let mut sums = [
            since(after.registered, before.registered),
            since(after.unregistered, before.unregistered),
            since(now.cpu_ns, old.cpu_ns),
        ];
        comm.sum_u64(&mut sums)?;
        let mut most = [now.threads];
        comm.max_u64(&mut most)?;
        let [registered, plain, cpu_ns] = sums;
        Ok(Some(SubmissionRecord { registered, plain, workers: most[0], worker_cpu_seconds: cpu_ns as f64 * 1e-9 }))
    }
}
