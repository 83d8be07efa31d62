//! Warnings in a few words.

use crate::b_eff_io::records::IoWarning;
use crate::frame::report::text::{count, percent};
use crate::frame::report::warnings as frame_warnings;
use crate::frame::report::warnings::clause;
use crate::frame::report::Brief;
use crate::frame::units::{format_seconds, format_size};

/// A warning in a few words, with its place among others.
#[must_use]
pub fn brief(warning: &IoWarning) -> Brief {
    let (rank, about, text) = match warning {
        IoWarning::EndedBySpace { .. }
        | IoWarning::TimeGuard { .. }
        | IoWarning::ShortOfTime { .. }
        | IoWarning::FewCalls { .. }
        | IoWarning::Overrun { .. }
        | IoWarning::DecisionCost { .. }
        | IoWarning::RepeatsDiffer { .. } => return of_time(warning),
        IoWarning::MPartReduced { .. }
        | IoWarning::WarmMemory { .. }
        | IoWarning::SmallPages { .. }
        | IoWarning::RankShiftOnOneHost { .. } => return of_run(warning),
        IoWarning::NotRun { backend, patterns, reason } => {
            (10, backend, format!("{} not run: {}", count(*patterns, "pattern"), clause(reason)))
        }
        IoWarning::ReadFromCache { backend, asked_bytes, storage_bytes, .. } => {
            let memory = asked_bytes.saturating_sub(*storage_bytes) as f64 / (*asked_bytes).max(1) as f64;
            (
                20,
                backend,
                format!("{} of what was read came from memory, not from storage: --direct required", percent(memory)),
            )
        }
        IoWarning::CacheNotDropped { backend, patterns, .. } => {
            (33, backend, format!("pages stayed in the cache before {}", count(*patterns, "pattern")))
        }
        IoWarning::Buffered { backend, patterns, reason } => (
            34,
            backend,
            format!(
                "{} through the page cache although direct I/O was asked for: {}",
                count(*patterns, "pattern"),
                clause(reason)
            ),
        ),
        IoWarning::SmallerThanMemory { backend, written_bytes, memory_bytes } => (
            51,
            backend,
            format!(
                "wrote {}, the hosts have {} of memory: a cache of the file system can hold it",
                format_size(*written_bytes),
                format_size(*memory_bytes)
            ),
        ),
        IoWarning::NotSampled { backend, patterns, reason } => (
            62,
            backend,
            format!("no sample of the file compared after {}: {}", count(*patterns, "pattern"), clause(reason)),
        ),
        IoWarning::NotNarrow { backend, wanted_percent, reached_percent } => {
            let reached = reached_percent.map_or_else(|| "is not known".to_owned(), |p| format!("reaches {p:.1} %"));
            (38, backend, format!("the interval of b_eff_io {reached}, not within the {wanted_percent} % of --until"))
        }
        IoWarning::Shared(shared) => return frame_warnings::brief(shared),
    };
    Brief::new(rank, text).about(about)
}

/// Time and number of the calls of a backend.
fn of_time(warning: &IoWarning) -> Brief {
    let (rank, about, text) = match warning {
        IoWarning::TimeGuard { backend, patterns, .. } => {
            (30, backend, format!("{} cut for taking far too long (mark t)", count(*patterns, "first write")))
        }
        IoWarning::EndedBySpace { backend, patterns } => (
            31,
            backend,
            format!("{} ended early, their share of the space was used: --space", count(*patterns, "pattern")),
        ),
        IoWarning::FewCalls { backend, patterns, of, .. } => (
            32,
            backend,
            format!("{patterns} of {of} numbers rest on fewer than 10 calls or 1 MiB: take a longer --time"),
        ),
        IoWarning::ShortOfTime { backend, patterns, .. } => (
            50,
            backend,
            format!("{} had less than 90 % of their time: take a longer --time", count(*patterns, "pattern")),
        ),
        IoWarning::Overrun { backend, access, scheduled_seconds, real_seconds, .. } => (
            60,
            backend,
            format!(
                "{} took {} of {} scheduled",
                access.name(),
                format_seconds(*real_seconds),
                format_seconds(*scheduled_seconds)
            ),
        ),
        IoWarning::DecisionCost { backend, patterns, share, .. } => (
            61,
            backend,
            format!(
                "agreeing when to stop cost up to {} of the time of {}",
                percent(*share),
                count(*patterns, "pattern")
            ),
        ),
        IoWarning::RepeatsDiffer { backend, patterns, .. } => (
            39,
            backend,
            format!("{} measured again were each time another thing than the first time", count(*patterns, "pattern")),
        ),
        _ => return Brief::new(u8::MAX, ""),
    };
    Brief::new(rank, text).about(about)
}

/// What all backends have in common.
fn of_run(warning: &IoWarning) -> Brief {
    match warning {
        IoWarning::MPartReduced { wanted_bytes, used_bytes, .. } => {
            let text = format!(
                "largest chunk {} instead of {}, for want of space: --space",
                format_size(*used_bytes),
                format_size(*wanted_bytes)
            );
            Brief::new(35, text)
        }
        IoWarning::WarmMemory { from_memory, .. } => {
            let text = format!("transfer memory was warm: only {} of it came from memory", percent(*from_memory));
            Brief::new(37, text)
        }
        IoWarning::SmallPages { memory_bytes, huge_page_bytes, .. } => {
            let text = format!(
                "only {} of {} transfer memory in huge pages: large direct transfers may be slower",
                format_size(*huge_page_bytes),
                format_size(*memory_bytes)
            );
            Brief::new(43, text)
        }
        IoWarning::RankShiftOnOneHost { .. } => Brief::new(36, "rank-shift on one host: reads may come from memory"),
        _ => Brief::new(u8::MAX, ""),
    }
}
