//! Which blocks of a written range are reread: the ends of every rank's part, and some hundred more, chosen by the seed. Pure arithmetic in
//! blocks of the file.

use crate::b_eff_io::run::region::Region;
use beff_stamp::{mix, GOLDEN};

/// Blocks of all ranks together, without the ends.
pub const SAMPLE_BLOCKS: u64 = 256;
/// Blocks are aligned to their size: no smaller unit is lost or damaged by a device or a page cache.
pub const BLOCK_BYTES: u64 = 4096;

/// Blocks of `region` that `reader` of `readers` rereads: the ends first, then others in random order, so that an early end has no bias.
/// Each block occurs once, also over the readers of a shared region. `owner` is the rank that owns the region, unless it is shared.
#[must_use]
pub fn sample_blocks(region: &Region<'_>, owner: u64, reader: u64, readers: u64, key: u64) -> Vec<u64> {
    if region.bytes() == 0 {
        return Vec::new();
    }
    let block = |at: u64| (region.offset() + at) / BLOCK_BYTES;
    let owners = if region.is_shared() { 0..region.file.ranks } else { owner..owner + 1 };
    let mut ends: Vec<u64> = owners.flat_map(|rank| region.ends_of(rank)).map(block).collect();
    ends.sort_unstable();
    ends.dedup();
    let all = block(0)..block(region.bytes() - 1) + 1;
    let (own, mut chosen) = if region.is_shared() {
        let bound = |n: u64| all.start + (u128::from(all.end - all.start) * u128::from(n) / u128::from(readers)) as u64;
        let mine = ends.iter().enumerate().filter(|(index, _)| *index as u64 % readers == reader);
        (bound(reader)..bound(reader + 1), mine.map(|(_, block)| *block).collect::<Vec<u64>>())
    } else {
        (all, ends.clone())
    };
    let blocks = own.end - own.start;
    let wanted = SAMPLE_BLOCKS.div_ceil(readers).min(blocks);
    // One from each of equal parts: equally likely, and never the same twice.
    let part = |n: u64| own.start + (u128::from(blocks) * u128::from(n) / u128::from(wanted)) as u64;
    let of_part = |n: u64| part(n) + mix(key.wrapping_add(n.wrapping_mul(GOLDEN))) % (part(n + 1) - part(n));
    let mut others: Vec<u64> = (0..wanted).map(of_part).filter(|block| ends.binary_search(block).is_err()).collect();
    others.sort_unstable_by_key(|block| mix(key ^ block.wrapping_mul(GOLDEN)));
    chosen.extend(others);
    chosen
}

/// Part of a region in a block: offset in the region, and length.
#[must_use]
pub fn block_range(region: &Region<'_>, block: u64) -> (u64, u64) {
    let begin = (block * BLOCK_BYTES).max(region.offset());
    let end = ((block + 1) * BLOCK_BYTES).min(region.offset() + region.bytes());
    (begin - region.offset(), end - begin)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::b_eff_io::pattern_type::PatternType;
    use crate::b_eff_io::plan::patterns::patterns;
    use crate::b_eff_io::run::files::{TypeFile, WrittenPattern};
    use beff_stamp::Generation;

    fn file(pattern_type: PatternType, ranks: u64) -> TypeFile {
        TypeFile {
            backend: "posix".into(),
            ranks,
            pattern_type,
            segment_bytes: None,
            shared_pointer: true,
            written: Vec::new(),
            previous: Vec::new(),
        }
    }

    fn written(number: u8, calls: u64) -> WrittenPattern {
        WrittenPattern { calls, ..WrittenPattern::empty(patterns(2 << 20)[number as usize], 8, Generation::First) }
    }

    #[test]
    fn readers_of_a_shared_region_have_all_ends_and_nothing_twice() {
        for (number, calls) in [(4, 1), (4, 100), (6, 100), (2, 3)] {
            let (file, w) = (file(PatternType::Scatter, 3), written(number, calls));
            let region = Region::new(&file, &w, 0).unwrap();
            let all: Vec<u64> = (0..3).flat_map(|reader| sample_blocks(&region, 0, reader, 3, 7)).collect();
            let distinct: BTreeSet<u64> = all.iter().copied().collect();
            assert_eq!(all.len(), distinct.len(), "pattern {number}");
            for end in (0..3).flat_map(|rank| region.ends_of(rank)) {
                assert!(distinct.contains(&((region.offset() + end) / BLOCK_BYTES)), "pattern {number}");
            }
            let bytes: u64 = distinct.iter().map(|block| block_range(&region, *block).1).sum();
            assert!(
                bytes <= region.bytes() && distinct.len() as u64 >= SAMPLE_BLOCKS.min(region.bytes() / BLOCK_BYTES)
            );
        }
    }

    #[test]
    fn a_small_region_is_read_whole_and_a_large_one_is_sampled() {
        let (file, small, large) = (file(PatternType::Separate, 2), written(20, 1), written(20, 1000));
        let whole = Region::new(&file, &small, 1).unwrap();
        let seen: u64 = sample_blocks(&whole, 1, 0, 1, 3).into_iter().map(|block| block_range(&whole, block).1).sum();
        assert!(whole.bytes() <= SAMPLE_BLOCKS * BLOCK_BYTES && seen == whole.bytes());
        let region = Region::new(&file, &large, 1).unwrap();
        let chosen = sample_blocks(&region, 1, 0, 2, 3);
        assert!((SAMPLE_BLOCKS / 2..SAMPLE_BLOCKS / 2 + 3).contains(&(chosen.len() as u64)), "{}", chosen.len());
        assert_ne!(chosen[2..], sample_blocks(&region, 1, 0, 2, 4)[2..], "the key chooses");
    }

    #[test]
    fn all_blocks_are_equally_likely() {
        let (file, w) = (file(PatternType::Separate, 1), written(19, 4));
        let region = Region::new(&file, &w, 0).unwrap();
        let blocks = region.bytes().div_ceil(BLOCK_BYTES);
        let mut hits = vec![0_u32; blocks as usize + 1];
        for seed in 0..400 {
            sample_blocks(&region, 0, 0, 1, mix(seed)).into_iter().for_each(|block| hits[block as usize] += 1);
        }
        let expected = 400.0 * SAMPLE_BLOCKS as f64 / blocks as f64;
        let inner = &hits[1..blocks as usize - 1];
        let spread = 6.0 * expected.sqrt();
        assert!(inner.iter().all(|hits| (f64::from(*hits) - expected).abs() < spread), "{expected} {inner:?}");
    }
}
