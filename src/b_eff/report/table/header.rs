//! The head of the report: what was measured, where, and what is unusual about it. Whatever does not fit into its line is
//! in the section on the set-up.

use crate::b_eff::plan::Family;
use crate::b_eff::records::{CommResult, CommSetup};
use crate::frame::records::Numbering;
use crate::frame::report::machine;
use crate::frame::report::text::{count, list, settings, Page};
use crate::frame::units::{format_seconds, format_size};

pub(super) fn write(page: &mut Page, result: &CommResult) {
    let setup = &result.setup;
    let units = "sizes: 1 KiB = 1024 bytes, 1 MiB = 1024 KiB; bandwidth: 1 MB/s = 1 000 000 bytes/s";
    machine::title(page, &setup.machine, "effective bandwidth (b_eff)", units);
    page.short_field("ranks", &ranks(setup));
    machine::head(page, &setup.machine, None);
    page.short_field("transport", &transport(setup));
    page.short_field("messages", &messages(result));
    page.short_field("time", &time(result));
    if let Some(text) = unusual(result) {
        page.short_field("settings", &text);
    }
}

fn ranks(setup: &CommSetup) -> String {
    let hosts = count(setup.machine.hosts.len() as u64, "host");
    format!("{} on {hosts}, {}", setup.machine.ranks, numbering(setup.numbering))
}

pub(super) fn numbering(numbering: Numbering) -> &'static str {
    match numbering {
        Numbering::OneHost => "all on one host",
        Numbering::OneEach => "one on each host",
        Numbering::Sequential => "numbered sequentially: neighbouring ranks share a host",
        Numbering::RoundRobin => "numbered ROUND-ROBIN over the hosts",
        Numbering::Mixed => "numbered in MIXED order over the hosts",
    }
}

pub(super) fn transport(setup: &CommSetup) -> String {
    let transport = &setup.transport;
    let mut parts: Vec<String> = transport.device.iter().map(|d| format!("device {d}")).collect();
    if !transport.loaded.is_empty() {
        parts.push(format!("loaded {}", transport.loaded.join(", ")));
    }
    parts.push(match transport.interfaces.as_slice() {
        [] => "no network interface up".to_owned(),
        names => format!("interfaces {}", names.join(", ")),
    });
    if transport.device.is_none() && transport.loaded.is_empty() {
        parts.insert(0, "the library does not tell".to_owned());
    }
    parts.join("; ")
}

fn messages(result: &CommResult) -> String {
    let memory_bytes = result.config.memory_per_process_bytes.unwrap_or(result.setup.machine.memory_per_rank_bytes);
    let given = if result.config.memory_per_process_bytes.is_some() { ", as given" } else { "" };
    format!(
        "{} up to Lmax = {} (memory per process {}{given}); seed {}",
        count(result.setup.sizes_bytes.len() as u64, "size"),
        format_size(result.setup.lmax_bytes),
        format_size(memory_bytes),
        result.config.seed
    )
}

pub(super) fn time(result: &CommResult) -> String {
    let limit = format!("limit {}", format_seconds(result.config.time_seconds));
    let told = result.announcement.as_ref().map_or_else(
        || "nothing announced".to_owned(),
        |a| format!("announced {}", format_seconds(a.expected_seconds)),
    );
    format!("{limit}, {told}, {}", machine::took(result.ending.outcome, result.ending.real_seconds))
}

/// What was chosen otherwise than by default and changes the meaning of the numbers; None: nothing.
fn unusual(result: &CommResult) -> Option<String> {
    let config = &result.config;
    let is_partial = ![Family::Ring, Family::Random].iter().all(|f| config.families.contains(f));
    settings([
        config.quick.then(|| "QUICK MODE".to_owned()),
        config.inject.then(|| "DAMAGED ON PURPOSE (one byte of a received message)".to_owned()),
        is_partial.then(|| format!("only {}", families(result))),
    ])
}

/// The families that were asked for.
pub(super) fn families(result: &CommResult) -> String {
    list(&result.config.families.iter().map(|f| family(*f).to_owned()).collect::<Vec<_>>())
}

fn family(family: Family) -> &'static str {
    match family {
        Family::Ring => "rings",
        Family::Random => "random rings",
        Family::WorstCycle => "worst cycle",
        Family::Bisection => "bisections",
        Family::Cartesian => "Cartesian neighbours",
        Family::PingPong => "ping-pong",
    }
}
