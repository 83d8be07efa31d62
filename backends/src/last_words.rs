//! What a rank says before it ends all ranks.

use std::io::{stderr, Write};
use std::thread::sleep;
use std::time::Duration;

/// Says it on stderr, at once, and leaves launchers a second to read it: they kill all processes at an abort, and what they have not read
/// of them is lost.
pub(crate) fn say(words: &str) {
    // In one piece: the other end may go between two. Nobody is left who could be told that it failed.
    let _ = stderr().write_all(format!("{words}\n").as_bytes());
    sleep(Duration::from_secs(1));
}
