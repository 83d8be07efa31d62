//! Comparison of the measured value with those published in the paper.

use crate::b_eff::plan::published::{PublishedSystem, PUBLISHED_RELEASES, PUBLISHED_SYSTEMS};
use crate::b_eff::plan::BufferMode;
use crate::b_eff::records::CommResult;
use crate::b_eff::values::{AggregateBandwidth, CommDerived};
use crate::frame::report::model::{ReportBlock, ReportSection};
use crate::frame::report::table::Table;
use crate::frame::report::text::fit;
use crate::frame::units::format_size;
use crate::frame::values::validity_text;
use crate::frame::words::or_hyphen;

const HEAD: [&str; 9] = [
    "system",
    "pro-\ncesses",
    "\nb_eff",
    "per\nprocess",
    "\nLmax",
    "ping-\npong",
    "b_eff at\nLmax",
    "at Lmax\nper process",
    "Lmax, rings\nper process",
];

pub(super) fn section(result: &CommResult, derived: &CommDerived) -> ReportSection {
    let value = &derived.value;
    let all = |level: Option<AggregateBandwidth>| level.map(|l| l.bytes_per_second / 1e6);
    let each = |level: Option<AggregateBandwidth>| level.map(|l| l.per_process_bytes_per_second / 1e6);
    let measured = [
        all(value.b_eff),
        each(value.b_eff),
        value.ping_pong_bytes_per_second.map(|rate| rate / 1e6),
        all(value.at_lmax),
        each(value.at_lmax),
        each(value.at_lmax_rings),
    ];
    let this = run_label(result, derived);
    let mut table =
        Table::new("MB/s", 1, HEAD).with_rows([row(&this, value.processes, Some(result.setup.lmax_bytes), measured)]);
    table.end_group();
    let table = table
        .with_rows(PUBLISHED_SYSTEMS.iter().map(|p| row(p.system, p.processes, p.lmax_bytes, numbers(p))))
        .with_note(format!(
            "This run: patterns and sizes of release 3.6, {} buffers, {}. The others: {PUBLISHED_RELEASES}. Per process: b_eff divided by the \
             number of processes. - : not printed, or not that quotient (641 for the NEC SX-4/32 with 8, where 5766 / 8 is 721).",
            result.config.buffers.name(),
            derived.messages_from.label()
        ));
    let reused = (result.config.buffers == BufferMode::Reused).then(|| {
        "NOT COMPARABLE: this run reused the same windows, which measures caches; the release walks through memory."
            .to_owned()
    });
    let invalid =
        (!derived.valid).then(|| format!("NOT COMPARABLE: this run is {}.", validity_text(&derived.criteria, 0)));
    let blocks = vec![ReportBlock::Table(table), ReportBlock::Notes(reused.into_iter().chain(invalid).collect())];
    ReportSection { name: "published", title: "Systems of the paper (Table 1)".into(), note: String::new(), blocks }
}

fn run_label(result: &CommResult, derived: &CommDerived) -> String {
    let reused = if result.config.buffers == BufferMode::Reused { ", reused" } else { "" };
    let valid = if derived.valid { "" } else { ", NOT VALID" };
    format!("this run{reused}{valid}")
}

/// System, processes, Lmax, and six numbers in MB/s.
fn row(system: &str, processes: u64, lmax_bytes: Option<u64>, numbers: [Option<f64>; 6]) -> [String; 9] {
    let [all, each, ping_pong, at_lmax, each_at_lmax, rings] = numbers.map(rounded);
    let lmax = or_hyphen(lmax_bytes.map(format_size));
    [system.to_owned(), processes.to_string(), all, each, lmax, ping_pong, at_lmax, each_at_lmax, rings]
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
}

/// Rounds to whole MB/s as in the paper, except for small values.
fn rounded(value: Option<f64>) -> String {
    or_hyphen(value.map(|mb| match mb {
        mb if mb >= 1e8 => format!("{mb:.2e}"),
        mb if mb >= 10.0 => format!("{mb:.0}"),
        mb => fit(mb, 8),
    }))
}
