//! Such a text on a screen and on a page.

use super::{ImbText, TextSection};
use crate::frame::report::html::{self, Block, Section, Table};
use crate::frame::report::sheet::{fixed, span, Look, Screen};
use crate::frame::report::{screen, Level, Place, Sheet};
use crate::frame::units::{count, format_size, mb_per_second};

/// Tables shown on one screen.
const SHOWN: usize = 28;
/// Facts that a reader wants to see, of those that are there.
const FACTS: [&str; 5] = ["Date", "System", "Release", "MPI", "MPI Version"];

fn facts(text: &ImbText) -> String {
    let known = FACTS.iter().filter_map(|name| text.facts.iter().find(|(key, _)| key == name));
    known.map(|(key, value)| format!("{key} {value}")).collect::<Vec<_>>().join("; ")
}

/// Least size and its time, largest size and its rate.
fn ends(section: &TextSection) -> [String; 2] {
    let times = section.times();
    let size = |bytes: Option<u64>| bytes.map_or_else(String::new, |bytes| format!(" ({})", format_size(bytes)));
    let first = times.first().map_or(String::new(), |(bytes, us)| format!("{us:.1} us{}", size(*bytes)));
    let last = times.last().and_then(|(bytes, us)| {
        let rate = mb_per_second((*bytes)?, us / 1e6).filter(|rate| *rate > 0.0)?;
        Some(format!("{} MB/s{}", screen::rate(rate, None), size(*bytes)))
    });
    [first, last.unwrap_or_default()]
}

/// One screen; all tables where more is asked for.
pub(super) fn sheet(text: &ImbText, level: Level, place: &Place) -> Sheet {
    let mut page = Screen::new(place.columns);
    page.line([span(Look::Strong, "IMB-IO of its own program")]);
    page.line([span(Look::Plain, format!("  {}", facts(text)))]);
    page.blank();
    let head =
        format!("  {}{}{}{}largest", fixed("benchmark", 20), fixed("ranks", 7), fixed("mode", 15), fixed("least", 20));
    page.line([span(Look::Quiet, head)]);
    let most = if level == Level::Screen { SHOWN } else { usize::MAX };
    for section in text.sections.iter().take(most) {
        let [least, largest] = ends(section);
        let name = format!("  {}{}", fixed(&section.benchmark, 20), fixed(&section.ranks.to_string(), 7));
        page.line([span(Look::Plain, format!("{name}{}{}{largest}", fixed(&section.mode, 15), fixed(&least, 20)))]);
    }
    let more = text.sections.len().saturating_sub(most);
    if more > 0 {
        page.line([span(Look::Plain, format!("  {} more: --full", count(more as u64, "table")))]);
    }
    screen::end(&mut page, place, false, None);
    Sheet::Screen(page)
}

/// Its part of a page.
pub(super) fn page(text: &ImbText) -> html::Run {
    let mut table =
        Table::new("Slowest process by table and size", 3, ["benchmark", "ranks", "mode", "bytes", "us", "MB/s"]);
    for section in &text.sections {
        for (bytes, us) in section.times() {
            let rate = bytes.and_then(|bytes| mb_per_second(bytes, us / 1e6)).filter(|rate| *rate > 0.0);
            table.row([
                section.benchmark.clone(),
                section.ranks.to_string(),
                section.mode.clone(),
                bytes.map_or_else(String::new, |bytes| bytes.to_string()),
                format!("{us:.2}"),
                rate.map_or_else(|| "-".to_owned(), |rate| screen::rate(rate, None)),
            ]);
        }
    }
    html::Run {
        benchmark: "imb_io",
        title: "IMB-IO of its own program".into(),
        facts: vec![facts(text)],
        alarms: Vec::new(),
        headlines: Vec::new(),
        findings: Vec::new(),
        sections: vec![Section {
            name: "rows",
            title: "Rows".into(),
            note: String::new(),
            blocks: vec![Block::Table(table)],
        }],
    }
}
