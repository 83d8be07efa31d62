//! The job scripts of docs/jobs as a batch system ends them: the results are complete, and nothing else is left.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{is_command, launcher, list, read_json, signal, skip, Launch, Run, Scratch, PROGRAM};

/// Time limit: on a busy machine, ranks need most of it to start.
const LIMIT: &str = "8s";

/// What the scripts call, as this machine has it: two ranks, a shorter T.
const COMMANDS: [(&str, &str); 5] = [
    ("beff-raw", "#!/bin/sh\nfor w; do shift; [ \"$w\" != 15m ] || w=2m; set -- \"$@\" \"$w\"; done\nexec PROGRAM \"$@\" --memory-per-process 64M --space 600M\n"),
    ("mpirun", "#!/bin/sh\nours=$PATH PATH=$SYSTEM_PATH\nexec LAUNCHER -n 2 env PATH=\"$ours\" \"$@\"\n"),
    // Launchers whose options come before the program: the numbers are those of the job, which this machine does not have.
    ("mpiexec", "#!/bin/sh\n[ \"$1 $2 $3 $4 $5 $6\" = '-n 64 --ppn 16 --cpu-bind core' ] || exit 9\nshift 6\nexec mpirun \"$@\"\n"),
    ("flux", "#!/bin/sh\n[ \"$1 $2 $3\" = 'run --nodes=4 --tasks-per-node=16' ] || exit 9\nshift 3\nexec mpirun \"$@\"\n"),
    // What is known of srun 22.05: it has its options, and a signal of its own ends the ranks at once.
    (
        "srun",
        "#!/bin/bash\ncase $1 in --mpi=*) shift ;; esac\nmpirun \"$@\" & ranks=$!\n\
         trap 'echo srun: forcing job termination >&2; pkill -KILL -u \"$(id -u)\" -f -- \"--out $OUT/\"' TERM\n\
         while kill -0 $ranks 2>/dev/null; do wait $ranks; code=$?; done\nexit $code\n",
    ),
];

pub fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/jobs").join(name)
}

/// Makes the commands and the directory to measure; PATH with them.
pub fn commands(scratch: &Scratch) -> String {
    let bin = scratch.join("bin");
    for directory in [&bin, &scratch.join("disk")] {
        fs::create_dir(directory).unwrap();
    }
    for (name, text) in COMMANDS {
        let text = text.replace("PROGRAM", PROGRAM).replace("LAUNCHER", &launcher().words.join(" "));
        fs::write(bin.join(name), text).unwrap();
        fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    format!("{}:{}", bin.display(), std::env::var("PATH").unwrap())
}

/// The script unchanged, as its batch system starts it.
fn job(scratch: &Scratch, name: &str) -> Launch {
    let path = commands(scratch);
    let mut command = Command::new("bash");
    command.arg(script(name)).env("PATH", path).env("SYSTEM_PATH", std::env::var("PATH").unwrap());
    command.env("OUT", scratch.join("results")).env("SCRATCH", scratch.join("disk"));
    command.env("PBS_O_WORKDIR", scratch.path()).env("LIMIT", LIMIT).current_dir(scratch.path());
    Launch::of(command)
}

/// Complete outputs of a run that has ended so, and an empty directory.
pub fn check_outputs(scratch: &Scratch, outcome: &str, said: &str) {
    let results = scratch.join("results");
    let names = list(&results);
    for ending in [".json", ".jsonl", ".csv", ".mpiio.sum", ".posix.sum"] {
        let path = names.iter().find(|name| name.ends_with(ending)).map(|name| results.join(name));
        let path = path.unwrap_or_else(|| panic!("no {ending} in {names:?}: {said}"));
        assert!(fs::metadata(&path).unwrap().len() > 0, "{} is empty: {said}", path.display());
        if ending == ".json" {
            let result: Value = read_json(&path);
            assert_eq!(result["ending"]["outcome"], outcome, "{said}");
        }
    }
    assert_eq!(scratch.list("disk"), [] as [&str; 0], "{said}");
}

/// The same, and a code that says so.
fn check_results(scratch: &Scratch, run: &Run) {
    check_outputs(scratch, "interrupted", &run.to_string());
    // MPICH's hydra ends with 130 or 0 after a signal, as chance has it.
    assert!(run.code() == 130 || launcher().mpi == "mpich" && run.code() == 0, "{run}");
}

/// The signal goes where `#SBATCH --signal` says: with `B:` to the shell, else to the ranks, and never to srun.
#[test]
fn slurm_signals_the_ranks() {
    let text = fs::read_to_string(script("slurm.sh")).unwrap();
    let option =
        text.lines().find_map(|line| line.strip_prefix("#SBATCH --signal=")).expect("a signal before the limit");
    let name = option.trim_start_matches("B:").split('@').next().unwrap();
    let scratch = Scratch::new();
    let mut running = job(&scratch, "slurm.sh").start();
    running.until("the ranks", || journal_has_a_pattern(&scratch.join("results")));
    let begin = Instant::now();
    let to = if option.starts_with("B:") { vec![running.pid()] } else { running.ranks() };
    to.into_iter().for_each(|pid| signal(pid, name));
    let run = running.wait();
    assert!(begin.elapsed() < Duration::from_secs(20), "{run}");
    check_results(&scratch, &run);
}

fn journal_has_a_pattern(results: &Path) -> bool {
    let entries = fs::read_dir(results).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut journals = entries.filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"));
    journals.any(|path| fs::read_to_string(path).is_ok_and(|text| text.contains(r#""record":"pattern""#)))
}

fn ends_its_ranks(name: &str) {
    let scratch = Scratch::new();
    let run = job(&scratch, name).run();
    assert!(run.seconds < 60.0, "{run}");
    check_results(&scratch, &run);
}

fn ends_before_its_limit(name: &str) {
    let scratch = Scratch::new();
    let run = job(&scratch, name).run();
    assert!(run.seconds < 60.0, "{run}");
    run.expect(0);
    check_outputs(&scratch, "limit", &run.to_string());
}

#[test]
fn pbs_ends_before_its_limit() {
    ends_before_its_limit("pbs.sh");
}

#[test]
fn lsf_ends_before_its_limit() {
    ends_before_its_limit("lsf.sh");
}

#[test]
fn flux_ends_after_its_ranks() {
    ends_its_ranks("flux.sh");
}

#[test]
fn pals_ends_after_its_ranks() {
    ends_its_ranks("pals.sh");
}

/// What has not been run on its batch system says so, and every script has a test above.
#[test]
fn scripts_say_where_they_were_run() {
    let names = list(&script(""));
    assert_eq!(names, ["flux.sh", "lsf.sh", "pals.sh", "pbs.sh", "slurm.sh"]);
    for name in names {
        let text = fs::read_to_string(script(&name)).unwrap();
        assert_eq!(text.contains("Not run on the real system"), name != "slurm.sh", "{name}");
    }
}

/// The ranks end themselves minutes before their job is ended, also when an edit moves one of both.
#[test]
fn limits_of_ranks_are_before_those_of_jobs() {
    for (name, option) in
        [("pbs.sh", "walltime="), ("pals.sh", "walltime="), ("lsf.sh", "-W "), ("flux.sh", "--time-limit=")]
    {
        let text = fs::read_to_string(script(name)).unwrap();
        let after = |mark: &str| text.split_once(mark).unwrap_or_else(|| panic!("{name}: {mark}")).1;
        let limit = after(option).lines().next().unwrap();
        // `01:30` and `01:30:00`, or `90m`.
        let job: u32 = limit.strip_suffix('m').map_or_else(
            || limit.split(':').take(2).fold(0, |minutes, part| minutes * 60 + part.parse::<u32>().unwrap()),
            |minutes| minutes.parse().unwrap(),
        );
        let ranks: u32 = after("${LIMIT:-").split('m').next().unwrap().parse().unwrap();
        assert!(ranks + 2 <= job, "{name}: {ranks} of {limit}");
    }
}

#[test]
fn shellcheck_has_no_remark() {
    if !is_command("shellcheck") {
        return skip("shellcheck is not installed");
    }
    let jobs = list(&script("")).into_iter().map(|name| format!("docs/jobs/{name}"));
    let clusters = ["cluster.sh", "cluster/suite.sh"].map(|name| format!("scripts/{name}"));
    // With the files that these source.
    let mut command = Command::new("shellcheck");
    command.args(["-x", "-a", "-S", "warning"]).args(jobs.chain(clusters));
    let done = command.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
}
