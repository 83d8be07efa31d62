//! Text of the warnings: the cause, with figures, and the next step.

mod brief;
mod cause;

pub use brief::brief;

use cause::cause;

use crate::b_eff_io::config::{Config, Termination};
use crate::b_eff_io::records::IoWarning;
use crate::frame::report::warnings as frame_warnings;

/// Cause and next step of a warning of a run with this configuration, each a few plain sentences.
#[must_use]
pub fn text(warning: &IoWarning, config: &Config) -> (String, String) {
    (cause(warning), next_step(warning, config.termination))
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
