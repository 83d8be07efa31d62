//! Size of a trial of first writes, and the choice from the results: pure arithmetic on agreed numbers.

use crate::b_eff_io::records::{FirstWriteMode, FirstWritePair};
use crate::frame::units::{format_size, MIB};

/// Pairs of trials; even, so that each mode is first equally often. With equal modes, buffered writes are faster in all four pairs by
/// chance in one run of sixteen, and must still exceed the minimum speedup.
pub const PAIRS: usize = 4;
/// Minimum speedup of buffered writes. A trial of some MiB predicts a pattern of seconds no better, and direct I/O is the default.
const MIN_SPEEDUP: f64 = 1.1;
/// Minimum number of domains in a trial: fewer measure the beginning of a file.
const MIN_DOMAINS: u64 = 4;
/// Minimum bytes of a rank: fewer measure a sync without data.
const MIN_BYTES: u64 = 4 * MIB;
const MAX_BYTES: u64 = 256 * MIB;
/// Maximum time of a trial; longer ones give no more information.
const MAX_TRIAL_SECONDS: f64 = 0.5;
/// Chunks are whole pages, so that all of them can be direct.
const PAGE_BYTES: u64 = 4096;

/// Bytes of one write in a trial for domains of this size.
#[must_use]
pub fn chunk_bytes(domain_bytes: u64) -> u64 {
    domain_bytes.max(1).next_multiple_of(PAGE_BYTES)
}

/// Minimum and maximum number of chunks of one rank in one trial; `space_bytes` is the limit for its file.
///
/// # Errors
/// Why no trial is possible.
pub fn chunks_of_rank(chunk_bytes: u64, space_bytes: Option<u64>) -> Result<(u64, u64), String> {
    let least = MIN_DOMAINS.max(MIN_BYTES.div_ceil(chunk_bytes));
    let most = least.max(MAX_BYTES / chunk_bytes);
    let by_space = space_bytes.map_or(most, |space| space / chunk_bytes);
    if by_space < least {
        let (needed, there) = (least.saturating_mul(chunk_bytes), space_bytes.unwrap_or(0));
        let (needed, there) = (format_size(needed), format_size(there));
        return Err(format!("a file needs {needed} on each rank, but the space allows {there}"));
    }
    Ok((least, most.min(by_space)))
}

/// Chunks of one rank in each trial, if a trial of `least` takes `pilot_seconds` with all overhead, and `seconds` remain for all pairs.
/// None if not even `least` fit.
#[must_use]
pub fn chunks(least: u64, most: u64, pilot_seconds: f64, seconds: f64) -> Option<u64> {
    let each = seconds / (2 * PAIRS) as f64;
    if pilot_seconds > each {
        return None;
    }
    let times = each.min(MAX_TRIAL_SECONDS) / pilot_seconds.max(1e-6);
    Some(((least as f64 * times) as u64).clamp(least, most))
}

/// Order of the trials of a pair: storage drift favours neither mode.
#[must_use]
pub fn order(pair: usize) -> [FirstWriteMode; 2] {
    let [first, second] = [FirstWriteMode::Direct, FirstWriteMode::Buffered];
    if pair.is_multiple_of(2) {
        [first, second]
    } else {
        [second, first]
    }
}

/// Result of the trials.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FirstWriteChoice {
    /// Mode of first writes.
    pub way: FirstWriteMode,
    /// Median of the direct times divided by that of the buffered ones; None without trials.
    pub ratio: Option<f64>,
}

/// Buffered only if faster in every pair and by the minimum speedup, which exceeds chance and effects of the size. Direct without trials.
#[must_use]
pub fn choose(pairs: &[FirstWritePair]) -> FirstWriteChoice {
    let direct = median(pairs.iter().map(|p| p.direct_seconds).collect());
    let buffered = median(pairs.iter().map(|p| p.buffered_seconds).collect());
    let ratio = direct.zip(buffered).map(|(direct, buffered)| direct / buffered.max(1e-9));
    let always = pairs.iter().all(|p| p.buffered_seconds < p.direct_seconds);
    let is_buffered = always && ratio.is_some_and(|ratio| ratio >= MIN_SPEEDUP);
    FirstWriteChoice { way: if is_buffered { FirstWriteMode::Buffered } else { FirstWriteMode::Direct }, ratio }
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

    fn of(pairs: &[(f64, f64)]) -> FirstWriteChoice {
        let pair =
            |&(direct_seconds, buffered_seconds): &(f64, f64)| FirstWritePair { direct_seconds, buffered_seconds };
        choose(&pairs.iter().map(pair).collect::<Vec<_>>())
    }

    #[test]
    fn buffered_if_it_was_faster_every_time_and_clearly() {
        let choice = of(&[(0.16, 0.10), (0.17, 0.11), (0.15, 0.10), (0.16, 0.09)]);
        assert_eq!(choice.way, FirstWriteMode::Buffered);
        assert!(choice.ratio.is_some_and(|ratio| (ratio - 1.6).abs() < 1e-9), "{choice:?}");
        assert_eq!(of(&[(1.1, 1.0)]).way, FirstWriteMode::Buffered, "exactly the minimum");
    }

    #[test]
    fn direct_if_it_was_faster_once() {
        let choice = of(&[(0.30, 0.10), (0.30, 0.10), (0.10, 0.11), (0.30, 0.10)]);
        assert_eq!(choice.way, FirstWriteMode::Direct);
        assert_eq!(choice.ratio.map(|ratio| ratio.round()), Some(3.0), "the median alone favours buffered writes");
        assert_eq!(of(&[(0.3, 0.1), (0.2, 0.2)]).way, FirstWriteMode::Direct, "equal is not faster");
    }

    #[test]
    fn direct_if_it_was_slower_by_little() {
        assert_eq!(of(&[(1.09, 1.0), (1.05, 1.0), (1.09, 1.0), (1.5, 1.0)]).way, FirstWriteMode::Direct);
        assert_eq!(of(&[(1.0, 2.0), (1.0, 2.0)]), FirstWriteChoice { way: FirstWriteMode::Direct, ratio: Some(0.5) });
        assert_eq!(of(&[]), FirstWriteChoice { way: FirstWriteMode::Direct, ratio: None });
        // A clock that does not advance.
        assert_eq!(of(&[(0.0, 0.0); PAIRS]).way, FirstWriteMode::Direct);
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
        assert_eq!(each(0.02, 0.8), Some(20), "0.1 s in each trial");
        assert_eq!(each(0.1, 0.8), Some(4));
        assert_eq!(each(0.101, 0.8), None);
        assert_eq!(each(0.02, -1.0), None, "the pilot used all the time");
        assert_eq!(each(0.1, 800.0), Some(20), "limited by the time of a trial");
        assert_eq!(each(0.001, 800.0), Some(64), "limited by the bytes");
        assert_eq!(each(0.0, 0.8), Some(64));
    }

    #[test]
    fn each_way_begins_equally_often() {
        let first = (0..PAIRS).filter(|pair| order(*pair)[0] == FirstWriteMode::Direct).count();
        assert_eq!(2 * first, PAIRS);
        assert!((0..PAIRS).all(|pair| order(pair)[0] != order(pair)[1]));
    }

    #[test]
    fn the_reason_has_the_factor() {
        assert!(reason(1.625).starts_with("first writes with their sync were 1.6 times as fast"), "{}", reason(1.625));
    }
}
