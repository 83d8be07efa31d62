//! What the reader of the numbers of IMB-IO must know. At most one of a kind (for each backend), with the worst case named.

use beff_statistics::repeated::LEAST_TO_END;
use schemars::JsonSchema;
use serde::Serialize;

use super::row::RowValue;
use super::verdict::{is_not_verified, ImbVerdict};
use crate::frame::records::{Outcome, Warning};
use crate::frame::values::binding::in_each_others_way;
use crate::frame::values::machine_share;
use crate::frame::values::source::Cached;
use crate::frame::values::warning::{is_overrun, memory_taken_back, number_and_first, of_machine, without_repetition};
use crate::frame::values::{hints, MPI_IO, NULL_BACKEND};
use crate::imb_io::records::{ImbResult, RowEnd, RowRecord};

/// A load that takes this much more or less than asked for makes the overlap doubtful.
pub const CALIBRATION_ERROR: f64 = 0.1;

/// A reading of the clock that is more than this share of a repetition distorts its time.
pub const CLOCK_SHARE: f64 = 0.05;

/// One warning. The values are a closed set; text is made when shown.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum ImbWarning {
    /// The program allocated memory inside the clock.
    AllocationsInClock {
        /// How many times.
        allocations: u64,
        /// In how many rows.
        rows: u64,
        /// Benchmark of the first of them.
        benchmark: String,
    },
    /// Complete rows of which not every byte was compared.
    NotVerified {
        /// How many.
        rows: u64,
        /// Benchmark of the first.
        benchmark: String,
    },
    /// Rows were not run.
    NotRun {
        /// Backend name.
        backend: String,
        /// How many.
        rows: u64,
        /// First reason.
        reason: String,
    },
    /// Part of the bytes read did not come from storage.
    ReadFromCache {
        /// Backend name.
        backend: String,
        /// Rows that are cache figures.
        rows: u64,
        /// Of how many reads whose source is known.
        of: u64,
        /// Bytes these rows read.
        asked_bytes: u64,
        /// Bytes of that from storage.
        storage_bytes: u64,
    },
    /// Nobody knows where the bytes of reads came from.
    SourceUnknown {
        /// Backend name.
        backend: String,
        /// Rows.
        rows: u64,
    },
    /// The CPU load takes another time than asked for, by more than 0.1 of it.
    LoadNotCalibrated {
        /// Largest relative difference; None: no number.
        #[schemars(with = "Option<f64>")]
        calibration_error: f64,
    },
    /// Keeping the end of a repetition is more than 5 % of t_max of rows (without those of 0 bytes).
    ClockCost {
        /// In how many rows.
        rows: u64,
        /// Of how many complete ones.
        of: u64,
        /// Benchmark of the shortest time.
        benchmark: String,
        /// Its size; None: Open_Close.
        sample_bytes: Option<u64>,
        /// Its t_min.
        seconds: f64,
        /// One reading.
        lap_ns: f64,
    },
    /// Rows that are not known as well as `--until` asks.
    NotNarrow {
        /// How many.
        rows: u64,
        /// Of how many complete ones that took any time.
        of: u64,
        /// What was asked for, as a share.
        until_share: f64,
        /// Benchmark of the one that is known least.
        benchmark: String,
        /// Its size; None: Open_Close.
        sample_bytes: Option<u64>,
        /// How often it was measured, the first time included; a row is known by five measurements at least.
        measured: u64,
        /// How far its interval reaches; None: there is none.
        reach_share: Option<f64>,
    },
    /// The rows took more than 1.1 times as long as they may.
    Overrun {
        /// Longest time announced.
        limit_seconds: f64,
        /// Time announced.
        expected_seconds: f64,
        /// Time taken.
        real_seconds: f64,
    },
    /// A warning that every benchmark knows.
    #[serde(untagged)]
    Shared(Warning),
}

/// The warnings of the run itself and those that follow from its records.
pub(super) fn warnings(result: &ImbResult, values: &[RowValue], verdict: &ImbVerdict) -> Vec<ImbWarning> {
    let mut found: Vec<ImbWarning> = result.warnings.iter().cloned().map(ImbWarning::Shared).collect();
    found.extend(allocations(result));
    found.extend(not_verified(result));
    found.extend(of_machine(&result.setup.machine, Some(&result.setup.storage)).map(ImbWarning::Shared));
    found.extend(in_each_others_way(&result.setup.machine).map(ImbWarning::Shared));
    if result.measured().any(|r| r.backend != NULL_BACKEND && r.direct != Some(true)) {
        found.extend(memory_taken_back(&result.setup.machine).map(ImbWarning::Shared));
    }
    for backend in &result.config.backends {
        let own = || result.rows.iter().zip(values).filter(|(r, _)| &r.backend == backend);
        found.extend(not_run(backend, own().map(|(r, _)| r)));
        if backend == MPI_IO {
            found.extend(hints_missing(result, backend).map(ImbWarning::Shared));
        }
        found.extend(read_from_cache(backend, own()));
        found.extend(source_unknown(backend, own().map(|(_, v)| v)));
    }
    let named = |r: &RowRecord| {
        let size = r.sample_bytes.map_or_else(String::new, |bytes| format!(", {bytes} bytes"));
        format!("{}{size} on {} ranks, {}", r.benchmark, r.ranks, r.backend)
    };
    let watched = result.measured().map(|r| (named(r), r.machine.as_ref()));
    found.extend(machine_share::warning("row", watched).map(ImbWarning::Shared));
    found.extend(load_not_calibrated(result));
    found.extend(clock_cost(result));
    found.extend(not_narrow(result, values));
    found.extend(overrun(result, verdict));
    without_repetition(found)
}

/// Open_Close prepares nothing: its rows do not say what is in force.
fn hints_missing(result: &ImbResult, backend: &str) -> Option<Warning> {
    let asked = result.config.hints.as_slice();
    let told = |r: &&RowRecord| r.backend == backend && r.ended == RowEnd::Complete && r.sample_bytes.is_some();
    hints::missing(result.rows.iter().filter(told).map(|r| (asked, r.hints_granted.as_slice())), backend)
}

fn allocations(result: &ImbResult) -> Option<ImbWarning> {
    let with: Vec<&RowRecord> = result.measured().filter(|r| r.allocations_in_clock > 0).collect();
    Some(ImbWarning::AllocationsInClock {
        allocations: with.iter().map(|r| r.allocations_in_clock).fold(0, u64::saturating_add),
        rows: with.len() as u64,
        benchmark: with.first()?.benchmark.clone(),
    })
}

fn not_verified(result: &ImbResult) -> Option<ImbWarning> {
    let (rows, first) = number_and_first(result.rows.iter().filter(|r| is_not_verified(r)))?;
    Some(ImbWarning::NotVerified { rows, benchmark: first.benchmark.clone() })
}

fn not_run<'a>(backend: &str, own: impl Iterator<Item = &'a RowRecord>) -> Option<ImbWarning> {
    let (rows, reason) = number_and_first(own.filter_map(|r| match &r.ended {
        RowEnd::NotRun(reason) => Some(reason.clone()),
        _ => None,
    }))?;
    Some(ImbWarning::NotRun { backend: backend.to_owned(), rows, reason })
}

fn read_from_cache<'a>(backend: &str, own: impl Iterator<Item = (&'a RowRecord, &'a RowValue)>) -> Option<ImbWarning> {
    let known: Vec<(u64, u64)> = own.filter_map(|(r, v)| Some((r.moved_bytes, v.storage_bytes?))).collect();
    let cached = Cached::of(known.iter().copied())?;
    Some(ImbWarning::ReadFromCache {
        backend: backend.to_owned(),
        rows: cached.reads,
        of: known.len() as u64,
        asked_bytes: cached.asked_bytes,
        storage_bytes: cached.storage_bytes,
    })
}

fn source_unknown<'a>(backend: &str, own: impl Iterator<Item = &'a RowValue>) -> Option<ImbWarning> {
    let (rows, _) = number_and_first(own.filter(|v| v.has_source && v.storage_bytes.is_none()))?;
    Some(ImbWarning::SourceUnknown { backend: backend.to_owned(), rows })
}

fn load_not_calibrated(result: &ImbResult) -> Option<ImbWarning> {
    let calibration_error = result.announcement.as_ref()?.cpu_load?.calibration_error;
    // A number that is none is no good calibration either.
    let is_good = calibration_error <= CALIBRATION_ERROR;
    (!is_good).then_some(ImbWarning::LoadNotCalibrated { calibration_error })
}

fn clock_cost(result: &ImbResult) -> Option<ImbWarning> {
    let lap_ns = result.setup.lap_ns;
    let complete: Vec<&RowRecord> = result.rows.iter().filter(|r| r.ended == RowEnd::Complete).collect();
    // Calls that move nothing are not what anybody compares, and ranks without a part make such calls.
    let least = |r: &RowRecord| r.times.iter().map(|t| t.max_seconds).reduce(f64::min);
    let moving = complete.iter().filter(|r| r.sample_bytes != Some(0));
    let timed = moving.filter_map(|r| Some((*r, least(r)?)));
    let costly: Vec<_> = timed.filter(|(_, seconds)| lap_ns * 1e-9 > CLOCK_SHARE * seconds).collect();
    let (worst, seconds) = costly.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(ImbWarning::ClockCost {
        rows: costly.len() as u64,
        of: complete.len() as u64,
        benchmark: worst.benchmark.clone(),
        sample_bytes: worst.sample_bytes,
        seconds: *seconds,
        lap_ns,
    })
}

/// Of a run that came to its end: one that was stopped says so anyway.
fn not_narrow(result: &ImbResult, values: &[RowValue]) -> Option<ImbWarning> {
    let until_share = result.config.until_share.filter(|_| result.ending.outcome == Outcome::Complete)?;
    // What takes no time at all has no logarithm, and is not measured again.
    let takes_time = |r: &RowRecord| r.times.iter().any(|t| t.max_seconds > 0.0);
    let is_asked = |r: &RowRecord| r.ended == RowEnd::Complete && takes_time(r);
    let known = |v: &RowValue| v.repeated.map_or((1, None), |repeated| (repeated.measured, repeated.reach_share));
    let asked: Vec<(&RowRecord, u64, Option<f64>)> =
        result.rows.iter().zip(values).filter(|(r, _)| is_asked(r)).map(|(r, v)| (r, known(v).0, known(v).1)).collect();
    // What says nothing reaches everywhere; the rule is that which ends the repeats of a row.
    let reach = |(_, measured, reach): &(&RowRecord, u64, Option<f64>)| {
        reach.filter(|_| *measured >= LEAST_TO_END as u64).unwrap_or(f64::INFINITY)
    };
    let wide = || asked.iter().filter(|row| reach(row) > until_share);
    // The first of those that are known as little.
    let (least, measured, reach_share) = wide().rev().max_by(|a, b| reach(a).total_cmp(&reach(b)))?;
    Some(ImbWarning::NotNarrow {
        rows: wide().count() as u64,
        of: asked.len() as u64,
        until_share,
        benchmark: least.benchmark.clone(),
        sample_bytes: least.sample_bytes,
        measured: *measured,
        reach_share: *reach_share,
    })
}

fn overrun(result: &ImbResult, verdict: &ImbVerdict) -> Option<ImbWarning> {
    let told = result.announcement.as_ref()?;
    let (limit_seconds, real_seconds) = (told.limit_seconds?, verdict.real_seconds?);
    let expected_seconds = told.expected_seconds;
    is_overrun(real_seconds, limit_seconds).then_some(ImbWarning::Overrun {
        limit_seconds,
        expected_seconds,
        real_seconds,
    })
}
