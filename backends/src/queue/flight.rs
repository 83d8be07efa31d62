//! Operations in flight, which never outlive the batch that made them.

use std::io;

use io_uring::{cqueue, squeue, EnterFlags, Submitter};

use super::Queue;
use crate::last_words;
use crate::patience::Patience;
use crate::Submitted;

/// A borrowed queue, usually during one batch. Dropping it, also while a panic unwinds, waits for everything the kernel still
/// works on; only then is the memory of the transfers the caller's again.
pub(crate) struct Flight<'a> {
    submitter: Submitter<'a>,
    sq: squeue::SubmissionQueue<'a>,
    cq: cqueue::CompletionQueue<'a>,
    abandoned: &'a mut bool,
    submitted: &'a mut Submitted,
    /// Pushed and not yet taken out of the completion queue.
    in_flight: usize,
    /// Where [`Flight::leave`] leaves it.
    left: &'a mut usize,
    /// With a kernel that takes nothing and completes nothing.
    patience: Patience,
}

impl<'a> Flight<'a> {
    pub(crate) fn new(queue: &'a mut Queue) -> Self {
        let (submitter, sq, cq) = queue.ring.split();
        Self {
            submitter,
            sq,
            cq,
            abandoned: &mut queue.abandoned,
            submitted: &mut queue.submitted,
            in_flight: std::mem::take(&mut queue.in_flight),
            left: &mut queue.in_flight,
            patience: Patience::default(),
        }
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Ends the borrow with everything still in flight: the next value of this queue takes it over.
    pub(crate) fn leave(mut self) {
        *self.left = std::mem::take(&mut self.in_flight);
    }

    /// Puts an operation into the submission queue.
    ///
    /// # Safety
    /// The memory the entry names is valid for the transfer until this value has been dropped; after [`Flight::leave`], until the one
    /// that took it over has been.
    #[inline]
    pub(crate) unsafe fn push(&mut self, entry: &squeue::Entry) {
        // SAFETY: the caller's promise covers the time until the drop, which waits for the completion.
        let pushed = unsafe { self.sq.push(entry) };
        // The queue has room for the whole depth, and never more than that is in flight.
        assert!(pushed.is_ok(), "submission queue is full");
        self.in_flight += 1;
    }

    /// Counts an operation that was pushed: from registered memory, or from other.
    #[inline]
    pub(crate) fn count(&mut self, registered: bool) {
        self.submitted.registered += u64::from(registered);
        self.submitted.plain += u64::from(!registered);
    }

    /// Hands everything pushed to the kernel and waits for `want` completions.
    ///
    /// # Errors
    /// Those of io_uring_enter(2); EAGAIN and EBUSY only after many tries with nothing completed between them.
    pub(crate) fn submit_and_wait(&mut self, want: usize) -> io::Result<()> {
        self.sq.sync();
        let entered = match self.submitter.submit_and_wait(want) {
            Err(error) if !is_transient(&error) => Err(error),
            // What was not taken stays in the queue for the next time; not for ever.
            Err(error) if !self.patience.try_again() => Err(error),
            Ok(_) | Err(_) => Ok(()),
        };
        self.sq.sync();
        self.cq.sync();
        entered
    }

    /// Lets the kernel post completions that it posts in a system call only, and waits for none. An error shows when they are waited for.
    pub(crate) fn look(&mut self) {
        // SAFETY: nothing is submitted (0) and no argument is passed, so no memory is named.
        let _ = unsafe { self.submitter.enter::<()>(0, 0, EnterFlags::GETEVENTS.bits(), None) };
        self.cq.sync();
    }

    /// The next completion that is already there: (user data, result).
    #[inline]
    pub(crate) fn next_completion(&mut self) -> Option<(u64, i32)> {
        let entry = self.cq.next()?;
        self.in_flight -= 1;
        self.patience.restore();
        Some((entry.user_data(), entry.result()))
    }

    /// Waits until the kernel works on nothing any more. Entries it has not taken are not submitted: they stay behind
    /// in a queue that is never used again.
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
            // SAFETY: nothing is submitted (0) and no argument is passed, so no memory is named.
            let entered = unsafe { self.submitter.enter::<()>(0, 1, EnterFlags::GETEVENTS.bits(), None) };
            match entered {
                Err(error) if !is_transient(&error) => self.give_up(&error),
                Ok(_) | Err(_) => {}
            }
        }
    }

    /// Returning would let the kernel write into memory that is no longer ours.
    pub(crate) fn give_up(&self, error: &io::Error) -> ! {
        let in_flight = self.in_flight;
        last_words::say(&format!(
            "io_uring_enter: cannot wait for {in_flight} transfers in flight: {error}; giving up"
        ));
        std::process::abort();
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        if self.in_flight > 0 {
            self.drain();
        }
    }
}

/// A signal, or a lack of resources that passes when completions are taken.
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
    use crate::queue::MAX_PIECE_SHIFT;

    /// A read that stays in flight until somebody writes into the other end.
    #[test]
    fn a_panic_waits_for_what_is_in_flight() {
        use std::io::Write;
        let (reader, mut writer) = std::os::unix::net::UnixStream::pair().unwrap();
        let mut queue = Queue::new(4, &[reader.as_raw_fd()], MAX_PIECE_SHIFT, Path::new("socket")).unwrap();
        let mut memory = [0_u8; 8];
        let entry = opcode::Read::new(types::Fixed(0), memory.as_mut_ptr(), 8).build().user_data(0);
        let late = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(100));
            writer.write_all(b"in time!").unwrap();
        });
        let unwound = catch_unwind(AssertUnwindSafe(|| {
            let mut flight = Flight::new(&mut queue);
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
