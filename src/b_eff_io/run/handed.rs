//! What a loop hands to queues of io_uring, and what of it the kernel gives to threads of its own.

use beff_backends::{OpenFile, Submitted};
use beff_ffi::{Comm, MpiError};

use crate::b_eff_io::records::SubmissionRecord;
use crate::frame::system::workers::{workers, Workers};

/// Counts of before a loop; None for files without a queue.
#[derive(Clone, Copy, Debug)]
pub struct Handed {
    before: Option<(Submitted, Workers)>,
}

impl Handed {
    /// Before the clock.
    #[must_use]
    pub fn begin(file: &dyn OpenFile) -> Self {
        Self { before: file.submitted().map(|submitted| (submitted, workers())) }
    }

    /// After it: what came since, of all ranks. Collective for files with a queue, and all ranks have one or none has.
    ///
    /// # Errors
    /// MPI between the ranks.
    pub fn end(self, file: &dyn OpenFile, comm: &Comm) -> Result<Option<SubmissionRecord>, MpiError> {
        let (Some((before, old)), Some(after)) = (self.before, file.submitted()) else { return Ok(None) };
        let now = workers();
        // A prepare may have replaced the queue of two-phase transfers; workers end when they were idle.
        let since = |now: u64, before: u64| if now >= before { now - before } else { now };
        let mut sums = [
            since(after.registered, before.registered),
            since(after.plain, before.plain),
            since(now.cpu_ns, old.cpu_ns),
        ];
        comm.sum_u64(&mut sums)?;
        let mut most = [now.threads];
        comm.max_u64(&mut most)?;
        let [registered, plain, cpu_ns] = sums;
        Ok(Some(SubmissionRecord { registered, plain, workers: most[0], worker_cpu_seconds: cpu_ns as f64 * 1e-9 }))
    }
}
