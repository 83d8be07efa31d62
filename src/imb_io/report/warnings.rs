//! Text of the warnings of IMB-IO: the cause, with figures, and the next step.

use beff_statistics::repeated::LEAST_TO_END;

use crate::frame::report::text::{count, nanoseconds, percent};
use crate::frame::report::warnings as frame_warnings;
use crate::frame::report::Brief;
use crate::frame::units::{format_seconds, format_size};
use crate::imb_io::values::{ImbWarning, CALIBRATION_ERROR, CLOCK_SHARE};

/// Cause and next step of a warning, each a few plain sentences.
#[must_use]
pub fn text(warning: &ImbWarning) -> (String, String) {
    match warning {
        ImbWarning::Shared(shared) => frame_warnings::text(shared),
        own => (cause(own), next_step(own).to_owned()),
    }
}

/// A warning in a few words, with its place among others.
#[must_use]
pub fn brief(warning: &ImbWarning) -> Brief {
    let (rank, about, text) = match warning {
        ImbWarning::Shared(shared) => return frame_warnings::brief(shared),
        ImbWarning::NotRun { backend, rows, reason } => {
            (10, Some(backend), format!("{} not run: {}", count(*rows, "row"), reason.trim_end_matches('.')))
        }
        ImbWarning::ReadFromCache { backend, rows, of, .. } => {
            (20, Some(backend), format!("{rows} of {of} reads came from memory, not from storage (mark c)"))
        }
        ImbWarning::SourceUnknown { backend, rows } => {
            (21, Some(backend), format!("not known where {} read from (mark ?)", count(*rows, "row")))
        }
        ImbWarning::NotVerified { rows, .. } => {
            (30, None, format!("{} not compared byte by byte", count(*rows, "row")))
        }
        ImbWarning::AllocationsInClock { rows, .. } => (
            31,
            None,
            format!("a defect of this program: memory was allocated inside the clock of {}", count(*rows, "row")),
        ),
        ImbWarning::LoadNotCalibrated { calibration_error } => {
            (50, None, format!("the CPU load beside non-blocking calls was off by {}", percent(*calibration_error)))
        }
        ImbWarning::ClockCost { rows, of, .. } => {
            (51, None, format!("reading the clock is a part of the time of {rows} of {of} rows"))
        }
        ImbWarning::NotNarrow { rows, of, until_share, .. } => {
            (52, None, format!("{rows} of {of} rows are not known within {}", percent(*until_share)))
        }
        ImbWarning::Overrun { limit_seconds, real_seconds, .. } => (
            60,
            None,
            format!("took {}, {} were allowed", format_seconds(*real_seconds), format_seconds(*limit_seconds)),
        ),
    };
    let brief = Brief::new(rank, text);
    about.map(|backend| brief.clone().about(backend)).unwrap_or(brief)
}

fn cause(warning: &ImbWarning) -> String {
    match warning {
        ImbWarning::AllocationsInClock { allocations, rows, benchmark } => format!(
            "DEFECT: {} inside the clock in {}, first in {benchmark}.",
            count(*allocations, "memory allocation"),
            count(*rows, "row")
        ),
        ImbWarning::NotVerified { rows, benchmark } => {
            format!("Of {} not every byte was compared, first of {benchmark}.", count(*rows, "complete row"))
        }
        ImbWarning::NotRun { backend, rows, reason } => {
            format!("{backend}: {} not run: {}.", count(*rows, "row"), reason.trim_end_matches('.'))
        }
        ImbWarning::ReadFromCache { backend, rows, of, asked_bytes, storage_bytes } => format!(
            "{backend}: of {} of reads {rows} {}: of {} read there only {} came from storage.",
            count(*of, "row"),
            if *rows == 1 { "is a cache figure" } else { "are cache figures" },
            format_size(*asked_bytes),
            format_size(*storage_bytes)
        ),
        ImbWarning::SourceUnknown { backend, rows } => {
            format!(
                "{backend}: nobody knows whether what {} read came from storage or from a cache.",
                count(*rows, "row")
            )
        }
        ImbWarning::LoadNotCalibrated { calibration_error } => format!(
            "The CPU load took up to {} more or less than asked for, which is more than {}: the overlap is doubtful.",
            percent(*calibration_error),
            percent(CALIBRATION_ERROR)
        ),
        ImbWarning::ClockCost { rows, of, benchmark, sample_bytes, seconds, lap_ns } => {
            let size = sample_bytes.map_or_else(String::new, |bytes| format!(" with {}", format_size(bytes)));
            format!(
                "In {rows} of {} keeping the end of a repetition, {}, is more than {} of t_max; the shortest is {benchmark}{size}, {}.",
                count(*of, "row"),
                nanoseconds(*lap_ns),
                percent(CLOCK_SHARE),
                format_seconds(*seconds)
            )
        }
        ImbWarning::NotNarrow { rows, of, until_share, benchmark, sample_bytes, measured, reach_share } => {
            let size = sample_bytes.map_or_else(String::new, |bytes| format!(" with {}", format_size(bytes)));
            let reached = match reach_share {
                Some(share) if *measured >= LEAST_TO_END as u64 => format!("reaches {} from its mean", percent(*share)),
                _ => format!("was measured {}, {LEAST_TO_END} are needed", count(*measured, "time")),
            };
            format!(
                "{rows} of {} {} not known within {} (--until); {benchmark}{size} {reached}.",
                count(*of, "row"),
                if *rows == 1 { "is" } else { "are" },
                percent(*until_share)
            )
        }
        ImbWarning::Overrun { limit_seconds, expected_seconds, real_seconds } => {
            let [limit, expected] = [limit_seconds, expected_seconds].map(|seconds| format_seconds(*seconds));
            let at_most = if limit == expected { String::new() } else { format!(" and {limit} at most") };
            format!("The rows took {}; {expected} were announced{at_most}.", format_seconds(*real_seconds))
        }
        ImbWarning::Shared(shared) => frame_warnings::text(shared).0,
    }
}

fn next_step(warning: &ImbWarning) -> &'static str {
    match warning {
        ImbWarning::AllocationsInClock { .. } => "Please report this; the times of these rows hold work of the program.",
        ImbWarning::NotVerified { .. } => "Please report this, with the file of --out: every byte of a complete row should have been.",
        ImbWarning::NotRun { .. } => "Choose a backend that can do it, or leave these benchmarks out.",
        ImbWarning::ReadFromCache { .. } => {
            "Take the rows marked c as speed of memory. Larger sizes and more repetitions, or direct I/O where the backend \
             can choose, read from storage."
        }
        ImbWarning::SourceUnknown { .. } => {
            "Take the rows marked ? as an upper limit of what the storage can do; one group alone tells more than several."
        }
        ImbWarning::LoadNotCalibrated { .. } => "Repeat on an idle machine with each rank bound to a core of its own.",
        ImbWarning::ClockCost { .. } => {
            "Take these times as upper limits; compare by larger sizes. The processor may have no cycle counter that \
             never stops, or the kernel a slow clock source (available_clocksource)."
        }
        ImbWarning::NotNarrow { .. } => {
            "Give each row more time (--time) or more repeats (--repeat), or be content with a wider --until."
        }
        ImbWarning::Overrun { .. } => {
            "The trial of a row may be faster than its repetitions: one sync behind all of them has more to write, and memory \
             is used for the first time. Or the storage became slower, or others use it: repeat on an idle machine."
        }
        ImbWarning::Shared(_) => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imb_io::report::fixtures;

    #[test]
    fn every_warning_has_a_cause_and_a_next_step() {
        let shown: Vec<String> = fixtures::every_warning()
            .iter()
            .map(|w| {
                let (cause, next_step) = text(w);
                let is_ours = !matches!(w, ImbWarning::Shared(_));
                assert!(cause.ends_with('.') && !next_step.is_empty(), "{cause}");
                assert!(!is_ours || next_step.ends_with('.'), "{next_step}");
                format!("{cause}\n  -> {next_step}\n")
            })
            .collect();
        insta::assert_snapshot!("warnings", shown.concat());
    }
}
