//! The head of the report: what was measured, where, and what is unusual about it.

use crate::frame::config::DirectPolicy;
use crate::frame::report::machine;
use crate::frame::report::model::{pairs, Head};
use crate::frame::report::text::{count, list, settings};
use crate::frame::units::format_seconds;
use crate::imb_io::config::{ImbConfig, Multi};
use crate::imb_io::plan::ModeChoice;
use crate::imb_io::records::ImbResult;

use super::blocks::ranks;
use super::state;

pub(super) fn head(result: &ImbResult, common: Head) -> Head {
    let (config, setup) = (&result.config, &result.setup);
    let timed = "per repetition, over the ranks; writes with syncs, reads without; opening only in Open_Close";
    let begin = pairs([
        ("measured", Some(measured(result))),
        ("timed", Some(timed.to_owned())),
        ("writes", Some(state::writes(config).to_owned())),
        ("reads", Some(state::reads(config))),
        ("memory", Some(state::memory(config).to_owned())),
    ]);
    let machine = machine::facts(&setup.machine, None).into_iter().chain(machine::storage_facts(&setup.storage));
    let announced = result.announcement.as_ref().map(|told| format_seconds(told.expected_seconds));
    Head {
        asked: announced.map_or_else(|| "nothing announced".to_owned(), |time| format!("announced {time}")),
        settings: unusual(config),
        facts: begin.into_iter().chain(machine).chain(pairs([("time", Some(time(result)))])).collect(),
        ..common
    }
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
    settings([
        config.inject.then(|| "DAMAGED ON PURPOSE (one bit)".to_owned()),
        multi.map(str::to_owned),
        modes.map(str::to_owned),
        (config.direct != DirectPolicy::ByBackend).then(|| format!("direct I/O: {}", machine::direct(config.direct))),
        config.unique_open.then(|| "MPI_MODE_UNIQUE_OPEN".to_owned()),
        (!config.hints.is_empty()).then(|| count(config.hints.len() as u64, "hint")),
    ])
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
    format!("{told}, {}", machine::took(result.ending.outcome, result.ending.real_seconds))
}
