//! The commands: each wires config, plan, engine, results and report together, and is the only place that does.
//!
//! Results go to stdout, everything else to stderr.

pub mod comm;
mod directory;
pub mod imb;
pub mod info;
pub mod io;
pub mod observer;
pub mod plan;
pub mod report;
mod start;

use std::io::Write;

use beff_backends::drivers;

use crate::config_build::KnownBackend;
use crate::error::Exit;
use crate::system::launcher::speaks_for_all;

/// A message for the user on stderr. A closed stderr is no reason to fail.
pub fn complain(message: &str) {
    let _ = writeln!(std::io::stderr(), "beff-raw: {message}");
}

/// Ends before anything has begun, with one message of a launch: copies of rank 0 of 1 cannot agree on who speaks, so the
/// launcher's own numbering decides.
pub fn refuse(message: &str) -> Exit {
    if speaks_for_all(|name| std::env::var(name).ok()) {
        complain(message);
    }
    Exit::Usage
}

/// A result on stdout; false if nobody reads it (a closed pipe is the reader's choice, not an error).
pub fn publish(text: &[u8]) -> bool {
    let mut out = std::io::stdout().lock();
    out.write_all(text).and_then(|()| out.flush()).is_ok()
}

/// What the command line must know of the backends of this build.
#[must_use]
pub fn known_backends() -> Vec<KnownBackend<'static>> {
    drivers()
        .iter()
        .map(|d| KnownBackend { name: d.name, direct: d.can_direct, mpi: d.has_hints, queue: d.name == "uring" })
        .collect()
}
