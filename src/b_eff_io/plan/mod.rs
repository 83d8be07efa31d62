//! The plan of a run, as pure arithmetic: pattern tables, schedule, space, segments, offsets. No I/O, no clock, no MPI, and no loop over
//! ranks: ten million ranks cost as much as two.

pub mod acceptance;
pub mod cache_yardstick;
pub mod communication;
pub mod error;
pub mod hints;
pub mod layout;
pub mod memory;
pub mod orders;
pub mod outlook;
pub mod partitions;
pub mod patterns;
pub mod preview;
pub mod repetitions;
pub mod run;
pub mod schedule;
pub mod segments;
pub mod space;
pub mod space_forecast;
pub mod strict_cost;
#[cfg(test)]
mod tiling;
pub mod time_limit;
pub mod trials;
pub mod two_phase;

pub use error::{Obstacle, PlanError};
pub use patterns::{PatternSpec, PATTERNS};

use serde::{Deserialize, Serialize};

/// Role of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// First pattern of a type, one call, U = 0: absorbs the first-access costs of the file system.
    WarmUp,
    /// U > 0: one of the 36 patterns of the papers.
    Timed,
    /// Last pattern of types 3 and 4, at most one call, U = 0: fills the segment to its full size.
    FillUp,
}
