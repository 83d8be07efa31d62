//! Quantities of a result of b_eff_io for `compare`: its value, the types with each access method, and every timed pattern, also in other orders and with reads and writes.

use super::layout::{ROWS, ROW_BYTES};
use super::options::FIELDS;
use super::values::best_ranks;
use crate::b_eff_io::records::{OrderedRecord, PatternRecord, RunResult, TimeBreakdown};
use crate::b_eff_io::values::acceptance::run_doubts;
use crate::b_eff_io::values::{cache_share, few_calls, rate, Derived, PatternValue, TypeValue};
use crate::frame::records::{AccessMethod, JournaledResult};
use crate::frame::report::facts;
use crate::frame::units::{format_size, mb_per_second};
use crate::frame::values::comparable::QuantityUnit::MegabytesPerSecond;
use crate::frame::values::comparable::{
    ComparableRun, Fact, FactKind, MeasurementContext, Quantity, QuantityLevel, NOISE_CACHED, NOISE_DIRECT,
    STORAGE_DRIFT_FACT,
};
use crate::frame::values::interference::is_disturbed;
use crate::frame::values::storage_drift::{self, DriftVerdict};
use crate::frame::values::NULL_BACKEND;

pub(super) fn comparable(result: &RunResult, derived: &Derived) -> ComparableRun {
    let mut quantities = release_quantities(result, derived);
    quantities.extend(derived.types.iter().filter_map(|value| {
        let interval = derived.intervals.of_type(&value.backend, value.ranks, value.access, value.pattern_type);
        Some(type_quantity(result, value)?.with_interval(interval.map(|i| [i.low, i.high])))
    }));
    quantities.extend(access_quantities(result, derived));
    let intervals = derived.intervals.by_pattern();
    quantities.extend(result.patterns.iter().zip(&derived.patterns).filter_map(|(p, value)| {
        let interval = intervals.get(&(p.backend.as_str(), p.ranks, p.access, p.pattern));
        let ends = interval.and_then(|i| Some([i.low?, i.high?]));
        Some(pattern_quantity(result, p, value)?.with_interval(ends))
    }));
    quantities.extend(result.ordered.iter().filter_map(|ordered| ordered_quantity(result, ordered)));
    ComparableRun {
        identity: facts::identity(&result.manifest.machine, &result.manifest.run_dir),
        started_utc: result.manifest.machine.started_utc.clone(),
        troubles: facts::problems(result.outcome(), &result.errors, result.is_corrupt()),
        doubts: run_doubts(result, derived),
        is_corrupt: result.is_corrupt(),
        facts: facts(result),
        quantities,
    }
}

fn facts(result: &RunResult) -> Vec<Fact> {
    let mut facts = config_facts(result);
    facts.extend(facts::machine_facts(&result.manifest.machine));
    facts.extend(facts::storage_facts(&result.manifest.storage));
    facts.push(Fact::new(FactKind::SetUp, STORAGE_DRIFT_FACT, storage_drift(result)));
    facts
}

/// Facts that do not concern the machine and the storage.
pub(super) fn config_facts(result: &RunResult) -> Vec<Fact> {
    let list = |value: &dyn Fn(&crate::b_eff_io::records::PartitionRecord) -> String| {
        result.partitions.iter().map(value).collect::<Vec<_>>().join(", ")
    };
    let hints = result.config.hints.iter().map(|rule| (rule.key.as_str(), rule.value.as_str()));
    let mut facts = facts::config_facts(&result.config, &FIELDS);
    facts.push(Fact::new(FactKind::Definition, "partitions (ranks)", list(&|p| p.ranks.to_string())));
    facts.push(Fact::new(FactKind::Definition, "M_PART", list(&|p| format_size(p.m_part_bytes))));
    facts.push(Fact::new(FactKind::SetUp, "hints", facts::hints_text(hints)));
    facts.push(Fact::new(FactKind::SetUp, "MPI-IO layer", result.manifest.mpi_io_layer.clone()));
    facts
}

/// Describes the storage drift without numbers, which differ from run to run.
fn storage_drift(result: &RunResult) -> String {
    let moves = storage_drift::drift_by_direction(&result.probes);
    let has = |verdict: DriftVerdict| moves.iter().any(|m| m.verdict == verdict);
    match () {
        () if moves.is_empty() => "unknown",
        () if has(DriftVerdict::Changed) => "changed by more than 10 %",
        () if has(DriftVerdict::NotDecided) => "steadiness not decided",
        () => "steady within 10 %",
    }
    .into()
}

/// By the definition of the run.
fn release_quantities(result: &RunResult, derived: &Derived) -> Vec<Quantity> {
    let release = result.config.release;
    let value = |system: &crate::b_eff_io::values::SystemValue| {
        let value = super::values::value(&system.values, release);
        let noise = largest_noise(result, |p| p.backend == system.backend);
        let name = format!("b_eff_io (release {})", release.name());
        let quantity = Quantity::new(QuantityLevel::Value, name, "", MegabytesPerSecond, value?);
        let interval = best_ranks(system, release).and_then(|ranks| derived.intervals.value(&system.backend, ranks));
        let quantity = quantity.with_interval(interval.map(|i| [i.low, i.high]));
        Some(Quantity { backend: system.backend.clone(), ..quantity }.with_noise(noise))
    };
    derived.systems.iter().filter_map(value).collect()
}

fn access_quantities(result: &RunResult, derived: &Derived) -> Vec<Quantity> {
    let mut all = Vec::new();
    for partition in &derived.partitions {
        for (access, value) in AccessMethod::ALL.into_iter().zip(partition.access_mb_per_second) {
            let Some(value) = value else { continue };
            let is_own =
                |p: &PatternRecord| p.backend == partition.backend && p.ranks == partition.ranks && p.access == access;
            let quantity = Quantity::new(QuantityLevel::Group, access.name(), "mean", MegabytesPerSecond, value);
            let own: Vec<&PatternRecord> = result.patterns.iter().filter(|p| is_own(p)).collect();
            let conditions =
                MeasurementContext { shares: time_shares(&own, 0.0, 0.0), ..MeasurementContext::default() };
            let quantity =
                quantity.with_backend(&partition.backend, partition.ranks).with_noise(largest_noise(result, is_own));
            all.push(Quantity { context: conditions, ..quantity });
        }
    }
    all
}

fn type_quantity(result: &RunResult, value: &TypeValue) -> Option<Quantity> {
    let rate = value.mb_per_second.filter(|_| value.complete && value.backend != NULL_BACKEND)?;
    let is_own = |p: &PatternRecord| {
        p.backend == value.backend
            && p.ranks == value.ranks
            && p.access == value.access
            && p.pattern_type == value.pattern_type
    };
    let own: Vec<&PatternRecord> = result.patterns.iter().filter(|p| is_own(p)).collect();
    let files = result.types.iter().filter(|t| {
        t.backend == value.backend
            && t.ranks == value.ranks
            && t.access == value.access
            && t.pattern_type == value.pattern_type
    });
    let (open, close) = files.fold((0.0, 0.0), |(o, c), t| (o + t.open_seconds, c + t.close_seconds));
    let quantity =
        Quantity::new(QuantityLevel::Group, value.access.name(), value.pattern_type.name(), MegabytesPerSecond, rate);
    let conditions = MeasurementContext { shares: time_shares(&own, open, close), ..MeasurementContext::default() };
    Some(Quantity {
        context: conditions,
        ..quantity.with_backend(&value.backend, value.ranks).with_noise(largest_noise(result, is_own))
    })
}

/// Rate of a timed pattern; warm-up and fill-up are single calls.
fn pattern_quantity(result: &RunResult, p: &PatternRecord, value: &PatternValue) -> Option<Quantity> {
    let rate = value.mb_per_second.filter(|_| p.time_units > 0 && p.backend != NULL_BACKEND)?;
    Some(measurement_quantity(p.access.name(), p, rate, cache_share(result, p), value.few_calls))
}

/// Rate of a pattern in another order, or with reads and writes.
fn ordered_quantity(result: &RunResult, record: &OrderedRecord) -> Option<Quantity> {
    let p = &record.measurement;
    let rate = rate(p).filter(|_| p.backend != NULL_BACKEND)?;
    let order = record.call_order();
    let name = if order.mix.is_some() { order.name() } else { format!("{} {}", order.name(), p.access.name()) };
    Some(measurement_quantity(name, p, rate, cache_share(result, p), few_calls(p)))
}

fn measurement_quantity(
    name: impl Into<String>,
    p: &PatternRecord,
    rate: f64,
    cache_share: Option<f64>,
    few_calls: bool,
) -> Quantity {
    let column = format!("{}, {}, pattern {}", row_label(p), p.pattern_type.name(), p.pattern);
    let quantity = Quantity::new(QuantityLevel::Detail, name, column, MegabytesPerSecond, rate);
    let quantity = quantity.with_backend(&p.backend, p.ranks).with_noise(pattern_noise(p));
    let rounds = p.rounds.iter().filter_map(|round| mb_per_second(round.moved_bytes, round.seconds)).collect();
    let mut facts = vec![
        ("calls".to_owned(), p.strategy.clone()),
        ("direct I/O".to_owned(), p.direct.map_or("unknown", |d| if d { "yes" } else { "no" }).to_owned()),
    ];
    facts.extend(p.hints_granted.iter().map(|(key, value)| (format!("hint {key}"), value.clone())));
    let conditions = MeasurementContext {
        shares: time_shares(&[p], 0.0, 0.0),
        cache_share,
        few_calls,
        has_interference: is_disturbed(&p.interference),
        facts,
    };
    Quantity { rounds, context: conditions, ..quantity }
}

/// Row label, e.g. `1 kB+8`; sizes other than the six fixed ones are M_PART.
fn row_label(p: &PatternRecord) -> &'static str {
    let row = ROW_BYTES.iter().position(|bytes| *bytes == p.chunk_bytes).unwrap_or(ROW_BYTES.len());
    match ROWS.get(row) {
        Some(_) if p.call_bytes == 2 * ROW_BYTES[4] && p.chunk_bytes == ROW_BYTES[4] => "1 MB of 2 MB",
        Some(name) => name,
        None => "M_PART",
    }
}

fn pattern_noise(p: &PatternRecord) -> f64 {
    if p.direct == Some(true) {
        NOISE_DIRECT
    } else {
        NOISE_CACHED
    }
}

fn largest_noise(result: &RunResult, is_own: impl Fn(&PatternRecord) -> bool) -> f64 {
    result.patterns.iter().filter(|p| is_own(p)).map(pattern_noise).fold(NOISE_DIRECT, f64::max)
}

fn time_shares(own: &[&PatternRecord], open_seconds: f64, close_seconds: f64) -> Vec<(&'static str, f64)> {
    let mut sum = TimeBreakdown::default();
    own.iter().for_each(|p| sum.add(&p.intervals));
    let total = sum.total_seconds() + open_seconds + close_seconds;
    let parts = [
        ("open", open_seconds),
        ("view", sum.view_seconds),
        ("preallocate", sum.preallocate_seconds),
        ("transfer", sum.transfer_seconds),
        ("decide", sum.decide_seconds),
        ("sync", sum.sync_seconds),
        ("close", close_seconds),
    ];
    if total > 0.0 {
        parts.map(|(name, seconds)| (name, seconds / total)).into()
    } else {
        Vec::new()
    }
}

#[cfg(test)]
#[path = "comparable_tests.rs"]
mod tests;
