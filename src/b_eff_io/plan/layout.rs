//! File offsets of one rank from a row of the table.

use beff_backends::{AccessPattern, CallForm, RankPartition};

use super::{Obstacle, PatternSpec, PlanError};
use crate::b_eff_io::pattern_type::FileLayout;

/// Layout of a rank in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankLayout {
    /// Ranks of the partition.
    pub ranks: u64,
    /// This rank, below `ranks`.
    pub rank: u64,
    /// Type 1 through the shared file pointer.
    pub shared_pointer: bool,
    /// L_SEG of the pattern's type; needed for types with segments only.
    pub segment_bytes: Option<u64>,
}

/// Lays out one pattern for one rank.
///
/// `stream_bytes` is the size of each rank's stream before the pattern. Types 0 and 1 interleave the chunks of the ranks, type 2 has a file
/// per rank, types 3 and 4 a segment per rank. The offsets of all ranks up to `max_calls` calls are checked, so the result is the same on
/// every rank.
///
/// # Errors
/// [`Obstacle::Overflow`] if the last byte of the last rank has no 63-bit offset, [`Obstacle::OutsideSegment`] if a segment cannot hold the
/// calls, [`PlanError::Argument`] for invalid input.
pub fn rank_pattern(
    p: &RankLayout,
    spec: &PatternSpec,
    stream_bytes: u64,
    max_calls: u64,
) -> Result<AccessPattern, PlanError> {
    check(p, spec)?;
    let chunks_per_call = spec.call_bytes / spec.chunk_bytes;
    let [ranks, rank, l, stream] = [p.ranks, p.rank, spec.chunk_bytes, stream_bytes].map(u128::from);
    // A saturated value is too large and is refused below.
    let is_private = spec.pattern_type.has_private_files();
    let layout = spec.pattern_type.descriptor().layout;
    let (origin, rank_distance, stride) = match layout {
        FileLayout::Strided => (stream.saturating_mul(ranks), l, ranks.saturating_mul(l)),
        FileLayout::FilePerRank => (0, 0, l),
        FileLayout::Segments => (0, u128::from(checked_segment_bytes(p, spec, stream_bytes, max_calls)?), l),
    };
    let first = if layout == FileLayout::Strided { origin } else { stream };

    let base = |rank: u128| first.saturating_add(rank.saturating_mul(rank_distance));
    let chunks = u128::from(max_calls) * u128::from(chunks_per_call);
    let end = match chunks.checked_sub(1) {
        None => base(ranks - 1),
        Some(before) => base(ranks - 1).saturating_add(before.saturating_mul(stride)).saturating_add(l),
    };
    let overflow = || Obstacle::Overflow { pattern: spec.number, ranks: p.ranks, offset_bytes: end };
    // A stride beyond the largest offset matters only with a second chunk, whose end is then refused.
    i64::try_from(end).map_err(|_| overflow())?;
    let narrow = |v: u128| u64::try_from(v).map_err(|_| overflow());
    Ok(AccessPattern {
        kind: spec.pattern_type.access_kind(p.shared_pointer),
        chunk_bytes: spec.chunk_bytes,
        chunks_per_call,
        base_bytes: narrow(base(rank))?,
        stride_bytes: narrow(stride)?,
        origin_bytes: narrow(origin)?,
        rank: if is_private { 0 } else { p.rank },
        ranks: if is_private { 1 } else { p.ranks },
        rank_distance_bytes: narrow(rank_distance)?,
        partition: RankPartition::Equal,
        form: CallForm::default(),
        stream_bytes,
        max_calls,
        order: None,
        mix: None,
    })
}

fn check(p: &RankLayout, spec: &PatternSpec) -> Result<(), PlanError> {
    if p.rank >= p.ranks {
        return Err(PlanError::argument(format!("rank {} of a partition of {} ranks", p.rank, p.ranks)));
    }
    if spec.chunk_bytes == 0 || spec.call_bytes == 0 || !spec.call_bytes.is_multiple_of(spec.chunk_bytes) {
        return Err(PlanError::argument(format!(
            "pattern {} with chunks of {} bytes and calls of {} bytes; a call must be a whole number of chunks",
            spec.number, spec.chunk_bytes, spec.call_bytes
        )));
    }
    Ok(())
}

/// L_SEG, if it is known and holds the pattern.
fn checked_segment_bytes(
    p: &RankLayout,
    spec: &PatternSpec,
    stream_bytes: u64,
    max_calls: u64,
) -> Result<u64, PlanError> {
    let segment_bytes = p
        .segment_bytes
        .ok_or_else(|| PlanError::argument(format!("pattern {} without a segment size", spec.number)))?;
    let moved = u128::from(max_calls) * u128::from(spec.call_bytes);
    let end_bytes = moved.saturating_add(u128::from(stream_bytes));
    if end_bytes > u128::from(segment_bytes) {
        return Err(Obstacle::OutsideSegment { pattern: spec.number, end_bytes, segment_bytes }.into());
    }
    Ok(segment_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::plan::patterns::patterns;
    use crate::frame::units::MIB;
    use beff_backends::AccessKind;

    const PLACE: RankLayout = RankLayout { ranks: 4, rank: 3, shared_pointer: true, segment_bytes: None };

    #[test]
    fn strided_types() {
        let specs = patterns(2 * MIB);
        let p = rank_pattern(&PLACE, &specs[4], 5 * MIB, 10).unwrap();
        assert_eq!((p.kind, p.chunks_per_call, p.stream_bytes), (AccessKind::Collective, 32, 5 * MIB));
        assert_eq!((p.origin_bytes, p.base_bytes, p.stride_bytes), (20 * MIB, 20 * MIB + 3 * 32768, 4 * 32768));
        let p = rank_pattern(&PLACE, &specs[12], 0, 10).unwrap();
        assert_eq!((p.kind, p.chunks_per_call, p.base_bytes), (AccessKind::SharedOrdered, 1, 3 * 32768));
    }

    #[test]
    fn private_and_segmented_types() {
        let specs = patterns(2 * MIB);
        let p = rank_pattern(&PLACE, &specs[19], 3 * MIB, 10).unwrap();
        assert_eq!((p.origin_bytes, p.base_bytes, p.stride_bytes), (0, 3 * MIB, MIB));
        let p = rank_pattern(&RankLayout { segment_bytes: Some(64 * MIB), ..PLACE }, &specs[27], 3 * MIB, 10).unwrap();
        assert_eq!((p.origin_bytes, p.base_bytes, p.stride_bytes), (0, 195 * MIB, MIB));
        assert!(p.is_contiguous());
    }

    #[test]
    fn wrong_input_is_refused() {
        let specs = patterns(2 * MIB);
        assert!(matches!(rank_pattern(&PLACE, &specs[25], 0, 1), Err(PlanError::Argument { .. })));
        assert!(matches!(rank_pattern(&PLACE, &specs[33], 0, 1), Err(PlanError::Argument { .. })));
        assert!(matches!(
            rank_pattern(&RankLayout { rank: 4, ..PLACE }, &specs[0], 0, 1),
            Err(PlanError::Argument { .. })
        ));
        let segment = RankLayout { segment_bytes: Some(4 * MIB), ..PLACE };
        assert!(rank_pattern(&segment, &specs[27], 3 * MIB, 1).is_ok());
        assert!(matches!(
            rank_pattern(&segment, &specs[27], 3 * MIB, 2),
            Err(PlanError::Specific(Obstacle::OutsideSegment { .. }))
        ));
    }

    #[test]
    fn the_last_offset_is_the_limit() {
        let specs = patterns(2 * MIB);
        let alone = RankLayout { ranks: 1, rank: 0, ..PLACE };
        let fits = (i64::MAX as u64) / MIB;
        assert!(rank_pattern(&alone, &specs[9], 0, fits).is_ok());
        match rank_pattern(&alone, &specs[9], 0, fits + 1) {
            Err(PlanError::Specific(Obstacle::Overflow { pattern: 9, ranks: 1, offset_bytes })) => {
                assert_eq!(offset_bytes, 1 << 63)
            }
            other => panic!("{other:?}"),
        }
        let huge = RankLayout { ranks: u64::MAX, rank: 0, segment_bytes: Some(u64::MAX), ..PLACE };
        for number in [0, 9, 25, 34] {
            let error = rank_pattern(&huge, &specs[number], u64::MAX - MIB, 1).unwrap_err();
            assert!(matches!(error, PlanError::Specific(Obstacle::Overflow { .. })), "{error}");
            assert!(error.to_string().contains(&format!("pattern {number} ")), "{error}");
        }
    }
}
