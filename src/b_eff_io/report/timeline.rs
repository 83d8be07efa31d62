//! The timeline of the run: a lane for each backend, a block for each pattern or, with several partitions, for each access method. The text
//! lists the same times in its details.

use std::collections::BTreeMap;

use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::records::{PatternRecord, RunResult};
use crate::frame::records::AccessMethod;
use crate::frame::report::html::stacks;
use crate::frame::report::html::timeline::{self, TimelineSpan};
use crate::frame::report::model::{ReportBlock, ReportSection};
use crate::frame::report::picture::{LegendEntry, Picture};
use crate::frame::report::table::Table;
use crate::frame::report::text::count;
use crate::frame::units::format_seconds;

use super::layout::{access_label, chunk_label};
use super::partition_view::PartitionView;

/// Ratio to the scheduled time above which a pattern is late.
const LATE_FACTOR: f64 = 1.5;

fn is_late(p: &PatternRecord) -> bool {
    p.scheduled_seconds > 0.0 && p.seconds() > LATE_FACTOR * p.scheduled_seconds
}

/// None if nothing was run.
pub(super) fn section(result: &RunResult, shown: &PartitionView) -> Option<ReportSection> {
    let of_patterns = Some(pattern_picture(shown)).filter(|picture| !picture.table.is_empty())?;
    let of_run = (result.partitions.len() > 1).then(|| run_picture(result, shown));
    let note = format!(
        "The measured time, one pattern after the other in the order of measurement; backends take turns, and the time between is \
         omitted. Underlined: more than {LATE_FACTOR} times its scheduled time."
    );
    ReportSection::of(
        "timeline",
        "Timeline",
        note,
        [of_patterns].into_iter().chain(of_run).map(ReportBlock::Picture).collect(),
    )
}

fn late_key() -> LegendEntry {
    LegendEntry {
        sample: "<path class=\"t\" d=\"M2 8h22\"/>".into(),
        text: format!("over {LATE_FACTOR} times its time"),
        style: None,
    }
}

fn pattern_picture(shown: &PartitionView) -> Picture {
    let head = ["access", "backend", "type", "chunk", "scheduled", "took", "late"];
    let mut table = Table::new("Patterns in the order of measurement", 4, head).with_words();
    let mut frames = Vec::new();
    for access in AccessMethod::ALL {
        let mut lanes = Vec::new();
        for backend in &shown.backends {
            let records = shown.result.patterns.iter().filter(|p| p.backend == *backend && p.access == access);
            let mut spans = Vec::new();
            for p in records.filter(|p| p.was_run()) {
                let [about, chunk] = [p.pattern_type.label(), chunk_label(p.chunk_bytes)];
                let [scheduled, took] = [p.scheduled_seconds, p.seconds()].map(format_seconds);
                spans.push(TimelineSpan {
                    style: p.pattern_type.index(),
                    seconds: p.seconds(),
                    is_late: is_late(p),
                    tooltip: format!("pattern {}, {about}, {chunk}: {took} of {scheduled}", p.pattern),
                });
                let word = if is_late(p) { "late" } else { "" };
                table.row([access_label(access), backend, &about, &chunk, &scheduled, &took, word].map(str::to_owned));
            }
            lanes.push((backend.clone(), spans));
        }
        let said = format!("{}: patterns one after the other, by backend", access_label(access));
        frames.push(timeline::frame(access_label(access), said, &lanes));
    }
    let types = PatternType::ALL.iter().map(|&t| stacks::legend_entry(t.index(), &t.label()));
    let title = format!("Patterns on {}", count(shown.ranks, "rank"));
    Picture {
        name: format!("{}-ranks-timeline", shown.ranks),
        title,
        keys: types.chain([late_key()]).collect(),
        frames,
        table,
    }
}

/// All partitions, a block for each access method.
fn run_picture(result: &RunResult, shown: &PartitionView) -> Picture {
    let mut sums: BTreeMap<(&str, u64, AccessMethod), f64> = BTreeMap::new();
    for p in &result.patterns {
        *sums.entry((&p.backend, p.ranks, p.access)).or_default() += p.seconds();
    }
    let mut table = Table::new("Measured seconds", 2, ["ranks", "backend", "first write", "rewrite", "read"]);
    let mut lanes: Vec<(String, Vec<TimelineSpan>)> = shown.backends.iter().map(|b| (b.clone(), Vec::new())).collect();
    for partition in &result.partitions {
        for (backend, spans) in &mut lanes {
            let times =
                AccessMethod::ALL.map(|a| sums.get(&(backend.as_str(), partition.ranks, a)).copied().unwrap_or(0.0));
            for (style, (access, seconds)) in AccessMethod::ALL.into_iter().zip(times).enumerate() {
                let said = format!(
                    "{backend}, {}, {}: {}",
                    count(partition.ranks, "rank"),
                    access_label(access),
                    format_seconds(seconds)
                );
                spans.push(TimelineSpan { style, seconds, is_late: false, tooltip: said });
            }
            let numbers = times.map(|s| format!("{s:.3}"));
            table.row([partition.ranks.to_string(), backend.clone()].into_iter().chain(numbers));
        }
    }
    let keys = AccessMethod::ALL
        .into_iter()
        .enumerate()
        .map(|(style, access)| stacks::legend_entry(style, access_label(access)));
    let said = "All partitions one after the other, by backend".to_owned();
    let frames = vec![timeline::frame("all partitions", said, &lanes)];
    Picture { name: "timeline".into(), title: "All partitions".into(), keys: keys.collect(), frames, table }
}
