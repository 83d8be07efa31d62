//! The time limit of a run: determined on rank 0 before anything is created.

use std::sync::OnceLock;
use std::time::Instant;

use crate::frame::config::TimeLimit;
use crate::frame::error::UsageError;
use crate::frame::records::TimeLimitRecord;
use crate::frame::run::job_limit::JobLimit;
use crate::frame::system::job_time;
use crate::frame::units::format_seconds;

/// With less time than this nothing is begun.
const MIN_SECONDS: f64 = 1.0;

/// Source of a limit that the user gave.
pub(crate) const OPTION: &str = "--time-limit";

static BEGIN: OnceLock<Instant> = OnceLock::new();

/// Notes the start of the program, from which a given limit counts.
pub(crate) fn note_start() {
    BEGIN.get_or_init(Instant::now);
}

fn since_start_seconds() -> f64 {
    BEGIN.get_or_init(Instant::now).elapsed().as_secs_f64()
}

/// Determines the requested limit, on rank 0. `hang_seconds`: time that the run is expected to wait for MPI_Finalize in vain.
///
/// # Errors
/// No scheduler knows the end of the job, or too little time is left.
pub(crate) fn resolve(
    requested: TimeLimit,
    hang_seconds: f64,
) -> Result<(TimeLimitRecord, Option<JobLimit>), UsageError> {
    let (seconds, source) = match requested {
        TimeLimit::Seconds(seconds) => (Some(seconds - since_start_seconds()), OPTION),
        TimeLimit::Auto => ask_scheduler()?,
    };
    check_left(seconds, source)?;
    let limit = seconds.map(|seconds| JobLimit::new(seconds, since_start_seconds() + hang_seconds));
    let reserve_seconds = limit.as_ref().map_or(0.0, JobLimit::reserve_seconds);
    let source = source.to_owned();
    Ok((TimeLimitRecord { source, seconds, reserve_seconds, ..TimeLimitRecord::default() }, limit))
}

/// Time until the end of the batch job, None without one, and the source.
///
/// # Errors
/// No scheduler knows it.
pub(crate) fn ask_scheduler() -> Result<(Option<f64>, &'static str), UsageError> {
    let answer = job_time::remaining().map_err(|asked| {
        UsageError::new(
            format!("--time-limit auto: the end of the batch job is unknown: {asked}"),
            "Give the limit, e.g. --time-limit 30m, less the time that the job has run before this program.",
        )
    })?;
    Ok((answer.left_seconds, answer.source))
}

fn check_left(seconds: Option<f64>, source: &str) -> Result<(), UsageError> {
    match seconds.filter(|seconds| *seconds < MIN_SECONDS) {
        None => Ok(()),
        Some(seconds) => Err(UsageError::new(
            format!("the time limit ({source}) is {} away: nothing can be measured", format_seconds(seconds.max(0.0))),
            "Give the run more time.",
        )),
    }
}

/// What a user should know of the limit before the run.
pub(crate) fn announcement(record: Option<&TimeLimitRecord>) -> String {
    let Some(record) = record else { return String::new() };
    let TimeLimitRecord { source, seconds, fitting_time_seconds, .. } = record;
    let fitting = fitting_time_seconds
        .map_or_else(String::new, |seconds| format!(", which is too short for all of it: -T {seconds}s would fit"));
    match seconds {
        None => format!("; the batch job has no time limit ({source})"),
        Some(seconds) => format!("; time limit in {} ({source}){fitting}", format_seconds(*seconds)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_leaves_no_time_is_refused() {
        assert!(check_left(None, "squeue").is_ok() && check_left(Some(1.0), OPTION).is_ok());
        for seconds in [0.5, 0.0, -20.0] {
            let error = check_left(Some(seconds), "squeue").unwrap_err();
            assert!(error.cause.contains("squeue") && error.next_step.contains("more time"), "{error:?}");
        }
    }

    #[test]
    fn the_announcement_names_the_source_and_the_time_that_fits() {
        assert_eq!(announcement(None), "");
        let record = TimeLimitRecord { source: "squeue".into(), seconds: Some(180.0), ..TimeLimitRecord::default() };
        let text = announcement(Some(&record));
        assert!(text.contains("(squeue)") && !text.contains("-T"), "{text}");
        let short = TimeLimitRecord { fitting_time_seconds: Some(70.0), ..record.clone() };
        assert!(announcement(Some(&short)).contains("-T 70s would fit"), "{}", announcement(Some(&short)));
        let none = TimeLimitRecord { seconds: None, ..record };
        assert!(announcement(Some(&none)).contains("no time limit"));
    }

    #[test]
    fn a_given_limit_counts_from_the_start() {
        let (record, limit) = resolve(TimeLimit::Seconds(1e6), 0.0).unwrap();
        assert_eq!((record.source.as_str(), record.omitted.is_empty()), (OPTION, true));
        assert!(record.seconds.is_some_and(|seconds| (9e5..=1e6).contains(&seconds)) && record.reserve_seconds >= 1.0);
        assert!(limit.unwrap().left_seconds() > 8e5);
        assert!(resolve(TimeLimit::Seconds(1e-3), 0.0).is_err());
        let (hanging, _) = resolve(TimeLimit::Seconds(1e6), 60.0).unwrap();
        assert!(hanging.reserve_seconds >= record.reserve_seconds + 60.0, "{hanging:?}");
    }
}
