//! One screen of a run of b_eff: the value and whether it counts, rings, random rings and ping-pong with bars over the sizes, the
//! methods, what stands out, what to trust, and what to type next. At most 40 lines of 80 columns.

use crate::b_eff::records::CommResult;
use crate::b_eff::values::standout::{findings, Finding};
use crate::b_eff::values::{CommDerived, Level, SizeAverage};
use crate::frame::report::bars::Scale;
use crate::frame::report::columns::NONE;
use crate::frame::report::sheet::{fixed, right, span, Look, Screen};
use crate::frame::report::text::{count, figure, percent};
use crate::frame::report::{screen, Place};
use crate::frame::units::{format_seconds, format_size};

use super::table::header;

/// Width of the names of lines and of numbers.
const NAME: usize = 14;
const NUMBER: usize = 11;
/// Bars of sizes at most; a damaged file may have any number.
const BARS: usize = 24;

/// The screen of one run.
#[must_use]
pub fn screen(result: &CommResult, derived: &CommDerived, place: &Place) -> Screen {
    Screen::within(place.columns, screen::most_lines(1), |page| write(page, result, derived, place))
}

fn write(page: &mut Screen, result: &CommResult, derived: &CommDerived, place: &Place) {
    let (config, machine) = (&result.config, &result.setup.machine);
    screen::banner(page, result, "DATA CORRUPTION: messages received were not the messages sent.");
    screen::head(page, machine, "b_eff", None);
    let asked = format!(
        "messages of 1 byte to {} (Lmax), at most {}",
        format_size(result.setup.lmax_bytes),
        format_seconds(config.time_seconds)
    );
    screen::times(page, &asked, result.ending.outcome, result.ending.real_seconds);
    screen::settings(page, header::unusual(result));
    value(page, result, derived);
    numbers(page, derived);
    curves(page, derived);
    methods(page, derived);
    let texts: Vec<String> = findings(&derived.value, &derived.methods, &derived.sizes).iter().map(sentence).collect();
    screen::findings(page, result, &texts);
    screen::trust(page, result, checked(result), &derived.warnings, false);
    screen::end(page, place, screen::has_failed(result), None);
}

/// How much of the data was compared.
pub(super) fn checked(result: &CommResult) -> Option<String> {
    let bytes = result.bytes_checked();
    (bytes > 0).then(|| format!("{} received and compared: all as sent", format_size(bytes)))
}

/// The line for grep, and why the value does not count.
fn value(page: &mut Screen, result: &CommResult, derived: &CommDerived) {
    page.blank();
    let value = derived.value.b_eff.map_or_else(
        || "not measured".to_owned(),
        |b| {
            let [all, each] =
                [b.bytes_per_second, b.per_process_bytes_per_second].map(|rate| screen::rate(rate / 1e6, None));
            format!("{all} MB/s = {each} MB/s per process")
        },
    );
    let [verdict, marks] = screen::verdict(derived.valid, result);
    let quick = if result.config.quick { ", QUICK" } else { "" };
    page.line([
        span(Look::Plain, "b_eff = "),
        span(Look::Strong, value),
        span(Look::Plain, format!(" on {}, ", count(result.setup.machine.ranks, "process"))),
        verdict,
        marks,
        span(Look::Bad, quick),
    ]);
    screen::missing(page, result, [("", derived.criteria.as_slice())]);
    page.line([span(Look::Plain, format!("  {}", repetitions(derived)))]);
}

/// How far single repetitions of everything agree.
pub(super) fn repetitions(derived: &CommDerived) -> String {
    let Some(found) = derived.value.of_repetitions.b_eff else {
        return "how sure it is: not known, no repetition is whole".to_owned();
    };
    let [mean, number] =
        [screen::rate(found.mean_bytes_per_second / 1e6, None), count(found.repetitions, "repetition")];
    match found.interval_bytes_per_second.map(|ends| ends.map(|rate| screen::rate(rate / 1e6, None))) {
        Some([low, high]) => format!("one repetition {mean} MB/s, 95 % interval {low} to {high}, {number}"),
        None => format!("one repetition {mean} MB/s, 95 % interval not known, {number}"),
    }
}

fn mb(level: Option<f64>) -> String {
    right(&level.map_or_else(|| NONE.to_owned(), |rate| screen::rate(rate / 1e6, None)), NUMBER)
}

fn us(seconds: Option<f64>) -> String {
    right(&seconds.map_or_else(|| NONE.to_owned(), |s| screen::rate(s * 1e6, None)), NUMBER)
}

/// Rings, random rings, ping-pong.
fn numbers(page: &mut Screen, derived: &CommDerived) {
    let (value, latency) = (&derived.value, &derived.value.latency);
    let all = |level: Option<Level>| mb(level.map(|l| l.bytes_per_second));
    let each = |level: Option<Level>| mb(level.map(|l| l.per_process_bytes_per_second));
    page.blank();
    let heads = ["mean", "a process", "at Lmax", "us at 1 B"].map(|head| right(head, NUMBER)).concat();
    page.line([span(Look::Quiet, format!("  {:NAME$}{heads}", "MB/s"))]);
    for (name, cells) in [
        ("rings", [all(value.rings), each(value.rings), all(value.at_lmax_rings), us(latency.rings_seconds)]),
        (
            "random rings",
            [all(value.random), each(value.random), all(value.at_lmax_random), us(latency.random_seconds)],
        ),
        (
            "ping-pong",
            [right("", NUMBER), right("", NUMBER), mb(value.ping_pong_bytes_per_second), us(latency.ping_pong_seconds)],
        ),
    ] {
        page.line([span(Look::Plain, format!("  {name:NAME$}{}", cells.concat()))]);
    }
    screen::note(page, "rings: each rank exchanges with two neighbours; random: ranks in random order");
    screen::note(page, "mean: over all sizes, each by its best method; b_eff: mean of rings and random");
}

type Rate = fn(&SizeAverage) -> Option<f64>;

/// A bar for each size.
fn curves(page: &mut Screen, derived: &CommDerived) {
    let lines: [(&str, Rate); 3] = [
        ("rings", |s| s.rings_bytes_per_second),
        ("random rings", |s| s.random_bytes_per_second),
        ("ping-pong", |s| s.ping_pong_bytes_per_second),
    ];
    let sizes = &derived.sizes[..derived.sizes.len().min(BARS)];
    let (Some(first), Some(last)) = (sizes.first(), sizes.last()) else { return };
    let Some(scale) = Scale::of(lines.iter().flat_map(|(_, rate)| sizes.iter().filter_map(rate))) else { return };
    page.blank();
    let ends = format!("{} to {}", format_size(first.message_bytes), format_size(last.message_bytes));
    page.line([span(Look::Quiet, format!("  {:NAME$}{}", "by size", ends))]);
    for (name, rate) in lines {
        let bars: String = sizes.iter().map(|s| rate(s).map_or(' ', |v| scale.bar(v))).collect();
        page.line([span(Look::Plain, format!("  {name:NAME$}{bars}"))]);
    }
    let [low, high] = [scale.low, scale.high].map(|v| screen::rate(v / 1e6, Some(2)));
    screen::note(page, &format!("bars: logarithmic, {low} to {high} MB/s, a bar for each message size"));
}

/// What each method alone would have given.
fn methods(page: &mut Screen, derived: &CommDerived) {
    let rated: Vec<String> = derived
        .methods
        .iter()
        .filter_map(|m| {
            let share = m.b_eff?.bytes_per_second / derived.value.b_eff?.bytes_per_second;
            Some(format!("{} {}", m.method.name(), percent(share)))
        })
        .collect();
    if !rated.is_empty() {
        let text = format!("{} of b_eff", rated.join(", "));
        screen::note(page, &format!("{} {text}", fixed("by method", NAME - 1)));
    }
}

pub(super) fn sentence(finding: &Finding) -> String {
    match finding {
        Finding::Method { slow, fast, factor } => {
            format!("{}: {} times slower than {}", slow.name(), figure(*factor), fast.name())
        }
        Finding::Random { factor } => {
            format!("random rings: {} times slower than rings; neighbours in rings are nearer", figure(*factor))
        }
        Finding::Drop { from_bytes, to_bytes, factor } => {
            let [from, to] = [from_bytes, to_bytes].map(|bytes| format_size(*bytes));
            format!(
                "messages of {to}: {} times slower than those of {from}; bandwidth should grow with the size",
                figure(*factor)
            )
        }
    }
}

#[cfg(test)]
mod tests;
