//! Data without an order: how often each value of a byte occurs.

/// Counts of the 256 values of a byte. Enough for parts that are too short to be recognised: what is lost or doubled shows,
/// what is exchanged does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram([u64; 256]);

impl Default for Histogram {
    fn default() -> Self {
        Self([0; 256])
    }
}

impl Histogram {
    /// Counts these bytes too.
    pub fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0[usize::from(*byte)] += 1;
        }
    }

    /// The counts by value, to be summed over ranks.
    pub fn as_mut_slice(&mut self) -> &mut [u64] {
        &mut self.0
    }

    /// Bytes counted.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Fewest bytes that are wrong if these were expected: a byte too many may stand for one that is missing.
    #[must_use]
    pub fn bytes_wrong(&self, expected: &Self) -> u64 {
        let too_many = |a: &Self, b: &Self| a.0.iter().zip(&b.0).map(|(a, b)| a.saturating_sub(*b)).sum::<u64>();
        too_many(self, expected).max(too_many(expected, self))
    }
}
