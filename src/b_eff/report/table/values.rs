//! The values, and the same by one method alone.

use crate::b_eff::records::CommResult;
use crate::b_eff::values::{CommDerived, Level, RANDOM_RINGS};
use crate::frame::report::columns::{mb, or_none, Columns};
use crate::frame::report::criteria;
use crate::frame::report::text::{count, percent, Page};
use crate::frame::units::{format_seconds, format_size};

/// Width of a number.
const NUMBER: usize = 14;
/// Width of the label column.
const LABEL: usize = 44;

pub(super) fn write(page: &mut Page, result: &CommResult, derived: &CommDerived) {
    let value = &derived.value;
    page.heading(&format!("Values on {}: MB/s", count(value.processes, "process")));
    page.line(line("", &["all processes".to_owned(), "per process".to_owned()]));
    let random = format!("  of it {}", random_label(result, derived));
    let b_eff = format!("b_eff, {}", derived.messages_from.words());
    let at_lmax = format!("at Lmax {}", format_size(result.setup.lmax_bytes));
    for (label, level) in [
        (b_eff.as_str(), value.b_eff),
        ("  of it rings", value.rings),
        (&random, value.random),
        (&at_lmax, value.at_lmax),
        ("  of it rings", value.at_lmax_rings),
        (&random, value.at_lmax_random),
    ] {
        let verdict =
            if label == b_eff.as_str() { format!("  {}", criteria::verdict(&derived.criteria)) } else { String::new() };
        let [all, each] = [level.map(|l| l.bytes_per_second), level.map(|l| l.per_process_bytes_per_second)];
        page.line(line(label, &[mb(all, NUMBER), mb(each, NUMBER)]) + &verdict);
    }
    page.line(line("ping-pong at Lmax, one direction", &[mb(value.ping_pong_bytes_per_second, NUMBER)]));
    page.blank();
    let latency = &value.latency;
    page.line(line("", &["rings", "random rings", "ping-pong"].map(str::to_owned)));
    let latencies = [latency.rings_seconds, latency.random_seconds, latency.ping_pong_seconds].map(microseconds);
    page.line(line("latency with messages of 1 byte, us", &latencies));
    repetitions(page, derived);
    page.blank();
    page.field("balance", &balance(result, derived));
    page.field("memory", &memory(derived));
    page.hanging(
        "  b_eff: ",
        "logavg of the rings and the random rings, each the logavg over its patterns of the mean over the sizes of the best \
         method and repetition. Latency: time per message and process; ping-pong: half of the time there and back.",
    );
}

/// Single repetitions with their intervals.
fn repetitions(page: &mut Page, derived: &CommDerived) {
    let of = &derived.value.of_repetitions;
    let rows =
        [("one repetition of b_eff", of.b_eff), ("  of it rings", of.rings), ("  of it random rings", of.random)];
    page.blank();
    page.line(line("", &["mean", "95 %: from", "to", "repetitions"].map(str::to_owned)));
    for (label, rate) in rows {
        let ends = rate.and_then(|r| r.interval_bytes_per_second);
        page.line(line(
            label,
            &[
                mb(rate.map(|r| r.mean_bytes_per_second), NUMBER),
                mb(ends.map(|[low, _]| low), NUMBER),
                mb(ends.map(|[_, high]| high), NUMBER),
                or_none(rate.map(|r| r.repetitions)),
            ],
        ));
    }
    let known = [of.b_eff, of.rings, of.random].iter().flatten().any(|r| r.interval_bytes_per_second.is_some());
    let text = if known {
        "b_eff takes the best of three repetitions and lies above the mean of single ones. The interval is that of this mean, by the \
         spread within this run; what changes from run to run is not in it."
    } else {
        "not known how sure they are: fewer than 3 repetitions have all sizes of all patterns."
    };
    page.hanging("  ", text);
}

fn line(label: &str, cells: &[String]) -> String {
    let cells: String = cells.iter().map(|cell| format!("{cell:>NUMBER$}")).collect();
    format!("  {label:LABEL$}{cells}")
}

fn random_label(result: &CommResult, derived: &CommDerived) -> String {
    let measured = derived.value.random_rings;
    let wanted = if result.announcement.is_some() { RANDOM_RINGS } else { measured };
    if measured == wanted {
        "random rings".to_owned()
    } else {
        format!("random rings ({measured} of {wanted})")
    }
}

fn balance(result: &CommResult, derived: &CommDerived) -> String {
    match (result.config.rmax_gflops, derived.value.balance_bytes_per_flop) {
        (None, _) => "not known without the Rmax of LINPACK".to_owned(),
        (Some(rmax), None) => format!("no b_eff to set against Rmax = {rmax} GFlop/s"),
        (Some(rmax), Some(balance)) => {
            format!("{balance:.5} bytes per floating-point operation: b_eff / Rmax of {rmax} GFlop/s")
        }
    }
}

fn memory(derived: &CommDerived) -> String {
    let memory = format_size(derived.value.memory_bytes);
    match derived.value.memory_seconds {
        None => format!("{memory} of all hosts; no b_eff to communicate it with"),
        Some(seconds) => {
            format!("{} to communicate the {memory} of all hosts once: memory / b_eff", format_seconds(seconds))
        }
    }
}

/// A line of the methods: name, and the levels b_eff, rings, random rings, at Lmax.
type OfMethod = (&'static str, [Option<Level>; 4]);

/// b_eff by one method, and what taking the best of them is worth.
pub(super) fn methods(page: &mut Page, derived: &CommDerived) {
    page.heading("By method: MB/s");
    let all = |level: Option<Level>| level.map(|l| l.bytes_per_second);
    let columns = Columns::<OfMethod>::new()
        .left("method", 14, |(name, _)| name)
        .rate("b_eff", 12, |(_, [b_eff, ..])| all(b_eff))
        .rate("rings", 12, |(_, [_, rings, ..])| all(rings))
        .rate("random", 12, |(_, [_, _, random, _])| all(random))
        .rate("per process", 14, |(_, [b_eff, ..])| b_eff.map(|l| l.per_process_bytes_per_second))
        .rate("at Lmax", 12, |(_, [.., at_lmax])| all(at_lmax));
    page.line(columns.headings());
    let value = &derived.value;
    for m in &derived.methods {
        let best = value.b_eff.zip(m.b_eff).map(|(all, own)| own.bytes_per_second / all.bytes_per_second);
        let remark = match (best, m.left_out_from_bytes) {
            (Some(share), _) => format!("  {} of the best", percent(share)),
            (None, Some(bytes)) => format!("  left out from {}", format_size(bytes)),
            (None, None) => "  not measured as a whole".to_owned(),
        };
        page.line(columns.row((m.method.name(), [m.b_eff, m.rings, m.random, m.at_lmax])) + &remark);
    }
    page.line(columns.row(("best of all", [value.b_eff, value.rings, value.random, value.at_lmax])));
    let left_out = derived.methods.iter().filter(|m| m.left_out_from_bytes.is_some()).count() as u64;
    if left_out > 0 {
        let text =
            "left out: to save time large messages were exchanged by the best method alone, and a mean over some of \
                    the sizes is no b_eff.";
        page.hanging("  ", &format!("{} {text}", count(left_out, "method")));
    }
}

/// A latency in microseconds.
pub(super) fn microseconds(seconds: Option<f64>) -> String {
    or_none(seconds.map(|s| format!("{:.3}", s * 1e6)))
}
