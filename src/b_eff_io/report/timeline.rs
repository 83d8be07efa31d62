//! The run as it went: a lane for each backend, a block for each pattern or, of several partitions, for each access method. The text has
//! the same times in its details.

use std::collections::BTreeMap;

use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::records::{PatternRecord, RunResult};
use crate::frame::records::Access;
use crate::frame::report::html::lanes::{self, Span};
use crate::frame::report::html::stacks;
use crate::frame::report::model::{Block, Section};
use crate::frame::report::picture::{Key, Picture};
use crate::frame::report::table::Table;
use crate::frame::report::text::count;
use crate::frame::units::format_seconds;

use super::layout::{access_label, chunk_label};
use super::shown::Shown;

/// A pattern that took so many times its scheduled time is late.
const LATE: f64 = 1.5;

fn is_late(p: &PatternRecord) -> bool {
    p.scheduled_seconds > 0.0 && p.seconds() > LATE * p.scheduled_seconds
}

/// None where nothing was run.
pub(super) fn section(result: &RunResult, shown: &Shown) -> Option<Section> {
    let of_patterns = Some(of_patterns(shown)).filter(|picture| !picture.table.is_empty())?;
    let of_run = (result.partitions.len() > 1).then(|| of_run(result, shown));
    let note = format!(
        "The time inside the clock, one pattern after the other, as they were measured; backends take turns, and what lies between is left \
         out. Underlined: took more than {LATE} times its scheduled time."
    );
    Section::of("timeline", "Timeline", note, [of_patterns].into_iter().chain(of_run).map(Block::Picture).collect())
}

/// The key of what is late.
fn late() -> Key {
    Key { sample: "<path class=\"t\" d=\"M2 8h22\"/>".into(), text: format!("over {LATE} times its time"), style: None }
}

fn of_patterns(shown: &Shown) -> Picture {
    let head = ["access", "backend", "type", "chunk", "scheduled", "took", "late"];
    let mut table = Table::new("Patterns in the order of measurement", 4, head).with_words();
    let mut frames = Vec::new();
    for access in Access::ALL {
        let mut lanes = Vec::new();
        for backend in &shown.backends {
            let records = shown.result.patterns.iter().filter(|p| p.backend == *backend && p.access == access);
            let mut spans = Vec::new();
            for p in records.filter(|p| p.was_run()) {
                let [about, chunk] = [p.pattern_type.label(), chunk_label(p.chunk_bytes)];
                let [scheduled, took] = [p.scheduled_seconds, p.seconds()].map(format_seconds);
                spans.push(Span {
                    style: p.pattern_type.index(),
                    seconds: p.seconds(),
                    is_late: is_late(p),
                    said: format!("pattern {}, {about}, {chunk}: {took} of {scheduled}", p.pattern),
                });
                let word = if is_late(p) { "late" } else { "" };
                table.row([access_label(access), backend, &about, &chunk, &scheduled, &took, word].map(str::to_owned));
            }
            lanes.push((backend.clone(), spans));
        }
        let said = format!("{}: patterns one after the other, by backend", access_label(access));
        frames.push(lanes::frame(access_label(access), said, &lanes));
    }
    let types = PatternType::ALL.iter().map(|&t| stacks::key(t.index(), &t.label()));
    let title = format!("Patterns on {}", count(shown.ranks, "rank"));
    Picture {
        name: format!("{}-ranks-timeline", shown.ranks),
        title,
        keys: types.chain([late()]).collect(),
        frames,
        table,
    }
}

/// All partitions, a block for each access method.
fn of_run(result: &RunResult, shown: &Shown) -> Picture {
    let mut sums: BTreeMap<(&str, u64, Access), f64> = BTreeMap::new();
    for p in &result.patterns {
        *sums.entry((&p.backend, p.ranks, p.access)).or_default() += p.seconds();
    }
    let mut table = Table::new("Seconds inside the clock", 2, ["ranks", "backend", "first write", "rewrite", "read"]);
    let mut lanes: Vec<(String, Vec<Span>)> = shown.backends.iter().map(|b| (b.clone(), Vec::new())).collect();
    for partition in &result.partitions {
        for (backend, spans) in &mut lanes {
            let times = Access::ALL.map(|a| sums.get(&(backend.as_str(), partition.ranks, a)).copied().unwrap_or(0.0));
            for (style, (access, seconds)) in Access::ALL.into_iter().zip(times).enumerate() {
                let said = format!(
                    "{backend}, {}, {}: {}",
                    count(partition.ranks, "rank"),
                    access_label(access),
                    format_seconds(seconds)
                );
                spans.push(Span { style, seconds, is_late: false, said });
            }
            let numbers = times.map(|s| format!("{s:.3}"));
            table.row([partition.ranks.to_string(), backend.clone()].into_iter().chain(numbers));
        }
    }
    let keys = Access::ALL.into_iter().enumerate().map(|(style, access)| stacks::key(style, access_label(access)));
    let said = "All partitions one after the other, by backend".to_owned();
    let frames = vec![lanes::frame("all partitions", said, &lanes)];
    Picture { name: "timeline".into(), title: "All partitions".into(), keys: keys.collect(), frames, table }
}
