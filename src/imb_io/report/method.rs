//! What measuring cost, and how it was set up: what a reader needs to repeat the run or to explain a number.

use std::ops::Add;

use crate::frame::config::Repeat;
use crate::frame::report::costs::{compared, Costs, BESIDE_BARE};
use crate::frame::report::model::{pairs, Block, Section};
use crate::frame::report::table::Table;
use crate::frame::report::text::{count, list, nanoseconds, percent};
use crate::frame::report::{common, Views};
use crate::frame::units::{format_seconds, format_size};
use crate::imb_io::records::{ImbResult, RowRecord};
use crate::imb_io::values::{ImbBareValue, ImbDerived};

use super::{comparable, head, state};

/// What our loops cost beside bare ones in C (`--bare`).
pub(super) fn bare(derived: &ImbDerived) -> Option<Section> {
    let row = |v: &ImbBareValue| {
        let what = [v.benchmark.clone(), v.ranks.to_string(), format_size(v.sample_bytes)];
        what.into_iter().chain(compared(v.compared))
    };
    let head = ["benchmark", "ranks", "size"].into_iter().chain(BESIDE_BARE);
    let table = Table::new("Time of a call, usec", 1, head).with_words().with(derived.bare.iter().map(row));
    let note = "Time of a call in usec: in turns in one process, slowest rank; medians, the ratio over pairs.";
    let blocks = if table.is_empty() { Vec::new() } else { vec![Block::Table(table)] };
    Section::of("bare", "Our loops beside bare C loops of the same calls", note, blocks)
}

/// Announced against real time, and what measuring itself cost.
pub(super) fn costs(result: &ImbResult, derived: &ImbDerived) -> Section {
    let (setup, ending) = (&result.setup, &result.ending);
    let ratio = derived.verdict.real_to_expected.map_or_else(String::new, |r| format!("; real / announced {r:.2}"));
    // A sum of nothing would be -0.
    let rows = result.rows.iter().map(|r| r.real_seconds).fold(0.0, f64::add);
    let pilot = result.announcement.as_ref().map_or(0.0, |a| a.pilot_seconds);
    let real = format!(
        "{} for {} with preparation, trial and comparing data; pilot {}; comparing data {}; removing files {}",
        format_seconds(rows),
        count(result.rows.len() as u64, "row"),
        format_seconds(pilot),
        format_seconds(ending.verify_seconds),
        format_seconds(ending.cleanup_seconds)
    );
    let load = result.announcement.as_ref().and_then(|a| a.cpu_load).map(|load| {
        let unit = nanoseconds(load.unit_seconds * 1e9);
        format!("one unit takes {unit}; as calibrated up to {} off", percent(load.calibration_error))
    });
    let own = pairs([
        ("time", Some(format!("{}{ratio}", head::time(result)))),
        ("real time", Some(real)),
        ("repeats", Some(repeats(result))),
        ("CPU load", load),
    ]);
    let measured: Vec<&RowRecord> = result.measured().collect();
    let costs = Costs {
        harness: &[
            ("clock step", setup.clock_resolution_ns),
            ("end of a repetition", setup.lap_ns),
            ("barrier", setup.barrier_ns),
        ],
        rank_memory_bytes: [ending.rank_memory_planned_bytes, ending.rank_memory_high_water_bytes],
        records: &measured,
        noun: "row",
        name: |r| r.benchmark.clone(),
        allocations: |r| r.allocations_in_clock,
        machine: |r| r.machine.as_ref(),
    };
    let blocks = vec![Block::Pairs(own.into_iter().chain(costs.pairs()).collect())];
    Section { name: "costs", title: "Schedule and costs".into(), note: String::new(), blocks }
}

/// How often rows were measured again, and why no more.
fn repeats(result: &ImbResult) -> String {
    let config = &result.config;
    let until = config.until_share.map(|share| format!("until known within {}", percent(share)));
    let asked = match config.repeat {
        Repeat::Off => return "none; --repeat gives intervals".to_owned(),
        Repeat::Auto => "within the time limit of each row".to_owned(),
        Repeat::Times(times) => format!("{} more at most", count(times, "round")),
    };
    let seconds = result.repeats.iter().map(|again| again.measured.real_seconds).fold(0.0, f64::add);
    let number = count(result.repeats.len() as u64, "row");
    let parts = [Some(asked), until, Some(format!("{number} measured again in {}", format_seconds(seconds)))];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

pub(super) fn set_up(result: &ImbResult) -> Section {
    let (config, setup) = (&result.config, &result.setup);
    let kept = if config.keep_files { ", files of the last rows left there" } else { "" };
    let own = pairs([
        ("seed", Some(config.seed.to_string())),
        ("compared", Some(state::compared(config).to_owned())),
        ("directory of files", Some(format!("{}{kept}", setup.run_dir))),
        ("output", Some(output(result))),
    ]);
    common::set_up(&setup.machine, Some(&setup.storage), &comparable::own_facts(result), own)
}

fn output(result: &ImbResult) -> String {
    let Some(prefix) = &result.config.out else { return "standard output alone".to_owned() };
    let suffixes = [".jsonl".to_owned()].into_iter().chain(result.suffixes());
    list(&suffixes.map(|suffix| format!("{}{suffix}", prefix.display())).collect::<Vec<_>>())
}
