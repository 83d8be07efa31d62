//! The directory of a world. A recorded command may start several programs with MPI, whose ranks have the same numbers.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use beff_trace::raw::WORLD_PREFIX;

use crate::hosts::host_name;
use crate::message::report;
use crate::{clock, environment};

/// Names the world of a launcher that the recorded command starts; its ranks inherit the variable.
const WORLD_VARIABLE: &str = "BEFF_PROFILE_WORLD";

/// Variables of ranks. A launcher that has one was started by a rank and starts another world; without them, launchers that start one
/// another (a script, the remote start of MPICH by srun) start one world.
const RANK_VARIABLES: [&str; 3] = ["PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK"];

/// Directory of this process's recording.
static DIRECTORY: Mutex<Option<PathBuf>> = Mutex::new(None);

fn variable(name: &str) -> Option<String> {
    environment::variable(name)?.into_string().ok().filter(|value| !value.is_empty())
}

/// At load: names the world in launchers below `beff-raw profile`. The one that `profile` itself starts usually has no profiler: its world
/// needs no name.
pub fn on_load() {
    if variable("BEFF_PROFILE_LAUNCHED").is_none() {
        return;
    }
    let is_known = variable(WORLD_VARIABLE).is_some() && !RANK_VARIABLES.iter().any(|name| variable(name).is_some());
    let program = std::fs::read_to_string("/proc/self/comm").unwrap_or_default();
    if is_launcher(program.trim_end()) && !is_known {
        // Sorted by time. No other thread exists yet that could read the environment.
        std::env::set_var(WORLD_VARIABLE, format!("{:020}-{}", clock::unix_ns(), std::process::id()));
    }
}

fn is_launcher(program: &str) -> bool {
    let names = ["mpirun", "mpiexec", "orterun", "prterun", "srun"];
    names.iter().any(|name| program.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
}

/// How the ranks of a world were started.
#[derive(Clone, Debug, Default)]
pub struct WorldStart {
    /// By MPI_Comm_spawn.
    pub is_spawned: bool,
    /// Number of ranks.
    pub ranks: u32,
}

/// Name of a world's directory; None for the directory of the recording itself. The error is a reason.
fn directory_name(
    start: &WorldStart,
    launcher: Option<String>,
    namespace: Option<String>,
    process: impl FnOnce() -> String,
) -> Result<Option<String>, &'static str> {
    let name = match (start.is_spawned, launcher, namespace) {
        (false, None, _) => return Ok(None),
        (false, Some(launcher), _) => launcher,
        (true, _, Some(namespace)) => format!("spawned-{namespace}"),
        (true, ..) if start.ranks == 1 => format!("spawned-{}", process()),
        (true, ..) => {
            return Err("MPI_Comm_spawn started it, and this MPI does not tell its ranks from those of others")
        }
    };
    Ok(Some(format!("{WORLD_PREFIX}{}", name.replace(['/', '\0'], "_"))))
}

/// Directory in which this world records, created if necessary. None, with a message of rank 0, if it cannot be recorded.
pub fn enter_directory(recording: &Path, rank: u32, start: &WorldStart) -> Option<PathBuf> {
    let process = || format!("{}-{}-{}", clock::unix_ns(), host_name(), std::process::id());
    let created = match directory_name(start, variable(WORLD_VARIABLE), variable("PMIX_NAMESPACE"), process) {
        Ok(None) => Ok(recording.to_owned()),
        Ok(Some(name)) => {
            let directory = recording.join(name);
            match std::fs::create_dir(&directory) {
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                    Err(format!("{} cannot be created: {error}", directory.display()))
                }
                _ => Ok(directory),
            }
        }
        Err(reason) => Err(reason.to_owned()),
    };
    let directory = match created {
        Ok(directory) => directory,
        Err(reason) => {
            report_unrecorded(rank, start.ranks, &reason);
            return None;
        }
    };
    *DIRECTORY.lock().unwrap_or_else(PoisonError::into_inner) = Some(directory.clone());
    Some(directory)
}

/// Says once for the world that it is not recorded.
pub fn report_unrecorded(rank: u32, ranks: u32, reason: &str) {
    if rank == 0 {
        let program = std::fs::read_to_string("/proc/self/comm").unwrap_or_default();
        report(&format!("{} with {ranks} ranks is not recorded: {reason}", program.trim_end()));
    }
}

/// Directory of the recording, and the profile that rank 0 creates from it: the given one, or one in the directory of a further world.
pub fn merge_paths(recording: OsString, out: OsString) -> (PathBuf, PathBuf) {
    let (recording, out) = (PathBuf::from(recording), PathBuf::from(out));
    let directory = DIRECTORY.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match directory.filter(|directory| *directory != recording) {
        Some(directory) => {
            let out = directory.join(out.file_name().unwrap_or_default());
            (directory, out)
        }
        None => (recording, out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_world_has_a_directory_of_its_own() {
        let name = |is_spawned, ranks, launcher: &str, namespace: &str| {
            let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
            let start = WorldStart { is_spawned, ranks };
            directory_name(&start, some(launcher), some(namespace), || "5-host-77".to_owned())
        };
        assert_eq!(name(false, 4, "", "prterun-h-1@1"), Ok(None));
        assert_eq!(name(false, 4, "9-77", "prterun-h-1@1"), Ok(Some("world-9-77".to_owned())));
        assert_eq!(name(true, 4, "9-77", "a/b@2"), Ok(Some("world-spawned-a_b@2".to_owned())));
        assert_eq!(name(true, 1, "9-77", ""), Ok(Some("world-spawned-5-host-77".to_owned())));
        assert!(name(true, 2, "", "").is_err());
    }

    #[test]
    fn launchers_are_known_by_their_names() {
        assert!(["mpirun", "mpiexec.hydra", "mpirun.openmpi", "srun", "prterun"].into_iter().all(is_launcher));
        assert!(!["mpirunner", "bash", "hydra_pmi_proxy", ""].into_iter().any(is_launcher));
    }
}
