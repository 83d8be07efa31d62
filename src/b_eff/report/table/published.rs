//! The measured value beside those the paper has published.

use crate::b_eff::plan::published::{PublishedSystem, RELEASES, SYSTEMS};
use crate::b_eff::plan::Buffers;
use crate::b_eff::records::CommResult;
use crate::b_eff::values::{CommDerived, Level};
use crate::frame::report::columns::{mb, or_none, Columns};
use crate::frame::report::criteria;
use crate::frame::report::text::Page;
use crate::frame::units::format_size;

/// A line: system, processes, Lmax, and six numbers in bytes per second.
type Line<'a> = (&'a str, u64, Option<u64>, [Option<f64>; 6]);

pub(super) fn write(page: &mut Page, result: &CommResult, derived: &CommDerived) {
    page.heading("Beside the systems of the paper (Table 1): MB/s");
    page.line(columns(["", "pro-", "", "per", "", "ping-", "b_eff at", "at Lmax", "Lmax, rings"]).headings());
    let below = ["system", "cesses", "b_eff", "process", "Lmax", "pong", "Lmax", "per process", "per process"];
    let name = name(result, derived);
    let columns = columns(below);
    page.line(columns.headings());
    let value = &derived.value;
    let all = |level: Option<Level>| level.map(|l| l.bytes_per_second);
    let each = |level: Option<Level>| level.map(|l| l.per_process_bytes_per_second);
    let measured = [
        all(value.b_eff),
        each(value.b_eff),
        value.ping_pong_bytes_per_second,
        all(value.at_lmax),
        each(value.at_lmax),
        each(value.at_lmax_rings),
    ];
    let buffers = result.config.buffers.name();
    page.hanging(
        "  ",
        &format!("beff-raw, patterns and sizes of release 3.6, {buffers} buffers, {}:", derived.messages_from.words()),
    );
    page.line(columns.row((name.as_str(), value.processes, Some(result.setup.lmax_bytes), measured)));
    page.hanging("  ", &format!("{RELEASES}:"));
    for p in &SYSTEMS {
        page.line(columns.row((p.system, p.processes, p.lmax_bytes, numbers(p))));
    }
    if result.config.buffers == Buffers::Reused {
        let text =
            "this run sent the same windows again and again, which shows caches; the release walks through memory.";
        page.hanging("  NOT COMPARABLE: ", text);
    }
    if !derived.valid {
        page.hanging("  NOT COMPARABLE: ", &format!("this run is {}.", criteria::verdict(&derived.criteria)));
    }
    page.hanging(
        "  ",
        "per process: b_eff by the number of processes. - : not printed, or what is printed is not that (641 for the NEC SX-4/32 with \
         8, where 5766 / 8 is 721).",
    );
}

/// What the line of this run is called.
fn name(result: &CommResult, derived: &CommDerived) -> String {
    let reused = if result.config.buffers == Buffers::Reused { ", reused" } else { "" };
    let valid = if derived.valid { "" } else { ", NOT VALID" };
    format!("this run{reused}{valid}")
}

fn columns<'a>(names: [&str; 9]) -> Columns<'a, Line<'a>> {
    let number = |width: usize, index: usize| move |line: Line<'a>| whole(line.3[index], width);
    Columns::new()
        .left(names[0], 28, |line: Line<'a>| line.0)
        .right(names[1], 6, |line| line.1)
        .right(names[2], 10, number(10, 0))
        .right(names[3], 9, number(9, 1))
        .right(names[4], 10, |line| or_none(line.2.map(format_size)))
        .right(names[5], 9, number(9, 2))
        .right(names[6], 10, number(10, 3))
        .right(names[7], 12, number(12, 4))
        .right(names[8], 14, number(14, 5))
}

fn numbers(p: &PublishedSystem) -> [Option<f64>; 6] {
    [
        Some(p.b_eff_mb_per_second),
        p.defined_per_process_mb_per_second(),
        p.ping_pong_mb_per_second,
        Some(p.at_lmax_mb_per_second),
        Some(p.at_lmax_per_process_mb_per_second),
        Some(p.at_lmax_rings_per_process_mb_per_second),
    ]
    .map(|value| value.map(|mb| mb * 1e6))
}

/// The paper prints whole MB/s: so does this table, but for what is small.
fn whole(value: Option<f64>, width: usize) -> String {
    match value {
        Some(rate) if rate / 1e6 >= 10_f64.powi(width as i32 - 1) => format!("{:.2e}", rate / 1e6),
        Some(rate) if rate >= 1e7 => format!("{:.0}", rate / 1e6),
        other => mb(other, width),
    }
}
