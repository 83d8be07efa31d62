//! Warnings of a replay: at most one of a kind (for each backend), with the first or the worst case.

use super::kinds::{self, KINDS};
use super::storage_reads;
use super::verdict::FidelityVerdict;
use crate::frame::backends;
use crate::frame::config::{BindPolicy, DirectPolicy};
use crate::frame::records::Warning;
use crate::frame::units::{count, format_seconds, format_size};
use crate::frame::values::binding::shared_host_warning;
use crate::frame::values::interference;
use crate::frame::values::read_source::CACHED_THRESHOLD;
use crate::frame::values::time_limit;
use crate::frame::values::warning::{self, machine_warnings, memory_ballooning};
use crate::frame::values::NULL_BACKEND;
use crate::frame::words::{clause, percent};
use crate::replay::config::Pace;
use crate::replay::records::{repetition_name, ProfileRepetition, RepetitionStatus, ReplayResult};

const MIN_LATE_SECONDS: f64 = 1e-3;

pub(super) fn warnings(result: &ReplayResult, verdict: &FidelityVerdict) -> Vec<Warning> {
    let mut found = Vec::new();
    found.extend(profile_incomplete(result));
    found.extend(threads(result));
    found.extend(order_lost(result));
    for backend in &result.config.backends {
        let own: Vec<&ProfileRepetition> = result.repetitions.iter().filter(|p| &p.backend == backend).collect();
        let refused = own.iter().filter_map(|p| match &p.ended {
            RepetitionStatus::NotRun(reason) => Some(reason.as_str()),
            _ => None,
        });
        if let Some(not_run) =
            warning::not_run_warning(&kinds::NOT_RUN, backend, ("repetition", "repetitions"), refused)
        {
            found.push(not_run);
            continue;
        }
        found.extend(omitted_calls(result, backend));
        if backend != NULL_BACKEND {
            found.extend(not_as_recorded(backend, &own));
            found.extend(cache_differs(result, backend, &own));
        }
        found.extend(late(result, backend, &own));
    }
    found.extend(unchecked(result, verdict));
    found.extend(allocations(result));
    found.extend(machine_warnings(&result.setup.machine, Some(&result.setup.storage)));
    found.extend(time_limit::warning(result));
    let is_direct = |name: &str| {
        let backend = result.config.backend_of(name);
        backends::supports(backend, |row| row.can_direct) && result.config.direct.of(backend) != DirectPolicy::Off
    };
    if result.config.backends.iter().any(|name| name != NULL_BACKEND && !is_direct(name)) {
        found.extend(memory_ballooning(&result.setup.machine));
    }
    // The launcher would have placed the recorded program in the same way.
    if result.config.bind != BindPolicy::None {
        found.extend(shared_host_warning(&result.setup.machine));
    }
    let timed = result.repetitions.iter().filter(|p| p.is_timed());
    let watched = timed.map(|p| (repetition_name(&p.backend, p.repetition), p.interference.as_ref()));
    found.extend(interference::interference_warning("repetition", watched));
    warning::merge_warnings(&result.warnings, found, KINDS)
}

fn profile_incomplete(result: &ReplayResult) -> Option<Warning> {
    let profile = &result.setup.profile;
    let (of, calls_cut) = (profile.processes, profile.calls_discarded);
    let early = profile.ended.iter().filter(|e| e.end != "complete").map(|e| e.processes).fold(0, u64::saturating_add);
    if early.max(calls_cut) == 0 {
        return None;
    }
    let recorded = format!("recording of {early} of {} did not end with the program", count(of, "process"));
    let behind = " after a collective call that not all of its ranks made: discarded.";
    let cut = if calls_cut == 0 { String::new() } else { format!(" {}{behind}", count(calls_cut, "call")) };
    let warning = kinds::PROFILE_INCOMPLETE.warning().with_figure("processes", early).with_figure("of", of);
    Some(
        warning
            .with_figure("calls_discarded", calls_cut)
            .with_text(format!("the {recorded}"), format!("The {recorded}.{cut}")),
    )
}

fn threads(result: &ReplayResult) -> Option<Warning> {
    let threads = result.setup.profile.threads;
    let all = count(threads, "thread");
    (threads > 1).then(|| {
        kinds::THREADS.warning().with_figure("threads", threads).with_text(
            format!("{all} of a process made calls, here one after the other"),
            format!("Up to {all} of a process made calls in the recorded run; here one thread issues them one after the other."),
        )
    })
}

fn order_lost(result: &ReplayResult) -> Option<Warning> {
    let orderings = result.setup.profile.orderings_lost;
    let all = count(orderings, "order");
    (orderings > 0).then(|| {
        kinds::ORDER_LOST.warning().with_figure("orderings", orderings).with_text(
            format!("{all} between ranks lost: a read may precede its write"),
            format!("{all} between ranks could not be preserved: the earlier call is not replayed, or a wait for it would deadlock with a collective call. A read may precede its write."),
        )
    })
}

fn omitted_calls(result: &ReplayResult, backend: &str) -> Option<Warning> {
    let list = &result.setup.omissions.iter().find(|l| l.backend == backend)?.omitted;
    let most = list.iter().max_by_key(|l| l.calls)?;
    let bytes = list.iter().map(|l| l.bytes).fold(0, u64::saturating_add);
    let number = list.iter().map(|l| l.calls).fold(0, u64::saturating_add);
    let (calls, function) = (count(number, "call"), &most.function);
    let warning =
        kinds::OMITTED.warning().for_backend(backend).with_figure("calls", number).with_figure("bytes", bytes);
    Some(warning.with_figure("function", function).with_figure("reason", &most.reason).with_text(
        format!("{calls} omitted, most of them {function}"),
        format!(
            "{backend}: {calls} with {} omitted, most of them {function}: {}.",
            format_size(bytes),
            clause(&most.reason)
        ),
    ))
}

fn not_as_recorded(backend: &str, own: &[&ProfileRepetition]) -> Option<Warning> {
    let first = own.iter().flat_map(|p| &p.differences).next()?;
    let calls = own.iter().map(|p| p.calls.saturating_sub(p.calls_as_recorded)).fold(0, u64::saturating_add);
    let of = own.iter().map(|p| p.calls).fold(0, u64::saturating_add);
    let (all, kind, function) = (count(of, "call"), &first.kind, &first.function);
    let warning =
        kinds::NOT_AS_RECORDED.warning().for_backend(backend).with_figure("calls", calls).with_figure("of", of);
    Some(warning.with_figure("first", first).with_text(
        format!("{calls} of {all} had other results, first {function} ({kind})"),
        format!(
            "{backend}: {calls} of {all} had another result than the recorded one. The first in {kind}: {function} of rank {} at {} ns \
             (recorded: {}; replayed: {}).",
            first.rank, first.begin_ns, first.recorded, first.replayed
        ),
    ))
}

fn cache_differs(result: &ReplayResult, backend: &str, own: &[&ProfileRepetition]) -> Option<Warning> {
    let profile = &result.setup.profile;
    let share = |storage: u64, read: u64| (read > 0).then(|| (storage as f64 / read as f64).min(1.0));
    let recorded_share = share(storage_reads::recorded(result).ok()?, profile.read_bytes)?;
    let complete = || own.iter().filter(|p| p.is_timed_complete());
    let fetched = complete().try_fold(0, |sum: u64, p| {
        Some(sum.saturating_add(storage_reads::replayed(&result.setup.storage.fs_type, p).ok()?))
    })?;
    let replayed_share = share(fetched, profile.read_bytes.saturating_mul(complete().count() as u64))?;
    let [then, now] = [recorded_share, replayed_share].map(percent);
    let warning = kinds::CACHE_DIFFERS.warning().for_backend(backend).with_figure("recorded_share", recorded_share);
    ((recorded_share - replayed_share).abs() > CACHED_THRESHOLD).then(|| {
        warning.with_figure("replayed_share", replayed_share).with_text(
            format!("of what was read {then} came from storage when recorded, {now} now: other cache state (--cache)"),
            format!(
                "{backend}: of the bytes read {then} were fetched from storage when recorded, now {now}: the page cache was in \
                 another state."
            ),
        )
    })
}

fn late(result: &ReplayResult, backend: &str, own: &[&ProfileRepetition]) -> Option<Warning> {
    let late_seconds = own.iter().filter_map(|p| p.late_seconds).reduce(f64::max)?;
    let is_reported = result.config.pace != Pace::Fast && late_seconds > MIN_LATE_SECONDS;
    let most = format_seconds(late_seconds);
    is_reported.then(|| {
        kinds::LATE.warning().for_backend(backend).with_figure("late_seconds", late_seconds).with_text(
            format!("calls began up to {most} late: larger --scale"),
            format!("{backend}: calls began up to {most} after their deadline."),
        )
    })
}

fn unchecked(result: &ReplayResult, verdict: &FidelityVerdict) -> Option<Warning> {
    let share = 1.0 - verdict.checked_share?;
    let part = percent(share);
    (result.config.verify && share > 0.0).then(|| {
        kinds::UNCHECKED.warning().with_figure("share", share).with_text(
            format!("{part} of what was read could not be compared"),
            format!("{part} of the bytes read could not be compared: the profile does not contain their origin."),
        )
    })
}

fn allocations(result: &ReplayResult) -> Option<Warning> {
    let backend = &result.repetitions.iter().find(|p| p.allocations_in_clock > 0)?.backend;
    let allocations = result.repetitions.iter().map(|p| p.allocations_in_clock).fold(0, u64::saturating_add);
    let all = count(allocations, "memory allocation");
    Some(kinds::ALLOCATIONS_IN_CLOCK.warning().for_backend(backend).with_figure("allocations", allocations).with_text(
        format!("a defect of this program: {all} in the timed region"),
        format!("{all} in the timed region, first with {backend}."),
    ))
}
