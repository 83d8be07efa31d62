//! The head of the report: what was measured, where, and what is unusual about it.

use crate::b_eff::plan::{Buffers, Family};
use crate::b_eff::records::{CommResult, CommSetup};
use crate::b_eff::values::{CommDerived, MessagesFrom};
use crate::frame::records::Numbering;
use crate::frame::report::machine;
use crate::frame::report::model::{pairs, Head};
use crate::frame::report::text::{count, list, settings};
use crate::frame::units::{format_seconds, format_size};

pub(super) fn head(result: &CommResult, derived: &CommDerived, common: Head) -> Head {
    let setup = &result.setup;
    let own = [
        ("transport", Some(transport(setup))),
        ("messages", Some(messages(result))),
        ("memory", Some(memory(result, derived))),
        ("time", Some(time(result))),
    ];
    let first = pairs([("ranks", Some(ranks(setup)))]);
    Head {
        asked: format!(
            "messages of 1 byte to {} (Lmax), at most {}",
            format_size(setup.lmax_bytes),
            format_seconds(result.config.time_seconds)
        ),
        settings: unusual(result),
        facts: first.into_iter().chain(machine::facts(&setup.machine, None)).chain(pairs(own)).collect(),
        ..common
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

fn transport(setup: &CommSetup) -> String {
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

/// Short, for the head.
fn memory(result: &CommResult, derived: &CommDerived) -> String {
    let buffers = result.config.buffers.name();
    match derived.messages_from {
        MessagesFrom::Memory => format!("{buffers} buffers: messages walk through more than the last-level cache"),
        MessagesFrom::SmallMemory => {
            format!("{buffers} buffers, but they fit into the last-level cache: Lmax is small")
        }
        MessagesFrom::ReusedWindows => format!("{} buffers, from cache: NOT the definition", buffers.to_uppercase()),
    }
}

/// In full: how long, in which pages.
pub(super) fn pages(result: &CommResult) -> String {
    let buffers = result.config.buffers;
    let Some(memory) = result.announcement.as_ref().and_then(|told| told.memory) else {
        return format!("{} buffers; length and pages were not recorded", buffers.name());
    };
    let half = format_size(memory.half_bytes);
    let walk = match buffers {
        Buffers::Cyclic => format!("cyclic: messages walk through {half} to send from and {half} to receive into"),
        Buffers::Reused => {
            format!("reused: windows in {half} to send from and {half} to receive into, huge pages asked for")
        }
    };
    let huge = memory.huge_page_total_bytes.zip(memory.huge_page_smallest_bytes);
    let ranks = result.setup.machine.ranks;
    match huge {
        None => format!("{walk}; the kernel does not tell about huge pages"),
        Some((0, _)) => format!("{walk}; no huge pages"),
        Some((total, least)) => format!(
            "{walk}; huge pages {} of {}, the rank with least {}",
            format_size(total),
            format_size(memory.half_bytes.saturating_mul(2).saturating_mul(ranks)),
            format_size(least)
        ),
    }
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
