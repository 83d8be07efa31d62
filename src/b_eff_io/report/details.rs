//! A line for each pattern and access method: size, calls, time and where the time went.

use std::collections::HashMap;

use crate::b_eff_io::config::RepeatPolicy;
use crate::b_eff_io::records::{Ended, PatternRecord, SubmissionRecord, TypeRecord};
use crate::b_eff_io::values::{known_digits, rate, taken_seconds, PatternInterval};
use crate::frame::records::Access;
use crate::frame::report::marks::{Mark, Notes};
use crate::frame::report::model::{Block, Pair, Section};
use crate::frame::report::table::{Cell, Table};
use crate::frame::report::text::{count, fit, fit_known};
use crate::frame::units::{format_seconds, format_size};
use crate::frame::words::{or_none, NONE};

use super::cells::pattern_marks;
use super::layout::{chunk_label, Spot};
use super::shown::Shown;

/// Time taken from a pattern is shown from this share of its scheduled time on.
const LEAST_TAKEN: f64 = 0.001;

const HEAD: [&str; 17] = [
    "no", "ty", "l", "L", "U", "calls", "bytes", "sched\ns", "real\ns", "MB/s", "v%", "r%", "t%", "d%", "s%", "end",
    "how",
];

/// What was measured again on a partition.
type Again<'a> = HashMap<(Access, u8), &'a PatternInterval>;

/// None where nothing was measured.
pub(super) fn section(shown: &Shown, backend: &str) -> Option<Section> {
    let mut notes = Notes::default();
    let repeated = shown.derived.intervals.patterns.iter().filter(|i| i.backend == backend);
    let again: Again<'_> = repeated.map(|i| ((i.access, i.pattern), i)).collect();
    let mut blocks = Vec::new();
    for access in Access::ALL {
        let spot = shown.spot(backend, access);
        let rows: Vec<[Cell; 17]> = spot.records(&shown.result).map(|r| row(shown, r, &mut notes)).collect();
        if !rows.is_empty() {
            blocks.push(Block::Table(Table::new(access.name(), 2, HEAD).with(rows)));
            blocks.push(Block::Pairs(beside(shown, spot, &again)));
        }
    }
    if blocks.is_empty() {
        return None;
    }
    blocks.push(Block::List(notes.texts()));
    let title = format!("{backend} on {}: every pattern", count(shown.ranks, "rank"));
    let note = "l chunk on disk, L bytes per call and rank, U time units; sched, real: scheduled time and time of the slowest rank; v%, r%, t%, \
                d%, s%: share of view, room (making the file longer), transfer, decision (waiting included) and sync in the real time; end: \
                what ended the pattern; how: calls used.";
    Section::of("patterns", title, note, blocks)
}

fn row(shown: &Shown, r: &PatternRecord, notes: &mut Notes) -> [Cell; 17] {
    let was_run = !matches!(r.ended, Ended::NotRun(_));
    let or_nothing = |text: String| Cell::from(if was_run { text } else { NONE.to_owned() });
    let how = match &r.ended {
        Ended::NotRun(reason) => format!("not run: {reason}"),
        _ => strategy(r),
    };
    let i = &r.intervals;
    let share = |seconds: f64| {
        let total = r.seconds();
        or_nothing(or_none((total > 0.0).then(|| format!("{:.0}", 100.0 * seconds / total))))
    };
    let marks: Vec<Mark> = pattern_marks(&shown.result, r);
    let rate = rate(r).filter(|_| was_run).map(|v| fit_known(v, known_digits(r), 9));
    [
        format!("{:>2}", r.pattern).into(),
        r.pattern_type.to_string().into(),
        chunk_label(r.chunk_bytes).into(),
        chunk_label(r.call_bytes).into(),
        r.time_units.to_string().into(),
        or_nothing(r.calls.to_string()),
        or_nothing(format_size(r.moved_bytes)),
        or_nothing(fit(r.scheduled_seconds, 7)),
        or_nothing(fit(r.seconds(), 7)),
        Cell::number(rate, &marks),
        share(i.view_seconds),
        share(i.room_seconds),
        share(i.transfer_seconds),
        share(i.decide_seconds),
        share(i.sync_seconds),
        ended(&r.ended).into(),
        notes.number(how).into(),
    ]
}

/// What stands below the patterns of an access method: intervals, time lost, operations of io_uring, files.
fn beside(shown: &Shown, spot: Spot<'_>, again: &Again<'_>) -> Vec<Pair> {
    let files = spot.types(&shown.result).map(|t| (format!("type {}", t.pattern_type), file(t)));
    known(shown, spot, again)
        .into_iter()
        .chain(taken(shown, spot).map(|text| ("lost to earlier overruns".to_owned(), text)))
        .chain(handed(shown, spot).map(|text| ("io_uring".to_owned(), text)))
        .chain(files)
        .collect()
}

/// The intervals of the patterns that were measured three times or more, and which were not. Nothing where no pattern was measured again.
fn known(shown: &Shown, spot: Spot<'_>, again: &Again<'_>) -> Vec<Pair> {
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    for r in spot.records(&shown.result).filter(|r| r.calls > 0 && !again.is_empty()) {
        let shown_rate = |v: f64| fit_known(v, known_digits(r), 7);
        match again.get(&(r.access, r.pattern)).map(|interval| (interval.low, interval.high)) {
            Some((Some(low), Some(high))) => {
                known.push(format!("{} [{}, {}]", r.pattern, shown_rate(low), shown_rate(high)));
            }
            // The others have rounds.
            _ if shown.result.config.repeat == RepeatPolicy::Rounds => {}
            _ => unknown.push(r.pattern.to_string()),
        }
    }
    let lists = [("95 % intervals, MB/s", known), ("measured less than 3 times", unknown)];
    lists
        .into_iter()
        .filter(|(_, list)| !list.is_empty())
        .map(|(label, list)| (label.to_owned(), list.join(", ")))
        .collect()
}

/// What earlier overruns took from the patterns that time ended; None: nothing that could be seen.
fn taken(shown: &Shown, spot: Spot<'_>) -> Option<String> {
    let seen = |r: &&PatternRecord| r.ended == Ended::Time && taken_seconds(r) > LEAST_TAKEN * r.scheduled_seconds;
    let text = |r: &PatternRecord| format!("{} {} s", r.pattern, fit(taken_seconds(r), 5));
    let parts: Vec<String> = spot.records(&shown.result).filter(seen).map(text).collect();
    (!parts.is_empty()).then(|| format!("pattern {}", parts.join(", ")))
}

/// What was handed to io_uring, and what is known of the workers; None where nothing was.
fn handed(shown: &Shown, spot: Spot<'_>) -> Option<String> {
    let all: Vec<(u8, SubmissionRecord)> =
        spot.records(&shown.result).filter_map(|r| r.submissions.map(|s| (r.pattern, s))).collect();
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
