//! Scheduled time of each pattern.
//!
//! U and their sums belong to the definition: with a subset of the types each pattern keeps its time, and the run is shorter.

use super::patterns::TIME_UNITS_PER_ACCESS;
use super::PatternSpec;
use crate::b_eff_io::config::Release;
use crate::b_eff_io::pattern_type::PatternType;
use crate::frame::records::AccessMethod;

/// Minimum share of its scheduled time that a pattern keeps if the run is late.
const MIN_BUDGET_SHARE: f64 = 0.25;

/// Minimum share of its scheduled time that a time-limited pattern should have. Release 0.5 defines a time as kept within 10 %.
pub const TIME_SHARE: f64 = 0.9;

/// A first write limited by counts may take this many times its scheduled time.
const GUARD_FACTOR: f64 = 2.0;

/// U of type 0, the only type that release 2.1 rewrites without full rewrite.
const TIME_UNITS_TYPE_0: u32 = 22;

/// The access methods in order. Each is completed on all partitions before the next, as in release 2.1, which also evicts data from caches.
#[must_use]
pub fn accesses() -> [AccessMethod; 3] {
    AccessMethod::ALL
}

/// Scheduled time of one partition. T is the time of one partition (0.5, 1) or of all of them together (2.1).
#[must_use]
pub fn partition_seconds(release: Release, time_seconds: f64, partitions: usize) -> f64 {
    match release {
        Release::R0_5 | Release::R1 => time_seconds,
        Release::R2_1 => time_seconds / partitions.max(1) as f64,
    }
}

/// True if a type is rewritten: all types with full rewrite (always in releases 0.5 and 1), otherwise those whose rewrite replaces a second
/// weight.
#[must_use]
pub fn is_rewritten(full_rewrite: bool, t: PatternType) -> bool {
    full_rewrite || t.descriptor().weight > 1
}

/// Scheduled time of a pattern with one access method; 0 for U = 0 and for a rewrite that is not done.
///
/// Releases 0.5 and 1: T/3 * U/64. Release 2.1: Tn * U / (sum of U over what is done), 150 or 192 with full rewrite.
#[must_use]
pub fn pattern_seconds(
    release: Release,
    full_rewrite: bool,
    partition_seconds: f64,
    spec: &PatternSpec,
    access: AccessMethod,
) -> f64 {
    if access == AccessMethod::Rewrite && !is_rewritten(full_rewrite, spec.pattern_type) {
        return 0.0;
    }
    let rewrite_units = match release {
        Release::R2_1 if !full_rewrite => TIME_UNITS_TYPE_0,
        _ => TIME_UNITS_PER_ACCESS,
    };
    let all_units = 2 * TIME_UNITS_PER_ACCESS + rewrite_units;
    partition_seconds * f64::from(spec.time_units) / f64::from(all_units)
}

/// True if rewrites and reads repeat the counts of the first write without a time limit, as in release 2.1.
#[must_use]
pub fn repeats_counts(release: Release) -> bool {
    release == Release::R2_1
}

/// True if overruns are bounded: time is deducted for earlier ones and kept for the sync, and first writes of types 3 and 4 have a guard.
/// These rules are not part of the definition; `--strict` switches them off in releases 0.5 and 1, and the program of release 2.1 has none.
#[must_use]
pub fn bounds_overruns(release: Release, strict: bool) -> bool {
    !strict && !repeats_counts(release)
}

/// Time budget of a pattern when its access method is `debt_seconds` late. If overruns are bounded, the debt is deducted, down to a quarter
/// of the time; otherwise the time is fixed.
#[must_use]
pub fn budget_seconds(bounds_overruns: bool, scheduled_seconds: f64, debt_seconds: f64) -> f64 {
    if bounds_overruns {
        (scheduled_seconds - debt_seconds).max(MIN_BUDGET_SHARE * scheduled_seconds)
    } else {
        scheduled_seconds
    }
}

/// Most time that the guard allows for a first write of type 3 or 4.
#[must_use]
pub fn guard_seconds(scheduled_seconds: f64) -> f64 {
    GUARD_FACTOR * scheduled_seconds
}

/// Time limit of a pattern's loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeLimit {
    /// The time, including the sync.
    pub seconds: f64,
    /// A guard only bounds the time of a fixed number of calls; it is not part of the definition.
    pub is_guard: bool,
}

/// Time limit of a pattern; None if only calls limit it: for warm-up and fill-up, and with release 2.1 for all but the first writes of
/// types 0 to 2. First writes of types 3 and 4 are limited by counts, with a guard of twice their time if overruns are bounded.
#[must_use]
pub fn time_limit(
    (release, strict): (Release, bool),
    access: AccessMethod,
    spec: &PatternSpec,
    scheduled_seconds: f64,
    budget_seconds: f64,
) -> Option<TimeLimit> {
    let is_segmented_write = access == AccessMethod::Write && spec.pattern_type.has_segments();
    let seconds = if is_segmented_write { guard_seconds(scheduled_seconds) } else { budget_seconds };
    let has_limit = match access {
        AccessMethod::Write => !is_segmented_write || bounds_overruns(release, strict),
        AccessMethod::Rewrite | AccessMethod::Read => !repeats_counts(release),
    };
    (spec.time_units > 0 && has_limit).then_some(TimeLimit { seconds, is_guard: is_segmented_write })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::plan::patterns::{patterns, MIN_M_PART_BYTES};

    fn total(release: Release, full_rewrite: bool, seconds: f64) -> f64 {
        let specs = patterns(MIN_M_PART_BYTES);
        accesses().iter().flat_map(|&a| specs.map(|s| pattern_seconds(release, full_rewrite, seconds, &s, a))).sum()
    }

    #[test]
    fn the_patterns_fill_the_partition() {
        for (release, full) in
            [(Release::R0_5, true), (Release::R1, true), (Release::R2_1, false), (Release::R2_1, true)]
        {
            assert!((total(release, full, 900.0) - 900.0).abs() < 1e-9, "{release:?} {full}");
        }
    }

    #[test]
    fn single_patterns() {
        let p1 = patterns(MIN_M_PART_BYTES)[1];
        let p9 = patterns(MIN_M_PART_BYTES)[9];
        let p10 = patterns(MIN_M_PART_BYTES)[10];
        assert_eq!(pattern_seconds(Release::R1, true, 960.0, &p1, AccessMethod::Read), 960.0 / 3.0 * 4.0 / 64.0);
        assert_eq!(pattern_seconds(Release::R2_1, false, 1500.0, &p1, AccessMethod::Rewrite), 40.0);
        assert_eq!(pattern_seconds(Release::R2_1, true, 1920.0, &p10, AccessMethod::Rewrite), 40.0);
        assert_eq!(pattern_seconds(Release::R2_1, false, 1500.0, &p10, AccessMethod::Rewrite), 0.0);
        assert_eq!(pattern_seconds(Release::R2_1, false, 1500.0, &p9, AccessMethod::Write), 0.0);
    }

    #[test]
    fn only_release_2_1_divides_its_time() {
        assert_eq!(partition_seconds(Release::R2_1, 5400.0, 3), 1800.0);
        assert_eq!(partition_seconds(Release::R1, 900.0, 3), 900.0);
        assert_eq!(partition_seconds(Release::R0_5, 600.0, 2), 600.0);
    }

    #[test]
    fn debt_is_taken_where_overruns_are_bounded_only() {
        let bounds =
            |strict| [Release::R0_5, Release::R1, Release::R2_1].map(|release| bounds_overruns(release, strict));
        assert_eq!((bounds(false), bounds(true)), ([true, true, false], [false; 3]));
        for (debt, left) in [(0.0, 8.0), (2.0, 6.0), (6.0, 2.0), (7.0, 2.0), (1e9, 2.0)] {
            assert_eq!(budget_seconds(true, 8.0, debt), left, "{debt}");
            assert_eq!(budget_seconds(false, 8.0, debt), 8.0, "{debt}");
        }
        assert_eq!(budget_seconds(true, 0.0, 3.0), 0.0);
    }

    #[test]
    fn patterns_driven_by_counts_have_no_time_limit() {
        let specs = patterns(MIN_M_PART_BYTES);
        let of = |release, access, number: usize| {
            time_limit((release, false), access, &specs[number], 8.0, 6.0).map(|limit| (limit.seconds, limit.is_guard))
        };
        for release in [Release::R0_5, Release::R1] {
            for access in accesses() {
                assert_eq!(of(release, access, 17), None, "warm-up");
                assert_eq!(of(release, access, 33), None, "fill-up");
                assert_eq!(of(release, access, 12), Some((6.0, false)));
            }
            assert_eq!(of(release, AccessMethod::Write, 26), Some((16.0, true)));
            assert_eq!(of(release, AccessMethod::Read, 26), Some((6.0, false)));
        }
        assert_eq!(of(Release::R2_1, AccessMethod::Write, 12), Some((6.0, false)));
        for (access, number) in
            [(AccessMethod::Write, 26), (AccessMethod::Rewrite, 3), (AccessMethod::Read, 12), (AccessMethod::Write, 17)]
        {
            assert_eq!(of(Release::R2_1, access, number), None, "{access:?} {number}");
        }
        // Strictly by the definition counts alone end first writes of types 3 and 4, and nothing else changes.
        for (release, spec) in
            [Release::R0_5, Release::R1, Release::R2_1].into_iter().flat_map(|r| specs.map(|s| (r, s)))
        {
            for access in accesses() {
                let [usual, strict] = [false, true].map(|s| time_limit((release, s), access, &spec, 8.0, 8.0));
                let expected = usual.filter(|limit| !limit.is_guard);
                assert_eq!(strict, expected, "{release:?} {access:?} {}", spec.number);
            }
        }
    }
}
