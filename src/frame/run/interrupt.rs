//! SIGINT and SIGTERM as a flag that the loops check between batches.
//!
//! The next agreement passes the flag to all ranks. Names of files are removed at once, because launchers that forward a signal may kill
//! soon after; then files are closed and the result is published. A second signal has no effect.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};

/// True if the user or the batch system has requested an end.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    flag: Arc<AtomicBool>,
}

impl Interrupt {
    /// Installs handlers of SIGINT and SIGTERM. A second signal has no effect: launchers forward what the terminal has sent already, so
    /// two signals are often one key press. To end a rank that hangs, use the launcher or SIGQUIT.
    ///
    /// # Errors
    /// A handler cannot be installed.
    pub fn watch() -> std::io::Result<Self> {
        let this = Self::default();
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&this.flag))?;
        }
        Ok(this)
    }

    /// Sets the flag as a signal does.
    #[cfg(test)]
    pub(crate) fn raise(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }

    /// True once a signal has arrived.
    #[must_use]
    #[inline]
    pub fn is_raised(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }
}

/// Makes a write beyond the file-size limit of the process (RLIMIT_FSIZE) fail with EFBIG instead of ending the process by SIGXFSZ. Child
/// programs get the default action again (execve(2)).
///
/// # Errors
/// A handler cannot be installed.
pub fn catch_sigxfsz() -> std::io::Result<()> {
    // An empty handler: an ignored signal would be inherited by child programs.
    signal_hook::flag::register(SIGXFSZ, Arc::default()).map(|_| ())
}
