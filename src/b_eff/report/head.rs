//! Head of the report: measurement, machine, and unusual settings.

use crate::b_eff::plan::{BufferMode, PatternFamily};
use crate::b_eff::records::{CommResult, CommSetup};
use crate::b_eff::values::{CommDerived, MessageSource};
use crate::frame::records::RankNumbering;
use crate::frame::report::machine;
use crate::frame::report::model::{labelled_texts, ReportHead};
use crate::frame::report::text::{count, join_settings, list};
use crate::frame::units::{format_seconds, format_size};

pub(super) fn head(result: &CommResult, derived: &CommDerived, common: ReportHead) -> ReportHead {
    let setup = &result.setup;
    let own = [
        ("transport", Some(transport(setup))),
        ("messages", Some(messages(result))),
        ("memory", Some(memory(result, derived))),
        ("time", Some(time(result))),
    ];
    let first = labelled_texts([("ranks", Some(ranks(setup)))]);
    ReportHead {
        requested_time: format!(
            "messages of 1 byte to {} (Lmax), at most {}",
            format_size(setup.lmax_bytes),
            format_seconds(result.config.time_seconds)
        ),
        settings: unusual_settings(result),
        facts: first.into_iter().chain(machine::head_facts(&setup.machine, None)).chain(labelled_texts(own)).collect(),
        ..common
    }
}

fn ranks(setup: &CommSetup) -> String {
    let hosts = count(setup.machine.hosts.len() as u64, "host");
    format!("{} on {hosts}, {}", setup.machine.ranks, numbering(setup.numbering))
}

pub(super) fn numbering(numbering: RankNumbering) -> &'static str {
    match numbering {
        RankNumbering::OneHost => "all on one host",
        RankNumbering::OneEach => "one on each host",
        RankNumbering::Sequential => "numbered sequentially: neighbouring ranks share a host",
        RankNumbering::RoundRobin => "numbered ROUND-ROBIN over the hosts",
        RankNumbering::Mixed => "numbered in MIXED order over the hosts",
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
        parts.insert(0, "not reported by the library".to_owned());
    }
    parts.join("; ")
}

fn messages(result: &CommResult) -> String {
    let memory_bytes = result.config.memory_per_process_bytes.unwrap_or(result.setup.machine.memory_per_rank_bytes);
    let given = if result.config.memory_per_process_bytes.is_some() { ", as specified" } else { "" };
    format!(
        "{} up to Lmax = {} (memory per process {}{given}); seed {}",
        count(result.setup.sizes_bytes.len() as u64, "size"),
        format_size(result.setup.lmax_bytes),
        format_size(memory_bytes),
        result.config.seed
    )
}

/// Short form for the head.
fn memory(result: &CommResult, derived: &CommDerived) -> String {
    let buffers = result.config.buffers.name();
    match derived.messages_from {
        MessageSource::Memory => format!("{buffers} buffers: messages walk through more than the last-level cache"),
        MessageSource::SmallMemory => {
            format!("{buffers} buffers, but they fit into the last-level cache: Lmax is small")
        }
        MessageSource::ReusedWindows => format!("{} buffers, from cache: NOT the definition", buffers.to_uppercase()),
    }
}

/// Full form: length and pages.
pub(super) fn buffer_pages(result: &CommResult) -> String {
    let buffers = result.config.buffers;
    let Some(memory) = result.announcement.as_ref().and_then(|announced| announced.memory) else {
        return format!("{} buffers; length and pages were not recorded", buffers.name());
    };
    let half = format_size(memory.half_bytes);
    let walk = match buffers {
        BufferMode::Cyclic => format!("cyclic: messages walk through {half} to send from and {half} to receive into"),
        BufferMode::Reused => {
            format!("reused: windows in {half} to send from and {half} to receive into, huge pages requested")
        }
    };
    let huge = memory.huge_page_total_bytes.zip(memory.huge_page_smallest_bytes);
    let ranks = result.setup.machine.ranks;
    match huge {
        None => format!("{walk}; huge pages not reported by the kernel"),
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
    let announced = result.announcement.as_ref().map_or_else(
        || "nothing announced".to_owned(),
        |a| format!("announced {}", format_seconds(a.expected_seconds)),
    );
    format!("{limit}, {announced}, {}", machine::duration_text(result.ending.outcome, result.ending.real_seconds))
}

/// Settings that change the meaning of the numbers and differ from the defaults; None if there are none.
fn unusual_settings(result: &CommResult) -> Option<String> {
    let config = &result.config;
    let is_partial = ![PatternFamily::Ring, PatternFamily::Random].iter().all(|f| config.families.contains(f));
    join_settings([
        config.quick.then(|| "QUICK MODE".to_owned()),
        config.inject.then(|| "INJECTED FAULT (one byte of a received message)".to_owned()),
        is_partial.then(|| format!("only {}", families(result))),
    ])
}

pub(super) fn families(result: &CommResult) -> String {
    list(&result.config.families.iter().map(|f| family(*f).to_owned()).collect::<Vec<_>>())
}

fn family(family: PatternFamily) -> &'static str {
    match family {
        PatternFamily::Ring => "rings",
        PatternFamily::Random => "random rings",
        PatternFamily::WorstCycle => "worst cycle",
        PatternFamily::Bisection => "bisections",
        PatternFamily::Cartesian => "Cartesian neighbours",
        PatternFamily::PingPong => "ping-pong",
    }
}
