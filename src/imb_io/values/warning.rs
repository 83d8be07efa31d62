//! Warnings of IMB-IO: at most one of a kind (for each backend), with the worst case named.

use beff_statistics::mean::MIN_TO_STOP;

use super::kinds::{self, KINDS};
use super::row::RowValue;
use super::verdict::{is_not_verified, ImbVerdict};
use crate::frame::backends;
use crate::frame::records::{RunOutcome, Warning};
use crate::frame::units::{count, format_seconds, format_size};
use crate::frame::values::binding::shared_host_warning;
use crate::frame::values::interference;
use crate::frame::values::read_source::CachedReads;
use crate::frame::values::time_limit;
use crate::frame::values::warning::{self, count_and_first, machine_warnings, memory_ballooning};
use crate::frame::values::{hints, MPI_IO, NULL_BACKEND};
use crate::frame::words::{nanoseconds, percent};
use crate::imb_io::records::{ImbResult, RowRecord, RowStatus};

/// Relative calibration error of the load that makes the overlap unreliable.
const CALIBRATION_ERROR: f64 = 0.1;

/// Share of an iteration above which the time stamp distorts its time.
const CLOCK_SHARE: f64 = 0.05;

pub(super) fn warnings(result: &ImbResult, values: &[RowValue], verdict: &ImbVerdict) -> Vec<Warning> {
    let mut found = Vec::new();
    found.extend(allocations(result));
    found.extend(not_verified(result));
    found.extend(machine_warnings(&result.setup.machine, Some(&result.setup.storage)));
    found.extend(time_limit::warning(result));
    found.extend(shared_host_warning(&result.setup.machine));
    if result.measurements().any(|r| r.backend != NULL_BACKEND && r.direct != Some(true)) {
        found.extend(memory_ballooning(&result.setup.machine));
    }
    for backend in &result.config.backends {
        let own = || result.rows.iter().zip(values).filter(|(r, _)| &r.backend == backend);
        let refused = own().filter_map(|(r, _)| match &r.ended {
            RowStatus::NotRun(reason) => Some(reason.as_str()),
            _ => None,
        });
        found.extend(warning::not_run_warning(&kinds::NOT_RUN, backend, ("row", "rows"), refused));
        if backends::backend_of(backend) == MPI_IO {
            found.extend(hints_missing(result, backend));
        }
        found.extend(read_from_cache(backend, own()));
        found.extend(source_unknown(backend, own().map(|(_, v)| v)));
    }
    let named = |r: &RowRecord| {
        let size = r.sample_bytes.map_or_else(String::new, |bytes| format!(", {bytes} bytes"));
        format!("{}{size} on {} ranks, {}", r.benchmark, r.ranks, r.backend)
    };
    let watched = result.measurements().map(|r| (named(r), r.interference.as_ref()));
    found.extend(interference::interference_warning("row", watched));
    found.extend(load_not_calibrated(result));
    found.extend(clock_cost(result));
    found.extend(not_narrow(result, values));
    found.extend(overrun(result, verdict));
    warning::merge_warnings(&result.warnings, found, KINDS)
}

/// Open_Close is excluded: its rows do not list the hints in force.
fn hints_missing(result: &ImbResult, backend: &str) -> Option<Warning> {
    let asked = result.config.hints_of(backend);
    let is_complete =
        |r: &&RowRecord| r.backend == backend && r.ended == RowStatus::Complete && r.sample_bytes.is_some();
    hints::ungranted_warning(
        result.rows.iter().filter(is_complete).map(|r| (asked.as_slice(), r.hints_granted.as_slice())),
        backend,
    )
}

fn allocations(result: &ImbResult) -> Option<Warning> {
    let with: Vec<&RowRecord> = result.measurements().filter(|r| r.allocations_in_clock > 0).collect();
    let benchmark = &with.first()?.benchmark;
    let allocations = with.iter().map(|r| r.allocations_in_clock).fold(0, u64::saturating_add);
    let (number, rows) = (with.len() as u64, count(with.len() as u64, "row"));
    let warning =
        kinds::ALLOCATIONS_IN_CLOCK.warning().with_figure("allocations", allocations).with_figure("rows", number);
    Some(warning.with_figure("benchmark", benchmark).with_text(
        format!("a defect of this program: memory was allocated in timed loops of {rows}"),
        format!("DEFECT: {} in timed loops of {rows}, first in {benchmark}.", count(allocations, "memory allocation")),
    ))
}

fn not_verified(result: &ImbResult) -> Option<Warning> {
    let (rows, first) = count_and_first(result.rows.iter().filter(|r| is_not_verified(r)))?;
    let benchmark = &first.benchmark;
    Some(kinds::NOT_VERIFIED.warning().with_figure("rows", rows).with_figure("benchmark", benchmark).with_text(
        format!("{} not compared byte by byte", count(rows, "row")),
        format!("Of {} not every byte was compared, first of {benchmark}.", count(rows, "complete row")),
    ))
}

fn read_from_cache<'a>(backend: &str, own: impl Iterator<Item = (&'a RowRecord, &'a RowValue)>) -> Option<Warning> {
    let known: Vec<(u64, u64)> = own.filter_map(|(r, v)| Some((r.moved_bytes, v.storage_bytes?))).collect();
    let CachedReads { reads: rows, requested_bytes: asked_bytes, storage_bytes } =
        CachedReads::of(known.iter().copied())?;
    let of = known.len() as u64;
    let warning = kinds::READ_FROM_CACHE.warning().for_backend(backend).with_figure("rows", rows).with_figure("of", of);
    Some(warning.with_figure("requested_bytes", asked_bytes).with_figure("storage_bytes", storage_bytes).with_text(
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
    let (number, _) = count_and_first(own.filter(|v| v.has_source && v.storage_bytes.is_none()))?;
    let rows = count(number, "row");
    Some(kinds::SOURCE_UNKNOWN.warning().for_backend(backend).with_figure("rows", number).with_text(
        format!("source of {rows} of reads unknown (mark ?)"),
        format!("{backend}: it is unknown whether {rows} read from storage or from a cache."),
    ))
}

fn load_not_calibrated(result: &ImbResult) -> Option<Warning> {
    let calibration_error = result.announcement.as_ref()?.cpu_load?.calibration_error;
    // NaN is not a good calibration either.
    let is_good = calibration_error <= CALIBRATION_ERROR;
    let off = percent(calibration_error);
    (!is_good).then(|| {
        kinds::LOAD_NOT_CALIBRATED.warning().with_figure("calibration_error", calibration_error).with_text(
            format!("the CPU load of non-blocking calls was off by {off}"),
            format!(
                "The CPU load differed by up to {off} from the requested time, more than {}: the overlap is unreliable.",
                percent(CALIBRATION_ERROR)
            ),
        )
    })
}

fn name(row: &RowRecord) -> String {
    let size = row.sample_bytes.map_or_else(String::new, |bytes| format!(" with {}", format_size(bytes)));
    format!("{}{size}", row.benchmark)
}

fn clock_cost(result: &ImbResult) -> Option<Warning> {
    let lap_ns = result.setup.timestamp_ns;
    let complete: Vec<&RowRecord> = result.rows.iter().filter(|r| r.ended == RowStatus::Complete).collect();
    // Calls without data are irrelevant for comparisons; ranks with an empty portion issue such calls.
    let least = |r: &RowRecord| r.times.iter().map(|t| t.max_seconds).reduce(f64::min);
    let moving = complete.iter().filter(|r| r.sample_bytes != Some(0));
    let timed = moving.filter_map(|r| Some((*r, least(r)?)));
    let costly: Vec<_> = timed.filter(|(_, seconds)| lap_ns * 1e-9 > CLOCK_SHARE * seconds).collect();
    let (worst, seconds) = costly.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let (rows, of) = (costly.len(), complete.len() as u64);
    let warning = kinds::CLOCK_COST.warning().with_figure("rows", rows).with_figure("of", of);
    let warning = warning.with_figure("benchmark", &worst.benchmark).with_figure("sample_bytes", worst.sample_bytes);
    Some(warning.with_figure("seconds", seconds).with_figure("timestamp_ns", lap_ns).with_text(
        format!("reading the clock is part of the time of {rows} of {of} rows"),
        format!(
            "In {rows} of {} the time stamp of an iteration, {}, is more than {} of t_max; the shortest is {}, {}.",
            count(of, "row"),
            nanoseconds(lap_ns),
            percent(CLOCK_SHARE),
            name(worst),
            format_seconds(*seconds)
        ),
    ))
}

fn not_narrow(result: &ImbResult, values: &[RowValue]) -> Option<Warning> {
    let until_share = result.config.until_share.filter(|_| result.ending.outcome == RunOutcome::Complete)?;
    // Times of 0 have no logarithm, and such rows are not repeated.
    let takes_time = |r: &RowRecord| r.times.iter().any(|t| t.max_seconds > 0.0);
    let is_asked = |r: &RowRecord| r.ended == RowStatus::Complete && takes_time(r);
    let known =
        |v: &RowValue| v.repeated.map_or((1, None), |repeated| (repeated.measurements, repeated.half_width_share));
    let asked: Vec<(&RowRecord, u64, Option<f64>)> =
        result.rows.iter().zip(values).filter(|(r, _)| is_asked(r)).map(|(r, v)| (r, known(v).0, known(v).1)).collect();
    // Without an interval the half-width is infinite; the rule is that which ends the repetitions of a row.
    let half_width = |(_, measured, half_width): &(&RowRecord, u64, Option<f64>)| {
        half_width.filter(|_| *measured >= MIN_TO_STOP as u64).unwrap_or(f64::INFINITY)
    };
    let wide = || asked.iter().filter(|row| half_width(row) > until_share);
    // The first row with the widest interval.
    let (least, measured, reach_share) = wide().rev().max_by(|a, b| half_width(a).total_cmp(&half_width(b)))?;
    let (rows, of, asked_for) = (wide().count(), asked.len() as u64, percent(until_share));
    let reached = match reach_share {
        Some(share) if *measured >= MIN_TO_STOP as u64 => format!("has +- {}", percent(*share)),
        _ => format!("was measured {}, {MIN_TO_STOP} are needed", count(*measured, "time")),
    };
    let warning = kinds::NOT_NARROW
        .warning()
        .with_figure("rows", rows)
        .with_figure("of", of)
        .with_figure("until_share", until_share);
    let warning = warning.with_figure("benchmark", &least.benchmark).with_figure("sample_bytes", least.sample_bytes);
    Some(warning.with_figure("measurements", measured).with_figure("half_width_share", reach_share).with_text(
        format!("intervals of {rows} of {of} rows are wider than {asked_for}"),
        format!(
            "{rows} of {} {} an interval wider than {asked_for} (--until); {} {reached}.",
            count(of, "row"),
            if rows == 1 { "has" } else { "have" },
            name(least)
        ),
    ))
}

fn overrun(result: &ImbResult, verdict: &ImbVerdict) -> Option<Warning> {
    let announced = result.announcement.as_ref()?;
    let (limit_seconds, real_seconds) = (announced.limit_seconds?, verdict.real_seconds?);
    let expected_seconds = announced.expected_seconds;
    warning::overrun_warning(&kinds::OVERRUN, real_seconds, (limit_seconds, expected_seconds), |real| {
        let [limit, expected] = [limit_seconds, expected_seconds].map(format_seconds);
        let at_most = if limit == expected { String::new() } else { format!(", at most {limit}") };
        format!("The rows took {real}; announced were {expected}{at_most}.")
    })
}
