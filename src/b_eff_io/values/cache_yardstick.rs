//! Twenty times the cache: the paper's advice for data that is to be on disk (section 5.4). A yardstick, not a criterion of validity.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::totals::{backends_and_partitions, TypeRecordIndex};
use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::records::{PatternRecord, RunResult, StopReason};
use crate::frame::records::{AccessMethod, RunOutcome, StorageKey};
use crate::frame::system::storage::is_in_memory;
use crate::frame::values::{usable_memory_bytes, NULL_BACKEND};

/// Times the cache of the file system that an access method should move.
pub const CACHE_FACTOR: u64 = 20;

/// What is taken as the cache of the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CacheBasis {
    /// `--storage cache=SIZE`.
    Given,
    /// Memory of the hosts of the partition, as far as their control groups permit: the most that their page caches hold. Caches of servers
    /// are not included.
    PageCache,
}

/// Whether an access method moved twenty times the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CacheVerdict {
    /// It did.
    Met,
    /// It did not.
    NotMet,
    /// Not applicable: all transfers were direct, and the cache is the page cache.
    Direct,
    /// Not applicable: the files are in memory.
    InMemory,
}

/// Bytes of an access method on a partition against twenty times the cache of the file system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CacheYardstick {
    /// Backend name.
    pub backend: String,
    /// Ranks of the partition.
    pub ranks: u64,
    /// Access method.
    pub access: AccessMethod,
    /// Bytes that may have passed the cache: of all patterns; against the page cache without those that are known to have bypassed it.
    pub cached_bytes: u64,
    /// Cache of the file system.
    pub cache_bytes: u64,
    /// Basis of `cache_bytes`.
    pub cache_basis: CacheBasis,
    /// Twenty times `cache_bytes`.
    pub required_bytes: u64,
    /// Whether `cached_bytes` are at least `required_bytes`.
    pub verdict: CacheVerdict,
    /// T (`--time`) that would do at the measured rate, if `verdict` is `not-met`; None otherwise, or if the run is not complete.
    pub required_time_seconds: Option<f64>,
    /// True if the space ended first writes of the partition: T alone would not do.
    pub limited_by_space: bool,
}

/// By backend, partition and access method; none for the null backend, and for access methods that moved nothing.
pub(super) fn yardsticks<'a>(result: &'a RunResult, index: &TypeRecordIndex<'a>) -> Vec<CacheYardstick> {
    let mut all = Vec::new();
    for (backend, ranks) in backends_and_partitions(result).filter(|(backend, _)| *backend != NULL_BACKEND) {
        let records = |access: AccessMethod| {
            let of_type = |t: &PatternType| index.of(backend, ranks, access, *t).patterns;
            result.config.types.iter().flat_map(of_type).filter(|p| p.moved_bytes > 0).collect::<Vec<_>>()
        };
        let limited_by_space = records(AccessMethod::Write).iter().any(|p| p.ended == StopReason::Space);
        for access in AccessMethod::ALL {
            let own = records(access);
            if !own.is_empty() {
                let place = (backend, ranks, access);
                all.push(CacheYardstick { limited_by_space, ..yardstick(result, &own, place) });
            }
        }
    }
    all
}

fn yardstick(
    result: &RunResult,
    own: &[&PatternRecord],
    (backend, ranks, access): (&str, u64, AccessMethod),
) -> CacheYardstick {
    let (cache_bytes, cache_basis) = cache(result, ranks);
    let passes = |p: &&&PatternRecord| cache_basis == CacheBasis::Given || p.direct != Some(true);
    let cached_bytes = own.iter().filter(passes).map(|p| p.moved_bytes).fold(0, u64::saturating_add);
    let required_bytes = cache_bytes.saturating_mul(CACHE_FACTOR);
    let verdict = match cache_basis {
        CacheBasis::PageCache if is_in_memory(&result.manifest.storage.fs_type) => CacheVerdict::InMemory,
        CacheBasis::PageCache if cached_bytes == 0 => CacheVerdict::Direct,
        _ if cached_bytes >= required_bytes => CacheVerdict::Met,
        _ => CacheVerdict::NotMet,
    };
    // Schedules are proportional to T, but not what is left of one that was cut.
    let is_whole = result.ending.outcome == RunOutcome::Complete && !own.iter().any(|p| p.ended.is_cut());
    let times = (verdict == CacheVerdict::NotMet && is_whole).then(|| required_bytes as f64 / cached_bytes as f64);
    CacheYardstick {
        backend: backend.to_owned(),
        ranks,
        access,
        cached_bytes,
        cache_bytes,
        cache_basis,
        required_bytes,
        verdict,
        required_time_seconds: times.map(|times| times * result.config.time_seconds),
        limited_by_space: false,
    }
}

/// Cache of the file system: as given, or the page caches of the hosts with ranks of the partition.
fn cache(result: &RunResult, ranks: u64) -> (u64, CacheBasis) {
    let given = result.config.storage.iter().find(|(key, _)| *key == StorageKey::Cache);
    if let Some((_, Some(bytes))) = given.and_then(|(key, text)| key.parse_value(text).ok()) {
        return (bytes, CacheBasis::Given);
    }
    let machine = &result.manifest.machine;
    let takes_part = |host: usize| {
        let binding = machine.binding.as_ref().filter(|binding| binding.hosts.len() == machine.hosts.len());
        binding.is_none_or(|binding| binding.hosts[host].ranks.iter().any(|r| r.rank < ranks))
    };
    let hosts = machine.hosts.iter().enumerate().filter(|(at, _)| takes_part(*at)).map(|(_, host)| host);
    (usable_memory_bytes(hosts), CacheBasis::PageCache)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::values::fixture::full_run;
    use crate::frame::records::{fixture, HostRecord};

    fn yardsticks(result: &RunResult) -> Vec<CacheYardstick> {
        super::yardsticks(result, &TypeRecordIndex::new(result))
    }

    /// Two hosts of 16 GiB, one of them limited to 4 GiB, with two ranks each.
    fn two_hosts() -> RunResult {
        let mut result = full_run();
        let host = |name: &str, limit| HostRecord {
            memory_bytes: 16 << 30,
            cgroup_memory_limit_bytes: limit,
            ..fixture::host(name, 2)
        };
        result.manifest.machine = fixture::machine(vec![host("a", None), host("b", Some(4 << 30))], &[]);
        result
    }

    fn of(all: &[CacheYardstick], ranks: u64, access: AccessMethod) -> &CacheYardstick {
        all.iter().find(|y| y.ranks == ranks && y.access == access).unwrap()
    }

    /// Recomputed from the raw records, pattern by pattern.
    #[test]
    fn the_bytes_of_each_access_method_are_compared_with_twenty_times_the_page_cache() {
        let result = two_hosts();
        let all = yardsticks(&result);
        assert_eq!(all.len(), 2 * 3);
        for (ranks, cache_bytes) in [(2, 16_u64 << 30), (4, 20 << 30)] {
            for access in AccessMethod::ALL {
                let mut moved_bytes = 0;
                for p in &result.patterns {
                    if p.ranks == ranks && p.access == access {
                        moved_bytes += p.moved_bytes;
                    }
                }
                // 50 MB/s of each rank for 600 s: 60 and 120 GB.
                assert!(
                    (ranks as f64 * 29.9e9..ranks as f64 * 30.3e9).contains(&(moved_bytes as f64)),
                    "{moved_bytes}"
                );
                let y = of(&all, ranks, access);
                assert_eq!(
                    (y.cached_bytes, y.cache_bytes, y.required_bytes),
                    (moved_bytes, cache_bytes, 20 * cache_bytes)
                );
                assert_eq!(
                    (y.verdict, y.cache_basis, y.limited_by_space),
                    (CacheVerdict::NotMet, CacheBasis::PageCache, false)
                );
                let seconds = 1800.0 * (20.0 * cache_bytes as f64) / moved_bytes as f64;
                assert!((y.required_time_seconds.unwrap() - seconds).abs() < 1e-6 * seconds);
            }
        }
    }

    #[test]
    fn a_given_cache_replaces_the_page_cache() {
        let mut result = two_hosts();
        let bytes = of(&yardsticks(&result), 4, AccessMethod::Read).cached_bytes;
        for (cache_bytes, verdict) in
            [(bytes / 20, CacheVerdict::Met), (bytes / 20 + 1, CacheVerdict::NotMet), (0, CacheVerdict::Met)]
        {
            result.config.storage = vec![(StorageKey::Cache, cache_bytes.to_string())];
            let all = yardsticks(&result);
            let y = of(&all, 4, AccessMethod::Read);
            assert_eq!((y.cache_bytes, y.cache_basis, y.verdict), (cache_bytes, CacheBasis::Given, verdict));
            assert_eq!(y.required_time_seconds.is_some(), verdict == CacheVerdict::NotMet);
        }
        // What is given is not bypassed by direct I/O: it may be on a server.
        result.patterns.iter_mut().for_each(|p| p.direct = Some(true));
        assert_eq!(of(&yardsticks(&result), 4, AccessMethod::Read).verdict, CacheVerdict::Met);
    }

    #[test]
    fn direct_transfers_pass_no_page_cache() {
        let mut result = two_hosts();
        result.patterns.iter_mut().filter(|p| p.access == AccessMethod::Read).for_each(|p| p.direct = Some(true));
        let writes = result.patterns.iter_mut().filter(|p| p.access == AccessMethod::Write && p.ranks == 4);
        writes.filter(|p| p.pattern != 3).for_each(|p| p.direct = Some(true));
        let all = yardsticks(&result);
        for ranks in [2, 4] {
            let y = of(&all, ranks, AccessMethod::Read);
            assert_eq!((y.verdict, y.cached_bytes, y.required_time_seconds), (CacheVerdict::Direct, 0, None));
        }
        let third = result.patterns.iter().find(|p| p.ranks == 4 && p.pattern == 3).unwrap();
        let y = of(&all, 4, AccessMethod::Write);
        assert_eq!((y.verdict, y.cached_bytes), (CacheVerdict::NotMet, third.moved_bytes), "one pattern was buffered");
        assert_eq!(of(&all, 2, AccessMethod::Write).verdict, CacheVerdict::NotMet);
        // An unproven bypass is none.
        result.patterns.iter_mut().for_each(|p| p.direct = None);
        assert!(yardsticks(&result).iter().all(|y| y.verdict == CacheVerdict::NotMet));
    }

    #[test]
    fn space_memory_and_null_are_told_apart() {
        let mut result = two_hosts();
        let first =
            result.patterns.iter_mut().find(|p| p.ranks == 2 && p.access == AccessMethod::Write && p.pattern == 4);
        first.unwrap().ended = StopReason::Space;
        assert!(yardsticks(&result).iter().all(|y| y.limited_by_space == (y.ranks == 2)));
        result.manifest.storage.fs_type = "tmpfs".into();
        assert!(yardsticks(&result).iter().all(|y| y.verdict == CacheVerdict::InMemory));
        result.patterns.iter_mut().for_each(|p| p.backend = NULL_BACKEND.into());
        assert_eq!(yardsticks(&result), []);
        result.patterns.clear();
        assert_eq!(yardsticks(&result), []);
    }

    #[test]
    fn a_run_that_was_cut_names_no_time() {
        let mut result = two_hosts();
        result.ending.outcome = RunOutcome::Limit;
        let all = yardsticks(&result);
        assert!(all.iter().all(|y| y.verdict == CacheVerdict::NotMet && y.required_time_seconds.is_none()));
    }

    /// Results without a binding count all hosts.
    #[test]
    fn without_the_places_of_ranks_all_hosts_count() {
        let mut result = two_hosts();
        result.manifest.machine.binding = None;
        assert_eq!(of(&yardsticks(&result), 2, AccessMethod::Write).cache_bytes, 20 << 30);
    }
}
