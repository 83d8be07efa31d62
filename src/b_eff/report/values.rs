//! The values of a run, and those by one method alone.

use beff_statistics::bootstrap::Interval;

use crate::b_eff::records::CommResult;
use crate::b_eff::values::{AggregateBandwidth, CommDerived, RateEstimate, DEFINED_RANDOM_RINGS};
use crate::frame::report::model::{labelled_texts, HeadlineValue, ReportBlock, ReportSection, TextStyle};
use crate::frame::report::table::{Table, TableCell};
use crate::frame::report::text::{count, percent};
use crate::frame::report::{common, outcome_text};
use crate::frame::units::{format_seconds, format_size};
use crate::frame::values::validity_text;
use crate::frame::words::or_hyphen;
use crate::frame::words::rate;

/// A bandwidth given in bytes per second, in MB/s.
pub(super) fn mb(bytes_per_second: Option<f64>) -> TableCell {
    TableCell::rate(bytes_per_second.map(|rate| rate / 1e6), None, &[])
}

/// A bandwidth given in bytes per second, in MB/s with few digits.
fn short(bytes_per_second: f64) -> String {
    rate(bytes_per_second / 1e6, None)
}

pub(super) fn microseconds(seconds: Option<f64>) -> String {
    or_hyphen(seconds.map(|s| format!("{:.3}", s * 1e6)))
}

/// The interval if it is narrow enough to be shown.
fn resolved(rate: RateEstimate) -> Option<Interval> {
    rate.interval_bytes_per_second.map(Interval::from).filter(Interval::is_resolved)
}

/// `low to high`.
pub(super) fn interval(rate: RateEstimate) -> Option<String> {
    resolved(rate).map(|i| format!("{} to {}", short(i.low), short(i.high)))
}

pub(super) fn value(result: &CommResult, derived: &CommDerived) -> HeadlineValue {
    let value = &derived.value;
    let numbers = labelled_texts([
        ("MB/s, one repetition, 95 %", value.of_repetitions.b_eff.and_then(interval)),
        ("MB/s per process", value.b_eff.map(|l| short(l.per_process_bytes_per_second))),
        ("rings", value.rings.map(|l| short(l.bytes_per_second))),
        ("random rings", value.random.map(|l| short(l.bytes_per_second))),
        ("at Lmax", value.at_lmax.map(|l| short(l.bytes_per_second))),
        ("ping-pong at Lmax", value.ping_pong_bytes_per_second.map(short)),
        ("ping-pong, us at 1 B", value.latency.ping_pong_seconds.map(|s| rate(s * 1e6, None))),
    ]);
    let (tone, mut verdict) = common::verdict(derived.valid, result);
    let quick = if result.config.quick { ", QUICK" } else { "" };
    verdict.push_str(quick);
    let said = |shown: fn(f64) -> String| {
        let both =
            |l: AggregateBandwidth| [l.bytes_per_second, l.per_process_bytes_per_second].map(|rate| shown(rate / 1e6));
        value
            .b_eff
            .map(both)
            .map_or_else(|| "not measured".to_owned(), |[all, each]| format!("{all} MB/s = {each} MB/s per process"))
    };
    let machine = &result.setup.machine;
    let on = format!(" on {}, ", count(machine.ranks, "process"));
    let closing = format!(
        "b_eff = {}{on}Lmax {}, {}, {}{quick}{}{}",
        said(|mb| format!("{mb:.3}")),
        format_size(result.setup.lmax_bytes),
        derived.messages_from.label(),
        validity_text(&derived.criteria, 0),
        outcome_text::oversubscription_suffix(machine),
        outcome_text::result_suffix(result)
    );
    HeadlineValue {
        label: "b_eff".into(),
        value: value.b_eff.map_or_else(|| "not measured".into(), |l| short(l.bytes_per_second)),
        unit: if value.b_eff.is_some() { "MB/s" } else { "" },
        screen_line: vec![
            (TextStyle::Plain, "b_eff = ".into()),
            (TextStyle::Strong, said(|mb| rate(mb, None))),
            (TextStyle::Plain, on),
            (tone, verdict.clone()),
        ],
        verdict: (tone, verdict),
        numbers,
        closing_line: closing,
    }
}

/// Interval of single repetitions.
pub(super) fn repetitions(derived: &CommDerived) -> String {
    let Some(found) = derived.value.of_repetitions.b_eff else {
        return "confidence interval unknown: no repetition is complete".to_owned();
    };
    let (mean, number) = (short(found.mean_bytes_per_second), count(found.repetitions, "repetition"));
    let factor = found.interval_bytes_per_second.and_then(|ends| Interval::from(ends).resolving_factor());
    if let Some(factor) = factor {
        let needed = (found.repetitions as f64 * factor).ceil();
        return format!("one repetition {mean} MB/s, no 95 % interval: {number}, about {needed} needed");
    }
    let known = interval(found).unwrap_or_else(|| "unknown".to_owned());
    format!("one repetition {mean} MB/s, 95 % interval {known}, {number}")
}

pub(super) fn section(result: &CommResult, derived: &CommDerived) -> Option<ReportSection> {
    let value = &derived.value;
    let blocks = vec![
        ReportBlock::Table(levels(result, derived)),
        ReportBlock::Table(latencies(derived)),
        ReportBlock::Table(of_repetitions(derived)),
        ReportBlock::Pairs(labelled_texts([
            ("balance", Some(balance(result, derived))),
            ("memory", Some(memory(derived))),
        ])),
    ];
    let note = "b_eff: logavg of the rings and the random rings, each the logavg over its patterns of the mean over the sizes of the best \
                method and repetition. Latency: time per message and process; ping-pong: half of the round-trip time.";
    ReportSection::of("values", format!("Values on {}", count(value.processes, "process")), note, blocks)
}

fn levels(result: &CommResult, derived: &CommDerived) -> Table {
    let value = &derived.value;
    let random = random_label(result, derived);
    let at_lmax = format!("at Lmax {}", format_size(result.setup.lmax_bytes));
    let rows = [
        (format!("b_eff, {}", derived.messages_from.label()), value.b_eff),
        ("  of it rings".to_owned(), value.rings),
        (format!("  of it {random}"), value.random),
        (at_lmax, value.at_lmax),
        ("  of it rings".to_owned(), value.at_lmax_rings),
        (format!("  of it {random}"), value.at_lmax_random),
    ];
    let all = |level: Option<AggregateBandwidth>| mb(level.map(|l| l.bytes_per_second));
    let each = |level: Option<AggregateBandwidth>| mb(level.map(|l| l.per_process_bytes_per_second));
    let mut table = Table::new("MB/s", 1, ["", "all processes", "per process"])
        .with_rows(rows.map(|(name, level)| [name.into(), all(level), each(level)]));
    table.row(["ping-pong at Lmax, one direction".into(), mb(value.ping_pong_bytes_per_second)]);
    table
}

fn latencies(derived: &CommDerived) -> Table {
    let latency = &derived.value.latency;
    let cells = [latency.rings_seconds, latency.random_seconds, latency.ping_pong_seconds].map(microseconds);
    Table::new("Latency with messages of 1 byte, us", 0, ["rings", "random rings", "ping-pong"]).with_rows([cells])
}

fn of_repetitions(derived: &CommDerived) -> Table {
    let of = &derived.value.of_repetitions;
    let row = |(name, found): (&str, Option<RateEstimate>)| {
        let ends = found.and_then(resolved);
        [
            name.into(),
            mb(found.map(|r| r.mean_bytes_per_second)),
            mb(ends.map(|i| i.low)),
            mb(ends.map(|i| i.high)),
            or_hyphen(found.map(|r| r.repetitions)).into(),
        ]
    };
    let known = [of.b_eff, of.rings, of.random].iter().flatten().any(|r| r.interval_bytes_per_second.is_some());
    let text = if known {
        "b_eff is the best of three repetitions and above the mean of single ones. The interval is that of this mean, by the spread \
         within this run; variation between runs is not included. One wider than a factor of two is not shown."
    } else {
        "Intervals are unknown: fewer than 3 repetitions have all sizes of all patterns."
    };
    Table::new("One repetition, MB/s", 1, ["", "mean", "95 %: from", "to", "repetitions"])
        .with_rows([("b_eff", of.b_eff), ("rings", of.rings), ("random rings", of.random)].map(row))
        .with_note(text)
}

fn random_label(result: &CommResult, derived: &CommDerived) -> String {
    let measured = derived.value.random_rings;
    let wanted = if result.announcement.is_some() { DEFINED_RANDOM_RINGS } else { measured };
    if measured == wanted {
        "random rings".to_owned()
    } else {
        format!("random rings ({measured} of {wanted})")
    }
}

fn balance(result: &CommResult, derived: &CommDerived) -> String {
    match (result.config.rmax_gflops, derived.value.balance_bytes_per_flop) {
        (None, _) => "unknown without the Rmax of LINPACK".to_owned(),
        (Some(rmax), None) => format!("no b_eff to compare with Rmax = {rmax} GFlop/s"),
        (Some(rmax), Some(balance)) => {
            format!("{balance:.5} bytes per floating-point operation: b_eff / Rmax of {rmax} GFlop/s")
        }
    }
}

fn memory(derived: &CommDerived) -> String {
    let memory = format_size(derived.value.memory_bytes);
    match derived.value.memory_seconds {
        None => format!("{memory} of all hosts; no b_eff to derive a time from"),
        Some(seconds) => {
            format!("{} to communicate the {memory} of all hosts once: memory / b_eff", format_seconds(seconds))
        }
    }
}

/// b_eff by one method, compared with the best.
pub(super) fn methods(derived: &CommDerived) -> Option<ReportSection> {
    let value = &derived.value;
    let all = |level: Option<AggregateBandwidth>| mb(level.map(|l| l.bytes_per_second));
    let row = |name: &str,
               [b_eff, rings, random, at_lmax]: [Option<AggregateBandwidth>; 4],
               remark: String|
     -> [TableCell; 7] {
        let each = mb(b_eff.map(|l| l.per_process_bytes_per_second));
        [name.into(), all(b_eff), all(rings), all(random), each, all(at_lmax), remark.into()]
    };
    let head = ["method", "b_eff", "rings", "random", "per process", "at Lmax", ""];
    let mut table = Table::new("MB/s by one method alone", 1, head).with_words();
    for m in &derived.methods {
        let best = value.b_eff.zip(m.b_eff).map(|(all, own)| own.bytes_per_second / all.bytes_per_second);
        let remark = match (best, m.omitted_from_bytes) {
            (Some(share), _) => format!("{} of the best", percent(share)),
            (None, Some(bytes)) => format!("omitted from {}", format_size(bytes)),
            (None, None) => "not completely measured".to_owned(),
        };
        table.row(row(m.method.name(), [m.b_eff, m.rings, m.random, m.at_lmax], remark));
    }
    table.row(row("best of all", [value.b_eff, value.rings, value.random, value.at_lmax], String::new()));
    let left_out = derived.methods.iter().filter(|m| m.omitted_from_bytes.is_some()).count() as u64;
    let left_out = match left_out {
        0 => String::new(),
        number => format!(
            " {} omitted: to save time, large messages were exchanged by the best method alone, and a mean over some of the sizes is no \
             b_eff.",
            count(number, "method")
        ),
    };
    let note = format!("b_eff uses the best method of each size.{left_out}");
    ReportSection::of("methods", "By method", note, vec![ReportBlock::Table(table)])
}
