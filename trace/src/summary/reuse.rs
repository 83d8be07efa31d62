//! What became of the bytes that were written and read: overwritten, discarded, read again.

use std::collections::HashMap;

use super::extents::{Extent, FileExtents};
use crate::range_map::RangeMap;

/// Bytes, and the time of the calls that moved them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Amount {
    pub bytes: u64,
    pub ns: f64,
}

impl Amount {
    pub fn add(&mut self, other: Self) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.ns += other.ns;
    }
}

/// Bytes of one kind of access.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Reuse {
    /// Written where nothing had been written, and overwritten before anything read them.
    pub overwritten_first: Amount,
    /// Written over earlier data, and overwritten before anything read them.
    pub overwritten_again: Amount,
    /// Written, and lost with the file or its end before anything read them.
    pub discarded: Amount,
    /// Read by a rank that then wrote them.
    pub read_then_written: Amount,
    /// Read again without a write in between.
    pub read_again: Amount,
}

#[derive(Clone, Copy)]
enum Content {
    /// Written and not yet read.
    Unread { group: u32, ns_per_byte: f64, is_first: bool },
    /// Read since it was last written.
    Read { rank: u32, group: u32, ns_per_byte: f64 },
}

#[derive(Default)]
struct Contents {
    ranges: RangeMap<Content>,
    found: HashMap<u32, Reuse>,
}

/// Replays the accesses to a file in the order of their begin. Each replaces the ranges it covers by one, so the work grows with the
/// number of ranges, not with their overlaps.
pub(super) fn reuse(file: &mut FileExtents) -> HashMap<u32, Reuse> {
    file.extents.sort_unstable_by_key(|extent| (extent.begin_ns, extent.rank, extent.at));
    file.truncations.sort_unstable();
    let mut truncations = file.truncations.iter().peekable();
    let mut contents = Contents::default();
    for extent in &file.extents {
        while let Some((_, bytes, is_lost)) = truncations.next_if(|(ns, ..)| *ns <= extent.begin_ns) {
            contents.truncate(*bytes, *is_lost);
        }
        contents.access(extent);
    }
    truncations.for_each(|(_, bytes, is_lost)| contents.truncate(*bytes, *is_lost));
    contents.found
}

impl Contents {
    fn access(&mut self, extent: &Extent) {
        #[allow(clippy::cast_precision_loss)] // a share of time
        let own_ns_per_byte = extent.ns as f64 / (extent.end - extent.at) as f64;
        let mut is_first = true;
        while let Some((at, end, content)) = self.ranges.take(extent.at, extent.end) {
            let bytes = end - at;
            is_first = false;
            let of = |ns_per_byte: f64| amount(bytes, ns_per_byte);
            match content {
                Content::Unread { group, ns_per_byte, is_first } if extent.is_write => {
                    let found = self.found.entry(group).or_default();
                    let kind = if is_first { &mut found.overwritten_first } else { &mut found.overwritten_again };
                    kind.add(of(ns_per_byte));
                }
                Content::Read { rank, group, ns_per_byte } if extent.is_write => {
                    if rank == extent.rank {
                        self.found.entry(group).or_default().read_then_written.add(of(ns_per_byte));
                    }
                }
                Content::Read { .. } => self.found.entry(extent.group).or_default().read_again.add(of(own_ns_per_byte)),
                Content::Unread { .. } => {}
            }
        }
        let (group, ns_per_byte) = (extent.group, own_ns_per_byte);
        let content = if extent.is_write {
            Content::Unread { group, ns_per_byte, is_first }
        } else {
            Content::Read { rank: extent.rank, group, ns_per_byte }
        };
        self.ranges.insert(extent.at, extent.end, content);
    }

    fn truncate(&mut self, at: u64, is_lost: bool) {
        while let Some((begin, end, content)) = self.ranges.take(at, u64::MAX) {
            if let (Content::Unread { group, ns_per_byte, .. }, true) = (content, is_lost) {
                self.found.entry(group).or_default().discarded.add(amount(end - begin, ns_per_byte));
            }
        }
    }
}

fn amount(bytes: u64, ns_per_byte: f64) -> Amount {
    #[allow(clippy::cast_precision_loss)] // a share of time
    let ns = bytes as f64 * ns_per_byte;
    Amount { bytes, ns }
}

#[cfg(test)]
mod tests {
    use super::super::extents::ExtentStore;
    use super::*;

    const WRITE: bool = true;
    const READ: bool = false;

    /// Accesses as (begin in ns, rank, group, direction, begin and end of the range), each of 1 ns for a byte.
    fn of(accesses: &[(u64, u32, u32, bool, u64, u64)], truncations: &[(u64, u64)], limit: usize) -> FileExtents {
        let mut store = ExtentStore::with_limit(limit);
        let mut rank = 0;
        for &(begin_ns, of_rank, group, is_write, at, end) in accesses {
            if rank != of_rank {
                store.end_rank([0].into_iter());
                rank = of_rank;
            }
            store.add(0, Extent { at, end, begin_ns, end_ns: begin_ns + 1, ns: end - at, rank, group, is_write });
        }
        truncations.iter().for_each(|(ns, bytes)| store.truncate(0, *ns, *bytes, true));
        store.files.remove(&0).unwrap()
    }

    fn bytes(accesses: &[(u64, u32, u32, bool, u64, u64)], truncations: &[(u64, u64)], group: u32) -> [u64; 5] {
        let all = reuse(&mut of(accesses, truncations, 1 << 20));
        let found = all.get(&group).copied().unwrap_or_default();
        let kinds = [
            found.overwritten_first,
            found.overwritten_again,
            found.discarded,
            found.read_then_written,
            found.read_again,
        ];
        assert!(kinds.iter().all(|kind| (kind.ns - kind.bytes as f64).abs() < 1e-6), "{found:?}");
        kinds.map(|kind| kind.bytes)
    }

    #[test]
    fn what_is_overwritten_unread_counts_for_the_first_writer() {
        // Rank 0 fills, both ranks write over it later, with a gap; ranks come one after the other.
        let fill = [(0, 0, 7, WRITE, 0, 100), (50, 0, 8, WRITE, 0, 40), (60, 1, 8, WRITE, 60, 120)];
        assert_eq!(bytes(&fill, &[], 7), [80, 0, 0, 0, 0]);
        assert_eq!(bytes(&fill, &[], 8), [0; 5]);
        // The overwriting rank comes first in the profile, and later in time.
        assert_eq!(bytes(&[(50, 0, 8, WRITE, 0, 40), (0, 1, 7, WRITE, 0, 100)], &[], 7), [40, 0, 0, 0, 0]);
        // A read in between makes it useful, of those bytes only.
        let read = [(0, 0, 7, WRITE, 0, 100), (10, 1, 9, READ, 10, 20), (50, 1, 8, WRITE, 0, 100)];
        assert_eq!(bytes(&read, &[], 7), [90, 0, 0, 0, 0]);
        let again = [(0, 0, 7, WRITE, 0, 10), (1, 0, 7, WRITE, 0, 10), (2, 0, 7, WRITE, 0, 10)];
        assert_eq!(bytes(&again, &[], 7), [10, 10, 0, 0, 0]);
    }

    /// Rank 0 fills two neighbouring datasets, rank 1 writes each after it was filled.
    #[test]
    fn adjacent_accesses_with_a_pause_keep_their_order() {
        const MS: u64 = 1_000_000;
        let accesses = [
            (0, 0, 7, WRITE, 0, 100),
            (10 * MS, 0, 7, WRITE, 100, 200),
            (5 * MS, 1, 8, WRITE, 0, 100),
            (15 * MS, 1, 8, WRITE, 100, 200),
        ];
        assert_eq!(bytes(&accesses, &[], 7), [200, 0, 0, 0, 0]);
        assert_eq!(bytes(&accesses, &[], 8), [0; 5]);
        // One rank does both, without pauses.
        let one = [
            (0, 0, 7, WRITE, 0, 100),
            (1, 0, 8, WRITE, 0, 100),
            (2, 0, 7, WRITE, 100, 200),
            (3, 0, 8, WRITE, 100, 200),
        ];
        assert_eq!((bytes(&one, &[], 7), bytes(&one, &[], 8)), ([200, 0, 0, 0, 0], [0; 5]));
    }

    #[test]
    fn a_new_file_of_the_same_name_is_not_overwritten() {
        let loops = [(0, 0, 1, WRITE, 0, 100), (20, 0, 1, WRITE, 0, 100), (40, 0, 1, WRITE, 0, 100)];
        assert_eq!(bytes(&loops, &[(10, 0), (30, 0)], 1), [0, 0, 200, 0, 0]);
        assert_eq!(bytes(&loops[..1], &[(10, 30)], 1), [0, 0, 70, 0, 0]);
        let read = [(0, 0, 1, WRITE, 0, 100), (5, 0, 2, READ, 0, 100)];
        assert_eq!(bytes(&read, &[(10, 0)], 1), [0; 5]);
    }

    #[test]
    fn reads_count_if_the_bytes_were_read_before_or_are_then_written() {
        let modify = [
            (0, 0, 1, READ, 0, 50),
            (10, 0, 2, WRITE, 0, 100),
            (20, 1, 1, READ, 100, 150),
            (30, 0, 2, WRITE, 100, 150),
        ];
        assert_eq!(bytes(&modify, &[], 1), [0, 0, 0, 50, 0]);
        let twice = [(0, 0, 1, READ, 0, 50), (1, 1, 1, READ, 0, 60), (2, 2, 1, READ, 20, 30)];
        assert_eq!(bytes(&twice, &[], 1), [0, 0, 0, 0, 60]);
        let written_between = [(0, 0, 1, READ, 0, 50), (1, 1, 2, WRITE, 0, 50), (2, 0, 1, READ, 0, 50)];
        assert_eq!(bytes(&written_between, &[], 1), [0; 5]);
    }

    /// Compares with a state per byte.
    #[test]
    fn ranges_agree_with_single_bytes() {
        let mut seed = 1_u64;
        let mut next = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for _ in 0..200 {
            let mut accesses: Vec<_> = (0..20)
                .map(|n| {
                    let at = next(30);
                    (
                        n,
                        u32::try_from(next(2)).unwrap(),
                        u32::try_from(next(3)).unwrap(),
                        next(2) == 0,
                        at,
                        at + 1 + next(8),
                    )
                })
                .collect();
            let (mut unread, mut overwritten) = ([None; 40], [0_u64; 3]);
            for &(_, _, group, is_write, at, end) in &accesses {
                for byte in &mut unread[at as usize..end as usize] {
                    match (is_write, *byte) {
                        (true, Some(writer)) => overwritten[writer as usize] += 1,
                        (false, _) => *byte = None,
                        _ => {}
                    }
                    if is_write {
                        *byte = Some(group);
                    }
                }
            }
            accesses.sort_by_key(|access| access.1);
            // Without runs, whose parts have one begin.
            accesses.iter_mut().for_each(|access| access.2 += 3 * u32::try_from(access.0).unwrap());
            let all = reuse(&mut of(&accesses, &[], 1 << 20));
            let mut found = [0; 3];
            for (group, reuse) in all {
                found[group as usize % 3] += reuse.overwritten_first.bytes + reuse.overwritten_again.bytes;
            }
            assert_eq!(found, overwritten, "{accesses:?}");
        }
    }

    #[test]
    fn a_sample_of_the_regions_represents_the_file() {
        // Two generations of 4 KiB, far apart, in a gibibyte: nearly all of the first is overwritten.
        let mut accesses = Vec::new();
        for generation in 0..2 {
            for n in 0..100_000_u64 {
                let at = (n * 7919 % 100_000) * 10_000;
                accesses.push((
                    generation * 1_000_000 + n,
                    0,
                    u32::try_from(generation).unwrap(),
                    WRITE,
                    at,
                    at + 4096,
                ));
            }
        }
        let mut file = of(&accesses, &[], 10_000);
        assert!(file.extents.len() <= 10_000 && file.scale() >= 16, "{}", file.scale());
        let scale = file.scale();
        let found = reuse(&mut file)[&0].overwritten_first;
        let share = (found.bytes * scale) as f64 / (100_000.0 * 4096.0);
        assert!((0.8..1.2).contains(&share), "{share}");
    }
}
