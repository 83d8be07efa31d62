//! IMB-IO: counted iterations of one sample, row after row.
//!
//! Modules from the outside to the inside: `runner` (all rows, and the repetitions that `repetition` schedules), `row` (pilot
//! measurement, iterations, record), `file_run` (one file), `timed_loop` (the timed loop). Each passes a `job` down and returns an
//! `outcome`.

pub mod bare;
mod contents;
pub mod data;
mod file_run;
mod geometry;
mod job;
pub mod load;
mod open_close;
mod outcome;
mod pilot;
mod repetition;
mod row;
mod row_pilot;
#[cfg(test)]
mod row_tests;
pub mod runner;
mod summary;
mod team;
mod timed_loop;
mod verify;
mod verify_arrival;
mod verify_result;

use beff_backends::{Latency, TransferBuffer};

use crate::frame::records::Warning;
use crate::frame::run::interrupt::Interrupt;
use crate::frame::run::run_dir::RunDir;
use crate::imb_io::config::ImbConfig;
use crate::imb_io::records::ImbCorruption;

/// Maximum number of iteration times that are stored; later iterations of a longer row count in its total alone.
const MAX_ITERATION_TIMES: u64 = 1 << 20;

/// Context shared by all rows.
struct RowContext<'a> {
    config: &'a ImbConfig,
    run_dir: &'a RunDir,
    /// Transfer buffer with the windows of all steps of a timed batch.
    buffer: TransferBuffer,
    /// Storage for the time of each iteration.
    iteration_times: Latency,
    /// Pending warnings: dropping of pages warns once, in any file of a row.
    warnings: Vec<Warning>,
    /// Pending corruptions of pilot measurements. Equal on all ranks that took part.
    corruptions: Vec<ImbCorruption>,
    interrupt: &'a Interrupt,
    /// CPU load of the overlap, after calibration.
    load: Option<load::ComputeLoad>,
}
