//! Measures whether a walk through memory is cache-cold: [`CacheColdRecord`].

use std::hint::black_box;

use beff_backends::cache_lines::{flush_cache_lines, CACHE_LINE_BYTES};
use beff_ffi::{Comm, MpiError};
use serde::{Deserialize, Serialize};

use crate::frame::records::{cache_cold, CacheColdRecord};
use crate::frame::run::agree::reduce;
use crate::frame::run::clock::Instant;

const MAX_SAMPLES: usize = 16;
/// Bytes of a sample: within the second-level cache of most processors, and long enough for the clock.
const SAMPLE_BYTES: usize = 256 << 10;
/// Cache lines of a sample: a power of two.
const SAMPLE_LINES: usize = SAMPLE_BYTES / CACHE_LINE_BYTES;

/// Load times of one rank: as found, flushed, cached; None if unknown.
type LoadTimes = Option<[f64; 3]>;

/// Of several ranks: the one with the smallest share of loads from memory.
#[derive(Debug, Default, Serialize, Deserialize)]
struct LeastFromMemory {
    /// Share, load times and rank.
    least: Option<(f64, [f64; 3], u64)>,
    /// Load times of the lowest rank that has some, known to be from memory or not.
    first_times: LoadTimes,
}

impl LeastFromMemory {
    fn of_rank(rank: u64, times: LoadTimes) -> Self {
        let least = times.and_then(|times| Some((cache_cold::memory_share(times)?, times, rank)));
        Self { least, first_times: times }
    }

    fn with(self, higher: Self) -> Self {
        let least = [self.least, higher.least].into_iter().flatten().min_by(|a, b| a.0.total_cmp(&b.0));
        Self { least, first_times: self.first_times.or(higher.first_times) }
    }
}

/// Samples `memory`, all of the memory that calls walk through, in a second walk after one that loads each line. Collective; all ranks
/// walk at once, as in a pattern: the last rank to write its memory would find it in a cache from which that of others was evicted.
///
/// # Errors
/// MPI errors.
pub fn measure(comm: &Comm, memory: &[u8], cache_share_bytes: u64) -> Result<CacheColdRecord, MpiError> {
    comm.barrier()?;
    let begin = Instant::now();
    load_lines(memory);
    let mine = sample_loads(memory);
    comm.barrier()?;
    let seconds = begin.elapsed().as_secs_f64();
    let memory_bytes = memory.len() as u64;
    let all = reduce(comm, LeastFromMemory::of_rank(comm.rank(), mine), LeastFromMemory::with)?.unwrap_or_default();
    Ok(CacheColdRecord {
        cache_share_bytes,
        memory_bytes,
        seconds,
        ..least_from_memory(&all, sample_count(memory.len()))
    })
}

fn sample_count(bytes: usize) -> usize {
    (bytes / (2 * SAMPLE_BYTES)).min(MAX_SAMPLES)
}

/// Record of the rank with the smallest share of loads from memory.
fn least_from_memory(all: &LeastFromMemory, pieces: usize) -> CacheColdRecord {
    let Some((_, [found_ns, flushed_ns, cached_ns], rank)) = all.least else {
        let why = match all.first_times {
            _ if pieces == 0 => "the memory is too short to sample".to_owned(),
            None => "this program cannot empty the caches of this processor".to_owned(),
            Some([_, flushed, cached]) => {
                format!(
                    "loads from memory ({flushed:.1} ns) and from a cache ({cached:.1} ns) cannot be distinguished here"
                )
            }
        };
        return CacheColdRecord { unknown_reason: Some(why), ..CacheColdRecord::default() };
    };
    CacheColdRecord {
        rank,
        lines: (pieces * SAMPLE_LINES) as u64,
        load_ns: found_ns,
        flushed_ns,
        cached_ns,
        ..CacheColdRecord::default()
    }
}

/// One walk. Medians over the samples of the time of a load: as found, flushed, cached.
fn sample_loads(memory: &[u8]) -> LoadTimes {
    let mut times = [const { Vec::new() }; 3];
    let pieces = sample_count(memory.len());
    if pieces == 0 {
        return None;
    }
    for stretch in memory.chunks(memory.len().div_ceil(pieces)) {
        // The last one may be shorter.
        if stretch.len() < SAMPLE_BYTES {
            break;
        }
        let (piece, rest) = stretch.split_at(SAMPLE_BYTES);
        times[0].push(load_ns(piece));
        if !flush_cache_lines(piece) {
            return None;
        }
        times[1].push(load_ns(piece));
        times[2].push(load_ns(piece));
        load_lines(rest);
    }
    Some(times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    }))
}

fn load_lines(memory: &[u8]) {
    black_box(memory.iter().step_by(CACHE_LINE_BYTES).fold(0_u8, |sum, byte| sum ^ byte));
}

/// Time of one load of each line of a sample in a pseudo-random order; each address depends on the previous load.
fn load_ns(piece: &[u8]) -> f64 {
    // Hides from the compiler that this is 0.
    let zero = black_box(0_usize);
    let mut line = 0;
    let begin = Instant::now();
    for _ in 0..SAMPLE_LINES {
        let loaded = usize::from(piece[line * CACHE_LINE_BYTES]);
        // A full cycle modulo a power of two: the factor is 1 modulo 4, the summand odd (Hull and Dobell 1962).
        line = (line * 1_664_525 + 1_013_904_223 + (loaded & zero)) % SAMPLE_LINES;
    }
    let seconds = begin.elapsed().as_secs_f64();
    black_box(line);
    seconds * 1e9 / SAMPLE_LINES as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_loaded_once() {
        let (mut line, mut seen) = (0_usize, vec![false; SAMPLE_LINES]);
        for _ in 0..SAMPLE_LINES {
            assert!(!std::mem::replace(&mut seen[line], true));
            line = (line * 1_664_525 + 1_013_904_223) % SAMPLE_LINES;
        }
        assert_eq!(line, 0);
    }

    #[test]
    fn the_rank_with_the_smallest_share_from_memory_is_recorded() {
        let least_from_memory = |all: &[LoadTimes], pieces| {
            let of_ranks = (0..).zip(all).map(|(rank, times)| LeastFromMemory::of_rank(rank, *times));
            least_from_memory(&of_ranks.reduce(LeastFromMemory::with).unwrap(), pieces)
        };
        let all = [Some([90.0, 100.0, 5.0]), None, Some([40.0, 110.0, 5.0]), Some([6.0, 6.0, 5.0])];
        let record = least_from_memory(&all, 16);
        assert_eq!((record.rank, record.load_ns, record.lines), (2, 40.0, 16 * 4096));
        let why = |all: &[LoadTimes], pieces| least_from_memory(all, pieces).unknown_reason.unwrap();
        assert!(why(&[None], 16).contains("cannot empty the caches"));
        assert!(why(&[None], 0).contains("too short"));
        assert!(why(&[Some([6.0, 6.0, 5.0])], 3).contains("6.0 ns"));
    }

    #[test]
    fn short_memory_is_not_sampled() {
        assert_eq!(sample_loads(&[0; 1000]), None);
        assert_eq!(sample_loads(&vec![0; 3 << 20]).is_some(), cfg!(target_arch = "x86_64"));
    }

    /// True if `is` holds for one of several samples of half a megabyte after `prepare`. Samples without a result do not count.
    fn any_sample(prepare: impl Fn(&mut [u8], u8), is: impl Fn(f64) -> bool) -> bool {
        let mut memory = vec![0_u8; 2 * SAMPLE_BYTES];
        (0..50).any(|round| {
            prepare(&mut memory, round);
            sample_loads(&memory).and_then(cache_cold::memory_share).is_some_and(&is)
        })
    }

    /// Half a megabyte that was just written is in the second-level cache of most processors, which no other program shares. Code that
    /// samples other memory, or flushes it before, would find it cache-cold each time.
    #[test]
    fn memory_just_written_is_cache_hot_and_flushed_memory_cache_cold() {
        if cfg!(not(target_arch = "x86_64")) {
            println!("skipped: this program cannot empty the caches of this processor");
            return;
        }
        assert!(any_sample(|memory, round| memory.fill(round), |share| share < 0.5));
        let flushed = |memory: &mut [u8], round| {
            memory.fill(round);
            assert!(flush_cache_lines(memory));
        };
        assert!(any_sample(flushed, |share| share > 0.5));
    }
}
