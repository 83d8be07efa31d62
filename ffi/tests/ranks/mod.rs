//! Runs a test on 1, 2 and 3 ranks: the test program restarts itself, with the launcher and a time limit.

mod patient;

use std::path::{Path, PathBuf};
use std::process::Command;

use beff_ffi::{Comm, Universe};

/// Working directory of a restarted program; not set in the first one.
const DIRECTORY: &str = "BEFF_TEST_DIRECTORY";
/// Expected number of ranks: the launcher of another MPI would start that many singletons.
const RANKS: &str = "BEFF_TEST_RANKS";
/// Maximum number of ranks, 3 if not set; one rank needs no launcher.
const MAX_RANKS: &str = "BEFF_TEST_MOST_RANKS";
/// Prefix of the files that passed ranks write; the process id follows.
const PASSED: &str = "passed-";
/// Time limit of a program in seconds.
const LIMIT: &str = "120";

/// In a restarted program: runs `body` in its directory. Otherwise restarts the test `name` on 1 rank without a launcher, and on 2 and 3
/// with one, unless `BEFF_TEST_MOST_RANKS` is lower.
pub fn on_1_2_and_3(name: &str, parent: &Path, body: impl FnOnce(&Comm, &Path)) {
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        let directory = PathBuf::from(directory);
        {
            let universe = Universe::init().unwrap();
            let comm = universe.world();
            assert_eq!(std::env::var(RANKS).unwrap(), comm.size().to_string(), "ranks: set BEFF_MPIRUN");
            body(&comm, &directory);
        }
        // Written only at the end. Output is no proof, because lines of ranks are mixed.
        std::fs::write(directory.join(format!("{PASSED}{}", std::process::id())), "").unwrap();
        return;
    }
    let most = std::env::var(MAX_RANKS).map_or(3, |most| most.parse().unwrap());
    for ranks in 1..=most {
        let directory = parent.join(format!("{name}-{ranks}-{}", std::process::id()));
        // Left by a failed run with the same process id.
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir(&directory).unwrap();
        let own = std::env::current_exe().unwrap();
        let launcher = std::env::var("BEFF_MPIRUN").unwrap_or_else(|_| "mpirun".into());
        let mut command = Command::new("timeout");
        command.args(["--signal", "KILL", LIMIT]);
        if ranks > 1 {
            command.args(launcher.split_whitespace()).args(["-n", &ranks.to_string()]);
        }
        command.arg(own).args(["--exact", name, "--nocapture"]).env(DIRECTORY, &directory);
        command.env(RANKS, ranks.to_string());
        patient::patient(&mut command);
        patient::own_sessions(&mut command, &directory);
        let result = command.output().unwrap();
        let text = String::from_utf8_lossy(&result.stdout).into_owned() + &String::from_utf8_lossy(&result.stderr);
        assert!(result.status.success(), "on {ranks} ranks: {}\n{text}", result.status);
        // A name without a test would succeed too.
        assert_eq!(count_passed(&directory), ranks as usize, "on {ranks} ranks: number that passed\n{text}");
        std::fs::remove_dir_all(&directory).unwrap();
    }
}

fn count_passed(directory: &Path) -> usize {
    let names = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().starts_with(PASSED)).count()
}
