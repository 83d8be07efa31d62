//! Warning about a time limit that ended a run, or left too little time for parts of it.

use crate::frame::records::{kinds, JournaledResult, OmittedPart, RunOutcome, TimeLimitRecord, Warning};
use crate::frame::units::format_seconds;
use crate::frame::words::list;

/// Warns if the limit had an effect on the run.
pub(crate) fn warning(result: &impl JournaledResult) -> Option<Warning> {
    let record = result.time_limit()?;
    let TimeLimitRecord { source, seconds, fitting_time_seconds, omitted, .. } = record;
    let is_ended = result.outcome() == RunOutcome::Limit;
    if !is_ended && omitted.is_empty() {
        return None;
    }
    let names: Vec<String> = omitted.iter().map(|part: &OmittedPart| part.name().to_owned()).collect();
    let left = if names.is_empty() { String::new() } else { format!("omitted {}", list(&names)) };
    let limit =
        seconds.map_or_else(|| "the time limit".into(), |seconds| format!("the limit of {}", format_seconds(seconds)));
    let (summary, end) = match (is_ended, left.is_empty()) {
        (true, true) => {
            ("the time limit ended the run".to_owned(), ", so the run ended before everything was measured")
        }
        (true, false) => {
            (format!("the time limit ended the run; {left}"), ", so the run ended before everything was measured")
        }
        (false, _) => (format!("for the time limit the run {left}"), ""),
    };
    let omitted_text = if left.is_empty() { String::new() } else { format!(" The run {left}.") };
    let warning = kinds::TIME_LIMIT
        .warning()
        .with_figure("source", source)
        .with_figure("limit_seconds", seconds)
        .with_figure("omitted", omitted)
        .with_figure("is_ended", is_ended)
        .with_figure("fitting_time_seconds", fitting_time_seconds)
        .with_text(
            summary,
            format!("Not everything fits into {limit} from the start of the run ({source}){end}.{omitted_text}"),
        );
    Some(match fitting_time_seconds {
        None => warning,
        Some(fitting) => {
            warning.with_next_step(format!("Give the job more time, or use -T {fitting}s, which would fit."))
        }
    })
}
