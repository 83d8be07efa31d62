//! Classification of accesses as sequential, strided or random, from the view of one rank.

use super::model::PatternCounts;

/// State of the accesses of one rank to one file in one direction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PatternDetector {
    last: Option<(i64, i64)>,
    /// Distance of the last two begins, if the last access was a jump.
    jump_bytes: Option<i64>,
    /// The last jump was counted as random; a second one of equal distance makes it strided.
    is_unpaired: bool,
    pub(super) pattern: PatternCounts,
}

impl PatternDetector {
    pub(super) fn add_contiguous(&mut self, begin: i64, end: i64) {
        match self.last {
            Some((_, last_end)) if last_end != begin => self.jump(begin),
            _ => {
                self.pattern.sequential += 1;
                (self.jump_bytes, self.is_unpaired) = (None, false);
            }
        }
        self.last = Some((begin, end));
    }

    fn jump(&mut self, begin: i64) {
        let distance = self.last.map(|(last, _)| begin.wrapping_sub(last));
        if distance == self.jump_bytes {
            self.pattern.strided += 1 + u64::from(self.is_unpaired);
            self.pattern.random -= u64::from(self.is_unpaired);
            self.is_unpaired = false;
        } else {
            self.pattern.random += 1;
            self.is_unpaired = true;
        }
        self.jump_bytes = distance;
    }

    /// Adds a noncontiguous access through a view.
    pub(super) fn add_noncontiguous(&mut self, begin: i64, end: i64) {
        self.pattern.strided += 1;
        (self.last, self.jump_bytes, self.is_unpaired) = (Some((begin, end)), None, false);
    }

    pub(super) fn add_unplaced(&mut self) {
        self.pattern.unknown += 1;
        *self = Self { pattern: self.pattern, ..Self::default() };
    }
}

impl PatternCounts {
    pub(super) fn add(&mut self, other: Self) {
        self.sequential += other.sequential;
        self.strided += other.strided;
        self.random += other.random;
        self.unknown += other.unknown;
    }

    /// All accesses.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.sequential + self.strided + self.random + self.unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(begins: &[i64]) -> (u64, u64, u64) {
        let mut follower = PatternDetector::default();
        begins.iter().for_each(|begin| follower.add_contiguous(*begin, begin + 10));
        let p = follower.pattern;
        assert_eq!(p.total(), begins.len() as u64);
        (p.sequential, p.strided, p.random)
    }

    #[test]
    fn rows_strides_and_jumps() {
        assert_eq!(of(&[5, 15, 25]), (3, 0, 0));
        assert_eq!(of(&[0, 40, 80, 120]), (1, 3, 0));
        assert_eq!(of(&[120, 80, 40, 0]), (1, 3, 0));
        assert_eq!(of(&[0, 100, 50, 7]), (1, 0, 3));
        assert_eq!(of(&[0, 40, 80, 90, 130, 170]), (2, 4, 0));
        assert_eq!(of(&[0, 40]), (1, 0, 1));
        // Repeated access to the same offset has stride 0.
        assert_eq!(of(&[0, 0, 0]), (1, 2, 0));
    }
}
