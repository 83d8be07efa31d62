//! What the reader of a replay must know. At most one of a kind (for each backend), with the first or the worst case named.

use super::caches;
use super::kinds::{self, KINDS};
use super::verdict::Verdict;
use crate::frame::backends;
use crate::frame::config::{BindPolicy, DirectPolicy};
use crate::frame::records::Warning;
use crate::frame::units::{count, format_seconds, format_size};
use crate::frame::values::binding::in_each_others_way;
use crate::frame::values::machine_share;
use crate::frame::values::source::CACHE_SHARE;
use crate::frame::values::warning::{self, memory_taken_back, of_machine};
use crate::frame::values::NULL_BACKEND;
use crate::frame::words::{clause, percent};
use crate::replay::config::Pace;
use crate::replay::records::{PassEnd, PassRecord, ReplayResult};

/// A call that begins later than this behind its deadline is told of.
const LATE_SECONDS: f64 = 1e-3;

pub(super) fn warnings(result: &ReplayResult, verdict: &Verdict) -> Vec<Warning> {
    let mut found = Vec::new();
    found.extend(profile_cut(result));
    found.extend(threads(result));
    found.extend(order_lost(result));
    for backend in &result.config.backends {
        let own: Vec<&PassRecord> = result.passes.iter().filter(|p| &p.backend == backend).collect();
        let refused = own.iter().filter_map(|p| match &p.ended {
            PassEnd::NotRun(reason) => Some(reason.as_str()),
            _ => None,
        });
        if let Some(not_run) = warning::not_run(&kinds::NOT_RUN, backend, ("pass", "passes"), refused) {
            found.push(not_run);
            continue;
        }
        found.extend(left_out(result, backend));
        if backend != NULL_BACKEND {
            found.extend(not_as_recorded(backend, &own));
            found.extend(cache_differs(result, backend, &own));
        }
        found.extend(late(result, backend, &own));
    }
    found.extend(unchecked(result, verdict));
    found.extend(allocations(result));
    found.extend(of_machine(&result.setup.machine, Some(&result.setup.storage)));
    let is_direct =
        |name: &str| backends::can(name, |row| row.can_direct) && result.config.direct.of(name) != DirectPolicy::Off;
    if result.config.backends.iter().any(|name| name != NULL_BACKEND && !is_direct(name)) {
        found.extend(memory_taken_back(&result.setup.machine));
    }
    // Where the launcher put them is where the recorded program would have been, too.
    if result.config.bind != BindPolicy::None {
        found.extend(in_each_others_way(&result.setup.machine));
    }
    let watched = result.passes.iter().map(|p| (format!("{}, pass {}", p.backend, p.pass), p.machine.as_ref()));
    found.extend(machine_share::warning("pass", watched));
    warning::all(&result.warnings, found, KINDS)
}

fn profile_cut(result: &ReplayResult) -> Option<Warning> {
    let profile = &result.setup.profile;
    let (of, calls_cut) = (profile.processes, profile.calls_cut);
    let early = profile.ended.iter().filter(|e| e.end != "complete").map(|e| e.processes).fold(0, u64::saturating_add);
    if early.max(calls_cut) == 0 {
        return None;
    }
    let recorded = format!("recording of {early} of {} did not end with the program", count(of, "process"));
    let behind = " behind a collective call that not all of its ranks made: left out.";
    let cut = if calls_cut == 0 { String::new() } else { format!(" {}{behind}", count(calls_cut, "call")) };
    let warning = kinds::PROFILE_CUT.warning().figure("processes", early).figure("of", of);
    Some(warning.figure("calls_cut", calls_cut).told(format!("the {recorded}"), format!("The {recorded}.{cut}")))
}

fn threads(result: &ReplayResult) -> Option<Warning> {
    let threads = result.setup.profile.threads;
    let all = count(threads, "thread");
    (threads > 1).then(|| {
        kinds::THREADS.warning().figure("threads", threads).told(
            format!("{all} of a process made calls, here one behind the other"),
            format!("Up to {all} of a process made calls when it was recorded; here one thread makes them one behind the other."),
        )
    })
}

fn order_lost(result: &ReplayResult) -> Option<Warning> {
    let orderings = result.setup.profile.orderings_lost;
    let all = count(orderings, "order");
    (orderings > 0).then(|| {
        kinds::ORDER_LOST.warning().figure("orderings", orderings).told(
            format!("{all} between ranks not kept: a read may overtake its write"),
            format!("{all} between ranks could not be kept: the earlier call is not replayed. A read may overtake its write."),
        )
    })
}

fn left_out(result: &ReplayResult, backend: &str) -> Option<Warning> {
    let list = &result.setup.leavings.iter().find(|l| l.backend == backend)?.left_out;
    let most = list.iter().max_by_key(|l| l.calls)?;
    let bytes = list.iter().map(|l| l.bytes).fold(0, u64::saturating_add);
    let number = list.iter().map(|l| l.calls).fold(0, u64::saturating_add);
    let (calls, function) = (count(number, "call"), &most.function);
    let warning = kinds::LEFT_OUT.warning().of(backend).figure("calls", number).figure("bytes", bytes);
    Some(warning.figure("function", function).figure("reason", &most.reason).told(
        format!("{calls} left out, most of them {function}"),
        format!(
            "{backend}: {calls} with {} left out, most of them {function}: {}.",
            format_size(bytes),
            clause(&most.reason)
        ),
    ))
}

fn not_as_recorded(backend: &str, own: &[&PassRecord]) -> Option<Warning> {
    let first = own.iter().flat_map(|p| &p.differences).next()?;
    let calls = own.iter().map(|p| p.calls.saturating_sub(p.calls_as_recorded)).fold(0, u64::saturating_add);
    let of = own.iter().map(|p| p.calls).fold(0, u64::saturating_add);
    let (all, kind, function) = (count(of, "call"), &first.kind, &first.function);
    let warning = kinds::NOT_AS_RECORDED.warning().of(backend).figure("calls", calls).figure("of", of);
    Some(warning.figure("first", first).told(
        format!("{calls} of {all} had other results, first {function} ({kind})"),
        format!(
            "{backend}: {calls} of {all} had another result than the recorded one. The first in {kind}: {function} of rank {} at {} ns \
             (recorded: {}; replayed: {}).",
            first.rank, first.begin_ns, first.recorded, first.replayed
        ),
    ))
}

fn cache_differs(result: &ReplayResult, backend: &str, own: &[&PassRecord]) -> Option<Warning> {
    let profile = &result.setup.profile;
    let share = |storage: u64, read: u64| (read > 0).then(|| (storage as f64 / read as f64).min(1.0));
    let recorded_share = share(caches::recorded(result).ok()?, profile.read_bytes)?;
    let complete = || own.iter().filter(|p| p.ended == PassEnd::Complete);
    let fetched = complete().try_fold(0, |sum: u64, p| Some(sum.saturating_add(caches::replayed(result, p).ok()?)))?;
    let replayed_share = share(fetched, profile.read_bytes.saturating_mul(complete().count() as u64))?;
    let [then, now] = [recorded_share, replayed_share].map(percent);
    let warning = kinds::CACHE_DIFFERS.warning().of(backend).figure("recorded_share", recorded_share);
    ((recorded_share - replayed_share).abs() > CACHE_SHARE).then(|| {
        warning.figure("replayed_share", replayed_share).told(
            format!("of what was read {then} came past the page cache then, {now} now: a disk is compared with a cache (--cache)"),
            format!(
                "{backend}: of the bytes read {then} were fetched past the page cache when it was recorded, now {now}: caches were in \
                 another state."
            ),
        )
    })
}

fn late(result: &ReplayResult, backend: &str, own: &[&PassRecord]) -> Option<Warning> {
    let late_seconds = own.iter().filter_map(|p| p.late_seconds).reduce(f64::max)?;
    let is_told = result.config.pace != Pace::Fast && late_seconds > LATE_SECONDS;
    let most = format_seconds(late_seconds);
    is_told.then(|| {
        kinds::LATE.warning().of(backend).figure("late_seconds", late_seconds).told(
            format!("calls began up to {most} late: larger --scale"),
            format!("{backend}: calls began up to {most} behind their deadline."),
        )
    })
}

fn unchecked(result: &ReplayResult, verdict: &Verdict) -> Option<Warning> {
    let share = 1.0 - verdict.checked_share?;
    let part = percent(share);
    (result.config.verify && share > 0.0).then(|| {
        kinds::UNCHECKED.warning().figure("share", share).told(
            format!("{part} of what was read could not be compared"),
            format!("{part} of the bytes read could not be compared: the profile does not tell what they were."),
        )
    })
}

fn allocations(result: &ReplayResult) -> Option<Warning> {
    let backend = &result.passes.iter().find(|p| p.allocations_in_clock > 0)?.backend;
    let allocations = result.passes.iter().map(|p| p.allocations_in_clock).fold(0, u64::saturating_add);
    let all = count(allocations, "memory allocation");
    Some(kinds::ALLOCATIONS_IN_CLOCK.warning().of(backend).figure("allocations", allocations).told(
        format!("a defect of this program: {all} inside the clock"),
        format!("{all} inside the clock, first with {backend}."),
    ))
}
