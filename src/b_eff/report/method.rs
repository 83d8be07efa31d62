//! What measuring cost, and how it was set up: what a reader needs to repeat the run or to explain a number.

use std::collections::BTreeSet;

use crate::b_eff::records::{CommPatternRecord, CommResult, Effort, LoopRecord};
use crate::b_eff::values::{BareValue, CommDerived, LOOP_SECONDS, MOST_ITERATIONS, RANDOM_RINGS, SIZES};
use crate::frame::config::Repeat;
use crate::frame::report::common;
use crate::frame::report::costs::{compared, Costs, BESIDE_BARE};
use crate::frame::report::model::{pairs, Block, Section};
use crate::frame::report::table::Table;
use crate::frame::report::text::{count, percent};
use crate::frame::units::{format_seconds, format_size};
use crate::frame::values::binding::loose_ranks;
use crate::frame::values::Compared;

use super::{comparable, head};

/// Changes of the effort shown.
const CHANGES: usize = 3;

/// What our loops cost beside bare ones in C (`--bare`).
pub(super) fn bare(derived: &CommDerived) -> Option<Section> {
    let of_a_message = |v: &BareValue| Compared {
        ours_seconds: v.compared.ours_seconds / v.calls as f64,
        bare_seconds: v.compared.bare_seconds / v.calls as f64,
        ..v.compared
    };
    let row = |v: &BareValue| {
        let what = [v.pattern.clone(), v.method.name().to_owned(), format_size(v.message_bytes)];
        what.into_iter().chain(compared(of_a_message(v)))
    };
    let head = ["pattern", "calls", "message"].into_iter().chain(BESIDE_BARE);
    let table = Table::new("Time of a message, us", 2, head).with_words().with(derived.bare.iter().map(row));
    let note = "In turns in one process, slowest rank; medians, the ratio over pairs. Ping-pong: half of the time there and back; Sendrecv: \
                one call.";
    let blocks = if table.is_empty() { Vec::new() } else { vec![Block::Table(table)] };
    Section::of("bare", "Our loops beside bare C loops of the same calls", note, blocks)
}

pub(super) fn costs(result: &CommResult) -> Section {
    let (setup, ending) = (&result.setup, &result.ending);
    let announced = result.announcement.as_ref();
    let own = pairs([
        ("time", Some(head::time(result))),
        ("real time", Some(parts(result))),
        ("repeats", Some(repeats(result))),
        ("announced", announced.map(|told| effort(result, &told.effort))),
        ("pilot", announced.map(|told| format!("{} measured", count(told.pilot.len() as u64, "loop")))),
    ]);
    let change = |(at, to): &(u64, Effort)| format!("from {} on: {}", visit(result, *at), effort(result, to));
    let more = ending.efforts.len().checked_sub(CHANGES).filter(|more| *more > 0);
    let more = more.map(|more| format!("and {} more; all are in the JSON document", count(more as u64, "change")));
    let changes = ending.efforts.iter().take(CHANGES).map(change).chain(more).map(|text| ("changed".to_owned(), text));
    let measured: Vec<&CommPatternRecord> = result.measured().collect();
    let costs = Costs {
        harness: &[
            ("clock step", setup.clock_resolution_ns),
            ("clock reading", setup.clock_read_ns),
            ("barrier", setup.barrier_ns),
        ],
        rank_memory_bytes: [ending.rank_memory_planned_bytes, ending.rank_memory_high_water_bytes],
        records: &measured,
        noun: "pattern",
        name: |p| p.pattern.clone(),
        allocations: |p| p.allocations_in_clock,
        machine: |p| p.machine.as_ref(),
    };
    let blocks = vec![Block::Pairs(own.into_iter().chain(changes).chain(costs.pairs()).collect())];
    Section { name: "costs", title: "Schedule and costs".into(), note: String::new(), blocks }
}

/// A pattern of the plan, counted on through the repetitions.
fn visit(result: &CommResult, at: u64) -> String {
    let patterns = result.setup.patterns.max(1);
    match (at % patterns, at / patterns) {
        (pattern, 0) => format!("pattern {pattern} of the plan"),
        (pattern, repetition) => format!("pattern {pattern} in repetition {}", repetition + 1),
    }
}

/// Where the real time went as far as it was recorded.
fn parts(result: &CommResult) -> String {
    let loops: Vec<&LoopRecord> = result.patterns.iter().flat_map(|p| &p.sizes).flat_map(|s| &s.loops).collect();
    let inside: f64 = loops.iter().map(|l| l.seconds).sum();
    let patterns: f64 = result.patterns.iter().map(|p| p.real_seconds).sum();
    let share = if patterns > 0.0 { format!(", {} of it", percent(inside / patterns)) } else { String::new() };
    format!(
        "{} for {}; inside the clock {}{share}, in {}; laying out memory and pilot {}; comparing data {}",
        format_seconds(patterns),
        count(result.patterns.len() as u64, "pattern"),
        format_seconds(inside),
        count(loops.len() as u64, "loop"),
        format_seconds(result.ending.pilot_seconds),
        format_seconds(result.ending.verify_seconds)
    )
}

/// What became of the time that was left.
fn repeats(result: &CommResult) -> String {
    let config = &result.config;
    let asked = match (config.repeat, config.until_share) {
        (Repeat::Off, _) => return "none: --repeat off, or from before there were any".to_owned(),
        (Repeat::Auto, None) => "in the time that is left".to_owned(),
        (Repeat::Auto, Some(share)) => {
            format!("in the time that is left, until b_eff is known within {}", percent(share))
        }
        (Repeat::Times(times), None) => format!("{} at most", count(times, "round")),
        (Repeat::Times(times), Some(share)) => {
            format!("{} at most, until b_eff is known within {}", count(times, "round"), percent(share))
        }
    };
    let visits = |p: &CommPatternRecord| {
        let repetitions: BTreeSet<u32> = p.sizes.iter().flat_map(|s| &s.loops).map(|one| one.repetition).collect();
        repetitions.len() as u64
    };
    let number: u64 = result.repeats.iter().map(visits).sum();
    let seconds: f64 = result.repeats.iter().map(|p| p.real_seconds).sum();
    format!("{asked}; {} of single patterns in {}", count(number, "repetition"), format_seconds(seconds))
}

fn effort(result: &CommResult, effort: &Effort) -> String {
    let size = |index: u64| usize::try_from(index).ok().and_then(|i| result.setup.sizes_bytes.get(i));
    let sizes = match size(effort.single_from) {
        None => format!("all {SIZES} sizes by all methods"),
        Some(bytes) => format!("sizes from {} on by the best method alone", format_size(*bytes)),
    };
    let once = match size(effort.once_from) {
        None => String::new(),
        Some(bytes) => format!(", from {} on without repetitions", format_size(*bytes)),
    };
    let extras = if effort.extras { "patterns outside the average too" } else { "no patterns outside the average" };
    format!(
        "loops of {}, {sizes}{once}, {} of {RANDOM_RINGS} random rings, {extras}",
        format_seconds(effort.loop_seconds),
        effort.random_rings
    )
}

pub(super) fn set_up(result: &CommResult) -> Section {
    let setup = &result.setup;
    let loops = format!(
        "{MOST_ITERATIONS} iterations at most, at least one, of {} to {} by the definition; 3 repetitions of 3 methods; a barrier before \
         each loop; the slowest rank counts",
        format_seconds(LOOP_SECONDS),
        format_seconds(2.0 * LOOP_SECONDS)
    );
    let sizes: Vec<String> = setup.sizes_bytes.iter().map(u64::to_string).collect();
    let own = pairs([
        ("patterns", Some(format!("{}: {}", count(setup.patterns, "pattern"), head::families(result)))),
        ("sizes", Some(format!("{} bytes", sizes.join(", ")))),
        ("memory", Some(head::pages(result))),
        ("loops", Some(loops)),
        ("ranks", Some(placement(result))),
        // Newer results have it with the machine.
        ("binding", setup.machine.binding.is_none().then(|| binding(result))),
    ]);
    common::set_up(&setup.machine, None, &comparable::own_facts(result), own)
}

/// Ranks whose place is shown; all are in the JSON document.
const PLACES: usize = 16;

/// What pins the ranks, and whether it did.
fn binding(result: &CommResult) -> String {
    let setup = &result.setup;
    let by = setup.binding.as_deref().unwrap_or("the launcher does not tell");
    match loose_ranks(&setup.placement).len() as u64 {
        0 => format!("each rank on one core; {by}"),
        loose => format!("{} of {} NOT BOUND to one core; {by}", loose, count(setup.placement.len() as u64, "rank")),
    }
}

/// `numbered ...: 0 on node01 (CPUs 0), ...`.
fn placement(result: &CommResult) -> String {
    let setup = &result.setup;
    let host = |index: u64| usize::try_from(index).ok().and_then(|i| setup.machine.hosts.get(i));
    let places: Vec<String> = setup
        .placement
        .iter()
        .take(PLACES)
        .enumerate()
        .map(|(rank, p)| format!("{rank} {} CPUs {}", host(p.host).map_or("?", |h| &h.name), p.cpus))
        .collect();
    let more = setup.placement.len().saturating_sub(PLACES);
    let more = if more > 0 { format!("; and {more} more in the JSON document") } else { String::new() };
    format!("{}; {}{more}", head::numbering(setup.numbering), places.join("; "))
}
