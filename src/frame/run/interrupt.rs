//! SIGINT and SIGTERM as a flag that the loops look at between batches.
//!
//! The next decision carries the flag to all ranks. Names of files are removed at once, because launchers that pass a signal on may
//! kill soon after; then files are closed and the result is published. A second signal does nothing more.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};

/// Whether the user or the batch system asked for an end.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    flag: Arc<AtomicBool>,
}

impl Interrupt {
    /// Watches SIGINT and SIGTERM. A second signal does nothing more: launchers pass on what the terminal has sent
    /// already, so two signals are often one key press. To end a rank that hangs, use the launcher or SIGQUIT.
    ///
    /// # Errors
    /// The kernel's answer if a handler cannot be set.
    pub fn watch() -> std::io::Result<Self> {
        let this = Self::default();
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&this.flag))?;
        }
        Ok(this)
    }

    /// As if a signal had come.
    #[cfg(test)]
    pub(crate) fn raise(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }

    /// True once a signal has come.
    #[must_use]
    #[inline]
    pub fn raised(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }
}

/// A file that would grow beyond the limit of the process (RLIMIT_FSIZE) is an error of the call, EFBIG, and not the end of the
/// process by SIGXFSZ. Programs that are started from here get the default action again (execve(2)).
///
/// # Errors
/// The kernel's answer if a handler cannot be set.
pub fn make_file_limits_errors() -> std::io::Result<()> {
    // A handler that does nothing; to ignore the signal would be inherited by programs that are started.
    signal_hook::flag::register(SIGXFSZ, Arc::default()).map(|_| ())
}
