//! Time deducted from a pattern because of earlier overruns.

use super::kinds;
use crate::b_eff_io::plan::schedule::TIME_SHARE;
use crate::b_eff_io::records::{PatternRecord, StopReason};
use crate::frame::records::Warning;
use crate::frame::units::{count, format_seconds};
use crate::frame::values::warning::largest;

/// Scheduled time deducted from the pattern because of earlier overruns of the access method, seconds.
#[must_use]
pub fn deducted_seconds(p: &PatternRecord) -> f64 {
    (p.scheduled_seconds - p.budget_seconds).max(0.0)
}

/// True if time ended the pattern and was less than [`TIME_SHARE`] of the scheduled time. Patterns ended by calls or space did not need
/// more.
#[must_use]
pub fn short_of_time(p: &PatternRecord) -> bool {
    p.ended == StopReason::Time && p.budget_seconds < TIME_SHARE * p.scheduled_seconds
}

/// Warning of a backend, for the pattern with the smallest share of its time.
pub(super) fn warning(backend: &str, own: &[&PatternRecord]) -> Option<Warning> {
    let short: Vec<&PatternRecord> = own.iter().copied().filter(|p| short_of_time(p)).collect();
    let worst = largest(&short, |p| deducted_seconds(p) / p.scheduled_seconds)?;
    let PatternRecord { scheduled_seconds, budget_seconds, .. } = *worst;
    let patterns = short.len() as u64;
    let warning = kinds::SHORT_OF_TIME.warning().for_backend(backend).with_figure("patterns", patterns);
    let warning = with_worst(warning, worst).with_figure("scheduled_seconds", scheduled_seconds);
    Some(warning.with_figure("budget_seconds", budget_seconds).with_text(
        format!("{} had less than 90 % of their time: use a longer --time", count(patterns, "pattern")),
        format!(
            "{backend}: {} had less than 90 % of the scheduled time, because earlier ones of the access method exceeded \
             theirs; the least, {} of {}, {}.",
            count(patterns, "pattern run"),
            format_seconds(budget_seconds),
            format_seconds(scheduled_seconds),
            pattern_label(worst)
        ),
    ))
}

pub(super) fn with_worst(warning: Warning, worst: &PatternRecord) -> Warning {
    warning.with_figure("pattern", worst.pattern).with_figure("access", worst.access).with_figure("ranks", worst.ranks)
}

pub(super) fn pattern_label(worst: &PatternRecord) -> String {
    format!("pattern {}, {} on {}", worst.pattern, worst.access.name(), count(worst.ranks, "rank"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::values::fixture::{edit_pattern, full_run};
    use crate::frame::records::AccessMethod;

    #[test]
    fn the_worst_case_is_named() {
        let mut result = full_run();
        let own = |result: &crate::b_eff_io::records::RunResult| {
            warning("mpiio", &result.patterns.iter().collect::<Vec<_>>())
        };
        assert_eq!(own(&result), None);
        for (pattern, share) in [(10, 0.9), (11, 0.75), (12, 0.25), (13, 0.5)] {
            edit_pattern(&mut result, 4, AccessMethod::Read, pattern, |p| {
                p.budget_seconds = share * p.scheduled_seconds
            });
        }
        let found = own(&result).unwrap();
        let number = |name: &str| found.number(name).unwrap();
        assert_eq!([number("patterns"), number("pattern"), number("ranks")], [3.0, 12.0, 4.0]);
        assert_eq!(found.text("access"), "read");
        let record =
            result.patterns.iter().find(|p| p.ranks == 4 && p.access == AccessMethod::Read && p.pattern == 12).unwrap();
        assert_eq!(deducted_seconds(record), 0.75 * record.scheduled_seconds);
    }
}
