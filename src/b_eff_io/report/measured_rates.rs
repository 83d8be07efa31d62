//! Rates of a run, for the plan of another.

use crate::b_eff_io::records::RunResult;
use crate::b_eff_io::values::{derive, PartitionValue};
use crate::frame::values::{MPI_IO, NULL_BACKEND};

/// Bytes per second of all ranks together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasuredRates {
    /// All access methods: all bytes by all time.
    pub all: f64,
    /// Write, rewrite, read.
    pub accesses: [f64; 3],
}

impl MeasuredRates {
    /// Rates of the largest partition with bytes of all access methods, through MPI-IO, or else through the first backend that has them.
    #[must_use]
    pub fn of(result: &RunResult) -> Option<Self> {
        let derived = derive(result);
        let is_usable = |p: &&PartitionValue| {
            p.backend != NULL_BACKEND
                && p.access_bytes.iter().all(|b| *b > 0)
                && p.access_seconds.iter().all(|s| *s > 0.0)
        };
        let usable: Vec<&PartitionValue> = derived.partitions.iter().filter(is_usable).collect();
        let backend = usable.iter().find(|p| p.backend == MPI_IO).or(usable.first())?.backend.as_str();
        let p = usable.iter().filter(|p| p.backend == backend).max_by_key(|p| p.ranks)?;
        let bytes = p.access_bytes.map(|bytes| bytes as f64);
        let accesses = [0, 1, 2].map(|access| bytes[access] / p.access_seconds[access]);
        Some(Self { all: bytes.iter().sum::<f64>() / p.access_seconds.iter().sum::<f64>(), accesses })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::report::fixtures;

    #[test]
    fn the_rates_are_those_of_the_largest_partition_through_mpi_io() {
        let result = fixtures::complete();
        let rates = MeasuredRates::of(&result).unwrap();
        let derived = derive(&result);
        let p = derived.partitions.iter().find(|p| p.backend == "mpiio" && p.ranks == 4).unwrap();
        for (access, rate) in rates.accesses.iter().enumerate() {
            assert!((rate - p.access_bytes[access] as f64 / p.access_seconds[access]).abs() < 1e-6);
        }
        assert!(rates.all > 0.0);
        assert_eq!(MeasuredRates::of(&fixtures::interrupted()), None, "nothing was read");
    }
}
