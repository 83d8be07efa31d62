//! Distribution of call sizes in bounded memory.

use super::model::SizeDistribution;

/// Maximum number of distinct sizes that are counted exactly.
const MAX_EXACT_SIZES: usize = 64;

#[derive(Clone, Debug, Default)]
pub(super) struct SizeCounter {
    /// Distinct sizes with their counts, until there are too many.
    exact: Vec<(u64, u64)>,
    /// Index of the last size; most calls have the size of the previous one.
    last_index: usize,
    overflow: bool,
    /// Counts by the number of bits of size - 1: class n goes up to 2^n.
    classes: Vec<u64>,
    min: Option<u64>,
    max: u64,
    count: u64,
}

impl SizeCounter {
    pub(super) fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.min = Some(self.min.map_or(bytes, |min| min.min(bytes)));
        self.max = self.max.max(bytes);
        let class = (u64::BITS - bytes.saturating_sub(1).leading_zeros()) as usize;
        if self.classes.len() <= class {
            self.classes.resize(class + 1, 0);
        }
        self.classes[class] += 1;
        if self.overflow {
            return;
        }
        if self.exact.get(self.last_index).is_none_or(|known| known.0 != bytes) {
            self.last_index = self.exact.iter().position(|known| known.0 == bytes).unwrap_or(self.exact.len());
        }
        if let Some(known) = self.exact.get_mut(self.last_index) {
            known.1 += 1;
        } else if self.exact.len() < MAX_EXACT_SIZES {
            self.exact.push((bytes, 1));
        } else {
            (self.overflow, self.exact) = (true, Vec::new());
        }
    }

    /// Adds the sizes of another counter.
    pub(super) fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.min = self.min.into_iter().chain(other.min).min();
        self.max = self.max.max(other.max);
        self.classes.resize(self.classes.len().max(other.classes.len()), 0);
        self.classes.iter_mut().zip(&other.classes).for_each(|(sum, n)| *sum += n);
        for (size, n) in &other.exact {
            match self.exact.iter_mut().find(|known| known.0 == *size) {
                Some(known) => known.1 += n,
                None => self.exact.push((*size, *n)),
            }
        }
        self.overflow |= other.overflow || self.exact.len() > MAX_EXACT_SIZES;
        if self.overflow {
            self.exact.clear();
        }
    }

    /// Returns the distribution, None without calls.
    pub(super) fn sizes(&self) -> Option<SizeDistribution> {
        let min_bytes = self.min?;
        let mut exact = self.exact.clone();
        exact.sort_unstable();
        let limit = |class: usize| 1_u64.checked_shl(u32::try_from(class).unwrap_or(64)).unwrap_or(u64::MAX);
        let classes: Vec<(u64, u64)> =
            self.classes.iter().enumerate().filter(|(_, n)| **n > 0).map(|(class, n)| (limit(class), *n)).collect();
        let median = median(if self.overflow { &classes } else { &exact }, self.count);
        Some(SizeDistribution {
            min_bytes,
            median_bytes: median.clamp(min_bytes, self.max),
            median_exact: !self.overflow,
            max_bytes: self.max,
            classes,
        })
    }
}

/// Median of sorted values with their counts.
fn median(sorted: &[(u64, u64)], count: u64) -> u64 {
    let mut left = count.div_ceil(2);
    for (value, n) in sorted {
        if left <= *n {
            return *value;
        }
        left -= n;
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_is_exact_for_few_sizes_and_near_for_many() {
        let of = |sizes: &mut dyn Iterator<Item = u64>| {
            let mut counter = SizeCounter::default();
            sizes.for_each(|n| counter.add(n));
            counter.sizes()
        };
        assert!(of(&mut std::iter::empty()).is_none());
        let few = of(&mut [8, 8, 100, 7, 4096].into_iter()).unwrap();
        assert_eq!((few.min_bytes, few.median_bytes, few.max_bytes, few.median_exact), (7, 8, 4096, true));
        assert_eq!(few.classes, [(8, 3), (128, 1), (4096, 1)]);
        let many = of(&mut (0..1000)).unwrap();
        assert!(!many.median_exact && (500..=1000).contains(&many.median_bytes), "{many:?}");
        assert_eq!(many.classes.iter().map(|class| class.1).sum::<u64>(), 1000);
        assert_eq!(of(&mut [u64::MAX].into_iter()).unwrap().max_bytes, u64::MAX);
    }

    #[test]
    fn merged_counters_are_those_of_all_sizes() {
        for (one, other) in
            [(vec![1, 1, 9], vec![9, 70_000]), (vec![], vec![3]), ((0..40).collect(), (20..90).collect())]
        {
            let of = |sizes: &mut dyn Iterator<Item = &u64>| {
                let mut counter = SizeCounter::default();
                sizes.for_each(|n| counter.add(*n));
                counter
            };
            let mut merged = of(&mut one.iter());
            merged.merge(&of(&mut other.iter()));
            let all = of(&mut one.iter().chain(&other));
            assert_eq!(format!("{:?}", merged.sizes()), format!("{:?}", all.sizes()));
        }
    }
}
