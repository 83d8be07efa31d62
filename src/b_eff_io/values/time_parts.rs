//! The parts of the time of a pattern or a type.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::b_eff_io::records::{TimeBreakdown, TypeRecord};

/// A part of the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TimePart {
    /// Opening the file(s).
    Open,
    /// File view, datatypes, registration.
    View,
    /// Preallocation and trimming.
    Preallocate,
    /// The calls that move data.
    Transfer,
    /// Agreements, waiting for slower ranks included.
    Decide,
    /// Sync to the storage.
    Sync,
    /// Closing the file(s).
    Close,
}

impl TimePart {
    /// All parts in order of execution.
    pub const ALL: [Self; 7] =
        [Self::Open, Self::View, Self::Preallocate, Self::Transfer, Self::Decide, Self::Sync, Self::Close];

    /// Printed name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::View => "view",
            Self::Preallocate => "alloc",
            Self::Transfer => "transfer",
            Self::Decide => "decide",
            Self::Sync => "sync",
            Self::Close => "close",
        }
    }
}

/// Shares of a time, each 0 to 1; their sum is 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimeShares {
    /// Opening the file(s).
    #[schemars(range(min = 0, max = 1))]
    pub open: f64,
    /// File view, datatypes, registration.
    #[schemars(range(min = 0, max = 1))]
    pub view: f64,
    /// Preallocation and trimming.
    #[schemars(range(min = 0, max = 1))]
    pub preallocate: f64,
    /// The calls that move data.
    #[schemars(range(min = 0, max = 1))]
    pub transfer: f64,
    /// Agreements, waiting for slower ranks included.
    #[schemars(range(min = 0, max = 1))]
    pub decide: f64,
    /// Sync to the storage.
    #[schemars(range(min = 0, max = 1))]
    pub sync: f64,
    /// Closing the file(s).
    #[schemars(range(min = 0, max = 1))]
    pub close: f64,
}

impl TimeShares {
    /// In the order of [`TimePart::ALL`].
    #[must_use]
    pub fn values(&self) -> [f64; 7] {
        [self.open, self.view, self.preallocate, self.transfer, self.decide, self.sync, self.close]
    }
}

/// Seconds of each part, in the order of [`TimePart::ALL`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct PartSeconds([f64; 7]);

impl PartSeconds {
    pub(super) fn add_pattern(&mut self, i: &TimeBreakdown) {
        let [_, view, preallocation, transfer, decide, sync, _] = &mut self.0;
        *view += i.view_seconds;
        *preallocation += i.preallocate_seconds;
        *transfer += i.transfer_seconds;
        *decide += i.decide_seconds;
        *sync += i.sync_seconds;
    }

    pub(super) fn add_files(&mut self, t: &TypeRecord) {
        self.0[0] += t.open_seconds;
        self.0[6] += t.close_seconds;
    }

    pub(super) fn seconds(&self) -> f64 {
        self.0.iter().sum()
    }

    pub(super) fn of(&self, part: TimePart) -> f64 {
        self.0[part as usize]
    }

    pub(super) fn shares(&self) -> Option<TimeShares> {
        let total = self.seconds();
        let [open, view, preallocation, transfer, decide, sync, close] = self.0.map(|part| part / total);
        (total > 0.0).then_some(TimeShares { open, view, preallocate: preallocation, transfer, decide, sync, close })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_where_their_names_are() {
        assert!(TimePart::ALL.iter().enumerate().all(|(i, part)| *part as usize == i));
        let mut parts = PartSeconds::default();
        assert_eq!(parts.shares(), None);
        parts.add_pattern(&TimeBreakdown {
            view_seconds: 1.0,
            preallocate_seconds: 2.0,
            transfer_seconds: 3.0,
            decide_seconds: 4.0,
            sync_seconds: 5.0,
        });
        let expected = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 0.0];
        assert_eq!(TimePart::ALL.map(|part| parts.of(part)), expected);
        assert_eq!(parts.shares().map(|s| s.values()), Some(expected.map(|v| v / 15.0)));
    }
}
