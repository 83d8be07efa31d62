//! Rings with a computed order: the six ring patterns, the worst-case cycle, pairs.

use super::ExchangeStep;

/// Number of ring patterns.
pub const RING_PATTERNS: u64 = 6;

/// Steps of a rank in a ring of `size`: to the left and from the right, then the reverse. In a ring of two, both neighbours
/// are the same process, and the second message is omitted; a ring of one has none.
pub(super) fn steps(size: u64, left: u64, right: u64) -> Vec<ExchangeStep> {
    let there = ExchangeStep { send_to: Some(left), receive_from: Some(right) };
    let back = ExchangeStep { send_to: Some(right), receive_from: Some(left) };
    match size {
        0 | 1 => Vec::new(),
        2 => vec![there],
        _ => vec![there, back],
    }
}

/// Messages of all ranks of a ring in one iteration.
pub(super) fn messages(size: u64) -> u64 {
    match size {
        0 | 1 => 0,
        2 => 2,
        _ => 2 * size,
    }
}

/// Partition of the ranks into rings of consecutive ranks: some of one size, then some of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingPartition {
    /// (Number, size) of the rings in the order of the ranks; the second number may be 0.
    parts: [(u64, u64); 2],
}

impl RingPartition {
    /// Rings of ring pattern `number`, from 1 to [`RING_PATTERNS`], by the formula of release 3.6. With s the standard size:
    /// k = max(1, min(int(ranks / s + 0.4), int(ranks / 2))) rings, whose sizes differ by 1 at most.
    ///
    /// By the paper, pattern 2 is one ring up to 7 processes; by the formula, and in the release, 7 processes are two rings
    /// of 4 and 3. This function follows the formula.
    #[must_use]
    pub fn for_ring_pattern(number: u64, ranks: u64) -> Self {
        let size = standard_size(number, ranks);
        // int(ranks / size + 0.4) in integer arithmetic.
        let rings = ((5 * ranks + 2 * size) / (5 * size)).min(ranks / 2).max(1);
        let low = ranks / rings;
        let high_rings = ranks - low * rings;
        let (low, high) = ((rings - high_rings, low), (high_rings, low + 1));
        let high_first = low.1 % 2 == 1 && high_rings > 0;
        Self { parts: if high_first { [high, low] } else { [low, high] } }
    }

    /// Pairs of ranks 2k and 2k + 1: the best bisection. The last of an odd number has no partner.
    #[must_use]
    pub fn pairs(ranks: u64) -> Self {
        Self { parts: [(ranks / 2, 2), (ranks % 2, 1)] }
    }

    /// Size of the ring of a rank, and its left and right neighbours.
    pub(super) fn neighbours(&self, rank: u64) -> (u64, u64, u64) {
        let [(number, first), (_, second)] = self.parts;
        let (begin, size) = if rank < number * first { (0, first) } else { (number * first, second) };
        let start = begin + (rank - begin) / size * size;
        let position = rank - start;
        (size, start + (position + size - 1) % size, start + (position + 1) % size)
    }

    pub(super) fn messages(&self) -> u64 {
        self.parts.iter().map(|&(number, size)| number * messages(size)).sum()
    }

    pub(super) fn largest_ring(&self) -> u64 {
        self.parts.iter().filter(|(number, _)| *number > 0).map(|&(_, size)| size).max().unwrap_or(0)
    }

    /// `5x2+3`: five rings of two, then one of three.
    #[must_use]
    pub fn shape(&self) -> String {
        let parts = self.parts.iter().filter(|(number, _)| *number > 0);
        let parts: Vec<String> = parts
            .map(|(number, size)| if *number == 1 { size.to_string() } else { format!("{number}x{size}") })
            .collect();
        parts.join("+")
    }

    /// The ranks of each ring.
    #[must_use]
    pub fn rings(&self) -> Vec<Vec<u64>> {
        let sizes = self.parts.iter().flat_map(|&(number, size)| (0..number).map(move |_| size));
        let starts = sizes.scan(0, |next, size| {
            let start = *next;
            *next += size;
            Some((start, size))
        });
        starts.map(|(start, size)| (start..start + size).collect()).collect()
    }
}

/// Standard ring size of ring pattern `number`: 2, 4, 8, a quarter (at least 16), half (at least 32), all.
fn standard_size(number: u64, ranks: u64) -> u64 {
    let size = match number {
        1 => 2,
        2 => 4,
        3 => 8,
        4 => (ranks / 4).max(16),
        5 => (ranks / 2).max(32),
        _ => ranks,
    };
    size.min(ranks)
}

/// Rank at a position of the worst-case cycle: even ranks ascending, then odd ranks descending. Rank i is at position i / 2 if
/// it is even, and at position ranks - 1 - i / 2 if it is odd.
pub(super) fn worst_cycle_rank(ranks: u64, position: u64) -> u64 {
    if position < ranks.div_ceil(2) {
        2 * position
    } else {
        2 * (ranks - 1 - position) + 1
    }
}

pub(super) fn worst_cycle_neighbours(ranks: u64, rank: u64) -> (u64, u64) {
    let position = if rank.is_multiple_of(2) { rank / 2 } else { ranks - 1 - rank / 2 };
    let at = |position| worst_cycle_rank(ranks, position % ranks);
    (at(position + ranks - 1), at(position + 1))
}

/// The pairs of the worst bisection: ranks k and ranks - 1 - k; the middle one of an odd number has no partner.
pub(super) fn mirrored_pairs(ranks: u64) -> Vec<Vec<u64>> {
    let pairs = (0..ranks / 2).map(|k| vec![k, ranks - 1 - k]);
    pairs.chain((ranks % 2 == 1).then(|| vec![ranks / 2])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shapes(ranks: u64) -> Vec<String> {
        (1..=RING_PATTERNS).map(|number| RingPartition::for_ring_pattern(number, ranks).shape()).collect()
    }

    #[test]
    fn check_values() {
        // The specification writes 2+2+3 where a repeated size is otherwise 2x2.
        assert_eq!(shapes(7), ["2x2+3", "4+3", "7", "7", "7", "7"]);
        assert_eq!(shapes(13), ["5x2+3", "2x4+5", "6+7", "13", "13", "13"]);
        assert_eq!(shapes(20), ["10x2", "5x4", "2x10", "20", "20", "20"]);
        assert_eq!(shapes(29), ["13x2+3", "6x4+5", "8+3x7", "14+15", "29", "29"]);
        assert_eq!(shapes(100), ["50x2", "25x4", "8x8+4x9", "4x25", "2x50", "100"]);
        assert_eq!(shapes(2), ["2"; 6]);
        assert_eq!(shapes(3), ["3"; 6]);
        assert_eq!(shapes(4), ["2x2", "4", "4", "4", "4", "4"]);
    }

    /// The formula word by word, in floating point.
    fn by_the_formula(standard: u64, ranks: u64) -> Vec<u64> {
        let rings = ((ranks as f64 / standard as f64 + 0.4) as u64).min((ranks as f64 / 2.0) as u64).max(1);
        let (low, high) = (ranks / rings, ranks / rings + 1);
        let high_rings = ranks - low * rings;
        let mut sizes = vec![low; (rings - high_rings) as usize];
        sizes.extend(vec![high; high_rings as usize]);
        if low % 2 == 1 && high_rings > 0 {
            sizes.reverse();
        }
        sizes
    }

    #[test]
    fn every_partition_covers_every_rank_once_in_rings_of_the_right_size() {
        for ranks in 2..=1024_u64 {
            let standards = [2, 4, 8, 16.max(ranks / 4), 32.max(ranks / 2), ranks].map(|s| s.min(ranks));
            for (number, standard) in (1..).zip(standards) {
                let blocks = RingPartition::for_ring_pattern(number, ranks);
                let rings = blocks.rings();
                let sizes: Vec<u64> = rings.iter().map(|r| r.len() as u64).collect();
                assert_eq!(sizes, by_the_formula(standard, ranks), "{ranks} ranks, pattern {number}");
                assert_eq!(rings.concat(), (0..ranks).collect::<Vec<_>>(), "{ranks} ranks, pattern {number}");
                assert!(sizes.iter().all(|&size| size >= 2));
            }
        }
    }

    #[test]
    fn the_worst_cycle_goes_up_the_even_and_down_the_odd_ranks() {
        let order = |ranks| (0..ranks).map(|p| worst_cycle_rank(ranks, p)).collect::<Vec<_>>();
        assert_eq!(order(8), [0, 2, 4, 6, 7, 5, 3, 1]);
        assert_eq!(order(7), [0, 2, 4, 6, 5, 3, 1]);
        assert_eq!(order(2), [0, 1]);
        assert_eq!(worst_cycle_neighbours(7, 6), (4, 5));
        assert_eq!(worst_cycle_neighbours(7, 0), (1, 2));
    }

    #[test]
    fn bisections_pair_all_but_the_last_of_an_odd_number() {
        assert_eq!(RingPartition::pairs(6).shape(), "3x2");
        assert_eq!(RingPartition::pairs(7).shape(), "3x2+1");
        assert_eq!(RingPartition::pairs(2).shape(), "2");
        assert_eq!(RingPartition::pairs(3).rings(), [vec![0, 1], vec![2]]);
        assert_eq!(mirrored_pairs(5), [vec![0, 4], vec![1, 3], vec![2]]);
        assert_eq!(mirrored_pairs(2), [[0, 1]]);
    }
}
