//! Whether a value may be compared with that of another system.
//!
//! The papers and release 2.1 each have conditions of their own; ours come on top for all of them: what was measured
//! must be the definition, whole, through MPI-IO and with correct data. Other backends give values to compare with,
//! never a b_eff_io. More ranks than cores is a warning, no condition.

use super::totals::find;
use super::{PartitionValue, TypeValue, Validity};
use crate::b_eff_io::config::Release;
use crate::b_eff_io::plan::patterns::{m_part_defined_bytes, M_PART_DEVIATION};
use crate::b_eff_io::records::{Ended, PartitionRecord, PatternRecord, RunResult};
use crate::frame::records::Access;
use crate::frame::units::{format_seconds, format_size};
use crate::frame::values::{memory_of_hosts, Criterion, MPI_IO};

/// Names shown before "and n more".
const NAMES_SHOWN: usize = 5;

/// One judgement for each backend and release.
pub(super) fn validity(result: &RunResult, types: &[TypeValue], partitions: &[PartitionValue]) -> Vec<Validity> {
    let mut all = Vec::new();
    for backend in &result.config.backends {
        for release in [Release::R0_5, Release::R1, Release::R2_1] {
            let judge = Judge { result, types, partitions, backend, release };
            let criteria = judge.criteria();
            let valid = criteria.iter().all(|c| c.met);
            all.push(Validity { backend: backend.clone(), release, valid, criteria });
        }
    }
    all
}

struct Judge<'a> {
    result: &'a RunResult,
    types: &'a [TypeValue],
    partitions: &'a [PartitionValue],
    backend: &'a str,
    release: Release,
}

impl Judge<'_> {
    fn criteria(&self) -> Vec<Criterion> {
        let mut criteria = vec![self.time()];
        match self.release {
            Release::R0_5 => criteria.push(self.memory()),
            Release::R1 => {}
            Release::R2_1 => criteria.push(self.shared_pointer()),
        }
        criteria.extend([
            self.mpi_io(),
            Criterion::complete(self.result.ending.outcome, "interrupted"),
            Criterion::no("I/O errors", self.result.errors.len() as u64),
            self.data(),
            self.all_patterns(),
            self.not_ended_by_space(),
            self.m_part(),
        ]);
        criteria
    }

    fn own_patterns(&self) -> impl Iterator<Item = &PatternRecord> {
        self.result.patterns.iter().filter(|p| p.backend == self.backend)
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
        Criterion::new(text, seconds >= minimum_seconds)
    }

    /// The smallest partition counts: it must not fit into the caches either.
    fn memory(&self) -> Criterion {
        let own = self.partitions.iter().filter(|p| p.backend == self.backend);
        let written_bytes = own.map(|p| p.access_bytes[0]).min().unwrap_or(0);
        let memory_bytes = memory_of_hosts(&self.result.manifest.machine);
        let (written, memory) = (format_size(written_bytes), format_size(memory_bytes));
        let text = format!("bytes of the first write {written} >= memory of all hosts {memory}");
        Criterion::new(text, written_bytes >= memory_bytes)
    }

    fn shared_pointer(&self) -> Criterion {
        let config = &self.result.config;
        let used = config.shared_pointer && config.types.contains(&1) && self.backend == MPI_IO;
        Criterion::new("shared file pointers used for pattern type 1", used)
    }

    fn mpi_io(&self) -> Criterion {
        Criterion::new(format!("measured through MPI-IO (backend {})", self.backend), self.backend == MPI_IO)
    }

    fn data(&self) -> Criterion {
        let of_patterns: u64 = self.own_patterns().map(|p| p.verification.words_wrong).sum();
        let own_types = self.result.types.iter().filter(|t| t.backend == self.backend);
        let of_files: u64 = own_types.filter_map(|t| t.full_verification).map(|v| v.words_wrong).sum();
        let own_places = self.result.corruptions.iter().filter(|c| c.backend == self.backend);
        Criterion::right_data("data words", of_patterns + of_files, own_places.count())
    }

    /// All types with all access methods of the definition, in all partitions.
    fn all_patterns(&self) -> Criterion {
        let mut missing = Vec::new();
        for partition in &self.result.partitions {
            for access in Access::ALL {
                for t in 0..=4 {
                    let part_of_it = access != Access::Rewrite || self.release != Release::R2_1 || t == 0;
                    if part_of_it && find(self.types, self.backend, partition.ranks, access, t).is_none() {
                        missing.push(format!("{} of type {t} on {} ranks", access.name(), partition.ranks));
                    }
                }
            }
        }
        let met = missing.is_empty() && !self.result.partitions.is_empty();
        Criterion::new(format!("all patterns run (incomplete: {})", list(&missing)), met)
    }

    fn not_ended_by_space(&self) -> Criterion {
        let name = |p: &PatternRecord| format!("{} of pattern {} on {} ranks", p.access.name(), p.pattern, p.ranks);
        let early: Vec<String> = self.own_patterns().filter(|p| p.ended == Ended::Space).map(name).collect();
        Criterion::new(format!("no pattern ended by its share of the space ({})", list(&early)), early.is_empty())
    }

    /// Of the memory that was found: what was given instead of it is another definition.
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
        Criterion::new(text, worst.is_some_and(|p| off(&p) < M_PART_DEVIATION))
    }
}

/// "none", or how many and the first of them.
fn list(names: &[String]) -> String {
    match names.len() {
        0 => "none".into(),
        n if n <= NAMES_SHOWN => format!("{n}: {}", names.join(", ")),
        n => format!("{n}: {} and {} more", names[..NAMES_SHOWN].join(", "), n - NAMES_SHOWN),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::records::{RunResult, Verification};
    use crate::b_eff_io::values::derive;
    use crate::b_eff_io::values::fixture::{edit, full_run};
    use crate::frame::records::{ErrorRecord, Outcome};

    /// Releases for which `result` is valid, and the unmet criteria of release 2.1.
    fn judged(result: &RunResult) -> (Vec<Release>, Vec<String>) {
        let d = derive(result);
        let valid = d.validity.iter().filter(|v| v.valid).map(|v| v.release).collect();
        let of_2_1 = d.validity.into_iter().find(|v| v.release == Release::R2_1).unwrap();
        (valid, of_2_1.criteria.into_iter().filter(|c| !c.met).map(|c| c.text).collect())
    }

    #[test]
    fn a_run_by_the_book_is_valid_everywhere() {
        assert_eq!(judged(&full_run()), (vec![Release::R0_5, Release::R1, Release::R2_1], vec![]));
    }

    #[test]
    fn each_release_has_its_time() {
        for (seconds, valid) in
            [(1799.0, vec![Release::R0_5, Release::R1]), (899.0, vec![Release::R0_5]), (599.0, vec![])]
        {
            let mut result = full_run();
            result.partitions[0].time_seconds = seconds;
            assert_eq!(judged(&result).0, valid, "{seconds}");
        }
    }

    #[test]
    fn release_0_5_asks_for_more_data_than_memory() {
        let mut result = full_run();
        result.manifest.machine.hosts[0].memory_bytes = 1 << 50;
        assert_eq!(judged(&result).0, [Release::R1, Release::R2_1]);
        result.manifest.machine.hosts[0].cgroup_memory_limit_bytes = Some(1 << 30);
        assert_eq!(judged(&result).0.len(), 3);
    }

    #[test]
    fn release_2_1_asks_for_shared_pointers() {
        let mut result = full_run();
        result.config.shared_pointer = false;
        assert_eq!(judged(&result).0, [Release::R0_5, Release::R1]);
    }

    #[test]
    fn rewrites_of_all_types_are_asked_for_by_the_papers_only() {
        let mut result = full_run();
        result.config.full_rewrite = false;
        result.patterns.retain(|p| p.access != Access::Rewrite || p.pattern_type == 0);
        result.types.retain(|p| p.access != Access::Rewrite || p.pattern_type == 0);
        assert_eq!(judged(&result).0, [Release::R2_1]);
    }

    #[test]
    fn the_cap_of_m_part_belongs_to_release_2_1() {
        let mut result = full_run();
        result.manifest.machine.memory_per_rank_bytes = 1 << 40;
        for p in &mut result.partitions {
            (p.m_part_bytes, p.m_part_wanted_bytes) = (1 << 30, 1 << 30);
        }
        assert_eq!(judged(&result).0, [Release::R2_1]);
    }

    /// Records of before kept whole MiB; they are judged as any other.
    #[test]
    fn m_part_is_judged_by_its_ratio_to_the_definition() {
        for (memory_bytes, m_part_bytes, met, ratio) in [
            (12_638_255_104, 98_566_144, true, "0.998"),
            (300 << 20, 2 << 20, false, "0.853"),
            (300 << 20, 2400 << 10, true, "1.000"),
            (4 << 30, 2 << 20, false, "0.062"),
        ] {
            let mut result = full_run();
            result.manifest.machine.memory_per_rank_bytes = memory_bytes;
            result.partitions.iter_mut().for_each(|p| p.m_part_bytes = m_part_bytes);
            let criteria = derive(&result).validity.swap_remove(1).criteria;
            let own = criteria.iter().find(|c| c.text.starts_with("M_PART")).unwrap();
            assert_eq!(own.met, met, "{own:?}");
            assert!(own.text.contains(&format!("ratio {ratio}")), "{own:?}");
        }
    }

    #[test]
    fn memory_that_was_given_and_is_not_there_gives_no_m_part_of_the_definition() {
        let mut result = full_run();
        result.config.memory_per_process_bytes = Some(1 << 30);
        for p in &mut result.partitions {
            (p.m_part_bytes, p.m_part_wanted_bytes) = (8 << 20, 8 << 20);
        }
        assert_eq!(judged(&result).0, []);
    }

    type Damage = fn(&mut RunResult);

    #[test]
    fn our_own_conditions() {
        let damages: [(Damage, &str); 8] = [
            (|r| r.ending.outcome = Outcome::Interrupted, "run complete (interrupted)"),
            (|r| edit(r, 4, Access::Write, 10, |p| p.ended = Ended::Space), "(1: write of pattern 10 on 4 ranks)"),
            (
                |r| edit(r, 2, Access::Read, 20, |p| p.ended = Ended::NotRun("direct".into())),
                "all patterns run (incomplete: 1: read of type 2 on 2 ranks)",
            ),
            (|r| edit(r, 2, Access::Read, 20, |p| p.verification.words_wrong = 3), "wrong data words 3 == 0"),
            (
                |r| r.types[3].full_verification = Some(Verification { words_checked: 9, words_wrong: 2 }),
                "wrong data words 2 == 0",
            ),
            (|r| r.partitions[0].m_part_bytes = 2 << 20, "(used 2 MiB, memory / 128 is 32 MiB, ratio 0.062)"),
            (|r| r.errors.push(error()), "I/O errors 1 == 0"),
            (|r| r.patterns.clear(), "all patterns run (incomplete: 22: write of type 0 on 2 ranks"),
        ];
        for (damage, text) in damages {
            let mut result = full_run();
            damage(&mut result);
            let (valid, unmet) = judged(&result);
            assert_eq!(valid, [], "{text}");
            assert!(unmet.iter().any(|u| u.contains(text)), "{text}: {unmet:?}");
        }
    }

    #[test]
    fn other_backends_are_never_valid() {
        let mut result = full_run();
        result.config.backends = vec!["posix".into()];
        result.patterns.iter_mut().for_each(|p| p.backend = "posix".into());
        result.types.iter_mut().for_each(|t| t.backend = "posix".into());
        let (valid, unmet) = judged(&result);
        assert_eq!(valid, []);
        assert!(unmet.contains(&"measured through MPI-IO (backend posix)".to_owned()), "{unmet:?}");
    }

    fn error() -> ErrorRecord {
        ErrorRecord {
            during: "mpiio write pattern 3".into(),
            rank: 0,
            ranks_affected: 1,
            message: "pwrite".into(),
            next_step: "look at the disk".into(),
            no_space: false,
        }
    }
}
