//! What the reader of the numbers of IMB-IO must know. At most one of a kind (for each backend), with the worst case named.

use beff_statistics::repeated::LEAST_TO_END;

use super::kinds::{self, KINDS};
use super::row::RowValue;
use super::verdict::{is_not_verified, ImbVerdict};
use crate::frame::records::{Outcome, Warning};
use crate::frame::units::{count, format_seconds, format_size};
use crate::frame::values::binding::in_each_others_way;
use crate::frame::values::machine_share;
use crate::frame::values::source::Cached;
use crate::frame::values::warning::{self, memory_taken_back, number_and_first, of_machine};
use crate::frame::values::{hints, MPI_IO, NULL_BACKEND};
use crate::frame::words::{nanoseconds, percent};
use crate::imb_io::records::{ImbResult, RowEnd, RowRecord};

/// A load that takes this much more or less than asked for makes the overlap doubtful.
const CALIBRATION_ERROR: f64 = 0.1;

/// A reading of the clock that is more than this share of a repetition distorts its time.
const CLOCK_SHARE: f64 = 0.05;

/// The warnings of the run itself and those that follow from its records.
pub(super) fn warnings(result: &ImbResult, values: &[RowValue], verdict: &ImbVerdict) -> Vec<Warning> {
    let mut found = Vec::new();
    found.extend(allocations(result));
    found.extend(not_verified(result));
    found.extend(of_machine(&result.setup.machine, Some(&result.setup.storage)));
    found.extend(in_each_others_way(&result.setup.machine));
    if result.measured().any(|r| r.backend != NULL_BACKEND && r.direct != Some(true)) {
        found.extend(memory_taken_back(&result.setup.machine));
    }
    for backend in &result.config.backends {
        let own = || result.rows.iter().zip(values).filter(|(r, _)| &r.backend == backend);
        let refused = own().filter_map(|(r, _)| match &r.ended {
            RowEnd::NotRun(reason) => Some(reason.as_str()),
            _ => None,
        });
        found.extend(warning::not_run(&kinds::NOT_RUN, backend, ("row", "rows"), refused));
        if backend == MPI_IO {
            found.extend(hints_missing(result, backend));
        }
        found.extend(read_from_cache(backend, own()));
        found.extend(source_unknown(backend, own().map(|(_, v)| v)));
    }
    let named = |r: &RowRecord| {
        let size = r.sample_bytes.map_or_else(String::new, |bytes| format!(", {bytes} bytes"));
        format!("{}{size} on {} ranks, {}", r.benchmark, r.ranks, r.backend)
    };
    let watched = result.measured().map(|r| (named(r), r.machine.as_ref()));
    found.extend(machine_share::warning("row", watched));
    found.extend(load_not_calibrated(result));
    found.extend(clock_cost(result));
    found.extend(not_narrow(result, values));
    found.extend(overrun(result, verdict));
    warning::all(&result.warnings, found, KINDS)
}

/// Open_Close prepares nothing: its rows do not say what is in force.
fn hints_missing(result: &ImbResult, backend: &str) -> Option<Warning> {
    let asked = result.config.hints.as_slice();
    let told = |r: &&RowRecord| r.backend == backend && r.ended == RowEnd::Complete && r.sample_bytes.is_some();
    hints::missing(result.rows.iter().filter(told).map(|r| (asked, r.hints_granted.as_slice())), backend)
}

fn allocations(result: &ImbResult) -> Option<Warning> {
    let with: Vec<&RowRecord> = result.measured().filter(|r| r.allocations_in_clock > 0).collect();
    let benchmark = &with.first()?.benchmark;
    let allocations = with.iter().map(|r| r.allocations_in_clock).fold(0, u64::saturating_add);
    let (number, rows) = (with.len() as u64, count(with.len() as u64, "row"));
    let warning = kinds::ALLOCATIONS_IN_CLOCK.warning().figure("allocations", allocations).figure("rows", number);
    Some(warning.figure("benchmark", benchmark).told(
        format!("a defect of this program: memory was allocated inside the clock of {rows}"),
        format!(
            "DEFECT: {} inside the clock in {rows}, first in {benchmark}.",
            count(allocations, "memory allocation")
        ),
    ))
}

fn not_verified(result: &ImbResult) -> Option<Warning> {
    let (rows, first) = number_and_first(result.rows.iter().filter(|r| is_not_verified(r)))?;
    let benchmark = &first.benchmark;
    Some(kinds::NOT_VERIFIED.warning().figure("rows", rows).figure("benchmark", benchmark).told(
        format!("{} not compared byte by byte", count(rows, "row")),
        format!("Of {} not every byte was compared, first of {benchmark}.", count(rows, "complete row")),
    ))
}

fn read_from_cache<'a>(backend: &str, own: impl Iterator<Item = (&'a RowRecord, &'a RowValue)>) -> Option<Warning> {
    let known: Vec<(u64, u64)> = own.filter_map(|(r, v)| Some((r.moved_bytes, v.storage_bytes?))).collect();
    let Cached { reads: rows, asked_bytes, storage_bytes } = Cached::of(known.iter().copied())?;
    let of = known.len() as u64;
    let warning = kinds::READ_FROM_CACHE.warning().of(backend).figure("rows", rows).figure("of", of);
    Some(warning.figure("asked_bytes", asked_bytes).figure("storage_bytes", storage_bytes).told(
        format!("{rows} of {of} reads came from memory, not from storage (mark c)"),
        format!(
            "{backend}: of {} of reads {rows} {}: of {} read there only {} came from storage.",
            count(of, "row"),
            if rows == 1 { "is a cache figure" } else { "are cache figures" },
            format_size(asked_bytes),
            format_size(storage_bytes)
        ),
    ))
}

fn source_unknown<'a>(backend: &str, own: impl Iterator<Item = &'a RowValue>) -> Option<Warning> {
    let (number, _) = number_and_first(own.filter(|v| v.has_source && v.storage_bytes.is_none()))?;
    let rows = count(number, "row");
    Some(kinds::SOURCE_UNKNOWN.warning().of(backend).figure("rows", number).told(
        format!("not known where {rows} read from (mark ?)"),
        format!("{backend}: nobody knows whether what {rows} read came from storage or from a cache."),
    ))
}

fn load_not_calibrated(result: &ImbResult) -> Option<Warning> {
    let calibration_error = result.announcement.as_ref()?.cpu_load?.calibration_error;
    // A number that is none is no good calibration either.
    let is_good = calibration_error <= CALIBRATION_ERROR;
    let off = percent(calibration_error);
    (!is_good).then(|| {
        kinds::LOAD_NOT_CALIBRATED.warning().figure("calibration_error", calibration_error).told(
            format!("the CPU load beside non-blocking calls was off by {off}"),
            format!(
                "The CPU load took up to {off} more or less than asked for, which is more than {}: the overlap is doubtful.",
                percent(CALIBRATION_ERROR)
            ),
        )
    })
}

/// A row in words.
fn name(row: &RowRecord) -> String {
    let size = row.sample_bytes.map_or_else(String::new, |bytes| format!(" with {}", format_size(bytes)));
    format!("{}{size}", row.benchmark)
}

fn clock_cost(result: &ImbResult) -> Option<Warning> {
    let lap_ns = result.setup.lap_ns;
    let complete: Vec<&RowRecord> = result.rows.iter().filter(|r| r.ended == RowEnd::Complete).collect();
    // Calls that move nothing are not what anybody compares, and ranks without a part make such calls.
    let least = |r: &RowRecord| r.times.iter().map(|t| t.max_seconds).reduce(f64::min);
    let moving = complete.iter().filter(|r| r.sample_bytes != Some(0));
    let timed = moving.filter_map(|r| Some((*r, least(r)?)));
    let costly: Vec<_> = timed.filter(|(_, seconds)| lap_ns * 1e-9 > CLOCK_SHARE * seconds).collect();
    let (worst, seconds) = costly.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let (rows, of) = (costly.len(), complete.len() as u64);
    let warning = kinds::CLOCK_COST.warning().figure("rows", rows).figure("of", of);
    let warning = warning.figure("benchmark", &worst.benchmark).figure("sample_bytes", worst.sample_bytes);
    Some(warning.figure("seconds", seconds).figure("lap_ns", lap_ns).told(
        format!("reading the clock is a part of the time of {rows} of {of} rows"),
        format!(
            "In {rows} of {} keeping the end of a repetition, {}, is more than {} of t_max; the shortest is {}, {}.",
            count(of, "row"),
            nanoseconds(lap_ns),
            percent(CLOCK_SHARE),
            name(worst),
            format_seconds(*seconds)
        ),
    ))
}

/// Of a run that came to its end: one that was stopped says so anyway.
fn not_narrow(result: &ImbResult, values: &[RowValue]) -> Option<Warning> {
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
    let (rows, of, asked_for) = (wide().count(), asked.len() as u64, percent(until_share));
    let reached = match reach_share {
        Some(share) if *measured >= LEAST_TO_END as u64 => format!("reaches {} from its mean", percent(*share)),
        _ => format!("was measured {}, {LEAST_TO_END} are needed", count(*measured, "time")),
    };
    let warning = kinds::NOT_NARROW.warning().figure("rows", rows).figure("of", of).figure("until_share", until_share);
    let warning = warning.figure("benchmark", &least.benchmark).figure("sample_bytes", least.sample_bytes);
    Some(warning.figure("measured", measured).figure("reach_share", reach_share).told(
        format!("{rows} of {of} rows are not known within {asked_for}"),
        format!(
            "{rows} of {} {} not known within {asked_for} (--until); {} {reached}.",
            count(of, "row"),
            if rows == 1 { "is" } else { "are" },
            name(least)
        ),
    ))
}

fn overrun(result: &ImbResult, verdict: &ImbVerdict) -> Option<Warning> {
    let told = result.announcement.as_ref()?;
    let (limit_seconds, real_seconds) = (told.limit_seconds?, verdict.real_seconds?);
    let expected_seconds = told.expected_seconds;
    warning::overrun(&kinds::OVERRUN, real_seconds, (limit_seconds, expected_seconds), |real| {
        let [limit, expected] = [limit_seconds, expected_seconds].map(format_seconds);
        let at_most = if limit == expected { String::new() } else { format!(" and {limit} at most") };
        format!("The rows took {real}; {expected} were announced{at_most}.")
    })
}
