//! Cost of measuring, and the set-up.

use crate::frame::report::common;
use crate::frame::report::costs::MeasurementCosts;
use crate::frame::report::machine;
use crate::frame::report::model::{labelled_texts, ReportBlock, ReportSection};
use crate::frame::report::text::list;
use crate::frame::units::{format_seconds, format_size};
use crate::replay::records::{repetition_name, RepetitionStatus, ReplayResult};

use super::{comparable, head};

const MAX_REPETITIONS: usize = 8;

pub(super) fn costs_section(result: &ReplayResult) -> ReportSection {
    let (setup, ending) = (&result.setup, &result.ending);
    let executed =
        result.repetitions.iter().filter(|p| !matches!(p.ended, RepetitionStatus::NotRun(_))).take(MAX_REPETITIONS);
    let spans =
        executed.map(|p| format!("{}: {}", repetition_name(&p.backend, p.repetition), format_seconds(p.span_seconds)));
    let recorded = match setup.profile.is_handwritten() {
        true => String::new(),
        false => format!("recorded {}; ", format_seconds(setup.profile.span_seconds)),
    };
    let spans = format!("first to last call: {recorded}{}", list(&spans.collect::<Vec<_>>()));
    let real = format!(
        "{}; creating files {}, reading the profile and preparing calls {}, comparing data {}, removing files {}",
        machine::duration_text(ending.outcome, ending.real_seconds),
        format_seconds(ending.prefill_seconds),
        format_seconds(ending.prepare_seconds),
        format_seconds(ending.verify_seconds),
        format_seconds(ending.cleanup_seconds)
    );
    let harness =
        [("clock step", setup.clock_resolution_ns), ("clock", setup.clock_read_ns), ("barrier", setup.barrier_ns)];
    let profiler = setup.profile.cost_ns.map(|ns| ("a recorded call", ns));
    let costs = MeasurementCosts {
        harness: &harness.into_iter().chain(profiler).collect::<Vec<_>>(),
        rank_memory_bytes: [setup.data_bytes, ending.rank_memory_high_water_bytes],
        records: &result.repetitions,
        noun: "repetition",
        name: |p| p.backend.clone(),
        allocations: |p| p.allocations_in_clock,
        interference: |p| p.interference.as_ref(),
    };
    let own = labelled_texts([("time", Some(spans)), ("real time", Some(real))]);
    let blocks = vec![ReportBlock::Pairs(own.into_iter().chain(costs.pairs()).collect())];
    ReportSection { name: "costs", title: "Costs".into(), note: String::new(), blocks }
}

pub(super) fn setup_section(result: &ReplayResult) -> ReportSection {
    let (config, setup) = (&result.config, &result.setup);
    let kept = if config.keep_files { ", files of the last repetition kept" } else { "" };
    let own = labelled_texts([
        ("data", Some(format!("seed {}; files need up to {}", config.seed, format_size(setup.space_bytes)))),
        ("recordings", Some(head::recordings_text(&setup.profile))),
        ("files", Some(format!("{}{kept}", setup.run_dir))),
    ]);
    common::set_up(&setup.machine, Some(&setup.storage), &comparable::own_facts(result), own)
}
