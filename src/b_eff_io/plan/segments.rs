//! Segment sizes of types 3 and 4 (release 2.1; "Effective File-I/O Bandwidth Benchmark", section 4).
//!
//! Their patterns are limited by size: every rank makes the same number of calls, derived from those that types 0, 1 and 2 completed in
//! their time.

use super::patterns::{number_at, of_type};
use super::{Obstacle, PatternSpec, PlanError, Role, PATTERNS};
use crate::b_eff_io::pattern_type::PatternType;

/// Warm-up, seven timed sizes, fill-up.
const POSITIONS: usize = 9;

/// One rank's segment of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Calls per rank in order: warm-up (1), the seven sizes, fill-up (0 or 1).
    pub calls: [u64; POSITIONS],
    /// True for those limited by space, not by the definition.
    pub by_space: [bool; POSITIONS],
    /// Bytes of the fill-up call; 0 without one.
    pub fill_up_bytes: u64,
    /// L_SEG.
    pub segment_bytes: u64,
}

impl Segment {
    /// The row of the table for this segment: a fill-up has its size, the others are unchanged.
    #[must_use]
    pub fn spec(&self, spec: &PatternSpec) -> PatternSpec {
        match spec.role {
            Role::FillUp => PatternSpec { chunk_bytes: self.fill_up_bytes, call_bytes: self.fill_up_bytes, ..*spec },
            Role::WarmUp | Role::Timed => *spec,
        }
    }
}

/// Checks that types 3 and 4 have a reference type for their counts.
///
/// # Errors
/// [`Obstacle::NoReference`] if one of them runs without any of types 0, 1, 2.
pub fn check_reference(types: &[PatternType]) -> Result<(), PlanError> {
    match types.iter().find(|t| t.has_segments()) {
        Some(&pattern_type) if types.iter().all(|t| t.has_segments()) => {
            Err(Obstacle::NoReference { pattern_type }.into())
        }
        _ => Ok(()),
    }
}

/// Calls of a timed pattern of types 3 and 4 without a space limit: min(rep0 * L0/l0, 10 * rep1, rep2) over those of types 0, 1, 2 in
/// `types`. 0 if one of them could not run its pattern.
fn unbounded_calls(
    position: usize,
    specs: &[PatternSpec; PATTERNS],
    counts: &[u64; PATTERNS],
    types: &[PatternType],
) -> Option<u64> {
    types
        .iter()
        .filter_map(|&t| {
            let number = usize::from(number_at(t, position)?);
            t.segment_calls(counts[number], specs[number].call_bytes / specs[number].chunk_bytes.max(1))
        })
        .min()
}

/// The segment of type `t` (3 or 4).
///
/// `counts` are the calls of the first write so far by pattern number, `types` the types of this run, `max_calls` the limits by space
/// ([`super::space`]). A pattern of types 0 to 2 that is part of the run but has no calls could not be run; then the pattern of its size is
/// not run here either. Otherwise there is at least one call. L_SEG is the sum of all calls rounded up to `multiple_bytes`; the fill-up is
/// the difference.
///
/// # Errors
/// [`Obstacle::NoReference`] if none of types 0 to 2 runs, [`Obstacle::Overflow`] for a segment of 2^63 bytes or more,
/// [`PlanError::Argument`] for another type or an invalid multiple.
pub fn segment(
    t: PatternType,
    specs: &[PatternSpec; PATTERNS],
    counts: &[u64; PATTERNS],
    types: &[PatternType],
    max_calls: &[u64; PATTERNS],
    multiple_bytes: u64,
) -> Result<Segment, PlanError> {
    if !t.has_segments() {
        return Err(PlanError::argument(format!("pattern type {t} has no segments, only types 3 and 4 have")));
    }
    check_multiple(multiple_bytes)?;
    let mut calls = [0; POSITIONS];
    let mut by_space = [false; POSITIONS];
    let mut used_bytes = 0_u128;
    let rows = of_type(specs, t);
    for (position, spec) in rows.iter().enumerate() {
        calls[position] = match spec.role {
            Role::WarmUp => 1,
            Role::Timed => {
                let wanted = unbounded_calls(position, specs, counts, types);
                let wanted = wanted.ok_or(Obstacle::NoReference { pattern_type: t })?;
                // Space always allows one call of everything.
                let allowed = max_calls[usize::from(spec.number)].max(1);
                by_space[position] = wanted > allowed;
                wanted.min(allowed)
            }
            Role::FillUp => continue,
        };
        used_bytes += u128::from(calls[position]) * u128::from(spec.call_bytes);
    }
    let segment = used_bytes.next_multiple_of(u128::from(multiple_bytes));
    let pattern = rows.last().map_or(0, |s| s.number);
    let overflow = Obstacle::Overflow { pattern, ranks: 1, offset_bytes: segment };
    let segment_bytes = i64::try_from(segment).map_err(|_| overflow)? as u64;
    let fill_up_bytes = segment_bytes - used_bytes as u64;
    calls[POSITIONS - 1] = u64::from(fill_up_bytes > 0);
    Ok(Segment { calls, by_space, fill_up_bytes, segment_bytes })
}

/// Checks the multiple to which segments are rounded up: not 0, whole 8-byte elements.
///
/// # Errors
/// [`PlanError::Argument`] with the value.
pub fn check_multiple(multiple_bytes: u64) -> Result<(), PlanError> {
    if multiple_bytes == 0 || !multiple_bytes.is_multiple_of(8) {
        return Err(PlanError::argument(format!(
            "segments rounded up to a multiple of {multiple_bytes} bytes; give a multiple of 8, usually the striping \
             unit or 1M"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::plan::patterns::patterns;
    use crate::frame::units::MIB;
    use proptest::prelude::*;

    const ALL: [PatternType; PatternType::COUNT] = PatternType::ALL;
    const FREE: [u64; PATTERNS] = [u64::MAX; PATTERNS];

    /// One count for each position of types 0, 1, 2.
    fn counts(rep: [u64; 3]) -> [u64; PATTERNS] {
        let mut counts = [0; PATTERNS];
        for t in ALL.into_iter().filter(|t| !t.has_segments()) {
            for position in 0..8 {
                counts[usize::from(number_at(t, position).unwrap())] = rep[t.index()];
            }
        }
        counts
    }

    #[test]
    fn only_what_the_space_cuts_is_marked() {
        let specs = patterns(2 * MIB);
        let of = |max_calls: &[u64; PATTERNS]| {
            segment(PatternType::Segmented, &specs, &counts([2, 5, 1000]), &ALL, max_calls, MIB).unwrap()
        };
        let free = of(&FREE);
        assert_eq!(free.by_space, [false; POSITIONS]);
        let third = usize::from(of_type(&specs, PatternType::Segmented)[3].number);
        let mut exactly = FREE;
        exactly[third] = free.calls[3];
        assert_eq!(of(&exactly), free);
        let mut less = FREE;
        less[third] = free.calls[3] - 1;
        let cut = of(&less);
        assert_eq!((cut.by_space.map(u8::from), cut.calls[3]), ([0, 0, 0, 1, 0, 0, 0, 0, 0], free.calls[3] - 1));
    }

    #[test]
    fn the_smallest_of_the_three_counts() {
        let specs = patterns(2 * MIB);
        let s = segment(PatternType::Segmented, &specs, &counts([2, 5, 1000]), &ALL, &FREE, MIB).unwrap();
        // M_PART, 1 MB: 2 * 1; 32 kB, +8: 10 * 5; 1 kB, +8: 10 * 5; 1 MB + 8: 2 * 1.
        assert_eq!(s.calls, [1, 2, 2, 50, 50, 50, 50, 2, 1]);
        let s = segment(PatternType::SegmentedCollective, &specs, &counts([2, 50, 7]), &ALL, &FREE, MIB).unwrap();
        assert_eq!(s.calls, [1, 2, 2, 7, 7, 7, 7, 2, 1]);
        let s = segment(
            PatternType::SegmentedCollective,
            &specs,
            &counts([2, 50, 1000]),
            &[PatternType::Scatter, PatternType::SegmentedCollective],
            &FREE,
            MIB,
        )
        .unwrap();
        assert_eq!(s.calls, [1, 2, 2, 64, 2048, 64, 2048, 2, 1]);
    }

    #[test]
    fn sizes_add_up() {
        let specs = patterns(2 * MIB);
        let s = segment(PatternType::Segmented, &specs, &counts([1, 1, 1]), &ALL, &FREE, MIB).unwrap();
        let used: u64 = MIB + 2 * MIB + MIB + 32768 + 1024 + 32776 + 1032 + MIB + 8;
        assert_eq!(s.calls, [1; 9]);
        assert_eq!((s.segment_bytes, s.fill_up_bytes), (6 * MIB, 6 * MIB - used));
        assert_eq!(s.spec(&specs[33]).chunk_bytes, s.fill_up_bytes);
        assert_eq!(s.spec(&specs[26]), specs[26]);
        let s = segment(PatternType::Segmented, &specs, &counts([1, 1, 1]), &ALL, &FREE, 64 * MIB).unwrap();
        assert_eq!(s.segment_bytes, 64 * MIB);
        // Sizes that add up to a multiple need no fill-up.
        let s = segment(PatternType::Segmented, &specs, &counts([1, 1, 1]), &ALL, &FREE, used).unwrap();
        assert_eq!((s.segment_bytes, s.fill_up_bytes, s.calls[8]), (used, 0, 0));
    }

    #[test]
    fn a_pattern_without_counts_is_not_run() {
        let specs = patterns(2 * MIB);
        let mut counts = counts([3, 3, 3]);
        counts[usize::from(number_at(PatternType::Shared, 5).unwrap())] = 0;
        let s = segment(PatternType::Segmented, &specs, &counts, &ALL, &FREE, MIB).unwrap();
        assert_eq!(s.calls, [1, 3, 3, 3, 3, 0, 3, 3, 1]);
    }

    #[test]
    fn wrong_input_is_refused() {
        let specs = patterns(2 * MIB);
        let some = counts([1, 1, 1]);
        let error = segment(
            PatternType::SegmentedCollective,
            &specs,
            &some,
            &[PatternType::Segmented, PatternType::SegmentedCollective],
            &FREE,
            MIB,
        )
        .unwrap_err();
        assert_eq!(
            error,
            PlanError::Specific(Obstacle::NoReference { pattern_type: PatternType::SegmentedCollective })
        );
        assert_eq!(
            check_reference(&[PatternType::Segmented, PatternType::SegmentedCollective]),
            Err(PlanError::Specific(Obstacle::NoReference { pattern_type: PatternType::Segmented }))
        );
        assert!(
            check_reference(&[PatternType::Separate, PatternType::Segmented]).is_ok()
                && check_reference(&[PatternType::Shared]).is_ok()
        );
        assert!(matches!(
            segment(PatternType::Separate, &specs, &some, &ALL, &FREE, MIB),
            Err(PlanError::Argument { .. })
        ));
        for multiple in [0, 12] {
            assert!(matches!(
                segment(PatternType::Segmented, &specs, &some, &ALL, &FREE, multiple),
                Err(PlanError::Argument { .. })
            ));
        }
        let many = counts([u64::MAX; 3]);
        assert!(matches!(
            segment(PatternType::Segmented, &specs, &many, &ALL, &FREE, MIB),
            Err(PlanError::Specific(Obstacle::Overflow { .. }))
        ));
    }

    proptest! {
        #[test]
        fn calls_fill_the_segment(
            reps in proptest::array::uniform3(0_u64..1_000_000),
            space in 1_u64..2_000_000,
            m_part in 2_u64..64,
            multiple in 1_u64..100_000,
        ) {
            let specs = patterns(m_part * MIB);
            let s = segment(PatternType::Segmented, &specs, &counts(reps), &ALL, &[space; PATTERNS], multiple * 8).unwrap();
            let used: u64 = s.calls.iter().zip(&specs[25..34]).map(|(c, spec)| c * s.spec(spec).call_bytes).sum();
            prop_assert_eq!(used, s.segment_bytes);
            prop_assert_eq!(s.segment_bytes % (multiple * 8), 0);
            prop_assert!(s.fill_up_bytes < multiple * 8);
            prop_assert!(s.calls[1..8].iter().all(|&c| c <= space));
            prop_assert_eq!(s.calls[1..8].iter().all(|&c| c > 0), reps.iter().all(|&r| r > 0));
        }
    }
}
