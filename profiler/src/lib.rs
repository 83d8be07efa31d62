//! Records every MPI-IO call of the program it is preloaded into.
//!
//! Every function of the MPI-IO chapter stands here under its own name (`table`) and passes the call on to the library behind
//! (`original`); the program sees nothing of it. What was called goes into a buffer of the thread (`lane`), which is a part of the
//! file of the process (`sink`). `data`, `files`, `requests` and `program` know what is to be recorded of a call, `dictionary`
//! and `decode` what its handles stand for. The file is read with `beff_trace::raw`.
//!
//! Set by the launcher: `BEFF_PROFILE_DIR` (where the files go; without it nothing is recorded), `BEFF_PROFILE_LIMIT_BYTES` (most bytes of
//! a file), `BEFF_PROFILE_PMPI=0` (calls by `PMPI_` names are not recorded), `BEFF_PROFILE_OUT` and `BEFF_PROFILE_MERGER` (the profile that
//! rank 0 has made behind MPI_Finalize, and the program that makes it).

mod clock;
mod cost;
mod data;
mod decode;
mod dictionary;
mod files;
mod hosts;
mod lane;
mod merge;
mod mpi;
mod original;
mod program;
mod requests;
mod sink;
mod storage;
mod table;

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Once, OnceLock};

/// What `beff-raw profile` looks for in the file, to choose the library that fits the program.
#[no_mangle]
pub static BEFF_PROFILER_ABI: [u8; 26] =
    if cfg!(open_mpi) { *b"beff-profiler-abi=openmpi\0" } else { *b"beff-profiler-abi=mpich\0\0\0" };

static WITHOUT_PMPI: AtomicBool = AtomicBool::new(false);

/// True if calls by `PMPI_` names are not recorded.
#[inline(always)]
fn without_pmpi() -> bool {
    WITHOUT_PMPI.load(Ordering::Relaxed)
}

/// From now on calls by `PMPI_` names are not recorded, if `yes`.
fn without_pmpi_from_here(yes: bool) {
    WITHOUT_PMPI.fetch_or(yes, Ordering::Relaxed);
}

/// What stderr was when this library was loaded.
static STDERR: OnceLock<Option<(u64, u64)>> = OnceLock::new();

/// True if stderr still is what it was: a program that closes it may have a file of its own there.
fn is_heard() -> bool {
    let now = sink::identity(2);
    now.is_some() && STDERR.get() == Some(&now)
}

/// A sentence to the user, on stderr.
#[cold]
fn say(sentence: &str) {
    if !is_heard() {
        return;
    }
    // Names in it may hold what a terminal would obey.
    let sentence: String = sentence.chars().map(|c| if c.is_control() && c != '\n' { '?' } else { c }).collect();
    // Where stderr is closed there is nobody to tell.
    let _ = std::io::stderr().write_all(format!("beff-raw profiler: {sentence}\n").as_bytes());
}

extern "C" fn load() {
    STDERR.get_or_init(|| sink::identity(2));
    WITHOUT_PMPI.store(std::env::var_os("BEFF_PROFILE_PMPI").is_some_and(|value| value == "0"), Ordering::Relaxed);
    program::loaded();
}

#[used]
#[link_section = ".init_array"]
static LOAD: extern "C" fn() = load;

extern "C" fn in_child() {
    sink::forget();
    hosts::forget();
}

/// From now on, a forked child records nothing.
fn forks() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler only stores numbers.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}
