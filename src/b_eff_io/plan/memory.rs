//! Memory of one rank.

use beff_backends::mmap::WINDOW_BYTES;
use beff_backends::{TransferBuffer, DEFAULT_DOMAIN_BYTES};

use super::patterns::patterns;
use super::space::PartitionSpace;
use super::{two_phase, PatternSpec, PATTERNS};
use crate::b_eff_io::config::{BufferPolicy, Config, ExchangePolicy};
use crate::b_eff_io::pattern_type::PatternType;
use crate::frame::backends;

const MMAP: &str = "mmap";

const PAGE_BYTES: u64 = 4096;

/// Minimum period in pages: more than one call of 1 MB.
const MIN_PERIOD_PAGES: u64 = 257;

/// Memory of a rank without its transfer buffer: the program and the MPI library with its eager buffers.
pub const BASE_RANK_MEMORY_BYTES: u64 = 48 << 20;

/// The period is this multiple of a rank's share of the caches (numerator, denominator). An LRU cache retains none of it. One with random
/// replacement retains h = exp(-(1 - h) times this): 27 %, while 3 / 2 gives 42 %. And 1.8 times the share of eight ranks under 260 MiB is
/// below 64 MiB.
const PERIOD_PER_CACHE_SHARE: (u64, u64) = (9, 5);

/// Maximum size of the windows of reads in flight, unless one window is larger.
const READ_WINDOWS_BYTES: u64 = 32 << 20;

/// Maximum queue depth that a calibration may choose.
const MAX_DEPTH: u64 = 64;

/// Maximum number of two-phase domains per rank: four in flight, and two being exchanged.
const DOMAINS_PER_RANK: u64 = 6;

/// Period of the data stream: 4096 times a prime, so that it aligns with nothing larger than a page and blocks do not repeat where
/// deduplication would detect it; larger than the rank's share of the caches, so that the buffers are as cache-cold as in a real program.
/// At most 1/16 of the memory of a rank, at least 257 pages.
#[must_use]
pub fn period_bytes(cache_share_bytes: u64, memory_per_rank_bytes: u64) -> u64 {
    let most = memory_per_rank_bytes / 16 / PAGE_BYTES;
    let wanted = cache_share_bytes.saturating_mul(PERIOD_PER_CACHE_SHARE.0) / PERIOD_PER_CACHE_SHARE.1;
    let least = (wanted / PAGE_BYTES + 1).max(MIN_PERIOD_PAGES);
    let fits = |pages: &u64| *pages <= most;
    let above = || (least..=most).find(|&p| is_prime(p));
    let below = || (MIN_PERIOD_PAGES..=most).rev().find(|&p| is_prime(p));
    let pages = Some(least).filter(fits).and_then(|_| above()).or_else(below);
    pages.unwrap_or(MIN_PERIOD_PAGES) * PAGE_BYTES
}

/// With `--buffers reused`: the memory that the calls of a pattern share, in whole pages, so that windows remain aligned. Other calls wrap
/// around in it.
#[must_use]
pub fn window_bytes(call_bytes: u64) -> u64 {
    call_bytes.max(1).next_multiple_of(PAGE_BYTES)
}

/// The same for reads: as many windows as there are reads in flight, at most 32 MiB.
#[must_use]
pub fn read_windows_bytes(call_bytes: u64, reads_under_way: u64) -> u64 {
    let window = window_bytes(call_bytes);
    window * reads_under_way.min(READ_WINDOWS_BYTES / window).max(1)
}

/// Maximum number of reads in flight of a backend, each of which needs separate memory.
#[must_use]
pub fn reads_in_flight(config: &Config, backend: &str) -> u64 {
    if backends::supports(backend, |row| row.has_queue) || two_phase::is_possible(config, backend) {
        config.of(backend).queue_depth.map_or(MAX_DEPTH, u64::from)
    } else {
        1
    }
}

/// With `--buffers reused`: maximum number of reads in flight of any backend; None: each call has separate memory.
#[must_use]
pub fn reused_reads(config: &Config) -> Option<u64> {
    let most = || config.backends.iter().map(|backend| reads_in_flight(config, backend)).max().unwrap_or(1);
    (config.buffers == BufferPolicy::Reused).then(most)
}

/// Period of a buffer that holds the windows of all patterns.
#[must_use]
pub fn reused_period_bytes(reads_under_way: u64, max_call_bytes: u64) -> u64 {
    let small = if reads_under_way > 1 { READ_WINDOWS_BYTES } else { 0 };
    window_bytes(max_call_bytes).max(small)
}

/// Trial division: periods are at most some hundred thousand pages.
fn is_prime(n: u64) -> bool {
    n >= 2 && (2..).take_while(|d| d * d <= n).all(|d| !n.is_multiple_of(d))
}

/// Largest call of one rank: of the patterns of these types, and of a fill-up of maximum length.
#[must_use]
pub fn max_call_bytes(specs: &[PatternSpec; PATTERNS], types: &[PatternType], segment_multiple_bytes: u64) -> u64 {
    let calls = specs.iter().filter(|s| types.contains(&s.pattern_type)).map(|s| s.call_bytes).max().unwrap_or(0);
    let segmented = types.iter().any(|t| t.has_segments());
    calls.max(if segmented { segment_multiple_bytes } else { 0 })
}

/// Index in the transfer buffer from which on reads that are mixed with writes leave their data.
#[must_use]
pub fn landing_begin_bytes(period_bytes: u64, max_call_bytes: u64) -> u64 {
    window_bytes(period_bytes.saturating_add(max_call_bytes))
}

/// Bytes of the transfer buffer after its period: the largest call and, if reads are mixed with writes, a landing zone of the same length as
/// period and call.
#[must_use]
pub fn tail_bytes(period_bytes: u64, max_call_bytes: u64, is_mixed: bool) -> u64 {
    if is_mixed {
        landing_begin_bytes(period_bytes, max_call_bytes).saturating_add(max_call_bytes)
    } else {
        max_call_bytes
    }
}

/// Parts of the memory of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankMemoryParts {
    /// Period of the stream.
    pub period_bytes: u64,
    /// Bytes of the transfer buffer after it: see [`tail_bytes`].
    pub tail_bytes: u64,
    /// Domains of two-phase transfers, of all backends that may need them.
    pub domain_bytes: u64,
    /// Ranks of one host that may map each other's transfer buffer; 1: none.
    pub sharing_ranks: u64,
    /// Bytes of files mapped at once.
    pub file_bytes: u64,
}

/// Memory of one rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RankMemory {
    /// The rank's own memory, whether other ranks map it too or not.
    pub own_bytes: u64,
    /// Other ranks' memory that it maps: resident in each rank, but allocated once on a host.
    pub neighbours_bytes: u64,
    /// Pages of files that it maps, which belong to the page cache.
    pub file_bytes: u64,
}

impl RankMemory {
    /// Sum of the parts: the transfer buffer in whole huge pages and [`BASE_RANK_MEMORY_BYTES`], domains, buffers of other ranks, files.
    /// Saturates.
    #[must_use]
    pub fn of(parts: RankMemoryParts) -> Self {
        let buffer_bytes = TransferBuffer::allocated_bytes(parts.period_bytes, parts.tail_bytes);
        let own_bytes = buffer_bytes.saturating_add(parts.domain_bytes).saturating_add(BASE_RANK_MEMORY_BYTES);
        let neighbours_bytes = buffer_bytes.saturating_mul(parts.sharing_ranks.saturating_sub(1));
        Self { own_bytes, neighbours_bytes, file_bytes: parts.file_bytes }
    }

    /// Maximum resident memory of one rank, without pages of files.
    #[must_use]
    pub fn resident_bytes(&self) -> u64 {
        self.own_bytes.saturating_add(self.neighbours_bytes)
    }
}

/// True if ranks may copy from each other's transfer buffer: two-phase transfers without messages.
#[must_use]
pub fn shares_memory(config: &Config, ranks: u64) -> bool {
    let collective = config.types.iter().any(|t| t.is_strided());
    let two_phase = |backend: &String| two_phase::is_possible(config, backend);
    ranks > 1 && collective && config.exchange != ExchangePolicy::Messages && config.backends.iter().any(two_phase)
}

/// Maximum size of a rank's domains, of all backends.
#[must_use]
pub fn domain_bytes(config: &Config, ranks: u64) -> u64 {
    let has_domains = |backend: &&String| two_phase::has_domains(config, backend, ranks);
    let of_one = |backend: &String| {
        config.of(backend).domain_bytes.unwrap_or(DEFAULT_DOMAIN_BYTES).saturating_mul(DOMAINS_PER_RANK)
    };
    config.backends.iter().filter(has_domains).map(of_one).fold(0, u64::saturating_add)
}

/// True if a backend maps files.
#[must_use]
pub fn maps_files(config: &Config) -> bool {
    config.backends.iter().any(|backend| backends::backend_of(backend) == MMAP)
}

/// Maximum bytes of a file that a rank maps at once, if it `maps` any: of the longest range of a pattern.
#[must_use]
pub fn mapped_bytes(maps: bool, types: &[PatternType], partitions: &[PartitionSpace]) -> u64 {
    if !maps {
        return 0;
    }
    let range = |part: &PartitionSpace, spec: &PatternSpec| {
        // Chunks of all ranks are interleaved, and a page is mapped with its neighbours.
        let ranks = if spec.pattern_type.is_strided() { part.ranks } else { 1 };
        part.max_calls[usize::from(spec.number)].saturating_mul(spec.call_bytes).saturating_mul(ranks)
    };
    let runs = |spec: &&PatternSpec| types.contains(&spec.pattern_type);
    let ranges = partitions.iter().flat_map(|part| {
        let specs = patterns(part.m_part_bytes);
        specs.iter().filter(runs).map(|spec| range(part, spec)).max()
    });
    let longest_call = partitions.iter().map(|part| part.m_part_bytes).max().unwrap_or(0);
    ranges.max().unwrap_or(0).min(WINDOW_BYTES.max(longest_call))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::cli::IoArgs;
    use crate::frame::benchmark::options_from_words;
    use crate::frame::command::backend_capabilities;
    use crate::frame::units::MIB;
    use proptest::prelude::*;

    #[test]
    fn known_periods() {
        assert_eq!(period_bytes(0, 1 << 30), 257 * 4096);
        // 1.8 times 32 MiB are 14745.6 pages; the next prime is 14747.
        assert_eq!(period_bytes(32 * MIB, 8 << 30), 14747 * 4096);
        // 128 MiB / 16 are 2048 pages; the prime below is 2039.
        assert_eq!(period_bytes(32 * MIB, 128 * MIB), 2039 * 4096);
        assert_eq!(period_bytes(32 * MIB, 0), 257 * 4096);
        // One page more than 8209 is required. That fits, but the next larger prime does not.
        assert_eq!(period_bytes((8209_u64 * 4096).div_ceil(9) * 5, 16 * 8212 * 4096), 8209 * 4096);
    }

    /// Eight ranks under a last-level cache of 260 MiB, each with 2 MiB and 48 KiB of private caches.
    #[test]
    fn a_crowded_cache_asks_for_little_of_each_rank() {
        let share = 260 * MIB / 8 + 2 * MIB + (48 << 10);
        let period = period_bytes(share, 16 << 30);
        assert!(period > share && period < 64 * MIB, "{period}");
    }

    fn config(options: &str) -> Config {
        options_from_words::<IoArgs>(options.split_whitespace()).config(&backend_capabilities()).unwrap()
    }

    #[test]
    fn memory_adds_up() {
        let specs = patterns(8 * MIB);
        assert_eq!(max_call_bytes(&specs, &PatternType::ALL, MIB), 8 * MIB);
        assert_eq!(max_call_bytes(&specs, &[PatternType::Scatter, PatternType::Segmented], 64 * MIB), 64 * MIB);
        assert_eq!(max_call_bytes(&specs, &[PatternType::Scatter], 64 * MIB), 8 * MIB);
        // Reads mixed with writes have as much once more.
        assert_eq!(tail_bytes(257 * 4096, 1000, false), 1000);
        assert_eq!(tail_bytes(257 * 4096, 1000, true), 258 * 4096 + 1000);
        let parts = RankMemoryParts {
            period_bytes: 4 * MIB,
            tail_bytes: 8 * MIB,
            domain_bytes: 24 * MIB,
            sharing_ranks: 4,
            file_bytes: 256 * MIB,
        };
        let memory = RankMemory::of(parts);
        // 12 MiB and the accessible bytes beyond them are seven huge pages.
        assert_eq!((memory.own_bytes, memory.neighbours_bytes), (86 * MIB, 42 * MIB));
        assert_eq!((memory.resident_bytes(), memory.file_bytes), (128 * MIB, 256 * MIB));
        assert_eq!(RankMemory::of(RankMemoryParts { sharing_ranks: 1, ..parts }).neighbours_bytes, 0);
    }

    #[test]
    fn windows_are_whole_pages_and_suffice_for_reads_in_flight() {
        assert_eq!([0, 1, 1024, 4096, 32776].map(window_bytes), [4096, 4096, 4096, 4096, 36864]);
        assert_eq!(read_windows_bytes(1024, 1), 4096);
        assert_eq!(read_windows_bytes(1024, 64), 64 * 4096);
        assert_eq!(read_windows_bytes(MIB, 64), 32 * MIB);
        assert_eq!(read_windows_bytes(48 * MIB, 64), 48 * MIB);
        let config = |options: &str| config(&format!("--buffers reused {options}"));
        assert_eq!(reads_in_flight(&config("--backend posix"), "posix"), 1);
        assert_eq!(reads_in_flight(&config("--backend uring --depth 5"), "uring"), 5);
        let reused = |options: &str| reused_reads(&config(options)).unwrap();
        assert_eq!(reused_period_bytes(reused("--backend mpiio,mmap"), 8 * MIB), 8 * MIB);
        assert_eq!(reused_period_bytes(reused("--backend uring"), 8 * MIB), 32 * MIB);
        for call in [1, 1000, 32776, MIB, MIB + 8, 8 * MIB] {
            assert!(read_windows_bytes(call, 64) <= reused_period_bytes(reused("--backend uring"), 8 * MIB), "{call}");
        }
    }

    #[test]
    fn shared_memory_and_domains_follow_from_the_backends() {
        for (options, ranks, shares, domains) in [
            ("--backend uring", 4, true, 24),
            ("--backend uring", 1, false, 0),
            ("--backend uring --collective independent", 4, false, 0),
            ("--backend uring --set exchange=messages", 4, false, 24),
            ("--backend posix", 4, false, 0),
            ("--backend posix,uring --direct auto --domain 1M", 4, true, 12),
            ("--backend uring --types 2,4", 4, false, 24),
            ("--backend mpiio,mmap", 4, false, 0),
        ] {
            let config = config(options);
            assert_eq!(
                (shares_memory(&config, ranks), domain_bytes(&config, ranks)),
                (shares, domains * MIB),
                "{options}"
            );
        }
    }

    #[test]
    fn a_mapping_is_as_long_as_its_window_or_its_pattern() {
        let part = |calls| PartitionSpace {
            ranks: 2,
            m_part_bytes: 8 * MIB,
            m_part_defined_bytes: 8 * MIB,
            space_bytes: None,
            max_calls: [calls; PATTERNS],
        };
        assert!(maps_files(&config("--backend posix,mmap")) && !maps_files(&config("--backend posix")));
        assert_eq!(mapped_bytes(true, &[PatternType::Separate], &[part(1)]), 8 * MIB);
        assert_eq!(mapped_bytes(true, &[PatternType::Separate], &[part(1), part(2)]), 16 * MIB);
        assert_eq!(mapped_bytes(true, &[PatternType::Separate], &[part(1 << 40)]), WINDOW_BYTES);
        assert_eq!(
            mapped_bytes(true, &[PatternType::Scatter, PatternType::Separate], &[part(1)]),
            16 * MIB,
            "interleaved chunks of two ranks"
        );
        assert_eq!(mapped_bytes(false, &[PatternType::Scatter, PatternType::Separate], &[part(1)]), 0);
    }

    proptest! {
        #[test]
        fn periods_are_primes_in_bounds(cache in 0_u64..(1 << 30), memory in 0_u64..(1 << 36)) {
            let period = period_bytes(cache, memory);
            prop_assert_eq!(period % PAGE_BYTES, 0);
            prop_assert!(is_prime(period / PAGE_BYTES));
            prop_assert!(period <= (memory / 16).max(MIN_PERIOD_PAGES * PAGE_BYTES));
            prop_assert!(period > cache + cache / 5 * 4 || cache + cache / 5 * 4 >= memory / 16 - (memory / 16).min(1 << 20));
        }
    }
}
