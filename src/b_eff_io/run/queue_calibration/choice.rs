//! Settings tried in the calibration of a queue, and the choice from the results: pure arithmetic on agreed numbers.

use crate::b_eff_io::records::DepthTrial;
use crate::frame::units::MIB;

/// Trials of every setting. The median of three tolerates one disturbed trial.
pub const TRIALS_PER_SETTING: usize = 3;
/// A shorter trial measures clocks and wake-ups.
pub const MIN_TRIAL_SECONDS: f64 = 0.002;
/// Maximum number of bytes of one rank in flight.
pub const IN_FLIGHT_BYTES: u64 = 64 * MIB;

const DEPTHS: [u32; 5] = [4, 8, 16, 32, 64];
/// Depths tried for chunks above 1 MiB, as far as the memory in flight allows, but always the first: two large chunks keep the storage busy
/// between two completions.
pub const LARGE_DEPTHS: [u32; 3] = [2, 4, 8];
/// Larger chunks are also tried in several operations.
const MAX_SINGLE_OPERATION_BYTES: u64 = MIB;
/// Sizes and depths of these operations, most useful first. A device may process several at the same time, and less memory is in flight.
/// The best size depends on the disk (docs/lab/README.md).
pub const OPERATIONS: [(u64, u32); 4] = [(MIB, 8), (2 * MIB, 4), (2 * MIB, 8), (MIB, 16)];
/// Chunk sizes of the patterns, except M_PART.
const CHUNKS: [u64; 3] = [1 << 10, 32 << 10, MIB];
/// Chunk size for a larger M_PART: the file has two such chunks.
const MAX_CHUNK_BYTES: u64 = 2 * IN_FLIGHT_BYTES;
/// From this size on completions are rare, and the number waited for matters little.
const LARGE_CHUNK_BYTES: u64 = MIB;
/// Minimum number of full queues in a trial; fewer measure how a queue fills and drains.
const QUEUES_PER_TRIAL: u64 = 2;
/// From this size on one queue suffices: the patterns themselves have few such chunks in a row.
const ONE_QUEUE_BYTES: u64 = IN_FLIGHT_BYTES / 4;
/// A setting within this share of the best rate counts as equal: closer, the choice would be noise of short trials.
pub const NEAR_BEST_SHARE: f64 = 0.97;

/// Setting of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct QueueSetting {
    /// Maximum number of operations in flight.
    pub depth: u32,
    /// Completions waited for in one call.
    pub wait_for: u32,
    /// Size of the operations of a larger chunk; None: one operation per chunk.
    pub operation_bytes: Option<u64>,
}

impl QueueSetting {
    const fn single_operation(depth: u32, wait_for: u32) -> Self {
        Self { depth, wait_for, operation_bytes: None }
    }

    /// Several operations per chunk.
    const fn split((operation_bytes, depth): (u64, u32)) -> Self {
        Self { depth, wait_for: depth / 4, operation_bytes: Some(operation_bytes) }
    }

    fn in_flight_bytes(self, chunk_bytes: u64) -> u64 {
        u64::from(self.depth) * self.operation_bytes.map_or(chunk_bytes, |bytes| bytes.min(chunk_bytes))
    }

    fn min_chunks(self, chunk_bytes: u64) -> u64 {
        let queues = if chunk_bytes >= ONE_QUEUE_BYTES { 1 } else { QUEUES_PER_TRIAL };
        queues * self.in_flight_bytes(chunk_bytes).div_ceil(chunk_bytes)
    }

    fn of(trial: &DepthTrial) -> Self {
        Self { depth: trial.depth, wait_for: trial.wait_for, operation_bytes: trial.operation_bytes }
    }
}

/// Budget of a set of trials.
#[derive(Clone, Copy, Debug)]
pub struct SetBudget {
    /// Time for all trials of the set, including overhead.
    pub seconds: f64,
    /// Overhead of one trial: open, registration, close.
    pub overhead_seconds: f64,
    /// Approximate rate of one rank.
    pub chunks_per_second: f64,
    /// Chunks in the file.
    pub file_chunks: u64,
}

/// The trials of a chunk size.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialPlan {
    /// Best first.
    pub settings: Vec<QueueSetting>,
    /// Time of one trial.
    pub seconds: f64,
    /// Minimum number of chunks in one trial, the same for all settings.
    pub min_chunks: u64,
}

/// Chunk sizes for which a queue is calibrated, ascending. The result for the last one also applies to larger chunks.
#[must_use]
pub fn chunk_sizes(m_part_bytes: u64) -> Vec<u64> {
    let last = CHUNKS[CHUNKS.len() - 1];
    CHUNKS.into_iter().chain((m_part_bytes > last).then_some(m_part_bytes.min(MAX_CHUNK_BYTES))).collect()
}

/// True if chunks of this size are also tried in smaller operations.
#[must_use]
pub fn is_large(chunk_bytes: u64) -> bool {
    chunk_bytes > MAX_SINGLE_OPERATION_BYTES
}

/// Relative share of the time for a chunk size: large chunks need more.
#[must_use]
pub fn weight(chunk_bytes: u64) -> f64 {
    if is_large(chunk_bytes) {
        8.0
    } else {
        1.0
    }
}

/// Memory for the windows of two of the deepest queues.
#[must_use]
pub fn memory_bytes(chunk_bytes: u64) -> u64 {
    2 * u64::from(DEPTHS[DEPTHS.len() - 1]) * chunk_bytes
}

/// Setting for a chunk size that was not calibrated: `default_depth`, or less for large chunks to limit the memory in flight.
#[must_use]
pub fn default_setting(chunk_bytes: u64, default_depth: u32) -> QueueSetting {
    let by_bytes = (IN_FLIGHT_BYTES / chunk_bytes.max(1)).clamp(u64::from(LARGE_DEPTHS[0]), 1 << 16) as u32;
    let depth = default_depth.min(by_bytes).max(1);
    QueueSetting::single_operation(depth, (depth / 4).max(1))
}

/// Settings to try: as many depths as the time allows with some full queues per trial, then several numbers of completions to wait for at
/// each depth; for large chunks fewer depths, then operations. None if the time does not allow two settings.
#[must_use]
pub fn settings(chunk_bytes: u64, means: &SetBudget) -> Option<TrialPlan> {
    let all = if is_large(chunk_bytes) {
        large_chunk_settings(chunk_bytes, means)
    } else {
        small_chunk_settings(chunk_bytes, means)
    };
    all.into_iter().find_map(|settings| {
        let seconds = means.seconds / (TRIALS_PER_SETTING * settings.len()) as f64 - means.overhead_seconds;
        let least_chunks = settings.iter().map(|s| s.min_chunks(chunk_bytes)).max()?;
        let least_seconds = (least_chunks as f64 / means.chunks_per_second).max(MIN_TRIAL_SECONDS);
        (seconds >= least_seconds).then_some(TrialPlan { settings, seconds, min_chunks: least_chunks })
    })
}

/// Sets of settings for chunks that are one operation, best first.
fn small_chunk_settings(chunk_bytes: u64, means: &SetBudget) -> Vec<Vec<QueueSetting>> {
    let fits = |depth: &u32| {
        let setting = QueueSetting::single_operation(*depth, 1);
        setting.in_flight_bytes(chunk_bytes) <= IN_FLIGHT_BYTES && setting.min_chunks(chunk_bytes) <= means.file_chunks
    };
    let depths: Vec<u32> = DEPTHS.into_iter().filter(fits).collect();
    let most_waits = if chunk_bytes < LARGE_CHUNK_BYTES { 3 } else { 2 };
    let counts = (2..=depths.len()).rev().flat_map(|count| (1..=most_waits).rev().map(move |each| (count, each)));
    counts.map(|(count, each)| depths[..count].iter().flat_map(|d| wait_settings(*d, each)).collect()).collect()
}

/// Sets of settings for large chunks, best first.
fn large_chunk_settings(chunk_bytes: u64, means: &SetBudget) -> Vec<Vec<QueueSetting>> {
    let fits = |setting: &QueueSetting| {
        let is_little = *setting == QueueSetting::single_operation(LARGE_DEPTHS[0], 1)
            || setting.in_flight_bytes(chunk_bytes) <= IN_FLIGHT_BYTES;
        is_little && setting.min_chunks(chunk_bytes) <= means.file_chunks
    };
    let whole: Vec<QueueSetting> = LARGE_DEPTHS
        .into_iter()
        .map(|depth| QueueSetting::single_operation(depth, (depth / 4).max(1)))
        .filter(fits)
        .collect();
    let smaller = |(bytes, _): &(u64, u32)| *bytes < chunk_bytes;
    let cut: Vec<QueueSetting> = OPERATIONS.into_iter().filter(smaller).map(QueueSetting::split).filter(fits).collect();
    // With the deepest setting alone, the choice between whole chunks and operations remains.
    let (all, two) = (whole.len(), cut.len().min(2));
    let sets = [(all, cut.len()), (all, two), (all, 1), (1, two), (1, 1)];
    let of_counts = sets.into_iter().filter(|_| !whole.is_empty() && !cut.is_empty());
    of_counts
        .map(|(of_whole, of_cut)| whole.iter().rev().take(of_whole).chain(&cut[..of_cut]).copied().collect())
        .collect()
}

/// A depth with up to `count` numbers of completions to wait for: a quarter of it, one, half of it.
fn wait_settings(depth: u32, count: usize) -> Vec<QueueSetting> {
    let mut waits: Vec<QueueSetting> = Vec::with_capacity(count);
    for wait_for in [depth / 4, 1, depth / 2].into_iter().take(count) {
        let setting = QueueSetting::single_operation(depth, wait_for);
        if !waits.contains(&setting) {
            waits.push(setting);
        }
    }
    waits
}

/// Order of the trials, as indices of `count` settings: shuffled, then reversed each time, so that storage drift favours no setting.
#[must_use]
pub fn order(count: usize, seed: u64) -> Vec<usize> {
    let mut permutation: Vec<usize> = (0..count).collect();
    let mut state = seed | 1;
    for i in (1..count).rev() {
        // xorshift64; the bias of the remainder does not matter here.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        permutation.swap(i, (state % (i as u64 + 1)) as usize);
    }
    let mut all = Vec::with_capacity(count * TRIALS_PER_SETTING);
    for _ in 0..TRIALS_PER_SETTING {
        all.extend(&permutation);
        permutation.reverse();
    }
    all
}

/// Selects among the settings within 3 % of the best rate: whole chunks before operations, then the least memory in flight, then the
/// fastest. The rate of a setting is the median of its trials. Returns `untried` without trials, and where the deepest setting with whole
/// chunks won and `untried` is deeper: a still deeper queue may be faster.
#[must_use]
pub fn choose(chunk_bytes: u64, trials: &[DepthTrial], untried: QueueSetting) -> QueueSetting {
    let mut rates: Vec<(QueueSetting, f64)> = Vec::new();
    for trial in trials {
        let setting = QueueSetting::of(trial);
        if rates.iter().all(|(known, _)| *known != setting) {
            rates.push((setting, median_rate(trials, setting)));
        }
    }
    let best = rates.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
    let deepest = rates.iter().filter(|(s, _)| s.operation_bytes.is_none()).map(|(s, _)| s.depth).max().unwrap_or(0);
    let near = rates.iter().filter(|(_, rate)| *rate >= NEAR_BEST_SHARE * best);
    let chosen = near.min_by(|(a, a_rate), (b, b_rate)| {
        let order = |s: &QueueSetting| (s.operation_bytes.is_some(), s.in_flight_bytes(chunk_bytes));
        order(a).cmp(&order(b)).then(b_rate.total_cmp(a_rate))
    });
    let may_rise = |s: &QueueSetting| s.operation_bytes.is_none() && s.depth == deepest && deepest < untried.depth;
    chosen.map(|(setting, _)| *setting).filter(|setting| !may_rise(setting)).unwrap_or(untried)
}

fn median_rate(trials: &[DepthTrial], setting: QueueSetting) -> f64 {
    let of_setting = trials.iter().filter(|t| QueueSetting::of(t) == setting);
    let mut rates: Vec<f64> = of_setting.map(|t| t.bytes as f64 / t.seconds.max(1e-9)).collect();
    rates.sort_by(f64::total_cmp);
    let middle = rates.len() / 2;
    if rates.len() % 2 == 1 {
        rates[middle]
    } else {
        (rates[middle - 1] + rates[middle]) / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(depth: u32, wait_for: u32, mb_per_second: f64) -> DepthTrial {
        DepthTrial { depth, wait_for, operation_bytes: None, bytes: 1_000_000, seconds: 1.0 / mb_per_second }
    }

    fn means(seconds: f64, chunks_per_second: f64) -> SetBudget {
        SetBudget { seconds, overhead_seconds: 0.0, chunks_per_second, file_chunks: 1 << 20 }
    }

    const SHALLOW: QueueSetting = QueueSetting::single_operation(2, 1);
    const DEFAULT: QueueSetting = QueueSetting::single_operation(32, 8);

    #[test]
    fn the_smallest_depth_near_the_best_wins_with_its_fastest_wait() {
        let trials = [
            trial(4, 1, 50.0),
            trial(8, 1, 90.0),
            trial(8, 2, 97.5),
            trial(8, 4, 98.0),
            trial(16, 4, 100.0),
            trial(32, 8, 99.0),
        ];
        assert_eq!(choose(1024, &trials, DEFAULT), QueueSetting::single_operation(8, 4));
        assert_eq!(choose(1024, &trials, SHALLOW), QueueSetting::single_operation(8, 4));
    }

    #[test]
    fn a_rate_that_still_rises_where_the_trials_end_keeps_a_deeper_default() {
        let trials = [trial(4, 1, 50.0), trial(8, 1, 90.0), trial(8, 2, 80.0)];
        assert_eq!(choose(1024, &trials, DEFAULT), DEFAULT);
        assert_eq!(choose(1024, &trials, SHALLOW), QueueSetting::single_operation(8, 1));
        assert_eq!(
            choose(1024, &[trial(4, 1, 99.0), trial(8, 1, 100.0)], DEFAULT),
            QueueSetting::single_operation(4, 1)
        );
    }

    #[test]
    fn one_disturbed_or_lucky_trial_does_not_choose() {
        let mut trials = Vec::new();
        for (disturbed, lucky) in [(1.0, 900.0), (100.0, 50.0), (100.0, 50.0)] {
            trials.push(trial(32, 8, disturbed));
            trials.push(trial(4, 1, lucky));
        }
        assert_eq!(choose(1024, &trials, DEFAULT), DEFAULT);
        assert_eq!(choose(1024, &trials, SHALLOW), DEFAULT);
    }

    #[test]
    fn without_trials_or_with_empty_ones_something_is_chosen() {
        assert_eq!(choose(1024, &[], DEFAULT), DEFAULT);
        let nothing = DepthTrial { bytes: 0, ..trial(4, 1, 1.0) };
        assert_eq!(choose(1024, &[nothing], SHALLOW), QueueSetting::single_operation(4, 1));
    }

    #[test]
    fn small_chunks_try_all_depths_and_large_ones_stay_within_the_memory() {
        let TrialPlan { settings: tried, seconds, .. } = settings(1024, &means(1.0, 1e5)).unwrap();
        assert_eq!(tried.len(), 14, "{tried:?}");
        assert!((seconds - 1.0 / 42.0).abs() < 1e-12);
        assert!(
            tried.contains(&QueueSetting::single_operation(64, 32))
                && tried.contains(&QueueSetting::single_operation(4, 1))
        );
        let tried = settings(MIB, &means(100.0, 100.0)).unwrap().settings;
        assert_eq!(tried.last().map(|s| s.depth), Some(64));
        assert!(tried.iter().all(|s| s.wait_for < s.depth && s.wait_for > 0));
    }

    #[test]
    fn large_chunks_are_also_tried_in_smaller_operations() {
        let whole = [
            QueueSetting::single_operation(8, 2),
            QueueSetting::single_operation(4, 1),
            QueueSetting::single_operation(2, 1),
        ];
        let cut = [(MIB, 8), (2 * MIB, 4), (2 * MIB, 8), (MIB, 16)].map(QueueSetting::split);
        let tried = |chunk_bytes, means: SetBudget| settings(chunk_bytes, &means).map(|t| (t.settings, t.min_chunks));
        assert_eq!(tried(8 * MIB, means(100.0, 100.0)), Some(([&whole[..], &cut[..]].concat(), 16)));
        // 16 chunks at 100/s take 0.16 s: three times seven settings take 3.36 s, five 2.4 s, four 1.92 s, three 1.44 s, two 0.96 s.
        let shorter = |seconds| tried(8 * MIB, means(seconds, 100.0)).map(|(tried, _)| tried);
        assert_eq!(shorter(2.5), Some([&whole[..], &cut[..2]].concat()));
        assert_eq!(shorter(2.0), Some([&whole[..], &cut[..1]].concat()));
        assert_eq!(shorter(1.5), Some(vec![whole[0], cut[0], cut[1]]));
        assert_eq!(shorter(1.0), Some(vec![whole[0], cut[0]]));
        assert_eq!(shorter(0.9), None);
        // Chunks so large that a queue of them is much memory: at least two at a time, and one queue in a trial.
        let two = SetBudget { file_chunks: 2, ..means(100.0, 10.0) };
        assert_eq!(tried(94 * MIB, two), Some(([&whole[2..], &cut[..]].concat(), 2)));
        assert_eq!(tried(94 * MIB, SetBudget { seconds: 1.3, ..two }), Some((vec![whole[2], cut[0]], 2)));
        assert_eq!(tried(94 * MIB, SetBudget { file_chunks: 1, ..two }), None);
        // 8 chunks of 2 MiB contain operations of 1 MiB at depth 8 twice, but not at depth 16; operations of 2 MiB are the chunk itself.
        let few = SetBudget { file_chunks: 8, ..means(100.0, 100.0) };
        assert_eq!(tried(2 * MIB, few), Some(([&whole[1..], &cut[..1]].concat(), 8)));
        // Operations of 2 MiB leave a shorter one of a chunk of 3 MiB.
        let (odd, _) = tried(3 * MIB, means(100.0, 100.0)).unwrap();
        assert!(odd.ends_with(&cut), "{odd:?}");
        let (small, _) = tried(MIB, means(100.0, 1000.0)).unwrap();
        assert!(small.iter().all(|s| s.operation_bytes.is_none()), "a chunk is one operation: {small:?}");
    }

    #[test]
    fn operations_are_chosen_by_their_rate() {
        let cut = |bytes, rate| DepthTrial { operation_bytes: Some(bytes), ..trial(8, 2, rate) };
        let chosen = |whole, of_one, of_two| {
            let trials = [trial(2, 1, 80.0), trial(8, 2, whole), cut(MIB, of_one), cut(2 * MIB, of_two)];
            choose(8 * MIB, &trials, QueueSetting::single_operation(8, 2))
        };
        assert_eq!(chosen(100.0, 120.0, 110.0), QueueSetting::split((MIB, 8)));
        assert_eq!(chosen(100.0, 110.0, 120.0), QueueSetting::split((2 * MIB, 8)));
        assert_eq!(chosen(100.0, 118.0, 120.0), QueueSetting::split((MIB, 8)), "as fast with less memory in flight");
        assert_eq!(chosen(100.0, 102.0, 102.0), QueueSetting::single_operation(8, 2), "as fast");
        // With equal memory in flight in larger operations: the faster one.
        let larger = DepthTrial { operation_bytes: Some(2 * MIB), ..trial(4, 1, 119.0) };
        let both = [trial(8, 2, 100.0), cut(MIB, 118.0), larger];
        assert_eq!(choose(8 * MIB, &both, QueueSetting::single_operation(8, 2)), QueueSetting::split((2 * MIB, 4)));
        assert_eq!(chosen(100.0, 90.0, 90.0), QueueSetting::single_operation(8, 2));
        assert_eq!(chosen(50.0, 60.0, 50.0), QueueSetting::single_operation(2, 1));
        assert_eq!(
            choose(8 * MIB, &[trial(2, 1, 80.0), cut(MIB, 90.0)], QueueSetting::single_operation(8, 2)),
            QueueSetting::split((MIB, 8)),
            "a deeper default does not affect operations"
        );
    }

    #[test]
    fn short_times_and_small_files_allow_fewer_depths_and_then_none() {
        // 1000 chunks/s: a trial of 2 x 64 takes 128 ms, of 2 x 8 it takes 16 ms.
        let deepest =
            |seconds| settings(MIB, &means(seconds, 1000.0)).map(|t| t.settings.iter().map(|s| s.depth).max());
        assert_eq!(deepest(10.0), Some(Some(64)));
        assert_eq!(deepest(0.2), Some(Some(8)));
        assert_eq!(deepest(0.05), None);
        let tried = settings(1024, &means(0.04, 1e6)).unwrap().settings;
        assert_eq!(tried.len(), 5, "all depths before several numbers to wait for: {tried:?}");
        let small = SetBudget { file_chunks: 40, ..means(10.0, 1000.0) };
        assert_eq!(settings(MIB, &small).unwrap().settings.iter().map(|s| s.depth).max(), Some(16));
        let opening = SetBudget { overhead_seconds: 2.0, ..means(10.0, 1000.0) };
        assert_eq!(settings(MIB, &opening), None);
        assert_eq!(settings(1024, &means(0.01, 1e9)), None, "below 2 ms for each trial");
        assert_eq!(settings(1024, &means(1.0, 0.0)), None, "nothing moves");
    }

    #[test]
    fn each_sequence_has_every_setting_in_reverse_order() {
        for count in [2, 3, 14] {
            let all = order(count, 42);
            assert_eq!(all.len(), count * TRIALS_PER_SETTING);
            for sequence in all.chunks(count) {
                let mut sorted = sequence.to_vec();
                sorted.sort_unstable();
                assert_eq!(sorted, (0..count).collect::<Vec<_>>());
            }
            let back: Vec<usize> = all[count..2 * count].iter().rev().copied().collect();
            assert_eq!(all[..count], back);
        }
        assert_ne!(order(14, 1), order(14, 3));
    }

    #[test]
    fn untried_sizes_keep_the_default_within_the_memory_limit() {
        assert_eq!(default_setting(1024, 32), QueueSetting::single_operation(32, 8));
        assert_eq!(default_setting(8 * MIB, 32), QueueSetting::single_operation(8, 2));
        assert_eq!(default_setting(94 * MIB, 32), QueueSetting::single_operation(2, 1));
        assert_eq!(default_setting(1024, 1), QueueSetting::single_operation(1, 1));
    }

    #[test]
    fn chunk_sizes_are_those_of_the_patterns() {
        assert_eq!(chunk_sizes(2 * MIB), [1024, 32 * 1024, MIB, 2 * MIB]);
        assert_eq!(chunk_sizes(MIB), [1024, 32 * 1024, MIB]);
        assert_eq!(chunk_sizes(2048 * MIB), [1024, 32 * 1024, MIB, 128 * MIB], "at most half the file");
    }
}
