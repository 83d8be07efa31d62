//! Warnings that follow from the records. One of a kind for each backend, with the worst case named.

use std::collections::BTreeMap;

use super::totals::is_empty_fill_up;
use super::{debt, hints, intervals, pattern, storage_bytes, AccessTime, PartitionValue, RepeatedValues};
use crate::b_eff_io::records::{Ended, IoWarning, Manifest, PartitionRecord, PatternRecord, RunResult};
use crate::frame::backends;
use crate::frame::config::{CachePolicy, DirectPolicy};
use crate::frame::records::{Access, ColdRecord, PagesRecord};
use crate::frame::values::binding::in_each_others_way;
use crate::frame::values::machine_share;
use crate::frame::values::probe;
use crate::frame::values::source::Cached;
use crate::frame::values::warning::{
    is_overrun, largest, memory_taken_back, number_and_first, of_machine, without_repetition,
};
use crate::frame::values::{memory_of_hosts, MPI_IO, NULL_BACKEND};

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
) -> Vec<IoWarning> {
    let mut found = result.warnings.clone();
    let Manifest { machine, storage, .. } = &result.manifest;
    found.extend(of_machine(machine, Some(storage)).map(IoWarning::Shared));
    found.extend(in_each_others_way(machine).map(IoWarning::Shared));
    let is_cached = |p: &PatternRecord| p.calls > 0 && p.backend != NULL_BACKEND && p.direct != Some(true);
    if result.patterns.iter().any(is_cached) {
        found.extend(memory_taken_back(machine).map(IoWarning::Shared));
    }
    let named =
        |p: &PatternRecord| format!("{} of pattern {} on {} ranks, {}", p.access.name(), p.pattern, p.ranks, p.backend);
    let watched = result.patterns.iter().map(|p| (named(p), p.machine.as_ref()));
    found.extend(machine_share::warning("pattern run", watched).map(IoWarning::Shared));
    found.extend(probe::warning(&result.probes).map(IoWarning::Shared));
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
            found.extend(hints::not_granted(result, backend).map(IoWarning::Shared));
        }
        found.extend(overrun(times, backend));
        found.extend(decision_cost(backend, &own));
        found.extend(intervals::repeats_differ(backend, known, result));
        found.extend(intervals::not_narrow(backend, known, result, partitions));
    }
    without_repetition(found)
}

fn m_part_reduced(result: &RunResult) -> Option<IoWarning> {
    let reduced: Vec<&PartitionRecord> =
        result.partitions.iter().filter(|p| p.m_part_bytes < p.m_part_wanted_bytes).collect();
    let worst = reduced.iter().min_by_key(|p| p.m_part_bytes)?;
    Some(IoWarning::MPartReduced {
        partitions: reduced.len() as u64,
        ranks: worst.ranks,
        wanted_bytes: worst.m_part_wanted_bytes,
        used_bytes: worst.m_part_bytes,
    })
}

/// Less than this part of the loads from memory: it is not cold.
const COLD_SHARE: f64 = 0.5;

fn warm_memory(cold: &ColdRecord) -> Option<IoWarning> {
    let from_memory = cold.from_memory().filter(|share| *share < COLD_SHARE)?;
    Some(IoWarning::WarmMemory {
        rank: cold.rank,
        from_memory,
        memory_bytes: cold.memory_bytes,
        cache_share_bytes: cold.cache_share_bytes,
    })
}

/// What goes through the page cache reaches the device from pages of the kernel's own choice.
fn small_pages(result: &RunResult, pages: &PagesRecord) -> Option<IoWarning> {
    let is_direct = |p: &PatternRecord| p.calls > 0 && p.direct == Some(true);
    let huge_page_bytes = pages.huge_page_bytes.filter(|_| pages.ranks_with_small > 0)?;
    result.patterns.iter().any(is_direct).then(|| IoWarning::SmallPages {
        ranks: pages.ranks_with_small,
        rank: pages.rank,
        memory_bytes: pages.memory_bytes,
        huge_page_bytes,
        reason: pages.reason.clone().unwrap_or_default(),
    })
}

fn not_run(backend: &str, own: &[&PatternRecord]) -> Option<IoWarning> {
    let missing = own.iter().filter(|p| !is_empty_fill_up(p));
    let (patterns, reason) = number_and_first(missing.filter_map(|p| match &p.ended {
        Ended::NotRun(reason) => Some(reason.clone()),
        _ => None,
    }))?;
    Some(IoWarning::NotRun { backend: backend.to_owned(), patterns, reason })
}

fn not_sampled(backend: &str, own: &[&PatternRecord]) -> Option<IoWarning> {
    let reasons = own.iter().filter_map(|p| p.sample.as_ref()?.not_read.clone());
    let (patterns, reason) = number_and_first(reasons)?;
    Some(IoWarning::NotSampled { backend: backend.to_owned(), patterns, reason })
}

fn ended_by_space(backend: &str, own: &[&PatternRecord]) -> Option<IoWarning> {
    let (patterns, _) = number_and_first(own.iter().filter(|p| p.ended == Ended::Space))?;
    Some(IoWarning::EndedBySpace { backend: backend.to_owned(), patterns })
}

fn time_guard(backend: &str, own: &[&PatternRecord]) -> Option<IoWarning> {
    let (patterns, first) = number_and_first(own.iter().filter(|p| p.ended == Ended::TimeGuard))?;
    Some(IoWarning::TimeGuard { backend: backend.to_owned(), patterns, pattern: first.pattern })
}

/// The smallest partition that wrote anything.
fn smaller_than_memory(result: &RunResult, partitions: &[PartitionValue], backend: &str) -> Option<IoWarning> {
    let own = partitions.iter().filter(|p| p.backend == backend);
    let written_bytes = own.map(|p| p.access_bytes[0]).filter(|&bytes| bytes > 0).min()?;
    let memory_bytes = memory_of_hosts(&result.manifest.machine);
    (written_bytes < memory_bytes).then(|| IoWarning::SmallerThanMemory {
        backend: backend.to_owned(),
        written_bytes,
        memory_bytes,
    })
}

fn rank_shift_on_one_host(result: &RunResult) -> Option<IoWarning> {
    let [host] = result.manifest.machine.hosts.as_slice() else { return None };
    let ranks = result.partitions.iter().map(|p| p.ranks).max().unwrap_or(host.ranks);
    (result.config.cache == CachePolicy::RankShift)
        .then(|| IoWarning::RankShiftOnOneHost { host: host.name.clone(), ranks })
}

/// From what was resident after the drop, of the pattern of which most was.
fn cache_not_dropped(result: &RunResult, backend: &str, own: &[&PatternRecord]) -> Option<IoWarning> {
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
    Some(IoWarning::CacheNotDropped {
        backend: backend.to_owned(),
        patterns: stayed.len() as u64,
        pattern: worst.pattern,
        access: worst.access,
        ranks: worst.ranks,
        resident_bytes: resident(worst),
        of_bytes: worst.evidence.range_bytes,
    })
}

/// The partitions that read less from storage than they should, over the patterns for which the kernel tells.
fn read_from_cache(result: &RunResult, backend: &str, own: &[&PatternRecord]) -> Option<IoWarning> {
    let mut of_ranks: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for p in own.iter().filter(|p| p.access == Access::Read) {
        let Some(storage) = storage_bytes(result, p) else { continue };
        let sums = of_ranks.entry(p.ranks).or_default();
        *sums = (sums.0.saturating_add(p.moved_bytes), sums.1.saturating_add(storage));
    }
    let of_partition = |ranks: u64| of_ranks.get(&ranks).copied().unwrap_or_default();
    let cached = Cached::of(result.partitions.iter().map(|p| of_partition(p.ranks)))?;
    Some(IoWarning::ReadFromCache {
        backend: backend.to_owned(),
        partitions: cached.reads,
        asked_bytes: cached.asked_bytes,
        storage_bytes: cached.storage_bytes,
    })
}

fn buffered(backend: &str, own: &[&PatternRecord]) -> Option<IoWarning> {
    let (patterns, first) = number_and_first(own.iter().filter(|p| p.calls > 0 && p.direct == Some(false)))?;
    Some(IoWarning::Buffered { backend: backend.to_owned(), patterns, reason: first.strategy.clone() })
}

/// From the access method that went furthest beyond its schedule.
fn overrun(times: &[AccessTime], backend: &str) -> Option<IoWarning> {
    let is_late = |t: &&AccessTime| t.backend == backend && is_overrun(t.real_seconds, t.scheduled_seconds);
    let late: Vec<&AccessTime> = times.iter().filter(is_late).collect();
    let worst = largest(&late, |t| t.real_seconds - t.scheduled_seconds)?;
    Some(IoWarning::Overrun {
        backend: backend.to_owned(),
        methods: late.len() as u64,
        ranks: worst.ranks,
        access: worst.access,
        scheduled_seconds: worst.scheduled_seconds,
        real_seconds: worst.real_seconds,
        sync_seconds: worst.sync_seconds,
        open_close_seconds: worst.open_close_seconds,
        counted_seconds: worst.counted_seconds,
        loop_seconds: worst.loop_seconds,
    })
}

fn decision_cost(backend: &str, own: &[&PatternRecord]) -> Option<IoWarning> {
    let share = |p: &PatternRecord| p.decision_cost_seconds / p.seconds();
    let is_dear = |p: &PatternRecord| p.seconds() > DECISION_NOISE_SECONDS && share(p) > DECISION_SHARE;
    let dear: Vec<&PatternRecord> = own.iter().copied().filter(|p| is_dear(p)).collect();
    let worst = largest(&dear, share)?;
    Some(IoWarning::DecisionCost {
        backend: backend.to_owned(),
        patterns: dear.len() as u64,
        pattern: worst.pattern,
        access: worst.access,
        ranks: worst.ranks,
        share: share(worst),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::records::SampleRecord;
    use crate::b_eff_io::values::derive;
    use crate::b_eff_io::values::fixture::{edit, full_run};
    use crate::frame::records::{Evidence, HostRecord, Warning};

    fn warnings(result: &RunResult) -> Vec<IoWarning> {
        derive(result).warnings
    }

    fn kinds(result: &RunResult) -> Vec<String> {
        let kind = |w: &IoWarning| serde_json::to_value(w).unwrap()["kind"].as_str().unwrap().to_owned();
        warnings(result).iter().map(kind).collect()
    }

    #[test]
    fn a_run_by_the_book_has_none() {
        assert_eq!(warnings(&full_run()), []);
    }

    type Damage = fn(&mut RunResult);

    #[test]
    fn every_kind_has_its_cause() {
        let damages: [(Damage, &[&str]); 25] = [
            (|r| r.manifest.machine.hosts[0].cores = 1, &["oversubscribed"]),
            (|r| r.manifest.storage.fs_type = "tmpfs".into(), &["memory_file_system"]),
            (|r| r.cold.push(loads(40.0)), &["warm_memory"]),
            (|r| r.cold.push(loads(60.0)), &[]),
            (|r| in_small_pages(r, 1, Some(true)), &["small_pages"]),
            (|r| in_small_pages(r, 1, Some(false)), &[]),
            (|r| in_small_pages(r, 0, Some(true)), &[]),
            (|r| r.partitions[0].m_part_wanted_bytes *= 2, &["m_part_reduced"]),
            (|r| r.manifest.machine.hosts[0].memory_bytes = 1 << 50, &["smaller_than_memory"]),
            (|r| edit(r, 4, Access::Write, 3, |p| p.ended = Ended::Space), &["ended_by_space"]),
            (|r| edit(r, 4, Access::Write, 28, |p| p.ended = Ended::TimeGuard), &["time_guard"]),
            (|r| edit(r, 4, Access::Write, 3, |p| p.budget_seconds *= 0.89), &["short_of_time"]),
            (|r| edit(r, 4, Access::Write, 3, |p| p.calls = 9), &["few_calls"]),
            (|r| edit(r, 4, Access::Write, 3, |p| p.ended = Ended::NotRun("x".into())), &["not_run"]),
            (|r| edit(r, 4, Access::Write, 3, |p| p.sample = unread()), &["not_sampled"]),
            (|r| edit(r, 4, Access::Read, 3, |p| p.intervals.sync_seconds = 400.0), &["overrun"]),
            (|r| edit(r, 4, Access::Read, 3, |p| p.decision_cost_seconds = 1.0), &["decision_cost"]),
            (|r| edit(r, 4, Access::Read, 3, |p| p.hints_requested = hint("a", "1")), &["hint_not_granted"]),
            (|r| r.types[0].hints_requested = hint("cb_nodes", "7"), &["hint_not_granted"]),
            (|r| r.types[0].hints_requested = hint("cb_nodes", "2"), &[]),
            (all_reads_cached, &["read_from_cache"]),
            (|r| r.config.cache = CachePolicy::RankShift, &["rank_shift_on_one_host"]),
            (|r| stay(r, CachePolicy::Drop, Access::Rewrite), &["cache_not_dropped"]),
            (|r| stay(r, CachePolicy::Drop, Access::Write), &[]),
            (|r| stay(r, CachePolicy::Keep, Access::Read), &[]),
        ];
        for (damage, expected) in damages {
            let mut result = full_run();
            damage(&mut result);
            assert_eq!(kinds(&result), expected);
        }
    }

    fn hint(key: &str, value: &str) -> Vec<(String, String)> {
        vec![(key.into(), value.into())]
    }

    fn loads(found_ns: f64) -> ColdRecord {
        ColdRecord { found_ns, flushed_ns: 100.0, cached_ns: 5.0, ..ColdRecord::default() }
    }

    fn in_small_pages(result: &mut RunResult, ranks_with_small: u64, direct: Option<bool>) {
        let pages =
            PagesRecord { memory_bytes: 100, huge_page_bytes: Some(10), ranks_with_small, ..Default::default() };
        result.pages.push(pages);
        edit(result, 4, Access::Read, 3, |p| p.direct = direct);
    }

    fn unread() -> Option<SampleRecord> {
        Some(SampleRecord { not_read: Some("no such file".into()), ..SampleRecord::default() })
    }

    fn stay(result: &mut RunResult, cache: CachePolicy, access: Access) {
        result.config.cache = cache;
        edit(result, 4, access, 3, |p| {
            p.evidence = Evidence { resident_before_bytes: Some(1 << 20), range_bytes: 8 << 20, ..Evidence::default() };
        });
    }

    fn all_reads_cached(result: &mut RunResult) {
        for p in result.patterns.iter_mut().filter(|p| p.access == Access::Read) {
            p.storage_read_bytes = Some(p.moved_bytes / 2);
        }
    }

    /// Whatever goes wrong in every pattern, partition and host, a backend has one warning of a kind.
    #[test]
    fn warnings_do_not_multiply() {
        let mut result = full_run();
        let host = HostRecord { ranks: 3, cores: 2, name: "node2".into(), ..result.manifest.machine.hosts[0].clone() };
        result.manifest.machine.hosts = vec![HostRecord { ranks: 4, name: "node1".into(), ..host.clone() }, host];
        all_reads_cached(&mut result);
        for partition in &mut result.partitions {
            partition.m_part_bytes /= partition.ranks;
        }
        for p in &mut result.patterns {
            p.ended = if p.pattern < 20 { Ended::Space } else { Ended::TimeGuard };
            p.intervals.decide_seconds = p.intervals.transfer_seconds;
            p.decision_cost_seconds = f64::from(p.pattern) / 100.0 * p.seconds();
            p.hints_requested = hint("a", &p.pattern.to_string());
        }
        let found = warnings(&result);
        let mut kinds = kinds(&result);
        kinds.sort();
        kinds.dedup();
        assert_eq!(kinds.len(), found.len(), "{found:#?}");
        let patterns = result.patterns.iter().filter(|p| p.seconds() > 0.05 && p.pattern > 1).count() as u64;
        let (backend, access, share) = ("mpiio".to_owned(), Access::Write, 0.41);
        for expected in [
            Warning::Oversubscribed { hosts: 2, host: "node1".into(), ranks: 4, cores: 2 }.into(),
            IoWarning::MPartReduced { partitions: 2, ranks: 4, wanted_bytes: 32 << 20, used_bytes: 8 << 20 },
            IoWarning::TimeGuard { backend: backend.clone(), patterns: 23 * 6, pattern: 20 },
            IoWarning::DecisionCost { backend, patterns, pattern: 41, access, ranks: 2, share },
        ] {
            let text = format!("{found:#?}");
            assert!(found.contains(&expected), "{expected:?} {text}");
        }
    }

    #[test]
    fn an_overrun_names_its_longest_case_and_parts() {
        let mut result = full_run();
        edit(&mut result, 2, Access::Write, 10, |p| p.intervals.sync_seconds = 200.0);
        edit(&mut result, 4, Access::Write, 27, |p| p.intervals.transfer_seconds += 300.0);
        let Some(IoWarning::Overrun { methods, ranks, access, counted_seconds, sync_seconds, .. }) =
            warnings(&result).pop()
        else {
            panic!("{:?}", warnings(&result));
        };
        assert_eq!((methods, ranks, access), (2, 4, Access::Write));
        assert!((counted_seconds - 300.0).abs() < 0.1 && sync_seconds == 0.0, "{counted_seconds} {sync_seconds}");
    }

    #[test]
    fn the_null_backend_is_no_measurement() {
        let mut result = full_run();
        result.config.backends = vec![NULL_BACKEND.into()];
        all_reads_cached(&mut result);
        for p in &mut result.patterns {
            p.backend = NULL_BACKEND.into();
            p.ended = Ended::Space;
            p.decision_cost_seconds = p.seconds();
        }
        assert_eq!(warnings(&result), []);
    }

    #[test]
    fn what_is_not_known_gives_no_warning() {
        let mut result = full_run();
        result.patterns.iter_mut().for_each(|p| p.storage_read_bytes = None);
        assert_eq!(warnings(&result), []);
    }

    #[test]
    fn buffered_transfers_matter_where_direct_ones_can_be_chosen() {
        for (backend, policy, expected) in [
            ("posix", DirectPolicy::Auto, 1),
            ("uring", DirectPolicy::Required, 1),
            ("posix", DirectPolicy::Off, 0),
            ("posix", DirectPolicy::ByBackend, 0),
            ("uring", DirectPolicy::ByBackend, 1),
            ("mpiio", DirectPolicy::Auto, 0),
        ] {
            let mut result = full_run();
            result.config.backends = vec![backend.into()];
            result.config.direct = policy;
            result.types.iter_mut().for_each(|t| t.backend = backend.into());
            result.patterns.iter_mut().for_each(|p| {
                p.backend = backend.into();
                p.direct = Some(p.chunk_bytes % 512 == 0);
            });
            let found = kinds(&result);
            assert_eq!(found.iter().filter(|k| *k == "buffered").count(), expected, "{backend} {found:?}");
        }
    }

    #[test]
    fn short_patterns_may_decide_dearly_and_repetitions_are_told_once() {
        let mut result = full_run();
        edit(&mut result, 4, Access::Read, 3, |p| {
            p.intervals.transfer_seconds = 0.04;
            p.decision_cost_seconds = 0.01;
        });
        assert_eq!(kinds(&result), Vec::<String>::new());
        let repeated = IoWarning::from(Warning::MemoryFileSystem { fs_type: "tmpfs".into() });
        result.manifest.storage.fs_type = "tmpfs".into();
        result.warnings.push(repeated.clone());
        assert_eq!(warnings(&result), [repeated]);
    }

    #[test]
    fn warnings_of_the_run_are_kept() {
        let mut result = full_run();
        result.warnings.push(Warning::FilesLeft { path: "run".into(), reason: "busy".into() }.into());
        assert_eq!(kinds(&result), ["files_left"]);
    }
}
