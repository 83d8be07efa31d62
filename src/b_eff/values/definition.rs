//! Requirements of the definition, and the planned part of them.

use crate::b_eff::records::{CommResult, MeasurementEffort};

/// Ring patterns of the definition.
pub const DEFINED_RINGS: u64 = 6;

/// Random rings of the definition.
pub const DEFINED_RANDOM_RINGS: u64 = 30;

/// Message sizes of the definition.
pub const DEFINED_SIZES: u64 = 21;

/// The announced effort and all changes of it, in order.
pub fn all_efforts(result: &CommResult) -> impl Iterator<Item = &MeasurementEffort> {
    // A killed run has no ending, but the record of the complete definition.
    let later = result.definition.as_ref().map_or(&result.ending.efforts, |whole| &whole.efforts);
    result.announcement.iter().map(|a| &a.effort).chain(later.iter().map(|(_, effort)| effort))
}

/// Random rings of the last effort: with fewer, the run is incomplete and has no average.
pub(super) fn required_random_rings(result: &CommResult) -> u64 {
    all_efforts(result).last().map_or(DEFINED_RANDOM_RINGS, |e| e.random_rings).max(1)
}
