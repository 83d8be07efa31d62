//! What the profiler says to the user, on the stderr of the program.

use std::ffi::c_int;
use std::io::Write;
use std::sync::OnceLock;

/// What stderr was when this library was loaded.
static STDERR: OnceLock<Option<(u64, u64)>> = OnceLock::new();

/// True if stderr still is what it was: a program that closes it may have a file of its own there.
pub fn is_heard() -> bool {
    let now = identity(2);
    now.is_some() && STDERR.get() == Some(&now)
}

/// A sentence to the user, on stderr.
#[cold]
pub fn say(sentence: &str) {
    if !is_heard() {
        return;
    }
    // Names in it may hold what a terminal would obey.
    let sentence: String = sentence.chars().map(|c| if c.is_control() && c != '\n' { '?' } else { c }).collect();
    // Where stderr is closed there is nobody to tell.
    let _ = std::io::stderr().write_all(format!("beff-raw profiler: {sentence}\n").as_bytes());
}

/// At the load of the library: what stderr is.
pub fn loaded() {
    STDERR.get_or_init(|| identity(2));
}

/// Device and inode of an open file.
pub fn identity(file: c_int) -> Option<(u64, u64)> {
    // SAFETY: a status is numbers, for which zeros are values.
    let mut status: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the status is ours.
    let known = unsafe { libc::fstat(file, &raw mut status) } == 0;
    known.then_some((status.st_dev, status.st_ino))
}
