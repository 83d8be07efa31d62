//! Views of single partitions of a run, so that look-ups do not search the records of all others.

use std::collections::HashMap;

use crate::b_eff_io::records::{
    CorruptionRecord, OrderedRecord, PatternRecord, RepetitionRecord, RunResult, TypeRecord, TypeRepetitionRecord,
};
use crate::b_eff_io::values::ladder::{BackendVerdict, PatternComparison, TypeComparison, VariantComparison};
use crate::b_eff_io::values::{compare_backends, without_ladder, Derived, Ladder};
use crate::frame::records::AccessMethod;

use super::layout::RecordSelector;

pub(super) struct PartitionView {
    pub(super) result: RunResult,
    pub(super) derived: Derived,
    pub(super) backends: Vec<String>,
    pub(super) ranks: u64,
}

impl PartitionView {
    /// Adds the comparison of backends, which is omitted if few partitions are shown.
    pub(super) fn with_ladder(mut self) -> Self {
        self.derived.ladder = compare_backends(&self.result);
        self
    }

    pub(super) fn selector<'s>(&self, backend: &'s str, access: AccessMethod) -> RecordSelector<'s> {
        RecordSelector { backend, ranks: self.ranks, access }
    }
}

type ByRanks<'r, T> = HashMap<u64, Vec<&'r T>>;

fn by_ranks<T>(all: &[T], ranks: impl Fn(&T) -> u64) -> ByRanks<'_, T> {
    let mut found = ByRanks::new();
    all.iter().for_each(|one| found.entry(ranks(one)).or_default().push(one));
    found
}

fn records_of<T: Clone>(all: &ByRanks<'_, T>, ranks: u64) -> Vec<T> {
    all.get(&ranks).map_or_else(Vec::new, |own| own.iter().copied().cloned().collect())
}

/// The records of a run by partition, built in one pass.
pub(super) struct PartitionIndex<'r> {
    result: &'r RunResult,
    backends: Vec<String>,
    patterns: ByRanks<'r, PatternRecord>,
    types: ByRanks<'r, TypeRecord>,
    repeats: ByRanks<'r, RepetitionRecord>,
    type_repeats: ByRanks<'r, TypeRepetitionRecord>,
    ordered: ByRanks<'r, OrderedRecord>,
    corruptions: ByRanks<'r, CorruptionRecord>,
    pattern_comparisons: ByRanks<'r, PatternComparison>,
    type_comparisons: ByRanks<'r, TypeComparison>,
    verdicts: ByRanks<'r, BackendVerdict>,
    variants: ByRanks<'r, VariantComparison>,
}

impl<'r> PartitionIndex<'r> {
    /// For reports of these backends.
    pub(super) fn new(result: &'r RunResult, ladder: &'r Ladder, backends: Vec<String>) -> Self {
        Self {
            result,
            backends,
            patterns: by_ranks(&result.patterns, |p| p.ranks),
            types: by_ranks(&result.types, |t| t.ranks),
            repeats: by_ranks(&result.repetitions, |r| r.measurement.ranks),
            type_repeats: by_ranks(&result.type_repetitions, |r| r.measurement.ranks),
            ordered: by_ranks(&result.ordered, |o| o.measurement.ranks),
            corruptions: by_ranks(&result.corruptions, |c| c.ranks),
            pattern_comparisons: by_ranks(&ladder.patterns, |r| r.ranks),
            type_comparisons: by_ranks(&ladder.types, |r| r.ranks),
            verdicts: by_ranks(&ladder.verdicts, |v| v.ranks),
            variants: by_ranks(&ladder.variants, |v| v.ranks),
        }
    }

    pub(super) fn partition(&self, ranks: u64) -> PartitionView {
        let RunResult { config, manifest, harness, partitions, .. } = self.result;
        let partitions = partitions.iter().filter(|p| p.ranks == ranks).cloned().collect();
        let mut result = RunResult::new(config.clone(), manifest.clone(), *harness, partitions);
        result.patterns = records_of(&self.patterns, ranks);
        result.types = records_of(&self.types, ranks);
        result.repetitions = records_of(&self.repeats, ranks);
        result.type_repetitions = records_of(&self.type_repeats, ranks);
        result.ordered = records_of(&self.ordered, ranks);
        result.corruptions = records_of(&self.corruptions, ranks);
        let ladder = Ladder {
            patterns: records_of(&self.pattern_comparisons, ranks),
            types: records_of(&self.type_comparisons, ranks),
            verdicts: records_of(&self.verdicts, ranks),
            variants: records_of(&self.variants, ranks),
        };
        PartitionView {
            derived: Derived { ladder, ..without_ladder(&result) },
            result,
            backends: self.backends.clone(),
            ranks,
        }
    }
}
