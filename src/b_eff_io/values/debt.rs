//! Time that earlier overruns took from a pattern.

use super::kinds;
use crate::b_eff_io::plan::schedule::TIME_SHARE;
use crate::b_eff_io::records::{Ended, PatternRecord};
use crate::frame::records::Warning;
use crate::frame::units::{count, format_seconds};
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
pub(super) fn warning(backend: &str, own: &[&PatternRecord]) -> Option<Warning> {
    let short: Vec<&PatternRecord> = own.iter().copied().filter(|p| short_of_time(p)).collect();
    let worst = largest(&short, |p| taken_seconds(p) / p.scheduled_seconds)?;
    let PatternRecord { scheduled_seconds, budget_seconds, .. } = *worst;
    let patterns = short.len() as u64;
    let warning = kinds::SHORT_OF_TIME.warning().of(backend).figure("patterns", patterns);
    let warning = at(warning, worst).figure("scheduled_seconds", scheduled_seconds);
    Some(warning.figure("budget_seconds", budget_seconds).told(
        format!("{} had less than 90 % of their time: take a longer --time", count(patterns, "pattern")),
        format!(
            "{backend}: {} had less than 90 % of the scheduled time, because earlier ones of the access method took more \
             than theirs; the least, {} of {}, {}.",
            count(patterns, "pattern run"),
            format_seconds(budget_seconds),
            format_seconds(scheduled_seconds),
            place(worst)
        ),
    ))
}

/// With the pattern that is the worst case.
pub(super) fn at(warning: Warning, worst: &PatternRecord) -> Warning {
    warning.figure("pattern", worst.pattern).figure("access", worst.access).figure("ranks", worst.ranks)
}

/// That pattern in words.
pub(super) fn place(worst: &PatternRecord) -> String {
    format!("pattern {}, {} on {}", worst.pattern, worst.access.name(), count(worst.ranks, "rank"))
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
        let found = own(&result).unwrap();
        let number = |name: &str| found.number(name).unwrap();
        assert_eq!([number("patterns"), number("pattern"), number("ranks")], [3.0, 12.0, 4.0]);
        assert_eq!(found.text("access"), "read");
        let record =
            result.patterns.iter().find(|p| p.ranks == 4 && p.access == Access::Read && p.pattern == 12).unwrap();
        assert_eq!(taken_seconds(record), 0.75 * record.scheduled_seconds);
    }
}
