//! Such a text as data, as it is shown.

use super::{ImbText, TextSection};
use crate::frame::report::model::{Block, Head, Model, Section};
use crate::frame::report::table::Table;
use crate::frame::report::Level;
use crate::frame::units::{format_size, mb_per_second};
use crate::frame::words::rate;

/// Tables shown on one screen, by the room there is.
const SHOWN: [usize; 4] = [28, 28, 28, 28];
/// Facts that a reader wants to see, of those that are there.
const FACTS: [&str; 5] = ["Date", "System", "Release", "MPI", "MPI Version"];

/// Least size and its time, largest size and its rate.
fn ends(section: &TextSection) -> [String; 2] {
    let times = section.times();
    let size = |bytes: Option<u64>| bytes.map_or_else(String::new, |bytes| format!(" ({})", format_size(bytes)));
    let first = times.first().map_or(String::new(), |(bytes, us)| format!("{us:.1} us{}", size(*bytes)));
    let last = times.last().and_then(|(bytes, us)| {
        let found = mb_per_second((*bytes)?, us / 1e6).filter(|rate| *rate > 0.0)?;
        Some(format!("{} MB/s{}", rate(found, None), size(*bytes)))
    });
    [first, last.unwrap_or_default()]
}

/// The text; on a screen a line for each table.
pub(super) fn model(text: &ImbText, level: Level) -> Model {
    let known = FACTS.iter().filter_map(|name| text.facts.iter().find(|(key, _)| key == name));
    let facts = known.map(|(key, value)| format!("{key} {value}")).collect::<Vec<_>>().join("; ");
    let is_screen = level == Level::Screen;
    Model {
        benchmark: "imb_io",
        head: Head { program: "IMB-IO of its own program".into(), about: vec![facts], ..Head::default() },
        summary: if is_screen { vec![Block::Table(summary(text))] } else { Vec::new() },
        sections: if is_screen { Vec::new() } else { vec![rows(text)] },
        ..Model::default()
    }
}

fn summary(text: &ImbText) -> Table {
    let row = |section: &TextSection| {
        let [least, largest] = ends(section);
        [section.benchmark.clone(), section.ranks.to_string(), section.mode.clone(), least, largest]
    };
    let head = ["benchmark", "ranks", "mode", "least", "largest"];
    Table::new("", 5, head).at_most(SHOWN).with(text.sections.iter().map(row))
}

fn rows(text: &ImbText) -> Section {
    let head = ["benchmark", "ranks", "mode", "bytes", "us", "MB/s"];
    let mut table = Table::new("Slowest process by table and size", 3, head);
    for section in &text.sections {
        for (bytes, us) in section.times() {
            let found = bytes.and_then(|bytes| mb_per_second(bytes, us / 1e6)).filter(|rate| *rate > 0.0);
            table.row([
                section.benchmark.clone(),
                section.ranks.to_string(),
                section.mode.clone(),
                bytes.map_or_else(String::new, |bytes| bytes.to_string()),
                format!("{us:.2}"),
                found.map_or_else(|| "-".to_owned(), |found| rate(found, None)),
            ]);
        }
        table.gap();
    }
    Section { name: "rows", title: "Rows".into(), note: String::new(), blocks: vec![Block::Table(table)] }
}
