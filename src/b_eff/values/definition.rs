//! What the definition asks for, and what of it a run was to do.

use crate::b_eff::records::{CommResult, Effort};

/// Ring patterns of the definition.
pub const RINGS: u64 = 6;

/// Random rings of the definition.
pub const RANDOM_RINGS: u64 = 30;

/// Message sizes of the definition.
pub const SIZES: u64 = 21;

/// What was told before the run and every change of it, in order.
pub fn efforts(result: &CommResult) -> impl Iterator<Item = &Effort> {
    // A run that was killed has no ending, but what was told when the definition was whole.
    let later = result.whole.as_ref().map_or(&result.ending.efforts, |whole| &whole.efforts);
    result.announcement.iter().map(|a| &a.effort).chain(later.iter().map(|(_, effort)| effort))
}

/// Random rings that the last word was to measure: with fewer the run did not get there, and there is no average.
pub(super) fn random_rings_wanted(result: &CommResult) -> u64 {
    efforts(result).last().map_or(RANDOM_RINGS, |e| e.random_rings).max(1)
}
