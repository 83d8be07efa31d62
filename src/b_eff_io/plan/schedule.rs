//! How long each pattern is meant to take.
//!
//! U and their sums belong to the definition: with a subset of the types each pattern keeps its time, the run gets
//! shorter.

use super::patterns::TIME_UNITS_PER_ACCESS;
use super::PatternSpec;
use crate::b_eff_io::config::Release;
use crate::frame::records::Access;

/// Part of its scheduled time that a pattern keeps however late the run is.
const LEAST_BUDGET: f64 = 0.25;

/// U of type 0, the only one release 2.1 rewrites without full rewrite.
const TIME_UNITS_TYPE_0: u32 = 22;

/// The access methods in the order of work. Each one is done for all partitions before the next begins, as in
/// release 2.1: this also pushes data out of caches.
#[must_use]
pub fn accesses() -> [Access; 3] {
    Access::ALL
}

/// Scheduled time of one partition. T is the time of one partition (0.5, 1) or of all of them together (2.1).
#[must_use]
pub fn partition_seconds(release: Release, time_seconds: f64, partitions: usize) -> f64 {
    match release {
        Release::R0_5 | Release::R1 => time_seconds,
        Release::R2_1 => time_seconds / partitions.max(1) as f64,
    }
}

/// Whether a type is rewritten: all of them with full rewrite (always so in releases 0.5 and 1), otherwise type 0 only.
#[must_use]
pub fn is_rewritten(full_rewrite: bool, t: u8) -> bool {
    full_rewrite || t == 0
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
    access: Access,
) -> f64 {
    if access == Access::Rewrite && !is_rewritten(full_rewrite, spec.pattern_type) {
        return 0.0;
    }
    let rewrite_units = match release {
        Release::R2_1 if !full_rewrite => TIME_UNITS_TYPE_0,
        _ => TIME_UNITS_PER_ACCESS,
    };
    let all_units = 2 * TIME_UNITS_PER_ACCESS + rewrite_units;
    partition_seconds * f64::from(spec.time_units) / f64::from(all_units)
}

/// True if rewrites and reads repeat the counts of the first write without a time limit, as release 2.1 does.
#[must_use]
pub fn repeats_counts(release: Release) -> bool {
    release == Release::R2_1
}

/// Time a pattern may use when its access method is `debt_seconds` behind the schedule. In releases 0.5 and 1 the debt is
/// taken from it, down to a quarter of its time. Release 2.1 has a fixed time for each pattern.
#[must_use]
pub fn budget_seconds(release: Release, scheduled_seconds: f64, debt_seconds: f64) -> f64 {
    match release {
        Release::R2_1 => scheduled_seconds,
        Release::R0_5 | Release::R1 => (scheduled_seconds - debt_seconds).max(LEAST_BUDGET * scheduled_seconds),
    }
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
        assert_eq!(pattern_seconds(Release::R1, true, 960.0, &p1, Access::Read), 960.0 / 3.0 * 4.0 / 64.0);
        assert_eq!(pattern_seconds(Release::R2_1, false, 1500.0, &p1, Access::Rewrite), 40.0);
        assert_eq!(pattern_seconds(Release::R2_1, true, 1920.0, &p10, Access::Rewrite), 40.0);
        assert_eq!(pattern_seconds(Release::R2_1, false, 1500.0, &p10, Access::Rewrite), 0.0);
        assert_eq!(pattern_seconds(Release::R2_1, false, 1500.0, &p9, Access::Write), 0.0);
    }

    #[test]
    fn only_release_2_1_divides_its_time() {
        assert_eq!(partition_seconds(Release::R2_1, 5400.0, 3), 1800.0);
        assert_eq!(partition_seconds(Release::R1, 900.0, 3), 900.0);
        assert_eq!(partition_seconds(Release::R0_5, 600.0, 2), 600.0);
    }

    #[test]
    fn debt_is_taken_from_the_patterns_of_the_papers_only() {
        for (debt, left) in [(0.0, 8.0), (2.0, 6.0), (6.0, 2.0), (7.0, 2.0), (1e9, 2.0)] {
            assert_eq!(budget_seconds(Release::R0_5, 8.0, debt), left, "{debt}");
            assert_eq!(budget_seconds(Release::R1, 8.0, debt), left, "{debt}");
            assert_eq!(budget_seconds(Release::R2_1, 8.0, debt), 8.0, "{debt}");
        }
        assert_eq!(budget_seconds(Release::R1, 0.0, 3.0), 0.0);
    }
}
