//! A region of the file divided into pieces, each moved by one aggregator: pure arithmetic, the same on every rank.

/// Regions of a few of these are divided evenly among the aggregators instead of by domains.
const LEAST_PIECE_BYTES: u64 = 64 << 10;

/// What does not change while a pattern runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grid {
    /// Bytes of a sector; pieces begin and end at multiples of it, except at the ends of a region.
    pub(crate) align: u64,
    /// Bytes of a domain, a multiple of `align`.
    pub(crate) domain: u64,
    /// Aggregators.
    pub(crate) aggregators: u64,
}

/// Bytes `begin .. end` of the file, moved by aggregator `owner`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) owner: u64,
}

impl Grid {
    /// Domains of about `domain_bytes`, rounded up to whole sectors, at least four, and small enough for one message.
    pub(crate) fn new(align: u64, domain_bytes: u64, aggregators: u64) -> Self {
        let domain = domain_bytes.min(1 << 30).max(4 * align).next_multiple_of(align);
        Self { align, domain, aggregators: aggregators.max(1) }
    }

    /// The first sector boundary at or below `offset`.
    pub(crate) fn down(&self, offset: u64) -> u64 {
        offset - offset % self.align
    }

    /// The first sector boundary at or above `offset`.
    pub(crate) fn up(&self, offset: u64) -> u64 {
        offset.next_multiple_of(self.align)
    }

    /// Bytes of the whole sectors that a piece touches, at most.
    pub(crate) fn most_piece_bytes(&self) -> u64 {
        self.domain + 2 * self.align
    }
}

/// A region and its pieces.
///
/// Long regions are cut at multiples of the domain, and domain number j belongs to aggregator j modulo their number: on a
/// file system that stripes, an aggregator stays with its servers. Short ones are divided evenly. If an aggregator holds
/// the beginning of the first sector from before, that sector is its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    grid: Grid,
    begin: u64,
    end: u64,
    /// Where the pieces of the grid begin: behind a first sector that is a piece of its own.
    body: u64,
    holder: u64,
    /// Number of even pieces; 0: by domains.
    even: u64,
}

impl Cut {
    /// Divides `begin .. end`; `holder` has the beginning of the first sector.
    pub(crate) fn new(grid: Grid, begin: u64, end: u64, holder: Option<u64>) -> Self {
        let len = end - begin;
        let mut cut = Self { grid, begin, end, body: begin, holder: holder.unwrap_or(0), even: 0 };
        if len < grid.aggregators * grid.domain {
            let least = LEAST_PIECE_BYTES.max(2 * grid.align).min(grid.domain);
            cut.even = (len / least).clamp(1, grid.aggregators);
            // An even piece must fit the memory of a domain.
            while len.div_ceil(cut.even) > grid.domain {
                cut.even += 1;
            }
        } else if let Some(holder) = holder {
            if begin / grid.domain % grid.aggregators != holder {
                cut.body = grid.up(begin);
            }
        }
        cut
    }

    /// Pieces, in the order of the file.
    pub(crate) fn count(&self) -> u64 {
        if self.begin == self.end {
            return 0;
        }
        if self.even > 0 {
            return self.even;
        }
        (self.end - 1) / self.grid.domain - self.body / self.grid.domain + 1 + self.head()
    }

    /// 1 if the first sector is a piece of its own.
    fn head(&self) -> u64 {
        u64::from(self.body > self.begin)
    }

    /// Piece number `number`.
    pub(crate) fn piece(&self, number: u64) -> Piece {
        if self.even > 0 {
            let owner = (self.holder + number) % self.grid.aggregators;
            return Piece { begin: self.even_bound(number), end: self.even_bound(number + 1), owner };
        }
        if number < self.head() {
            return Piece { begin: self.begin, end: self.body, owner: self.holder };
        }
        let domain = self.body / self.grid.domain + number - self.head();
        Piece {
            begin: self.body.max(domain * self.grid.domain),
            end: self.end.min((domain + 1) * self.grid.domain),
            owner: domain % self.grid.aggregators,
        }
    }

    fn even_bound(&self, number: u64) -> u64 {
        if number == 0 {
            self.begin
        } else if number >= self.even {
            self.end
        } else {
            let part = u128::from(self.end - self.begin) * u128::from(number) / u128::from(self.even);
            // Smaller than the region.
            self.grid.up(self.begin + part as u64)
        }
    }

    /// Steps in which every aggregator has at most one piece.
    pub(crate) fn steps(&self) -> u64 {
        self.head() + (self.count() - self.head()).div_ceil(self.grid.aggregators)
    }

    /// The numbers of the pieces of a step.
    pub(crate) fn step(&self, step: u64) -> std::ops::Range<u64> {
        if step < self.head() {
            return 0..1;
        }
        let first = self.head() + (step - self.head()) * self.grid.aggregators;
        first..(first + self.grid.aggregators).min(self.count())
    }

    /// The first piece at or behind `number` that belongs to `owner`.
    pub(crate) fn next_of(&self, owner: u64, number: u64) -> Option<(u64, Piece)> {
        // Owners follow each other in turn: one of the next few is it.
        let candidates = number..self.count().min(number + self.grid.aggregators + 1);
        candidates.map(|n| (n, self.piece(n))).find(|(_, p)| p.owner == owner)
    }

    /// The aggregator that keeps the last sector, if the region ends inside of one.
    pub(crate) fn last_holder(&self) -> Option<u64> {
        let inside = !self.end.is_multiple_of(self.grid.align) && self.count() > 0;
        inside.then(|| self.piece(self.count() - 1).owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_byte_belongs_to_one_piece(
            align_shift in 9_u32..13, domain in 1_u64..200_000, aggregators in 1_u64..6,
            begin in 0_u64..1_000_000, len in 1_u64..2_000_000, holder in proptest::option::of(0_u64..6),
        ) {
            let grid = Grid::new(1 << align_shift, domain, aggregators);
            let holder = holder.map(|h| h % aggregators).filter(|_| begin % grid.align != 0);
            let cut = Cut::new(grid, begin, begin + len, holder);
            let mut at = begin;
            for number in 0..cut.count() {
                let p = cut.piece(number);
                prop_assert!(p.owner < aggregators);
                prop_assert_eq!(p.begin, at);
                prop_assert!(p.end > p.begin, "{:?}", p);
                prop_assert!(number == 0 || p.begin.is_multiple_of(grid.align));
                prop_assert!(grid.up(p.end) - grid.down(p.begin) <= grid.most_piece_bytes());
                at = p.end;
            }
            prop_assert_eq!(at, begin + len);
            if let Some(holder) = holder {
                prop_assert_eq!(cut.piece(0).owner, holder);
            }
        }

        #[test]
        fn steps_and_owners_name_every_piece_once(
            domain in 1_u64..100_000, aggregators in 1_u64..6, begin in 0_u64..1_000_000, len in 1_u64..2_000_000,
            holder in proptest::option::of(0_u64..6),
        ) {
            let grid = Grid::new(512, domain, aggregators);
            let holder = holder.map(|h| h % aggregators).filter(|_| begin % grid.align != 0);
            let cut = Cut::new(grid, begin, begin + len, holder);
            let mut next = 0;
            for step in 0..cut.steps() {
                let mut owners: Vec<u64> = cut.step(step).map(|n| cut.piece(n).owner).collect();
                prop_assert_eq!(cut.step(step).start, next);
                next = cut.step(step).end;
                let pieces = owners.len();
                owners.sort_unstable();
                owners.dedup();
                prop_assert_eq!((owners.len(), pieces > 0), (pieces, true), "two pieces of one aggregator in a step");
            }
            prop_assert_eq!(next, cut.count());
            let mut found = 0;
            for owner in 0..aggregators {
                let mut number = 0;
                while let Some((n, piece)) = cut.next_of(owner, number) {
                    prop_assert_eq!((piece, piece.owner), (cut.piece(n), owner));
                    number = n + 1;
                    found += 1;
                }
            }
            prop_assert_eq!(found, cut.count());
        }
    }

    #[test]
    fn long_regions_keep_domains_with_their_aggregators() {
        let grid = Grid::new(512, 1 << 20, 2);
        let cut = Cut::new(grid, (1 << 20) + 8, 5 << 20, Some(0));
        // Domain 1 belongs to aggregator 1, its first sector to the one that has begun it.
        assert_eq!(cut.piece(0), Piece { begin: (1 << 20) + 8, end: (1 << 20) + 512, owner: 0 });
        assert_eq!(cut.piece(1), Piece { begin: (1 << 20) + 512, end: 2 << 20, owner: 1 });
        assert_eq!((cut.piece(2).owner, cut.count()), (0, 5));
        assert_eq!((cut.steps(), cut.step(0), cut.step(2)), (3, 0..1, 3..5));
        assert_eq!(cut.last_holder(), None);
        assert_eq!(Cut::new(grid, 0, (3 << 20) + 8, None).last_holder(), Some(1));
    }

    #[test]
    fn short_regions_are_divided_evenly_if_it_is_worth_it() {
        let grid = Grid::new(512, 4 << 20, 4);
        let pieces = |len| Cut::new(grid, 0, len, None).count();
        assert_eq!((pieces(1000), pieces(100 << 10), pieces(1 << 20), pieces(15 << 20)), (1, 1, 4, 4));
    }
}
