//! A run that continues another one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::b_eff_io::pattern_type::PatternType;
use crate::frame::records::AccessMethod;
use crate::frame::units::count;

/// One pattern type with one access method on one partition, for all backends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnitRecord {
    /// Ranks of the partition.
    pub ranks: u64,
    /// Access method.
    pub access: AccessMethod,
    /// Pattern type, 0 to 4.
    pub pattern_type: PatternType,
}

impl UnitRecord {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{} of type {} on {}", self.access.name(), self.pattern_type, count(self.ranks, "rank"))
    }
}

/// Continuation of a run that was cut. Its complete units are part of this result; all others were measured in this run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContinuationRecord {
    /// Journal of the run that was cut.
    pub journal: String,
    /// Its start, UTC, RFC 3339.
    pub started_utc: String,
    /// Number of its units that are kept.
    pub units_kept: u64,
    /// The unit in which it was cut, which was measured again; None: in the repetitions, which were all measured again.
    pub cut_in: Option<UnitRecord>,
    /// Kept types (of a partition) whose files still existed and are used.
    pub types_reused: u64,
    /// Kept types whose files were written again before the first measurement of this run.
    pub types_rebuilt: u64,
    /// Time for that, which is part of `real_seconds` only.
    pub rebuild_seconds: f64,
    /// Why the directory of the cut run could not be removed, if so.
    pub files_left: Option<String>,
}
