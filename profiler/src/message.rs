//! Messages to the user, on the stderr of the program.

use std::ffi::c_int;
use std::io::Write;
use std::sync::OnceLock;

/// Identity of stderr when this library was loaded.
static ORIGINAL_STDERR: OnceLock<Option<(u64, u64)>> = OnceLock::new();

/// True if stderr is unchanged: a program may have closed it and opened a file instead.
pub fn is_original_stderr() -> bool {
    let now = file_identity(2);
    now.is_some() && ORIGINAL_STDERR.get() == Some(&now)
}

/// Writes a message to stderr.
#[cold]
pub fn report(sentence: &str) {
    if !is_original_stderr() {
        return;
    }
    // Names may contain control characters for the terminal.
    let sentence: String = sentence.chars().map(|c| if c.is_control() && c != '\n' { '?' } else { c }).collect();
    // Errors cannot be reported if stderr is closed.
    let _ = std::io::stderr().write_all(format!("beff-raw profiler: {sentence}\n").as_bytes());
}

pub fn on_load() {
    ORIGINAL_STDERR.get_or_init(|| file_identity(2));
}

/// Device and inode of an open file.
pub fn file_identity(file: c_int) -> Option<(u64, u64)> {
    file_status(file).map(|status| (status.st_dev, status.st_ino))
}

/// Status of an open file.
pub fn file_status(file: c_int) -> Option<libc::stat> {
    // SAFETY: the structure contains numbers only, for which zeros are valid.
    let mut status: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the structure is a local variable.
    let known = unsafe { libc::fstat(file, &raw mut status) } == 0;
    known.then_some(status)
}
