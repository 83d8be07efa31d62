//! Common parts of the timed runs: agreement of ranks, signals, the run directory, data stamps, evidence of devices and caches, and the
//! overhead of the harness.

pub mod agree;
pub mod availability;
pub mod binding;
pub mod cache_cold;
pub mod clock;
pub mod direct_trial;
pub mod effective_access;
pub mod error_agreement;
pub mod evidence;
pub mod file_ranges;
pub mod granted_hints;
pub mod harness;
pub mod huge_pages;
pub mod interference;
pub mod interrupt;
pub mod job_limit;
pub mod latency;
pub mod loop_pairs;
pub mod path_check;
pub mod probe;
#[cfg(test)]
mod ranks_tests;
pub mod run_dir;
pub mod storage_sheet;
pub mod striping;
#[cfg(test)]
pub(crate) mod testing;
pub mod trials;
pub(crate) mod variants;
pub mod verify_reader;

use std::sync::atomic::AtomicU64;
use std::sync::Arc;

/// Progress of a run, reported before each of its parts.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgressReport {
    /// Next measurement, in a few words.
    pub what: String,
    /// Larger part of the run that contains it: a type, a benchmark, a repetition.
    pub stage: String,
    /// Planned time of the completed parts, in seconds.
    pub done_seconds: f64,
    /// Planned time of the run.
    pub all_seconds: f64,
    /// Planned time of the next part.
    pub next_seconds: f64,
    /// Ranks that take part in it.
    pub ranks: u64,
    /// Bytes moved since the last report, by one or several backends.
    pub transferred: Vec<TransferVolume>,
}

/// Bytes moved in a part of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct TransferVolume {
    /// Backend, or another source.
    pub who: String,
    /// Bytes of all ranks.
    pub bytes: u64,
    /// Time in the clock.
    pub seconds: f64,
}

/// Bytes that this rank has moved so far, updated after each batch, for a reader while the clock runs.
pub type ByteCounter = Arc<AtomicU64>;

/// Receives the records and the progress of a run. It has an effect on rank 0 only. `Line` is a line of the benchmark's journal.
pub trait RunObserver<Line> {
    /// A final record.
    fn record(&mut self, line: Line);
    /// A new part begins.
    fn progress(&mut self, standing: &ProgressReport);
    /// Measuring has ended: the plan is complete, or a signal or an error has ended the run. `last`: bytes moved since the last part
    /// began.
    fn measurement_ended(&mut self, is_complete: bool, last: Vec<TransferVolume>);
    /// Numbers derived from the records so far, in an order that the benchmark defines; empty if none are derived.
    fn derived_numbers(&self) -> Vec<f64> {
        Vec::new()
    }
    /// Counter of bytes while the clock runs.
    fn byte_counter(&self) -> ByteCounter {
        ByteCounter::default()
    }
}

impl<Line> RunObserver<Line> for NullObserver {
    fn record(&mut self, _line: Line) {}
    fn progress(&mut self, _standing: &ProgressReport) {}
    fn measurement_ended(&mut self, _is_complete: bool, _last: Vec<TransferVolume>) {}
}

/// Observer without effect, for ranks that report nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullObserver;
