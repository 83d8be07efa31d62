//! First measurements, as reference for repetitions. Equal on all ranks of a partition.

use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::records::PatternRecord;
use crate::frame::records::AccessMethod;

/// First measurement of one pattern.
#[derive(Clone, Copy, Debug)]
pub struct FirstMeasurement {
    /// Index of the backend in the run.
    pub backend: usize,
    /// Ranks of the partition.
    pub ranks: u64,
    /// Access method.
    pub access: AccessMethod,
    /// Pattern type.
    pub pattern_type: PatternType,
    /// Pattern number.
    pub pattern: u8,
    /// Time units; 0: warm-up and fill-up.
    pub time_units: u32,
    /// Calls per rank.
    pub calls: u64,
    /// Rounds in which they were made.
    pub rounds: u32,
    /// Time of the slowest rank.
    pub seconds: f64,
    /// Part of it for calls and preallocation.
    pub calls_seconds: f64,
}

impl FirstMeasurement {
    /// That of a record.
    #[must_use]
    pub fn new(backend: usize, record: &PatternRecord) -> Self {
        Self {
            backend,
            ranks: record.ranks,
            access: record.access,
            pattern_type: record.pattern_type,
            pattern: record.pattern,
            time_units: record.time_units,
            calls: record.calls,
            rounds: record.rounds.len() as u32,
            seconds: record.seconds(),
            calls_seconds: record.intervals.preallocate_seconds + record.intervals.transfer_seconds,
        }
    }
}

/// Duration of one type in the first measurement.
#[derive(Clone, Copy, Debug)]
pub struct TypeDuration {
    /// Ranks of the partition.
    pub ranks: u64,
    /// Access method.
    pub access: AccessMethod,
    /// Pattern type.
    pub pattern_type: PatternType,
    /// Total time, slowest rank.
    pub seconds: f64,
}
