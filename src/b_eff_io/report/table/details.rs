//! One line per pattern and access method: size, calls, time and where the time went.

use crate::b_eff_io::records::{Ended, PartitionRecord, PatternRecord, RunResult, TypeRecord};
use crate::b_eff_io::report::cells::pattern_marks;
use crate::b_eff_io::report::layout::{chunk_label, rate};
use crate::frame::records::Access;
use crate::frame::report::columns::or_none;
use crate::frame::report::marks::{letters, Legend, Mark};
use crate::frame::report::text::{count, fit, Page};
use crate::frame::units::{format_seconds, format_size};

/// Header of the table; the widths are those of [`row`].
const COLUMNS: &str =
    "  no ty        l         L U     calls      bytes sched s  real s      MB/s     v%  r%  t%  d%  s% end   how";

pub(super) fn write(page: &mut Page, result: &RunResult, backend: &str, partition: &PartitionRecord) {
    let ranks = partition.ranks;
    let records: Vec<&PatternRecord> =
        result.patterns.iter().filter(|r| r.backend == backend && r.ranks == ranks).collect();
    if records.is_empty() {
        return;
    }
    page.heading(&format!("{backend} on {}: every pattern", count(ranks, "rank")));
    let mut notes = Notes::default();
    let mut legend = Legend::default();
    for access in Access::ALL {
        let of_access: Vec<&&PatternRecord> = records.iter().filter(|r| r.access == access).collect();
        if of_access.is_empty() {
            continue;
        }
        page.blank();
        page.line(format!("  {}", access.name()));
        page.line(COLUMNS);
        for record in of_access {
            page.line(row(result, record, &mut notes, &mut legend));
        }
        files(page, result, backend, ranks, access);
    }
    notes.write(page, &legend);
}

fn row(result: &RunResult, r: &PatternRecord, notes: &mut Notes, legend: &mut Legend) -> String {
    let start = format!(
        "  {:>2} {:>2} {:>8} {:>9} {}",
        r.pattern,
        r.pattern_type,
        chunk_label(r.chunk_bytes),
        chunk_label(r.call_bytes),
        r.time_units
    );
    if let Ended::NotRun(reason) = &r.ended {
        return format!("{start}  not run {}", notes.reason(reason));
    }
    let marks: Vec<Mark> = pattern_marks(result, r).into_iter().filter(|m| *m != Mark::NotMeasured).collect();
    legend.note_marks(&marks);
    let speed = or_none(rate(r).map(|v| fit(v, 9)));
    let total = r.seconds();
    let share = |part: f64| if total > 0.0 { format!("{:.0}", 100.0 * part / total) } else { "-".to_owned() };
    let i = &r.intervals;
    format!(
        "{start} {:>9} {:>10} {:>7} {:>7} {speed:>9} {:<2} {:>3} {:>3} {:>3} {:>3} {:>3} {:<5} {}",
        r.calls,
        format_size(r.moved_bytes),
        fit(r.scheduled_seconds, 7),
        fit(total, 7),
        letters(&marks),
        share(i.view_seconds),
        share(i.room_seconds),
        share(i.transfer_seconds),
        share(i.decide_seconds),
        share(i.sync_seconds),
        ended(&r.ended),
        notes.strategy(r)
    )
}

fn ended(ended: &Ended) -> &'static str {
    match ended {
        Ended::Time => "time",
        Ended::Count => "count",
        Ended::Space => "space",
        Ended::TimeGuard => "guard",
        Ended::Interrupted => "signl",
        Ended::Error => "error",
        Ended::NotRun(_) => "-",
    }
}

/// Opening and closing of the files, which count in the totals of the types.
fn files(page: &mut Page, result: &RunResult, backend: &str, ranks: u64, access: Access) {
    let types = result.types.iter().filter(|t| t.backend == backend && t.ranks == ranks && t.access == access);
    for t in types {
        page.hanging(&format!("      type {}: ", t.pattern_type), &file(t));
    }
}

fn file(t: &TypeRecord) -> String {
    let segment = t.segment_bytes.map(|b| format!(", segments of {}", format_size(b))).unwrap_or_default();
    let checked = t
        .full_verification
        .map(|v| format!(", full check: {} of {} wrong", v.words_wrong, count(v.words_checked, "word")))
        .unwrap_or_default();
    let hints: Vec<String> = t.hints_requested.iter().map(|(key, value)| hint(&t.hints_granted, key, value)).collect();
    let hints = if hints.is_empty() { String::new() } else { format!(", hints at open: {}", hints.join(", ")) };
    format!(
        "open {}, close {}, file {}{}{segment}{checked}{hints}",
        format_seconds(t.open_seconds),
        format_seconds(t.close_seconds),
        format_size(t.file_bytes),
        if t.pattern_type == 2 { " of each rank" } else { "" }
    )
}

/// A hint as asked for, and what the library says about it.
fn hint(granted: &[(String, String)], key: &str, value: &str) -> String {
    match granted.iter().find(|(k, _)| k == key) {
        Some((_, granted)) if granted == value => format!("{key}={value} (in force)"),
        Some((_, granted)) => format!("{key}={value} (in force: {granted})"),
        None => format!("{key}={value} (not listed as in force)"),
    }
}

/// Texts too long for a column, numbered and printed once below the table.
#[derive(Default)]
struct Notes {
    texts: Vec<String>,
}

impl Notes {
    fn number(&mut self, text: String) -> String {
        let position = self.texts.iter().position(|t| *t == text).unwrap_or_else(|| {
            self.texts.push(text);
            self.texts.len() - 1
        });
        format!("[{}]", position + 1)
    }

    fn strategy(&mut self, r: &PatternRecord) -> String {
        let cache = match r.direct {
            Some(true) => "direct",
            Some(false) => "through the page cache",
            None => "not known whether direct",
        };
        let mut text = format!("{}; {cache}", r.strategy);
        if !r.hints_requested.is_empty() {
            let hints: Vec<String> =
                r.hints_requested.iter().map(|(key, value)| hint(&r.hints_granted, key, value)).collect();
            text.push_str(&format!("; hints asked for: {}", hints.join(", ")));
        }
        self.number(text)
    }

    fn reason(&mut self, reason: &str) -> String {
        self.number(format!("not run: {reason}"))
    }

    fn write(&self, page: &mut Page, legend: &Legend) {
        page.blank();
        for (text, number) in self.texts.iter().zip(1..) {
            page.hanging(&format!("  [{number}] "), text);
        }
        page.hanging(
            "  columns: ",
            "l chunk on disk, L bytes per call and rank, U time units; sched, real: scheduled time and time of the slowest rank; \
             v%, r%, t%, d%, s%: share of view, room (making the file longer), transfer, decision (waiting included) and sync in \
             the real time; end: what ended the pattern; how: calls used",
        );
        legend.write(page);
    }
}
