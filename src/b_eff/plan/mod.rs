//! Plan of b_eff (paper section 4): message sizes, and patterns as the messages of each rank. A pure function: the same
//! ranks, seed and memory yield the same plan on every rank and machine.

pub mod effort;
pub mod error;
mod family;
pub mod grid;
pub mod pattern;
pub mod published;
pub mod random;
pub mod rings;
pub mod sizes;
mod step;
mod view;
pub mod walk;

pub use error::{Obstacle, PlanError};
pub use family::PatternFamily;
pub use pattern::CommPattern;
pub use sizes::{lmax_bytes, message_sizes};
pub use step::ExchangeStep;
pub use walk::BufferMode;

use serde::Serialize;

/// Plan of a b_eff run. Its construction needs time and memory that do not depend on the number of ranks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CommPlan {
    /// Ranks, at least 2.
    pub ranks: u64,
    /// Seed of the random rings.
    pub seed: u64,
    /// Memory per process, from which Lmax is derived.
    pub memory_per_rank_bytes: u64,
    /// Lmax, the largest message.
    pub lmax_bytes: u64,
    /// The 21 message sizes, ascending.
    pub sizes_bytes: Vec<u64>,
    /// Patterns in the order of measurement.
    pub patterns: Vec<CommPattern>,
}

impl CommPlan {
    /// Plan with all patterns of `families`, in the order of [`PatternFamily::ALL`].
    ///
    /// # Errors
    /// [`Obstacle::TooFewRanks`] for fewer than 2 ranks, [`Obstacle::TooLittleMemory`] for less than
    /// [`sizes::MIN_MEMORY_BYTES`] per process, [`PlanError::Argument`] without a family or for more ranks than an
    /// int of MPI holds.
    pub fn new(
        ranks: u64,
        seed: u64,
        memory_per_rank_bytes: u64,
        families: &[PatternFamily],
    ) -> Result<Self, PlanError> {
        if ranks < 2 {
            return Err(Obstacle::TooFewRanks { ranks }.into());
        }
        if ranks > i32::MAX as u64 {
            return Err(PlanError::argument(format!("{ranks} ranks: MPI supports up to {}", i32::MAX)));
        }
        if memory_per_rank_bytes < sizes::MIN_MEMORY_BYTES {
            return Err(Obstacle::TooLittleMemory { memory_bytes: memory_per_rank_bytes }.into());
        }
        if families.is_empty() {
            return Err(PlanError::argument("no family of patterns; specify at least one"));
        }
        let lmax_bytes = lmax_bytes(memory_per_rank_bytes);
        let chosen = PatternFamily::ALL.into_iter().filter(|family| families.contains(family));
        Ok(Self {
            ranks,
            seed,
            memory_per_rank_bytes,
            lmax_bytes,
            sizes_bytes: message_sizes(lmax_bytes),
            patterns: chosen.flat_map(|family| pattern::family_patterns(family, ranks, seed)).collect(),
        })
    }
}

#[cfg(test)]
mod tests;
