//! Time that earlier overruns took from a pattern.

use crate::b_eff_io::plan::schedule::TIME_SHARE;
use crate::b_eff_io::records::{Ended, IoWarning, PatternRecord};
use crate::frame::values::warning::largest;

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

/// One for a backend, from the pattern that had the smallest share of its time.
pub(super) fn warning(backend: &str, own: &[&PatternRecord]) -> Option<IoWarning> {
    let short: Vec<&PatternRecord> = own.iter().copied().filter(|p| short_of_time(p)).collect();
    let worst = largest(&short, |p| taken_seconds(p) / p.scheduled_seconds)?;
    Some(IoWarning::ShortOfTime {
        backend: backend.to_owned(),
        patterns: short.len() as u64,
        pattern: worst.pattern,
        access: worst.access,
        ranks: worst.ranks,
        scheduled_seconds: worst.scheduled_seconds,
        budget_seconds: worst.budget_seconds,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::values::fixture::{edit, full_run};
    use crate::frame::records::Access;

    #[test]
    fn the_worst_case_is_named() {
        let mut result = full_run();
        let own = |result: &crate::b_eff_io::records::RunResult| {
            warning("mpiio", &result.patterns.iter().collect::<Vec<_>>())
        };
        assert_eq!(own(&result), None);
        for (pattern, share) in [(10, 0.9), (11, 0.75), (12, 0.25), (13, 0.5)] {
            edit(&mut result, 4, Access::Read, pattern, |p| p.budget_seconds = share * p.scheduled_seconds);
        }
        let Some(IoWarning::ShortOfTime { patterns: 3, pattern: 12, ranks: 4, access: Access::Read, .. }) =
            own(&result)
        else {
            panic!("{:?}", own(&result));
        };
        let record =
            result.patterns.iter().find(|p| p.ranks == 4 && p.access == Access::Read && p.pattern == 12).unwrap();
        assert_eq!(taken_seconds(record), 0.75 * record.scheduled_seconds);
    }
}
