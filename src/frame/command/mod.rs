//! What the commands of all benchmarks share: starting MPI, the run directory, rank 0's records and bar, and who speaks.
//!
//! Results go to stdout, everything else to stderr.

pub(crate) mod binding;
pub(crate) mod directory;
pub(crate) mod finish;
pub mod observer;
pub mod progress;
pub(crate) mod start;
pub mod stdout;

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use beff_backends::drivers;
use serde::Serialize;

use crate::frame::checks::KnownBackend;
use crate::frame::error::Exit;
use crate::frame::plain;
use crate::frame::system::caches::{share_bytes, Caches};
use crate::frame::system::launcher::speaks_for_all;
use crate::frame::system::{host, memory};

/// A message for the user on stderr. A closed stderr is no reason to fail.
pub fn complain(message: &str) {
    // In one piece: several ranks may speak at the same time.
    let _ = std::io::stderr().write_all(format!("beff-raw: {}\n", paragraph(message)).as_bytes());
}

/// Lines behind the first one are indented: a line break in a name does not begin a message of ours.
pub(crate) fn paragraph(message: &str) -> String {
    let mut out = String::with_capacity(message.len());
    for (number, line) in plain::text(message).split('\n').enumerate() {
        match number {
            0 => {}
            _ if line.is_empty() || line.starts_with("  ") => out.push('\n'),
            _ => out.push_str("\n  "),
        }
        out.push_str(line);
    }
    out
}

/// How long a process that leaves the last words to another waits for them.
pub(crate) const LAST_WORDS: Duration = Duration::from_secs(1);

/// Ends before anything has begun, with one message of a launch.
pub fn refuse(message: &str) -> Exit {
    if speaks(Exit::Usage.code()) {
        complain(message);
    }
    Exit::Usage
}

/// Ends with what the command line has to say for itself, once for a launch. A closed pipe is no reason to fail.
pub fn end_with(said: &clap::Error) -> ExitCode {
    let code = u8::try_from(said.exit_code()).unwrap_or(Exit::Usage.code());
    if speaks(code) {
        // Without colours: Open MPI gives its processes a terminal, also where the user's output is a file.
        let text = said.render().to_string();
        if said.use_stderr() {
            let _ = std::io::stderr().write_all(plain::text(&text).as_bytes());
        } else {
            return publish(text.as_bytes()).map_or_else(|error| failed(&error), |_| code.into());
        }
    }
    code.into()
}

fn failed(error: &anyhow::Error) -> ExitCode {
    complain(&error.to_string());
    Exit::Failure.into()
}

/// A result that every process of a launch has, without MPI: on stdout, once.
///
/// # Errors
/// Those of [`publish`].
pub fn publish_once(text: &[u8]) -> anyhow::Result<()> {
    if speaks(Exit::Ok.code()) {
        publish(text)?;
    }
    Ok(())
}

/// A plan as scripts read it, on stdout, once.
///
/// # Errors
/// A value that has no JSON: a defect; those of [`publish`].
pub(crate) fn publish_json_once(plan: &impl Serialize) -> anyhow::Result<()> {
    let mut bytes = serde_json::to_vec_pretty(plan)?;
    bytes.push(b'\n');
    publish_once(&bytes)
}

/// Ranks of a host, and the share of the caches that one has, on a machine like this one: nobody knows how many ranks of a run that is only
/// planned share a host.
///
/// # Errors
/// CPUs that the system does not tell.
pub(crate) fn caches_of_rank(ranks: u64) -> anyhow::Result<(u64, u64)> {
    let caches = Caches::of(&host::allowed_cpus()?);
    let ranks_of_host = ranks.min(host::usable_cores()?.max(1));
    Ok((ranks_of_host, share_bytes(&vec![&caches; usize::try_from(ranks_of_host)?])))
}

/// Memory of a rank of a plan, if nothing was said. Without a run nobody knows how many ranks share a node: as if this
/// machine held them all, but never less than what a node with many cores gives each.
///
/// # Errors
/// A machine that does not tell.
pub(crate) fn memory_of_rank(said_bytes: Option<u64>, ranks: u64) -> anyhow::Result<u64> {
    match said_bytes {
        Some(bytes) => Ok(bytes),
        None => Ok(memory::usable_node_memory_bytes()? / ranks.min(host::usable_cores()?.max(1))),
    }
}

/// True in one process of a launch, which will end with `code`. Without MPI, and in copies of rank 0 of 1, nobody can
/// agree on who that is, so the launcher's own numbering decides.
fn speaks(code: u8) -> bool {
    let speaks = speaks_for_all(|name| std::env::var(name).ok());
    // The mpirun of Open MPI kills all processes as soon as one has failed, also the one that is about to speak.
    if !speaks && code != Exit::Ok.code() {
        std::thread::sleep(LAST_WORDS);
    }
    speaks
}

/// A result on stdout; false if nobody reads it (a closed pipe is the reader's choice, not an error).
///
/// # Errors
/// Stdout is a file that cannot be written, as on a full disk: a result would be lost.
pub fn publish(text: &[u8]) -> anyhow::Result<bool> {
    publish_raw(plain::text(&String::from_utf8_lossy(text)).as_bytes())
}

/// The same of a text in which nothing stands that a terminal must not obey.
fn publish_raw(text: &[u8]) -> anyhow::Result<bool> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(anyhow::anyhow!("stdout cannot be written: {error}; what is there is not whole")),
    }
}

/// What the command line must know of the backends of this build.
#[must_use]
pub fn known_backends() -> Vec<KnownBackend<'static>> {
    let known = drivers().iter().map(|row| KnownBackend {
        name: row.name,
        direct: row.can_direct,
        mpi: row.has_hints,
        queue: row.has_queue,
        two_phase: row.has_two_phase,
        shared_pointer: row.has_shared_pointer,
        drops_pages: row.can_drop_pages,
        preallocates: row.can_preallocate,
        grows_files: row.grows_files,
    });
    known.collect()
}
