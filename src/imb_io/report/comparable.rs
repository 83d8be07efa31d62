//! Quantities of a result for `compare`: every row, and the mean over the rows of each benchmark. There is no single value.

use std::collections::BTreeMap;

use crate::frame::records::JournaledResult;
use crate::frame::report::facts::{self, definition, set_up, ConfigFieldRole};
use crate::frame::report::text::count;
use crate::frame::units::{format_size, mb_per_second};
use crate::frame::values::comparable::QuantityUnit::{MegabytesPerSecond, Microseconds};
use crate::frame::values::comparable::{
    ComparableRun, Fact, FactKind, MeasurementContext, Quantity, QuantityLevel, NOISE_CACHED, NOISE_DIRECT,
};
use crate::frame::values::doubt::doubts;
use crate::frame::values::interference::is_disturbed;
use crate::frame::values::NULL_BACKEND;
use crate::imb_io::plan::Mode;
use crate::imb_io::records::{ImbResult, RowRecord, RowStatus};
use crate::imb_io::values::{ImbDerived, RowValue};

use super::blocks::mode_name;

const FIELDS: [(&str, ConfigFieldRole); 29] = [
    ("benchmarks", definition("benchmarks")),
    ("sizes", ConfigFieldRole::Ignored),
    ("iterations", definition("iterations")),
    ("modes", definition("modes")),
    ("multi", definition("groups (-multi)")),
    ("file", definition("files before writes")),
    ("buffers", definition("buffers")),
    ("cache", definition("page cache")),
    ("unique_open", definition("unique open")),
    ("inject", definition("injected fault")),
    ("backends", set_up("backend")),
    ("variants", set_up("variants")),
    ("direct", set_up("direct I/O")),
    ("dio_align_bytes", set_up("direct I/O align")),
    // Covered by the storage sheet.
    ("storage", ConfigFieldRole::Ignored),
    ("stripe", ConfigFieldRole::Ignored),
    ("queue_depth", set_up("queue depth")),
    // Covered by the hints themselves, and by the numbers of ranks.
    ("hints", ConfigFieldRole::Ignored),
    ("npmin", ConfigFieldRole::Ignored),
    ("path", ConfigFieldRole::Ignored),
    ("run_dir", ConfigFieldRole::Ignored),
    ("keep_files", ConfigFieldRole::Ignored),
    ("out", ConfigFieldRole::Ignored),
    // Covered by the binding of the ranks.
    ("bind", ConfigFieldRole::Ignored),
    ("seed", ConfigFieldRole::Ignored),
    // The rows are first measurements.
    ("repeat", ConfigFieldRole::Ignored),
    ("until_share", ConfigFieldRole::Ignored),
    ("bare", ConfigFieldRole::Ignored),
    // What it omits is in the result.
    ("time_limit", ConfigFieldRole::Ignored),
];

pub(super) fn comparable(result: &ImbResult, derived: &ImbDerived) -> ComparableRun {
    let mut quantities = groups(result);
    quantities.extend(result.rows.iter().zip(&derived.rows).filter_map(|(record, value)| row(record, value)));
    ComparableRun {
        identity: facts::identity(&result.setup.machine, &result.setup.run_dir),
        started_utc: result.setup.machine.started_utc.clone(),
        troubles: facts::problems(result.outcome(), &result.errors, result.is_corrupt()),
        doubts: doubts(result.outcome(), &derived.warnings, []),
        is_corrupt: result.is_corrupt(),
        facts: facts(result),
        quantities,
    }
}

fn facts(result: &ImbResult) -> Vec<Fact> {
    let setup = &result.setup;
    let machine = facts::machine_facts(&setup.machine).into_iter().chain(facts::storage_facts(&setup.storage));
    own_facts(result).into_iter().chain(machine).collect()
}

/// Facts except those of the machine.
pub(super) fn own_facts(result: &ImbResult) -> Vec<Fact> {
    let setup = &result.setup;
    let sizes: Vec<String> = setup.sizes_bytes.iter().map(|bytes| format_size(*bytes)).collect();
    let ranks: Vec<String> = setup.rank_counts.iter().map(u64::to_string).collect();
    let hints = result.config.hints.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let mut facts = facts::config_facts(&result.config, &FIELDS);
    facts.push(Fact::new(FactKind::Definition, "sizes", sizes.join(", ")));
    facts.push(Fact::new(FactKind::Definition, "ranks of the rows", ranks.join(", ")));
    facts.push(Fact::new(FactKind::SetUp, "hints", facts::hints_text(hints)));
    facts
}

/// Time of an iteration of the slowest group; None: not complete, or the null backend.
fn seconds(record: &RowRecord) -> Option<f64> {
    let is_reported = record.ended == RowStatus::Complete && record.backend != NULL_BACKEND;
    let slowest = record.times.iter().map(|times| times.max_seconds).fold(0.0, f64::max);
    (is_reported && slowest > 0.0).then_some(slowest)
}

fn noise_of(record: &RowRecord) -> f64 {
    if record.direct == Some(true) {
        NOISE_DIRECT
    } else {
        NOISE_CACHED
    }
}

/// Bandwidth of a row, or its time if it moves no data.
fn row(record: &RowRecord, value: &RowValue) -> Option<Quantity> {
    let seconds = seconds(record)?;
    let size = record.sample_bytes.map_or_else(|| "files".to_owned(), format_size);
    let row = format!("{}, {}", record.benchmark, mode_name(record.mode));
    let column = format!("{size}, {}", count(record.ranks, "rank"));
    let rate = mb_per_second(record.sample_bytes.unwrap_or(0), seconds).filter(|rate| *rate > 0.0);
    let (unit, number) = rate.map_or((Microseconds, seconds * 1e6), |rate| (MegabytesPerSecond, rate));
    let mut facts = vec![("calls".to_owned(), record.strategy.clone())];
    facts.extend(record.hints_granted.iter().map(|(key, value)| (format!("hint {key}"), value.clone())));
    let sync = (record.sync_seconds / seconds).clamp(0.0, 1.0);
    let measurement_context = MeasurementContext {
        shares: if sync > 0.0 { vec![("transfer", 1.0 - sync), ("sync", sync)] } else { Vec::new() },
        cache_share: value.cached_share,
        few_calls: record.iterations < crate::frame::digits::FEW_CALLS,
        has_interference: is_disturbed(&record.interference),
        facts,
    };
    let quantity = Quantity::new(QuantityLevel::Detail, row, column, unit, number).with_backend(&record.backend, 0);
    let interval = value.repeated.as_ref().and_then(|again| match unit {
        Microseconds => again.interval_seconds.map(|ends| ends.map(|seconds| seconds * 1e6)),
        MegabytesPerSecond => again.interval_mb_per_second,
    });
    let quantity = quantity.with_noise(noise_of(record)).with_interval(interval);
    Some(Quantity { context: measurement_context, ..quantity })
}

/// Geometric mean over the rows of a benchmark in one mode, if all of them are complete.
fn groups(result: &ImbResult) -> Vec<Quantity> {
    let mut order: Vec<(&str, &str, Mode)> = Vec::new();
    let mut rows: BTreeMap<(&str, &str, &str), Vec<&RowRecord>> = BTreeMap::new();
    for record in &result.rows {
        let key = (record.backend.as_str(), record.benchmark.as_str(), mode_name(record.mode));
        let rows = rows.entry(key).or_default();
        if rows.is_empty() {
            order.push((&record.backend, &record.benchmark, record.mode));
        }
        rows.push(record);
    }
    let group = |(backend, benchmark, own_mode): (&str, &str, Mode)| {
        let own = rows.get(&(backend, benchmark, mode_name(own_mode)))?;
        let (unit, moving): (_, Vec<&&RowRecord>) = match own.iter().filter(|r| r.sample_bytes > Some(0)).collect() {
            moving if Vec::is_empty(&moving) => (Microseconds, own.iter().collect()),
            moving => (MegabytesPerSecond, moving),
        };
        let logs: Option<Vec<f64>> = moving
            .iter()
            .map(|r| {
                let seconds = seconds(r)?;
                let number = match unit {
                    Microseconds => seconds * 1e6,
                    MegabytesPerSecond => mb_per_second(r.sample_bytes?, seconds)?,
                };
                Some(number.ln())
            })
            .collect();
        let logs = logs?;
        let mean = (logs.iter().sum::<f64>() / logs.len() as f64).exp();
        let noise = moving.iter().map(|r| noise_of(r)).fold(NOISE_DIRECT, f64::max);
        let quantity = Quantity::new(QuantityLevel::Group, benchmark, mode_name(own_mode), unit, mean);
        Some(quantity.with_backend(backend, 0).with_noise(noise))
    };
    order.into_iter().filter_map(group).collect()
}

#[cfg(test)]
#[path = "comparable_tests.rs"]
mod tests;
