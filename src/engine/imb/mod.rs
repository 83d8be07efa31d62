//! IMB-IO: counted repetitions of one sample, row after row.
//!
//! From outside to inside: `run` (all rows), `row` (trial, repetitions, record), `stage` (one file), `timed` (the clock).

mod arrived;
pub mod bare;
mod check;
mod contents;
pub mod data;
pub mod load;
mod open_close;
mod pilot;
mod row;
pub mod run;
mod shape;
mod stage;
mod summary;
mod team;
mod timed;

use beff_backends::{Latency, Ring};

use crate::config::imb::ImbConfig;
use crate::engine::interrupt::Interrupt;
use crate::engine::run_dir::RunDir;
use crate::results::Warning;

/// Where a run stands, told before each row.
#[derive(Clone, Debug)]
pub struct Standing {
    /// Benchmark name.
    pub benchmark: &'static str,
    /// Backend name.
    pub backend: String,
    /// Ranks of the row.
    pub ranks: u64,
    /// Mode and size in words.
    pub sample: String,
    /// Expected time of what is done, in seconds.
    pub done_seconds: f64,
    /// Expected time of everything.
    pub all_seconds: f64,
    /// Rate of the last row in 1e6 bytes/s.
    pub last_mb_per_second: Option<f64>,
}

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
    interrupt: &'a Interrupt,
    /// For the overlap, once it is calibrated.
    load: Option<load::Load>,
}
