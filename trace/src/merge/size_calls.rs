//! Calls that determine the size of a file or depend on it, without touching the same bytes.

use std::collections::HashMap;

use super::history::EndedAccess;

/// The latest call of a rank that depended on the size, and the smallest size that its calls found.
#[derive(Clone, Copy, Debug)]
struct SizeObservation {
    begin_ns: u64,
    smallest_bytes: i64,
}

/// Ended calls of a file.
#[derive(Debug, Default)]
pub(super) struct SizeCalls {
    /// Largest end of a write.
    end_bytes: i64,
    /// By rank: latest write that made the file longer.
    extensions: HashMap<u32, u64>,
    observations: HashMap<u32, SizeObservation>,
}

impl SizeCalls {
    /// A write up to `end` has ended.
    pub(super) fn record_write(&mut self, end: i64, rank: u32, begin_ns: u64) {
        if end > self.end_bytes {
            self.end_bytes = end;
            self.extensions.insert(rank, begin_ns);
        }
    }

    /// The file is truncated: shorter writes extend it.
    pub(super) fn truncate(&mut self, bytes: i64) {
        self.end_bytes = self.end_bytes.min(bytes);
    }

    /// A call has ended that found this size; 0 if it is unknown.
    pub(super) fn record_observation(&mut self, bytes: i64, rank: u32, begin_ns: u64) {
        let known = self.observations.entry(rank).or_insert(SizeObservation { begin_ns, smallest_bytes: bytes });
        known.begin_ns = known.begin_ns.max(begin_ns);
        known.smallest_bytes = known.smallest_bytes.min(bytes);
    }

    /// Reports the calls that found a size below `end`: a write up to there must not precede them.
    pub(super) fn visit_observations(&self, end: i64, mut visit: impl FnMut(EndedAccess)) {
        for (rank, seen) in self.observations.iter().filter(|(_, seen)| seen.smallest_bytes < end) {
            visit(EndedAccess { rank: *rank, writes: false, begin_ns: seen.begin_ns });
        }
    }

    /// Reports the writes that made the file as long as it is.
    pub(super) fn visit_extensions(&self, mut visit: impl FnMut(EndedAccess)) {
        for (rank, begin_ns) in &self.extensions {
            visit(EndedAccess { rank: *rank, writes: true, begin_ns: *begin_ns });
        }
    }
}
