//! Harness overhead per call, measured by the null backend, which moves no data. Shown as times, never as bandwidth, which would be
//! meaningless.

use crate::b_eff_io::pattern_type::PatternType;
use crate::frame::records::AccessMethod;
use crate::frame::report::model::{ReportBlock, ReportSection};
use crate::frame::report::table::Table;
use crate::frame::report::text::count;
use crate::frame::values::NULL_BACKEND;
use crate::frame::words::or_hyphen;

use super::layout::{classic_pattern, ROWS};
use super::partition_view::PartitionView;

/// None without the null backend.
pub(super) fn section(shown: &PartitionView) -> Option<ReportSection> {
    let head = ["access", "chunk"].into_iter().chain(PatternType::ALL.map(PatternType::name));
    let mut table = Table::new("ns", 2, head);
    for access in AccessMethod::ALL {
        let spot = shown.selector(NULL_BACKEND, access);
        if spot.records(&shown.result).next().is_none() {
            continue;
        }
        for (row, label) in ROWS.iter().enumerate() {
            let cell = |t| {
                let record = classic_pattern(row, t).and_then(|pattern| spot.record(&shown.result, pattern));
                let record = record.filter(|r| r.was_run() && r.calls > 0);
                or_hyphen(record.map(|r| format!("{:.1}", r.intervals.transfer_seconds * 1e9 / r.calls as f64)))
            };
            table.row([access.name().to_owned(), (*label).to_owned()].into_iter().chain(PatternType::ALL.map(cell)));
        }
        table.end_group();
    }
    let blocks = if table.is_empty() { Vec::new() } else { vec![ReportBlock::Table(table)] };
    let title = format!("Harness overhead, {}", count(shown.ranks, "rank"));
    let note =
        "Time of a call of the null backend in ns, no data moved. Slowest rank; agreements and sync are not included.";
    ReportSection::of("program", title, note, blocks)
}
