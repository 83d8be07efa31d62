//! What would be done, as pure arithmetic: pattern tables, schedule, space, segments, offsets. No I/O, no clock, no MPI,
//! and nothing that loops over ranks: ten million of them cost what two cost.

pub mod error;
pub mod hints;
pub mod layout;
pub mod memory;
pub mod outlook;
pub mod partitions;
pub mod patterns;
pub mod preview;
pub mod repeats;
pub mod run;
pub mod schedule;
pub mod segments;
pub mod space;
#[cfg(test)]
mod tiling;
pub mod two_phase;

pub use error::{Obstacle, PlanError};
pub use patterns::{PatternSpec, PATTERNS};

use serde::{Deserialize, Serialize};

/// What a pattern is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// First pattern of a type, one call, U = 0: pays for what the file system does on first contact.
    WarmUp,
    /// U > 0: one of the 36 patterns of the papers.
    Timed,
    /// Last pattern of types 3 and 4, at most one call, U = 0: fills the segment up to its full size.
    FillUp,
}
