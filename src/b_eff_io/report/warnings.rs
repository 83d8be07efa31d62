//! Text of the warnings: the cause, with figures, and the next step.

use crate::b_eff_io::config::{Config, Termination};
use crate::b_eff_io::records::IoWarning;
use crate::frame::report::warnings as frame_warnings;
use crate::frame::report::warnings::{clause, others};
use crate::frame::report::Brief;
use crate::frame::units::{format_seconds, format_size};

use crate::frame::report::text::{count, figure, list, percent};

/// Cause and next step of a warning of a run with this configuration, each a few plain sentences.
#[must_use]
pub fn text(warning: &IoWarning, config: &Config) -> (String, String) {
    (cause(warning), next_step(warning, config.termination))
}

fn cause(warning: &IoWarning) -> String {
    match warning {
        IoWarning::ReadFromCache { backend, partitions, asked_bytes, storage_bytes } => {
            read_from_cache(backend, *partitions, *asked_bytes, *storage_bytes)
        }
        IoWarning::SmallerThanMemory { backend, written_bytes, memory_bytes } => format!(
            "{backend}: the first write moved {}, the hosts have {} of memory: a file system cache can hold all of it.",
            format_size(*written_bytes),
            format_size(*memory_bytes)
        ),
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
        IoWarning::MPartReduced { partitions, ranks, wanted_bytes, used_bytes } => format!(
            "Partition of {}{}: M_PART is {} instead of the {} of the definition, because the space does not allow more.",
            count(*ranks, "rank"),
            others(*partitions, "partition"),
            format_size(*used_bytes),
            format_size(*wanted_bytes)
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

/// A warning in a few words, with its place among others.
#[must_use]
pub fn brief(warning: &IoWarning) -> Brief {
    let (rank, about, text) = match warning {
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
        IoWarning::ShortOfTime { backend, patterns, .. } => (
            50,
            backend,
            format!("{} had less than 90 % of their time: take a longer --time", count(*patterns, "pattern")),
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
        IoWarning::NotSampled { backend, patterns, reason } => (
            62,
            backend,
            format!("no sample of the file compared after {}: {}", count(*patterns, "pattern"), clause(reason)),
        ),
        IoWarning::RepeatsDiffer { backend, patterns, .. } => (
            39,
            backend,
            format!("{} measured again were each time another thing than the first time", count(*patterns, "pattern")),
        ),
        IoWarning::NotNarrow { backend, wanted_percent, reached_percent } => {
            let reached = reached_percent.map_or_else(|| "is not known".to_owned(), |p| format!("reaches {p:.1} %"));
            (38, backend, format!("the interval of b_eff_io {reached}, not within the {wanted_percent} % of --until"))
        }
        IoWarning::MPartReduced { wanted_bytes, used_bytes, .. } => {
            let text = format!(
                "largest chunk {} instead of {}, for want of space: --space",
                format_size(*used_bytes),
                format_size(*wanted_bytes)
            );
            return Brief::new(35, text);
        }
        IoWarning::WarmMemory { from_memory, .. } => {
            let text = format!("transfer memory was warm: only {} of it came from memory", percent(*from_memory));
            return Brief::new(37, text);
        }
        IoWarning::SmallPages { memory_bytes, huge_page_bytes, .. } => {
            let text = format!(
                "only {} of {} transfer memory in huge pages: large direct transfers may be slower",
                format_size(*huge_page_bytes),
                format_size(*memory_bytes)
            );
            return Brief::new(43, text);
        }
        IoWarning::RankShiftOnOneHost { .. } => {
            return Brief::new(36, "rank-shift on one host: reads may come from memory");
        }
        IoWarning::Shared(shared) => return frame_warnings::brief(shared),
    };
    Brief::new(rank, text).about(about)
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

fn next_step(warning: &IoWarning, termination: Termination) -> String {
    let fixed = match warning {
        IoWarning::ReadFromCache { .. } => {
            "For storage figures use --direct required, or a longer --time, so that more is written than memory holds."
        }
        IoWarning::SmallerThanMemory { .. } => {
            "Raise --time or --space until a first write is larger than the memory, or use --direct required."
        }
        IoWarning::EndedBySpace { .. } => "Free space under --path, raise --space, or lower --time.",
        IoWarning::TimeGuard { .. } => {
            "Types 0 to 2 set the counts and were faster, perhaps into a cache: with a longer --time they show the storage \
             too."
        }
        IoWarning::ShortOfTime { .. } => {
            "Long calls, syncs and openings are a smaller part of a longer --time; the schedule of --release 2.1 takes nothing."
        }
        IoWarning::FewCalls { .. } => {
            "Use a longer --time. Compare these cells (mark n) only by their first digit."
        }
        IoWarning::MPartReduced { .. } => {
            "Free space under --path or raise --space; until then do not compare the M_PART rows with others."
        }
        IoWarning::Overrun { .. } => {
            "Ask for machine time by the real time; with a longer --time the overrun is a smaller part of it."
        }
        IoWarning::DecisionCost { .. } => match termination {
            Termination::Geometric => {
                "Batches are as long as the time allows: use a longer --time, fewer ranks than cores, or an idle machine."
            }
            Termination::PerCall => "Use --termination geometric: one decision for each batch of calls.",
        },
        IoWarning::NotRun { .. } => {
            "Values that need these patterns are missing; use another --backend or other settings for them."
        }
        IoWarning::NotSampled { .. } => {
            "Only what the last reads left in memory was compared. Use a --path whose files every rank can open by their names."
        }
        IoWarning::Buffered { .. } => {
            "Use --direct required to leave such patterns out, or --direct off to treat all patterns alike."
        }
        IoWarning::CacheNotDropped { .. } => {
            "Look at the marks of the reads. Close programs that map the files, run as root (vm.drop_caches), or use --direct \
             required."
        }
        IoWarning::WarmMemory { .. } => {
            "Memory of 1/16 of a rank's at most is used for this: give a larger --memory-per-process, or leave it out. Rates through the \
             page cache are too high meanwhile."
        }
        IoWarning::SmallPages { .. } => {
            "Let the kernel have huge pages: `madvise` in /sys/kernel/mm/transparent_hugepage/enabled, anything but `deny` in shmem_enabled, \
             Linux 6.1 or later for memory that ranks share, and free memory that is not in pieces. Compare with runs that had the same."
        }
        IoWarning::RankShiftOnOneHost { .. } => "Start ranks on two hosts or more, or use --cache drop.",
        IoWarning::RepeatsDiffer { .. } => {
            "A cache, or the state of the disk, has changed after the first pass: look at where the reads came from, and repeat the run."
        }
        IoWarning::NotNarrow { .. } => {
            "With a longer --time the first pass is longer too, and its value surer. Look at the patterns with wide intervals."
        }
        IoWarning::Shared(shared) => return frame_warnings::text(shared).1,
    };
    fixed.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::cli::IoArgs;
    use crate::b_eff_io::report::fixtures;
    use crate::frame::benchmark::has_option;

    fn with(termination: Termination) -> Config {
        Config { termination, ..fixtures::complete().config }
    }

    #[test]
    fn every_warning_has_a_cause_and_a_next_step() {
        let shown: Vec<String> = fixtures::every_warning()
            .iter()
            .map(|w| {
                let (cause, next_step) = text(w, &with(Termination::Geometric));
                assert!(cause.ends_with('.'), "{cause}");
                format!("{cause}\n  -> {next_step}\n")
            })
            .collect();
        insta::assert_snapshot!("warnings", shown.concat());
    }

    #[test]
    fn nobody_is_told_to_use_what_is_in_use() {
        for warning in fixtures::every_warning().iter().filter(|w| matches!(w, IoWarning::DecisionCost { .. })) {
            assert!(!text(warning, &with(Termination::Geometric)).1.contains("--termination"));
            assert!(text(warning, &with(Termination::PerCall)).1.contains("--termination geometric"));
        }
    }

    /// A report that names an option that does not exist sends its reader nowhere.
    #[test]
    fn every_option_in_a_report_exists() {
        let known = has_option::<IoArgs>;
        for (_, result, derived) in fixtures::all() {
            let mut page = crate::b_eff_io::report::table::table(&result, &derived, true);
            for termination in [Termination::Geometric, Termination::PerCall] {
                page.extend(fixtures::every_warning().iter().map(|w| text(w, &with(termination)).1 + "\n"));
            }
            let is_option = |c: char| c.is_ascii_lowercase() || c == '-';
            for word in
                page.split_whitespace().filter_map(|word| word.trim_start_matches(['`', '(']).strip_prefix("--"))
            {
                let name: String = word.chars().take_while(|&c| is_option(c)).collect();
                assert!(name.trim_matches('-').is_empty() || known(&name), "--{name}");
            }
        }
    }
}
