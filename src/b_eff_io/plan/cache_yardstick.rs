//! Forecast of the T with which each access method moves twenty times the cache of the file system.

use std::cell::RefCell;
use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::preview::{preview, PartitionPreview, PatternPreview, PreviewInput};
use super::PlanError;
use crate::frame::records::AccessMethod;

/// Times the cache of the file system that an access method should move.
pub const CACHE_FACTOR: u64 = 20;
/// T beyond which none is searched: 30 years.
const MAX_SECONDS: f64 = 1e9;
/// Growth of the bytes with twice the T below which they stand still: patterns of one call take several doublings to make a second one.
const MIN_GROWTH: f64 = 1.01;
/// Doublings without growth after which the bytes are at their limit.
const MAX_STALLED: u32 = 10;
/// Largest partitions that are forecast: each T needs a plan of all partitions.
const MAX_PARTITIONS: usize = 8;
/// Steps of T above and below ten minutes.
const STEPS_SECONDS: [f64; 2] = [60.0, 1.0];
const LONG_SECONDS: f64 = 600.0;

/// Cache of the file system in a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedCache {
    /// As given by `--storage cache`; None: the memory of the hosts.
    pub given_bytes: Option<u64>,
    /// Memory of a host by its ranks, whatever the ranks of the plan may use.
    pub host_bytes_per_rank: u64,
    /// All backends may bypass the page cache.
    pub may_be_direct: bool,
}

/// Twenty times the cache against the bytes of one access method on one partition, through one backend.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CacheForecast {
    /// Ranks of the partition.
    pub ranks: u64,
    /// Access method.
    pub access: AccessMethod,
    /// Bytes with the given T, at the assumed or measured rate.
    pub bytes: u64,
    /// Twenty times the cache.
    pub required_bytes: u64,
    /// Smallest T that would do, in whole seconds, above ten minutes in whole minutes; the given one if it does. None: the space ends the first
    /// writes before, or none is below 30 years.
    pub required_time_seconds: Option<f64>,
    /// The cache was given; false: it is the memory of the hosts of the ranks, the most that a page cache holds.
    pub is_given: bool,
    /// All backends may bypass the page cache: then the yardstick does not apply to it.
    pub may_be_direct: bool,
}

/// Forecasts all access methods on the largest partitions; `rates`: bytes per second of write, rewrite and read.
///
/// # Errors
/// Those of [`preview`] for the given T.
pub fn forecast(input: &PreviewInput, cache: PlannedCache, rates: [f64; 3]) -> Result<Vec<CacheForecast>, PlanError> {
    let now = Moved::of(input, input.time_seconds, rates)?;
    // The same few T are asked for again and again.
    let known: RefCell<HashMap<u64, Option<Moved>>> = RefCell::default();
    let moved = |seconds: f64, at: usize, which: usize| {
        let mut known = known.borrow_mut();
        let moved = known.entry(seconds.to_bits()).or_insert_with(|| Moved::of(input, seconds, rates).ok());
        Some(moved.as_ref()?.bytes[at][which])
    };
    let mut all = Vec::new();
    let small = now.ranks.len().saturating_sub(MAX_PARTITIONS);
    for (at, ranks) in now.ranks.iter().copied().enumerate().skip(small) {
        let of_hosts = cache.host_bytes_per_rank.saturating_mul(ranks);
        let required_bytes = cache.given_bytes.unwrap_or(of_hosts).saturating_mul(CACHE_FACTOR);
        for (which, access) in AccessMethod::ALL.into_iter().enumerate() {
            let bytes = now.bytes[at][which];
            if bytes == 0 {
                continue;
            }
            let of_time = |seconds| moved(seconds, at, which);
            all.push(CacheForecast {
                ranks,
                access,
                bytes,
                required_bytes,
                required_time_seconds: required_time(input.time_seconds, bytes, required_bytes, of_time),
                is_given: cache.given_bytes.is_some(),
                may_be_direct: cache.may_be_direct,
            });
        }
    }
    Ok(all)
}

/// Smallest T, from `time_seconds` on, with which `of_time` reaches `required_bytes`.
fn required_time(
    time_seconds: f64,
    bytes: u64,
    required_bytes: u64,
    of_time: impl Fn(f64) -> Option<u64>,
) -> Option<f64> {
    let (mut low, mut high, mut last, mut stalled) = (time_seconds, time_seconds, bytes, 0);
    while last < required_bytes {
        (low, high) = (high, high * 2.0);
        let next = of_time(high).filter(|_| high <= MAX_SECONDS)?;
        stalled = if (next as f64) < MIN_GROWTH * last as f64 { stalled + 1 } else { 0 };
        if stalled > MAX_STALLED {
            return None;
        }
        last = next;
    }
    if low >= high {
        return Some(time_seconds);
    }
    let step = STEPS_SECONDS[usize::from(high < LONG_SECONDS)];
    while high - low > step {
        let middle = (low + high) / 2.0;
        if of_time(middle)? >= required_bytes {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some((high / step).ceil() * step)
}

/// Bytes of write, rewrite and read of each partition.
struct Moved {
    ranks: Vec<u64>,
    bytes: Vec<[u64; 3]>,
}

impl Moved {
    /// With this T. Rewrites and reads end with the data that was written at the rate of the first writes.
    fn of(input: &PreviewInput, time_seconds: f64, rates: [f64; 3]) -> Result<Self, PlanError> {
        let at_rate = |rate| {
            preview(&PreviewInput { time_seconds, rate_bytes_per_second: rate, limit_seconds: None, ..input.clone() })
        };
        let written = at_rate(rates[0])?;
        let mut bytes = vec![[0; 3]; written.partitions.len()];
        for (which, rate) in rates.into_iter().enumerate() {
            let plan = if which == 0 { None } else { Some(at_rate(rate)?) };
            for (at, first) in written.partitions.iter().enumerate() {
                let own = plan.as_ref().map_or(first, |plan| &plan.partitions[at]);
                bytes[at][which] = moved_bytes(first, own, which);
            }
        }
        Ok(Self { ranks: written.partitions.iter().map(|p| p.ranks).collect(), bytes })
    }
}

fn moved_bytes(first: &PartitionPreview, own: &PartitionPreview, which: usize) -> u64 {
    let of_pattern = |(written, moved): (&PatternPreview, &PatternPreview)| {
        let calls = moved.outlook[which].map_or(0, |outlook| outlook.calls).min(written.calls);
        u128::from(calls) * u128::from(written.call_bytes) * u128::from(first.ranks)
    };
    u64::try_from(first.patterns.iter().zip(&own.patterns).map(of_pattern).sum::<u128>()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::config::{Partitions, Release};
    use crate::b_eff_io::pattern_type::PatternType;

    fn input(time_seconds: f64, limit_bytes: Option<u64>) -> PreviewInput {
        PreviewInput {
            ranks: 4,
            release: Release::R1,
            partitions: Partitions::List(vec![2, 4]),
            time_seconds,
            orders: Vec::new(),
            mix: None,
            strict: false,
            limit_seconds: None,
            types: PatternType::ALL.to_vec(),
            full_rewrite: true,
            shared_pointer: true,
            memory_per_rank_bytes: 4 << 30,
            limit_bytes,
            backends: 1,
            contestants: Vec::new(),
            variants: Vec::new(),
            segment_multiple_bytes: 1 << 20,
            files_per_directory: 10_000,
            ranks_of_host: 4,
            cache_share_bytes: 32 << 20,
            domain_bytes: 24 << 20,
            shares_memory: true,
            maps_files: false,
            reused_reads: None,
            rate_bytes_per_second: 1e9,
        }
    }

    const CACHE: PlannedCache = PlannedCache { given_bytes: None, host_bytes_per_rank: 4 << 30, may_be_direct: false };

    fn of(all: &[CacheForecast], ranks: u64, access: AccessMethod) -> &CacheForecast {
        all.iter().find(|f| f.ranks == ranks && f.access == access).unwrap()
    }

    /// The forecast holds in the plan with the T that it names, and not with one that is 5 % shorter.
    #[test]
    fn the_named_time_moves_twenty_times_the_cache() {
        for rates in [[1e9; 3], [5e8, 1e9, 4e9], [2e9, 5e8, 1e8]] {
            let all = forecast(&input(900.0, None), CACHE, rates).unwrap();
            assert_eq!(all.len(), 6);
            for f in &all {
                assert_eq!(f.required_bytes, 20 * f.ranks * (4 << 30));
                let seconds = f.required_time_seconds.unwrap();
                let again =
                    |seconds| of(&forecast(&input(seconds, None), CACHE, rates).unwrap(), f.ranks, f.access).bytes;
                assert!(again(seconds) >= f.required_bytes, "{f:?}");
                if seconds > 900.0 {
                    assert!(again(0.95 * seconds) < f.required_bytes, "{f:?}");
                    assert!(seconds % 60.0 == 0.0 && f.bytes < f.required_bytes);
                } else {
                    assert!(f.bytes >= f.required_bytes && seconds == 900.0);
                }
            }
        }
        // 344 GB at 1 GB/s in a third of T.
        let all = forecast(&input(900.0, None), CACHE, [1e9; 3]).unwrap();
        let seconds = of(&all, 4, AccessMethod::Write).required_time_seconds.unwrap();
        assert!((900.0..1300.0).contains(&seconds), "{seconds}");
    }

    #[test]
    fn a_given_cache_is_that_of_every_partition() {
        let given = PlannedCache { given_bytes: Some(1 << 30), host_bytes_per_rank: 4 << 30, may_be_direct: true };
        let all = forecast(&input(900.0, None), given, [1e9; 3]).unwrap();
        assert!(all.iter().all(|f| f.required_bytes == 20 << 30 && f.is_given && f.may_be_direct));
        assert!(all.iter().all(|f| f.required_time_seconds == Some(900.0)));
        let none = PlannedCache { given_bytes: Some(0), host_bytes_per_rank: 4 << 30, may_be_direct: false };
        let all = forecast(&input(60.0, None), none, [1e9; 3]).unwrap();
        assert!(all.iter().all(|f| f.required_time_seconds == Some(60.0)));
    }

    /// A thousand partitions take no longer than a few.
    #[test]
    fn the_largest_partitions_are_forecast() {
        let sizes: Vec<u64> = (1..=1000).collect();
        let many = PreviewInput { ranks: 1000, partitions: Partitions::List(sizes), ..input(900.0, None) };
        let begin = std::time::Instant::now();
        let all = forecast(&many, CACHE, [1e9, 2e9, 3e9]).unwrap();
        assert_eq!((all.len(), all[0].ranks, all[23].ranks), (24, 993, 1000));
        assert!(begin.elapsed().as_secs() < 60, "{:?}", begin.elapsed());
    }

    /// No T fills more than the space.
    #[test]
    fn the_space_may_prevent_it() {
        let all = forecast(&input(900.0, Some(100 << 30)), CACHE, [1e9; 3]).unwrap();
        assert!(all.iter().all(|f| f.required_time_seconds.is_none()), "{all:?}");
        // A rate at which no T below 30 years would do.
        let all = forecast(&input(900.0, None), CACHE, [10.0; 3]).unwrap();
        assert!(all.iter().all(|f| f.required_time_seconds.is_none()), "{all:?}");
    }
}
