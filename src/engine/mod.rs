//! Doing what the plan says: timed loops, common decisions, data stamps and their verification.
//!
//! The order of work is access method, partition, type, pattern, backend. The engine knows backends only through
//! their trait and the outside world only through [`Observer`]; it formats nothing and writes no result files.

pub mod agree;
pub mod batching;
pub mod calibrate;
pub mod clocked;
pub mod comm;
pub mod evidence;
pub mod files;
pub mod harness;
pub mod imb;
pub mod inject;
pub mod interrupt;
pub mod latency;
pub mod pattern_run;
mod prelude;
pub mod run;
pub mod run_dir;
pub mod stamp;
pub mod trouble;
pub mod tune;
mod turn;
pub mod type_run;
pub mod verify;

use crate::results::{Access, JournalLine};

/// Where the run stands, told before each pattern.
#[derive(Clone, Debug)]
pub struct Standing {
    /// Access method.
    pub access: Access,
    /// Ranks of the partition.
    pub ranks: u64,
    /// Backend name.
    pub backend: String,
    /// Pattern type.
    pub pattern_type: u8,
    /// Pattern number.
    pub pattern: u8,
    /// Scheduled time of what is done, in seconds.
    pub done_seconds: f64,
    /// Scheduled time of everything.
    pub all_seconds: f64,
    /// Rate of the last pattern in 1e6 bytes/s.
    pub last_mb_per_second: Option<f64>,
}

/// Who wants to know what the run finds out. Only rank 0 has one that does anything. `Line` is a line of the
/// benchmark's journal, `Place` says where its run stands; b_eff_io's unless named.
pub trait Observer<Line = JournalLine, Place = Standing> {
    /// A record that is final.
    fn record(&mut self, line: Line);
    /// A new pattern begins.
    fn progress(&mut self, place: &Place);
}

/// Looks away; for the ranks that report nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl<Line, Place> Observer<Line, Place> for NoObserver {
    fn record(&mut self, _line: Line) {}
    fn progress(&mut self, _place: &Place) {}
}
