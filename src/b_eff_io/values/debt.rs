//! Time that earlier overruns took from a pattern.

use crate::b_eff_io::records::{Ended, PatternRecord};

/// A pattern that time ended should have had at least this share of its scheduled time. The definition of release 0.5
/// calls a time within 10 % kept.
pub const TIME_SHARE: f64 = 0.9;

/// Scheduled time that earlier overruns of the access method took from the pattern, seconds.
#[must_use]
pub fn taken_seconds(p: &PatternRecord) -> f64 {
    (p.scheduled_seconds - p.budget_seconds).max(0.0)
}

/// True if time ended the pattern, and less of it than [`TIME_SHARE`]. Where calls or space ended it, it did not need more.
#[must_use]
pub fn short_of_time(p: &PatternRecord) -> bool {
    p.ended == Ended::Time && p.budget_seconds < TIME_SHARE * p.scheduled_seconds
}
