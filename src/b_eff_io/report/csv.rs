//! PREFIX.csv: one row for each pattern, access method, partition and backend; then those in other orders, with a name in the column `order`, and a ratio in `mix` if they mix reads and writes.

use std::collections::HashMap;

use beff_statistics::bootstrap::Ratio;

use crate::b_eff_io::records::{OrderedRecord, PatternRecord, RunResult, StopReason};
use crate::b_eff_io::values::ladder::PatternComparison;
use crate::b_eff_io::values::{
    cache_share, deducted_seconds, known_digits, rate, CacheYardstick, Derived, OrderValue, PatternInterval, SlowRank,
    TypeValue, ValueInterval,
};
use crate::frame::records::{AccessMethod, DeviceTraffic, InterferenceRecord, LatencyRecord};
use crate::frame::report::csv::{csv_table, Column, CsvCell, RunColumns};
use crate::frame::report::marks::{letters, QualityMark};

use super::cells::{ordered_marks, pattern_marks};
use super::coffee_cup;
use super::layout;
use super::layout::RecordSelector;
use super::values::value;

struct PatternCsvRow<'a> {
    result: &'a RunResult,
    record: &'a PatternRecord,
    comparison: Option<&'a PatternComparison>,
    device: Option<DeviceTraffic>,
    interval: Option<&'a PatternInterval>,
    /// Value of its type, and MB/s of b_eff_io by the definition of the run, with their intervals.
    type_value: (Option<&'a TypeValue>, Option<&'a ValueInterval>),
    release_value: (Option<f64>, Option<&'a ValueInterval>),
    yardstick: Option<&'a CacheYardstick>,
    /// Of a measurement in another order, which has no other values.
    order: Option<&'a OrderValue>,
    ordered: Option<&'a OrderedRecord>,
    /// Its slowest rank, if that stands out.
    slow_rank: Option<&'a SlowRank>,
    /// Time to transfer all memory of the partition with its access method.
    all_memory_seconds: Option<f64>,
}

impl PatternCsvRow<'_> {
    fn marks(&self) -> Vec<QualityMark> {
        self.ordered.map_or_else(|| pattern_marks(self.result, self.record), |o| ordered_marks(self.result, o))
    }

    fn best(&self) -> Option<&str> {
        match self.order {
            None => self.comparison.and_then(|rung| rung.best.as_deref()),
            Some(order) => order.best.as_deref(),
        }
    }

    /// Interval of the rate: of repetitions, or in another order of the rounds.
    fn interval_end(
        &self,
        of_order: fn(&OrderValue) -> Option<f64>,
        again: fn(&PatternInterval) -> Option<f64>,
    ) -> CsvCell<'_> {
        self.order.map_or_else(|| self.interval.and_then(again), of_order).into()
    }

    fn ratio(&self) -> Option<Ratio> {
        self.order.map_or_else(|| self.comparison.and_then(|rung| rung.ratio), |order| order.ratio)
    }

    fn device(&self, number: fn(&DeviceTraffic) -> u64) -> CsvCell<'_> {
        self.device.as_ref().map(number).into()
    }

    fn machine(&self, number: fn(&InterferenceRecord) -> f64) -> CsvCell<'_> {
        self.record.interference.as_ref().map(number).into()
    }

    fn latency(&self, number: fn(&LatencyRecord) -> u64) -> CsvCell<'_> {
        self.record.latency.as_ref().map(number).into()
    }
}

fn columns<'r>() -> Vec<Column<PatternCsvRow<'r>>> {
    measurement_columns().into_iter().chain(evidence_columns()).chain(context_columns()).collect()
}

fn measurement_columns<'r>() -> [Column<PatternCsvRow<'r>>; 30] {
    [
        ("backend", |r| (&r.record.backend).into()),
        ("ranks", |r| r.record.ranks.into()),
        ("access", |r| r.record.access.name().into()),
        ("pattern_type", |r| r.record.pattern_type.number().into()),
        ("type_name", |r| r.record.pattern_type.name().into()),
        ("pattern", |r| r.record.pattern.into()),
        ("chunk_bytes", |r| r.record.chunk_bytes.into()),
        ("call_bytes", |r| r.record.call_bytes.into()),
        ("time_units", |r| r.record.time_units.into()),
        ("calls", |r| r.record.calls.into()),
        ("moved_bytes", |r| r.record.moved_bytes.into()),
        ("scheduled_seconds", |r| r.record.scheduled_seconds.into()),
        ("budget_seconds", |r| r.record.budget_seconds.into()),
        ("seconds", |r| r.record.seconds().into()),
        ("view_seconds", |r| r.record.intervals.view_seconds.into()),
        ("preallocate_seconds", |r| r.record.intervals.preallocate_seconds.into()),
        ("transfer_seconds", |r| r.record.intervals.transfer_seconds.into()),
        ("decide_seconds", |r| r.record.intervals.decide_seconds.into()),
        ("decision_cost_seconds", |r| r.record.decision_cost_seconds.into()),
        ("imbalance_seconds", |r| r.record.imbalance_seconds.into()),
        ("sync_seconds", |r| r.record.intervals.sync_seconds.into()),
        ("mb_per_second", |r| rate(r.record).into()),
        ("rounds", |r| (r.record.rounds.len() as u64).into()),
        ("best_backend", |r| r.best().into()),
        ("ratio_to_best", |r| r.ratio().map(|ratio| ratio.value).into()),
        ("ratio_low", |r| r.ratio().and_then(|ratio| ratio.interval).map(|i| i.low).into()),
        ("ratio_high", |r| r.ratio().and_then(|ratio| ratio.interval).map(|i| i.high).into()),
        ("equal_to_best", |r| r.ratio().and_then(|ratio| ratio.equal).into()),
        ("ended", |r| stop_reason_name(&r.record.ended).into()),
        ("not_run_reason", |r| match &r.record.ended {
            StopReason::NotRun(reason) => reason.into(),
            _ => "".into(),
        }),
    ]
}

fn evidence_columns<'r>() -> [Column<PatternCsvRow<'r>>; 23] {
    [
        ("words_checked", |r| r.record.verification.words_checked.into()),
        ("words_wrong", |r| r.record.verification.words_wrong.into()),
        ("strategy", |r| (&r.record.strategy).into()),
        ("direct", |r| r.record.direct.into()),
        ("storage_read_bytes", |r| r.record.storage_read_bytes.into()),
        ("storage_written_bytes", |r| r.record.storage_written_bytes.into()),
        ("device", |r| r.device.as_ref().map_or("", |d| &d.device).into()),
        ("device_read_bytes", |r| r.device(|d| d.read_bytes)),
        ("device_written_bytes", |r| r.device(|d| d.written_bytes)),
        ("device_read_requests", |r| r.device(|d| d.read_requests)),
        ("device_write_requests", |r| r.device(|d| d.write_requests)),
        ("resident_before_bytes", |r| r.record.evidence.resident_before_bytes.into()),
        ("resident_after_bytes", |r| r.record.evidence.resident_after_bytes.into()),
        ("range_bytes", |r| r.record.evidence.range_bytes.into()),
        ("latency_of", |r| r.record.latency.as_ref().map_or("", |l| &l.of).into()),
        ("latency_count", |r| r.latency(|l| l.count)),
        ("latency_p50_ns", |r| r.latency(|l| l.p50_ns)),
        ("latency_p99_ns", |r| r.latency(|l| l.p99_ns)),
        ("latency_p999_ns", |r| r.latency(|l| l.p999_ns)),
        ("latency_max_ns", |r| r.latency(|l| l.max_ns)),
        ("allocations_in_clock", |r| r.record.allocations_in_clock.into()),
        ("marks", |r| letters(&r.marks()).into()),
        ("cache_share", |r| cache_share(r.result, r.record).into()),
    ]
}

/// Interference; repetitions; the values that contain the pattern.
fn context_columns<'r>() -> [Column<PatternCsvRow<'r>>; 39] {
    [
        ("machine_cpu_seconds", |r| r.machine(|m| m.cpu_seconds)),
        ("steal_seconds", |r| r.machine(|m| m.steal_seconds)),
        ("other_process_seconds", |r| r.machine(|m| m.other_process_seconds)),
        ("run_queue_wait_seconds", |r| r.record.interference.as_ref().and_then(|m| m.run_queue_wait_seconds).into()),
        ("involuntary_switches", |r| r.record.interference.as_ref().map(|m| m.involuntary_switches).into()),
        ("deducted_seconds", |r| deducted_seconds(r.record).into()),
        ("significant_digits", |r| known_digits(r.record).into()),
        ("sample_bytes", |r| r.record.sample.as_ref().map(|s| s.bytes).into()),
        ("sample_of_bytes", |r| r.record.sample.as_ref().map(|s| s.of_bytes).into()),
        ("sample_past_cache_bytes", |r| r.record.sample.as_ref().map(|s| s.past_cache_bytes).into()),
        ("call_read_bytes", |r| r.record.call_read_bytes.into()),
        ("call_written_bytes", |r| r.record.call_written_bytes.into()),
        ("submissions_registered", |r| r.record.submissions.map(|s| s.registered).into()),
        ("submissions_plain", |r| r.record.submissions.map(|s| s.plain).into()),
        ("uring_workers", |r| r.record.submissions.map(|s| s.workers).into()),
        ("buffers", |r| CsvCell::word(r.result.config.buffers)),
        ("uring_worker_cpu_seconds", |r| r.record.submissions.map(|s| s.worker_cpu_seconds).into()),
        ("measurements", |r| r.interval.map_or(u64::from(r.record.calls > 0), |again| again.measurements).into()),
        ("low_mb_per_second", |r| r.interval_end(|order| order.low, |again| again.low)),
        ("high_mb_per_second", |r| r.interval_end(|order| order.high, |again| again.high)),
        ("repetitions_mb_per_second", |r| r.interval.map(|again| again.repetitions_mb_per_second).into()),
        ("repeats_differ", |r| r.interval.map(|again| again.differs).into()),
        ("type_complete", |r| r.type_value.0.map(|t| t.complete).into()),
        ("type_mb_per_second", |r| r.type_value.0.and_then(|t| t.mb_per_second).into()),
        ("type_low_mb_per_second", |r| r.type_value.1.map(|i| i.low).into()),
        ("type_high_mb_per_second", |r| r.type_value.1.map(|i| i.high).into()),
        ("b_eff_io_mb_per_second", |r| r.release_value.0.into()),
        ("b_eff_io_low_mb_per_second", |r| r.release_value.1.map(|i| i.low).into()),
        ("b_eff_io_high_mb_per_second", |r| r.release_value.1.map(|i| i.high).into()),
        ("file_system_cache_bytes", |r| r.yardstick.map(|y| y.cache_bytes).into()),
        ("access_cached_bytes", |r| r.yardstick.map(|y| y.cached_bytes).into()),
        ("twenty_times_cache", |r| r.yardstick.map_or(CsvCell::Empty, |y| CsvCell::word(y.verdict))),
        ("order", |r| r.order.map_or("", |value| value.order.name()).into()),
        ("all_memory_seconds", |r| r.all_memory_seconds.into()),
        ("slow_rank", |r| r.slow_rank.map(|s| s.rank).into()),
        ("slow_rank_host", |r| r.slow_rank.map_or("", |s| &s.host).into()),
        ("slow_rank_factor", |r| r.slow_rank.map(|s| s.factor).into()),
        ("slow_rank_share", |r| r.slow_rank.map(|s| s.share).into()),
        ("mix", |r| r.order.and_then(|value| value.mix).map_or(CsvCell::Empty, |mix| mix.name().into())),
    ]
}

/// Why a pattern ended, in the word of the JSON document.
fn stop_reason_name(ended: &StopReason) -> &'static str {
    match ended {
        StopReason::Time => "time",
        StopReason::Count => "count",
        StopReason::Space => "space",
        StopReason::TimeGuard => "time_guard",
        StopReason::Limit => "limit",
        StopReason::Interrupted => "interrupted",
        StopReason::Error => "error",
        StopReason::NotRun(_) => "not_run",
    }
}

fn type_value<'a>(derived: &'a Derived, record: &PatternRecord) -> (Option<&'a TypeValue>, Option<&'a ValueInterval>) {
    let PatternRecord { ref backend, ranks, access, pattern_type, .. } = *record;
    let is_it = |t: &&TypeValue| {
        t.backend == *backend && t.ranks == ranks && t.access == access && t.pattern_type == pattern_type
    };
    (derived.types.iter().find(is_it), derived.intervals.of_type(backend, ranks, access, pattern_type))
}

fn yardstick<'a>(derived: &'a Derived, record: &PatternRecord) -> Option<&'a CacheYardstick> {
    let PatternRecord { ref backend, ranks, access, .. } = *record;
    derived.cache_yardsticks.iter().find(|y| y.backend == *backend && y.ranks == ranks && y.access == access)
}

fn release_value<'a>(
    result: &RunResult,
    derived: &'a Derived,
    record: &PatternRecord,
) -> (Option<f64>, Option<&'a ValueInterval>) {
    let of_partition = layout::partition_value(derived, &record.backend, record.ranks);
    let value = of_partition.and_then(|p| value(&p.values, result.config.release));
    (value, derived.intervals.value(&record.backend, record.ranks))
}

/// The table as UTF-8 bytes.
///
/// # Errors
/// Errors of the CSV writer.
pub fn rows<'r>(result: &'r RunResult, derived: &'r Derived) -> Result<Vec<u8>, ::csv::Error> {
    let again = derived.intervals.by_pattern();
    let key = |s: &'r SlowRank| (s.backend.as_str(), s.ranks, s.access, s.pattern);
    let slow: HashMap<(&str, u64, AccessMethod, u8), &SlowRank> =
        derived.slow_ranks.iter().map(|s| (key(s), s)).collect();
    let row = |record: &'r PatternRecord| PatternCsvRow {
        result,
        record,
        comparison: RecordSelector::of(record).pattern_comparison(derived, record.pattern),
        device: layout::mounted_device(&record.evidence),
        interval: again.get(&(record.backend.as_str(), record.ranks, record.access, record.pattern)).copied(),
        type_value: type_value(derived, record),
        release_value: release_value(result, derived, record),
        yardstick: yardstick(derived, record),
        order: None,
        ordered: None,
        slow_rank: slow.get(&(record.backend.as_str(), record.ranks, record.access, record.pattern)).copied(),
        all_memory_seconds: coffee_cup::seconds(derived, &record.backend, record.ranks, record.access),
    };
    let ordered_row = |(ordered, value): (&'r OrderedRecord, &'r OrderValue)| PatternCsvRow {
        result,
        record: &ordered.measurement,
        comparison: None,
        device: layout::mounted_device(&ordered.measurement.evidence),
        interval: None,
        type_value: (None, None),
        release_value: (None, None),
        yardstick: None,
        all_memory_seconds: None,
        slow_rank: None,
        order: Some(value),
        ordered: Some(ordered),
    };
    let ordered = result.ordered.iter().zip(&derived.orders).map(ordered_row);
    let machine = &result.manifest.machine;
    let hints = result.config.hints.iter().map(|rule| (rule.key.as_str(), rule.value.as_str()));
    let origin = RunColumns::new(machine, result.config.out.as_deref(), &result.manifest.run_dir)
        .with_hints(hints)
        .with_storage(&result.manifest.storage);
    csv_table(&origin, &columns(), result.patterns.iter().map(row).chain(ordered))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::pattern_type::PatternType;
    use crate::b_eff_io::report::fixtures;
    use crate::b_eff_io::values::derive;
    use crate::frame::report::csv::read_csv;

    #[test]
    fn golden_table() {
        let result = fixtures::failed();
        let bytes = rows(&result, &derive(&result)).unwrap();
        insta::assert_snapshot!("failed.csv", String::from_utf8(bytes).unwrap());
    }

    /// The last digits of logarithms and exponentials depend on the C library.
    fn rounded(line: &str) -> String {
        let shown = |field: &str| match field.parse::<f64>() {
            Ok(number) if field.contains('.') => format!("{number:.6}"),
            _ => field.to_owned(),
        };
        line.split(',').map(shown).collect::<Vec<_>>().join(",")
    }

    /// First patterns of each backend and access method: rounds, ratios, evidence and latencies.
    #[test]
    fn golden_rows_of_several_backends() {
        let mut result = fixtures::ladder();
        result.patterns.retain(|r| r.pattern_type == PatternType::Separate);
        let derived = derive(&result);
        result.patterns.retain(|r| r.pattern <= 18);
        let bytes = rows(&result, &derived).unwrap();
        let text: String = String::from_utf8(bytes).unwrap().lines().map(|line| rounded(line) + "\n").collect();
        insta::assert_snapshot!("ladder.csv", text);
    }

    /// Intervals of patterns, their types and b_eff_io, as in the JSON document.
    #[test]
    fn intervals_stand_in_all_rows() {
        let result = fixtures::repeated();
        let derived = derive(&result);
        let (column, lines) = read_csv(&rows(&result, &derived).unwrap());
        let number = |text: &str| text.parse::<f64>().ok();
        let whole = derived.intervals.value("mpiio", 2).unwrap();
        let first_writes = |i: &&PatternInterval| i.access == AccessMethod::Write;
        assert!(derived.intervals.patterns.iter().filter(first_writes).all(|i| i.low.is_none()), "measured twice");
        assert_eq!(lines.len(), result.patterns.len());
        for (row, record) in lines.iter().zip(&result.patterns) {
            assert_eq!(&row[column("type_complete")], "true");
            let of_type = derived.intervals.of_type("mpiio", 2, record.access, record.pattern_type).unwrap();
            let own = derived.intervals.by_pattern()[&("mpiio", 2, record.access, record.pattern)];
            for (name, low, high) in [
                ("", own.low, own.high),
                ("type_", Some(of_type.low), Some(of_type.high)),
                ("b_eff_io_", Some(whole.low), Some(whole.high)),
            ] {
                let shown = |end: &str| number(&row[column(&format!("{name}{end}mb_per_second"))]);
                assert_eq!((shown("low_"), shown("high_")), (low, high), "{name} of pattern {}", record.pattern);
                let value = shown("").unwrap();
                assert!(low.is_none_or(|low| low <= value) && high.is_none_or(|high| value <= high), "{name} {value}");
            }
        }
    }

    #[test]
    fn a_reader_gets_back_what_was_measured() {
        let result = fixtures::complete();
        let (column, lines) = read_csv(&rows(&result, &derive(&result)).unwrap());
        assert_eq!(lines.len(), result.patterns.len());
        for (row, record) in lines.iter().zip(&result.patterns) {
            assert_eq!(row[column("moved_bytes")].parse::<u64>().unwrap(), record.moved_bytes);
            assert_eq!(row[column("seconds")].parse::<f64>().unwrap(), record.seconds());
            assert_eq!(&row[column("access")], record.access.name());
        }
    }
}
