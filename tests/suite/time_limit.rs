//! `--time-limit`: runs end before it with complete results, and the end of a batch job is asked of its scheduler.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::Value;

use crate::support::{document, items, journal, Launch, Scratch, PROGRAM};

const SMALL: [&str; 4] = ["--memory-per-process", "64M", "--space", "600M"];

/// Complete outputs, an empty directory, exit code 0, and all of it before the limit.
#[test]
fn a_run_ends_before_its_limit_with_a_result() {
    let scratch = Scratch::new();
    let args = ["io", "-T", "30s", "--time-limit", "3s", "--backend", "mpiio,posix"];
    let run = Launch::new(3).args(args).args(SMALL).within(Duration::from_secs(20)).into(&scratch).run();
    run.expect(0).says(&["time limit in", "(--time-limit)", "would fit"]);
    // The limit counts from the start of the ranks, the launcher takes its time.
    assert!(run.seconds < 5.0, "{run}");
    for name in ["out.json", "out.jsonl", "out.csv", "out.mpiio.sum", "out.posix.sum"] {
        assert!(fs::metadata(scratch.join(name)).is_ok_and(|file| file.len() > 0), "{name} is empty; {run}");
    }
    let result = document(&scratch);
    assert_eq!(result["ending"]["outcome"], "limit", "{run}");
    assert_eq!(result["time_limit"]["source"], "--time-limit");
    assert!(result["time_limit"]["fitting_time_seconds"].as_f64().is_some_and(|seconds| seconds < 3.0), "{run}");
    assert_eq!(result["time_limit"]["omitted"], serde_json::json!(["repetitions", "rounds", "verification_samples"]));
    // What is reserved for the end is not much longer than the end takes.
    assert!(result["ending"]["real_seconds"].as_f64().is_some_and(|seconds| seconds > 0.5), "{}", result["ending"]);
    let patterns = items(&result["patterns"]);
    let cut = |pattern: &&Value| pattern["ended"]["by"] == "limit";
    assert!(!patterns.is_empty() && patterns.iter().filter(cut).count() <= 2, "one for each backend; {run}");
    assert!(patterns.iter().all(|pattern| pattern["ended"]["by"] != "interrupted"));
    assert_eq!(journal(&scratch, "end").len(), 1);
    assert_eq!(scratch.list("disk"), [] as [&str; 0], "files are left");
    let report = Command::new(PROGRAM).args(["report", "--full"]).arg(scratch.join("out.json")).output().unwrap();
    let text = String::from_utf8_lossy(&report.stdout);
    assert!(text.contains("ENDED BY THE TIME LIMIT") && text.contains("-T "), "{text}");
}

/// The other benchmarks end before it, too; what they have not measured is missing, not wrong.
#[test]
fn imb_and_comm_end_before_their_limit() {
    for args in
        [vec!["imb", "S_Write_Indv", "P_Write_Shared", "C_Read_Indv", "--time", "2s"], vec!["comm", "-T", "60s"]]
    {
        let scratch = Scratch::new();
        let is_comm = args[0] == "comm";
        let launch = Launch::new(2).args(args).args(["--time-limit", "4s"]).within(Duration::from_secs(20));
        let run = match is_comm {
            true => launch.args(["--memory-per-process", "64M", "--out"]).arg(scratch.join("out")).run(),
            false => launch.into(&scratch).run(),
        };
        run.expect(0).says(&["time limit in"]);
        assert!(run.seconds < 6.0, "{run}");
        let result = document(&scratch);
        assert!(["limit", "complete"].iter().any(|outcome| result["ending"]["outcome"] == *outcome), "{run}");
        assert_eq!(result["time_limit"]["source"], "--time-limit");
        assert!(is_comm || scratch.list("disk").is_empty(), "files are left");
    }
}

/// A command that prints this text.
fn stub(scratch: &Scratch, name: &str, text: &str) {
    let path = scratch.join("bin").join(name);
    fs::write(&path, format!("#!/bin/sh\ncat <<'END'\n{text}\nEND\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn plan(scratch: &Scratch, variables: &[(&str, &str)]) -> Output {
    let path = format!("{}:{}", scratch.join("bin").display(), std::env::var("PATH").unwrap());
    let mut command = Command::new(PROGRAM);
    command.args(["plan", "--ranks", "4", "-T", "15m", "--backend", "mpiio,posix", "--time-limit", "auto"]);
    for name in
        ["SLURM_JOB_ID", "SLURM_JOBID", "SLURM_JOB_END_TIME", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "FLUX_URI"]
    {
        command.env_remove(name);
    }
    command.env("PATH", path).envs(variables.iter().copied()).output().unwrap()
}

#[test]
fn the_end_of_the_job_is_asked_of_its_scheduler() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.join("bin")).unwrap();
    stub(&scratch, "squeue", "2:59");
    stub(&scratch, "qstat", "Job Id: 1\n    resources_used.walltime = 00:01:00\n    Resource_List.walltime = 00:04:00");
    stub(&scratch, "bjobs", "0:04 L");
    stub(&scratch, "flux", "179.5");
    for (variable, minutes) in
        [("SLURM_JOB_ID", "3.0"), ("PBS_JOBID", "3.0"), ("LSB_JOBID", "3.0"), ("FLUX_JOB_ID", "3.0")]
    {
        let said = plan(&scratch, &[(variable, "1")]);
        let text = String::from_utf8_lossy(&said.stdout);
        let line = text.lines().find(|line| line.contains("time limit")).unwrap_or_else(|| panic!("{said:?}"));
        let is_advised =
            ["74s", "75s"].iter().any(|time| line.contains(&format!("{minutes} min: the run does NOT fit; -T {time}")));
        assert!(is_advised, "{variable}: {text}");
    }
    let run = Launch::new(2).args(["io", "-T", "1s", "--types", "2", "--time-limit", "auto"]).args(SMALL);
    let path = format!("{}:{}", scratch.join("bin").display(), std::env::var("PATH").unwrap());
    let run = run.env("PATH", path).env("FLUX_URI", "local").into(&scratch).run();
    run.expect(0).says(&["(flux job timeleft)"]);
    assert_eq!(document(&scratch)["time_limit"]["source"], "flux job timeleft");
}

#[test]
fn an_unknown_end_is_refused_with_everything_that_was_asked() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.join("bin")).unwrap();
    stub(&scratch, "squeue", "INVALID");
    stub(&scratch, "scontrol", "slurm_load_jobs error: Unable to contact slurm controller");
    for (variables, parts) in [
        (vec![], vec!["SLURM_JOB_ID, PBS_JOBID, LSB_JOBID, FLUX_JOB_ID", "--time-limit 30m"]),
        (vec![("SLURM_JOB_ID", "7")], vec!["SLURM_JOB_END_TIME is not set", "'INVALID'", "Unable to contact"]),
    ] {
        let said = plan(&scratch, &variables);
        let text = String::from_utf8_lossy(&said.stderr).into_owned();
        assert_eq!(said.status.code(), Some(2), "{text}");
        let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    }
}
