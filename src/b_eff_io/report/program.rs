//! What the null backend tells: it moves nothing, so its times are what the program itself takes for a call. They are
//! shown as times, never as bandwidth: a rate of moving nothing is no result.

use crate::b_eff_io::pattern_type::PatternType;
use crate::frame::records::Access;
use crate::frame::report::model::{Block, Section};
use crate::frame::report::table::Table;
use crate::frame::report::text::count;
use crate::frame::values::NULL_BACKEND;
use crate::frame::words::or_none;

use super::layout::{classic_pattern, ROWS};
use super::shown::Shown;

/// None where it took no part.
pub(super) fn section(shown: &Shown) -> Option<Section> {
    let head = ["access", "chunk"].into_iter().chain(PatternType::ALL.map(PatternType::name));
    let mut table = Table::new("ns", 2, head);
    for access in Access::ALL {
        let spot = shown.spot(NULL_BACKEND, access);
        if spot.records(&shown.result).next().is_none() {
            continue;
        }
        for (row, label) in ROWS.iter().enumerate() {
            let cell = |t| {
                let record = classic_pattern(row, t).and_then(|pattern| spot.record(&shown.result, pattern));
                let record = record.filter(|r| r.was_run() && r.calls > 0);
                or_none(record.map(|r| format!("{:.1}", r.intervals.transfer_seconds * 1e9 / r.calls as f64)))
            };
            table.row([access.name().to_owned(), (*label).to_owned()].into_iter().chain(PatternType::ALL.map(cell)));
        }
        table.gap();
    }
    let blocks = if table.is_empty() { Vec::new() } else { vec![Block::Table(table)] };
    let title = format!("Cost of the program itself, {}", count(shown.ranks, "rank"));
    let note = "Time of a call of the null backend in ns, no data moved. Slowest rank; the decisions to go on or stop and the sync are not in it.";
    Section::of("program", title, note, blocks)
}
