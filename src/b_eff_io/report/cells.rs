//! The cells of tables: rates of patterns and types with their marks.

use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::records::{Ended, PatternRecord, RunResult};
use crate::b_eff_io::values::{cache_share, few_calls, has_source, known_digits, rate, short_of_time, Derived};
use crate::frame::digits;
use crate::frame::report::marks::{letters, Cell, Mark};
use crate::frame::report::table;
use crate::frame::report::text::fit_known;
use crate::frame::values::machine_share::is_shared;
use crate::frame::values::CACHE_SHARE;
use crate::frame::words::rate as short_rate;

use super::layout::Spot;

/// Marks that a screen has room for.
const MARKS: usize = 2;

/// A cell with all that is known.
#[must_use]
pub(super) fn full(cell: &Cell) -> table::Cell {
    table::Cell::rate(cell.mb_per_second, cell.known_digits, &cell.marks)
}

/// A rate in five columns; `k` thousands where these are too few.
#[must_use]
pub(super) fn few_columns(mb_per_second: f64, known_digits: Option<u32>) -> String {
    if mb_per_second >= 99_950.0 {
        format!("{}k", short_rate(mb_per_second / 1e3, known_digits))
    } else {
        short_rate(mb_per_second, known_digits)
    }
}

/// A cell with no more digits and marks than a screen has room for.
#[must_use]
pub(super) fn short(cell: &Cell) -> table::Cell {
    let stand_in = |mark: &Mark| matches!(mark, Mark::NotMeasured | Mark::NotRun);
    let (missing, mut marks): (Vec<Mark>, Vec<Mark>) = cell.marks.iter().copied().partition(stand_in);
    marks.sort();
    marks.truncate(MARKS);
    marks.extend(missing);
    table::Cell::number(cell.mb_per_second.map(|value| few_columns(value, cell.known_digits)), &marks)
}

/// A cell in a sentence.
#[must_use]
pub(super) fn in_words(cell: &Cell) -> String {
    let shown = cell.mb_per_second.map(|value| fit_known(value, cell.known_digits.unwrap_or(u32::MAX), 9));
    format!("{} {}", shown.unwrap_or_default(), letters(&cell.marks)).trim().to_owned()
}

/// The cell of one pattern.
#[must_use]
pub fn pattern_cell(result: &RunResult, spot: Spot<'_>, pattern: u8) -> Cell {
    match spot.record(result, pattern) {
        None => Cell { marks: vec![Mark::NotMeasured], ..Cell::default() },
        Some(record) => Cell {
            mb_per_second: rate(record),
            known_digits: Some(known_digits(record)),
            marks: pattern_marks(result, record),
        },
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
    if short_of_time(record) {
        marks.push(Mark::ShortTime);
    }
    if few_calls(record) {
        marks.push(Mark::FewCalls);
    }
    marks.extend(source_mark(result, &[record]));
    marks.extend(is_shared(&record.machine).then_some(Mark::Shared));
    if rate(record).is_none() && !marks.contains(&Mark::NotRun) {
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
pub fn type_cell(result: &RunResult, derived: &Derived, spot: Spot<'_>, pattern_type: PatternType) -> Cell {
    let Some(value) = spot.type_value(derived, pattern_type) else {
        return Cell { marks: vec![Mark::NotMeasured], ..Cell::default() };
    };
    let records: Vec<&PatternRecord> = spot.records(result).filter(|r| r.pattern_type == pattern_type).collect();
    let mut types = spot.types(result).filter(|t| t.pattern_type == pattern_type);
    let full_check_failed = types.any(|t| t.full_verification.is_some_and(|v| v.words_wrong > 0));
    let mut marks = Vec::new();
    if full_check_failed || records.iter().any(|r| is_wrong(result, r)) {
        marks.push(Mark::Wrong);
    }
    for (ended, mark) in [(Ended::TimeGuard, Mark::TimeGuard), (Ended::Space, Mark::Space)] {
        if records.iter().any(|r| r.ended == ended) {
            marks.push(mark);
        }
    }
    if records.iter().any(|r| short_of_time(r)) {
        marks.push(Mark::ShortTime);
    }
    // The total rests on the calls of all its patterns together.
    let calls = records.iter().map(|r| r.calls).fold(0, u64::saturating_add);
    if value.mb_per_second.is_some() && digits::is_few(calls, value.moved_bytes) {
        marks.push(Mark::FewCalls);
    }
    marks.extend(source_mark(result, &records));
    marks.extend(is_shared(records.iter().filter_map(|r| r.machine.as_ref())).then_some(Mark::Shared));
    if value.mb_per_second.is_none() {
        marks.push(Mark::NotMeasured);
    } else if !value.complete {
        marks.push(Mark::Incomplete);
    }
    Cell {
        mb_per_second: value.mb_per_second,
        known_digits: Some(digits::known_digits(calls, value.moved_bytes)),
        marks,
    }
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
    use crate::b_eff_io::report::fixtures;
    use crate::frame::records::{Access, Evidence};

    #[test]
    fn a_read_is_a_cache_figure_above_a_tenth_and_what_is_not_known_is_no_storage_figure() {
        let result = fixtures::complete();
        let mut record = fixtures::pattern("posix", 2, Access::Read, 5);
        record.moved_bytes = 1000 << 20;
        record.evidence = Evidence::default();
        let cases: [(Option<u64>, &[Mark]); 5] = [
            (Some(0), &[Mark::Cache]),
            (Some(899), &[Mark::Cache]),
            (Some(901), &[]),
            (Some(4096), &[]),
            (None, &[Mark::CacheUnknown]),
        ];
        for (storage, expected) in cases {
            record.storage_read_bytes = storage.map(|mib| mib << 20);
            assert_eq!(pattern_marks(&result, &record), expected, "{storage:?}");
        }
        record.backend = crate::frame::values::NULL_BACKEND.to_owned();
        assert!(pattern_marks(&result, &record).is_empty(), "the null driver has no cache");
        record.access = Access::Write;
        record.backend = "posix".to_owned();
        assert!(pattern_marks(&result, &record).is_empty());
    }

    #[test]
    fn a_pattern_that_lost_time_is_marked_and_its_type_too() {
        let mut result = fixtures::complete();
        let record = result.patterns.iter_mut().find(|r| r.pattern == 5 && r.access == Access::Write).unwrap();
        record.budget_seconds = 0.89 * record.scheduled_seconds;
        let record = record.clone();
        assert_eq!(pattern_marks(&result, &record), [Mark::ShortTime]);
        let derived = crate::b_eff_io::values::derive(&result);
        assert_eq!(type_cell(&result, &derived, Spot::of(&record), PatternType::Scatter).marks, [Mark::ShortTime]);
        assert_eq!(type_cell(&result, &derived, Spot::of(&record), PatternType::Shared).marks, []);
    }

    #[test]
    fn few_calls_are_marked_and_have_no_further_digits() {
        let mut result = fixtures::complete();
        let cell = |result: &RunResult, pattern| {
            pattern_cell(result, Spot { backend: "posix", ranks: 2, access: Access::Write }, pattern)
        };
        assert_eq!((cell(&result, 5).marks, cell(&result, 5).known_digits), (vec![], Some(3)));
        for r in result.patterns.iter_mut().filter(|r| r.pattern == 5) {
            r.calls = 9;
        }
        assert_eq!((cell(&result, 5).marks, cell(&result, 5).known_digits), (vec![Mark::FewCalls], Some(2)));
        // A total rests on the calls of all its patterns.
        let of_type = |result: &RunResult| {
            let derived = crate::b_eff_io::values::derive(result);
            type_cell(
                result,
                &derived,
                Spot { backend: "posix", ranks: 2, access: Access::Write },
                PatternType::Scatter,
            )
        };
        assert_eq!(of_type(&result).marks, []);
        result.patterns.iter_mut().for_each(|r| r.calls = 1);
        assert_eq!((of_type(&result).marks, of_type(&result).known_digits), (vec![Mark::FewCalls], Some(2)));
        let none = result.patterns.iter_mut().find(|r| r.pattern == 5 && r.backend == "posix").unwrap();
        (none.calls, none.moved_bytes) = (0, 0);
        assert_eq!(cell(&result, 5).marks, [Mark::NotMeasured], "there is no number to mark");
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
    fn rates_of_a_screen_fit_into_five_columns() {
        let shown = [0.0434, 12.345, 1234.5, 99_940.0, 123_456.0, 9_994_000.0].map(|v| few_columns(v, None));
        assert_eq!(shown, ["0.043", "12.3", "1234", "99940", "123k", "9994k"]);
        let marks = vec![Mark::Cache, Mark::Space, Mark::Shared];
        let cell = Cell { mb_per_second: Some(12.345), known_digits: Some(2), marks };
        assert_eq!(in_words(&cell), "12 csb");
        assert_eq!(in_words(&Cell { marks: vec![Mark::NotRun], ..Cell::default() }), "x");
    }
}
