//! What a result of b_eff_io offers to `compare`: its value, the types with each access method, and every timed pattern.

use super::layout::{ROWS, ROW_BYTES};
use super::options::FIELDS;
use crate::b_eff_io::records::{Intervals, PatternRecord, RunResult};
use crate::b_eff_io::values::{cache_share, Derived, PatternValue, TypeValue};
use crate::frame::records::{Access, Record};
use crate::frame::report::facts;
use crate::frame::units::{format_size, mb_per_second};
use crate::frame::values::comparable::Unit::MegabytesPerSecond;
use crate::frame::values::comparable::{Comparable, Fact, Kind, Level, Quantity, Told, NOISE_CACHED, NOISE_DIRECT};
use crate::frame::values::machine_share::is_shared;
use crate::frame::values::probe::{self, Verdict};
use crate::frame::values::NULL_BACKEND;

/// What there is to compare.
pub(super) fn comparable(result: &RunResult, derived: &Derived) -> Comparable {
    let mut quantities = values(result, derived);
    quantities.extend(derived.types.iter().filter_map(|value| of_type(result, value)));
    quantities.extend(accesses(result, derived));
    quantities.extend(result.patterns.iter().zip(&derived.patterns).filter_map(|(p, value)| pattern(result, p, value)));
    Comparable {
        identity: facts::identity(&result.manifest.machine, &result.manifest.run_dir),
        started_utc: result.manifest.machine.started_utc.clone(),
        troubles: facts::troubles(result.outcome(), &result.errors, result.is_corrupt()),
        is_corrupt: result.is_corrupt(),
        facts: facts(result),
        quantities,
    }
}

fn facts(result: &RunResult) -> Vec<Fact> {
    let mut facts = own_facts(result);
    facts.extend(facts::of_machine(&result.manifest.machine));
    facts.extend(facts::of_storage(&result.manifest.storage));
    facts.push(Fact::new(Kind::SetUp, "storage under the run", storage_moved(result)));
    facts
}

/// Those that are no facts of the machine and of the storage.
pub(super) fn own_facts(result: &RunResult) -> Vec<Fact> {
    let list = |value: &dyn Fn(&crate::b_eff_io::records::PartitionRecord) -> String| {
        result.partitions.iter().map(value).collect::<Vec<_>>().join(", ")
    };
    let hints = result.config.hints.iter().map(|rule| (rule.key.as_str(), rule.value.as_str()));
    let mut facts = facts::of_config(&result.config, &FIELDS);
    facts.push(Fact::new(Kind::Definition, "partitions (ranks)", list(&|p| p.ranks.to_string())));
    facts.push(Fact::new(Kind::Definition, "M_PART", list(&|p| format_size(p.m_part_bytes))));
    facts.push(Fact::new(Kind::SetUp, "hints", facts::of_hints(hints)));
    facts.push(Fact::new(Kind::SetUp, "MPI-IO layer", result.manifest.mpi_io_layer.clone()));
    facts
}

/// What the probes of both ends say. Words without figures: these differ from run to run.
fn storage_moved(result: &RunResult) -> String {
    let moves = probe::moves(&result.probes);
    let has = |verdict: Verdict| moves.iter().any(|m| m.verdict == verdict);
    match () {
        () if moves.is_empty() => "not known",
        () if has(Verdict::Changed) => "changed by more than 10 %",
        () if has(Verdict::NotDecided) => "steadiness not decided",
        () => "steady within 10 %",
    }
    .into()
}

/// The value of each backend by the definition of the run.
fn values(result: &RunResult, derived: &Derived) -> Vec<Quantity> {
    let release = result.config.release;
    let value = |system: &crate::b_eff_io::values::SystemValue| {
        let value = super::values::value(&system.values, release);
        let noise = noise(result, |p| p.backend == system.backend);
        let name = format!("b_eff_io (release {})", release.name());
        let quantity = Quantity::new(Level::Value, name, "", MegabytesPerSecond, value?);
        Some(Quantity { backend: system.backend.clone(), ..quantity }.noisy(noise))
    };
    derived.systems.iter().filter_map(value).collect()
}

/// The weighted mean of each access method.
fn accesses(result: &RunResult, derived: &Derived) -> Vec<Quantity> {
    let mut all = Vec::new();
    for partition in &derived.partitions {
        for (access, value) in Access::ALL.into_iter().zip(partition.access_mb_per_second) {
            let Some(value) = value else { continue };
            let is_own =
                |p: &PatternRecord| p.backend == partition.backend && p.ranks == partition.ranks && p.access == access;
            let quantity = Quantity::new(Level::Group, access.name(), "mean", MegabytesPerSecond, value);
            let own: Vec<&PatternRecord> = result.patterns.iter().filter(|p| is_own(p)).collect();
            let told = Told { shares: shares(&own, 0.0, 0.0), ..Told::default() };
            let quantity = quantity.of(&partition.backend, partition.ranks).noisy(noise(result, is_own));
            all.push(Quantity { told, ..quantity });
        }
    }
    all
}

/// A whole type.
fn of_type(result: &RunResult, value: &TypeValue) -> Option<Quantity> {
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
        Quantity::new(Level::Group, value.access.name(), value.pattern_type.name(), MegabytesPerSecond, rate);
    let told = Told { shares: shares(&own, open, close), ..Told::default() };
    Some(Quantity { told, ..quantity.of(&value.backend, value.ranks).noisy(noise(result, is_own)) })
}

/// A pattern that has its time; warm-up and fill-up are single calls.
fn pattern(result: &RunResult, p: &PatternRecord, value: &PatternValue) -> Option<Quantity> {
    let rate = value.mb_per_second.filter(|_| p.time_units > 0 && p.backend != NULL_BACKEND)?;
    let column = format!("{}, {}, pattern {}", chunk(p), p.pattern_type.name(), p.pattern);
    let quantity = Quantity::new(Level::Detail, p.access.name(), column, MegabytesPerSecond, rate);
    let quantity = quantity.of(&p.backend, p.ranks).noisy(noise_of(p));
    let rounds = p.rounds.iter().filter_map(|round| mb_per_second(round.moved_bytes, round.seconds)).collect();
    let mut facts = vec![
        ("calls".to_owned(), p.strategy.clone()),
        ("direct I/O".to_owned(), p.direct.map_or("not known", |d| if d { "yes" } else { "no" }).to_owned()),
    ];
    facts.extend(p.hints_granted.iter().map(|(key, value)| (format!("hint {key}"), value.clone())));
    let told = Told {
        shares: shares(&[p], 0.0, 0.0),
        cache_share: cache_share(result, p),
        few_calls: value.few_calls,
        busy: is_shared(&p.machine),
        facts,
    };
    Some(Quantity { rounds, told, ..quantity })
}

/// `1 kB+8`; what is none of the six sizes is M_PART.
fn chunk(p: &PatternRecord) -> &'static str {
    let row = ROW_BYTES.iter().position(|bytes| *bytes == p.chunk_bytes).unwrap_or(ROW_BYTES.len());
    match ROWS.get(row) {
        Some(_) if p.call_bytes == 2 * ROW_BYTES[4] && p.chunk_bytes == ROW_BYTES[4] => "1 MB of 2 MB",
        Some(name) => name,
        None => "M_PART",
    }
}

fn noise_of(p: &PatternRecord) -> f64 {
    if p.direct == Some(true) {
        NOISE_DIRECT
    } else {
        NOISE_CACHED
    }
}

/// That of the noisiest of them.
fn noise(result: &RunResult, is_own: impl Fn(&PatternRecord) -> bool) -> f64 {
    result.patterns.iter().filter(|p| is_own(p)).map(noise_of).fold(NOISE_DIRECT, f64::max)
}

/// Where their time went.
fn shares(own: &[&PatternRecord], open_seconds: f64, close_seconds: f64) -> Vec<(&'static str, f64)> {
    let mut sum = Intervals::default();
    own.iter().for_each(|p| sum.add(&p.intervals));
    let total = sum.total_seconds() + open_seconds + close_seconds;
    let parts = [
        ("open", open_seconds),
        ("view", sum.view_seconds),
        ("room", sum.room_seconds),
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
