//! Property: the chunks of all ranks and patterns cover every file without gap or overlap.

use proptest::prelude::*;

use super::layout::{rank_pattern, RankLayout};
use super::patterns::{number_at, of_type, patterns};
use super::segments::{segment, Segment};
use super::{PatternSpec, PATTERNS};
use crate::b_eff_io::pattern_type::PatternType;
use crate::frame::units::MIB;

/// Granularity of M_PART.
const M_PART_STEP_BYTES: u64 = 32 << 10;

type FileExtent = (u64, u64);

/// The patterns of a type in order, with calls per rank.
fn type_calls(
    t: PatternType,
    specs: &[PatternSpec; PATTERNS],
    calls: &[u64; PATTERNS],
    multiple: u64,
) -> (Vec<(PatternSpec, u64)>, Option<Segment>) {
    let rows = of_type(specs, t);
    if !t.has_segments() {
        return (rows.iter().map(|s| (*s, calls[usize::from(s.number)])).collect(), None);
    }
    let s = segment(t, specs, calls, &PatternType::ALL, calls, multiple).unwrap();
    let rows = rows.iter().zip(s.calls).map(|(row, calls)| (s.spec(row), calls));
    (rows.filter(|(_, calls)| *calls > 0).collect(), Some(s))
}

fn extents(p: &RankLayout, steps: &[(PatternSpec, u64)]) -> Vec<FileExtent> {
    let mut stream = 0;
    let mut extents = Vec::new();
    for (spec, calls) in steps {
        let pattern = rank_pattern(p, spec, stream, *calls).unwrap();
        let chunks = calls * pattern.chunks_per_call;
        extents.extend((0..chunks).map(|k| (pattern.chunk_offset(k), pattern.chunk_bytes)));
        stream += calls * spec.call_bytes;
    }
    extents
}

fn assert_tiled(mut extents: Vec<FileExtent>, what: &str) {
    extents.sort_unstable();
    let end = extents.iter().fold(0, |end, &(offset, length)| {
        assert_eq!(offset, end, "{what}");
        offset + length
    });
    assert_eq!(end, extents.iter().map(|e| e.1).sum::<u64>(), "{what}");
}

/// Different small counts for different patterns; warm-ups run once.
fn counts(seed: u64) -> [u64; PATTERNS] {
    std::array::from_fn(|n| match n {
        0 | 9 | 17 | 25 | 34 => 1,
        _ => 1 + (seed >> (n % 32)) % 3,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn every_type_tiles_its_files(
        ranks in 1_u64..=64,
        m_part in 64_u64..640,
        seed: u64,
        shared_pointer: bool,
        multiple in 1_u64..300_000,
    ) {
        let specs = patterns(m_part * M_PART_STEP_BYTES);
        for t in PatternType::ALL {
            let (steps, segment) = type_calls(t, &specs, &counts(seed), multiple * 8);
            let segment_bytes = segment.map(|s| s.segment_bytes);
            let at = |rank| RankLayout { ranks, rank, shared_pointer, segment_bytes };
            if t.has_private_files() {
                for rank in [0, ranks - 1] {
                    assert_tiled(extents(&at(rank), &steps), "file of a rank");
                }
            } else {
                assert_tiled((0..ranks).flat_map(|r| extents(&at(r), &steps)).collect(), &format!("type {t}"));
            }
            if let Some(segment_bytes) = segment_bytes {
                prop_assert_eq!(extents(&at(0), &steps).iter().map(|e| e.1).sum::<u64>(), segment_bytes);
            }
        }
    }
}

proptest! {
    /// The same for any number of ranks, by arithmetic: neighbouring ranks, chunks and patterns are adjacent.
    #[test]
    fn neighbours_touch(
        ranks in 1_u64..=10_000_000,
        share in 0.0..1.0_f64,
        m_part in 64_u64..32768,
        seed: u64,
    ) {
        let specs = patterns(m_part * M_PART_STEP_BYTES);
        let rank = ((ranks - 1) as f64 * share) as u64;
        for t in PatternType::ALL {
            let (steps, segment) = type_calls(t, &specs, &counts(seed), MIB);
            let segment_bytes = segment.map(|s| s.segment_bytes);
            let at = |rank| RankLayout { ranks, rank, shared_pointer: true, segment_bytes };
            let (mut stream, mut end) = (0, 0);
            for (spec, calls) in &steps {
                let lay = |rank| rank_pattern(&at(rank), spec, stream, *calls).unwrap();
                let (first, last) = (lay(0), lay(ranks - 1));
                let chunks = calls * first.chunks_per_call;
                prop_assert_eq!(first.base_bytes, end, "type {} pattern {}", t, spec.number);
                if rank + 1 < ranks {
                    let distance = lay(rank + 1).base_bytes - lay(rank).base_bytes;
                    let expected = match t { PatternType::Scatter | PatternType::Shared => spec.chunk_bytes, PatternType::Separate => 0, _ => segment_bytes.unwrap() };
                    prop_assert_eq!(distance, expected);
                }
                end = match t {
                    // The last rank's chunk ends where the first rank's next one begins.
                    PatternType::Scatter | PatternType::Shared => last.chunk_offset(chunks - 1) + spec.chunk_bytes,
                    _ => first.chunk_offset(chunks - 1) + spec.chunk_bytes,
                };
                prop_assert_eq!(end, first.chunk_offset(chunks));
                stream += calls * spec.call_bytes;
                prop_assert_eq!(end, if t.is_strided() { stream * ranks } else { stream });
            }
            if let Some(segment_bytes) = segment_bytes {
                prop_assert_eq!(end, segment_bytes);
            }
        }
    }
}

#[test]
fn positions_are_used_by_every_segmented_pattern() {
    for t in PatternType::ALL.into_iter().filter(|t| t.has_segments()) {
        let numbers: Vec<u8> = (0..9).filter_map(|p| number_at(t, p)).collect();
        let specs = patterns(2 * MIB);
        assert_eq!(numbers, of_type(&specs, t).iter().map(|s| s.number).collect::<Vec<_>>());
    }
}
