//! A line for each pattern and access method: size, calls, time and its parts.

use std::collections::HashMap;

use beff_statistics::bootstrap::Interval;

use crate::b_eff_io::config::RepeatPolicy;
use crate::b_eff_io::records::{PatternRecord, StopReason, SubmissionRecord, TypeRecord};
use crate::b_eff_io::values::{deducted_seconds, known_digits, rate, PatternInterval};
use crate::frame::records::AccessMethod;
use crate::frame::report::marks::{Footnotes, QualityMark};
use crate::frame::report::model::{LabelledText, ReportBlock, ReportSection};
use crate::frame::report::table::{Table, TableCell};
use crate::frame::report::text::{count, fit, fit_significant};
use crate::frame::units::{format_seconds, format_size};
use crate::frame::words::{or_hyphen, NO_VALUE};

use super::cells::pattern_marks;
use super::layout::{chunk_label, RecordSelector};
use super::partition_view::PartitionView;

/// Smallest share of the scheduled time whose deduction is listed.
const MIN_DEDUCTED_SHARE: f64 = 0.001;

const HEAD: [&str; 17] = [
    "no", "ty", "l", "L", "U", "calls", "bytes", "sched\ns", "real\ns", "MB/s", "v%", "p%", "t%", "d%", "s%", "end",
    "how",
];

type IntervalsByPattern<'a> = HashMap<(AccessMethod, u8), &'a PatternInterval>;

/// None if nothing was measured.
pub(super) fn section(shown: &PartitionView, backend: &str) -> Option<ReportSection> {
    let mut notes = Footnotes::default();
    let repeated = shown.derived.intervals.patterns.iter().filter(|i| i.backend == backend);
    let again: IntervalsByPattern<'_> = repeated.map(|i| ((i.access, i.pattern), i)).collect();
    let mut blocks = Vec::new();
    for access in AccessMethod::ALL {
        let spot = shown.selector(backend, access);
        let rows: Vec<[TableCell; 17]> = spot.records(&shown.result).map(|r| row(shown, r, &mut notes)).collect();
        if !rows.is_empty() {
            blocks.push(ReportBlock::Table(Table::new(access.name(), 2, HEAD).with_rows(rows)));
            blocks.push(ReportBlock::Pairs(footer(shown, spot, &again)));
        }
    }
    if blocks.is_empty() {
        return None;
    }
    blocks.push(ReportBlock::List(notes.texts()));
    let title = format!("{backend} on {}: every pattern", count(shown.ranks, "rank"));
    let note = "l chunk on disk, L bytes per call and rank, U time units; sched, real: scheduled time and time of the slowest rank; v%, \
                p%, t%, d%, s%: share of view, preallocation, transfer, agreement (waiting included) and sync in the real time; end: \
                why the pattern ended; how: calls used.";
    ReportSection::of("patterns", title, note, blocks)
}

fn row(shown: &PartitionView, r: &PatternRecord, notes: &mut Footnotes) -> [TableCell; 17] {
    let was_run = !matches!(r.ended, StopReason::NotRun(_));
    let or_nothing = |text: String| TableCell::from(if was_run { text } else { NO_VALUE.to_owned() });
    let how = match &r.ended {
        StopReason::NotRun(reason) => format!("not run: {reason}"),
        _ => strategy(r),
    };
    let i = &r.intervals;
    let share = |seconds: f64| {
        let total = r.seconds();
        or_nothing(or_hyphen((total > 0.0).then(|| format!("{:.0}", 100.0 * seconds / total))))
    };
    let marks: Vec<QualityMark> = pattern_marks(&shown.result, r);
    let rate = rate(r).filter(|_| was_run).map(|v| fit_significant(v, known_digits(r), 9));
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
        TableCell::number(rate, &marks),
        share(i.view_seconds),
        share(i.preallocate_seconds),
        share(i.transfer_seconds),
        share(i.decide_seconds),
        share(i.sync_seconds),
        stop_reason_label(&r.ended).into(),
        notes.number(how).into(),
    ]
}

fn footer(shown: &PartitionView, spot: RecordSelector<'_>, again: &IntervalsByPattern<'_>) -> Vec<LabelledText> {
    let files = spot.types(&shown.result).map(|t| (format!("type {}", t.pattern_type), file_summary(t)));
    interval_pairs(shown, spot, again)
        .into_iter()
        .chain(deducted_times(shown, spot).map(|text| ("deducted for overruns".to_owned(), text)))
        .chain(submission_summary(shown, spot).map(|text| ("io_uring".to_owned(), text)))
        .chain(files)
        .collect()
}

/// Intervals of the patterns that were measured at least three times, and the numbers of the others. Empty without repetitions.
fn interval_pairs(
    shown: &PartitionView,
    spot: RecordSelector<'_>,
    again: &IntervalsByPattern<'_>,
) -> Vec<LabelledText> {
    let (mut known, mut wide, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
    for r in spot.records(&shown.result).filter(|r| r.calls > 0 && !again.is_empty()) {
        let shown_rate = |v: f64| fit_significant(v, known_digits(r), 7);
        match again.get(&(r.access, r.pattern)).map(|interval| (interval.low, interval.high)) {
            Some((Some(low), Some(high))) if !(Interval { low, high }).is_resolved() => {
                wide.push(r.pattern.to_string());
            }
            Some((Some(low), Some(high))) => {
                known.push(format!("{} [{}, {}]", r.pattern, shown_rate(low), shown_rate(high)));
            }
            // The other patterns have rounds.
            _ if shown.result.config.repeat == RepeatPolicy::Rounds => {}
            _ => unknown.push(r.pattern.to_string()),
        }
    }
    let wide_label = "known to no factor of two";
    let lists = [("95 % intervals, MB/s", known), (wide_label, wide), ("measured less than 3 times", unknown)];
    lists
        .into_iter()
        .filter(|(_, list)| !list.is_empty())
        .map(|(label, list)| (label.to_owned(), list.join(", ")))
        .collect()
}

/// Time deducted from patterns that ended by time because of earlier overruns; None if negligible.
fn deducted_times(shown: &PartitionView, spot: RecordSelector<'_>) -> Option<String> {
    let seen = |r: &&PatternRecord| {
        r.ended == StopReason::Time && deducted_seconds(r) > MIN_DEDUCTED_SHARE * r.scheduled_seconds
    };
    let text = |r: &PatternRecord| format!("{} {} s", r.pattern, fit(deducted_seconds(r), 5));
    let parts: Vec<String> = spot.records(&shown.result).filter(seen).map(text).collect();
    (!parts.is_empty()).then(|| format!("pattern {}", parts.join(", ")))
}

/// None if nothing was submitted.
fn submission_summary(shown: &PartitionView, spot: RecordSelector<'_>) -> Option<String> {
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
        "{}, {} of them with unregistered memory ({}); kernel workers used {} of CPU time ({}); the kernel does not report the number of \
         their operations",
        count(operations, "operation"),
        sum(|s| s.plain),
        with(&|s| s.plain > 0),
        format_seconds(cpu_seconds),
        with(&|s| s.worker_cpu_seconds > 0.0)
    ))
}

fn stop_reason_label(ended: &StopReason) -> &'static str {
    match ended {
        StopReason::Time => "time",
        StopReason::Count => "count",
        StopReason::Space => "space",
        StopReason::TimeGuard => "guard",
        StopReason::Limit => "limit",
        StopReason::Interrupted => "signl",
        StopReason::Error => "error",
        StopReason::NotRun(_) => "-",
    }
}

/// Opening and closing of the files, which are part of the type totals.
fn file_summary(t: &TypeRecord) -> String {
    let segment = t.segment_bytes.map(|b| format!(", segments of {}", format_size(b))).unwrap_or_default();
    let checked = t
        .full_verification
        .map(|v| format!(", full check: {} of {} wrong", v.words_wrong, count(v.words_checked, "word")))
        .unwrap_or_default();
    let hints = hint_list(&t.hints_requested, &t.hints_granted, ", hints at open");
    format!(
        "open {}, close {}, file {}{}{segment}{checked}{hints}",
        format_seconds(t.open_seconds),
        format_seconds(t.close_seconds),
        format_size(t.file_bytes),
        if t.pattern_type.has_private_files() { " of each rank" } else { "" }
    )
}

/// Requested hints, and those in force according to the library; empty without any.
fn hint_list(requested: &[(String, String)], granted: &[(String, String)], title: &str) -> String {
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
        None => "unknown whether direct",
    };
    let hints = hint_list(&r.hints_requested, &r.hints_granted, "; hints requested");
    format!("{}; {cache}{hints}", r.strategy)
}
