//! The values, and the same by one method alone.

use crate::b_eff::records::CommResult;
use crate::b_eff::values::{CommDerived, Level, RANDOM_RINGS};
use crate::frame::report::criteria;
use crate::frame::report::text::{count, percent, Page};
use crate::frame::units::{format_seconds, format_size};

use super::{mb, microseconds};

/// Width of a number.
const NUMBER: usize = 14;
/// Width of the label column.
const LABEL: usize = 44;

pub(super) fn write(page: &mut Page, result: &CommResult, derived: &CommDerived) {
    let value = &derived.value;
    let processes =
        if value.processes == 1 { "1 process".to_owned() } else { format!("{} processes", value.processes) };
    page.heading(&format!("Values on {processes}: MB/s"));
    page.line(format!("  {:LABEL$}{:>NUMBER$}{:>NUMBER$}", "", "all processes", "per process"));
    let verdict = format!("  {}", criteria::verdict(&derived.criteria));
    level(page, "b_eff", value.b_eff, &verdict);
    let random = random_label(result, derived);
    level(page, "  of it rings", value.rings, "");
    level(page, &format!("  of it {random}"), value.random, "");
    level(page, &format!("at Lmax {}", format_size(result.setup.lmax_bytes)), value.at_lmax, "");
    level(page, "  of it rings", value.at_lmax_rings, "");
    level(page, &format!("  of it {random}"), value.at_lmax_random, "");
    page.line(format!(
        "  {:LABEL$}{}",
        "ping-pong at Lmax, one direction",
        mb(value.ping_pong_bytes_per_second, NUMBER)
    ));
    page.blank();
    let latency = &value.latency;
    page.line(format!("  {:LABEL$}{:>NUMBER$}{:>NUMBER$}{:>NUMBER$}", "", "rings", "random rings", "ping-pong"));
    page.line(format!(
        "  {:LABEL$}{}{}{}",
        "latency with messages of 1 byte, us",
        microseconds(latency.rings_seconds, NUMBER),
        microseconds(latency.random_seconds, NUMBER),
        microseconds(latency.ping_pong_seconds, NUMBER)
    ));
    page.blank();
    page.field("balance", &balance(result, derived));
    page.field("memory", &memory(derived));
    page.hanging(
        "  b_eff: ",
        "logavg of the rings and the random rings, each the logavg over its patterns of the mean over the sizes of the best \
         method and repetition. Latency: time per message and process; ping-pong: half of the time there and back.",
    );
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

fn level(page: &mut Page, label: &str, level: Option<Level>, remark: &str) {
    page.line(format!(
        "  {label:LABEL$}{}{}{remark}",
        mb(level.map(|l| l.bytes_per_second), NUMBER),
        mb(level.map(|l| l.per_process_bytes_per_second), NUMBER)
    ));
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

/// b_eff by one method, and what taking the best of them is worth.
pub(super) fn methods(page: &mut Page, derived: &CommDerived) {
    const NAME: usize = 14;
    page.heading("By method: MB/s");
    page.line(format!(
        "  {:NAME$}{:>12}{:>12}{:>12}{:>14}{:>12}",
        "method", "b_eff", "rings", "random", "per process", "at Lmax"
    ));
    let line = |name: &str, [b_eff, rings, random, lmax]: [Option<Level>; 4]| {
        let all = |level: Option<Level>| mb(level.map(|l| l.bytes_per_second), 12);
        let per_process = mb(b_eff.map(|l| l.per_process_bytes_per_second), 14);
        format!("  {name:NAME$}{}{}{}{per_process}{}", all(b_eff), all(rings), all(random), all(lmax))
    };
    for m in &derived.methods {
        let best = derived.value.b_eff.zip(m.b_eff).map(|(all, own)| own.bytes_per_second / all.bytes_per_second);
        let remark = match (best, m.left_out_from_bytes) {
            (Some(share), _) => format!("  {} of the best", percent(share)),
            (None, Some(bytes)) => format!("  left out from {}", format_size(bytes)),
            (None, None) => "  not measured as a whole".to_owned(),
        };
        page.line(format!("{}{remark}", line(m.method.name(), [m.b_eff, m.rings, m.random, m.at_lmax])));
    }
    let value = &derived.value;
    page.line(line("best of all", [value.b_eff, value.rings, value.random, value.at_lmax]));
    let left_out = derived.methods.iter().filter(|m| m.left_out_from_bytes.is_some()).count() as u64;
    if left_out > 0 {
        page.hanging(
            "  ",
            &format!(
                "{} left out: to save time large messages were exchanged by the best method alone, and a mean over some of \
                 the sizes is no b_eff.",
                count(left_out, "method")
            ),
        );
    }
}
