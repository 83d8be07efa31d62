//! Warnings derived from the records: one of a kind for each backend, for the worst case.

use std::collections::BTreeMap;

use super::deducted_time::{self, pattern_label, with_worst};
use super::kinds::{self, KINDS};
use super::totals::is_empty_fill_up;
use super::{hints, intervals, pattern, storage_bytes, AccessTime, PartitionValue, RepetitionIntervals};
use crate::b_eff_io::config::Termination;
use crate::b_eff_io::records::{ContinuationRecord, Manifest, PartitionRecord, PatternRecord, RunResult, StopReason};
use crate::frame::backends;
use crate::frame::config::{CachePolicy, DirectPolicy};
use crate::frame::records::{AccessMethod, CacheColdRecord, HugePagesRecord, Warning, WarningKind};
use crate::frame::units::{count, format_seconds, format_size};
use crate::frame::values::binding::shared_host_warning;
use crate::frame::values::interference;
use crate::frame::values::read_source::CachedReads;
use crate::frame::values::storage_drift;
use crate::frame::values::time_limit;
use crate::frame::values::warning::{self, count_and_first, is_overrun, largest, machine_warnings, memory_ballooning};
use crate::frame::values::{memory_of_hosts, NULL_BACKEND};
use crate::frame::words::{and_more, clause, list, percent};

/// Pages that remain in the cache after the drop: less than this share and these bytes are harmless.
const RESIDENT_SHARE: f64 = 0.05;
const RESIDENT_BYTES: u64 = 64 << 10;

/// Agreements above this share of a pattern's time are too expensive...
const DECISION_SHARE: f64 = 0.01;

/// ...if the pattern lasted longer than this; a single agreement is a large share of a call or two.
const DECISION_NOISE_SECONDS: f64 = 0.05;

fn continued(record: &ContinuationRecord) -> Warning {
    let ContinuationRecord { journal, started_utc, units_kept, types_reused, types_rebuilt, .. } = record;
    let units = count(*units_kept, "unit");
    let cut = record.cut_in.map_or_else(|| "in its repetitions".to_owned(), |unit| format!("in the {}", unit.name()));
    let rebuilt = match record.rebuild_seconds {
        _ if *types_rebuilt == 0 => String::new(),
        seconds => format!(", those of {types_rebuilt} written again in {}", format_seconds(seconds)),
    };
    let left = record.files_left.as_ref().map_or_else(String::new, |left| format!(" Its directory remains: {left}."));
    kinds::CONTINUED.warning().with_figure("journal", journal).with_figure("units", units_kept).with_text(
        format!("continued from {journal}: {units} kept"),
        format!(
            "{units} (one access method of one type) are those of the run of {started_utc} ({journal}), which was cut {cut}. The files of \
             {types_reused} of its types were used{rebuilt}.{left}"
        ),
    )
}

/// Warnings of the run itself and those derived from its records, each once.
pub(super) fn all_warnings(
    result: &RunResult,
    partitions: &[PartitionValue],
    times: &[AccessTime],
    known: &RepetitionIntervals,
) -> Vec<Warning> {
    let mut found = Vec::new();
    let Manifest { machine, storage, .. } = &result.manifest;
    found.extend(machine_warnings(machine, Some(storage)));
    found.extend(time_limit::warning(result));
    found.extend(shared_host_warning(machine));
    let is_cached = |p: &PatternRecord| p.calls > 0 && p.backend != NULL_BACKEND && p.direct != Some(true);
    if result.patterns.iter().any(is_cached) {
        found.extend(memory_ballooning(machine));
    }
    let named =
        |p: &PatternRecord| format!("{} of pattern {} on {} ranks, {}", p.access.name(), p.pattern, p.ranks, p.backend);
    let watched = result.patterns.iter().map(|p| (named(p), p.interference.as_ref()));
    found.extend(interference::interference_warning("pattern run", watched));
    found.extend(storage_drift::drift_warning(&result.probes));
    found.extend(result.continuations.iter().map(continued));
    found.extend(m_part_reduced(result));
    found.extend(result.cache_cold.iter().find_map(warm_memory));
    found.extend(result.pages.iter().find_map(|pages| small_pages(result, pages)));
    found.extend(rank_shift_on_one_host(result));
    for backend in &result.config.backends {
        let own: Vec<&PatternRecord> = result.patterns.iter().filter(|p| p.backend == *backend).collect();
        found.extend(not_run(backend, &own));
        if backend == NULL_BACKEND {
            // It moves nothing: neither storage nor caches nor the schedule apply to it.
            continue;
        }
        found.extend(not_sampled(backend, &own));
        found.extend(ended_by_space(backend, &own));
        found.extend(time_guard(backend, &own));
        found.extend(deducted_time::warning(backend, &own));
        found.extend(pattern::warning(backend, &own));
        found.extend(smaller_than_memory(result, partitions, backend));
        found.extend(read_from_cache(result, backend, &own));
        found.extend(cache_not_dropped(result, backend, &own));
        if backends::supports(backend, |row| row.can_direct) && result.config.direct_of(backend) != DirectPolicy::Off {
            found.extend(buffered(backend, &own));
        }
        if backends::supports(backend, |row| row.has_hints) {
            found.extend(hints::not_granted_warning(result, backend));
        }
        found.extend(overrun(times, backend));
        found.extend(decision_cost(backend, &own, result.config.termination));
        found.extend(intervals::repeats_differ(backend, known, result));
        found.extend(intervals::interval_too_wide(backend, known, result, partitions));
    }
    warning::merge_warnings(&result.warnings, found, KINDS)
}

fn m_part_reduced(result: &RunResult) -> Option<Warning> {
    let reduced: Vec<&PartitionRecord> =
        result.partitions.iter().filter(|p| p.m_part_bytes < p.m_part_defined_bytes).collect();
    let worst = reduced.iter().min_by_key(|p| p.m_part_bytes)?;
    let partitions = reduced.len() as u64;
    let PartitionRecord { ranks, m_part_defined_bytes: wanted, m_part_bytes: used, .. } = **worst;
    let warning = kinds::M_PART_REDUCED.warning().with_figure("partitions", partitions).with_figure("ranks", ranks);
    let (larger, smaller) = (format_size(wanted), format_size(used));
    Some(warning.with_figure("defined_bytes", wanted).with_figure("used_bytes", used).with_text(
        format!("largest chunk {smaller} instead of {larger} for lack of space: --space"),
        format!(
            "Partition of {}{}: M_PART is {smaller} instead of the {larger} of the definition, because of the space limit.",
            count(ranks, "rank"),
            and_more(partitions, "partition")
        ),
    ))
}

/// Smaller shares of loads from memory: the buffers are not cache-cold.
const MIN_FROM_MEMORY_SHARE: f64 = 0.5;

fn warm_memory(cold: &CacheColdRecord) -> Option<Warning> {
    let from_memory = cold.memory_share().filter(|share| *share < MIN_FROM_MEMORY_SHARE)?;
    let CacheColdRecord { rank, memory_bytes, cache_share_bytes, .. } = *cold;
    let warning = kinds::WARM_MEMORY.warning().with_figure("rank", rank).with_figure("from_memory", from_memory);
    let (memory, share) = (format_size(memory_bytes), format_size(cache_share_bytes));
    let from_memory = percent(from_memory);
    Some(warning.with_figure("memory_bytes", memory_bytes).with_figure("cache_share_bytes", cache_share_bytes).with_text(
        format!("transfer buffers were cache-hot: only {from_memory} of loads from memory"),
        format!(
            "Transfer buffers were cache-hot: rank {rank} uses {memory}, and {from_memory} of its loads one pass later came from \
             memory, the others from a cache; a rank's share of the caches is {share}."
        ),
    ))
}

/// Buffered data reaches the device from pages chosen by the kernel.
fn small_pages(result: &RunResult, pages: &HugePagesRecord) -> Option<Warning> {
    let is_direct = |p: &PatternRecord| p.calls > 0 && p.direct == Some(true);
    let huge_page_bytes = pages.huge_page_bytes.filter(|_| pages.ranks_with_small > 0)?;
    if !result.patterns.iter().any(is_direct) {
        return None;
    }
    let HugePagesRecord { ranks_with_small: ranks, rank, memory_bytes, .. } = *pages;
    let reason = pages.reason.clone().unwrap_or_default();
    let (huge, memory) = (format_size(huge_page_bytes), format_size(memory_bytes));
    let warning = kinds::SMALL_PAGES.warning().with_figure("ranks", ranks).with_figure("rank", rank);
    let warning = warning.with_figure("memory_bytes", memory_bytes).with_figure("huge_page_bytes", huge_page_bytes);
    Some(warning.with_figure("reason", &reason).with_text(
        format!("only {huge} of {memory} transfer buffers in huge pages: large direct transfers may be slower"),
        format!(
            "Transfer buffers of {} are in small pages: {huge} of {memory} in huge ones on rank {rank} ({}). Direct requests to a device \
             are smaller from them.",
            count(ranks, "rank"),
            clause(&reason)
        ),
    ))
}

fn not_run(backend: &str, own: &[&PatternRecord]) -> Option<Warning> {
    let missing = own.iter().filter(|p| !is_empty_fill_up(p));
    let (patterns, reason) = count_and_first(missing.filter_map(|p| match &p.ended {
        StopReason::NotRun(reason) => Some(reason.as_str()),
        _ => None,
    }))?;
    let why = clause(reason);
    Some(with_reason(&kinds::NOT_RUN, backend, (patterns, reason)).with_text(
        format!("{} not run: {why}", count(patterns, "pattern")),
        format!("{backend}: {} omitted: {why}.", count(patterns, "pattern run")),
    ))
}

/// Warning with the number of pattern runs and the reason.
fn with_reason(kind: &WarningKind, backend: &str, (patterns, reason): (u64, &str)) -> Warning {
    kind.warning().for_backend(backend).with_figure("patterns", patterns).with_figure("reason", reason)
}

fn not_sampled(backend: &str, own: &[&PatternRecord]) -> Option<Warning> {
    let reasons = own.iter().filter_map(|p| p.sample.as_ref()?.unread_reason.as_deref());
    let (patterns, reason) = count_and_first(reasons)?;
    let why = clause(reason);
    Some(with_reason(&kinds::NOT_SAMPLED, backend, (patterns, reason)).with_text(
        format!("no sample of the file compared after {}: {why}", count(patterns, "pattern")),
        format!("{backend}: no sample of the file was compared after {}: {why}.", count(patterns, "pattern run")),
    ))
}

fn ended_by_space(backend: &str, own: &[&PatternRecord]) -> Option<Warning> {
    let (patterns, _) = count_and_first(own.iter().filter(|p| p.ended == StopReason::Space))?;
    Some(kinds::ENDED_BY_SPACE.warning().for_backend(backend).with_figure("patterns", patterns).with_text(
        format!("{} ended early, their share of the space is exhausted: --space", count(patterns, "pattern")),
        format!(
            "{backend}: {} ended before the scheduled time because the share of the space was exhausted.",
            count(patterns, "pattern run")
        ),
    ))
}

fn time_guard(backend: &str, own: &[&PatternRecord]) -> Option<Warning> {
    let (patterns, first) = count_and_first(own.iter().filter(|p| p.ended == StopReason::TimeGuard))?;
    let (pattern, cut) = (first.pattern, count(patterns, "first write"));
    Some(kinds::TIME_GUARD.warning().for_backend(backend).with_figure("patterns", patterns).with_figure("pattern", pattern).with_text(
        format!("{cut} cut by the time guard (mark t)"),
        format!(
            "{backend}: {cut} of types 3 and 4 cut far beyond the scheduled time (first: pattern {pattern}): the counts of types \
             0 to 2 were not reached, the segments keep holes, and the rate is that of fewer calls."
        ),
    ))
}

/// For the smallest partition that wrote anything.
fn smaller_than_memory(result: &RunResult, partitions: &[PartitionValue], backend: &str) -> Option<Warning> {
    let own = partitions.iter().filter(|p| p.backend == backend);
    let written_bytes = own.map(|p| p.access_bytes[0]).filter(|&bytes| bytes > 0).min()?;
    let memory_bytes = memory_of_hosts(&result.manifest.machine);
    let (written, memory) = (format_size(written_bytes), format_size(memory_bytes));
    let warning = kinds::SMALLER_THAN_MEMORY.warning().for_backend(backend).with_figure("written_bytes", written_bytes);
    (written_bytes < memory_bytes).then(|| {
        warning.with_figure("memory_bytes", memory_bytes).with_text(
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
        kinds::RANK_SHIFT_ON_ONE_HOST.warning().with_figure("host", name).with_figure("ranks", ranks).with_text(
            "rank-shift on one host: reads may come from memory",
            format!("{all} on one host, {name}: rank-shift cannot avoid this host's page cache, reads may come from memory."),
        )
    })
}

/// From the residency after the drop, for the pattern with most resident bytes.
fn cache_not_dropped(result: &RunResult, backend: &str, own: &[&PatternRecord]) -> Option<Warning> {
    if result.config.cache != CachePolicy::Drop {
        return None;
    }
    let resident = |p: &PatternRecord| p.evidence.resident_before_bytes.unwrap_or(0);
    let stayed = |p: &&PatternRecord| {
        let share = p.evidence.resident_before_share().unwrap_or(0.0);
        p.access != AccessMethod::Write && share > RESIDENT_SHARE && resident(p) > RESIDENT_BYTES
    };
    let stayed: Vec<&PatternRecord> = own.iter().copied().filter(stayed).collect();
    let worst = largest(&stayed, |p| resident(p) as f64)?;
    let (patterns, resident_bytes, of_bytes) = (stayed.len() as u64, resident(worst), worst.evidence.range_bytes);
    let warning =
        with_worst(kinds::CACHE_NOT_DROPPED.warning().for_backend(backend).with_figure("patterns", patterns), worst);
    Some(warning.with_figure("resident_bytes", resident_bytes).with_figure("of_bytes", of_bytes).with_text(
        format!("pages remained in the cache before {}", count(patterns, "pattern")),
        format!(
            "{backend}: pages remained in the page cache although they were to be dropped before {}; the most, {} of {}, \
             before {}.",
            count(patterns, "pattern run"),
            format_size(resident_bytes),
            format_size(of_bytes),
            pattern_label(worst)
        ),
    ))
}

/// The partitions that read less from storage than requested, over the patterns with a known source.
fn read_from_cache(result: &RunResult, backend: &str, own: &[&PatternRecord]) -> Option<Warning> {
    let mut of_ranks: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for p in own.iter().filter(|p| p.access == AccessMethod::Read) {
        let Some(storage) = storage_bytes(result, p) else { continue };
        let sums = of_ranks.entry(p.ranks).or_default();
        *sums = (sums.0.saturating_add(p.moved_bytes), sums.1.saturating_add(storage));
    }
    let of_partition = |ranks: u64| of_ranks.get(&ranks).copied().unwrap_or_default();
    let cached = CachedReads::of(result.partitions.iter().map(|p| of_partition(p.ranks)))?;
    let CachedReads { reads: partitions, requested_bytes: asked_bytes, storage_bytes } = cached;
    let memory = percent(asked_bytes.saturating_sub(storage_bytes) as f64 / asked_bytes.max(1) as f64);
    let place = if partitions > 1 { format!(" in {}", count(partitions, "partition")) } else { String::new() };
    let warning = kinds::READ_FROM_CACHE.warning().for_backend(backend).with_figure("partitions", partitions);
    Some(warning.with_figure("requested_bytes", asked_bytes).with_figure("storage_bytes", storage_bytes).with_text(
        format!("{memory} of the bytes read came from memory, not from storage: --direct required"),
        format!(
            "{backend}{place}: of {} read only {} came from storage; {memory} of the bytes came from memory.",
            format_size(asked_bytes),
            format_size(storage_bytes)
        ),
    ))
}

fn buffered(backend: &str, own: &[&PatternRecord]) -> Option<Warning> {
    let (patterns, first) = count_and_first(own.iter().filter(|p| p.calls > 0 && p.direct == Some(false)))?;
    let how = clause(&first.strategy);
    Some(with_reason(&kinds::BUFFERED, backend, (patterns, &first.strategy)).with_text(
        format!("{} through the page cache although direct I/O was requested: {how}", count(patterns, "pattern")),
        format!(
            "{backend}: {} went through the page cache although direct I/O was requested, the first with {how}.",
            count(patterns, "pattern run")
        ),
    ))
}

/// For the access method with the largest overrun. Negligible parts are not listed.
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
    let shown = parts.iter().filter(|(_, seconds, _)| matters(*seconds));
    let shown: Vec<String> = shown.map(|(_, seconds, what)| format!("{what} {}", format_seconds(*seconds))).collect();
    let (name, scheduled, real) = (access.name(), format_seconds(scheduled_seconds), format_seconds(real_seconds));
    let methods = late.len() as u64;
    let warning =
        kinds::OVERRUN.warning().for_backend(backend).with_figure("methods", methods).with_figure("ranks", ranks);
    let warning = warning.with_figure("access", access).with_figure("scheduled_seconds", scheduled_seconds);
    let warning = warning.with_figure("real_seconds", real_seconds);
    Some(parts.iter().fold(warning, |warning, (figure, seconds, _)| warning.with_figure(figure, seconds)).with_text(
        format!("{name} took {real} of {scheduled} scheduled"),
        format!(
            "{backend}, {name} on {}{}: {scheduled} scheduled, {real} used. Beyond the schedule: {}.",
            count(ranks, "rank"),
            and_more(methods, "access method"),
            list(&shown)
        ),
    ))
}

fn decision_cost(backend: &str, own: &[&PatternRecord], termination: Termination) -> Option<Warning> {
    let share = |p: &PatternRecord| p.decision_cost_seconds / p.seconds();
    let is_dear = |p: &PatternRecord| p.seconds() > DECISION_NOISE_SECONDS && share(p) > DECISION_SHARE;
    let dear: Vec<&PatternRecord> = own.iter().copied().filter(|p| is_dear(p)).collect();
    let worst = largest(&dear, share)?;
    let (patterns, most) = (dear.len() as u64, percent(share(worst)));
    let warning =
        with_worst(kinds::DECISION_COST.warning().for_backend(backend).with_figure("patterns", patterns), worst);
    let warning = warning.with_figure("share", share(worst)).with_text(
        format!("agreements cost up to {most} of the time of {}", count(patterns, "pattern")),
        format!(
            "{backend}: agreements to continue or stop cost more than 1 % of the time of {}; the most, {most}, in {}.",
            count(patterns, "pattern run"),
            pattern_label(worst)
        ),
    );
    Some(match termination {
        Termination::Geometric => warning,
        Termination::PerCall => {
            warning.with_next_step("Use --termination geometric: one agreement for each batch of calls.")
        }
    })
}

#[cfg(test)]
#[path = "warning_tests.rs"]
mod tests;
