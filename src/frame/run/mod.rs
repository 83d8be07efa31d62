//! What timed runs of all benchmarks need around their clocks: agreement of ranks, signals, the run directory, data stamps,
//! evidence of devices and caches, and what the harness itself costs.

pub mod able;
pub mod agree;
pub mod evidence;
pub mod harness;
pub mod in_force;
pub mod interrupt;
pub mod latency;
pub mod machine_share;
pub mod named;
pub mod pieces;
pub mod reread;
pub mod run_dir;
pub mod stamp;
pub mod trouble;
pub mod turns;

/// Where a run stands, told before each of its parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// What is measured next, in a few words.
    pub what: String,
    /// Time of what is done as planned, in seconds.
    pub done_seconds: f64,
    /// Time of everything.
    pub all_seconds: f64,
    /// Rate of the last part in 1e6 bytes/s.
    pub last_mb_per_second: Option<f64>,
}

/// Who wants to know what the run finds out. Only rank 0 has one that does anything. `Line` is a line of the
/// benchmark's journal.
pub trait Observer<Line> {
    /// A record that is final.
    fn record(&mut self, line: Line);
    /// A new pattern begins.
    fn progress(&mut self, standing: &Standing);
}

impl<Line> Observer<Line> for NoObserver {
    fn record(&mut self, _line: Line) {}
    fn progress(&mut self, _standing: &Standing) {}
}

/// Looks away; for the ranks that report nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;
