use super::*;
use crate::testing::pattern;
use crate::{CallForm, RankPartition, TransferBuffer};
use proptest::prelude::*;

fn interleaved(chunk: u64, per_call: u64, ranks: u64, rank: u64, stream: u64, max_calls: u64) -> AccessPattern {
    let origin = stream * ranks;
    AccessPattern {
        kind: crate::AccessKind::Collective,
        base_bytes: origin + rank * chunk,
        stride_bytes: ranks * chunk,
        origin_bytes: origin,
        rank,
        ranks,
        rank_distance_bytes: chunk,
        partition: RankPartition::Equal,
        form: CallForm::default(),
        stream_bytes: stream,
        ..pattern(chunk, per_call, max_calls)
    }
}

fn segmented(call: u64, ranks: u64, rank: u64, stream: u64, segment: u64, max_calls: u64) -> AccessPattern {
    AccessPattern {
        kind: crate::AccessKind::Collective,
        base_bytes: rank * segment + stream,
        rank,
        ranks,
        rank_distance_bytes: segment,
        partition: RankPartition::Equal,
        form: CallForm::default(),
        stream_bytes: stream,
        ..pattern(call, 1, max_calls)
    }
}

proptest! {
    /// Every byte of a region is at the offset that the pattern of its rank defines, in the window of its call.
    #[test]
    fn fragments_are_the_chunks_of_the_patterns(
        words in 1_u64..200, per_call in 1_u64..6, ranks in 2_u64..5, stream in 0_u64..3000,
        first in 0_u64..20, calls in 1_u64..8, cut in 0_u64..1000, len in 1_u64..9000,
    ) {
        let (chunk, stream, period) = (words * 8, stream * 8, 3 * 4096);
        let p = interleaved(chunk, per_call, ranks, ranks - 1, stream, 100);
        prop_assert_eq!(RankDistribution::of(&p, 512), Ok(RankDistribution::Interleaved));
        let rows = ChunkRows::new(&p, RankDistribution::Interleaved, period);
        let buffer = TransferBuffer::new(period, p.call_bytes()).unwrap();
        let (begin, end) = rows.region(Batch { first_call: first, calls });
        prop_assert_eq!((begin, end - begin), (p.for_rank(0).chunk_offset(first * per_call), calls * ranks * p.call_bytes()));
        let begin = begin + cut % (end - begin);
        let end = end.min(begin + len);
        let mut next = 0;
        let mut positions = vec![None; ranks as usize];
        let mut wrong = None;
        rows.fragments(begin, end, |part, index, at, len| {
            let rank = p.for_rank(part as u64);
            // The chunk of that rank's pattern that contains the offset.
            let offset = begin + at as u64;
            let number = (offset - rank.base_bytes) / rank.stride_bytes;
            let within = offset - rank.chunk_offset(number);
            let call = number / per_call;
            let expected = buffer.index(rank.stream_position(call)) as u64 + number % per_call * chunk + within;
            let position = number * chunk + within;
            let follows = positions[part].is_none_or(|p| p == position) && rows.bytes_before(part as u64, offset) == position;
            positions[part] = Some(position + len as u64);
            if at != next || within + len as u64 > chunk || expected != index as u64 || !follows {
                wrong = Some((part, index, at, len));
            }
            next = at + len;
        });
        prop_assert_eq!(wrong, None);
        prop_assert_eq!(next as u64, end - begin);
        let sum: u64 = (0..ranks).map(|r| rows.bytes_before(r, end) - rows.bytes_before(r, begin)).sum();
        prop_assert_eq!(sum, end - begin);
    }

    /// Sender and receiver divide bytes alike, in agreement with the fragments.
    #[test]
    fn contiguous_ranges_are_the_windows_of_the_calls(
        words in 1_u64..900, per_call in 1_u64..4, stream in 0_u64..3000, from in 0_u64..40_000, len in 1_u64..40_000,
    ) {
        let (chunk, stream, period) = (words * 8, stream * 8, 2 * 4096);
        let p = interleaved(chunk, per_call, 2, 0, stream, 1000);
        let rows = ChunkRows::new(&p, RankDistribution::Interleaved, period);
        let buffer = TransferBuffer::new(period, p.call_bytes()).unwrap();
        let mut bytes = Vec::new();
        let mut count = 0;
        let mut longest = 0;
        rows.contiguous_ranges(from, from + len, |index, len| {
            count += 1;
            longest = longest.max(index + len);
            bytes.extend(index..index + len);
        });
        let expected: Vec<usize> = (from..from + len)
            .map(|at| buffer.index(p.stream_position(at / p.call_bytes())) + (at % p.call_bytes()) as usize)
            .collect();
        prop_assert_eq!(bytes, expected);
        prop_assert!(count <= rows.max_contiguous_ranges(len), "{} of {}", count, rows.max_contiguous_ranges(len));
        prop_assert!(longest <= buffer.bytes().len());
    }

    /// The windows of the calls of one period are disjoint.
    #[test]
    fn windows_of_one_period_are_disjoint(words in 1_u64..2000, stream in 0_u64..3000, first in 0_u64..50) {
        let p = segmented(words * 8, 2, 1, stream * 8, 1 << 40, 1000);
        let rows = ChunkRows::new(&p, RankDistribution::Segmented, 3 * 4096);
        let mut used = vec![false; 3 * 4096 + p.call_bytes() as usize];
        let calls = rows.calls_per_period();
        let (begin, end) = rows.region(Batch { first_call: first, calls });
        prop_assert_eq!(begin, p.chunk_offset(first));
        let mut twice = false;
        rows.fragments(begin, end, |_, index, _, len| {
            for byte in &mut used[index..index + len] {
                twice |= *byte;
                *byte = true;
            }
        });
        prop_assert!(!twice);
    }
}

#[test]
fn segments_must_not_share_a_sector_within_a_pattern() {
    let of = |p: &AccessPattern| RankDistribution::of(p, 512);
    assert_eq!(of(&segmented(1032, 4, 2, 8, 1 << 20, 10)), Ok(RankDistribution::Segmented));
    assert_eq!(of(&segmented(1024, 4, 2, 0, 10 * 1024, 10)), Ok(RankDistribution::Segmented));
    // Segments without gaps that begin inside a sector, or are no multiple of it.
    assert!(of(&segmented(1032, 4, 2, 0, 10 * 1032, 10)).is_err());
    assert!(of(&segmented(1024, 4, 2, 8, 10 * 1024, 10)).is_err());
    assert_eq!(of(&segmented(1032, 4, 2, 0, 11 * 1032, 10)), Ok(RankDistribution::Segmented));
    let odd = AccessPattern { stride_bytes: 4096, ..interleaved(1024, 1, 2, 0, 0, 10) };
    assert!(of(&odd).is_err());
}
