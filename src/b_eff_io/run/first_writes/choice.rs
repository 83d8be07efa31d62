//! How much a trial of first writes moves, and what is chosen from the trials: pure arithmetic on agreed numbers.

use crate::b_eff_io::records::{FirstWritePair, FirstWriteWay};
use crate::frame::units::{format_size, MIB};

/// Pairs of trials. An even number, so that each way is equally often the first. Were both ways equal, one run of sixteen would
/// see buffered writes ahead in all four by chance, and then `LEAST_GAIN` is still to be passed.
pub const PAIRS: usize = 4;
/// Buffered writes must be so many times as fast. What a trial of some MiB tells is no closer than that to a pattern of
/// seconds, and direct I/O is what was asked for first.
const LEAST_GAIN: f64 = 1.1;
/// Domains of a trial at least: with fewer it shows how a file begins.
const LEAST_DOMAINS: u64 = 4;
/// Bytes of a rank at least: with less it shows how long a sync takes that has nothing to do.
const LEAST_BYTES: u64 = 4 * MIB;
/// Bytes of a rank at most.
const MOST_BYTES: u64 = 256 * MIB;
/// Longer trials tell no more.
const MOST_TRIAL_SECONDS: f64 = 0.5;
/// Chunks are whole pages, so that all of them can be direct.
const PAGE_BYTES: u64 = 4096;

/// One write of a trial for domains of this size.
#[must_use]
pub fn chunk_bytes(domain_bytes: u64) -> u64 {
    domain_bytes.max(1).next_multiple_of(PAGE_BYTES)
}

/// Chunks of one rank in one trial, at least and at most; `space_bytes` is what its file may take.
///
/// # Errors
/// Why there can be no trial.
pub fn chunks_of_rank(chunk_bytes: u64, space_bytes: Option<u64>) -> Result<(u64, u64), String> {
    let least = LEAST_DOMAINS.max(LEAST_BYTES.div_ceil(chunk_bytes));
    let most = least.max(MOST_BYTES / chunk_bytes);
    let by_space = space_bytes.map_or(most, |space| space / chunk_bytes);
    if by_space < least {
        let (needed, there) = (least.saturating_mul(chunk_bytes), space_bytes.unwrap_or(0));
        let (needed, there) = (format_size(needed), format_size(there));
        return Err(format!("a file needs {needed} on each rank, and the space has {there} for it"));
    }
    Ok((least, most.min(by_space)))
}

/// Chunks of one rank in each trial, if a trial of `least` of them takes `pilot_seconds` with all that is around it, and `seconds`
/// are left for all pairs. None: not even the least fits.
#[must_use]
pub fn chunks(least: u64, most: u64, pilot_seconds: f64, seconds: f64) -> Option<u64> {
    let each = seconds / (2 * PAIRS) as f64;
    if pilot_seconds > each {
        return None;
    }
    let times = each.min(MOST_TRIAL_SECONDS) / pilot_seconds.max(1e-6);
    Some(((least as f64 * times) as u64).clamp(least, most))
}

/// The trials of a pair in order: storage that becomes faster or slower meanwhile favours no way.
#[must_use]
pub fn order(pair: usize) -> [FirstWriteWay; 2] {
    let [first, second] = [FirstWriteWay::Direct, FirstWriteWay::Buffered];
    if pair.is_multiple_of(2) {
        [first, second]
    } else {
        [second, first]
    }
}

/// What follows from the trials.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// How first writes go.
    pub way: FirstWriteWay,
    /// Median of the direct times over that of the buffered ones; None without trials.
    pub ratio: Option<f64>,
}

/// Buffered only if that was faster in every pair and by more than what may be chance or a matter of the size. Direct without trials.
#[must_use]
pub fn choose(pairs: &[FirstWritePair]) -> Choice {
    let direct = median(pairs.iter().map(|p| p.direct_seconds).collect());
    let buffered = median(pairs.iter().map(|p| p.buffered_seconds).collect());
    let ratio = direct.zip(buffered).map(|(direct, buffered)| direct / buffered.max(1e-9));
    let always = pairs.iter().all(|p| p.buffered_seconds < p.direct_seconds);
    let is_buffered = always && ratio.is_some_and(|ratio| ratio >= LEAST_GAIN);
    Choice { way: if is_buffered { FirstWriteWay::Buffered } else { FirstWriteWay::Direct }, ratio }
}

/// Why first writes are buffered, for the strategy of their patterns.
#[must_use]
pub fn reason(ratio: f64) -> String {
    format!(
        "first writes with their sync were {ratio:.1} times as fast through the page cache in a trial before the run"
    )
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    Some(if values.len() % 2 == 1 { upper } else { (values[middle - 1] + upper) / 2.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(f64, f64)]) -> Choice {
        let pair =
            |&(direct_seconds, buffered_seconds): &(f64, f64)| FirstWritePair { direct_seconds, buffered_seconds };
        choose(&pairs.iter().map(pair).collect::<Vec<_>>())
    }

    #[test]
    fn buffered_if_it_was_faster_every_time_and_clearly() {
        let choice = of(&[(0.16, 0.10), (0.17, 0.11), (0.15, 0.10), (0.16, 0.09)]);
        assert_eq!(choice.way, FirstWriteWay::Buffered);
        assert!(choice.ratio.is_some_and(|ratio| (ratio - 1.6).abs() < 1e-9), "{choice:?}");
        assert_eq!(of(&[(1.1, 1.0)]).way, FirstWriteWay::Buffered, "just so");
    }

    #[test]
    fn direct_if_it_was_faster_once() {
        let choice = of(&[(0.30, 0.10), (0.30, 0.10), (0.10, 0.11), (0.30, 0.10)]);
        assert_eq!(choice.way, FirstWriteWay::Direct);
        assert_eq!(choice.ratio.map(|ratio| ratio.round()), Some(3.0), "the median alone would say otherwise");
        assert_eq!(of(&[(0.3, 0.1), (0.2, 0.2)]).way, FirstWriteWay::Direct, "no faster is not faster");
    }

    #[test]
    fn direct_if_it_was_slower_by_little() {
        assert_eq!(of(&[(1.09, 1.0), (1.05, 1.0), (1.09, 1.0), (1.5, 1.0)]).way, FirstWriteWay::Direct);
        assert_eq!(of(&[(1.0, 2.0), (1.0, 2.0)]), Choice { way: FirstWriteWay::Direct, ratio: Some(0.5) });
        assert_eq!(of(&[]), Choice { way: FirstWriteWay::Direct, ratio: None });
        // A clock that stands still.
        assert_eq!(of(&[(0.0, 0.0); PAIRS]).way, FirstWriteWay::Direct);
    }

    #[test]
    fn a_trial_has_some_domains_and_fits_the_space() {
        assert_eq!(chunks_of_rank(4 * MIB, None), Ok((4, 64)));
        assert_eq!(chunks_of_rank(4 * MIB, Some(20 * MIB)), Ok((4, 5)));
        assert_eq!(chunks_of_rank(12288, None), Ok((342, 21845)));
        assert_eq!(chunks_of_rank(512 * MIB, None), Ok((4, 4)));
        let refused = chunks_of_rank(4 * MIB, Some(15 * MIB)).unwrap_err();
        assert!(refused.contains("16 MiB") && refused.contains("15 MiB"), "{refused}");
        assert_eq!([1, 4096, 100_000, 4 << 20].map(chunk_bytes), [4096, 4096, 102_400, 4 << 20]);
    }

    #[test]
    fn a_trial_is_as_long_as_the_time_allows() {
        let each = |pilot, seconds| chunks(4, 64, pilot, seconds);
        assert_eq!(each(0.02, 0.8), Some(20), "0.1 s of it in each trial");
        assert_eq!(each(0.1, 0.8), Some(4));
        assert_eq!(each(0.101, 0.8), None);
        assert_eq!(each(0.02, -1.0), None, "the pilot has used it up");
        assert_eq!(each(0.1, 800.0), Some(20), "no longer than it needs");
        assert_eq!(each(0.001, 800.0), Some(64), "no more bytes than there may be");
        assert_eq!(each(0.0, 0.8), Some(64));
    }

    #[test]
    fn each_way_begins_equally_often() {
        let first = (0..PAIRS).filter(|pair| order(*pair)[0] == FirstWriteWay::Direct).count();
        assert_eq!(2 * first, PAIRS);
        assert!((0..PAIRS).all(|pair| order(pair)[0] != order(pair)[1]));
    }

    #[test]
    fn the_reason_tells_how_much_faster() {
        assert!(reason(1.625).starts_with("first writes with their sync were 1.6 times as fast"), "{}", reason(1.625));
    }
}
