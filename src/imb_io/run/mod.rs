//! IMB-IO: counted repetitions of one sample, row after row.
//!
//! From outside to inside: `whole` (all rows, and those that `again` wants once more), `row` (trial, repetitions, record), `stage` (one file), `timed` (the clock).
//! Down goes a `job`, back comes an `outcome`.

mod again;
mod arrived;
pub mod bare;
mod check;
mod contents;
pub mod data;
mod found;
mod job;
pub mod load;
mod open_close;
mod outcome;
mod pilot;
mod row;
#[cfg(test)]
mod row_tests;
mod shape;
mod stage;
mod summary;
mod team;
mod timed;
mod trial;
pub mod whole;

use beff_backends::{Latency, Ring};

use crate::frame::records::Warning;
use crate::frame::run::interrupt::Interrupt;
use crate::frame::run::run_dir::RunDir;
use crate::imb_io::config::ImbConfig;
use crate::imb_io::records::ImbCorruption;

/// Times of single repetitions that are kept; later ones of a longer row are in its total alone.
const LAPS: u64 = 1 << 20;

/// What all rows work with.
struct Bench<'a> {
    config: &'a ImbConfig,
    run_dir: &'a RunDir,
    /// Windows of the transfers, one for each step of a lap.
    ring: Ring,
    /// Room for the time of each repetition.
    laps: Latency,
    /// Not told yet: what drops pages says it once, in whichever file of a row.
    warnings: Vec<Warning>,
    /// Not told yet: wrong data that trials found. Equal on all ranks that tried.
    corruptions: Vec<ImbCorruption>,
    interrupt: &'a Interrupt,
    /// For the overlap, once it is calibrated.
    load: Option<load::Load>,
}
