use std::collections::BTreeMap;

use super::*;

/// 2026-11-29 21:00:00 UTC.
const NOW: f64 = 1_796_072_400.0;

/// Asks with these variables and outputs of commands.
fn asked(variables: &[(&str, &str)], outputs: &[(&str, &str)]) -> Result<(Option<f64>, &'static str), String> {
    let variables: BTreeMap<&str, &str> = variables.iter().copied().collect();
    let outputs: BTreeMap<&str, &str> = outputs.iter().copied().collect();
    let sources = Sources {
        variable: &|name| variables.get(name).map(|value| (*value).to_owned()),
        command: &|words| {
            let output = outputs.get(words.join(" ").as_str()).or_else(|| outputs.get(words[0]));
            output.map(|text| (*text).to_owned()).ok_or_else(|| "cannot be run: No such file or directory".into())
        },
        now_seconds: NOW,
        job_age_seconds: &|_| Some(100.0),
    };
    ask(&sources).map(|answer| (answer.left_seconds, answer.source))
}

const SCONTROL: &str =
    "JobId=17 JobName=beff-raw UserId=root(0) GroupId=root(0) MCS_label=N/A Priority=4294901743 Nice=0 \
    Account=(null) QOS=(null) JobState=RUNNING Reason=None Dependency=(null) Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 \
    ExitCode=0:0 RunTime=00:00:11 TimeLimit=00:03:00 TimeMin=N/A SubmitTime=2026-11-29T20:59:48 \
    StartTime=2026-11-29T20:59:49 EndTime=2026-11-29T21:02:49 Deadline=N/A Partition=all\n";

#[test]
fn slurm_is_asked_by_variable_then_squeue_then_scontrol() {
    let job = ("SLURM_JOB_ID", "17");
    let all = [("squeue --noheader --jobs 17 --format %L", "2:49\n"), ("scontrol show job -o 17", SCONTROL)];
    let end = ("SLURM_JOB_END_TIME", "1796072565");
    assert_eq!(asked(&[job, end], &all), Ok((Some(165.0), "SLURM_JOB_END_TIME")));
    assert_eq!(asked(&[job], &all), Ok((Some(169.0), "squeue")));
    assert_eq!(asked(&[("SLURM_JOBID", "17")], &all), Ok((Some(169.0), "squeue")));
    assert_eq!(asked(&[job], &all[1..]), Ok((Some(169.0), "scontrol")));
    assert_eq!(asked(&[job], &[("squeue", "NOT_SET"), all[1]]), Ok((Some(169.0), "scontrol")));
    assert_eq!(asked(&[job], &[("squeue", "UNLIMITED\n")]), Ok((None, "squeue")));
    let unlimited = SCONTROL.replace("TimeLimit=00:03:00", "TimeLimit=UNLIMITED");
    assert_eq!(asked(&[job], &[("scontrol", &unlimited)]), Ok((None, "scontrol")));
    // A job that is over is over.
    assert_eq!(asked(&[job, ("SLURM_JOB_END_TIME", "1796072390")], &[]), Ok((Some(-10.0), "SLURM_JOB_END_TIME")));
    // Without a job the end of another one, inherited from a login shell, does not count.
    assert!(asked(&[end], &[]).is_err());
}

#[test]
fn times_of_slurm_have_days_hours_minutes_and_seconds() {
    for (text, seconds) in [
        ("0:00", 0.0),
        ("59", 59.0),
        ("2:49", 169.0),
        ("1:02:03", 3723.0),
        ("23:59:59", 86399.0),
        ("1-00:00:00", 86400.0),
        ("12-03:04:05", 1_047_845.0),
    ] {
        assert_eq!(slurm_time(text), Some(Some(seconds)), "{text}");
    }
    for text in ["", "INVALID", "NOT_SET", "-1:00", "1:2:3:4", "1-", ":", "1:", "+1:00", "1.5:00", "99999999999"] {
        assert_eq!(slurm_time(text), None, "{text}");
    }
}

const QSTAT: &str = "Job Id: 12.server\n    Job_Name = beff-raw\n    resources_used.cpupct = 0\n    resources_used.walltime = 00:01:40\n    \
    job_state = R\n    Resource_List.walltime = 01:30:00\n    stime = Sun Nov 29 20:56:40 2026\n    session_id = 4711\n";

#[test]
fn pbs_is_asked_by_qstat_then_by_its_variable() {
    let (job, limit) = (("PBS_JOBID", "12.server"), ("PBS_WALLTIME", "5400"));
    // 200 s since the start, of which the server knows 100.
    let date = ("date -d Sun Nov 29 20:56:40 2026 +%s", "1796072200\n");
    assert_eq!(asked(&[job], &[("qstat -f 12.server", QSTAT), date]), Ok((Some(5200.0), "qstat")));
    assert_eq!(asked(&[job], &[("qstat", QSTAT)]), Ok((Some(5300.0), "qstat")));
    let torque = QSTAT.to_owned() + "    Walltime.Remaining = 5199\n";
    assert_eq!(asked(&[job], &[("qstat", &torque)]), Ok((Some(5199.0), "qstat")));
    let unlimited = QSTAT.replace("Resource_List.walltime", "Resource_List.other");
    assert_eq!(asked(&[job], &[("qstat", &unlimited)]), Ok((None, "qstat")));
    assert_eq!(asked(&[job, limit], &[]), Ok((Some(5300.0), "PBS_WALLTIME")), "less the age of the job");
    // A job that has used nothing yet, and whose start is unknown.
    let new = QSTAT.replace("resources_used.walltime", "other").replace("stime", "other");
    assert_eq!(asked(&[job, limit], &[("qstat", &new)]), Ok((Some(5300.0), "PBS_WALLTIME")));
    assert!(asked(&[job], &[]).unwrap_err().contains("PBS_WALLTIME"));
}

#[test]
fn lsf_reports_hours_and_minutes() {
    let job = ("LSB_JOBID", "99");
    let with = |text: &str| asked(&[job], &[("bjobs -noheader -o time_left 99", text)]);
    assert_eq!(with("1:29 L\n"), Ok((Some(5280.0), "bjobs")), "less the minute that may be over");
    assert_eq!(with("00:00 X\n"), Ok((Some(0.0), "bjobs")));
    assert_eq!(with("0:03 L"), Ok((Some(120.0), "bjobs")));
    assert_eq!(with("-\n"), Ok((None, "bjobs")));
    assert_eq!(with("1:29 E\n"), Ok((None, "bjobs")), "an estimate ends nothing");
    assert_eq!(
        asked(&[job, ("LSB_JOBINDEX", "3")], &[("bjobs -noheader -o time_left 99[3]", "0:10 L")]),
        Ok((Some(540.0), "bjobs"))
    );
    assert_eq!(
        asked(&[job, ("LSB_JOBINDEX", "0")], &[("bjobs -noheader -o time_left 99", "0:10 L")]).unwrap().0,
        Some(540.0)
    );
    assert!(with("Job <99> is not found").unwrap_err().contains("Job <99>"));
}

#[test]
fn flux_reports_seconds_or_infinity() {
    let with = |text: &str| asked(&[("FLUX_JOB_ID", "f2g")], &[("flux job timeleft", text)]);
    assert_eq!(with("178\n"), Ok((Some(178.0), "flux job timeleft")));
    assert_eq!(with("178.25\n").unwrap().0, Some(178.25));
    for text in ["inf\n", "infinity\n"] {
        assert_eq!(with(text), Ok((None, "flux job timeleft")), "{text}");
    }
    for text in ["", "-1", "nan", "2m"] {
        assert!(with(text).is_err(), "{text}");
    }
}

/// An instance of Flux may have a job of Slurm around it, with another limit.
#[test]
fn of_several_schedulers_the_first_end_counts() {
    let variables = [("SLURM_JOB_ID", "1"), ("FLUX_URI", "local:///x")];
    let with = |squeue, flux| asked(&variables, &[("squeue", squeue), ("flux", flux)]).unwrap();
    assert_eq!(with("10:00", "300"), (Some(300.0), "flux job timeleft"));
    assert_eq!(with("10:00", "900"), (Some(600.0), "squeue"));
    assert_eq!(with("10:00", "inf"), (Some(600.0), "squeue"));
    assert_eq!(with("UNLIMITED", "900"), (Some(900.0), "flux job timeleft"));
    assert_eq!(with("UNLIMITED", "inf").0, None);
}

#[test]
fn an_error_lists_everything_that_was_asked() {
    let none = asked(&[], &[]).unwrap_err();
    for name in ["SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID"] {
        assert!(none.contains(name), "{none}");
    }
    let slurm =
        asked(&[("SLURM_JOB_ID", "17"), ("SLURM_JOB_END_TIME", "soon")], &[("scontrol", "slurm_load_jobs error")]);
    let slurm = slurm.unwrap_err();
    for part in [
        "SLURM_JOB_END_TIME is not a time",
        "`squeue --noheader --jobs 17 --format %L` cannot be run",
        "'slurm_load_jobs error'",
    ] {
        assert!(slurm.contains(part), "{slurm}");
    }
}

#[test]
fn the_age_of_a_job_is_at_least_that_of_this_process() {
    let age = job_age_seconds("PATH").unwrap();
    assert!((0.0..1e9).contains(&age), "{age}");
    assert_eq!(job_age_seconds("BEFF_RAW_NO_SUCH_VARIABLE"), None);
}
