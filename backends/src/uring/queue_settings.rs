//! Queue settings of a run.

use crate::edges::MAX_SECTOR_BYTES;
use crate::{AccessPattern, CalibratedDepth, CallStyle, Direction, DriverOptions};

/// Fraction of the depth to wait for in one call, unless calibrated: fewer calls, and the device has the rest to work on.
const WAIT_DIVISOR: u32 = 4;

#[derive(Clone, Debug)]
pub(crate) struct QueueSettings {
    pub(super) queue_depth: u32,
    pub(super) calibrated: Vec<CalibratedDepth>,
}

impl From<&DriverOptions> for QueueSettings {
    fn from(options: &DriverOptions) -> Self {
        Self { queue_depth: options.queue_depth, calibrated: options.calibrated.clone() }
    }
}

impl QueueSettings {
    /// Calibrated row: the last one at or below the chunk size, else the smallest; None if the direction has none.
    pub(super) fn row(&self, direction: Direction, chunk_bytes: u64) -> Option<&CalibratedDepth> {
        let rows = || self.calibrated.iter().filter(|row| row.direction == direction);
        let below = rows().filter(|row| row.chunk_bytes <= chunk_bytes).max_by_key(|row| row.chunk_bytes);
        below.or_else(|| rows().min_by_key(|row| row.chunk_bytes))
    }

    /// Maximum operations in flight, at most `most`, and completions to wait for in one call. `is_whole`: chunks are never split.
    pub(super) fn depth_and_wait(
        &self,
        direction: Direction,
        chunk_bytes: u64,
        is_whole: bool,
        most: u64,
    ) -> (u32, u32) {
        let row = self.row(direction, chunk_bytes);
        let mut depth = u64::from(row.map_or(self.queue_depth, |row| row.depth).max(1));
        if let Some(bytes) = row.and_then(|row| row.operation_bytes).filter(|bytes| is_whole && *bytes < chunk_bytes) {
            // The same memory in flight, at least two chunks.
            depth = depth.min((depth * bytes / chunk_bytes).max(2));
        }
        let depth = depth.min(most.max(1)) as u32;
        let wait_for = row.map_or(depth / WAIT_DIVISOR, |row| row.wait_for);
        (depth, wait_for.clamp(1, depth))
    }

    /// Size of the largest operation, if less than a chunk. Calls with overlapped work are not split: what exceeds the depth would
    /// wait for the end of the work.
    pub(super) fn operation_bytes(&self, direction: Direction, pattern: &AccessPattern) -> Option<u64> {
        let bytes = self.row(direction, pattern.chunk_bytes)?.operation_bytes?;
        // Whole sectors.
        let bytes = bytes.max(1).checked_next_multiple_of(MAX_SECTOR_BYTES)?;
        (bytes < pattern.chunk_bytes && pattern.form.style != CallStyle::Request).then_some(bytes)
    }

    pub(super) fn largest_depth(&self) -> u32 {
        let uncalibrated =
            [Direction::Write, Direction::Read].into_iter().any(|direction| self.row(direction, 0).is_none());
        let depths = self.calibrated.iter().map(|row| row.depth).chain(uncalibrated.then_some(self.queue_depth));
        depths.max().unwrap_or(self.queue_depth)
    }
}
