//! What the options say about the queue.

use crate::edges::MAX_SECTOR_BYTES;
use crate::{Calibrated, CallStyle, Direction, DriverOptions, Pattern};

/// Part of the depth that is waited for in one call while there is more to begin, where nothing better was found: fewer
/// calls, and the device still has the rest to work on.
const WANT_DIVISOR: u32 = 4;

/// What the options say about the queue.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(super) queue_depth: u32,
    pub(super) calibrated: Vec<Calibrated>,
}

impl From<&DriverOptions> for Settings {
    fn from(options: &DriverOptions) -> Self {
        Self { queue_depth: options.queue_depth, calibrated: options.calibrated.clone() }
    }
}

impl Settings {
    /// The row for a chunk size: the last one that begins at or below it, else the smallest; None if the direction has no
    /// rows.
    pub(super) fn row(&self, direction: Direction, chunk_bytes: u64) -> Option<&Calibrated> {
        let rows = || self.calibrated.iter().filter(|row| row.direction == direction);
        let below = rows().filter(|row| row.chunk_bytes <= chunk_bytes).max_by_key(|row| row.chunk_bytes);
        below.or_else(|| rows().min_by_key(|row| row.chunk_bytes))
    }

    /// Operations in flight at most, and completions to wait for in one call, if no more than `most` may be in flight. `is_whole`: a
    /// chunk is one operation, whatever was found.
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
            // As much memory in flight, but two chunks at least.
            depth = depth.min((depth * bytes / chunk_bytes).max(2));
        }
        let depth = depth.min(most.max(1)) as u32;
        let wait_for = row.map_or(depth / WANT_DIVISOR, |row| row.wait_for);
        (depth, wait_for.clamp(1, depth))
    }

    /// Bytes of the largest operation, if that is less than a chunk. Calls with work under them are whole: what the depth does not
    /// hold would wait for the end of the work.
    pub(super) fn operation_bytes(&self, direction: Direction, pattern: &Pattern) -> Option<u64> {
        let bytes = self.row(direction, pattern.chunk_bytes)?.operation_bytes?;
        // Sectors stay whole.
        let bytes = bytes.max(1).checked_next_multiple_of(MAX_SECTOR_BYTES)?;
        (bytes < pattern.chunk_bytes && pattern.form.style != CallStyle::Request).then_some(bytes)
    }

    /// The largest depth that any pattern may ask for.
    pub(super) fn largest_depth(&self) -> u32 {
        let uncalibrated =
            [Direction::Write, Direction::Read].into_iter().any(|direction| self.row(direction, 0).is_none());
        let depths = self.calibrated.iter().map(|row| row.depth).chain(uncalibrated.then_some(self.queue_depth));
        depths.max().unwrap_or(self.queue_depth)
    }
}
