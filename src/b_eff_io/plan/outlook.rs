//! End of each pattern, and its time, if every pattern reaches the same bandwidth.

use serde::{Deserialize, Serialize};

use super::schedule::{bounds_overruns, budget_seconds, pattern_seconds, time_limit, TIME_SHARE};
use super::{PatternSpec, Role};
use crate::b_eff_io::config::Release;
use crate::frame::records::AccessMethod;

/// Limit that ends a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// Its time.
    Time,
    /// The number of calls of the definition, or the end of the written data.
    Counts,
    /// Its share of the space.
    Space,
    /// The time guard of first writes of types 3 and 4.
    Guard,
}

/// Forecast for one pattern with one access method.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outlook {
    /// Calls of a rank.
    pub calls: u64,
    /// Scheduled time.
    pub scheduled_seconds: f64,
    /// Scheduled time minus the debt of earlier patterns.
    pub budget_seconds: f64,
    /// Time the calls take.
    pub seconds: f64,
    /// Limit that ends it.
    pub ended_by: EndedBy,
}

impl Outlook {
    /// True if not even one call fits its scheduled time.
    #[must_use]
    pub fn has_overlong_call(&self) -> bool {
        self.calls == 1 && self.scheduled_seconds > 0.0 && self.seconds > self.scheduled_seconds
    }

    /// True if it is time-limited, and earlier patterns reduced its time by more than permitted.
    #[must_use]
    pub fn is_short_of_time(&self) -> bool {
        self.ended_by == EndedBy::Time && self.budget_seconds < TIME_SHARE * self.scheduled_seconds
    }
}

/// Forecast state of one access method over the patterns of a partition.
#[derive(Clone, Copy, Debug)]
pub struct AccessOutlook {
    /// Definition.
    pub release: Release,
    /// Without the bounds of overruns.
    pub strict: bool,
    /// Rewrite all types.
    pub full_rewrite: bool,
    /// Scheduled time of the partition.
    pub partition_seconds: f64,
    /// Ranks of the partition.
    pub ranks: u64,
    /// Bandwidth of all ranks together.
    pub rate_bytes_per_second: f64,
    /// Access method.
    pub access: AccessMethod,
    /// Time by which it is behind its schedule.
    pub debt_seconds: f64,
}

impl AccessOutlook {
    /// Forecasts the next pattern, with at most `max_calls` calls; `by_space`: that limit is due to the space.
    pub fn next_pattern(&mut self, spec: &PatternSpec, max_calls: u64, by_space: bool) -> Outlook {
        let scheduled = pattern_seconds(self.release, self.full_rewrite, self.partition_seconds, spec, self.access);
        let budget = budget_seconds(bounds_overruns(self.release, self.strict), scheduled, self.debt_seconds);
        let limit = time_limit((self.release, self.strict), self.access, spec, scheduled, budget);
        let one_call = self.ranks as f64 * spec.call_bytes as f64 / self.rate_bytes_per_second;
        // `as` saturates; one call is always made.
        let in_time = limit.map_or(u64::MAX, |limit| ((limit.seconds / one_call) as u64).max(1));
        let calls = in_time.min(max_calls);
        let seconds = calls as f64 * one_call;
        let ended_by = match limit {
            Some(limit) if calls < max_calls => {
                if limit.is_guard {
                    EndedBy::Guard
                } else {
                    EndedBy::Time
                }
            }
            _ if by_space && spec.role == Role::Timed => EndedBy::Space,
            _ => EndedBy::Counts,
        };
        self.debt_seconds = (self.debt_seconds + seconds - scheduled).max(0.0);
        Outlook { calls, scheduled_seconds: scheduled, budget_seconds: budget, seconds, ended_by }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::plan::patterns::patterns;
    use crate::frame::units::MIB;

    /// Two ranks; T is chosen so that a time unit is a second.
    fn course(release: Release, access: AccessMethod, mib_per_second: u64) -> AccessOutlook {
        AccessOutlook {
            release,
            strict: false,
            full_rewrite: true,
            partition_seconds: 192.0,
            ranks: 2,
            rate_bytes_per_second: (mib_per_second * MIB) as f64,
            access,
            debt_seconds: 0.0,
        }
    }

    fn shown(o: Outlook) -> (u64, f64, f64, EndedBy) {
        (o.calls, o.budget_seconds, o.seconds, o.ended_by)
    }

    #[test]
    fn calls_that_are_too_long_take_time_from_later_patterns() {
        let specs = patterns(32 * MIB);
        // 64 MiB of both ranks take 8 s of the 4 s of pattern 1; pattern 2 keeps a quarter of its time.
        let mut write = course(Release::R1, AccessMethod::Write, 8);
        assert_eq!(shown(write.next_pattern(&specs[0], 1, true)), (1, 0.0, 0.25, EndedBy::Counts));
        let long = write.next_pattern(&specs[1], u64::MAX, true);
        assert_eq!((shown(long), long.has_overlong_call()), ((1, 3.75, 8.0, EndedBy::Time), true));
        let short = write.next_pattern(&specs[2], u64::MAX, true);
        assert_eq!((shown(short), short.has_overlong_call()), ((2, 1.0, 1.0, EndedBy::Time), false));
        assert!(short.is_short_of_time() && !long.is_short_of_time());
        let strict = AccessOutlook { strict: true, ..course(Release::R1, AccessMethod::Write, 8) };
        for mut write in [course(Release::R2_1, AccessMethod::Write, 8), strict] {
            assert_eq!(shown(write.next_pattern(&specs[1], u64::MAX, true)), (1, 4.0, 8.0, EndedBy::Time));
            assert_eq!(shown(write.next_pattern(&specs[2], u64::MAX, true)), (8, 4.0, 4.0, EndedBy::Time));
        }
    }

    #[test]
    fn each_end_has_its_cause() {
        let specs = patterns(2 * MIB);
        // Pattern 3: 4 s for calls of 2 MiB; pattern 27 of type 3: 2 s.
        let of = |release, access, number: usize, max_calls, by_space| {
            let o = course(release, access, 8).next_pattern(&specs[number], max_calls, by_space);
            (o.calls, o.ended_by)
        };
        let (r1, r2_1) = (Release::R1, Release::R2_1);
        assert_eq!(of(r1, AccessMethod::Write, 3, u64::MAX, true), (16, EndedBy::Time));
        assert_eq!(of(r1, AccessMethod::Write, 3, 15, true), (15, EndedBy::Space));
        assert_eq!(of(r1, AccessMethod::Read, 3, 16, false), (16, EndedBy::Counts));
        assert_eq!(of(r1, AccessMethod::Read, 3, 17, false), (16, EndedBy::Time));
        assert_eq!(of(r2_1, AccessMethod::Read, 3, 1000, false), (1000, EndedBy::Counts), "2.1 repeats the counts");
        assert_eq!(of(r1, AccessMethod::Write, 27, 16, false), (16, EndedBy::Counts), "twice its time");
        assert_eq!(of(r1, AccessMethod::Write, 27, 17, false), (16, EndedBy::Guard));
        assert_eq!(of(r1, AccessMethod::Write, 27, 10, true), (10, EndedBy::Space));
        assert_eq!(of(r2_1, AccessMethod::Write, 27, 17, false), (17, EndedBy::Counts), "2.1 has no guard");
        let mut strict = AccessOutlook { strict: true, ..course(r1, AccessMethod::Write, 8) };
        assert_eq!(strict.next_pattern(&specs[27], 17, false).ended_by, EndedBy::Counts, "nor has --strict");
        assert_eq!(of(r1, AccessMethod::Write, 0, 1, true), (1, EndedBy::Counts), "a warm-up is one call");
    }
}
