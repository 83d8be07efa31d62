//! Limits retries after EAGAIN and EINTR. The kernel returns them for a short lack of resources or a signal, but indefinitely for
//! nonblocking files (O_NONBLOCK, some FUSE servers).

use std::io;
use std::time::Duration;

/// Retries without a delay.
const IMMEDIATE_RETRIES: u32 = 64;
/// Further retries after a delay each: three seconds.
const DELAYED_RETRIES: u32 = 3000;
const RETRY_DELAY: Duration = Duration::from_millis(1);

/// Failed attempts since the last success. No clock is read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RetryBudget {
    failed_attempts: u32,
}

impl RetryBudget {
    /// Resets the count after a success.
    #[inline]
    pub(crate) fn reset(&mut self) {
        self.failed_attempts = 0;
    }

    /// Counts a failed attempt: true if a retry is allowed, after a delay if there were many.
    #[cold]
    pub(crate) fn may_retry(&mut self) -> bool {
        self.failed_attempts += 1;
        if self.failed_attempts > IMMEDIATE_RETRIES + DELAYED_RETRIES {
            self.failed_attempts = 0;
            return false;
        }
        if self.failed_attempts > IMMEDIATE_RETRIES {
            std::thread::sleep(RETRY_DELAY);
        }
        true
    }
}

/// Result of an operation of io_uring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CompletionOutcome {
    Moved(u64),
    /// Nothing, but a retry is allowed.
    Retry,
    Failed(i32),
}

impl RetryBudget {
    #[inline]
    pub(crate) fn classify(&mut self, result: i32) -> CompletionOutcome {
        match u64::try_from(result) {
            Ok(moved) => {
                if moved > 0 {
                    self.reset();
                }
                CompletionOutcome::Moved(moved)
            }
            Err(_) if matches!(-result, libc::EINTR | libc::EAGAIN) && self.may_retry() => CompletionOutcome::Retry,
            Err(_) => CompletionOutcome::Failed(-result),
        }
    }
}

/// Result of a system call, retried after signals.
///
/// # Errors
/// Of the call; EINTR after three seconds of interruptions.
#[inline]
pub(crate) fn retry_interrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let mut patience = RetryBudget::default();
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted && patience.may_retry() => {}
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupted_call_is_retried_a_limited_number_of_times() {
        let interrupted = || io::Error::from(io::ErrorKind::Interrupted);
        let mut calls = 0;
        let mut third = || {
            calls += 1;
            if calls < 3 {
                Err(interrupted())
            } else {
                Ok(calls)
            }
        };
        assert_eq!(retry_interrupted(&mut third).unwrap(), 3);
        let never = retry_interrupted(|| Err::<(), _>(interrupted())).unwrap_err();
        assert_eq!(never.kind(), io::ErrorKind::Interrupted);
    }

    #[test]
    fn the_budget_is_limited_and_can_be_reset() {
        let mut patience = RetryBudget { failed_attempts: IMMEDIATE_RETRIES + DELAYED_RETRIES - 1 };
        assert!(patience.may_retry());
        assert!(!patience.may_retry());
        assert!(patience.may_retry(), "the next batch begins anew");
        patience.failed_attempts = IMMEDIATE_RETRIES + DELAYED_RETRIES;
        patience.reset();
        assert!(patience.may_retry());
    }
}
