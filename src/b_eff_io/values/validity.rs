//! Validity: whether a value is comparable with that of another system.
//!
//! A value is one of a release only if the run obeyed the schedule and the rules of that release; docs/results.md lists the rules. Further
//! criteria apply to all releases: the whole definition was measured, through MPI-IO and with correct data. Other backends give values for
//! comparison, never a b_eff_io. More ranks than cores is a warning, not a criterion.
//!
//! Rules of this program that no paper has are caveats: they are stated with the value and do not make it invalid. Time guard and deducted
//! time are among them because they shorten patterns of an access method that as a whole uses at least its time; a pattern ended by lack of
//! space does not, which violates the definition.

use std::collections::{HashMap, HashSet};

use super::deducted_time::short_of_time;
use super::verified_words::VerifiedWords;
use super::{PartitionValue, TypeValue, Validity};
use crate::b_eff_io::config::{BufferPolicy, Partitions, Release, RepeatPolicy, Verify};
use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::plan::partitions;
use crate::b_eff_io::plan::patterns::{m_part_defined_bytes, M_PART_DEVIATION};
use crate::b_eff_io::plan::schedule::is_rewritten;
use crate::b_eff_io::plan::schedule::{repeats_counts, TIME_SHARE};
use crate::b_eff_io::records::{PartitionRecord, PatternRecord, RunResult, StopReason};
use crate::frame::backends::is_variant;
use crate::frame::config::CachePolicy;
use crate::frame::records::{AccessMethod, JournaledResult, RunOutcome};
use crate::frame::units::{format_seconds, format_size, MIB};
use crate::frame::values::{memory_of_hosts, Criterion, MPI_IO};

/// Begin of the explanation of a run that was too short.
pub const TOO_SHORT: &str = "too short";

/// Number of names listed before "and n more".
const NAMES_SHOWN: usize = 5;

/// One judgement for each backend and release; none of variants, which are compared with their backends.
pub(super) fn validity(result: &RunResult, types: &[TypeValue], partitions: &[PartitionValue]) -> Vec<Validity> {
    let mut all = Vec::new();
    let whole = types.iter().filter(|v| v.complete);
    let whole: HashSet<_> = whole.map(|v| (v.backend.as_str(), v.ranks, v.access, v.pattern_type)).collect();
    for backend in result.config.backends.iter().filter(|name| !is_variant(name)) {
        let own: Vec<&PatternRecord> = result.patterns.iter().filter(|p| p.backend == *backend).collect();
        for release in [Release::R0_5, Release::R1, Release::R2_1] {
            let judge = ValidityCheck { result, own: &own, complete_types: &whole, partitions, backend, release };
            let criteria = judge.criteria();
            let valid = criteria.iter().all(|c| c.met);
            let caveats = judge.own_rules().iter().filter(|c| !c.met).map(|c| c.lack().to_owned()).collect();
            all.push(Validity { backend: backend.clone(), release, valid, criteria, caveats });
        }
    }
    all
}

struct ValidityCheck<'a> {
    result: &'a RunResult,
    /// The patterns of the backend.
    own: &'a [&'a PatternRecord],
    /// Backend, ranks, access method, type.
    complete_types: &'a HashSet<(&'a str, u64, AccessMethod, PatternType)>,
    partitions: &'a [PartitionValue],
    backend: &'a str,
    release: Release,
}

impl ValidityCheck<'_> {
    /// Criteria of the definition.
    fn criteria(&self) -> Vec<Criterion> {
        let mut criteria = vec![self.time(), self.schedule()];
        match self.release {
            Release::R0_5 => criteria.extend([self.memory(), self.unique_open()]),
            Release::R1 => criteria.push(self.unique_open()),
            Release::R2_1 => criteria.push(self.counts_repeated()),
        }
        criteria.extend([
            self.shared_pointer(),
            self.one_round(),
            self.segment_multiple(),
            self.own_data(),
            self.mpi_io(),
            self.complete(),
            Criterion::none_of("I/O errors", self.result.errors.len() as u64),
            self.data(),
            self.all_patterns(),
            self.not_ended_by_space(),
            self.m_part(),
        ]);
        criteria
    }

    /// Rules of this program; an unmet one is a caveat. The partitions of release 2.1 are its default, which its users may change.
    fn own_rules(&self) -> Vec<Criterion> {
        let mut rules = vec![self.time_debt(), self.no_time_guard(), self.untouched_files(), self.buffers()];
        rules.extend((self.release == Release::R2_1).then(|| self.partitions()));
        rules.extend(self.not_continued());
        rules
    }

    /// Repetitions follow everything that the definition requires: an interruption there does not matter.
    fn complete(&self) -> Criterion {
        let outcome = self.result.ending.outcome;
        let is_cut = matches!(outcome, RunOutcome::Interrupted | RunOutcome::Limit | RunOutcome::Killed);
        if is_cut && !self.result.repetitions.is_empty() && self.result.config.repeat != RepeatPolicy::Off {
            return Criterion::new("run complete (first measurement; repetitions interrupted)", true);
        }
        Criterion::complete(outcome.label("interrupted"), outcome == RunOutcome::Complete)
    }

    /// A unit in which a run was cut began twice on the same storage.
    fn not_continued(&self) -> Option<Criterion> {
        let unit = self.result.continuations.iter().find_map(|continuation| continuation.cut_in)?;
        let lack = format!("{}: cut in an earlier run and measured again", unit.name());
        Some(Criterion::new(format!("no unit cut and measured again ({})", unit.name()), false).with_lack(lack))
    }

    fn own_patterns(&self) -> impl Iterator<Item = &PatternRecord> {
        self.own.iter().copied()
    }

    fn time(&self) -> Criterion {
        let minimum_seconds = match self.release {
            Release::R0_5 => 600.0,
            Release::R1 => 900.0,
            Release::R2_1 => 1800.0,
        };
        let seconds = self.result.partitions.iter().map(|p| p.time_seconds).reduce(f64::min).unwrap_or(0.0);
        let minutes = minimum_seconds / 60.0;
        let text = format!("scheduled time of a partition {} >= {minutes:.0} min", format_seconds(seconds));
        let figures = if self.result.errors.is_empty() && !self.result.is_corrupt() {
            "; the individual figures stand"
        } else {
            ""
        };
        let seconds_text = short_seconds(seconds);
        let lack =
            format!("{TOO_SHORT} for a comparable value{figures} (T is {seconds_text}, {minutes:.0} min needed)");
        Criterion::new(text, seconds >= minimum_seconds).with_lack(lack)
    }

    /// The smallest partition counts: it must not fit into the caches, either.
    fn memory(&self) -> Criterion {
        let own = self.partitions.iter().filter(|p| p.backend == self.backend);
        let written_bytes = own.map(|p| p.access_bytes[0]).min().unwrap_or(0);
        let memory_bytes = memory_of_hosts(&self.result.manifest.machine);
        let (written, memory) = (format_size(written_bytes), format_size(memory_bytes));
        let text = format!("bytes of the first write {written} >= memory of all hosts {memory}");
        let lack = format!("too little written: {written}, the memory of the hosts ({memory}) needed");
        Criterion::new(text, written_bytes >= memory_bytes).with_lack(lack)
    }

    /// Releases 0.5 and 1 schedule the same time for the same patterns; 2.1 divides it among partitions and access methods.
    fn schedule(&self) -> Criterion {
        let own = self.result.config.release;
        let of = if repeats_counts(self.release) { "release 2.1" } else { "releases 0.5 and 1" };
        let text = format!("schedule of {of} (run by that of release {})", own.name());
        let lack = format!("run by the schedule of release {}", own.name());
        Criterion::new(text, repeats_counts(own) == repeats_counts(self.release)).with_lack(lack)
    }

    /// Prohibited by the paper, as it may delay every sync to the close. It was the default of the program of 2001.
    fn unique_open(&self) -> Criterion {
        Criterion::new("files opened without MPI_MODE_UNIQUE_OPEN", !self.result.config.unique_open)
            .with_lack("files opened with MPI_MODE_UNIQUE_OPEN")
    }

    fn partitions(&self) -> Criterion {
        let used: Vec<u64> = self.result.partitions.iter().map(|p| p.ranks).collect();
        let all = self.result.manifest.machine.ranks;
        let wanted = partitions::sizes(&Partitions::SmallMediumAll, all).unwrap_or_default();
        let shown = |sizes: &[u64]| sizes.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        let text = format!("partitions small, medium, all: {} ranks (used {})", shown(&wanted), shown(&used));
        let lack = format!("partitions of {} ranks, not the default {}", shown(&used), shown(&wanted));
        Criterion::new(text, used == wanted).with_lack(lack)
    }

    /// Rewrites and reads repeat the counts of the first write. Incomplete patterns violate another criterion.
    fn counts_repeated(&self) -> Criterion {
        let mut writes: HashMap<(u64, u8), u64> = HashMap::new();
        for w in self.own_patterns().filter(|w| w.access == AccessMethod::Write) {
            writes.entry((w.ranks, w.pattern)).or_insert(w.calls);
        }
        let first = |p: &PatternRecord| writes.get(&(p.ranks, p.pattern)).copied();
        let ended = |p: &PatternRecord| matches!(p.ended, StopReason::Time | StopReason::Count | StopReason::Space);
        let other = |p: &&PatternRecord| ended(p) && first(p).is_some_and(|calls| calls != p.calls);
        let lack = "counts differ from the first write";
        self.none_of("rewrites and reads repeat the counts of the first write", lack, |p| other(&p))
    }

    fn shared_pointer(&self) -> Criterion {
        let config = &self.result.config;
        Criterion::new("shared file pointer for pattern type 1", config.shared_pointer)
            .with_lack("type 1 without the shared file pointer")
    }

    /// Several rounds are several loops with a sync each.
    fn one_round(&self) -> Criterion {
        let rounds = self.result.config.rounds;
        Criterion::new(format!("one loop and one sync for each pattern (rounds {rounds})"), rounds == 1)
            .with_lack(format!("each pattern in {rounds} rounds, each with a sync"))
    }

    fn segment_multiple(&self) -> Criterion {
        let multiple = self.result.config.segment_multiple_bytes;
        Criterion::new(format!("segments are multiples of 1 MiB (of {})", format_size(multiple)), multiple == MIB)
            .with_lack(format!("segments in multiples of {}, 1 MiB needed", format_size(multiple)))
    }

    fn time_debt(&self) -> Criterion {
        let share = 100.0 * TIME_SHARE;
        let lack = format!("less than {share:.0} % of the time");
        self.none_of(&format!("patterns ended by time had at least {share:.0} % of it"), &lack, short_of_time)
    }

    fn no_time_guard(&self) -> Criterion {
        let lack = "cut by the time guard";
        self.none_of("no first write cut by the time guard", lack, |p| p.ended == StopReason::TimeGuard)
    }

    fn own_data(&self) -> Criterion {
        let is_shifted = self.result.config.cache == CachePolicy::RankShift;
        Criterion::new("ranks rewrite and read what they wrote", !is_shifted).with_lack("run with --cache rank-shift")
    }

    /// Options that access the files between the patterns: caches may hold other data after that.
    fn untouched_files(&self) -> Criterion {
        let config = &self.result.config;
        let used: Vec<String> =
            [(config.verify == Verify::Full, "--verify full"), (config.inject.is_some(), "--inject")]
                .iter()
                .filter(|(used, _)| *used)
                .map(|(_, name)| (*name).to_owned())
                .collect();
        Criterion::new(format!("files not accessed between the patterns ({})", list_names(&used)), used.is_empty())
            .with_lack(format!("files accessed between the patterns ({})", used.join(", ")))
    }

    /// Memory of a program, not of the CPU caches. The papers do not say which; the program of 2001 has one buffer.
    fn buffers(&self) -> Criterion {
        Criterion::new("each call uses cache-cold memory", self.result.config.buffers == BufferPolicy::Cold)
            .with_lack("reused buffers (--buffers reused)")
    }

    /// Criterion that no pattern satisfies `is`.
    fn none_of(&self, text: &str, lack: &str, is: impl Fn(&PatternRecord) -> bool) -> Criterion {
        let name = |p: &PatternRecord| format!("{} of pattern {} on {} ranks", p.access.name(), p.pattern, p.ranks);
        let found: Vec<String> = self.own_patterns().filter(|p| is(p)).map(name).collect();
        Criterion::new(format!("{text} ({})", list_names(&found)), found.is_empty())
            .with_lack(format!("{}: {lack}", first_name(&found)))
    }

    fn mpi_io(&self) -> Criterion {
        Criterion::new(format!("measured through MPI-IO (backend {})", self.backend), self.backend == MPI_IO)
            .with_lack("not through MPI-IO")
    }

    fn data(&self) -> Criterion {
        let own_places = self.result.corruptions.iter().filter(|c| c.backend == self.backend);
        Criterion::correct_data("data words", VerifiedWords::wrong_of(self.result, self.backend), own_places.count())
    }

    /// All types with all access methods of the definition, in all partitions.
    fn all_patterns(&self) -> Criterion {
        let mut missing = Vec::new();
        for partition in &self.result.partitions {
            for access in AccessMethod::ALL {
                for t in PatternType::ALL {
                    let part_of_it = access != AccessMethod::Rewrite || is_rewritten(self.release != Release::R2_1, t);
                    if part_of_it && !self.complete_types.contains(&(self.backend, partition.ranks, access, t)) {
                        missing.push(format!("{} of type {t} on {} ranks", access.name(), partition.ranks));
                    }
                }
            }
        }
        let met = missing.is_empty() && !self.result.partitions.is_empty();
        let lack = if missing.is_empty() {
            "nothing was measured".to_owned()
        } else {
            format!("incomplete: {}", first_name(&missing))
        };
        Criterion::new(format!("all patterns run (incomplete: {})", list_names(&missing)), met).with_lack(lack)
    }

    fn not_ended_by_space(&self) -> Criterion {
        let lack = "ended by its share of the space";
        self.none_of("no pattern ended by its share of the space", lack, |p| p.ended == StopReason::Space)
    }

    /// Based on the detected memory: a given size is another definition.
    fn m_part(&self) -> Criterion {
        let defined = m_part_defined_bytes(self.result.manifest.machine.memory_per_rank_bytes, self.release);
        let off = |p: &&PartitionRecord| (p.m_part_bytes as f64 / defined as f64 - 1.0).abs();
        let worst = self.result.partitions.iter().max_by(|a, b| off(a).total_cmp(&off(b)));
        let used = worst.map_or(0, |p| p.m_part_bytes);
        let text = format!(
            "M_PART within {:.0} % of the definition (used {}, memory / 128 is {}, ratio {:.3})",
            100.0 * M_PART_DEVIATION,
            format_size(used),
            format_size(defined),
            used as f64 / defined as f64
        );
        let lack = format!("largest chunk {}, {} needed (memory / 128)", format_size(used), format_size(defined));
        Criterion::new(text, worst.is_some_and(|p| off(&p) < M_PART_DEVIATION)).with_lack(lack)
    }
}

/// Returns "none", or the number and the first of them.
fn list_names(names: &[String]) -> String {
    match names.len() {
        0 => "none".into(),
        n if n <= NAMES_SHOWN => format!("{n}: {}", names.join(", ")),
        n => format!("{n}: {} and {} more", names[..NAMES_SHOWN].join(", "), n - NAMES_SHOWN),
    }
}

/// First of them and the number of others.
fn first_name(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [one, others @ ..] => format!("{one} and {} more", others.len()),
    }
}

/// `15 s`, `2.5 min`: without an insignificant `.0`.
fn short_seconds(seconds: f64) -> String {
    format_seconds(seconds).replace(".0 ", " ")
}

#[cfg(test)]
#[path = "validity_tests.rs"]
mod tests;
