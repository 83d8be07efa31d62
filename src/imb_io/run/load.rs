//! The CPU load of the overlap: computation of a known length beside which a transfer may go on.

use std::hint::black_box;
use std::time::Instant;

use beff_ffi::{Comm, MpiError};

/// Order of the matrix: with its vectors less than 1 KiB, in the nearest cache of any processor.
const ORDER: usize = 10;
/// Products of matrix and vector in one unit: about 1 us, so that a load of 100 us is met within 1 %.
const PRODUCTS: u32 = 48;
/// A block whose time tells that of a unit: long beside the clock, short beside a time slice of the system.
const BLOCK_SECONDS: f64 = 1e-3;
/// Blocks; their median is not moved by the few that are interrupted.
const BLOCKS: usize = 21;
/// Loads that are asked for as a check.
const CHECK_SECONDS: [f64; 3] = [100e-6, 1e-3, 10e-3];
/// Times each is asked for.
const CHECKS: usize = 5;

/// A load in units of a fixed amount of computation: no allocation, no system call, no MPI.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Time of one unit.
    pub unit_seconds: f64,
}

impl Load {
    /// Finds the time of a unit, that of the slowest rank while all of them compute, and how well it holds: the largest
    /// relative difference between a load as asked and as it took, medians of several, over lengths from 100 us to 10 ms
    /// and all ranks. Collective; takes about 0.1 s.
    ///
    /// # Errors
    /// MPI between the ranks.
    pub fn calibrate(comm: &Comm) -> Result<(Self, f64), MpiError> {
        comm.barrier()?;
        let mut slowest = [unit_seconds()];
        comm.max_f64(&mut slowest)?;
        let load = Self { unit_seconds: slowest[0] };
        let mut largest = [0.0_f64];
        for asked in CHECK_SECONDS {
            comm.barrier()?;
            let taken = median(&mut [(); CHECKS].map(|()| load.run(asked)));
            largest[0] = largest[0].max((taken - asked).abs() / asked);
        }
        comm.max_f64(&mut largest)?;
        Ok((load, largest[0]))
    }

    /// Computes for about `seconds`, in whole units: at least one, so that there is something to overlap with; nothing for 0.
    /// Returns the time it took.
    pub fn run(&self, seconds: f64) -> f64 {
        timed(self.units(seconds))
    }

    fn units(&self, seconds: f64) -> u64 {
        if seconds.is_nan() || seconds <= 0.0 {
            return 0;
        }
        ((seconds / self.unit_seconds).round() as u64).max(1)
    }
}

/// Time of one unit on this rank.
fn unit_seconds() -> f64 {
    // Also wakes the processor up.
    let mut units = 16;
    while timed(units) < BLOCK_SECONDS && units < 1 << 32 {
        units *= 2;
    }
    median(&mut [(); BLOCKS].map(|()| timed(units))) / units as f64
}

/// Seconds that so many units take.
fn timed(units: u64) -> f64 {
    if units == 0 {
        return 0.0;
    }
    // Rows of weights that sum up to 1: the vector tends to its mean, and no number gets large, small or slow.
    let matrix: [[f64; ORDER]; ORDER] =
        std::array::from_fn(|row| std::array::from_fn(|column| (1 + (row + column) % ORDER) as f64 / 55.0));
    let matrix = black_box(matrix);
    let mut vector: [f64; ORDER] = std::array::from_fn(|row| row as f64);
    let begin = Instant::now();
    for _ in 0..units {
        unit(&matrix, &mut vector);
    }
    begin.elapsed().as_secs_f64()
}

#[inline(never)]
fn unit(matrix: &[[f64; ORDER]; ORDER], vector: &mut [f64; ORDER]) {
    for _ in 0..PRODUCTS {
        let product = matrix.map(|row| row.iter().zip(vector.iter()).map(|(a, b)| a * b).sum());
        *vector = black_box(product);
    }
}

/// Median of an odd number of values.
fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vector_tends_to_its_mean() {
        let matrix: [[f64; ORDER]; ORDER] =
            std::array::from_fn(|row| std::array::from_fn(|column| (1 + (row + column) % ORDER) as f64 / 55.0));
        let mut vector: [f64; ORDER] = std::array::from_fn(|row| row as f64);
        for _ in 0..1000 {
            unit(&matrix, &mut vector);
        }
        assert!(vector.iter().all(|value| (value - 4.5).abs() < 1e-9), "{vector:?}");
    }

    #[test]
    fn nothing_takes_no_time() {
        let load = Load { unit_seconds: 1e-6 };
        for seconds in [0.0, -1.0, f64::NAN] {
            assert_eq!(load.run(seconds), 0.0, "{seconds}");
        }
    }

    /// That units take their time is seen under planted time: `both_runs_of_an_overlap_are_their_calls`.
    #[test]
    fn more_seconds_are_more_units() {
        let load = Load { unit_seconds: 1e-6 };
        let units = [1e-9, 0.4e-6, 1.4e-6, 1.6e-6, 50e-6, 500e-6, 5e-3].map(|seconds| load.units(seconds));
        assert_eq!(units, [1, 1, 1, 2, 50, 500, 5000]);
        assert_eq!(Load { unit_seconds: 2e-6 }.units(5e-3), 2500);
        assert_eq!(median(&mut [3.0, 1.0, 9.0, 2.0, 4.0]), 3.0);
    }

    #[test]
    fn a_calibration_is_a_number() {
        let (load, error) = Load::calibrate(&Comm::own()).unwrap();
        assert!(load.unit_seconds.is_finite() && load.unit_seconds > 0.0, "{load:?}");
        assert!(error.is_finite() && error >= 0.0);
        assert!(load.run(1e-9) > 0.0, "at least one unit");
    }
}
