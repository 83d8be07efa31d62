//! Sensitivity of a value to the rate of each component, by evaluating the definition with that component faster.
//!
//! A component that time ended keeps its time and moves more bytes. One that a count ended keeps its bytes and takes less time; if the
//! count derives from another component (rewrites and reads from the first write, segments from types 0 to 2), it follows that one.

use super::averages::{access_average, release_0_5_contribution, release_1, release_2_1, RatesByType};
use crate::b_eff_io::config::Release;
use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::plan::patterns::number_at;
use crate::frame::records::AccessMethod;

/// Relative step of the rate: small enough for a derivative, large enough for the precision of the sums.
const RATE_STEP: f64 = 0.01;

/// A pattern with one access method, or the opening and closing of the files of a type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ValueComponent {
    pub access: AccessMethod,
    pub pattern_type: PatternType,
    /// None: opening and closing.
    pub pattern: Option<u8>,
    pub bytes: f64,
    pub seconds: f64,
    /// Scheduled time; 0: none.
    pub scheduled_seconds: f64,
    /// Ended by time.
    pub is_timed: bool,
    pub calls: u64,
    /// Chunks in a call.
    pub chunks: u64,
    /// Index of the component that determines its count; None: its own.
    pub counts_from: Option<usize>,
}

/// Values of a run with these components.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ModelledValues {
    /// By access method and type; None: nothing moved.
    pub types: [RatesByType; 3],
    /// Value by the release; None: a component is missing.
    pub value: Option<f64>,
}

pub(super) fn link_counts(parts: &mut [ValueComponent]) {
    let find = |parts: &[ValueComponent], access: AccessMethod, pattern: u8| {
        parts.iter().position(|p| p.access == access && p.pattern == Some(pattern))
    };
    for at in 0..parts.len() {
        let part = parts[at];
        let Some(pattern) = part.pattern.filter(|_| !part.is_timed) else { continue };
        parts[at].counts_from = match part.access {
            AccessMethod::Write if !part.pattern_type.has_segments() => None,
            AccessMethod::Write => segment_reference(parts, &part),
            _ => find(parts, AccessMethod::Write, pattern).filter(|from| parts[*from].calls == part.calls),
        };
    }
}

/// Component of a type without segments that bounds the count of a segment.
fn segment_reference(parts: &[ValueComponent], part: &ValueComponent) -> Option<usize> {
    let position = (0..9).find(|p| number_at(part.pattern_type, *p) == part.pattern)?;
    let wanted = |t: PatternType| {
        let number = number_at(t, position)?;
        let from = parts.iter().position(|p| p.access == AccessMethod::Write && p.pattern == Some(number))?;
        Some((t.segment_calls(parts[from].calls, parts[from].chunks)?, from))
    };
    let (calls, from) = PatternType::ALL.into_iter().filter_map(wanted).min_by_key(|(calls, _)| *calls)?;
    // Fewer calls: bounded by space.
    (calls == part.calls).then_some(from)
}

/// Evaluates the definition with component `faster` faster by [`RATE_STEP`]; None: unchanged.
pub(super) fn evaluate(parts: &[ValueComponent], release: Release, faster: Option<usize>) -> ModelledValues {
    let mut calls = vec![1.0; parts.len()];
    let (mut bytes, mut seconds) = ([[0.0; PatternType::COUNT]; 3], [[0.0; PatternType::COUNT]; 3]);
    let mut all = (0.0, 0.0);
    for (at, part) in parts.iter().enumerate() {
        let rate = if faster == Some(at) { 1.0 + RATE_STEP } else { 1.0 };
        calls[at] = if part.is_timed { rate } else { part.counts_from.map_or(1.0, |from| calls[from]) };
        let (moved, took) = (part.bytes * calls[at], part.seconds * calls[at] / rate);
        let (a, t) = (part.access as usize, part.pattern_type.index());
        bytes[a][t] += moved;
        seconds[a][t] += took;
        let (moved, took) = release_0_5_contribution(moved as u64, took, part.scheduled_seconds);
        all = (all.0 + moved, all.1 + took);
    }
    let types: [RatesByType; 3] = std::array::from_fn(|a| {
        std::array::from_fn(|t| (bytes[a][t] > 0.0 && seconds[a][t] > 0.0).then(|| bytes[a][t] / seconds[a][t] / 1e6))
    });
    let means = types.map(access_average);
    let value = match release {
        Release::R0_5 => means.iter().all(Option::is_some).then(|| all.0 / all.1 / 1e6),
        Release::R1 => release_1(means[0], means[1], means[2]),
        Release::R2_1 => release_2_1(types[0], types[1], means[2]),
    };
    ModelledValues { types, value: value.filter(|v| v.is_finite() && *v > 0.0) }
}

/// Returns for each component the derivative of the logarithm of the value selected by `of` with respect to that of its rate.
pub(super) fn weights(
    parts: &[ValueComponent],
    release: Release,
    of: impl Fn(&ModelledValues) -> Option<f64>,
) -> Option<Vec<f64>> {
    let before = of(&evaluate(parts, release, None))?;
    let slope = |at| Some((of(&evaluate(parts, release, Some(at)))? / before).ln() / RATE_STEP.ln_1p());
    (0..parts.len()).map(slope).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(access: AccessMethod, pattern: u8, bytes: f64, seconds: f64, is_timed: bool, calls: u64) -> ValueComponent {
        let pattern_type = crate::b_eff_io::plan::patterns::type_of(pattern);
        ValueComponent {
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

    fn of_type(parts: &[ValueComponent], access: AccessMethod, t: usize) -> Vec<f64> {
        weights(parts, Release::R1, |w| w.types[access as usize][t]).unwrap()
    }

    fn near(found: &[f64], expected: &[f64]) {
        let is_near = |(a, b): (&f64, &f64)| (a - b).abs() < 0.01;
        assert!(found.len() == expected.len() && found.iter().zip(expected).all(is_near), "{found:?} {expected:?}");
    }

    #[test]
    fn time_weighs_by_bytes_and_counts_by_seconds() {
        let timed = [part(AccessMethod::Write, 1, 9e9, 1.0, true, 9), part(AccessMethod::Write, 4, 1e9, 1.0, true, 1)];
        near(&of_type(&timed, AccessMethod::Write, 0), &[0.9, 0.1]);
        let counted = timed.map(|p| ValueComponent { is_timed: false, ..p });
        near(&of_type(&counted, AccessMethod::Write, 0), &[0.5, 0.5]);
    }

    /// A faster first write of large chunks increases the number of large chunks read.
    #[test]
    fn counts_follow_the_first_write() {
        let mut parts = [
            part(AccessMethod::Write, 1, 9e9, 1.0, true, 9),
            part(AccessMethod::Write, 4, 1e9, 1.0, true, 5),
            part(AccessMethod::Read, 1, 9e9, 1.0, false, 9),
            part(AccessMethod::Read, 4, 1e9, 3.0, false, 5),
        ];
        link_counts(&mut parts);
        assert_eq!(parts.map(|p| p.counts_from), [None, None, Some(0), Some(1)]);
        // Own weights by seconds; first writes shift the mixture of bytes against that of times.
        near(&of_type(&parts, AccessMethod::Read, 0), &[0.9 - 0.25, 0.1 - 0.75, 0.25, 0.75]);
    }

    #[test]
    fn segments_take_the_least_count() {
        let mut parts = [
            part(AccessMethod::Write, 4, 1e9, 1.0, true, 20),
            part(AccessMethod::Write, 12, 1e9, 1.0, true, 3),
            part(AccessMethod::Write, 20, 1e9, 1.0, true, 25),
            part(AccessMethod::Write, 28, 1e9, 1.0, false, 25),
            part(AccessMethod::Write, 37, 1e9, 1.0, false, 11),
        ];
        link_counts(&mut parts);
        assert_eq!(
            parts[3].counts_from, None,
            "the count of 20 of type 0 is the least: neither space nor its count bounds it"
        );
        parts[0].chunks = 2;
        parts[3].calls = 25;
        link_counts(&mut parts);
        assert_eq!(parts[3].counts_from, Some(2));
        assert_eq!(parts[4].counts_from, None, "fewer: space");
    }

    /// The value is homogeneous of degree one in all rates, however the patterns end.
    #[test]
    fn all_together_weigh_one() {
        let mut parts = Vec::new();
        for access in AccessMethod::ALL {
            for pattern in [1, 2, 10, 18, 26, 35] {
                let is_timed = access == AccessMethod::Write && pattern < 25;
                let bytes = 1e9 * f64::from(pattern) * (1.0 + access as u8 as f64);
                parts.push(part(access, pattern, bytes, 1.0 + f64::from(pattern % 3), is_timed, 7));
            }
        }
        link_counts(&mut parts);
        for release in [Release::R1, Release::R2_1, Release::R0_5] {
            let weights = weights(&parts, release, |w| w.value).unwrap();
            let own: f64 = weights.iter().sum();
            assert!((own - 1.0).abs() < 0.02, "{release:?}: {own} {weights:?}");
        }
    }
}
