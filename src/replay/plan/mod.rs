//! Properties derived from the calls of a profile alone: classes and totals, omitted calls, matching of collective calls, layout of
//! memory.

pub mod cache_cold;
pub mod call_change;
pub mod class;
pub mod collective_change;
pub mod collective_counts;
pub mod deadlocks;
pub mod file_extents;
pub mod landing;
pub mod ledger;
pub mod matching;
pub mod memory_image;
pub mod memory_relocation;
pub mod omission;
pub mod preparation;
pub mod printable;
mod range_set;
pub mod sieving_gaps;

pub use class::CallClass;
pub use ledger::{CallTally, Ledger, TallyPair};
