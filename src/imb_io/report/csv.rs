//! PREFIX.csv of IMB-IO: one line for each row and each group that is shown. Units are in the column names.

use serde::Serialize;

use crate::imb_io::plan::Mode;
use crate::imb_io::records::{ImbResult, RowEnd, RowRecord};
use crate::imb_io::values::{GroupValue, ImbDerived, RowValue};

/// One line; the names of the fields are the header of the table.
#[derive(Serialize)]
struct Row<'a> {
    backend: &'a str,
    benchmark: &'a str,
    ranks: u64,
    groups: u64,
    group: Option<u64>,
    mode: Mode,
    sample_bytes: Option<u64>,
    repetitions: u64,
    repetitions_wanted: u64,
    ended: &'static str,
    reason: Option<&'a str>,
    t_min_seconds: Option<f64>,
    t_max_seconds: Option<f64>,
    t_mean_seconds: Option<f64>,
    mb_per_second: Option<f64>,
    repetition_median_seconds: Option<f64>,
    repetition_p99_seconds: Option<f64>,
    repetition_max_seconds: Option<f64>,
    median_mb_per_second: Option<f64>,
    pure_seconds: Option<f64>,
    overlapped_seconds: Option<f64>,
    cpu_seconds: Option<f64>,
    cpu_overlapped_seconds: Option<f64>,
    overlap_percent: Option<f64>,
    pure_mb_per_second: Option<f64>,
    sync_seconds: Option<f64>,
    moved_bytes: u64,
    bytes_checked: u64,
    bytes_wrong: u64,
    allocations_in_clock: u64,
    storage_bytes: Option<u64>,
    cached_share: Option<f64>,
    direct: Option<bool>,
    strategy: &'a str,
    real_seconds: f64,
}

/// Column names in order; written by hand so that an empty run has its header too. A test holds it against the rows.
const HEADER: [&str; 35] = [
    "backend",
    "benchmark",
    "ranks",
    "groups",
    "group",
    "mode",
    "sample_bytes",
    "repetitions",
    "repetitions_wanted",
    "ended",
    "reason",
    "t_min_seconds",
    "t_max_seconds",
    "t_mean_seconds",
    "mb_per_second",
    "repetition_median_seconds",
    "repetition_p99_seconds",
    "repetition_max_seconds",
    "median_mb_per_second",
    "pure_seconds",
    "overlapped_seconds",
    "cpu_seconds",
    "cpu_overlapped_seconds",
    "overlap_percent",
    "pure_mb_per_second",
    "sync_seconds",
    "moved_bytes",
    "bytes_checked",
    "bytes_wrong",
    "allocations_in_clock",
    "storage_bytes",
    "cached_share",
    "direct",
    "strategy",
    "real_seconds",
];

/// The whole table as UTF-8 bytes, header first; the header alone if nothing was measured. A row that is not complete has
/// one line without times.
///
/// # Errors
/// What the csv writer reports.
pub fn csv(result: &ImbResult, derived: &ImbDerived) -> Result<Vec<u8>, ::csv::Error> {
    let mut writer = ::csv::WriterBuilder::new().has_headers(false).from_writer(Vec::new());
    writer.write_record(HEADER)?;
    for (record, value) in result.rows.iter().zip(&derived.rows) {
        if value.groups.is_empty() {
            writer.serialize(row(record, value, None))?;
        }
        for group in &value.groups {
            writer.serialize(row(record, value, Some(group)))?;
        }
    }
    writer.into_inner().map_err(|e| ::csv::Error::from(e.into_error()))
}

fn row<'a>(record: &'a RowRecord, value: &RowValue, group: Option<&GroupValue>) -> Row<'a> {
    // What a row that is not complete says of times is not meant to be read.
    let is_complete = record.ended == RowEnd::Complete;
    let repetition = record.repetition_times.filter(|_| is_complete);
    let overlap = record.overlap.filter(|_| is_complete);
    let (ended, reason) = end(&record.ended);
    Row {
        backend: &record.backend,
        benchmark: &record.benchmark,
        ranks: record.ranks,
        groups: record.groups,
        group: group.map(|g| g.group),
        mode: record.mode,
        sample_bytes: record.sample_bytes,
        repetitions: record.repetitions,
        repetitions_wanted: record.repetitions_wanted,
        ended,
        reason,
        t_min_seconds: group.map(|g| g.times.min_seconds),
        t_max_seconds: group.map(|g| g.times.max_seconds),
        t_mean_seconds: group.map(|g| g.times.mean_seconds),
        mb_per_second: group.and_then(|g| g.mb_per_second),
        repetition_median_seconds: repetition.map(|r| r.median_seconds),
        repetition_p99_seconds: repetition.map(|r| r.p99_seconds),
        repetition_max_seconds: repetition.map(|r| r.max_seconds),
        median_mb_per_second: value.median_mb_per_second,
        pure_seconds: overlap.map(|o| o.pure_seconds),
        overlapped_seconds: overlap.map(|o| o.overlapped_seconds),
        cpu_seconds: overlap.map(|o| o.cpu_seconds),
        cpu_overlapped_seconds: overlap.map(|o| o.cpu_overlapped_seconds),
        overlap_percent: value.overlap_percent,
        pure_mb_per_second: value.pure_mb_per_second,
        sync_seconds: is_complete.then_some(record.sync_seconds),
        moved_bytes: record.moved_bytes,
        bytes_checked: record.bytes_checked,
        bytes_wrong: record.bytes_wrong,
        allocations_in_clock: record.allocations_in_clock,
        storage_bytes: value.storage_bytes,
        cached_share: value.cached_share,
        direct: record.direct,
        strategy: &record.strategy,
        real_seconds: record.real_seconds,
    }
}

fn end(ended: &RowEnd) -> (&'static str, Option<&str>) {
    match ended {
        RowEnd::Complete => ("complete", None),
        RowEnd::Error(message) => ("error", Some(message)),
        RowEnd::Interrupted => ("interrupted", None),
        RowEnd::NotRun(reason) => ("not_run", Some(reason)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imb_io::report::fixtures;
    use crate::imb_io::values::derive;

    #[test]
    fn golden_rows() {
        for (name, result, derived) in fixtures::all() {
            let bytes = csv(&result, &derived).unwrap();
            insta::assert_snapshot!(format!("{name}.csv"), String::from_utf8(bytes).unwrap());
        }
    }

    #[test]
    fn the_header_names_the_fields_of_a_row() {
        let result = fixtures::complete();
        let derived = derive(&result);
        let mut writer = ::csv::Writer::from_writer(Vec::new());
        writer.serialize(row(&result.rows[0], &derived.rows[0], derived.rows[0].groups.first())).unwrap();
        let text = String::from_utf8(writer.into_inner().unwrap()).unwrap();
        assert_eq!(text.lines().next().unwrap(), HEADER.join(","));
    }

    #[test]
    fn a_row_that_is_not_complete_has_one_line_without_times() {
        let result = fixtures::failed();
        let bytes = csv(&result, &derive(&result)).unwrap();
        let mut reader = ::csv::Reader::from_reader(bytes.as_slice());
        let rows: Vec<::csv::StringRecord> = reader.records().map(|r| r.unwrap()).collect();
        let column = |name: &str| HEADER.iter().position(|h| *h == name).unwrap();
        let broken = rows.iter().filter(|r| &r[column("ended")] != "complete");
        let broken: Vec<_> = broken.collect();
        assert_eq!(broken.len(), result.rows.iter().filter(|r| r.ended != RowEnd::Complete).count());
        for line in broken {
            assert!((column("t_min_seconds")..=column("sync_seconds")).all(|c| line[c].is_empty()), "{line:?}");
        }
    }
}
