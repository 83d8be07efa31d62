//! PREFIX.csv of IMB-IO: one line for each row and each group that is shown.

use crate::frame::records::InterferenceRecord;
use crate::frame::report::csv::{csv_table, Column, CsvCell, RunColumns};
use crate::imb_io::config::ImbConfig;
use crate::imb_io::records::{ImbResult, IterationTimes, OverlapTimes, RowRecord, RowStatus};
use crate::imb_io::values::{GroupValue, ImbDerived, RepeatedRow, RowValue};

struct GroupLine<'a> {
    config: &'a ImbConfig,
    record: &'a RowRecord,
    value: &'a RowValue,
    group: Option<&'a GroupValue>,
    ended: &'static str,
    reason: Option<&'a str>,
}

impl GroupLine<'_> {
    /// Times of an incomplete row are not valid.
    fn is_complete(&self) -> bool {
        self.record.ended == RowStatus::Complete
    }

    fn times<'a>(&'a self, time: fn(&IterationTimes) -> f64) -> CsvCell<'a> {
        self.record.iteration_times.as_ref().filter(|_| self.is_complete()).map(time).into()
    }

    fn repeated<'a>(&'a self, number: fn(&RepeatedRow) -> Option<f64>) -> CsvCell<'a> {
        self.value.repeated.as_ref().and_then(number).into()
    }

    fn machine<'a>(&'a self, number: fn(&InterferenceRecord) -> f64) -> CsvCell<'a> {
        self.record.interference.as_ref().map(number).into()
    }

    fn overlap<'a>(&'a self, time: fn(&OverlapTimes) -> Option<f64>) -> CsvCell<'a> {
        self.record.overlap.as_ref().filter(|_| self.is_complete()).and_then(time).into()
    }
}

fn columns<'r>() -> [Column<GroupLine<'r>>; 50] {
    [
        ("backend", |l| (&l.record.backend).into()),
        ("benchmark", |l| (&l.record.benchmark).into()),
        ("ranks", |l| l.record.ranks.into()),
        ("groups", |l| l.record.groups.into()),
        ("group", |l| l.group.map(|g| g.group).into()),
        ("mode", |l| CsvCell::word(l.record.mode)),
        ("file", |l| CsvCell::word(l.config.file)),
        ("buffers", |l| CsvCell::word(l.config.buffers)),
        ("sample_bytes", |l| l.record.sample_bytes.into()),
        ("iterations", |l| l.record.iterations.into()),
        ("iterations_requested", |l| l.record.iterations_requested.into()),
        ("ended", |l| l.ended.into()),
        ("reason", |l| l.reason.into()),
        ("t_min_seconds", |l| l.group.map(|g| g.times.min_seconds).into()),
        ("t_max_seconds", |l| l.group.map(|g| g.times.max_seconds).into()),
        ("t_mean_seconds", |l| l.group.map(|g| g.times.mean_seconds).into()),
        ("mb_per_second", |l| l.group.and_then(|g| g.mb_per_second).into()),
        ("iteration_median_seconds", |l| l.times(|t| t.median_seconds)),
        ("iteration_p99_seconds", |l| l.times(|t| t.p99_seconds)),
        ("iteration_max_seconds", |l| l.times(|t| t.max_seconds)),
        ("median_mb_per_second", |l| l.value.median_mb_per_second.into()),
        ("blocking_seconds", |l| l.overlap(|o| o.blocking_seconds)),
        ("alone_seconds", |l| l.overlap(|o| Some(o.alone_seconds))),
        ("overlapped_seconds", |l| l.overlap(|o| Some(o.overlapped_seconds))),
        ("cpu_seconds", |l| l.overlap(|o| Some(o.cpu_seconds))),
        ("cpu_overlapped_seconds", |l| l.overlap(|o| Some(o.cpu_overlapped_seconds))),
        ("overlap_percent", |l| l.value.overlap_percent.into()),
        ("pure_mb_per_second", |l| l.value.pure_mb_per_second.into()),
        ("sync_seconds", |l| l.is_complete().then_some(l.record.sync_seconds).into()),
        ("moved_bytes", |l| l.record.moved_bytes.into()),
        ("bytes_checked", |l| l.record.bytes_checked.into()),
        ("bytes_wrong", |l| l.record.bytes_wrong.into()),
        ("allocations_in_clock", |l| l.record.allocations_in_clock.into()),
        ("storage_bytes", |l| l.value.storage_bytes.into()),
        ("cached_share", |l| l.value.cached_share.into()),
        ("direct", |l| l.record.direct.into()),
        ("strategy", |l| (&l.record.strategy).into()),
        ("real_seconds", |l| l.record.real_seconds.into()),
        ("machine_cpu_seconds", |l| l.machine(|m| m.cpu_seconds)),
        ("steal_seconds", |l| l.machine(|m| m.steal_seconds)),
        ("other_process_seconds", |l| l.machine(|m| m.other_process_seconds)),
        ("run_queue_wait_seconds", |l| l.record.interference.as_ref().and_then(|m| m.run_queue_wait_seconds).into()),
        ("involuntary_switches", |l| l.record.interference.as_ref().map(|m| m.involuntary_switches).into()),
        ("repeated_measurements", |l| l.value.repeated.map(|r| r.measurements).into()),
        ("repeated_mean_seconds", |l| l.repeated(|r| Some(r.mean_seconds))),
        ("repeated_low_seconds", |l| l.repeated(|r| r.interval_seconds.map(|[low, _]| low))),
        ("repeated_high_seconds", |l| l.repeated(|r| r.interval_seconds.map(|[_, high]| high))),
        ("repeated_mean_mb_per_second", |l| l.repeated(|r| r.mean_mb_per_second)),
        ("repeated_low_mb_per_second", |l| l.repeated(|r| r.interval_mb_per_second.map(|[low, _]| low))),
        ("repeated_high_mb_per_second", |l| l.repeated(|r| r.interval_mb_per_second.map(|[_, high]| high))),
    ]
}

/// The table as UTF-8 bytes. An incomplete row has one line without times.
///
/// # Errors
/// An error of the csv writer.
pub fn csv(result: &ImbResult, derived: &ImbDerived) -> Result<Vec<u8>, ::csv::Error> {
    let mut lines = Vec::new();
    for (record, value) in result.rows.iter().zip(&derived.rows) {
        let (ended, reason) = end(&record.ended);
        let line = |group| GroupLine { config: &result.config, record, value, group, ended, reason };
        if value.groups.is_empty() {
            lines.push(line(None));
        }
        lines.extend(value.groups.iter().map(|group| line(Some(group))));
    }
    let hints = result.config.hints.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let setup = &result.setup;
    let origin = RunColumns::new(&setup.machine, result.config.out.as_deref(), &setup.run_dir)
        .with_hints(hints)
        .with_storage(&setup.storage);
    csv_table(&origin, &columns(), lines)
}

fn end(ended: &RowStatus) -> (&'static str, Option<&str>) {
    match ended {
        RowStatus::Complete => ("complete", None),
        RowStatus::Error(message) => ("error", Some(message)),
        RowStatus::Limit => ("limit", None),
        RowStatus::Interrupted => ("interrupted", None),
        RowStatus::NotRun(reason) => ("not_run", Some(reason)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::report::csv::read_csv;
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
    fn a_row_that_is_not_complete_has_one_line_without_times() {
        let result = fixtures::failed();
        let (column, rows) = read_csv(&csv(&result, &derive(&result)).unwrap());
        let broken = rows.iter().filter(|r| &r[column("ended")] != "complete");
        let broken: Vec<_> = broken.collect();
        assert_eq!(broken.len(), result.rows.iter().filter(|r| r.ended != RowStatus::Complete).count());
        for line in broken {
            assert!((column("t_min_seconds")..=column("sync_seconds")).all(|c| line[c].is_empty()), "{line:?}");
        }
    }
}
