//! What the first pass made and took, for those that measure again. Equal on all ranks of a partition.

use crate::b_eff_io::pattern_type::PatternType;
use crate::frame::records::Access;

/// What one pattern made in the first pass.
#[derive(Clone, Copy, Debug)]
pub struct Passed {
    /// Which backend of the run.
    pub backend: usize,
    /// Ranks of the partition.
    pub ranks: u64,
    /// Access method.
    pub access: Access,
    /// Pattern type.
    pub pattern_type: PatternType,
    /// Pattern number.
    pub pattern: u8,
    /// Its share of the time; 0: warm-up and fill-up.
    pub time_units: u32,
    /// Calls of each rank.
    pub calls: u64,
    /// Rounds in which it made them.
    pub rounds: u32,
    /// Time of the slowest rank.
    pub seconds: f64,
    /// Of it, that of its calls and of the room for them.
    pub calls_seconds: f64,
}

/// What one type took in the first pass.
#[derive(Clone, Copy, Debug)]
pub struct Took {
    /// Ranks of the partition.
    pub ranks: u64,
    /// Access method.
    pub access: Access,
    /// Pattern type.
    pub pattern_type: PatternType,
    /// Everything included, slowest rank.
    pub seconds: f64,
}
