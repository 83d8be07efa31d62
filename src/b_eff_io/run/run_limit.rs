//! State of the time limit during a run; `limit_check` decides.

use crate::frame::records::{OmittedPart, TimeLimitRecord};

/// State of the time limit, equal on all ranks of a partition except where stated.
#[derive(Clone, Debug, Default)]
pub struct RunLimit {
    pub(super) record: TimeLimitRecord,
    /// Longest time to open or close a file.
    pub(super) file_seconds: f64,
    /// Real and scheduled time at the last omission, on rank 0.
    pub(super) last_omission: Option<(f64, f64)>,
}

impl RunLimit {
    /// State at the start of a run; None without a limit.
    #[must_use]
    pub fn new(record: Option<TimeLimitRecord>) -> Option<Self> {
        record.filter(|record| record.seconds.is_some()).map(|record| Self { record, ..Self::default() })
    }

    /// True if the part is omitted.
    #[must_use]
    pub fn omits(&self, part: OmittedPart) -> bool {
        self.record.omitted.contains(&part)
    }

    /// Notes the time to open or close a file.
    pub fn note_open_or_close(&mut self, seconds: f64) {
        self.file_seconds = self.file_seconds.max(seconds);
    }
}
