//! Whether the process records. Also read and ended by a signal handler.

use std::sync::atomic::{AtomicBool, Ordering};

static RECORDING: AtomicBool = AtomicBool::new(false);
/// The recording ended by [`lose`], which is not yet reported.
static LOST: AtomicBool = AtomicBool::new(false);

/// True from the start of MPI to its end, unless an error occurred.
#[inline(always)]
pub fn is_active() -> bool {
    RECORDING.load(Ordering::Relaxed)
}

pub fn begin() {
    RECORDING.store(true, Ordering::Release);
}

/// Ends the recording. True if it was active.
pub fn end() -> bool {
    RECORDING.swap(false, Ordering::AcqRel)
}

/// In a signal handler: ends the recording. It is reported later, because a handler must not.
pub fn lose() {
    LOST.store(true, Ordering::Release);
    RECORDING.store(false, Ordering::Release);
}

/// True once after [`lose`].
pub fn take_loss() -> bool {
    LOST.load(Ordering::Relaxed) && LOST.swap(false, Ordering::AcqRel)
}
