//! What a result of IMB-IO offers to `compare`: every row, and for each benchmark the mean over its rows. There is no single value.

use std::collections::BTreeMap;

use crate::frame::records::Record;
use crate::frame::report::facts::{self, definition, set_up, Field};
use crate::frame::report::text::count;
use crate::frame::units::{format_size, mb_per_second};
use crate::frame::values::comparable::Unit::{MegabytesPerSecond, Microseconds};
use crate::frame::values::comparable::{Comparable, Fact, Kind, Level, Quantity, Told, NOISE_CACHED, NOISE_DIRECT};
use crate::frame::values::machine_share::is_shared;
use crate::frame::values::NULL_BACKEND;
use crate::imb_io::plan::Mode;
use crate::imb_io::records::{ImbResult, RowEnd, RowRecord};
use crate::imb_io::values::{ImbDerived, RowValue};

use super::blocks::mode;

/// Every field of the configuration.
const FIELDS: [(&str, Field); 24] = [
    ("benchmarks", definition("benchmarks")),
    ("sizes", Field::Silent),
    ("repetitions", definition("repetitions")),
    ("modes", definition("modes")),
    ("multi", definition("groups (-multi)")),
    ("file", definition("files that writes find")),
    ("buffers", definition("buffers")),
    ("cache", definition("page cache")),
    ("unique_open", definition("unique open")),
    ("inject", definition("damage on purpose")),
    ("backends", set_up("backend")),
    ("direct", set_up("direct I/O")),
    ("queue_depth", set_up("queue depth")),
    // Told by the hints themselves, and by the numbers of ranks.
    ("hints", Field::Silent),
    ("npmin", Field::Silent),
    ("path", Field::Silent),
    ("run_dir", Field::Silent),
    ("keep_files", Field::Silent),
    ("out", Field::Silent),
    // Told by where the ranks were.
    ("bind", Field::Silent),
    ("seed", Field::Silent),
    // The rows do not know the repeats.
    ("repeat", Field::Silent),
    ("until_share", Field::Silent),
    ("bare", Field::Silent),
];

/// What there is to compare.
pub(super) fn comparable(result: &ImbResult, derived: &ImbDerived) -> Comparable {
    let mut quantities = groups(result);
    quantities.extend(result.rows.iter().zip(&derived.rows).filter_map(|(record, value)| row(record, value)));
    Comparable {
        identity: facts::identity(&result.setup.machine, &result.setup.run_dir),
        started_utc: result.setup.machine.started_utc.clone(),
        troubles: facts::troubles(result.outcome(), &result.errors, result.is_corrupt()),
        is_corrupt: result.is_corrupt(),
        facts: facts(result),
        quantities,
    }
}

fn facts(result: &ImbResult) -> Vec<Fact> {
    let setup = &result.setup;
    let machine = facts::of_machine(&setup.machine).into_iter().chain(facts::of_storage(&setup.storage));
    own_facts(result).into_iter().chain(machine).collect()
}

/// Those that are no facts of the machine.
pub(super) fn own_facts(result: &ImbResult) -> Vec<Fact> {
    let setup = &result.setup;
    let sizes: Vec<String> = setup.sizes_bytes.iter().map(|bytes| format_size(*bytes)).collect();
    let ranks: Vec<String> = setup.rank_counts.iter().map(u64::to_string).collect();
    let hints = result.config.hints.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let mut facts = facts::of_config(&result.config, &FIELDS);
    facts.push(Fact::new(Kind::Definition, "sizes", sizes.join(", ")));
    facts.push(Fact::new(Kind::Definition, "ranks of the rows", ranks.join(", ")));
    facts.push(Fact::new(Kind::SetUp, "hints", facts::of_hints(hints)));
    facts
}

/// Time of a repetition of the slowest group; None: not complete, or the backend that moves nothing.
fn seconds(record: &RowRecord) -> Option<f64> {
    let is_told = record.ended == RowEnd::Complete && record.backend != NULL_BACKEND;
    let slowest = record.times.iter().map(|times| times.max_seconds).fold(0.0, f64::max);
    (is_told && slowest > 0.0).then_some(slowest)
}

fn noise_of(record: &RowRecord) -> f64 {
    if record.direct == Some(true) {
        NOISE_DIRECT
    } else {
        NOISE_CACHED
    }
}

/// Bandwidth of a row, or its time if it moves nothing.
fn row(record: &RowRecord, value: &RowValue) -> Option<Quantity> {
    let seconds = seconds(record)?;
    let size = record.sample_bytes.map_or_else(|| "files".to_owned(), format_size);
    let row = format!("{}, {}", record.benchmark, mode(record.mode));
    let column = format!("{size}, {}", count(record.ranks, "rank"));
    let rate = mb_per_second(record.sample_bytes.unwrap_or(0), seconds).filter(|rate| *rate > 0.0);
    let (unit, number) = rate.map_or((Microseconds, seconds * 1e6), |rate| (MegabytesPerSecond, rate));
    let mut facts = vec![("calls".to_owned(), record.strategy.clone())];
    facts.extend(record.hints_granted.iter().map(|(key, value)| (format!("hint {key}"), value.clone())));
    let sync = (record.sync_seconds / seconds).clamp(0.0, 1.0);
    let told = Told {
        shares: if sync > 0.0 { vec![("transfer", 1.0 - sync), ("sync", sync)] } else { Vec::new() },
        cache_share: value.cached_share,
        few_calls: record.repetitions < crate::frame::digits::FEW_CALLS,
        busy: is_shared(&record.machine),
        facts,
    };
    let quantity = Quantity::new(Level::Detail, row, column, unit, number).of(&record.backend, 0);
    Some(Quantity { told, ..quantity.noisy(noise_of(record)) })
}

/// Geometric mean over the rows of a benchmark in one mode, if all of them are complete: over fewer it would be another mean.
fn groups(result: &ImbResult) -> Vec<Quantity> {
    let mut order: Vec<(&str, &str, Mode)> = Vec::new();
    let mut rows: BTreeMap<(&str, &str, &str), Vec<&RowRecord>> = BTreeMap::new();
    for record in &result.rows {
        let key = (record.backend.as_str(), record.benchmark.as_str(), mode(record.mode));
        let rows = rows.entry(key).or_default();
        if rows.is_empty() {
            order.push((&record.backend, &record.benchmark, record.mode));
        }
        rows.push(record);
    }
    let group = |(backend, benchmark, own_mode): (&str, &str, Mode)| {
        let own = rows.get(&(backend, benchmark, mode(own_mode)))?;
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
        let quantity = Quantity::new(Level::Group, benchmark, mode(own_mode), unit, mean);
        Some(quantity.of(backend, 0).noisy(noise))
    };
    order.into_iter().filter_map(group).collect()
}

#[cfg(test)]
#[path = "comparable_tests.rs"]
mod tests;
