//! How long the kernel may say EAGAIN or EINTR: it does so when it is short of something that comes back in a moment or a signal came,
//! and for ever where a file does not wait (O_NONBLOCK, some FUSE servers).

use std::io;
use std::time::Duration;

/// Tries that are made at once.
const AT_ONCE: u32 = 64;
/// Tries behind these, a pause before each: three seconds.
const WITH_PAUSE: u32 = 3000;
const PAUSE: Duration = Duration::from_millis(1);

/// Tries in vain since something was done. No clock is read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Patience {
    in_vain: u32,
}

impl Patience {
    /// Something was done.
    #[inline]
    pub(crate) fn restore(&mut self) {
        self.in_vain = 0;
    }

    /// Another try in vain: true if one more is worth it, after a pause where there were many.
    #[cold]
    pub(crate) fn try_again(&mut self) -> bool {
        self.in_vain += 1;
        if self.in_vain > AT_ONCE + WITH_PAUSE {
            self.in_vain = 0;
            return false;
        }
        if self.in_vain > AT_ONCE {
            std::thread::sleep(PAUSE);
        }
        true
    }
}

/// What an operation of io_uring came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// So many bytes.
    Moved(u64),
    /// Nothing, and it is worth another try.
    Again,
    /// This error.
    Failed(i32),
}

impl Patience {
    /// The result of a completion.
    #[inline]
    pub(crate) fn judge(&mut self, result: i32) -> Ended {
        match u64::try_from(result) {
            Ok(moved) => {
                if moved > 0 {
                    self.restore();
                }
                Ended::Moved(moved)
            }
            Err(_) if matches!(-result, libc::EINTR | libc::EAGAIN) && self.try_again() => Ended::Again,
            Err(_) => Ended::Failed(-result),
        }
    }
}

/// The result of a system call, repeated after signals.
///
/// # Errors
/// Of the call; EINTR if nothing else comes for three seconds.
#[inline]
pub(crate) fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let mut patience = Patience::default();
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted && patience.try_again() => {}
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_is_only_interrupted_comes_to_an_end() {
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
        assert_eq!(uninterrupted(&mut third).unwrap(), 3);
        let never = uninterrupted(|| Err::<(), _>(interrupted())).unwrap_err();
        assert_eq!(never.kind(), io::ErrorKind::Interrupted);
    }

    #[test]
    fn it_ends_and_comes_back() {
        let mut patience = Patience { in_vain: AT_ONCE + WITH_PAUSE - 1 };
        assert!(patience.try_again());
        assert!(!patience.try_again());
        assert!(patience.try_again(), "the next batch begins anew");
        patience.in_vain = AT_ONCE + WITH_PAUSE;
        patience.restore();
        assert!(patience.try_again());
    }
}
