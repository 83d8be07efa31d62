//! The CPU load of the overlap: a computation of calibrated length that may overlap a transfer.

use std::hint::black_box;

use beff_ffi::{Comm, MpiError};

use crate::frame::run::clock::Instant;

/// Order of the matrix: with its vectors less than 1 KiB, within the L1 cache of any processor.
const ORDER: usize = 10;
/// Matrix-vector products in one unit: about 1 us, so that a load of 100 us is accurate within 1 %.
const PRODUCTS: u32 = 48;
/// Length of a calibration block: long compared with the clock resolution, short compared with a time slice of the scheduler.
const BLOCK_SECONDS: f64 = 1e-3;
/// Number of blocks; a few interrupted ones do not change the median.
const BLOCKS: usize = 21;
/// Loads that check the calibration.
const CHECK_SECONDS: [f64; 3] = [100e-6, 1e-3, 10e-3];
/// Runs of each check.
const CHECKS: usize = 5;

/// A load in units of a fixed amount of computation: no allocation, no system call, no MPI.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ComputeLoad {
    /// Time of one unit.
    pub unit_seconds: f64,
}

impl ComputeLoad {
    /// Measures the time of a unit on the slowest rank while all ranks compute, and the calibration error: the largest relative
    /// difference between requested and measured load (medians), over lengths from 100 us to 10 ms and all ranks. Collective;
    /// takes about 0.1 s.
    ///
    /// # Errors
    /// An MPI call between the ranks failed.
    pub fn calibrate(comm: &Comm) -> Result<(Self, f64), MpiError> {
        Self::calibrate_with(comm, &mut run_units)
    }

    /// [`ComputeLoad::calibrate`], where `timed` computes units and returns their seconds.
    fn calibrate_with(comm: &Comm, timed: &mut dyn FnMut(u64) -> f64) -> Result<(Self, f64), MpiError> {
        comm.barrier()?;
        let mut slowest = [unit_seconds(timed)];
        comm.max_f64(&mut slowest)?;
        let load = Self { unit_seconds: slowest[0] };
        let mut largest = [0.0_f64];
        for asked in CHECK_SECONDS {
            comm.barrier()?;
            let elapsed = median(&mut [(); CHECKS].map(|()| timed(load.units(asked))));
            largest[0] = largest[0].max((elapsed - asked).abs() / asked);
        }
        comm.max_f64(&mut largest)?;
        Ok((load, largest[0]))
    }

    /// Computes for about `seconds`, in whole units. Returns the measured time.
    pub fn run(&self, seconds: f64) -> f64 {
        run_units(self.units(seconds))
    }

    /// Number of units nearest to `seconds`: at least one, so that there is a load; 0 for 0.
    fn units(&self, seconds: f64) -> u64 {
        if seconds.is_nan() || seconds <= 0.0 {
            return 0;
        }
        ((seconds / self.unit_seconds).round() as u64).max(1)
    }
}

fn unit_seconds(timed: &mut dyn FnMut(u64) -> f64) -> f64 {
    // Also brings the processor to its working frequency.
    let mut units = 16;
    while timed(units) < BLOCK_SECONDS && units < 1 << 32 {
        units *= 2;
    }
    median(&mut [(); BLOCKS].map(|()| timed(units))) / units as f64
}

/// Computes `units`; returns the seconds.
fn run_units(units: u64) -> f64 {
    // Each row of weights has the sum 1: the vector converges to its mean, without large, small or denormal numbers.
    let matrix: [[f64; ORDER]; ORDER] =
        std::array::from_fn(|row| std::array::from_fn(|column| (1 + (row + column) % ORDER) as f64 / 55.0));
    let matrix = black_box(matrix);
    let mut vector: [f64; ORDER] = std::array::from_fn(|row| row as f64);
    let begin = Instant::now();
    repeat(units, || unit(&matrix, &mut vector), || begin.elapsed().as_secs_f64())
}

/// Calls `unit` `units` times; returns the elapsed time, 0 without any.
#[inline]
fn repeat(units: u64, mut unit: impl FnMut(), elapsed: impl FnOnce() -> f64) -> f64 {
    if units == 0 {
        return 0.0;
    }
    for _ in 0..units {
        unit();
    }
    elapsed()
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
    fn a_load_is_its_units() {
        let load = ComputeLoad { unit_seconds: 1e-6 };
        for seconds in [0.0, -1.0, f64::NAN] {
            assert_eq!((load.units(seconds), load.run(seconds)), (0, 0.0), "{seconds}");
        }
        let asked = [1e-9, 1e-6, 1.4e-6, 1.6e-6, 50e-6, 5e-3];
        assert_eq!(asked.map(|seconds| load.units(seconds)), [1, 1, 1, 2, 50, 5000]);
        for units in [0, 1, 50] {
            let mut done = 0;
            assert_eq!(repeat(units, || done += 1, || 0.25), if units == 0 { 0.0 } else { 0.25 });
            assert_eq!(done, units);
        }
    }

    /// Calibrates on a simulated processor: a unit takes `unit_seconds`, call n takes `delay(n, units)` more.
    fn simulated_calibration(unit_seconds: f64, delay: impl Fn(usize, u64) -> f64) -> (f64, f64, Vec<u64>) {
        let mut calls = Vec::new();
        let mut timed = |units: u64| {
            calls.push(units);
            units as f64 * unit_seconds + delay(calls.len() - 1, units)
        };
        let (load, error) = ComputeLoad::calibrate_with(&Comm::comm_self(), &mut timed).unwrap();
        (load.unit_seconds, error, calls)
    }

    fn close(found: f64, expected: f64) -> bool {
        (found - expected).abs() < 1e-9 * expected.abs().max(1e-3)
    }

    #[test]
    fn a_calibration_finds_the_time_of_a_unit() {
        for unit_seconds in [25e-9, 1e-6, 7e-6] {
            let (found, error, calls) = simulated_calibration(unit_seconds, |_, _| 0.0);
            assert!(close(found, unit_seconds), "{found} {unit_seconds}");
            // The shortest load, in whole units of up to 7 us.
            assert!(error < 0.035, "{error}");
            // Blocks of at least BLOCK_SECONDS after doubling; then CHECKS runs of every check.
            let block = calls.iter().position(|units| *units as f64 * unit_seconds >= BLOCK_SECONDS).unwrap();
            assert_eq!(calls[..=block], (0..=block).map(|n| 16 << n).collect::<Vec<_>>());
            assert!(calls[block..=block + BLOCKS].iter().all(|units| *units == calls[block]), "{calls:?}");
            let checks: Vec<_> = CHECK_SECONDS.iter().map(|s| (s / unit_seconds).round() as u64).collect();
            let expected: Vec<_> = checks.iter().flat_map(|units| [*units; CHECKS]).collect();
            assert_eq!(calls[block + BLOCKS + 1..], expected);
        }
    }

    #[test]
    fn a_few_interruptions_do_not_change_the_median_and_many_do() {
        // The system takes 4 ms: every fourth call.
        let (found, error, _) = simulated_calibration(1e-6, |n, _| if n % 4 == 0 { 4e-3 } else { 0.0 });
        assert!(close(found, 1e-6) && error < 1e-9, "{found} {error}");
        // In every block: the error shows it.
        let (found, error, _) = simulated_calibration(1e-6, |_, units| if units < 1500 { 0.0 } else { 4e-3 });
        assert!(close(found, 1e-6) && close(error, 0.4), "{found} {error}");
    }

    #[test]
    fn the_error_of_a_calibration_is_the_largest() {
        // 1 us for each unit: a load of 1 ms takes 10 % less, one of 10 ms 20 % more.
        let off = |_, units| match units {
            1000 => -1e-4,
            10_000 => 2e-3,
            _ => 0.0,
        };
        let (found, error, _) = simulated_calibration(1e-6, off);
        assert!(close(found, 1e-6) && close(error, 0.2), "{found} {error}");
    }
}
