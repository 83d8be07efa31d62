//! PREFIX.csv: one row for each pattern, access method, partition and backend. Units are in the column names.

use serde::Serialize;

use crate::b_eff_io::plan::patterns::type_name;
use crate::b_eff_io::records::{Ended, PatternRecord, RunResult};
use crate::b_eff_io::values::ladder::PatternRung;
use crate::b_eff_io::values::Derived;

use super::cells::pattern_marks;
use super::layout;
use crate::b_eff_io::values::cache_share;
use crate::frame::report::marks::letters;

/// One row; the names of the fields are the header of the table.
#[derive(Serialize)]
struct Row<'a> {
    backend: &'a str,
    ranks: u64,
    access: &'static str,
    pattern_type: u8,
    type_name: &'a str,
    pattern: u8,
    chunk_bytes: u64,
    call_bytes: u64,
    time_units: u32,
    calls: u64,
    moved_bytes: u64,
    scheduled_seconds: f64,
    budget_seconds: f64,
    seconds: f64,
    view_seconds: f64,
    room_seconds: f64,
    transfer_seconds: f64,
    decide_seconds: f64,
    decision_cost_seconds: f64,
    sync_seconds: f64,
    mb_per_second: Option<f64>,
    rounds: u64,
    best_backend: Option<&'a str>,
    ratio_to_best: Option<f64>,
    ratio_low: Option<f64>,
    ratio_high: Option<f64>,
    equal_to_best: Option<bool>,
    ended: &'static str,
    not_run_reason: &'a str,
    words_checked: u64,
    words_wrong: u64,
    strategy: &'a str,
    direct: Option<bool>,
    storage_read_bytes: Option<u64>,
    storage_written_bytes: Option<u64>,
    device: String,
    device_read_bytes: Option<u64>,
    device_written_bytes: Option<u64>,
    device_read_requests: Option<u64>,
    device_write_requests: Option<u64>,
    resident_before_bytes: Option<u64>,
    resident_after_bytes: Option<u64>,
    range_bytes: u64,
    latency_of: &'a str,
    latency_count: Option<u64>,
    latency_p50_ns: Option<u64>,
    latency_p99_ns: Option<u64>,
    latency_p999_ns: Option<u64>,
    latency_max_ns: Option<u64>,
    allocations_in_clock: u64,
    marks: String,
    cache_share: Option<f64>,
}

impl<'a> Row<'a> {
    fn new(result: &RunResult, r: &'a PatternRecord, rung: Option<&'a PatternRung>) -> Self {
        let ratio = rung.and_then(|rung| rung.ratio);
        let device = layout::mounted_device(&r.evidence);
        let latency = r.latency.as_ref();
        Self {
            backend: &r.backend,
            ranks: r.ranks,
            access: r.access.name(),
            pattern_type: r.pattern_type,
            type_name: type_name(r.pattern_type),
            pattern: r.pattern,
            chunk_bytes: r.chunk_bytes,
            call_bytes: r.call_bytes,
            time_units: r.time_units,
            calls: r.calls,
            moved_bytes: r.moved_bytes,
            scheduled_seconds: r.scheduled_seconds,
            budget_seconds: r.budget_seconds,
            seconds: r.seconds(),
            view_seconds: r.intervals.view_seconds,
            room_seconds: r.intervals.room_seconds,
            transfer_seconds: r.intervals.transfer_seconds,
            decide_seconds: r.intervals.decide_seconds,
            decision_cost_seconds: r.decision_cost_seconds,
            sync_seconds: r.intervals.sync_seconds,
            mb_per_second: layout::rate(r),
            rounds: r.rounds.len() as u64,
            best_backend: rung.and_then(|rung| rung.best.as_deref()),
            ratio_to_best: ratio.map(|ratio| ratio.value),
            ratio_low: ratio.and_then(|ratio| ratio.interval).map(|interval| interval.low),
            ratio_high: ratio.and_then(|ratio| ratio.interval).map(|interval| interval.high),
            equal_to_best: ratio.and_then(|ratio| ratio.equal),
            ended: ended_name(&r.ended),
            not_run_reason: match &r.ended {
                Ended::NotRun(reason) => reason,
                _ => "",
            },
            words_checked: r.verification.words_checked,
            words_wrong: r.verification.words_wrong,
            strategy: &r.strategy,
            direct: r.direct,
            storage_read_bytes: r.storage_read_bytes,
            storage_written_bytes: r.storage_written_bytes,
            device: device.as_ref().map_or_else(String::new, |d| d.device.clone()),
            device_read_bytes: device.as_ref().map(|d| d.read_bytes),
            device_written_bytes: device.as_ref().map(|d| d.written_bytes),
            device_read_requests: device.as_ref().map(|d| d.read_requests),
            device_write_requests: device.as_ref().map(|d| d.write_requests),
            resident_before_bytes: r.evidence.resident_before_bytes,
            resident_after_bytes: r.evidence.resident_after_bytes,
            range_bytes: r.evidence.range_bytes,
            latency_of: latency.map_or("", |l| &l.of),
            latency_count: latency.map(|l| l.count),
            latency_p50_ns: latency.map(|l| l.p50_ns),
            latency_p99_ns: latency.map(|l| l.p99_ns),
            latency_p999_ns: latency.map(|l| l.p999_ns),
            latency_max_ns: latency.map(|l| l.max_ns),
            allocations_in_clock: r.allocations_in_clock,
            marks: letters(&pattern_marks(result, r)),
            cache_share: cache_share(result, r),
        }
    }
}

/// The end of a pattern in one word, the same as in the JSON document.
#[must_use]
pub fn ended_name(ended: &Ended) -> &'static str {
    match ended {
        Ended::Time => "time",
        Ended::Count => "count",
        Ended::Space => "space",
        Ended::TimeGuard => "time_guard",
        Ended::Interrupted => "interrupted",
        Ended::Error => "error",
        Ended::NotRun(_) => "not_run",
    }
}

/// The whole table as UTF-8 bytes, header first; the header alone if nothing was measured.
///
/// # Errors
/// What the csv writer reports.
pub fn rows(result: &RunResult, derived: &Derived) -> Result<Vec<u8>, ::csv::Error> {
    let mut writer = ::csv::WriterBuilder::new().has_headers(false).from_writer(Vec::new());
    writer.write_record(HEADER)?;
    for record in &result.patterns {
        let rung = layout::rung(derived, &record.backend, record.ranks, record.access, record.pattern);
        writer.serialize(Row::new(result, record, rung))?;
    }
    writer.into_inner().map_err(|e| ::csv::Error::from(e.into_error()))
}

/// Column names in order; written by hand so that an empty run has its header too. A test holds it against the rows.
const HEADER: [&str; 52] = [
    "backend",
    "ranks",
    "access",
    "pattern_type",
    "type_name",
    "pattern",
    "chunk_bytes",
    "call_bytes",
    "time_units",
    "calls",
    "moved_bytes",
    "scheduled_seconds",
    "budget_seconds",
    "seconds",
    "view_seconds",
    "room_seconds",
    "transfer_seconds",
    "decide_seconds",
    "decision_cost_seconds",
    "sync_seconds",
    "mb_per_second",
    "rounds",
    "best_backend",
    "ratio_to_best",
    "ratio_low",
    "ratio_high",
    "equal_to_best",
    "ended",
    "not_run_reason",
    "words_checked",
    "words_wrong",
    "strategy",
    "direct",
    "storage_read_bytes",
    "storage_written_bytes",
    "device",
    "device_read_bytes",
    "device_written_bytes",
    "device_read_requests",
    "device_write_requests",
    "resident_before_bytes",
    "resident_after_bytes",
    "range_bytes",
    "latency_of",
    "latency_count",
    "latency_p50_ns",
    "latency_p99_ns",
    "latency_p999_ns",
    "latency_max_ns",
    "allocations_in_clock",
    "marks",
    "cache_share",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::report::fixtures;
    use crate::b_eff_io::values::derive;

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

    /// The first patterns of each backend and access method: rounds, ratios, evidence and latencies.
    #[test]
    fn golden_rows_of_several_backends() {
        let mut result = fixtures::ladder();
        result.patterns.retain(|r| r.pattern_type == 2);
        let derived = derive(&result);
        result.patterns.retain(|r| r.pattern <= 18);
        let bytes = rows(&result, &derived).unwrap();
        let text: String = String::from_utf8(bytes).unwrap().lines().map(|line| rounded(line) + "\n").collect();
        insta::assert_snapshot!("ladder.csv", text);
    }

    #[test]
    fn the_header_names_the_fields_of_a_row() {
        let result = fixtures::complete();
        let record = fixtures::pattern("posix", 2, crate::frame::records::Access::Write, 5);
        let row = serde_json::to_value(Row::new(&result, &record, None)).unwrap();
        let fields = row.as_object().unwrap();
        assert_eq!(fields.len(), HEADER.len());
        let mut writer = ::csv::Writer::from_writer(Vec::new());
        writer.serialize(Row::new(&result, &record, None)).unwrap();
        let text = String::from_utf8(writer.into_inner().unwrap()).unwrap();
        assert_eq!(text.lines().next().unwrap(), HEADER.join(","));
    }

    #[test]
    fn a_reader_gets_back_what_was_measured() {
        let result = fixtures::complete();
        let bytes = rows(&result, &derive(&result)).unwrap();
        let mut reader = ::csv::Reader::from_reader(bytes.as_slice());
        let column = |name: &str| HEADER.iter().position(|h| *h == name).unwrap();
        let read: Vec<::csv::StringRecord> = reader.records().map(|r| r.unwrap()).collect();
        assert_eq!(read.len(), result.patterns.len());
        for (row, record) in read.iter().zip(&result.patterns) {
            assert_eq!(row[column("moved_bytes")].parse::<u64>().unwrap(), record.moved_bytes);
            assert_eq!(row[column("seconds")].parse::<f64>().unwrap(), record.seconds());
            assert_eq!(&row[column("access")], record.access.name());
        }
    }
}
