//! The last message of a rank before it aborts all ranks.

use std::io::{stderr, Write};
use std::thread::sleep;
use std::time::Duration;

/// Writes to stderr at once, and leaves launchers a second to read it: at an abort they kill all processes, and unread output is lost.
pub(crate) fn print_before_abort(words: &str) {
    // One write, because the reader may exit between two. A failure cannot be reported.
    let _ = stderr().write_all(format!("{words}\n").as_bytes());
    sleep(Duration::from_secs(1));
}
