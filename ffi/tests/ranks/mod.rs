//! Runs a test on 1, 2 and 3 ranks: the test program starts itself again, alone and under the launcher, with a time limit.

mod patient;

use std::path::{Path, PathBuf};
use std::process::Command;

use beff_ffi::{Comm, Universe};

/// Where a started program finds the directory it works in; its absence tells the first one from those it starts.
const DIRECTORY: &str = "BEFF_TEST_DIRECTORY";
/// How many ranks it must find: the launcher of another MPI starts as many programs that are alone.
const RANKS: &str = "BEFF_TEST_RANKS";
/// How many ranks there are at most, 3 if it is not set: one needs no launcher.
const MOST_RANKS: &str = "BEFF_TEST_MOST_RANKS";
/// How the names of the files begin that say who has passed; the process id follows.
const PASSED: &str = "passed-";
/// Seconds one of them may take.
const LIMIT: &str = "120";

/// In a program that was started for it: runs `body` in the directory that is there for it. Otherwise starts this test program
/// for the test `name` on 1 rank without a launcher, and on 2 and 3 with one, unless `BEFF_TEST_MOST_RANKS` says fewer.
pub fn on_1_2_and_3(name: &str, parent: &Path, body: impl FnOnce(&Comm, &Path)) {
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        let directory = PathBuf::from(directory);
        {
            let universe = Universe::init().unwrap();
            let comm = universe.world();
            assert_eq!(std::env::var(RANKS).unwrap(), comm.size().to_string(), "ranks: set BEFF_MPIRUN");
            body(&comm, &directory);
        }
        // Only who came to its end leaves it. What ranks print is no proof: their lines are mixed.
        std::fs::write(directory.join(format!("{PASSED}{}", std::process::id())), "").unwrap();
        return;
    }
    let most = std::env::var(MOST_RANKS).map_or(3, |most| most.parse().unwrap());
    for ranks in 1..=most {
        let directory = parent.join(format!("{name}-{ranks}-{}", std::process::id()));
        // Of a failed run whose process had the same number.
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
        let told = command.output().unwrap();
        let text = String::from_utf8_lossy(&told.stdout).into_owned() + &String::from_utf8_lossy(&told.stderr);
        assert!(told.status.success(), "on {ranks} ranks: {}\n{text}", told.status);
        // A name that no test has would succeed too.
        assert_eq!(passed(&directory), ranks as usize, "on {ranks} ranks: those that passed\n{text}");
        std::fs::remove_dir_all(&directory).unwrap();
    }
}

fn passed(directory: &Path) -> usize {
    let names = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().starts_with(PASSED)).count()
}
