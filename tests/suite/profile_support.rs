//! Applications that are recorded: small programs in C, made with the compiler wrapper of the MPI under test.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{launcher, succeed, Launch, Scratch};

/// A program of `tests/profile/`, compiled; made anew in each scratch directory.
#[track_caller]
pub fn application(scratch: &Scratch, name: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/profile").join(format!("{name}.c"));
    let program = scratch.join(name);
    let mpicc = std::env::var("MPICC").unwrap_or_else(|_| "mpicc".into());
    let compiled = succeed(Command::new(mpicc).args(["-O1", "-g", "-pthread", "-o"]).arg(&program).arg(source));
    compiled.unwrap_or_else(|e| panic!("{name}.c: {e}"));
    program
}

/// `LAUNCHER -n RANKS`, as words behind `--`.
pub fn launched(ranks: u64) -> Vec<String> {
    launcher().words.iter().cloned().chain(["-n".to_owned(), ranks.to_string()]).collect()
}

/// `beff-raw profile -o OUTPUT -- LAUNCHER -n RANKS PROGRAM ARGS`.
pub fn profile(output: &Path, ranks: u64, program: &Path, args: &[&str]) -> Launch {
    let launch = Launch::alone().arg("profile").arg("-o").arg(output).arg("--").args(launched(ranks));
    launch.arg(program).args(args)
}

/// The lines of a profile that hold calls of `function`.
pub fn calls_of<'a>(text: &'a str, function: &str) -> Vec<&'a str> {
    text.lines().filter(|line| line.split(',').nth(2) == Some(function)).collect()
}
