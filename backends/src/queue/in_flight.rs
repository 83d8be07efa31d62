//! Operations in flight, which never outlive their batch.

use std::io;

use io_uring::{cqueue, squeue, EnterFlags, Submitter};

use super::Queue;
use crate::abort_message;
use crate::retry::RetryBudget;
use crate::SubmissionStatistics;

/// A borrowed queue, usually during one batch. Dropping it, also while a panic unwinds, waits for all operations in the kernel; only then
/// may the caller reuse the memory of the transfers.
pub(crate) struct InFlightOperations<'a> {
    submitter: Submitter<'a>,
    sq: squeue::SubmissionQueue<'a>,
    cq: cqueue::CompletionQueue<'a>,
    abandoned: &'a mut bool,
    submitted: &'a mut SubmissionStatistics,
    /// Pushed, and not yet removed from the completion queue.
    in_flight: usize,
    /// Where [`InFlightOperations::detach`] stores the count.
    handover: &'a mut usize,
    /// For a kernel that neither accepts nor completes operations.
    patience: RetryBudget,
}

impl<'a> InFlightOperations<'a> {
    pub(crate) fn new(queue: &'a mut Queue) -> Self {
        let (submitter, sq, cq) = queue.ring.split();
        Self {
            submitter,
            sq,
            cq,
            abandoned: &mut queue.abandoned,
            submitted: &mut queue.submitted,
            in_flight: std::mem::take(&mut queue.in_flight),
            handover: &mut queue.in_flight,
            patience: RetryBudget::default(),
        }
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Ends the borrow without waiting: the next value for this queue takes over the operations in flight.
    pub(crate) fn detach(mut self) {
        *self.handover = std::mem::take(&mut self.in_flight);
    }

    /// Pushes an operation to the submission queue.
    ///
    /// # Safety
    /// The memory of the entry is valid for the transfer until this value has been dropped; after [`InFlightOperations::detach`], until the value
    /// that took over the operation has been dropped.
    #[inline]
    pub(crate) unsafe fn push(&mut self, entry: &squeue::Entry) {
        // SAFETY: guaranteed by the caller until the drop, which waits for the completion.
        let pushed = unsafe { self.sq.push(entry) };
        // The queue has entries for the whole depth, which the operations in flight never exceed.
        assert!(pushed.is_ok(), "submission queue is full");
        self.in_flight += 1;
    }

    /// Counts an operation as registered or unregistered.
    #[inline]
    pub(crate) fn count(&mut self, registered: bool) {
        self.submitted.registered += u64::from(registered);
        self.submitted.unregistered += u64::from(!registered);
    }

    /// Submits all pushed operations and waits for `want` completions.
    ///
    /// # Errors
    /// Those of io_uring_enter(2); EAGAIN and EBUSY only after many attempts without a completion.
    pub(crate) fn submit_and_wait(&mut self, want: usize) -> io::Result<()> {
        self.sq.sync();
        let entered = match self.submitter.submit_and_wait(want) {
            Err(error) if !is_transient(&error) => Err(error),
            // Entries that were not accepted stay in the queue for a limited number of retries.
            Err(error) if !self.patience.may_retry() => Err(error),
            Ok(_) | Err(_) => Ok(()),
        };
        self.sq.sync();
        self.cq.sync();
        entered
    }

    /// Makes the kernel post completions that need a system call, without waiting. Errors are reported by the next wait.
    pub(crate) fn poll_completions(&mut self) {
        // SAFETY: nothing is submitted (0) and no argument is passed, so no memory is passed.
        let _ = unsafe { self.submitter.enter::<()>(0, 0, EnterFlags::GETEVENTS.bits(), None) };
        self.cq.sync();
    }

    /// The next available completion: (user data, result).
    #[inline]
    pub(crate) fn next_completion(&mut self) -> Option<(u64, i32)> {
        let entry = self.cq.next()?;
        self.in_flight -= 1;
        self.patience.reset();
        Some((entry.user_data(), entry.result()))
    }

    /// Waits until no operation is in flight in the kernel. Entries that it has not accepted are not submitted: they remain in a queue
    /// that is never used again.
    fn drain(&mut self) {
        while self.in_flight > 0 {
            self.sq.sync();
            self.cq.sync();
            while self.next_completion().is_some() {}
            self.cq.sync();
            let waiting = self.sq.len();
            if waiting > 0 {
                *self.abandoned = true;
            }
            if self.in_flight <= waiting {
                return;
            }
            // SAFETY: nothing is submitted (0) and no argument is passed, so no memory is passed.
            let entered = unsafe { self.submitter.enter::<()>(0, 1, EnterFlags::GETEVENTS.bits(), None) };
            match entered {
                Err(error) if !is_transient(&error) => self.abort_in_flight(&error),
                Ok(_) | Err(_) => {}
            }
        }
    }

    /// Aborts: returning would let the kernel write into memory that is no longer owned.
    pub(crate) fn abort_in_flight(&self, error: &io::Error) -> ! {
        let in_flight = self.in_flight;
        abort_message::print_before_abort(&format!(
            "io_uring_enter: cannot wait for {in_flight} transfers in flight: {error}; aborting"
        ));
        std::process::abort();
    }
}

impl Drop for InFlightOperations<'_> {
    fn drop(&mut self) {
        if self.in_flight > 0 {
            self.drain();
        }
    }
}

/// A signal, or a lack of resources that ends when completions are consumed.
fn is_transient(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::panic::{catch_unwind, AssertUnwindSafe};
    use std::path::Path;

    use io_uring::{opcode, types};

    use super::*;
    use crate::queue::MAX_BUFFER_SHIFT;

    /// A read that stays in flight until the other end writes.
    #[test]
    fn a_panic_waits_for_what_is_in_flight() {
        use std::io::Write;
        let (reader, mut writer) = std::os::unix::net::UnixStream::pair().unwrap();
        let mut queue = Queue::new(4, &[reader.as_raw_fd()], MAX_BUFFER_SHIFT, Path::new("socket")).unwrap();
        let mut memory = [0_u8; 8];
        let entry = opcode::Read::new(types::Fixed(0), memory.as_mut_ptr(), 8).build().user_data(0);
        let late = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(100));
            writer.write_all(b"in time!").unwrap();
        });
        let unwound = catch_unwind(AssertUnwindSafe(|| {
            let mut flight = InFlightOperations::new(&mut queue);
            // SAFETY: `memory` lives until the end of the test, `flight` until the end of this closure.
            unsafe { flight.push(&entry) };
            flight.submit_and_wait(0).unwrap();
            panic!("in the middle of a batch");
        }));
        assert!(unwound.is_err());
        assert_eq!(&memory, b"in time!", "the drop of the flight waits for the kernel");
        assert!(!queue.abandoned);
        late.join().unwrap();
    }
}
