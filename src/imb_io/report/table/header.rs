//! The head of the report: what was measured, where, and what is unusual about it.

use crate::frame::config::{CachePolicy, DirectPolicy};
use crate::frame::records::Outcome;
use crate::frame::report::machine;
use crate::frame::report::text::{count, list, Page};
use crate::frame::units::format_seconds;
use crate::imb_io::config::{ImbConfig, Multi};
use crate::imb_io::plan::ModeChoice;
use crate::imb_io::records::ImbResult;
use crate::imb_io::report::blocks::ranks;

pub(super) fn write(page: &mut Page, result: &ImbResult) {
    let (config, setup) = (&result.config, &result.setup);
    page.line(format!(
        "beff-raw {}: elementary MPI-IO benchmarks (IMB-IO), {}",
        setup.machine.program_version, setup.machine.started_utc
    ));
    page.line("sizes: X in bytes over all ranks of a group; bandwidth: X / t_max, 1 Mbytes/sec = 1 000 000 bytes/s");
    page.blank();
    page.short_field("measured", &measured(result));
    page.short_field(
        "timed",
        "per repetition, over the ranks; writes with syncs, reads without; opening only in Open_Close",
    );
    if let Some(text) = settings(config) {
        page.short_field("settings", &text);
    }
    page.short_field("hosts", &machine::hosts(&setup.machine));
    page.short_field("MPI", &machine::mpi(&setup.machine));
    if let Some(set) = machine::environment(&setup.machine) {
        page.short_field("environment", &set);
    }
    page.short_field("storage", &machine::storage(&setup.storage));
    page.short_field("time", &time(result));
}

fn measured(result: &ImbResult) -> String {
    let (config, setup) = (&result.config, &result.setup);
    let counts: Vec<String> = setup.rank_counts.iter().map(u64::to_string).collect();
    let on = match setup.rank_counts.as_slice() {
        [one] => ranks(*one),
        _ => format!("{} ranks", list(&counts)),
    };
    format!(
        "{} on {on}, {}, {}, {}",
        count(config.benchmarks.len() as u64, "benchmark"),
        count(setup.sizes_bytes.len() as u64, "size"),
        list(&config.backends),
        count(setup.rows, "row")
    )
}

/// What was chosen otherwise than by default and changes the meaning of the numbers; None: nothing.
fn settings(config: &ImbConfig) -> Option<String> {
    let mut parts: Vec<String> = Vec::new();
    if config.inject {
        parts.push("DAMAGED ON PURPOSE (one bit)".into());
    }
    match config.multi {
        None => {}
        Some(Multi::Slowest) => parts.push("several groups at the same time, the slowest shown".into()),
        Some(Multi::Each) => parts.push("several groups at the same time, each shown".into()),
    }
    match config.modes {
        ModeChoice::Both => {}
        ModeChoice::Aggregate => parts.push("aggregate mode only".into()),
        ModeChoice::NonAggregate => parts.push("non-aggregate mode only".into()),
    }
    if config.cache != CachePolicy::Drop {
        parts.push(format!("page cache: {}", cache(config.cache)));
    }
    if config.direct != DirectPolicy::ByBackend {
        parts.push(format!("direct I/O: {}", direct(config.direct)));
    }
    if config.unique_open {
        parts.push("MPI_MODE_UNIQUE_OPEN".into());
    }
    if !config.hints.is_empty() {
        parts.push(count(config.hints.len() as u64, "hint"));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

pub(super) fn cache(cache: CachePolicy) -> &'static str {
    match cache {
        CachePolicy::Drop => "dropped before reads, outside the clock",
        CachePolicy::Keep => "kept",
        CachePolicy::Dontcache => "dropped by the transfers themselves",
        CachePolicy::RankShift => "read by other ranks than wrote",
    }
}

pub(super) fn direct(policy: DirectPolicy) -> &'static str {
    match policy {
        DirectPolicy::ByBackend => "auto for uring, off for posix",
        DirectPolicy::Required => "required",
        DirectPolicy::Auto => "auto",
        DirectPolicy::Off => "off",
    }
}

pub(super) fn time(result: &ImbResult) -> String {
    let told = result.announcement.as_ref().map_or_else(
        || "nothing announced".to_owned(),
        |a| {
            let limit = a
                .limit_seconds
                .map_or_else(|| "without a limit".to_owned(), |s| format!("{} at most", format_seconds(s)));
            format!("announced {}, {limit}", format_seconds(a.expected_seconds))
        },
    );
    match result.ending.outcome {
        Outcome::Killed => format!("{told}, no end recorded"),
        _ => format!("{told}, took {}", format_seconds(result.ending.real_seconds)),
    }
}
