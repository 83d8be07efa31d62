//! How it was set up and what it cost, in full.

use crate::frame::report::text::{count, list, Page};
use crate::frame::report::{costs, machine, Views};
use crate::frame::units::{format_seconds, format_size};
use crate::replay::plan::names::shown;
use crate::replay::records::{PassEnd, ReplayResult};
use crate::replay::report::plan::leavings;

pub(super) fn write(page: &mut Page, result: &ReplayResult) {
    let (config, setup, ending) = (&result.config, &result.setup, &result.ending);
    leavings(page, &setup.leavings);
    page.heading("Costs and set-up");
    let spans: Vec<String> = result
        .passes
        .iter()
        .filter(|p| !matches!(p.ended, PassEnd::NotRun(_)))
        .take(8)
        .map(|p| format!("{} pass {}: {}", p.backend, p.pass, format_seconds(p.span_seconds)))
        .collect();
    let recorded = format_seconds(setup.profile.span_seconds);
    page.field("time", &format!("first to last call: recorded {recorded}; {}", list(&spans)));
    page.field(
        "real time",
        &format!(
            "{}; making files {}, reading the profile and making calls ready {}, comparing data {}, removing files {}",
            machine::took(ending.outcome, ending.real_seconds),
            format_seconds(ending.prefill_seconds),
            format_seconds(ending.prepare_seconds),
            format_seconds(ending.verify_seconds),
            format_seconds(ending.cleanup_seconds)
        ),
    );
    costs::machine(page, result.passes.iter().filter_map(|p| p.machine.as_ref()));
    let profiler = setup.profile.cost_ns.map(|ns| ("a recorded call", ns));
    let harness =
        [("clock step", setup.clock_resolution_ns), ("clock", setup.clock_read_ns), ("barrier", setup.barrier_ns)];
    costs::harness(page, &harness.into_iter().chain(profiler).collect::<Vec<_>>());
    costs::rank_memory(page, setup.data_bytes, ending.rank_memory_high_water_bytes);
    costs::allocations(page, &result.passes, |p| p.allocations_in_clock, "pass", |p| p.backend.clone());
    page.field("command", &setup.machine.command_line.join(" "));
    page.field("data", &format!("seed {}; files take up to {}", config.seed, format_size(setup.space_bytes)));
    if !config.hints.is_empty() {
        let hints: Vec<String> = config.hints.iter().map(|(key, value)| format!("{key}={value}")).collect();
        page.field("hints", &format!("{}, over those that were recorded", hints.join(" ")));
    }
    page.field("direct I/O", machine::direct(config.direct));
    let ends: Vec<String> = setup
        .profile
        .ended
        .iter()
        .map(|e| format!("{} {}", count(e.processes, "process"), shown(&e.end, 20)))
        .collect();
    page.field("recordings", &list(&ends));
    machine::write(page, &setup.machine);
    machine::write_storage(page, &setup.storage);
    let kept = if config.keep_files { ", files of the last passes left there" } else { "" };
    page.field("files", &format!("{}{kept}", setup.run_dir));
    page.field("output", &output(result));
}

fn output(result: &ReplayResult) -> String {
    let Some(prefix) = &result.config.out else { return "standard output alone".to_owned() };
    let suffixes = [".jsonl".to_owned()].into_iter().chain(result.suffixes());
    list(&suffixes.map(|suffix| format!("{}{suffix}", prefix.display())).collect::<Vec<_>>())
}
