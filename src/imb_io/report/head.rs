//! Head of the report: benchmarks, machine, and unusual settings.

use crate::frame::backends::is_variant;
use crate::frame::config::DirectPolicy;
use crate::frame::report::machine;
use crate::frame::report::model::{labelled_texts, ReportHead};
use crate::frame::report::text::{count, join_settings, list};
use crate::frame::report::variants::variants_text;
use crate::frame::units::format_seconds;
use crate::imb_io::config::{ImbConfig, Multi};
use crate::imb_io::plan::ModeChoice;
use crate::imb_io::records::ImbResult;

use super::blocks::rank_count;
use super::state;

pub(super) fn head(result: &ImbResult, common: ReportHead) -> ReportHead {
    let (config, setup) = (&result.config, &result.setup);
    let timed = "per iteration, over the ranks; writes with syncs, reads without; opening only in Open_Close";
    let begin = labelled_texts([
        ("measured", Some(measured(result))),
        ("variants", variants_text(&config.variants)),
        ("timed", Some(timed.to_owned())),
        ("writes", Some(state::writes(config).to_owned())),
        ("reads", Some(state::reads(config))),
        ("memory", Some(state::memory(config).to_owned())),
    ]);
    let machine =
        machine::head_facts(&setup.machine, None).into_iter().chain(machine::storage_head_facts(&setup.storage));
    let announced = result.announcement.as_ref().map(|a| format_seconds(a.expected_seconds));
    ReportHead {
        requested_time: announced.map_or_else(|| "nothing announced".to_owned(), |time| format!("announced {time}")),
        settings: unusual(config),
        facts: begin.into_iter().chain(machine).chain(labelled_texts([("time", Some(time(result)))])).collect(),
        ..common
    }
}

fn measured(result: &ImbResult) -> String {
    let (config, setup) = (&result.config, &result.setup);
    let counts: Vec<String> = setup.rank_counts.iter().map(u64::to_string).collect();
    let on = match setup.rank_counts.as_slice() {
        [one] => rank_count(*one),
        _ => format!("{} ranks", list(&counts)),
    };
    format!(
        "{} on {on}, {}, {}, {}",
        count(config.benchmarks.len() as u64, "benchmark"),
        count(setup.sizes_bytes.len() as u64, "size"),
        list(&config.backends.iter().filter(|name| !is_variant(name)).cloned().collect::<Vec<_>>()),
        count(setup.rows, "row")
    )
}

/// Settings other than the default that change the meaning of the numbers; None without any.
fn unusual(config: &ImbConfig) -> Option<String> {
    let multi = config.multi.map(|multi| match multi {
        Multi::Slowest => "several groups at the same time, the slowest shown",
        Multi::Each => "several groups at the same time, each shown",
    });
    let modes = match config.modes {
        ModeChoice::Both => None,
        ModeChoice::Aggregate => Some("aggregate mode only"),
        ModeChoice::NonAggregate => Some("non-aggregate mode only"),
    };
    join_settings([
        config.inject.then(|| "INJECTED FAULT (one bit)".to_owned()),
        multi.map(str::to_owned),
        modes.map(str::to_owned),
        (config.direct != DirectPolicy::ByBackend)
            .then(|| format!("direct I/O: {}", machine::direct_policy_text(config.direct))),
        config.unique_open.then(|| "MPI_MODE_UNIQUE_OPEN".to_owned()),
        (!config.hints.is_empty()).then(|| count(config.hints.len() as u64, "hint")),
    ])
}

pub(super) fn time(result: &ImbResult) -> String {
    let announced = result.announcement.as_ref().map_or_else(
        || "nothing announced".to_owned(),
        |a| {
            let limit = a
                .limit_seconds
                .map_or_else(|| "without a limit".to_owned(), |s| format!("{} at most", format_seconds(s)));
            format!("announced {}, {limit}", format_seconds(a.expected_seconds))
        },
    );
    format!("{announced}, {}", machine::duration_text(result.ending.outcome, result.ending.real_seconds))
}
