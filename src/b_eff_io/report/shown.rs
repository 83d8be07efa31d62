//! One partition of a run at a time: look-ups need not pass over the records and values of all others.

use std::collections::HashMap;

use crate::b_eff_io::records::{
    CorruptionRecord, PatternRecord, RepeatRecord, RunResult, TypeRecord, TypeRepeatRecord,
};
use crate::b_eff_io::values::ladder::{PatternRung, TypeRung, Verdict};
use crate::b_eff_io::values::{compare_backends, without_ladder, Derived, Ladder};
use crate::frame::records::Access;

use super::layout::{measuring, Spot};

/// One partition of a run, and nothing else of it.
pub(super) struct Shown {
    pub(super) result: RunResult,
    pub(super) derived: Derived,
    pub(super) backends: Vec<String>,
    pub(super) ranks: u64,
}

impl Shown {
    /// With backends against each other, where this was left out because few partitions are shown.
    pub(super) fn compared(mut self) -> Self {
        self.derived.ladder = compare_backends(&self.result);
        self
    }

    pub(super) fn spot<'s>(&self, backend: &'s str, access: Access) -> Spot<'s> {
        Spot { backend, ranks: self.ranks, access }
    }
}

type ByRanks<'r, T> = HashMap<u64, Vec<&'r T>>;

fn by_ranks<T>(all: &[T], ranks: impl Fn(&T) -> u64) -> ByRanks<'_, T> {
    let mut found = ByRanks::new();
    all.iter().for_each(|one| found.entry(ranks(one)).or_default().push(one));
    found
}

fn of<T: Clone>(all: &ByRanks<'_, T>, ranks: u64) -> Vec<T> {
    all.get(&ranks).map_or_else(Vec::new, |own| own.iter().copied().cloned().collect())
}

/// The records of a run by partition: a run of many partitions is passed over once, not once for each of them.
pub(super) struct Split<'r> {
    result: &'r RunResult,
    backends: Vec<String>,
    patterns: ByRanks<'r, PatternRecord>,
    types: ByRanks<'r, TypeRecord>,
    repeats: ByRanks<'r, RepeatRecord>,
    type_repeats: ByRanks<'r, TypeRepeatRecord>,
    corruptions: ByRanks<'r, CorruptionRecord>,
    rungs: ByRanks<'r, PatternRung>,
    type_rungs: ByRanks<'r, TypeRung>,
    verdicts: ByRanks<'r, Verdict>,
}

impl<'r> Split<'r> {
    /// As many backends as `most` are shown.
    pub(super) fn new(result: &'r RunResult, ladder: &'r Ladder, most: usize) -> Self {
        Self {
            result,
            backends: measuring(result).take(most).cloned().collect(),
            patterns: by_ranks(&result.patterns, |p| p.ranks),
            types: by_ranks(&result.types, |t| t.ranks),
            repeats: by_ranks(&result.repeats, |r| r.measured.ranks),
            type_repeats: by_ranks(&result.type_repeats, |r| r.measured.ranks),
            corruptions: by_ranks(&result.corruptions, |c| c.ranks),
            rungs: by_ranks(&ladder.patterns, |r| r.ranks),
            type_rungs: by_ranks(&ladder.types, |r| r.ranks),
            verdicts: by_ranks(&ladder.verdicts, |v| v.ranks),
        }
    }

    pub(super) fn one(&self, ranks: u64) -> Shown {
        let RunResult { config, manifest, harness, partitions, .. } = self.result;
        let partitions = partitions.iter().filter(|p| p.ranks == ranks).cloned().collect();
        let mut result = RunResult::new(config.clone(), manifest.clone(), *harness, partitions);
        result.patterns = of(&self.patterns, ranks);
        result.types = of(&self.types, ranks);
        result.repeats = of(&self.repeats, ranks);
        result.type_repeats = of(&self.type_repeats, ranks);
        result.corruptions = of(&self.corruptions, ranks);
        let ladder = Ladder {
            patterns: of(&self.rungs, ranks),
            types: of(&self.type_rungs, ranks),
            verdicts: of(&self.verdicts, ranks),
        };
        Shown { derived: Derived { ladder, ..without_ladder(&result) }, result, backends: self.backends.clone(), ranks }
    }
}
