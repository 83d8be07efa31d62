//! The parts of the time of a pattern or a type.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::b_eff_io::records::{Intervals, TypeRecord};

/// One part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Opening the file(s).
    Open,
    /// File view, datatypes, registration.
    View,
    /// Making the file longer.
    Room,
    /// The calls that move data.
    Transfer,
    /// Common decisions, waiting for slower ranks included.
    Decide,
    /// Handing the data to the storage.
    Sync,
    /// Closing the file(s).
    Close,
}

impl Part {
    /// All in the order of work.
    pub const ALL: [Self; 7] =
        [Self::Open, Self::View, Self::Room, Self::Transfer, Self::Decide, Self::Sync, Self::Close];

    /// The name as it is printed.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::View => "view",
            Self::Room => "room",
            Self::Transfer => "transfer",
            Self::Decide => "decide",
            Self::Sync => "sync",
            Self::Close => "close",
        }
    }
}

/// Shares of a time, each 0 to 1; together 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Shares {
    /// Opening the file(s).
    #[schemars(range(min = 0, max = 1))]
    pub open: f64,
    /// File view, datatypes, registration.
    #[schemars(range(min = 0, max = 1))]
    pub view: f64,
    /// Making the file longer.
    #[schemars(range(min = 0, max = 1))]
    pub room: f64,
    /// The calls that move data.
    #[schemars(range(min = 0, max = 1))]
    pub transfer: f64,
    /// Common decisions, waiting for slower ranks included.
    #[schemars(range(min = 0, max = 1))]
    pub decide: f64,
    /// Handing the data to the storage.
    #[schemars(range(min = 0, max = 1))]
    pub sync: f64,
    /// Closing the file(s).
    #[schemars(range(min = 0, max = 1))]
    pub close: f64,
}

impl Shares {
    /// In the order of [`Part::ALL`].
    #[must_use]
    pub fn values(&self) -> [f64; 7] {
        [self.open, self.view, self.room, self.transfer, self.decide, self.sync, self.close]
    }
}

/// Seconds of each part, in the order of [`Part::ALL`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Parts([f64; 7]);

impl Parts {
    pub(super) fn add_pattern(&mut self, i: &Intervals) {
        let [_, view, room, transfer, decide, sync, _] = &mut self.0;
        *view += i.view_seconds;
        *room += i.room_seconds;
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

    pub(super) fn of(&self, part: Part) -> f64 {
        self.0[part as usize]
    }

    pub(super) fn shares(&self) -> Option<Shares> {
        let total = self.seconds();
        let [open, view, room, transfer, decide, sync, close] = self.0.map(|part| part / total);
        (total > 0.0).then_some(Shares { open, view, room, transfer, decide, sync, close })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_where_their_names_are() {
        assert!(Part::ALL.iter().enumerate().all(|(i, part)| *part as usize == i));
        let mut parts = Parts::default();
        assert_eq!(parts.shares(), None);
        parts.add_pattern(&Intervals {
            view_seconds: 1.0,
            room_seconds: 2.0,
            transfer_seconds: 3.0,
            decide_seconds: 4.0,
            sync_seconds: 5.0,
        });
        let expected = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 0.0];
        assert_eq!(Part::ALL.map(|part| parts.of(part)), expected);
        assert_eq!(parts.shares().map(|s| s.values()), Some(expected.map(|v| v / 15.0)));
    }
}
