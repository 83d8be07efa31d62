//! Common parts of the commands: start of MPI, run directory, records and progress on rank 0, messages.
//!
//! Results go to stdout, everything else to stderr.

pub(crate) mod binding;
mod crash_report;
pub(crate) mod directory;
mod finalize;
pub(crate) mod finish;
pub mod observer;
pub mod progress;
pub(crate) mod start;
pub mod stdout;
pub(crate) mod time_limit;
mod variables;

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use beff_backends::drivers;
use serde::Serialize;

use crate::frame::checks::BackendCapabilities;
use crate::frame::error::Exit;
use crate::frame::system::caches::{largest_share_bytes, Caches};
use crate::frame::system::launcher::is_reporting_process;
use crate::frame::system::{host, memory};
use crate::frame::terminal_escape;

/// Prints a message for the user on stderr. A closed stderr is not an error.
pub fn print_diagnostic(message: &str) {
    // One write: several ranks may print at the same time.
    let _ = std::io::stderr().write_all(format!("beff-raw: {}\n", indent_lines(message)).as_bytes());
}

/// Indents all lines after the first: a line break in a name does not begin a message of this program.
pub(crate) fn indent_lines(message: &str) -> String {
    let mut out = String::with_capacity(message.len());
    for (number, line) in terminal_escape::text(message).split('\n').enumerate() {
        match number {
            0 => {}
            _ if line.is_empty() || line.starts_with("  ") => out.push('\n'),
            _ => out.push_str("\n  "),
        }
        out.push_str(line);
    }
    out
}

/// Time that a process waits for the message that another one prints.
pub(crate) const LAST_MESSAGE_DELAY: Duration = Duration::from_secs(1);

/// Ends before the start of a run, with one message for each launch.
pub fn reject_usage(message: &str) -> Exit {
    reject_launch(message, is_reporting())
}

/// As [`reject_usage`]; one process is the reporting one.
fn reject_launch(message: &str, is_reporting: bool) -> Exit {
    if prints_before_exit(is_reporting, Exit::Usage.code()) {
        print_diagnostic(message);
    }
    Exit::Usage
}

/// Ends with help, version or error of the command line, once for each launch. A closed pipe is not an error.
pub fn exit_with_clap(said: &clap::Error) -> ExitCode {
    let code = u8::try_from(said.exit_code()).unwrap_or(Exit::Usage.code());
    if prints_for_launch(code) {
        // Without colours: Open MPI gives its processes a terminal even if the user's output is a file.
        let text = said.render().to_string();
        if said.use_stderr() {
            let _ = std::io::stderr().write_all(terminal_escape::text(&text).as_bytes());
        } else {
            return publish(text.as_bytes()).map_or_else(|error| exit_with_failure(&error), |_| code.into());
        }
    }
    code.into()
}

fn exit_with_failure(error: &anyhow::Error) -> ExitCode {
    print_diagnostic(&error.to_string());
    Exit::Failure.into()
}

/// Prints a result that every process of a launch has, without MPI, once on stdout.
///
/// # Errors
/// Those of [`publish`].
pub fn publish_once(text: &[u8]) -> anyhow::Result<()> {
    if prints_for_launch(Exit::Ok.code()) {
        publish(text)?;
    }
    Ok(())
}

/// Prints a plan as JSON on stdout, once.
///
/// # Errors
/// A value that cannot be serialized (a defect); those of [`publish`].
pub(crate) fn publish_json_once(plan: &impl Serialize) -> anyhow::Result<()> {
    let mut bytes = serde_json::to_vec_pretty(plan)?;
    bytes.push(b'\n');
    publish_once(&bytes)
}

/// Ranks per host, and cache share of a rank, on hosts like this one: for a plan the number of ranks on a host is unknown.
///
/// # Errors
/// CPUs that the system does not report.
pub(crate) fn planned_cache_share(ranks: u64) -> anyhow::Result<(u64, u64)> {
    let caches = Caches::of(&host::allowed_cpus()?);
    let ranks_of_host = ranks.min(host::usable_cores()?.max(1));
    Ok((ranks_of_host, largest_share_bytes(&vec![&caches; usize::try_from(ranks_of_host)?])))
}

/// Memory of a rank of a plan, if none is given. The number of ranks per node is unknown: this machine is assumed to hold them all, but
/// at most one for each core.
///
/// # Errors
/// The system does not report its memory.
pub(crate) fn planned_memory_per_rank(said_bytes: Option<u64>, ranks: u64) -> anyhow::Result<u64> {
    match said_bytes {
        Some(bytes) => Ok(bytes),
        None => Ok(memory::usable_node_memory_bytes()? / ranks.min(host::usable_cores()?.max(1))),
    }
}

/// True in the one process of a launch that prints. Without MPI, and in copies of rank 0 of 1, processes cannot agree, so the launcher's
/// numbering decides.
fn is_reporting() -> bool {
    is_reporting_process(|name| std::env::var(name).ok())
}

/// True in the one process of a launch that prints before an exit with `code`.
fn prints_for_launch(code: u8) -> bool {
    prints_before_exit(is_reporting(), code)
}

fn prints_before_exit(is_reporting: bool, code: u8) -> bool {
    // The mpirun of Open MPI kills all processes as soon as one has failed, also the one that is about to print.
    if !is_reporting && code != Exit::Ok.code() {
        std::thread::sleep(LAST_MESSAGE_DELAY);
    }
    is_reporting
}

/// Prints a result on stdout; false if the pipe is closed (the reader's choice, not an error).
///
/// # Errors
/// Stdout is a file that cannot be written, as on a full disk: a result would be lost.
pub fn publish(text: &[u8]) -> anyhow::Result<bool> {
    publish_raw(terminal_escape::text(&String::from_utf8_lossy(text)).as_bytes())
}

/// As [`publish`], for text without control sequences.
fn publish_raw(text: &[u8]) -> anyhow::Result<bool> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(anyhow::anyhow!("stdout cannot be written: {error}; the output is incomplete")),
    }
}

/// Backends of this build, as the command line needs them.
#[must_use]
pub fn backend_capabilities() -> Vec<BackendCapabilities<'static>> {
    let known = drivers().iter().map(|row| BackendCapabilities {
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
