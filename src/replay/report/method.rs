//! What measuring cost, and how it was set up.

use crate::frame::report::common;
use crate::frame::report::costs::Costs;
use crate::frame::report::machine;
use crate::frame::report::model::{pairs, Block, Section};
use crate::frame::report::text::list;
use crate::frame::units::{format_seconds, format_size};
use crate::replay::records::{PassEnd, ReplayResult};

use super::{comparable, head};

/// Passes whose time is shown.
const PASSES: usize = 8;

pub(super) fn costs(result: &ReplayResult) -> Section {
    let (setup, ending) = (&result.setup, &result.ending);
    let passes = result.passes.iter().filter(|p| !matches!(p.ended, PassEnd::NotRun(_))).take(PASSES);
    let spans = passes.map(|p| format!("{} pass {}: {}", p.backend, p.pass, format_seconds(p.span_seconds)));
    let recorded = format_seconds(setup.profile.span_seconds);
    let spans = format!("first to last call: recorded {recorded}; {}", list(&spans.collect::<Vec<_>>()));
    let real = format!(
        "{}; making files {}, reading the profile and making calls ready {}, comparing data {}, removing files {}",
        machine::took(ending.outcome, ending.real_seconds),
        format_seconds(ending.prefill_seconds),
        format_seconds(ending.prepare_seconds),
        format_seconds(ending.verify_seconds),
        format_seconds(ending.cleanup_seconds)
    );
    let harness =
        [("clock step", setup.clock_resolution_ns), ("clock", setup.clock_read_ns), ("barrier", setup.barrier_ns)];
    let profiler = setup.profile.cost_ns.map(|ns| ("a recorded call", ns));
    let costs = Costs {
        harness: &harness.into_iter().chain(profiler).collect::<Vec<_>>(),
        rank_memory_bytes: [setup.data_bytes, ending.rank_memory_high_water_bytes],
        records: &result.passes,
        noun: "pass",
        name: |p| p.backend.clone(),
        allocations: |p| p.allocations_in_clock,
        machine: |p| p.machine.as_ref(),
    };
    let own = pairs([("time", Some(spans)), ("real time", Some(real))]);
    let blocks = vec![Block::Pairs(own.into_iter().chain(costs.pairs()).collect())];
    Section { name: "costs", title: "Costs".into(), note: String::new(), blocks }
}

pub(super) fn set_up(result: &ReplayResult) -> Section {
    let (config, setup) = (&result.config, &result.setup);
    let kept = if config.keep_files { ", files of the last passes left there" } else { "" };
    let own = pairs([
        ("data", Some(format!("seed {}; files take up to {}", config.seed, format_size(setup.space_bytes)))),
        ("recordings", Some(head::recordings(&setup.profile))),
        ("files", Some(format!("{}{kept}", setup.run_dir))),
    ]);
    common::set_up(&setup.machine, Some(&setup.storage), &comparable::own_facts(result), own)
}
