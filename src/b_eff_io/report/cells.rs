//! Table cells: rates of patterns and types with their marks.

use crate::b_eff_io::config::CallOrder;
use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::records::{OrderedRecord, PatternRecord, RunResult, StopReason};
use crate::b_eff_io::values::{
    cache_share, few_calls, has_source, known_digits, rate, short_of_time, Derived, OrderValue,
};
use crate::frame::digits;
use crate::frame::report::marks::{letters, MarkedRate, QualityMark};
use crate::frame::report::table;
use crate::frame::report::text::fit_significant;
use crate::frame::values::interference::is_disturbed;
use crate::frame::values::CACHED_THRESHOLD;
use crate::frame::words::rate as short_rate;

use super::layout::RecordSelector;

const MAX_MARKS: usize = 2;

/// All digits and marks.
#[must_use]
pub(super) fn full_cell(cell: &MarkedRate) -> table::TableCell {
    table::TableCell::rate(cell.mb_per_second, cell.significant_digits, &cell.marks)
}

/// Formats a rate in five columns, with `k` for thousands if necessary.
#[must_use]
pub(super) fn narrow_rate(mb_per_second: f64, known_digits: Option<u32>) -> String {
    if mb_per_second >= 99_950.0 {
        format!("{}k", short_rate(mb_per_second / 1e3, known_digits))
    } else {
        short_rate(mb_per_second, known_digits)
    }
}

/// The digits and marks that fit on a screen.
#[must_use]
pub(super) fn narrow_cell(cell: &MarkedRate) -> table::TableCell {
    let stand_in = |mark: &QualityMark| matches!(mark, QualityMark::NotMeasured | QualityMark::NotRun);
    let (missing, mut marks): (Vec<QualityMark>, Vec<QualityMark>) = cell.marks.iter().copied().partition(stand_in);
    marks.sort();
    marks.truncate(MAX_MARKS);
    marks.extend(missing);
    table::TableCell::number(cell.mb_per_second.map(|value| narrow_rate(value, cell.significant_digits)), &marks)
}

#[must_use]
pub(super) fn inline_cell(cell: &MarkedRate) -> String {
    let shown = cell.mb_per_second.map(|value| fit_significant(value, cell.significant_digits.unwrap_or(u32::MAX), 9));
    format!("{} {}", shown.unwrap_or_default(), letters(&cell.marks)).trim().to_owned()
}

/// The cell of one pattern.
#[must_use]
pub fn pattern_cell(result: &RunResult, spot: RecordSelector<'_>, pattern: u8) -> MarkedRate {
    match spot.record(result, pattern) {
        None => MarkedRate { marks: vec![QualityMark::NotMeasured], ..MarkedRate::default() },
        Some(record) => MarkedRate {
            mb_per_second: rate(record),
            significant_digits: Some(known_digits(record)),
            marks: pattern_marks(result, record),
        },
    }
}

/// The cell of one pattern in another order.
#[must_use]
pub fn ordered_cell(result: &RunResult, value: &OrderValue) -> MarkedRate {
    let is_own = |o: &&OrderedRecord| {
        let p = &o.measurement;
        let own = (o.call_order(), p.access, p.pattern, p.ranks);
        own == (value.call_order(), value.access, value.pattern, value.ranks) && p.backend == value.backend
    };
    result.ordered.iter().find(is_own).map_or_else(MarkedRate::default, |o| MarkedRate {
        mb_per_second: value.mb_per_second,
        significant_digits: Some(known_digits(&o.measurement)),
        marks: ordered_marks(result, o),
    })
}

/// The marks of one record of the definition.
#[must_use]
pub fn pattern_marks(result: &RunResult, record: &PatternRecord) -> Vec<QualityMark> {
    marks(result, record, None)
}

/// The marks of one record beside it.
#[must_use]
pub fn ordered_marks(result: &RunResult, record: &OrderedRecord) -> Vec<QualityMark> {
    let mut marks = marks(result, &record.measurement, Some(record.call_order()));
    marks.extend(record.mixed_reads().and_then(|reads| source_mark(result, &[&reads])));
    marks
}

fn marks(result: &RunResult, record: &PatternRecord, order: Option<CallOrder>) -> Vec<QualityMark> {
    let mut marks = Vec::new();
    if is_wrong(result, record, order) {
        marks.push(QualityMark::Wrong);
    }
    match record.ended {
        StopReason::Error => marks.push(QualityMark::Error),
        StopReason::Interrupted => marks.push(QualityMark::Interrupted),
        StopReason::Limit => marks.push(QualityMark::Limit),
        StopReason::TimeGuard => marks.push(QualityMark::TimeGuard),
        StopReason::Space => marks.push(QualityMark::Space),
        StopReason::NotRun(_) => marks.push(QualityMark::NotRun),
        StopReason::Time | StopReason::Count => {}
    }
    if short_of_time(record) {
        marks.push(QualityMark::ShortTime);
    }
    if few_calls(record) {
        marks.push(QualityMark::FewCalls);
    }
    marks.extend(source_mark(result, &[record]));
    marks.extend(is_disturbed(&record.interference).then_some(QualityMark::Interference));
    if rate(record).is_none() && !marks.contains(&QualityMark::NotRun) {
        marks.push(QualityMark::NotMeasured);
    }
    marks
}

fn is_wrong(result: &RunResult, record: &PatternRecord, order: Option<CallOrder>) -> bool {
    record.verification.words_wrong > 0
        || result.corruptions.iter().any(|c| {
            c.call_order() == order
                && c.pattern == record.pattern
                && c.access == record.access
                && c.ranks == record.ranks
                && c.backend == record.backend
        })
}

/// Cell of the total of one type: bytes of all its patterns over the time from open to close.
#[must_use]
pub fn type_cell(
    result: &RunResult,
    derived: &Derived,
    spot: RecordSelector<'_>,
    pattern_type: PatternType,
) -> MarkedRate {
    let Some(value) = spot.type_value(derived, pattern_type) else {
        return MarkedRate { marks: vec![QualityMark::NotMeasured], ..MarkedRate::default() };
    };
    let records: Vec<&PatternRecord> = spot.records(result).filter(|r| r.pattern_type == pattern_type).collect();
    let mut types = spot.types(result).filter(|t| t.pattern_type == pattern_type);
    let full_check_failed = types.any(|t| t.full_verification.is_some_and(|v| v.words_wrong > 0));
    let mut marks = Vec::new();
    if full_check_failed || records.iter().any(|r| is_wrong(result, r, None)) {
        marks.push(QualityMark::Wrong);
    }
    for (ended, mark) in [(StopReason::TimeGuard, QualityMark::TimeGuard), (StopReason::Space, QualityMark::Space)] {
        if records.iter().any(|r| r.ended == ended) {
            marks.push(mark);
        }
    }
    if records.iter().any(|r| short_of_time(r)) {
        marks.push(QualityMark::ShortTime);
    }
    // The total is based on the calls of all its patterns.
    let calls = records.iter().map(|r| r.calls).fold(0, u64::saturating_add);
    if value.mb_per_second.is_some() && digits::is_few(calls, value.moved_bytes) {
        marks.push(QualityMark::FewCalls);
    }
    marks.extend(source_mark(result, &records));
    marks.extend(
        is_disturbed(records.iter().filter_map(|r| r.interference.as_ref())).then_some(QualityMark::Interference),
    );
    if value.mb_per_second.is_none() {
        marks.push(QualityMark::NotMeasured);
    } else if !value.complete {
        marks.push(QualityMark::Incomplete);
    }
    MarkedRate {
        mb_per_second: value.mb_per_second,
        significant_digits: Some(digits::significant_digits(calls, value.moved_bytes)),
        marks,
    }
}

/// Mark of a set of reads: cached if the known cached bytes exceed the limit; unknown if those with unknown source could.
fn source_mark(result: &RunResult, records: &[&PatternRecord]) -> Option<QualityMark> {
    let (mut read, mut cached, mut unknown) = (0.0, 0.0, 0.0);
    for record in records.iter().filter(|r| has_source(r)) {
        let bytes = record.moved_bytes as f64;
        read += bytes;
        match cache_share(result, record) {
            Some(share) => cached += share * bytes,
            None => unknown += bytes,
        }
    }
    if cached > CACHED_THRESHOLD * read {
        Some(QualityMark::Cache)
    } else {
        (cached + unknown > CACHED_THRESHOLD * read).then_some(QualityMark::CacheUnknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::config::ChunkOrder;
    use crate::b_eff_io::records::{MixRecord, ReadExpectation};
    use crate::b_eff_io::report::fixtures;
    use crate::frame::records::{AccessMethod, Evidence};

    #[test]
    fn a_read_is_a_cache_figure_above_a_tenth_and_what_is_not_known_is_no_storage_figure() {
        let result = fixtures::complete();
        let mut record = fixtures::pattern("posix", 2, AccessMethod::Read, 5);
        record.moved_bytes = 1000 << 20;
        record.evidence = Evidence::default();
        let cases: [(Option<u64>, &[QualityMark]); 5] = [
            (Some(0), &[QualityMark::Cache]),
            (Some(899), &[QualityMark::Cache]),
            (Some(901), &[]),
            (Some(4096), &[]),
            (None, &[QualityMark::CacheUnknown]),
        ];
        for (storage, expected) in cases {
            record.storage_read_bytes = storage.map(|mib| mib << 20);
            assert_eq!(pattern_marks(&result, &record), expected, "{storage:?}");
        }
        record.backend = crate::frame::values::NULL_BACKEND.to_owned();
        assert!(pattern_marks(&result, &record).is_empty(), "the null driver has no cache");
        record.access = AccessMethod::Write;
        record.backend = "posix".to_owned();
        assert!(pattern_marks(&result, &record).is_empty());
    }

    /// Also if the bytes of the writes hide it.
    #[test]
    fn cached_reads_of_a_mix_are_marked() {
        let result = fixtures::complete();
        let marks = |storage_read_bytes, mix| {
            let measurement = PatternRecord {
                calls: 100,
                moved_bytes: 2 * 100 * fixtures::pattern("posix", 2, AccessMethod::Rewrite, 5).call_bytes,
                storage_read_bytes,
                evidence: Evidence::default(),
                ..fixtures::pattern("posix", 2, AccessMethod::Rewrite, 5)
            };
            let bytes = measurement.call_bytes;
            (ordered_marks(&result, &OrderedRecord { order: ChunkOrder::Random, mix, measurement }), bytes)
        };
        let mix = MixRecord {
            read_percent: 70,
            read_calls: 70,
            reads_expect: ReadExpectation::GenerationBefore,
            written_generation: 3,
        };
        let has = |(found, _): (Vec<QualityMark>, u64), mark| found.contains(&mark);
        let (_, bytes) = marks(None, None);
        assert!(has(marks(Some(0), Some(mix)), QualityMark::Cache));
        assert!(has(marks(Some(2 * 60 * bytes), Some(mix)), QualityMark::Cache));
        assert!(has(marks(None, Some(mix)), QualityMark::CacheUnknown));
        let from_storage = marks(Some(2 * 70 * bytes), Some(mix));
        assert!(!has(from_storage.clone(), QualityMark::Cache) && !has(from_storage, QualityMark::CacheUnknown));
        assert!(!has(marks(Some(0), None), QualityMark::Cache), "rewrites have no source");
    }

    #[test]
    fn a_pattern_that_lost_time_is_marked_and_its_type_too() {
        let mut result = fixtures::complete();
        let record = result.patterns.iter_mut().find(|r| r.pattern == 5 && r.access == AccessMethod::Write).unwrap();
        record.budget_seconds = 0.89 * record.scheduled_seconds;
        let record = record.clone();
        assert_eq!(pattern_marks(&result, &record), [QualityMark::ShortTime]);
        let derived = crate::b_eff_io::values::derive(&result);
        assert_eq!(
            type_cell(&result, &derived, RecordSelector::of(&record), PatternType::Scatter).marks,
            [QualityMark::ShortTime]
        );
        assert_eq!(type_cell(&result, &derived, RecordSelector::of(&record), PatternType::Shared).marks, []);
    }

    #[test]
    fn few_calls_are_marked_and_have_no_further_digits() {
        let mut result = fixtures::complete();
        let cell = |result: &RunResult, pattern| {
            pattern_cell(result, RecordSelector { backend: "posix", ranks: 2, access: AccessMethod::Write }, pattern)
        };
        assert_eq!((cell(&result, 5).marks, cell(&result, 5).significant_digits), (vec![], Some(3)));
        for r in result.patterns.iter_mut().filter(|r| r.pattern == 5) {
            r.calls = 9;
        }
        assert_eq!(
            (cell(&result, 5).marks, cell(&result, 5).significant_digits),
            (vec![QualityMark::FewCalls], Some(2))
        );
        // A total is based on the calls of all its patterns.
        let of_type = |result: &RunResult| {
            let derived = crate::b_eff_io::values::derive(result);
            type_cell(
                result,
                &derived,
                RecordSelector { backend: "posix", ranks: 2, access: AccessMethod::Write },
                PatternType::Scatter,
            )
        };
        assert_eq!(of_type(&result).marks, []);
        result.patterns.iter_mut().for_each(|r| r.calls = 1);
        assert_eq!(
            (of_type(&result).marks, of_type(&result).significant_digits),
            (vec![QualityMark::FewCalls], Some(2))
        );
        let none = result.patterns.iter_mut().find(|r| r.pattern == 5 && r.backend == "posix").unwrap();
        (none.calls, none.moved_bytes) = (0, 0);
        assert_eq!(cell(&result, 5).marks, [QualityMark::NotMeasured], "there is no number to mark");
    }

    #[test]
    fn reads_together_are_marked_by_their_bytes() {
        let result = fixtures::complete();
        let read = |moved_bytes, storage_read_bytes| PatternRecord {
            moved_bytes,
            storage_read_bytes,
            evidence: Evidence::default(),
            ..fixtures::pattern("posix", 2, AccessMethod::Read, 5)
        };
        let mark = |records: &[PatternRecord]| source_mark(&result, &records.iter().collect::<Vec<_>>());
        assert_eq!(mark(&[]), None);
        assert_eq!(mark(&[read(1000, Some(1000)), read(10, Some(0))]), None);
        assert_eq!(mark(&[read(1000, Some(1000)), read(10, None)]), None, "negligible");
        assert_eq!(mark(&[read(1000, Some(1000)), read(500, Some(0))]), Some(QualityMark::Cache));
        assert_eq!(mark(&[read(1000, Some(1000)), read(500, None)]), Some(QualityMark::CacheUnknown));
        assert_eq!(mark(&[read(1000, Some(0)), read(500, None)]), Some(QualityMark::Cache));
    }

    #[test]
    fn rates_of_a_screen_fit_into_five_columns() {
        let shown = [0.0434, 12.345, 1234.5, 99_940.0, 123_456.0, 9_994_000.0].map(|v| narrow_rate(v, None));
        assert_eq!(shown, ["0.043", "12.3", "1234", "99940", "123k", "9994k"]);
        let marks = vec![QualityMark::Cache, QualityMark::Space, QualityMark::Interference];
        let cell = MarkedRate { mb_per_second: Some(12.345), significant_digits: Some(2), marks };
        assert_eq!(inline_cell(&cell), "12 csb");
        assert_eq!(inline_cell(&MarkedRate { marks: vec![QualityMark::NotRun], ..MarkedRate::default() }), "x");
    }
}
