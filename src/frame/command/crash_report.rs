//! Report of a rank that crashes inside the MPI library, and removal of its files.

use std::io::{stderr, Write};

use beff_backends::crash::{self, Crash, FileInUse};
use beff_ffi::alloc;

use super::LAST_MESSAGE_DELAY;
use crate::frame::run::run_dir::RunDir;
use crate::frame::words::or_hyphen;

/// Prefixes of environment variables that change the behaviour of an MPI library.
const LIBRARY_VARIABLES: [&str; 7] = ["ROMIO_", "MPICH_", "MPIR_", "OMPI_MCA_", "PMIX_MCA_", "I_MPI_", "UCX_"];

/// Reports crashes of this rank from now on. Without it a crash ends the run as before.
pub(super) fn watch(run_dir: &RunDir, rank: u64, ranks: u64) {
    let own = run_dir.clone();
    let report = move |crash: &Crash| {
        let removed = own.remove().map_err(|error| format!("{} remains: {error}", own.current_path()));
        let removed = removed.map_or_else(|remains| remains, |()| "The run directory was removed".to_owned());
        let text = format!("{}\n  {removed}.\n", crash_text(crash, (rank, ranks), &library_variables()));
        // One write, because messages of ranks may interleave. Launchers discard output that they have not read at an abort.
        let _ = stderr().write_all(text.as_bytes());
        std::thread::sleep(LAST_MESSAGE_DELAY);
    };
    // The thread is not part of the measurement.
    let _ = crash::watch(alloc::exclude_this_thread, report);
}

fn library_variables() -> Vec<String> {
    let is_of_library = |name: &str| LIBRARY_VARIABLES.iter().any(|prefix| name.starts_with(prefix));
    let all = std::env::vars_os().map(|(name, value)| [name, value].map(|text| text.to_string_lossy().into_owned()));
    let mut all: Vec<String> =
        all.filter(|[name, _]| is_of_library(name)).map(|[name, value]| format!("{name}={value}")).collect();
    all.sort_unstable();
    all
}

fn crash_text(crash: &Crash, (rank, ranks): (u64, u64), variables: &[String]) -> String {
    let who = format!("rank {rank} of {ranks}, process {}", std::process::id());
    let signal = crash.signal;
    let Some(function) = &crash.function else {
        return format!(
            "beff-raw: crash ({signal}) on {who}, outside the MPI library\n  This is a defect of this program or of a \
             library that it uses. Please report it with the command line."
        );
    };
    let FileInUse { path, hints } = crash.file.clone().unwrap_or_default();
    let hints: Vec<String> = hints.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let place = if path.is_empty() { String::new() } else { format!(" on {path}") };
    let set = |list: &[String]| or_hyphen((!list.is_empty()).then(|| list.join(", ")));
    format!(
        "beff-raw: crash ({signal}) inside {function}{place}, {who}\n  hints passed: {}\n  environment of the library: {}\n  \
         The MPI library did not check a value, or has a defect. Repeat without these hints and variables, or with --backend \
         posix or uring, which do not use MPI-IO.",
        set(&hints),
        set(variables)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_names_the_call_the_file_and_what_is_in_force() {
        let file = FileInUse { path: "/x/f".into(), hints: vec![("cb_buffer_size".into(), "0".into())] };
        let crash =
            Crash { signal: "SIGFPE, arithmetic", function: Some("MPI_File_write_all".into()), file: Some(file) };
        let text = crash_text(&crash, (1, 4), &["ROMIO_HINTS=/h".to_owned()]);
        for part in [
            "SIGFPE",
            "inside MPI_File_write_all on /x/f, rank 1 of 4",
            "passed: cb_buffer_size=0\n",
            "ROMIO_HINTS=/h",
            "posix",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let outside = crash_text(&Crash { function: None, ..crash }, (0, 1), &[]);
        assert!(outside.contains("outside the MPI library") && !outside.contains("hints"), "{outside}");
    }
}
