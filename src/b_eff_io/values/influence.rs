//! By how much a value changes if one cell is faster: found by playing the definition again with that cell faster.
//!
//! A cell that time ended keeps its time and moves more bytes. One that a count ended keeps its bytes and takes less time; if the count
//! came from another cell (rewrites and reads from the first write, segments from types 0 to 2), it follows that one.

use super::averages::{access_average, counted, release_1, release_2_1, OfTypes};
use crate::b_eff_io::config::Release;
use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::plan::patterns::number_at;
use crate::frame::records::Access;

/// Step of the play; small enough to be a slope, large enough for the sums.
const FASTER: f64 = 0.01;

/// A pattern with one access method, or the opening and closing of the files of a type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Part {
    pub access: Access,
    pub pattern_type: PatternType,
    /// None: opening and closing.
    pub pattern: Option<u8>,
    pub bytes: f64,
    pub seconds: f64,
    /// Time of the definition; 0: none.
    pub scheduled_seconds: f64,
    /// Time ended it.
    pub is_timed: bool,
    pub calls: u64,
    /// Chunks in a call.
    pub chunks: u64,
    /// Its count is that of another part; None: it is its own.
    pub counts_from: Option<usize>,
}

/// What a run with these parts is worth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Worth {
    /// Of each access method and type; None: nothing moved.
    pub types: [OfTypes; 3],
    /// By the release; None: something is missing.
    pub value: Option<f64>,
}

/// Tells each part where its count came from.
pub(super) fn link(parts: &mut [Part]) {
    let find = |parts: &[Part], access: Access, pattern: u8| {
        parts.iter().position(|p| p.access == access && p.pattern == Some(pattern))
    };
    for at in 0..parts.len() {
        let part = parts[at];
        let Some(pattern) = part.pattern.filter(|_| !part.is_timed) else { continue };
        parts[at].counts_from = match part.access {
            Access::Write if !part.pattern_type.has_segments() => None,
            Access::Write => reference(parts, &part),
            _ => find(parts, Access::Write, pattern).filter(|from| parts[*from].calls == part.calls),
        };
    }
}

/// The part of a type without segments whose count bounds that of a segment.
fn reference(parts: &[Part], part: &Part) -> Option<usize> {
    let position = (0..9).find(|p| number_at(part.pattern_type, *p) == part.pattern)?;
    let wanted = |t: PatternType| {
        let number = number_at(t, position)?;
        let from = parts.iter().position(|p| p.access == Access::Write && p.pattern == Some(number))?;
        Some((t.segment_calls(parts[from].calls, parts[from].chunks)?, from))
    };
    let (calls, from) = PatternType::ALL.into_iter().filter_map(wanted).min_by_key(|(calls, _)| *calls)?;
    // Fewer calls: space has bounded it.
    (calls == part.calls).then_some(from)
}

/// Plays the definition with part `faster` faster by [`FASTER`]; None: as it was.
pub(super) fn play(parts: &[Part], release: Release, faster: Option<usize>) -> Worth {
    let mut calls = vec![1.0; parts.len()];
    let (mut bytes, mut seconds) = ([[0.0; PatternType::COUNT]; 3], [[0.0; PatternType::COUNT]; 3]);
    let mut all = (0.0, 0.0);
    for (at, part) in parts.iter().enumerate() {
        let rate = if faster == Some(at) { 1.0 + FASTER } else { 1.0 };
        calls[at] = if part.is_timed { rate } else { part.counts_from.map_or(1.0, |from| calls[from]) };
        let (moved, took) = (part.bytes * calls[at], part.seconds * calls[at] / rate);
        let (a, t) = (part.access as usize, part.pattern_type.index());
        bytes[a][t] += moved;
        seconds[a][t] += took;
        let (moved, took) = counted(moved as u64, took, part.scheduled_seconds);
        all = (all.0 + moved, all.1 + took);
    }
    let types: [OfTypes; 3] = std::array::from_fn(|a| {
        std::array::from_fn(|t| (bytes[a][t] > 0.0 && seconds[a][t] > 0.0).then(|| bytes[a][t] / seconds[a][t] / 1e6))
    });
    let means = types.map(access_average);
    let value = match release {
        Release::R0_5 => means.iter().all(Option::is_some).then(|| all.0 / all.1 / 1e6),
        Release::R1 => release_1(means[0], means[1], means[2]),
        Release::R2_1 => release_2_1(types[0], types[1], means[2]),
    };
    Worth { types, value: value.filter(|v| v.is_finite() && *v > 0.0) }
}

/// For each part the change of the logarithm of what `of` takes out, by that of its rate.
pub(super) fn weights(parts: &[Part], release: Release, of: impl Fn(&Worth) -> Option<f64>) -> Option<Vec<f64>> {
    let before = of(&play(parts, release, None))?;
    let slope = |at| Some((of(&play(parts, release, Some(at)))? / before).ln() / FASTER.ln_1p());
    (0..parts.len()).map(slope).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(access: Access, pattern: u8, bytes: f64, seconds: f64, is_timed: bool, calls: u64) -> Part {
        let pattern_type = crate::b_eff_io::plan::patterns::type_of(pattern);
        Part {
            access,
            pattern_type,
            pattern: Some(pattern),
            bytes,
            seconds,
            scheduled_seconds: 0.0,
            is_timed,
            calls,
            chunks: 1,
            counts_from: None,
        }
    }

    fn of_type(parts: &[Part], access: Access, t: usize) -> Vec<f64> {
        weights(parts, Release::R1, |w| w.types[access as usize][t]).unwrap()
    }

    fn near(found: &[f64], expected: &[f64]) {
        let is_near = |(a, b): (&f64, &f64)| (a - b).abs() < 0.01;
        assert!(found.len() == expected.len() && found.iter().zip(expected).all(is_near), "{found:?} {expected:?}");
    }

    #[test]
    fn time_weighs_by_bytes_and_counts_by_seconds() {
        let timed = [part(Access::Write, 1, 9e9, 1.0, true, 9), part(Access::Write, 4, 1e9, 1.0, true, 1)];
        near(&of_type(&timed, Access::Write, 0), &[0.9, 0.1]);
        let counted = timed.map(|p| Part { is_timed: false, ..p });
        near(&of_type(&counted, Access::Write, 0), &[0.5, 0.5]);
    }

    /// A faster first write of large chunks gives the read more large chunks.
    #[test]
    fn counts_follow_the_first_write() {
        let mut parts = [
            part(Access::Write, 1, 9e9, 1.0, true, 9),
            part(Access::Write, 4, 1e9, 1.0, true, 5),
            part(Access::Read, 1, 9e9, 1.0, false, 9),
            part(Access::Read, 4, 1e9, 3.0, false, 5),
        ];
        link(&mut parts);
        assert_eq!(parts.map(|p| p.counts_from), [None, None, Some(0), Some(1)]);
        // Own times by seconds; those of the first writes shift the mixture of bytes against that of times.
        near(&of_type(&parts, Access::Read, 0), &[0.9 - 0.25, 0.1 - 0.75, 0.25, 0.75]);
    }

    #[test]
    fn segments_take_the_least_count() {
        let mut parts = [
            part(Access::Write, 4, 1e9, 1.0, true, 20),
            part(Access::Write, 12, 1e9, 1.0, true, 3),
            part(Access::Write, 20, 1e9, 1.0, true, 25),
            part(Access::Write, 28, 1e9, 1.0, false, 25),
            part(Access::Write, 37, 1e9, 1.0, false, 11),
        ];
        link(&mut parts);
        assert_eq!(
            parts[3].counts_from, None,
            "20 of type 0 were the least: space has not bounded it, it is not theirs"
        );
        parts[0].chunks = 2;
        parts[3].calls = 25;
        link(&mut parts);
        assert_eq!(parts[3].counts_from, Some(2));
        assert_eq!(parts[4].counts_from, None, "fewer: space");
    }

    /// The value is of the first degree in all rates together, whatever ends the patterns.
    #[test]
    fn all_together_weigh_one() {
        let mut parts = Vec::new();
        for access in Access::ALL {
            for pattern in [1, 2, 10, 18, 26, 35] {
                let is_timed = access == Access::Write && pattern < 25;
                let bytes = 1e9 * f64::from(pattern) * (1.0 + access as u8 as f64);
                parts.push(part(access, pattern, bytes, 1.0 + f64::from(pattern % 3), is_timed, 7));
            }
        }
        link(&mut parts);
        for release in [Release::R1, Release::R2_1, Release::R0_5] {
            let weights = weights(&parts, release, |w| w.value).unwrap();
            let own: f64 = weights.iter().sum();
            assert!((own - 1.0).abs() < 0.02, "{release:?}: {own} {weights:?}");
        }
    }
}
