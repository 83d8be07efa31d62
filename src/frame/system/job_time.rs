//! Remaining time of the batch job, as its scheduler reports it. Rank 0 asks once, before a run.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use beff_host::command::output_of;
use procfs::process::Process;
use procfs::{Current, Uptime};

/// A command that does not answer in this time is killed.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);

/// `bjobs` counts in minutes: this much may be gone already.
const LSF_STEP_SECONDS: f64 = 60.0;

/// Answer of a scheduler.
#[derive(Clone, Debug, PartialEq)]
pub struct JobTime {
    /// Time until the job is killed; None: the job has no limit.
    pub left_seconds: Option<f64>,
    /// Variable or command that gave it.
    pub source: &'static str,
}

/// Sources of facts, replaced in tests.
struct Sources<'a> {
    variable: &'a dyn Fn(&str) -> Option<String>,
    /// Standard output of a command, or why there is none.
    command: &'a dyn Fn(&[&str]) -> Result<String, String>,
    /// Seconds since 1970.
    now_seconds: f64,
    /// Seconds since the first process of the job above this one began, by the variable that identifies the job.
    job_age_seconds: &'a dyn Fn(&str) -> Option<f64>,
}

/// Asks the scheduler of this job. If there are several, as with Flux in a job of Slurm, the first end counts.
///
/// # Errors
/// No scheduler answered: everything that was asked.
pub fn remaining() -> Result<JobTime, String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    ask(&Sources {
        variable: &|name| std::env::var(name).ok(),
        command: &|words| output_of(words, COMMAND_TIMEOUT),
        now_seconds: now.as_secs_f64(),
        job_age_seconds: &job_age_seconds,
    })
}

fn ask(sources: &Sources<'_>) -> Result<JobTime, String> {
    let mut asked = Vec::new();
    let answers = [slurm, pbs, lsf, flux].map(|scheduler| scheduler(sources, &mut asked));
    let end = |answer: &JobTime| answer.left_seconds.unwrap_or(f64::INFINITY);
    let first = answers.into_iter().flatten().min_by(|a, b| end(a).total_cmp(&end(b)));
    first.ok_or_else(|| match asked.is_empty() {
        true => {
            "this is no job of a known scheduler: SLURM_JOB_ID, PBS_JOBID, LSB_JOBID, FLUX_JOB_ID and FLUX_URI are \
                 not set"
                .into()
        }
        false => asked.join("; "),
    })
}

/// Parses the answer of a command; failures are listed in `asked`.
fn parsed<T>(
    sources: &Sources<'_>,
    words: &[&str],
    parse: impl Fn(&str) -> Option<T>,
    asked: &mut Vec<String>,
) -> Option<T> {
    let line = words.join(" ");
    match (sources.command)(words) {
        Ok(text) => parse(&text).or_else(|| {
            let first: String = text.trim().lines().next().unwrap_or("").chars().take(60).collect();
            asked.push(format!("`{line}` printed no time, but '{first}'"));
            None
        }),
        Err(reason) => {
            asked.push(format!("`{line}` {reason}"));
            None
        }
    }
}

fn slurm(sources: &Sources<'_>, asked: &mut Vec<String>) -> Option<JobTime> {
    let job = (sources.variable)("SLURM_JOB_ID").or_else(|| (sources.variable)("SLURM_JOBID"))?;
    match (sources.variable)("SLURM_JOB_END_TIME").map(|text| text.trim().parse::<u64>()) {
        Some(Ok(end)) => {
            let left_seconds = Some(end as f64 - sources.now_seconds);
            return Some(JobTime { left_seconds, source: "SLURM_JOB_END_TIME" });
        }
        Some(Err(_)) => asked.push("SLURM_JOB_END_TIME is not a time".into()),
        None => asked.push("SLURM_JOB_END_TIME is not set".into()),
    }
    let squeue = ["squeue", "--noheader", "--jobs", &job, "--format", "%L"];
    if let Some(left_seconds) = parsed(sources, &squeue, slurm_time, asked) {
        return Some(JobTime { left_seconds, source: "squeue" });
    }
    let scontrol = ["scontrol", "show", "job", "-o", &job];
    let left_seconds = parsed(sources, &scontrol, scontrol_left, asked)?;
    Some(JobTime { left_seconds, source: "scontrol" })
}

/// `[days-][[hours:]minutes:]seconds`, or `UNLIMITED`: the inner None.
fn slurm_time(text: &str) -> Option<Option<f64>> {
    let text = text.trim();
    if text == "UNLIMITED" {
        return Some(None);
    }
    let (days, clock) = text.split_once('-').unwrap_or(("0", text));
    Some(Some(days.parse::<u32>().ok().map(f64::from)? * 86400.0 + clock_seconds(clock)?))
}

/// `[[hours:]minutes:]seconds`.
fn clock_seconds(text: &str) -> Option<f64> {
    let parts: Vec<&str> = text.split(':').collect();
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if parts.len() > 3 || !parts.iter().all(is_number) {
        return None;
    }
    parts.iter().try_fold(0.0, |sum, part| Some(sum * 60.0 + f64::from(part.parse::<u32>().ok()?)))
}

/// The limit less the time so far: neither depends on a time zone, as EndTime does.
fn scontrol_left(text: &str) -> Option<Option<f64>> {
    let field = |name: &str| text.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    let Some(limit) = slurm_time(field("TimeLimit")?)? else { return Some(None) };
    Some(Some(limit - slurm_time(field("RunTime")?)??))
}

fn pbs(sources: &Sources<'_>, asked: &mut Vec<String>) -> Option<JobTime> {
    let job = (sources.variable)("PBS_JOBID")?;
    let begun = |text: &str| {
        // The scheduler prints local time, which date(1) knows to convert.
        let text = attribute(text, "stime").or_else(|| attribute(text, "start_time"))?;
        (sources.command)(&["date", "-d", text, "+%s"]).ok()?.trim().parse::<f64>().ok()
    };
    let left = |text: &str| qstat_left(text, begun(text).map(|begun| sources.now_seconds - begun));
    if let Some(left_seconds) = parsed(sources, &["qstat", "-f", &job], left, asked) {
        return Some(JobTime { left_seconds, source: "qstat" });
    }
    let Some(limit) = (sources.variable)("PBS_WALLTIME").and_then(|text| text.trim().parse::<u32>().ok()) else {
        asked.push("PBS_WALLTIME is not a number of seconds".into());
        return None;
    };
    let age_seconds = (sources.job_age_seconds)("PBS_JOBID").unwrap_or(0.0);
    Some(JobTime { left_seconds: Some(f64::from(limit) - age_seconds), source: "PBS_WALLTIME" })
}

/// Value of `name = value` in a line of its own.
fn attribute<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.trim().strip_prefix(name)?.trim_start().strip_prefix('=').map(str::trim))
}

/// The limit less the time since the start of the job. The reported time used is some minutes old, so the larger of both counts.
fn qstat_left(text: &str, since_start_seconds: Option<f64>) -> Option<Option<f64>> {
    if let Some(left) = attribute(text, "Walltime.Remaining") {
        return Some(Some(left.parse::<u32>().ok().map(f64::from)?));
    }
    // Without a limit the attribute is absent.
    let Some(limit) = attribute(text, "Resource_List.walltime") else {
        return attribute(text, "job_state").map(|_| None);
    };
    let used = attribute(text, "resources_used.walltime").and_then(clock_seconds);
    let spent = used.into_iter().chain(since_start_seconds).reduce(f64::max)?;
    Some(Some(clock_seconds(limit)? - spent))
}

fn lsf(sources: &Sources<'_>, asked: &mut Vec<String>) -> Option<JobTime> {
    let id = (sources.variable)("LSB_JOBID")?;
    let index = (sources.variable)("LSB_JOBINDEX").filter(|index| index != "0");
    let job = index.map_or_else(|| id.clone(), |index| format!("{id}[{index}]"));
    let left_seconds = parsed(sources, &["bjobs", "-noheader", "-o", "time_left", &job], bjobs_left, asked)?;
    Some(JobTime { left_seconds, source: "bjobs" })
}

/// `hours:minutes L`, where L is a limit of the job (E: an estimate, which ends nothing, X: exceeded); `-` without a limit.
fn bjobs_left(text: &str) -> Option<Option<f64>> {
    let mut words = text.split_whitespace();
    match (words.next()?, words.next()) {
        ("-", _) | (_, Some("E")) => Some(None),
        (clock, None | Some("L" | "X")) => match clock.matches(':').count() {
            1 => Some(Some((clock_seconds(clock)? * 60.0 - LSF_STEP_SECONDS).max(0.0))),
            _ => clock_seconds(clock).map(Some),
        },
        _ => None,
    }
}

fn flux(sources: &Sources<'_>, asked: &mut Vec<String>) -> Option<JobTime> {
    (sources.variable)("FLUX_JOB_ID").or_else(|| (sources.variable)("FLUX_URI"))?;
    let left_seconds = parsed(sources, &["flux", "job", "timeleft"], flux_left, asked)?;
    Some(JobTime { left_seconds, source: "flux job timeleft" })
}

/// Seconds, or infinity.
fn flux_left(text: &str) -> Option<Option<f64>> {
    let seconds = text.trim().parse::<f64>().ok().filter(|seconds| *seconds >= 0.0)?;
    Some(Some(seconds).filter(|seconds| seconds.is_finite()))
}

/// Age of the oldest ancestor of this process with the same value of the variable.
fn job_age_seconds(variable: &str) -> Option<f64> {
    let (name, value) = (std::ffi::OsString::from(variable), std::env::var_os(variable)?);
    let mut oldest = Process::myself().ok()?.stat().ok()?;
    while let Ok(parent) = Process::new(oldest.ppid) {
        let Ok(stat) = parent.stat() else { break };
        if !parent.environ().is_ok_and(|environ| environ.get(&name) == Some(&value)) {
            break;
        }
        oldest = stat;
    }
    Some(Uptime::current().ok()?.uptime - oldest.starttime as f64 / procfs::ticks_per_second() as f64)
}

#[cfg(test)]
#[path = "job_time_tests.rs"]
mod tests;
