//! Lets waiting ranks of tests sleep instead of occupying a core: see `patient.c`. Never for measurements.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Error, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::OnceLock;

const SOURCE: &str = include_str!("patient.c");

/// Lets the ranks that `command` starts sleep while they wait.
pub fn patient(command: &mut Command) {
    command.env("OMPI_MCA_mpi_yield_when_idle", "1"); // Open MPI 4 and 5
    command.env("LD_PRELOAD", library());
}

/// Open MPI keeps the files of a job below a directory per host and user, which the last job removes, so that a starting job may lose it
/// and end. A directory per launch avoids this.
pub fn own_sessions(command: &mut Command, directory: &Path) {
    for name in ["OMPI_MCA_orte_tmpdir_base", "PRTE_MCA_prte_tmpdir_base"] {
        command.env(name, directory); // Open MPI 4, 5
    }
}

/// `patient.c` as a library, built by the first test that needs it.
pub fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| library_of("patient", SOURCE))
}

/// The library built by `cc` from `source`, once for each text.
pub fn library_of(name: &str, source: &str) -> PathBuf {
    build(name, source).unwrap_or_else(|e| panic!("cc cannot build a library from {name}.c: {e}"))
}

fn build(name: &str, source: &str) -> Result<PathBuf, Error> {
    let mut hasher = DefaultHasher::new();
    source.hash(&mut hasher);
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let library = directory.join(format!("{name}-{:016x}.so", hasher.finish()));
    if library.exists() {
        return Ok(library);
    }
    // Concurrent tests and test programs each build their own, and rename it atomically.
    static MADE: AtomicU32 = AtomicU32::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let own = directory.join(format!("{name}-{}-{number}.so", std::process::id()));
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-shared", "-fPIC", "-x", "c", "-", "-ldl", "-o"]).arg(&own);
    let mut child = cc.stdin(Stdio::piped()).spawn()?;
    child.stdin.take().expect("a pipe").write_all(source.as_bytes())?;
    let status = child.wait()?;
    if !status.success() {
        return Err(Error::other(format!("{cc:?}: {status}")));
    }
    fs::rename(&own, &library)?;
    Ok(library)
}
