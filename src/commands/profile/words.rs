//! Words of a command.

use std::ffi::OsStr;
use std::path::Path;

/// True if the word is a launcher.
pub fn is_launcher(word: &OsStr) -> bool {
    let names = ["mpirun", "mpiexec", "orterun", "prterun", "srun"];
    let name = file_name(word);
    names.iter().any(|known| name == *known || name.strip_prefix(known).is_some_and(|rest| rest.starts_with('.')))
}

/// Last part of a path.
pub fn file_name(word: &OsStr) -> String {
    Path::new(word).file_name().unwrap_or(word).to_string_lossy().into_owned()
}

/// Number of values of a launcher's option that sets variables or parameters: a value may be the name of a program or a library.
pub fn setting_values(option: &OsStr) -> usize {
    let option = option.to_string_lossy();
    match option.strip_prefix("--").or(option.strip_prefix('-')) {
        Some("genv" | "env" | "mca" | "gmca" | "omca" | "prtemca" | "pmixmca") => 2,
        Some("x" | "genvlist" | "envlist") => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_launchers() {
        for name in ["mpirun", "/opt/x/mpiexec", "mpirun.openmpi", "mpiexec.hydra", "srun", "prterun"] {
            assert!(is_launcher(OsStr::new(name)), "{name}");
        }
        for name in ["./a.out", "mpirunner", "python3", "bash"] {
            assert!(!is_launcher(OsStr::new(name)), "{name}");
        }
    }
}
