//! One line per pattern and access method: size, calls, time and where the time went.

use std::collections::HashMap;

use crate::b_eff_io::config::RepeatPolicy;
use crate::b_eff_io::records::{Ended, PartitionRecord, PatternRecord, RunResult, SubmissionRecord, TypeRecord};
use crate::b_eff_io::report::cells::pattern_marks;
use crate::b_eff_io::report::layout;
use crate::b_eff_io::report::layout::{chunk_label, Spot};
use crate::b_eff_io::values::{known_digits, rate, taken_seconds, Derived, PatternInterval};
use crate::frame::records::Access;
use crate::frame::report::columns::{or_none, Columns};
use crate::frame::report::marks::{letters, Legend, Mark, Notes};
use crate::frame::report::text::{count, fit, fit_known, Page};
use crate::frame::units::{format_seconds, format_size};

/// Time taken from a pattern is shown from this share of its scheduled time on.
const LEAST_TAKEN: f64 = 0.001;

/// Intervals of patterns side by side.
const INTERVALS_IN_A_LINE: usize = 4;

/// A pattern that was run, its marks and how it was done.
type Line<'a> = (&'a PatternRecord, &'a str, &'a str);

/// What was measured again on a partition.
type Again<'a> = HashMap<(Access, u8), &'a PatternInterval>;

pub(super) fn write(
    page: &mut Page,
    result: &RunResult,
    derived: &Derived,
    backend: &str,
    partition: &PartitionRecord,
) {
    let ranks = partition.ranks;
    if layout::patterns(result, backend, ranks).next().is_none() {
        return;
    }
    page.heading(&format!("{backend} on {}: every pattern", count(ranks, "rank")));
    let (mut notes, mut legend) = (Notes::default(), Legend::default());
    let repeated = derived.intervals.patterns.iter().filter(|i| i.backend == backend && i.ranks == ranks);
    let again: Again<'_> = repeated.map(|i| ((i.access, i.pattern), i)).collect();
    for spot in Access::ALL.map(|access| Spot { backend, ranks, access }) {
        if spot.records(result).next().is_none() {
            continue;
        }
        page.blank();
        page.line(format!("  {}", spot.access.name()));
        page.line(columns().headings());
        for r in spot.records(result) {
            pattern(page, result, r, &mut notes, &mut legend);
        }
        known(page, spot, result, &again);
        if let Some(text) = taken(spot, result) {
            page.hanging("      time lost to earlier overruns: ", &text);
        }
        if let Some(text) = handed(spot, result) {
            page.hanging("      io_uring: ", &text);
        }
        for t in spot.types(result) {
            page.hanging(&format!("      type {}: ", t.pattern_type), &file(t));
        }
    }
    notes.write(page);
    page.hanging(
        "  columns: ",
        "l chunk on disk, L bytes per call and rank, U time units; sched, real: scheduled time and time of the slowest rank; \
         v%, r%, t%, d%, s%: share of view, room (making the file longer), transfer, decision (waiting included) and sync in \
         the real time; end: what ended the pattern; how: calls used",
    );
    legend.write(page);
}

fn pattern(page: &mut Page, result: &RunResult, r: &PatternRecord, notes: &mut Notes, legend: &mut Legend) {
    if let Ended::NotRun(reason) = &r.ended {
        let note = notes.number(format!("not run: {reason}"));
        return page.line(format!("{}  not run {note}", what().row((r, "", ""))));
    }
    let marks: Vec<Mark> = pattern_marks(result, r).into_iter().filter(|m| *m != Mark::NotMeasured).collect();
    legend.note_marks(&marks);
    let (marks, how) = (letters(&marks), notes.number(strategy(r)));
    page.line(columns().row((r, &marks, &how)));
}

/// What was to be measured.
fn what<'a>() -> Columns<'a, Line<'a>> {
    Columns::<Line<'_>>::new()
        .right("no", 2, |(r, ..)| r.pattern)
        .right("ty", 3, |(r, ..)| r.pattern_type)
        .right("l", 9, |(r, ..)| chunk_label(r.chunk_bytes))
        .right("L", 10, |(r, ..)| chunk_label(r.call_bytes))
        .right("U", 2, |(r, ..)| r.time_units)
}

fn columns<'a>() -> Columns<'a, Line<'a>> {
    what()
        .right("calls", 10, |(r, ..)| r.calls)
        .right("bytes", 11, |(r, ..)| format_size(r.moved_bytes))
        .right("sched s", 8, |(r, ..)| fit(r.scheduled_seconds, 7))
        .right("real s", 8, |(r, ..)| fit(r.seconds(), 7))
        .right("MB/s", 10, |(r, ..)| or_none(rate(r).map(|v| fit_known(v, known_digits(r), 9))))
        .gap(1)
        .left("", 2, |(_, marks, _)| marks)
        .right("v%", 4, |(r, ..)| share(r, r.intervals.view_seconds))
        .right("r%", 4, |(r, ..)| share(r, r.intervals.room_seconds))
        .right("t%", 4, |(r, ..)| share(r, r.intervals.transfer_seconds))
        .right("d%", 4, |(r, ..)| share(r, r.intervals.decide_seconds))
        .right("s%", 4, |(r, ..)| share(r, r.intervals.sync_seconds))
        .gap(1)
        .left("end", 6, |(r, ..)| ended(&r.ended))
        .left("how", 0, |(.., how)| how)
}

/// The intervals of the patterns that were measured three times or more, and which were not. Nothing where no pattern was measured again.
fn known(page: &mut Page, spot: Spot<'_>, result: &RunResult, again: &Again<'_>) {
    if again.is_empty() {
        return;
    }
    let (mut cells, mut unknown) = (Vec::new(), Vec::new());
    for r in spot.records(result).filter(|r| r.calls > 0) {
        let shown = |v: f64| fit_known(v, known_digits(r), 7);
        match again.get(&(r.access, r.pattern)).map(|interval| (interval.low, interval.high)) {
            Some((Some(low), Some(high))) => cells.push(format!("{:>2} [{}, {}]", r.pattern, shown(low), shown(high))),
            // The others have rounds.
            _ if result.config.repeat == RepeatPolicy::Rounds => {}
            _ => unknown.push(r.pattern.to_string()),
        }
    }
    if !cells.is_empty() {
        page.line("      95 % intervals of patterns, MB/s");
    }
    for line in cells.chunks(INTERVALS_IN_A_LINE) {
        let line: String = line.iter().map(|cell| format!("{cell:<24}")).collect();
        page.line(format!("       {}", line.trim_end()));
    }
    if !unknown.is_empty() {
        page.hanging("      measured less than three times: pattern ", &unknown.join(", "));
    }
}

/// What earlier overruns took from the patterns that time ended; None: nothing that could be seen.
fn taken(spot: Spot<'_>, result: &RunResult) -> Option<String> {
    let seen = |r: &&PatternRecord| r.ended == Ended::Time && taken_seconds(r) > LEAST_TAKEN * r.scheduled_seconds;
    let shown = |r: &PatternRecord| format!("{} {} s", r.pattern, fit(taken_seconds(r), 5));
    let parts: Vec<String> = spot.records(result).filter(seen).map(shown).collect();
    (!parts.is_empty()).then(|| format!("pattern {}", parts.join(", ")))
}

/// What was handed to io_uring, and what is known of the workers; None where nothing was.
fn handed(spot: Spot<'_>, result: &RunResult) -> Option<String> {
    let all: Vec<(u8, SubmissionRecord)> =
        spot.records(result).filter_map(|r| r.submissions.map(|s| (r.pattern, s))).collect();
    let sum = |of: fn(&SubmissionRecord) -> u64| all.iter().map(|(_, s)| of(s)).fold(0, u64::saturating_add);
    let operations = sum(|s| s.registered.saturating_add(s.plain));
    if operations == 0 {
        return None;
    }
    let with = |is: &dyn Fn(&SubmissionRecord) -> bool| {
        let patterns: Vec<String> = all.iter().filter(|(_, s)| is(s)).map(|(p, _)| p.to_string()).collect();
        if patterns.is_empty() {
            "none".to_owned()
        } else {
            format!("pattern {}", patterns.join(", "))
        }
    };
    let cpu_seconds: f64 = all.iter().map(|(_, s)| s.worker_cpu_seconds).sum();
    Some(format!(
        "{}, {} of them with memory that is not registered ({}); kernel workers used {} of CPU ({}); how many operations went to them the \
         kernel does not tell",
        count(operations, "operation"),
        sum(|s| s.plain),
        with(&|s| s.plain > 0),
        format_seconds(cpu_seconds),
        with(&|s| s.worker_cpu_seconds > 0.0)
    ))
}

fn share(r: &PatternRecord, part_seconds: f64) -> String {
    let total = r.seconds();
    or_none((total > 0.0).then(|| format!("{:.0}", 100.0 * part_seconds / total)))
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
fn file(t: &TypeRecord) -> String {
    let segment = t.segment_bytes.map(|b| format!(", segments of {}", format_size(b))).unwrap_or_default();
    let checked = t
        .full_verification
        .map(|v| format!(", full check: {} of {} wrong", v.words_wrong, count(v.words_checked, "word")))
        .unwrap_or_default();
    let hints = hints(&t.hints_requested, &t.hints_granted, ", hints at open");
    format!(
        "open {}, close {}, file {}{}{segment}{checked}{hints}",
        format_seconds(t.open_seconds),
        format_seconds(t.close_seconds),
        format_size(t.file_bytes),
        if t.pattern_type.has_private_files() { " of each rank" } else { "" }
    )
}

/// Hints as asked for, and what the library says about each; nothing without any.
fn hints(requested: &[(String, String)], granted: &[(String, String)], title: &str) -> String {
    let hint = |(key, value): &(String, String)| match granted.iter().find(|(k, _)| k == key) {
        Some((_, granted)) if granted == value => format!("{key}={value} (in force)"),
        Some((_, granted)) => format!("{key}={value} (in force: {granted})"),
        None => format!("{key}={value} (not listed as in force)"),
    };
    let hints: Vec<String> = requested.iter().map(hint).collect();
    if hints.is_empty() {
        String::new()
    } else {
        format!("{title}: {}", hints.join(", "))
    }
}

fn strategy(r: &PatternRecord) -> String {
    let cache = match r.direct {
        Some(true) => "direct",
        Some(false) => "through the page cache",
        None => "not known whether direct",
    };
    let hints = hints(&r.hints_requested, &r.hints_granted, "; hints asked for");
    format!("{}; {cache}{hints}", r.strategy)
}
