//! What was found, with figures.

use crate::b_eff_io::records::IoWarning;
use crate::frame::report::text::{count, figure, list, percent};
use crate::frame::report::warnings as frame_warnings;
use crate::frame::report::warnings::{clause, others};
use crate::frame::units::{format_seconds, format_size};

/// The cause of a warning.
pub(super) fn cause(warning: &IoWarning) -> String {
    match warning {
        IoWarning::ReadFromCache { .. }
        | IoWarning::SmallerThanMemory { .. }
        | IoWarning::CacheNotDropped { .. }
        | IoWarning::WarmMemory { .. }
        | IoWarning::SmallPages { .. }
        | IoWarning::RankShiftOnOneHost { .. } => of_memory(warning),
        IoWarning::EndedBySpace { .. }
        | IoWarning::TimeGuard { .. }
        | IoWarning::ShortOfTime { .. }
        | IoWarning::FewCalls { .. }
        | IoWarning::Overrun { .. }
        | IoWarning::DecisionCost { .. }
        | IoWarning::RepeatsDiffer { .. } => of_time(warning),
        IoWarning::MPartReduced { partitions, ranks, wanted_bytes, used_bytes } => format!(
            "Partition of {}{}: M_PART is {} instead of the {} of the definition, because the space does not allow more.",
            count(*ranks, "rank"),
            others(*partitions, "partition"),
            format_size(*used_bytes),
            format_size(*wanted_bytes)
        ),
        IoWarning::NotRun { backend, patterns, reason } => {
            format!("{backend}: {} left out: {}.", count(*patterns, "pattern run"), clause(reason))
        }
        IoWarning::NotSampled { backend, patterns, reason } => format!(
            "{backend}: no sample of the file was compared after {}: {}.",
            count(*patterns, "pattern run"),
            clause(reason)
        ),
        IoWarning::Buffered { backend, patterns, reason } => format!(
            "{backend}: {} went through the page cache although direct I/O was asked for, the first with {}.",
            count(*patterns, "pattern run"),
            clause(reason)
        ),
        IoWarning::NotNarrow { backend, wanted_percent, reached_percent } => match reached_percent {
            Some(reached) => format!(
                "{backend}: the interval of b_eff_io reaches {reached:.1} % from it, not {wanted_percent} % as asked by --until."
            ),
            None => format!(
                "{backend}: the interval of b_eff_io is not known, so it is not as narrow as the {wanted_percent} % of --until: no time \
                 was left to measure all access methods again."
            ),
        },
        IoWarning::Shared(shared) => frame_warnings::text(shared).0,
    }
}

/// Memory of the hosts and of the transfers.
fn of_memory(warning: &IoWarning) -> String {
    match warning {
        IoWarning::ReadFromCache { backend, partitions, asked_bytes, storage_bytes } => {
            read_from_cache(backend, *partitions, *asked_bytes, *storage_bytes)
        }
        IoWarning::SmallerThanMemory { backend, written_bytes, memory_bytes } => format!(
            "{backend}: the first write moved {}, the hosts have {} of memory: a file system cache can hold all of it.",
            format_size(*written_bytes),
            format_size(*memory_bytes)
        ),
        IoWarning::CacheNotDropped { backend, patterns, pattern, access, ranks, resident_bytes, of_bytes } => format!(
            "{backend}: pages stayed in the page cache although they were to be dropped before {}; the most, {} of {}, \
             before pattern {pattern}, {} on {}.",
            count(*patterns, "pattern run"),
            format_size(*resident_bytes),
            format_size(*of_bytes),
            access.name(),
            count(*ranks, "rank")
        ),
        IoWarning::WarmMemory { rank, from_memory, memory_bytes, cache_share_bytes } => format!(
            "Transfer memory was warm: rank {rank} walks through {}, and {} of its loads one lap later came from memory, the others \
             from a cache; a rank's share of the caches is {}.",
            format_size(*memory_bytes),
            percent(*from_memory),
            format_size(*cache_share_bytes)
        ),
        IoWarning::SmallPages { ranks, rank, memory_bytes, huge_page_bytes, reason } => format!(
            "Transfer memory of {} is in small pages: {} of {} in huge ones on rank {rank} ({}). Direct requests to a device are shorter \
             from it.",
            count(*ranks, "rank"),
            format_size(*huge_page_bytes),
            format_size(*memory_bytes),
            clause(reason)
        ),
        IoWarning::RankShiftOnOneHost { host, ranks } => format!(
            "{} on one host, {host}: rank-shift cannot avoid this host's page cache, reads may come from memory.",
            count(*ranks, "rank")
        ),
        _ => String::new(),
    }
}

/// Time and number of the calls.
fn of_time(warning: &IoWarning) -> String {
    match warning {
        IoWarning::EndedBySpace { backend, patterns } => format!(
            "{backend}: {} ended because the share of the space was used, before the scheduled time.",
            count(*patterns, "pattern run")
        ),
        IoWarning::TimeGuard { backend, patterns, pattern } => format!(
            "{backend}: {} of types 3 and 4 cut short far beyond the scheduled time (first: pattern {pattern}): the counts \
             that types 0 to 2 gave were not reached, the segments keep holes, and the rate is that of fewer calls.",
            count(*patterns, "first write")
        ),
        IoWarning::ShortOfTime { backend, patterns, pattern, access, ranks, scheduled_seconds, budget_seconds } => format!(
            "{backend}: {} had less than 90 % of the scheduled time, because earlier ones of the access method took more \
             than theirs; the least, {} of {}, pattern {pattern}, {} on {}.",
            count(*patterns, "pattern run"),
            format_seconds(*budget_seconds),
            format_seconds(*scheduled_seconds),
            access.name(),
            count(*ranks, "rank")
        ),
        IoWarning::FewCalls { backend, patterns, of, pattern, access, ranks, calls, moved_bytes } => format!(
            "{backend}: {patterns} of {} rest on fewer than 10 calls of a rank or on less than 1 MiB and say no more than an \
             order of magnitude; the fewest, {} and {}, in pattern {pattern}, {} on {}.",
            count(*of, "pattern run"),
            count(*calls, "call"),
            format_size(*moved_bytes),
            access.name(),
            count(*ranks, "rank")
        ),
        IoWarning::Overrun { .. } => overrun(warning),
        IoWarning::DecisionCost { backend, patterns, pattern, access, ranks, share } => format!(
            "{backend}: deciding to go on or stop cost more than 1 % of the time of {}; the most, {}, in pattern {pattern}, \
             {} on {}.",
            count(*patterns, "pattern run"),
            percent(*share),
            access.name(),
            count(*ranks, "rank")
        ),
        IoWarning::RepeatsDiffer {
            backend,
            patterns,
            of,
            pattern,
            access,
            ranks,
            first_mb_per_second,
            repeats_mb_per_second,
        } => format!(
            "{backend}: {patterns} of {} that were measured again were another thing the first time than all later times; the farthest, \
             {} and then {} MB/s, in pattern {pattern}, {} on {}.",
            count(*of, "pattern"),
            figure(*first_mb_per_second),
            figure(*repeats_mb_per_second),
            access.name(),
            count(*ranks, "rank")
        ),
        _ => String::new(),
    }
}

fn read_from_cache(backend: &str, partitions: u64, asked_bytes: u64, storage_bytes: u64) -> String {
    let memory = asked_bytes.saturating_sub(storage_bytes) as f64 / asked_bytes.max(1) as f64;
    let place = if partitions > 1 { format!(" in {}", count(partitions, "partition")) } else { String::new() };
    format!(
        "{backend}{place}: of {} read only {} came from storage; {} of the bytes came from memory.",
        format_size(asked_bytes),
        format_size(storage_bytes),
        percent(memory)
    )
}

/// The parts that are too small to matter are left out.
fn overrun(warning: &IoWarning) -> String {
    let IoWarning::Overrun {
        backend,
        methods,
        ranks,
        access,
        scheduled_seconds,
        real_seconds,
        sync_seconds,
        open_close_seconds,
        counted_seconds,
        loop_seconds,
    } = warning
    else {
        return String::new();
    };
    let beyond = real_seconds - scheduled_seconds;
    let parts = [
        (sync_seconds, "syncs"),
        (open_close_seconds, "opening and closing"),
        (counted_seconds, "patterns driven by counts"),
        (loop_seconds, "loops driven by time"),
    ];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(seconds, _)| **seconds > 0.01 * beyond)
        .map(|(seconds, what)| format!("{what} {}", format_seconds(**seconds)))
        .collect();
    let parts = list(&parts);
    format!(
        "{backend}, {} on {}{}: {} scheduled, {} used. Beyond the schedule: {parts}.",
        access.name(),
        count(*ranks, "rank"),
        others(*methods, "access method"),
        format_seconds(*scheduled_seconds),
        format_seconds(*real_seconds)
    )
}
