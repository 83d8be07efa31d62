//! Warnings that follow from the records. One of a kind for each backend, with the worst case named.

use std::collections::BTreeMap;

use super::debt::{self, at, place};
use super::kinds::{self, KINDS};
use super::totals::is_empty_fill_up;
use super::{hints, intervals, pattern, storage_bytes, AccessTime, PartitionValue, RepeatedValues};
use crate::b_eff_io::config::Termination;
use crate::b_eff_io::records::{Ended, Manifest, PartitionRecord, PatternRecord, RunResult};
use crate::frame::backends;
use crate::frame::config::{CachePolicy, DirectPolicy};
use crate::frame::records::{Access, ColdRecord, Kind, PagesRecord, Warning};
use crate::frame::units::{count, format_seconds, format_size};
use crate::frame::values::binding::in_each_others_way;
use crate::frame::values::machine_share;
use crate::frame::values::probe;
use crate::frame::values::source::Cached;
use crate::frame::values::warning::{self, is_overrun, largest, memory_taken_back, number_and_first, of_machine};
use crate::frame::values::{memory_of_hosts, MPI_IO, NULL_BACKEND};
use crate::frame::words::{clause, list, others, percent};

/// Pages that stay in the cache of what was to be dropped: less than this share and these bytes do no harm.
const STAY_SHARE: f64 = 0.05;
const STAY_BYTES: u64 = 64 << 10;

/// Decisions above this share of a pattern's time are too dear...
const DECISION_SHARE: f64 = 0.01;

/// ...if the pattern lasted longer than this; a single decision is a large share of a call or two.
const DECISION_NOISE_SECONDS: f64 = 0.05;

/// The warnings of the run itself and those that follow from its records, each once.
pub(super) fn all(
    result: &RunResult,
    partitions: &[PartitionValue],
    times: &[AccessTime],
    known: &RepeatedValues,
) -> Vec<Warning> {
    let mut found = Vec::new();
    let Manifest { machine, storage, .. } = &result.manifest;
    found.extend(of_machine(machine, Some(storage)));
    found.extend(in_each_others_way(machine));
    let is_cached = |p: &PatternRecord| p.calls > 0 && p.backend != NULL_BACKEND && p.direct != Some(true);
    if result.patterns.iter().any(is_cached) {
        found.extend(memory_taken_back(machine));
    }
    let named =
        |p: &PatternRecord| format!("{} of pattern {} on {} ranks, {}", p.access.name(), p.pattern, p.ranks, p.backend);
    let watched = result.patterns.iter().map(|p| (named(p), p.machine.as_ref()));
    found.extend(machine_share::warning("pattern run", watched));
    found.extend(probe::warning(&result.probes));
    found.extend(m_part_reduced(result));
    found.extend(result.cold.iter().find_map(warm_memory));
    found.extend(result.pages.iter().find_map(|pages| small_pages(result, pages)));
    found.extend(rank_shift_on_one_host(result));
    for backend in &result.config.backends {
        let own: Vec<&PatternRecord> = result.patterns.iter().filter(|p| p.backend == *backend).collect();
        found.extend(not_run(backend, &own));
        if backend == NULL_BACKEND {
            // It moves nothing: neither storage nor caches nor the schedule say anything about it.
            continue;
        }
        found.extend(not_sampled(backend, &own));
        found.extend(ended_by_space(backend, &own));
        found.extend(time_guard(backend, &own));
        found.extend(debt::warning(backend, &own));
        found.extend(pattern::warning(backend, &own));
        found.extend(smaller_than_memory(result, partitions, backend));
        found.extend(read_from_cache(result, backend, &own));
        found.extend(cache_not_dropped(result, backend, &own));
        if backends::can(backend, |row| row.can_direct) && result.config.direct.of(backend) != DirectPolicy::Off {
            found.extend(buffered(backend, &own));
        }
        if backend == MPI_IO {
            found.extend(hints::not_granted(result, backend));
        }
        found.extend(overrun(times, backend));
        found.extend(decision_cost(backend, &own, result.config.termination));
        found.extend(intervals::repeats_differ(backend, known, result));
        found.extend(intervals::not_narrow(backend, known, result, partitions));
    }
    warning::all(&result.warnings, found, KINDS)
}

fn m_part_reduced(result: &RunResult) -> Option<Warning> {
    let reduced: Vec<&PartitionRecord> =
        result.partitions.iter().filter(|p| p.m_part_bytes < p.m_part_wanted_bytes).collect();
    let worst = reduced.iter().min_by_key(|p| p.m_part_bytes)?;
    let partitions = reduced.len() as u64;
    let PartitionRecord { ranks, m_part_wanted_bytes: wanted, m_part_bytes: used, .. } = **worst;
    let warning = kinds::M_PART_REDUCED.warning().figure("partitions", partitions).figure("ranks", ranks);
    let (larger, smaller) = (format_size(wanted), format_size(used));
    Some(warning.figure("wanted_bytes", wanted).figure("used_bytes", used).told(
        format!("largest chunk {smaller} instead of {larger}, for want of space: --space"),
        format!(
            "Partition of {}{}: M_PART is {smaller} instead of the {larger} of the definition, because the space does not allow more.",
            count(ranks, "rank"),
            others(partitions, "partition")
        ),
    ))
}

/// Less than this part of the loads from memory: it is not cold.
const COLD_SHARE: f64 = 0.5;

fn warm_memory(cold: &ColdRecord) -> Option<Warning> {
    let from_memory = cold.from_memory().filter(|share| *share < COLD_SHARE)?;
    let ColdRecord { rank, memory_bytes, cache_share_bytes, .. } = *cold;
    let warning = kinds::WARM_MEMORY.warning().figure("rank", rank).figure("from_memory", from_memory);
    let (memory, share) = (format_size(memory_bytes), format_size(cache_share_bytes));
    let from_memory = percent(from_memory);
    Some(warning.figure("memory_bytes", memory_bytes).figure("cache_share_bytes", cache_share_bytes).told(
        format!("transfer memory was warm: only {from_memory} of it came from memory"),
        format!(
            "Transfer memory was warm: rank {rank} walks through {memory}, and {from_memory} of its loads one lap later came from \
             memory, the others from a cache; a rank's share of the caches is {share}."
        ),
    ))
}

/// What goes through the page cache reaches the device from pages of the kernel's own choice.
fn small_pages(result: &RunResult, pages: &PagesRecord) -> Option<Warning> {
    let is_direct = |p: &PatternRecord| p.calls > 0 && p.direct == Some(true);
    let huge_page_bytes = pages.huge_page_bytes.filter(|_| pages.ranks_with_small > 0)?;
    if !result.patterns.iter().any(is_direct) {
        return None;
    }
    let PagesRecord { ranks_with_small: ranks, rank, memory_bytes, .. } = *pages;
    let reason = pages.reason.clone().unwrap_or_default();
    let (huge, memory) = (format_size(huge_page_bytes), format_size(memory_bytes));
    let warning = kinds::SMALL_PAGES.warning().figure("ranks", ranks).figure("rank", rank);
    let warning = warning.figure("memory_bytes", memory_bytes).figure("huge_page_bytes", huge_page_bytes);
    Some(warning.figure("reason", &reason).told(
        format!("only {huge} of {memory} transfer memory in huge pages: large direct transfers may be slower"),
        format!(
            "Transfer memory of {} is in small pages: {huge} of {memory} in huge ones on rank {rank} ({}). Direct requests to a device are \
             shorter from it.",
            count(ranks, "rank"),
            clause(&reason)
        ),
    ))
}

fn not_run(backend: &str, own: &[&PatternRecord]) -> Option<Warning> {
    let missing = own.iter().filter(|p| !is_empty_fill_up(p));
    let (patterns, reason) = number_and_first(missing.filter_map(|p| match &p.ended {
        Ended::NotRun(reason) => Some(reason.as_str()),
        _ => None,
    }))?;
    let why = clause(reason);
    Some(with_reason(&kinds::NOT_RUN, backend, (patterns, reason)).told(
        format!("{} not run: {why}", count(patterns, "pattern")),
        format!("{backend}: {} left out: {why}.", count(patterns, "pattern run")),
    ))
}

/// Of so many pattern runs that a reason stands behind.
fn with_reason(kind: &Kind, backend: &str, (patterns, reason): (u64, &str)) -> Warning {
    kind.warning().of(backend).figure("patterns", patterns).figure("reason", reason)
}

fn not_sampled(backend: &str, own: &[&PatternRecord]) -> Option<Warning> {
    let reasons = own.iter().filter_map(|p| p.sample.as_ref()?.not_read.as_deref());
    let (patterns, reason) = number_and_first(reasons)?;
    let why = clause(reason);
    Some(with_reason(&kinds::NOT_SAMPLED, backend, (patterns, reason)).told(
        format!("no sample of the file compared after {}: {why}", count(patterns, "pattern")),
        format!("{backend}: no sample of the file was compared after {}: {why}.", count(patterns, "pattern run")),
    ))
}

fn ended_by_space(backend: &str, own: &[&PatternRecord]) -> Option<Warning> {
    let (patterns, _) = number_and_first(own.iter().filter(|p| p.ended == Ended::Space))?;
    Some(kinds::ENDED_BY_SPACE.warning().of(backend).figure("patterns", patterns).told(
        format!("{} ended early, their share of the space was used: --space", count(patterns, "pattern")),
        format!(
            "{backend}: {} ended because the share of the space was used, before the scheduled time.",
            count(patterns, "pattern run")
        ),
    ))
}

fn time_guard(backend: &str, own: &[&PatternRecord]) -> Option<Warning> {
    let (patterns, first) = number_and_first(own.iter().filter(|p| p.ended == Ended::TimeGuard))?;
    let (pattern, cut) = (first.pattern, count(patterns, "first write"));
    Some(kinds::TIME_GUARD.warning().of(backend).figure("patterns", patterns).figure("pattern", pattern).told(
        format!("{cut} cut for taking far too long (mark t)"),
        format!(
            "{backend}: {cut} of types 3 and 4 cut short far beyond the scheduled time (first: pattern {pattern}): the counts \
             that types 0 to 2 gave were not reached, the segments keep holes, and the rate is that of fewer calls."
        ),
    ))
}

/// The smallest partition that wrote anything.
fn smaller_than_memory(result: &RunResult, partitions: &[PartitionValue], backend: &str) -> Option<Warning> {
    let own = partitions.iter().filter(|p| p.backend == backend);
    let written_bytes = own.map(|p| p.access_bytes[0]).filter(|&bytes| bytes > 0).min()?;
    let memory_bytes = memory_of_hosts(&result.manifest.machine);
    let (written, memory) = (format_size(written_bytes), format_size(memory_bytes));
    let warning = kinds::SMALLER_THAN_MEMORY.warning().of(backend).figure("written_bytes", written_bytes);
    (written_bytes < memory_bytes).then(|| {
        warning.figure("memory_bytes", memory_bytes).told(
            format!("wrote {written}, the hosts have {memory} of memory: a cache of the file system can hold it"),
            format!(
                "{backend}: the first write moved {written}, the hosts have {memory} of memory: a file system cache can hold all of it."
            ),
        )
    })
}

fn rank_shift_on_one_host(result: &RunResult) -> Option<Warning> {
    let [host] = result.manifest.machine.hosts.as_slice() else { return None };
    let ranks = result.partitions.iter().map(|p| p.ranks).max().unwrap_or(host.ranks);
    let (name, all) = (&host.name, count(ranks, "rank"));
    (result.config.cache == CachePolicy::RankShift).then(|| {
        kinds::RANK_SHIFT_ON_ONE_HOST.warning().figure("host", name).figure("ranks", ranks).told(
            "rank-shift on one host: reads may come from memory",
            format!("{all} on one host, {name}: rank-shift cannot avoid this host's page cache, reads may come from memory."),
        )
    })
}

/// From what was resident after the drop, of the pattern of which most was.
fn cache_not_dropped(result: &RunResult, backend: &str, own: &[&PatternRecord]) -> Option<Warning> {
    if result.config.cache != CachePolicy::Drop {
        return None;
    }
    let resident = |p: &PatternRecord| p.evidence.resident_before_bytes.unwrap_or(0);
    let stayed = |p: &&PatternRecord| {
        let share = p.evidence.resident_before_share().unwrap_or(0.0);
        p.access != Access::Write && share > STAY_SHARE && resident(p) > STAY_BYTES
    };
    let stayed: Vec<&PatternRecord> = own.iter().copied().filter(stayed).collect();
    let worst = largest(&stayed, |p| resident(p) as f64)?;
    let (patterns, resident_bytes, of_bytes) = (stayed.len() as u64, resident(worst), worst.evidence.range_bytes);
    let warning = at(kinds::CACHE_NOT_DROPPED.warning().of(backend).figure("patterns", patterns), worst);
    Some(warning.figure("resident_bytes", resident_bytes).figure("of_bytes", of_bytes).told(
        format!("pages stayed in the cache before {}", count(patterns, "pattern")),
        format!(
            "{backend}: pages stayed in the page cache although they were to be dropped before {}; the most, {} of {}, \
             before {}.",
            count(patterns, "pattern run"),
            format_size(resident_bytes),
            format_size(of_bytes),
            place(worst)
        ),
    ))
}

/// The partitions that read less from storage than they should, over the patterns for which the kernel tells.
fn read_from_cache(result: &RunResult, backend: &str, own: &[&PatternRecord]) -> Option<Warning> {
    let mut of_ranks: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for p in own.iter().filter(|p| p.access == Access::Read) {
        let Some(storage) = storage_bytes(result, p) else { continue };
        let sums = of_ranks.entry(p.ranks).or_default();
        *sums = (sums.0.saturating_add(p.moved_bytes), sums.1.saturating_add(storage));
    }
    let of_partition = |ranks: u64| of_ranks.get(&ranks).copied().unwrap_or_default();
    let cached = Cached::of(result.partitions.iter().map(|p| of_partition(p.ranks)))?;
    let Cached { reads: partitions, asked_bytes, storage_bytes } = cached;
    let memory = percent(asked_bytes.saturating_sub(storage_bytes) as f64 / asked_bytes.max(1) as f64);
    let place = if partitions > 1 { format!(" in {}", count(partitions, "partition")) } else { String::new() };
    let warning = kinds::READ_FROM_CACHE.warning().of(backend).figure("partitions", partitions);
    Some(warning.figure("asked_bytes", asked_bytes).figure("storage_bytes", storage_bytes).told(
        format!("{memory} of what was read came from memory, not from storage: --direct required"),
        format!(
            "{backend}{place}: of {} read only {} came from storage; {memory} of the bytes came from memory.",
            format_size(asked_bytes),
            format_size(storage_bytes)
        ),
    ))
}

fn buffered(backend: &str, own: &[&PatternRecord]) -> Option<Warning> {
    let (patterns, first) = number_and_first(own.iter().filter(|p| p.calls > 0 && p.direct == Some(false)))?;
    let how = clause(&first.strategy);
    Some(with_reason(&kinds::BUFFERED, backend, (patterns, &first.strategy)).told(
        format!("{} through the page cache although direct I/O was asked for: {how}", count(patterns, "pattern")),
        format!(
            "{backend}: {} went through the page cache although direct I/O was asked for, the first with {how}.",
            count(patterns, "pattern run")
        ),
    ))
}

/// From the access method that went furthest beyond its schedule. Parts that are too small to matter are not told in words.
fn overrun(times: &[AccessTime], backend: &str) -> Option<Warning> {
    let is_late = |t: &&AccessTime| t.backend == backend && is_overrun(t.real_seconds, t.scheduled_seconds);
    let late: Vec<&AccessTime> = times.iter().filter(is_late).collect();
    let worst = largest(&late, |t| t.real_seconds - t.scheduled_seconds)?;
    let AccessTime { ranks, access, scheduled_seconds, real_seconds, .. } = *worst;
    let parts = [
        ("sync_seconds", worst.sync_seconds, "syncs"),
        ("open_close_seconds", worst.open_close_seconds, "opening and closing"),
        ("counted_seconds", worst.counted_seconds, "patterns driven by counts"),
        ("loop_seconds", worst.loop_seconds, "loops driven by time"),
    ];
    let matters = |seconds: f64| seconds > 0.01 * (real_seconds - scheduled_seconds);
    let told = parts.iter().filter(|(_, seconds, _)| matters(*seconds));
    let told: Vec<String> = told.map(|(_, seconds, what)| format!("{what} {}", format_seconds(*seconds))).collect();
    let (name, scheduled, real) = (access.name(), format_seconds(scheduled_seconds), format_seconds(real_seconds));
    let methods = late.len() as u64;
    let warning = kinds::OVERRUN.warning().of(backend).figure("methods", methods).figure("ranks", ranks);
    let warning = warning.figure("access", access).figure("scheduled_seconds", scheduled_seconds);
    let warning = warning.figure("real_seconds", real_seconds);
    Some(parts.iter().fold(warning, |warning, (figure, seconds, _)| warning.figure(figure, seconds)).told(
        format!("{name} took {real} of {scheduled} scheduled"),
        format!(
            "{backend}, {name} on {}{}: {scheduled} scheduled, {real} used. Beyond the schedule: {}.",
            count(ranks, "rank"),
            others(methods, "access method"),
            list(&told)
        ),
    ))
}

fn decision_cost(backend: &str, own: &[&PatternRecord], termination: Termination) -> Option<Warning> {
    let share = |p: &PatternRecord| p.decision_cost_seconds / p.seconds();
    let is_dear = |p: &PatternRecord| p.seconds() > DECISION_NOISE_SECONDS && share(p) > DECISION_SHARE;
    let dear: Vec<&PatternRecord> = own.iter().copied().filter(|p| is_dear(p)).collect();
    let worst = largest(&dear, share)?;
    let (patterns, most) = (dear.len() as u64, percent(share(worst)));
    let warning = at(kinds::DECISION_COST.warning().of(backend).figure("patterns", patterns), worst);
    let warning = warning.figure("share", share(worst)).told(
        format!("agreeing when to stop cost up to {most} of the time of {}", count(patterns, "pattern")),
        format!(
            "{backend}: deciding to go on or stop cost more than 1 % of the time of {}; the most, {most}, in {}.",
            count(patterns, "pattern run"),
            place(worst)
        ),
    );
    Some(match termination {
        Termination::Geometric => warning,
        Termination::PerCall => warning.next("Use --termination geometric: one decision for each batch of calls."),
    })
}

#[cfg(test)]
#[path = "warning_tests.rs"]
mod tests;
