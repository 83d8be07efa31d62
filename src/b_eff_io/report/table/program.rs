//! What the null backend tells: it moves nothing, so its times are what the program itself takes for a call. They are
//! shown as times, never as bandwidth: a rate of moving nothing is no result.

use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::records::RunResult;
use crate::b_eff_io::report::layout::Spot;
use crate::frame::records::Access;
use crate::frame::report::columns::or_none;
use crate::frame::report::text::{count, Page};
use crate::frame::values::NULL_BACKEND;

use super::classic::{self, LABEL};

/// Width of a number.
const NUMBER: usize = 15;

pub(super) fn write(page: &mut Page, result: &RunResult) {
    for partition in &result.partitions {
        let ranks = partition.ranks;
        let spots = Access::ALL.map(|access| Spot { backend: NULL_BACKEND, ranks, access });
        let measured: Vec<Spot<'_>> = spots.into_iter().filter(|s| s.records(result).next().is_some()).collect();
        if measured.is_empty() {
            continue;
        }
        page.heading(&format!(
            "Cost of the program itself on {}: time of a call of the null backend in ns, no data moved",
            count(ranks, "rank")
        ));
        let names: String = PatternType::ALL.iter().map(|&t| format!("{:>NUMBER$}", t.name())).collect();
        page.line(format!("  {:LABEL$}{names}", "access   chunk"));
        for spot in measured {
            classic::rows(page, spot, |pattern| format!("{:>NUMBER$}", cell(result, spot, pattern)));
        }
        page.line("  Slowest rank; the decisions to go on or stop and the sync are not in it.");
    }
}

fn cell(result: &RunResult, spot: Spot<'_>, pattern: Option<u8>) -> String {
    let nanoseconds = pattern
        .and_then(|pattern| spot.record(result, pattern))
        .filter(|r| r.was_run() && r.calls > 0)
        .map(|r| r.intervals.transfer_seconds * 1e9 / r.calls as f64);
    or_none(nanoseconds.map(|ns| format!("{ns:.1}")))
}
