//! Cost of the measurement and set-up of the run, for reproducing it or explaining a number.

use std::ops::Add;

use crate::frame::config::RepetitionPolicy;
use crate::frame::report::costs::{bare_loop_cells, MeasurementCosts, BARE_LOOP_COLUMNS};
use crate::frame::report::model::{labelled_texts, ReportBlock, ReportSection};
use crate::frame::report::table::Table;
use crate::frame::report::text::{count, list, nanoseconds, percent};
use crate::frame::report::{common, Views};
use crate::frame::units::{format_seconds, format_size};
use crate::imb_io::records::{ImbResult, RowRecord};
use crate::imb_io::values::{ImbBareValue, ImbDerived};

use super::{comparable, head, state};

/// Overhead of the harness compared with bare loops in C (`--bare`).
pub(super) fn bare(derived: &ImbDerived) -> Option<ReportSection> {
    let row = |v: &ImbBareValue| {
        let what = [v.benchmark.clone(), v.ranks.to_string(), format_size(v.sample_bytes)];
        what.into_iter().chain(bare_loop_cells(v.compared))
    };
    let head = ["benchmark", "ranks", "size"].into_iter().chain(BARE_LOOP_COLUMNS);
    let table = Table::new("Time of a call, usec", 1, head).with_words().with_rows(derived.bare.iter().map(row));
    let note = "Time of a call in usec: in turns in one process, slowest rank; medians, the ratio over pairs.";
    let blocks = if table.is_empty() { Vec::new() } else { vec![ReportBlock::Table(table)] };
    ReportSection::of("bare", "Harness loops compared with bare C loops", note, blocks)
}

/// Announced and real time, and the cost of the measurement itself.
pub(super) fn costs(result: &ImbResult, derived: &ImbDerived) -> ReportSection {
    let (setup, ending) = (&result.setup, &result.ending);
    let ratio = derived.verdict.real_to_expected.map_or_else(String::new, |r| format!("; real / announced {r:.2}"));
    // The sum of an empty iterator would be -0.
    let rows = result.rows.iter().map(|r| r.real_seconds).fold(0.0, f64::add);
    let pilot = result.announcement.as_ref().map_or(0.0, |a| a.pilot_seconds);
    let real = format!(
        "{} for {} with preparation, pilot and data comparison; pilot of the run {}; data comparison {}; file removal {}",
        format_seconds(rows),
        count(result.rows.len() as u64, "row"),
        format_seconds(pilot),
        format_seconds(ending.verify_seconds),
        format_seconds(ending.cleanup_seconds)
    );
    let load = result.announcement.as_ref().and_then(|a| a.cpu_load).map(|load| {
        let unit = nanoseconds(load.unit_seconds * 1e9);
        format!("one unit takes {unit}; calibration error up to {}", percent(load.calibration_error))
    });
    let own = labelled_texts([
        ("time", Some(format!("{}{ratio}", head::time(result)))),
        ("real time", Some(real)),
        ("repetitions", Some(repetitions(result))),
        ("CPU load", load),
    ]);
    let measured: Vec<&RowRecord> = result.measurements().collect();
    let costs = MeasurementCosts {
        harness: &[
            ("clock step", setup.clock_resolution_ns),
            ("time stamp", setup.timestamp_ns),
            ("barrier", setup.barrier_ns),
        ],
        rank_memory_bytes: [ending.rank_memory_planned_bytes, ending.rank_memory_high_water_bytes],
        records: &measured,
        noun: "row",
        name: |r| r.benchmark.clone(),
        allocations: |r| r.allocations_in_clock,
        interference: |r| r.interference.as_ref(),
    };
    let blocks = vec![ReportBlock::Pairs(own.into_iter().chain(costs.pairs()).collect())];
    ReportSection { name: "costs", title: "Schedule and costs".into(), note: String::new(), blocks }
}

/// Number of repetitions, and their limits.
fn repetitions(result: &ImbResult) -> String {
    let config = &result.config;
    let until = config.until_share.map(|share| format!("until within {}", percent(share)));
    let asked = match config.repeat {
        RepetitionPolicy::Off => return "none; --repeat gives intervals".to_owned(),
        RepetitionPolicy::Auto => "within the time limit of each row".to_owned(),
        RepetitionPolicy::Times(times) => format!("at most {}", count(times, "round")),
    };
    let seconds = result.repetitions.iter().map(|again| again.measurement.real_seconds).fold(0.0, f64::add);
    let number = count(result.repetitions.len() as u64, "row");
    let parts = [Some(asked), until, Some(format!("{number} repeated in {}", format_seconds(seconds)))];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

pub(super) fn set_up(result: &ImbResult) -> ReportSection {
    let (config, setup) = (&result.config, &result.setup);
    let kept = if config.keep_files { ", files of the last rows kept" } else { "" };
    let own = labelled_texts([
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
