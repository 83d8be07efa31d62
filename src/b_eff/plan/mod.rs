//! The plan of b_eff (paper section 4): message sizes, and patterns as the messages of each rank. Pure; the same ranks,
//! seed and memory give the same plan on every rank and every machine.

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
pub use family::Family;
pub use pattern::CommPattern;
pub use sizes::{lmax_bytes, sizes};
pub use step::Step;
pub use walk::Buffers;

use serde::Serialize;

/// Everything b_eff would measure. Memory and time to make it do not depend on the number of ranks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CommPlan {
    /// Ranks, at least 2.
    pub ranks: u64,
    /// Seed of the random rings.
    pub seed: u64,
    /// Memory per process that Lmax follows from.
    pub memory_per_rank_bytes: u64,
    /// Lmax, the largest message.
    pub lmax_bytes: u64,
    /// The 21 message sizes, ascending.
    pub sizes_bytes: Vec<u64>,
    /// Patterns in the order in which they are measured.
    pub patterns: Vec<CommPattern>,
}

impl CommPlan {
    /// The plan for all patterns of `families`, whatever their order there; the order of the plan is that of
    /// [`Family::ALL`].
    ///
    /// # Errors
    /// [`Obstacle::NoNeighbour`] for fewer than 2 ranks, [`Obstacle::LittleMemory`] for less than
    /// [`sizes::LEAST_MEMORY_BYTES`] per process, [`PlanError::Argument`] without any family or for more ranks than MPI
    /// can count.
    pub fn new(ranks: u64, seed: u64, memory_per_rank_bytes: u64, families: &[Family]) -> Result<Self, PlanError> {
        if ranks < 2 {
            return Err(Obstacle::NoNeighbour { ranks }.into());
        }
        if ranks > i32::MAX as u64 {
            return Err(PlanError::argument(format!("{ranks} ranks: MPI counts them up to {}", i32::MAX)));
        }
        if memory_per_rank_bytes < sizes::LEAST_MEMORY_BYTES {
            return Err(Obstacle::LittleMemory { memory_bytes: memory_per_rank_bytes }.into());
        }
        if families.is_empty() {
            return Err(PlanError::argument("no family of patterns is left; name at least one"));
        }
        let lmax_bytes = lmax_bytes(memory_per_rank_bytes);
        let chosen = Family::ALL.into_iter().filter(|family| families.contains(family));
        Ok(Self {
            ranks,
            seed,
            memory_per_rank_bytes,
            lmax_bytes,
            sizes_bytes: sizes(lmax_bytes),
            patterns: chosen.flat_map(|family| pattern::of_family(family, ranks, seed)).collect(),
        })
    }
}

#[cfg(test)]
mod tests;
