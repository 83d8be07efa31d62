//! Errors of the plan.

use crate::b_eff_io::pattern_type::PatternType;
use crate::frame::error;
use crate::frame::units::format_size;

/// An impossible plan, with the next step.
pub type PlanError = error::PlanningError<Obstacle>;

/// Errors specific to b_eff_io.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// A file would exceed the largest file offset.
    #[error(
        "pattern {pattern} on {ranks} ranks would reach file offset {offset_bytes}, beyond the largest one \
         (2^63 - 1): use fewer ranks, less memory per process (a smaller M_PART) or less space"
    )]
    Overflow {
        /// Pattern number.
        pattern: u8,
        /// Ranks of the partition.
        ranks: u64,
        /// End of the last chunk of the last rank; `u128::MAX` if it is larger than that.
        offset_bytes: u128,
    },
    /// Not even one call of every pattern fits.
    #[error(
        "the smallest possible run needs {} ({needed_bytes} bytes) of space for {partitions} partition(s) with {ranks} \
         ranks together, {backends} backend(s) and {types} pattern type(s), but may use {} ({limit_bytes} bytes): \
         free space under the path, raise --space, or use fewer ranks, partitions, backends or types",
        format_size(*needed_bytes), format_size(*limit_bytes)
    )]
    NoSpace {
        /// Bytes of all files of the smallest run.
        needed_bytes: u64,
        /// Bytes that may be used.
        limit_bytes: u64,
        /// Number of partitions.
        partitions: u64,
        /// Sum of the ranks of all partitions.
        ranks: u64,
        /// Backends that write.
        backends: u64,
        /// Number of pattern types.
        types: u64,
    },
    /// Types 3 and 4 have no reference type for their size.
    #[error(
        "pattern type {pattern_type} takes its segment size from the counts of types 0, 1 and 2, and none of them runs: \
         add at least one of them to the types"
    )]
    NoReference {
        /// 3 or 4.
        pattern_type: PatternType,
    },
    /// A pattern of type 3 or 4 would write into the segment of the next rank.
    #[error("pattern {pattern} would end at byte {end_bytes} of a segment of {segment_bytes} bytes")]
    OutsideSegment {
        /// Pattern number.
        pattern: u8,
        /// Its end, relative to the segment.
        end_bytes: u128,
        /// L_SEG.
        segment_bytes: u64,
    },
}
