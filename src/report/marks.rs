//! Marks beside a number: what the reader must know about it, one letter each, explained where they are used.

use std::collections::BTreeSet;

use crate::results::{Access, Ended, PatternRecord, RunResult};
use crate::stats::{cache_share, has_source, Derived, CACHE_SHARE};

use super::layout;

/// One mark. The order is that of the legend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// The data read back was wrong.
    Wrong,
    /// An error ended the pattern.
    Error,
    /// A signal ended the pattern.
    Interrupted,
    /// Cut by the time guard.
    TimeGuard,
    /// Ended by its share of the space.
    Space,
    /// Read from memory.
    Cache,
    /// Nobody knows whether it was read from memory.
    CacheUnknown,
    /// Not all patterns of the type ran to their end.
    Incomplete,
    /// Not reached.
    NotMeasured,
    /// Not run.
    NotRun,
}

impl Mark {
    /// The letter.
    #[must_use]
    pub fn letter(self) -> char {
        match self {
            Self::Wrong => '!',
            Self::Error => 'e',
            Self::Interrupted => 'i',
            Self::TimeGuard => 't',
            Self::Space => 's',
            Self::Cache => 'c',
            Self::CacheUnknown => '?',
            Self::Incomplete => '~',
            Self::NotMeasured => '-',
            Self::NotRun => 'x',
        }
    }

    /// What the letter means.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Wrong => "data wrong",
            Self::Error => "ended by an error",
            Self::Interrupted => "ended by a signal",
            Self::TimeGuard => "cut by the time guard",
            Self::Space => "ended by its space share",
            Self::Cache => "more than 10 % read from cache, not from storage",
            Self::CacheUnknown => "not known whether read from storage or from cache",
            Self::Incomplete => "not all patterns of the type",
            Self::NotMeasured => "not measured",
            Self::NotRun => "not run",
        }
    }
}

/// A number with its marks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// MB/s; None if there is nothing to show.
    pub mb_per_second: Option<f64>,
    /// Its marks.
    pub marks: Vec<Mark>,
}

impl Cell {
    /// The number (or the mark that stands in its place) in `width` columns, then a blank and the other marks in three.
    #[must_use]
    pub fn show(&self, width: usize, decimals: usize) -> String {
        match self.mb_per_second {
            Some(value) => format!("{value:>width$.decimals$} {:<3}", letters(&self.marks)),
            None => {
                let (stand_in, others): (Vec<Mark>, Vec<Mark>) =
                    self.marks.iter().partition(|m| matches!(m, Mark::NotMeasured | Mark::NotRun));
                let stand_in = stand_in.first().copied().unwrap_or(Mark::NotMeasured).letter();
                format!("{stand_in:>width$} {:<3}", letters(&others))
            }
        }
    }
}

/// The letters of marks, without blanks.
#[must_use]
pub fn letters(marks: &[Mark]) -> String {
    marks.iter().map(|m| m.letter()).collect()
}

/// The marks that were used, for the legend.
#[derive(Debug, Default)]
pub struct Legend {
    used: BTreeSet<Mark>,
}

impl Legend {
    /// Remembers the marks of a cell.
    pub fn note(&mut self, cell: &Cell) {
        self.used.extend(cell.marks.iter().copied());
    }

    /// Remembers marks.
    pub fn note_marks(&mut self, marks: &[Mark]) {
        self.used.extend(marks.iter().copied());
    }

    /// One line with the meaning of each mark used; None if there were none.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        let parts: Vec<String> = self.used.iter().map(|m| format!("{} {}", m.letter(), m.meaning())).collect();
        (!parts.is_empty()).then(|| parts.join(",  "))
    }
}

/// The cell of one pattern.
#[must_use]
pub fn pattern_cell(result: &RunResult, backend: &str, ranks: u64, access: Access, pattern: u8) -> Cell {
    match layout::record(result, backend, ranks, access, pattern) {
        None => Cell { mb_per_second: None, marks: vec![Mark::NotMeasured] },
        Some(record) => Cell { mb_per_second: layout::rate(record), marks: pattern_marks(result, record) },
    }
}

/// The marks of one record.
#[must_use]
pub fn pattern_marks(result: &RunResult, record: &PatternRecord) -> Vec<Mark> {
    let mut marks = Vec::new();
    if is_wrong(result, record) {
        marks.push(Mark::Wrong);
    }
    match record.ended {
        Ended::Error => marks.push(Mark::Error),
        Ended::Interrupted => marks.push(Mark::Interrupted),
        Ended::TimeGuard => marks.push(Mark::TimeGuard),
        Ended::Space => marks.push(Mark::Space),
        Ended::NotRun(_) => marks.push(Mark::NotRun),
        Ended::Time | Ended::Count => {}
    }
    marks.extend(source_mark(result, &[record]));
    if layout::rate(record).is_none() && !marks.contains(&Mark::NotRun) {
        marks.push(Mark::NotMeasured);
    }
    marks
}

fn is_wrong(result: &RunResult, record: &PatternRecord) -> bool {
    record.verification.words_wrong > 0
        || result.corruptions.iter().any(|c| {
            c.pattern == record.pattern
                && c.access == record.access
                && c.ranks == record.ranks
                && c.backend == record.backend
        })
}

/// The cell of the total of one type: bytes of all its patterns over the time from open to close.
#[must_use]
pub fn type_cell(
    result: &RunResult,
    derived: &Derived,
    backend: &str,
    ranks: u64,
    access: Access,
    pattern_type: u8,
) -> Cell {
    let Some(value) = layout::type_value(derived, backend, ranks, access, pattern_type) else {
        return Cell { mb_per_second: None, marks: vec![Mark::NotMeasured] };
    };
    let is_of = |b: &str, n: u64, a: Access, t: u8| b == backend && n == ranks && a == access && t == pattern_type;
    let records: Vec<&PatternRecord> =
        result.patterns.iter().filter(|r| is_of(&r.backend, r.ranks, r.access, r.pattern_type)).collect();
    let full_check_failed = result.types.iter().any(|t| {
        is_of(&t.backend, t.ranks, t.access, t.pattern_type) && t.full_verification.is_some_and(|v| v.words_wrong > 0)
    });
    let mut marks = Vec::new();
    if full_check_failed || records.iter().any(|r| is_wrong(result, r)) {
        marks.push(Mark::Wrong);
    }
    for (ended, mark) in [(Ended::TimeGuard, Mark::TimeGuard), (Ended::Space, Mark::Space)] {
        if records.iter().any(|r| r.ended == ended) {
            marks.push(mark);
        }
    }
    marks.extend(source_mark(result, &records));
    if value.mb_per_second.is_none() {
        marks.push(Mark::NotMeasured);
    } else if !value.complete {
        marks.push(Mark::Incomplete);
    }
    Cell { mb_per_second: value.mb_per_second, marks }
}

/// The mark of reads together: from a cache if what is known to come from there is enough for it; not known if what is
/// not known could be enough.
fn source_mark(result: &RunResult, records: &[&PatternRecord]) -> Option<Mark> {
    let (mut read, mut cached, mut unknown) = (0.0, 0.0, 0.0);
    for record in records.iter().filter(|r| has_source(r)) {
        let bytes = record.moved_bytes as f64;
        read += bytes;
        match cache_share(result, record) {
            Some(share) => cached += share * bytes,
            None => unknown += bytes,
        }
    }
    if cached > CACHE_SHARE * read {
        Some(Mark::Cache)
    } else {
        (cached + unknown > CACHE_SHARE * read).then_some(Mark::CacheUnknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixtures;
    use crate::results::Evidence;

    #[test]
    fn a_read_is_a_cache_figure_above_a_tenth_and_what_is_not_known_is_no_storage_figure() {
        let result = fixtures::complete();
        let mut record = fixtures::pattern("posix", 2, Access::Read, 5);
        record.moved_bytes = 1000;
        record.evidence = Evidence::default();
        let cases: [(Option<u64>, &[Mark]); 5] = [
            (Some(0), &[Mark::Cache]),
            (Some(899), &[Mark::Cache]),
            (Some(901), &[]),
            (Some(4096), &[]),
            (None, &[Mark::CacheUnknown]),
        ];
        for (storage, expected) in cases {
            record.storage_read_bytes = storage;
            assert_eq!(pattern_marks(&result, &record), expected, "{storage:?}");
        }
        record.backend = crate::stats::NULL_BACKEND.to_owned();
        assert!(pattern_marks(&result, &record).is_empty(), "the null driver has no cache");
        record.access = Access::Write;
        record.backend = "posix".to_owned();
        assert!(pattern_marks(&result, &record).is_empty());
    }

    #[test]
    fn reads_together_are_marked_by_their_bytes() {
        let result = fixtures::complete();
        let read = |moved_bytes, storage_read_bytes| PatternRecord {
            moved_bytes,
            storage_read_bytes,
            evidence: Evidence::default(),
            ..fixtures::pattern("posix", 2, Access::Read, 5)
        };
        let mark = |records: &[PatternRecord]| source_mark(&result, &records.iter().collect::<Vec<_>>());
        assert_eq!(mark(&[]), None);
        assert_eq!(mark(&[read(1000, Some(1000)), read(10, Some(0))]), None);
        assert_eq!(mark(&[read(1000, Some(1000)), read(10, None)]), None, "too little to matter");
        assert_eq!(mark(&[read(1000, Some(1000)), read(500, Some(0))]), Some(Mark::Cache));
        assert_eq!(mark(&[read(1000, Some(1000)), read(500, None)]), Some(Mark::CacheUnknown));
        assert_eq!(mark(&[read(1000, Some(0)), read(500, None)]), Some(Mark::Cache));
    }

    #[test]
    fn marks_stand_beside_numbers_and_in_their_place() {
        let cell = Cell { mb_per_second: Some(12.345), marks: vec![Mark::Space, Mark::Cache] };
        assert_eq!(cell.show(8, 1), "    12.3 sc ");
        let cell = Cell { mb_per_second: None, marks: vec![Mark::Error, Mark::NotMeasured] };
        assert_eq!(cell.show(8, 1), "       - e  ");
        let cell = Cell { mb_per_second: None, marks: vec![Mark::NotRun] };
        assert_eq!(cell.show(8, 1), "       x    ");
        let mut legend = Legend::default();
        assert_eq!(legend.text(), None);
        legend.note(&cell);
        assert_eq!(legend.text().as_deref(), Some("x not run"));
    }
}
