//! What timed runs of all benchmarks need around their clocks: agreement of ranks, signals, the run directory, data stamps,
//! evidence of devices and caches, and what the harness itself costs.

pub mod able;
pub mod agree;
pub mod binding;
pub mod clock;
pub mod cold;
pub mod evidence;
pub mod harness;
pub mod in_force;
pub mod interrupt;
pub mod latency;
pub mod machine_share;
pub mod named;
pub mod pages;
pub mod pieces;
pub mod probe;
#[cfg(test)]
mod ranks_tests;
pub mod reread;
pub mod run_dir;
#[cfg(test)]
pub(crate) mod testing;
pub mod trouble;
pub mod turns;

use std::sync::atomic::AtomicU64;
use std::sync::Arc;

/// Where a run stands, told before each of its parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// What is measured next, in a few words.
    pub what: String,
    /// The larger part of the run that it belongs to: a type, a benchmark, a pass.
    pub stage: String,
    /// Time of what is done as planned, in seconds.
    pub done_seconds: f64,
    /// Time of everything as planned.
    pub all_seconds: f64,
    /// Time of what comes next as planned.
    pub next_seconds: f64,
    /// Ranks that take part in it.
    pub ranks: u64,
    /// What was moved since the last time, by one or several.
    pub last: Vec<Moved>,
}

/// What a part of a run has moved.
#[derive(Clone, Debug, PartialEq)]
pub struct Moved {
    /// The backend, or whoever it was.
    pub who: String,
    /// Bytes of all ranks.
    pub bytes: u64,
    /// Time in the clock.
    pub seconds: f64,
}

/// Bytes that this rank has moved so far, told batch by batch, for whoever looks while the clock runs.
pub type Live = Arc<AtomicU64>;

/// Who wants to know what the run finds out. Only rank 0 has one that does anything. `Line` is a line of the
/// benchmark's journal.
pub trait Observer<Line> {
    /// A record that is final.
    fn record(&mut self, line: Line);
    /// A new part begins.
    fn progress(&mut self, standing: &Standing);
    /// Nothing more is measured: all that was planned has been, or a signal or an error has ended the run. `last`: what was moved
    /// since the last part began.
    fn measured(&mut self, is_complete: bool, last: Vec<Moved>);
    /// Numbers that follow from the records so far, in the order that the benchmark agreed with itself; none: nobody works them out.
    fn judgement(&self) -> Vec<f64> {
        Vec::new()
    }
    /// Where to count bytes while the clock runs.
    fn live(&self) -> Live {
        Live::default()
    }
}

impl<Line> Observer<Line> for NoObserver {
    fn record(&mut self, _line: Line) {}
    fn progress(&mut self, _standing: &Standing) {}
    fn measured(&mut self, _is_complete: bool, _last: Vec<Moved>) {}
}

/// Looks away; for the ranks that report nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;
