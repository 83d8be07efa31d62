//! Text of the warnings of replays: the cause, with figures, and the next step.

use crate::frame::report::text::{count, percent};
use crate::frame::report::warnings as frame_warnings;
use crate::frame::report::Brief;
use crate::frame::units::{format_seconds, format_size};
use crate::replay::values::ReplayWarning;

/// Cause and next step of a warning, each a few plain sentences.
#[must_use]
pub fn text(warning: &ReplayWarning) -> (String, String) {
    match warning {
        ReplayWarning::Shared(shared) => frame_warnings::text(shared),
        own => (cause(own), next_step(own).to_owned()),
    }
}

/// A warning in a few words, with its place among others.
#[must_use]
pub fn brief(warning: &ReplayWarning) -> Brief {
    let (rank, about, text) = match warning {
        ReplayWarning::Shared(shared) => return frame_warnings::brief(shared),
        ReplayWarning::ProfileCut { processes, of, .. } => (
            10,
            None,
            format!("the recording of {processes} of {} did not end with the program", count(*of, "process")),
        ),
        ReplayWarning::NotRun { backend, passes, reason } => {
            (11, Some(backend), format!("{} not run: {}", count(*passes, "pass"), frame_warnings::clause(reason)))
        }
        ReplayWarning::LeftOut { backend, calls, function, .. } => {
            (12, Some(backend), format!("{} left out, most of them {function}", count(*calls, "call")))
        }
        ReplayWarning::NotAsRecorded { backend, calls, of, first } => (
            13,
            Some(backend),
            format!("{calls} of {} had other results, first {} ({})", count(*of, "call"), first.function, first.kind),
        ),
        ReplayWarning::CacheDiffers { backend, recorded_share, replayed_share } => (
            20,
            Some(backend),
            format!(
                "of what was read {} came past the page cache then, {} now: a disk is compared with a cache (--cache)",
                percent(*recorded_share),
                percent(*replayed_share)
            ),
        ),
        ReplayWarning::OrderLost { orderings } => {
            (21, None, format!("{} between ranks not kept: a read may overtake its write", count(*orderings, "order")))
        }
        ReplayWarning::Late { backend, late_seconds } => {
            (30, Some(backend), format!("calls began up to {} late: larger --scale", format_seconds(*late_seconds)))
        }
        ReplayWarning::Threads { threads } => {
            (31, None, format!("{} of a process made calls, here one behind the other", count(*threads, "thread")))
        }
        ReplayWarning::Unchecked { share } => {
            (32, None, format!("{} of what was read could not be compared", percent(*share)))
        }
        ReplayWarning::AllocationsInClock { backend, allocations } => (
            33,
            Some(backend),
            format!("a defect of this program: {} inside the clock", count(*allocations, "memory allocation")),
        ),
    };
    let brief = Brief::new(rank, text);
    about.map(|backend| brief.clone().about(backend)).unwrap_or(brief)
}

fn cause(warning: &ReplayWarning) -> String {
    match warning {
        ReplayWarning::ProfileCut { processes, of, calls_cut } => {
            let cut = match calls_cut {
                0 => String::new(),
                calls => format!(
                    " {} behind a collective call that not all of its ranks made: left out.",
                    count(*calls, "call")
                ),
            };
            format!("The recording of {processes} of {} did not end with the program.{cut}", count(*of, "process"))
        }
        ReplayWarning::LeftOut { backend, calls, bytes, function, reason } => format!(
            "{backend}: {} with {} left out, most of them {function}: {}.",
            count(*calls, "call"),
            format_size(*bytes),
            frame_warnings::clause(reason)
        ),
        ReplayWarning::NotRun { backend, passes, reason } => {
            format!("{backend}: {} not run: {}.", count(*passes, "pass"), frame_warnings::clause(reason))
        }
        ReplayWarning::NotAsRecorded { backend, calls, of, first } => format!(
            "{backend}: {calls} of {} had another result than the recorded one. The first in {}: {} of rank {} at {} ns \
             (recorded: {}; replayed: {}).",
            count(*of, "call"),
            first.kind,
            first.function,
            first.rank,
            first.begin_ns,
            first.recorded,
            first.replayed
        ),
        ReplayWarning::Threads { threads } => format!(
            "Up to {} of a process made calls when it was recorded; here one thread makes them one behind the other.",
            count(*threads, "thread")
        ),
        ReplayWarning::OrderLost { orderings } => format!(
            "{} between ranks could not be kept: the earlier call is not replayed. A read may overtake its write.",
            count(*orderings, "order")
        ),
        ReplayWarning::CacheDiffers { backend, recorded_share, replayed_share } => format!(
            "{backend}: of the bytes read {} were fetched past the page cache when it was recorded, now {}: caches were in another state.",
            percent(*recorded_share),
            percent(*replayed_share)
        ),
        ReplayWarning::Late { backend, late_seconds } => {
            format!("{backend}: calls began up to {} behind their deadline.", format_seconds(*late_seconds))
        }
        ReplayWarning::Unchecked { share } => format!(
            "{} of the bytes read could not be compared: the profile does not tell what they were.",
            percent(*share)
        ),
        ReplayWarning::AllocationsInClock { backend, allocations } => format!(
            "{} inside the clock, first with {backend}.",
            count(*allocations, "memory allocation")
        ),
        ReplayWarning::Shared(shared) => frame_warnings::text(shared).0,
    }
}

fn next_step(warning: &ReplayWarning) -> &'static str {
    match warning {
        ReplayWarning::ProfileCut { .. } => {
            "Take the numbers as those of a part of the program. Record again with room for the profile, to the end."
        }
        ReplayWarning::NotRun { .. } => "Take another backend, or let this one work here; `beff-raw info` lists what does.",
        ReplayWarning::LeftOut { .. } => "Compare only what both backends replayed: the table by class shows it.",
        ReplayWarning::NotAsRecorded { .. } => {
            "Times of such calls do not compare. Another MPI library or file system may answer otherwise; --detail request \
             shows every call."
        }
        ReplayWarning::Threads { .. } => "Take times of calls that overlapped in the program as upper limits.",
        ReplayWarning::OrderLost { .. } => "Use a profile that is whole, or one backend that replays everything.",
        ReplayWarning::CacheDiffers { .. } => {
            "Choose --cache keep or drop, whichever resembles the recorded run, or compare writes only."
        }
        ReplayWarning::Late { .. } => {
            "Calls take longer here than the time they had: take a larger --scale, or --pace think."
        }
        ReplayWarning::Unchecked { .. } => {
            "Bytes written at the same time by several ranks, or by other programs, cannot be known."
        }
        ReplayWarning::AllocationsInClock { .. } => "Please report this; the times hold work of the program.",
        ReplayWarning::Shared(_) => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::report::fixtures;

    #[test]
    fn every_warning_has_a_cause_and_a_next_step() {
        let shown: Vec<String> = fixtures::every_warning()
            .iter()
            .map(|w| {
                let (cause, next_step) = text(w);
                assert!(cause.ends_with('.') && next_step.ends_with('.'), "{cause} {next_step}");
                format!("{cause}\n  -> {next_step}\n")
            })
            .collect();
        insta::assert_snapshot!("warnings", shown.concat());
    }
}
