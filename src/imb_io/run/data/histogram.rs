//! Histogram of byte values, for data in unknown order.

/// Counts of the 256 byte values, for portions that are too short to be identified: lost and duplicate data is detected,
/// exchanged data is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram([u64; 256]);

impl Default for Histogram {
    fn default() -> Self {
        Self([0; 256])
    }
}

impl Histogram {
    /// Adds these bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0[usize::from(*byte)] += 1;
        }
    }

    /// Counts by value, to be summed over ranks.
    pub fn as_mut_slice(&mut self) -> &mut [u64] {
        &mut self.0
    }

    /// Bytes counted.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Minimum number of wrong bytes: a surplus byte may replace a missing one.
    #[must_use]
    pub fn bytes_wrong(&self, expected: &Self) -> u64 {
        let too_many = |a: &Self, b: &Self| a.0.iter().zip(&b.0).map(|(a, b)| a.saturating_sub(*b)).sum::<u64>();
        too_many(self, expected).max(too_many(expected, self))
    }
}
