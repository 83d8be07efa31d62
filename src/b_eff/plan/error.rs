//! Errors of the plan.

use super::sizes;
use crate::frame::error;
use crate::frame::units::format_size;

/// Error of an impossible plan, with the next step.
pub type PlanError = error::PlanningError<Obstacle>;

/// Errors specific to b_eff.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// Fewer than two ranks.
    #[error(
        "b_eff measures messages between processes and the program runs with {ranks} rank(s): start at least 2, e.g. with \
         mpirun -n 2"
    )]
    TooFewRanks {
        /// Number of ranks.
        ranks: u64,
    },
    /// Lmax is too small for the message sizes of b_eff.
    #[error(
        "{} ({memory_bytes} bytes) of memory per process are too little for b_eff: the largest message is 1/{} of it, and \
         the sizes need at least {}; specify the memory per process, or run fewer processes per host",
        format_size(*memory_bytes), sizes::MEMORY_PER_LMAX, format_size(sizes::MIN_MEMORY_BYTES)
    )]
    TooLittleMemory {
        /// Memory per process.
        memory_bytes: u64,
    },
}
