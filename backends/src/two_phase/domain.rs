//! A region of the file partitioned into file domains, one aggregator for each: arithmetic, with the same result on every rank.

/// Regions shorter than a domain per aggregator are divided evenly among the aggregators, in domains of at least this length.
const MIN_DOMAIN_BYTES: u64 = 64 << 10;

/// Parameters that are constant for a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DomainGrid {
    /// Bytes of a sector; domains begin and end at multiples of it, except at the ends of a region.
    pub(crate) sector_bytes: u64,
    /// Bytes of a domain, a multiple of the sector.
    pub(crate) domain_bytes: u64,
    pub(crate) aggregators: u64,
}

/// Bytes `begin .. end` of the file, transferred by one aggregator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileDomain {
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) aggregator: u64,
}

impl DomainGrid {
    /// Domains of about `domain_bytes`, rounded up to whole sectors, at least four, and small enough for one message.
    pub(crate) fn new(sector_bytes: u64, domain_bytes: u64, aggregators: u64) -> Self {
        let domain_bytes = domain_bytes.min(1 << 30).max(4 * sector_bytes).next_multiple_of(sector_bytes);
        Self { sector_bytes, domain_bytes, aggregators: aggregators.max(1) }
    }

    /// The first sector boundary at or below `offset`.
    pub(crate) fn floor(&self, offset: u64) -> u64 {
        offset - offset % self.sector_bytes
    }

    /// The first sector boundary at or above `offset`.
    pub(crate) fn ceil(&self, offset: u64) -> u64 {
        offset.next_multiple_of(self.sector_bytes)
    }

    /// Maximum bytes of the whole sectors that a domain overlaps.
    pub(crate) fn max_domain_bytes(&self) -> u64 {
        self.domain_bytes + 2 * self.sector_bytes
    }
}

/// A region and its file domains.
///
/// Long regions are divided at multiples of the domain length, and domain number j belongs to aggregator j modulo their number: on a
/// striped file system an aggregator always accesses the same servers. Short regions are divided evenly. If an aggregator holds
/// the beginning of the first sector from the preceding region, the sector belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RegionPartition {
    grid: DomainGrid,
    begin: u64,
    end: u64,
    /// Where the regular domains begin: after a first sector that is a domain by itself.
    body: u64,
    sector_holder: u64,
    /// Number of even domains; 0 if divided at multiples of the domain length.
    even_domains: u64,
}

impl RegionPartition {
    /// Divides `begin .. end`; `holder` has the beginning of the first sector.
    pub(crate) fn new(grid: DomainGrid, begin: u64, end: u64, holder: Option<u64>) -> Self {
        let len = end - begin;
        let mut cut = Self { grid, begin, end, body: begin, sector_holder: holder.unwrap_or(0), even_domains: 0 };
        if len < grid.aggregators * grid.domain_bytes {
            let least = MIN_DOMAIN_BYTES.max(2 * grid.sector_bytes).min(grid.domain_bytes);
            cut.even_domains = (len / least).clamp(1, grid.aggregators);
            // An even domain must fit the domain buffer.
            while len.div_ceil(cut.even_domains) > grid.domain_bytes {
                cut.even_domains += 1;
            }
        } else if let Some(holder) = holder {
            if begin / grid.domain_bytes % grid.aggregators != holder {
                cut.body = grid.ceil(begin);
            }
        }
        cut
    }

    /// Number of domains.
    pub(crate) fn count(&self) -> u64 {
        if self.begin == self.end {
            return 0;
        }
        if self.even_domains > 0 {
            return self.even_domains;
        }
        (self.end - 1) / self.grid.domain_bytes - self.body / self.grid.domain_bytes + 1 + self.has_head()
    }

    /// 1 if the first sector is a domain by itself.
    fn has_head(&self) -> u64 {
        u64::from(self.body > self.begin)
    }

    /// Domain number `number`, in file order.
    pub(crate) fn domain(&self, number: u64) -> FileDomain {
        if self.even_domains > 0 {
            let owner = (self.sector_holder + number) % self.grid.aggregators;
            return FileDomain { begin: self.even_bound(number), end: self.even_bound(number + 1), aggregator: owner };
        }
        if number < self.has_head() {
            return FileDomain { begin: self.begin, end: self.body, aggregator: self.sector_holder };
        }
        let domain = self.body / self.grid.domain_bytes + number - self.has_head();
        FileDomain {
            begin: self.body.max(domain * self.grid.domain_bytes),
            end: self.end.min((domain + 1) * self.grid.domain_bytes),
            aggregator: domain % self.grid.aggregators,
        }
    }

    fn even_bound(&self, number: u64) -> u64 {
        if number == 0 {
            self.begin
        } else if number >= self.even_domains {
            self.end
        } else {
            let part = u128::from(self.end - self.begin) * u128::from(number) / u128::from(self.even_domains);
            // Smaller than the region.
            self.grid.ceil(self.begin + part as u64)
        }
    }

    /// Number of steps in which every aggregator has at most one domain.
    pub(crate) fn steps(&self) -> u64 {
        self.has_head() + (self.count() - self.has_head()).div_ceil(self.grid.aggregators)
    }

    /// Numbers of the domains of a step.
    pub(crate) fn step(&self, step: u64) -> std::ops::Range<u64> {
        if step < self.has_head() {
            return 0..1;
        }
        let first = self.has_head() + (step - self.has_head()) * self.grid.aggregators;
        first..(first + self.grid.aggregators).min(self.count())
    }

    /// The first domain from `number` on that belongs to `owner`.
    pub(crate) fn next_for(&self, owner: u64, number: u64) -> Option<(u64, FileDomain)> {
        // Aggregators alternate: one of the next few domains matches.
        let candidates = number..self.count().min(number + self.grid.aggregators + 1);
        candidates.map(|n| (n, self.domain(n))).find(|(_, p)| p.aggregator == owner)
    }

    /// The aggregator that holds the last sector, if the region ends inside a sector.
    pub(crate) fn last_sector_holder(&self) -> Option<u64> {
        let inside = !self.end.is_multiple_of(self.grid.sector_bytes) && self.count() > 0;
        inside.then(|| self.domain(self.count() - 1).aggregator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_byte_belongs_to_one_domain(
            align_shift in 9_u32..13, domain in 1_u64..200_000, aggregators in 1_u64..6,
            begin in 0_u64..1_000_000, len in 1_u64..2_000_000, holder in proptest::option::of(0_u64..6),
        ) {
            let grid = DomainGrid::new(1 << align_shift, domain, aggregators);
            let holder = holder.map(|h| h % aggregators).filter(|_| begin % grid.sector_bytes != 0);
            let cut = RegionPartition::new(grid, begin, begin + len, holder);
            let mut at = begin;
            for number in 0..cut.count() {
                let p = cut.domain(number);
                prop_assert!(p.aggregator < aggregators);
                prop_assert_eq!(p.begin, at);
                prop_assert!(p.end > p.begin, "{:?}", p);
                prop_assert!(number == 0 || p.begin.is_multiple_of(grid.sector_bytes));
                prop_assert!(grid.ceil(p.end) - grid.floor(p.begin) <= grid.max_domain_bytes());
                at = p.end;
            }
            prop_assert_eq!(at, begin + len);
            if let Some(holder) = holder {
                prop_assert_eq!(cut.domain(0).aggregator, holder);
            }
        }

        #[test]
        fn steps_and_aggregators_cover_every_domain_once(
            domain in 1_u64..100_000, aggregators in 1_u64..6, begin in 0_u64..1_000_000, len in 1_u64..2_000_000,
            holder in proptest::option::of(0_u64..6),
        ) {
            let grid = DomainGrid::new(512, domain, aggregators);
            let holder = holder.map(|h| h % aggregators).filter(|_| begin % grid.sector_bytes != 0);
            let cut = RegionPartition::new(grid, begin, begin + len, holder);
            let mut next = 0;
            for step in 0..cut.steps() {
                let mut owners: Vec<u64> = cut.step(step).map(|n| cut.domain(n).aggregator).collect();
                prop_assert_eq!(cut.step(step).start, next);
                next = cut.step(step).end;
                let pieces = owners.len();
                owners.sort_unstable();
                owners.dedup();
                prop_assert_eq!((owners.len(), pieces > 0), (pieces, true), "two domains of one aggregator in a step");
            }
            prop_assert_eq!(next, cut.count());
            let mut found = 0;
            for owner in 0..aggregators {
                let mut number = 0;
                while let Some((n, piece)) = cut.next_for(owner, number) {
                    prop_assert_eq!((piece, piece.aggregator), (cut.domain(n), owner));
                    number = n + 1;
                    found += 1;
                }
            }
            prop_assert_eq!(found, cut.count());
        }
    }

    #[test]
    fn long_regions_keep_domains_with_their_aggregators() {
        let grid = DomainGrid::new(512, 1 << 20, 2);
        let cut = RegionPartition::new(grid, (1 << 20) + 8, 5 << 20, Some(0));
        // Domain 1 belongs to aggregator 1, its first sector to the aggregator that holds its beginning.
        assert_eq!(cut.domain(0), FileDomain { begin: (1 << 20) + 8, end: (1 << 20) + 512, aggregator: 0 });
        assert_eq!(cut.domain(1), FileDomain { begin: (1 << 20) + 512, end: 2 << 20, aggregator: 1 });
        assert_eq!((cut.domain(2).aggregator, cut.count()), (0, 5));
        assert_eq!((cut.steps(), cut.step(0), cut.step(2)), (3, 0..1, 3..5));
        assert_eq!(cut.last_sector_holder(), None);
        assert_eq!(RegionPartition::new(grid, 0, (3 << 20) + 8, None).last_sector_holder(), Some(1));
    }

    #[test]
    fn short_regions_are_divided_evenly_if_it_is_worth_it() {
        let grid = DomainGrid::new(512, 4 << 20, 4);
        let pieces = |len| RegionPartition::new(grid, 0, len, None).count();
        assert_eq!((pieces(1000), pieces(100 << 10), pieces(1 << 20), pieces(15 << 20)), (1, 1, 4, 4));
    }
}
