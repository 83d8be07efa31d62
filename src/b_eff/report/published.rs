//! The measured value beside those the paper has published.

use crate::b_eff::plan::published::{PublishedSystem, RELEASES, SYSTEMS};
use crate::b_eff::plan::Buffers;
use crate::b_eff::records::CommResult;
use crate::b_eff::values::{CommDerived, Level};
use crate::frame::report::model::{Block, Section};
use crate::frame::report::table::Table;
use crate::frame::report::text::fit;
use crate::frame::units::format_size;
use crate::frame::values::in_words;
use crate::frame::words::or_none;

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

pub(super) fn section(result: &CommResult, derived: &CommDerived) -> Section {
    let value = &derived.value;
    let all = |level: Option<Level>| level.map(|l| l.bytes_per_second / 1e6);
    let each = |level: Option<Level>| level.map(|l| l.per_process_bytes_per_second / 1e6);
    let measured = [
        all(value.b_eff),
        each(value.b_eff),
        value.ping_pong_bytes_per_second.map(|rate| rate / 1e6),
        all(value.at_lmax),
        each(value.at_lmax),
        each(value.at_lmax_rings),
    ];
    let this = name(result, derived);
    let mut table =
        Table::new("MB/s", 1, HEAD).with([row(&this, value.processes, Some(result.setup.lmax_bytes), measured)]);
    table.gap();
    let table = table
        .with(SYSTEMS.iter().map(|p| row(p.system, p.processes, p.lmax_bytes, numbers(p))))
        .noted(format!(
            "This run: patterns and sizes of release 3.6, {} buffers, {}. The others: {RELEASES}. Per process: b_eff by the number of \
             processes. - : not printed, or what is printed is not that (641 for the NEC SX-4/32 with 8, where 5766 / 8 is 721).",
            result.config.buffers.name(),
            derived.messages_from.words()
        ));
    let reused = (result.config.buffers == Buffers::Reused).then(|| {
        "NOT COMPARABLE: this run sent the same windows again and again, which shows caches; the release walks through memory.".to_owned()
    });
    let invalid = (!derived.valid).then(|| format!("NOT COMPARABLE: this run is {}.", in_words(&derived.criteria)));
    let blocks = vec![Block::Table(table), Block::Notes(reused.into_iter().chain(invalid).collect())];
    Section {
        name: "published",
        title: "Beside the systems of the paper (Table 1)".into(),
        note: String::new(),
        blocks,
    }
}

/// What the line of this run is called.
fn name(result: &CommResult, derived: &CommDerived) -> String {
    let reused = if result.config.buffers == Buffers::Reused { ", reused" } else { "" };
    let valid = if derived.valid { "" } else { ", NOT VALID" };
    format!("this run{reused}{valid}")
}

/// System, processes, Lmax, and six numbers in MB/s.
fn row(system: &str, processes: u64, lmax_bytes: Option<u64>, numbers: [Option<f64>; 6]) -> [String; 9] {
    let [all, each, ping_pong, at_lmax, each_at_lmax, rings] = numbers.map(whole);
    let lmax = or_none(lmax_bytes.map(format_size));
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

/// The paper prints whole MB/s: so does this table, but for what is small.
fn whole(value: Option<f64>) -> String {
    or_none(value.map(|mb| match mb {
        mb if mb >= 1e8 => format!("{mb:.2e}"),
        mb if mb >= 10.0 => format!("{mb:.0}"),
        mb => fit(mb, 8),
    }))
}
