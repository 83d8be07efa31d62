//! Why something cannot be planned.

use super::sizes;
use crate::frame::error;
use crate::frame::units::format_size;

/// A plan that is impossible, with the next step.
pub type PlanError = error::PlanError<Obstacle>;

/// What only b_eff can fail at.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// b_eff with nobody to talk to.
    #[error(
        "b_eff measures messages between processes and the program runs with {ranks} rank(s): start at least 2, e.g. with \
         mpirun -n 2"
    )]
    NoNeighbour {
        /// Ranks there are.
        ranks: u64,
    },
    /// Lmax would be too small for the message sizes of b_eff.
    #[error(
        "{} ({memory_bytes} bytes) of memory per process are too little for b_eff: the largest message is 1/{} of it, and \
         the sizes need at least {}; give the memory of a process, or run fewer of them on each host",
        format_size(*memory_bytes), sizes::MEMORY_SHARE, format_size(sizes::LEAST_MEMORY_BYTES)
    )]
    LittleMemory {
        /// Memory per process.
        memory_bytes: u64,
    },
}
