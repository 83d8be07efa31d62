//! Rates of single patterns and their precision.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::deducted_time::{deducted_seconds, pattern_label, short_of_time, with_worst};
use super::kinds;
use crate::b_eff_io::records::{PatternRecord, RunResult};
use crate::frame::digits;
use crate::frame::records::{AccessMethod, Warning};
use crate::frame::units::{count, format_size, mb_per_second};
use crate::frame::values::NULL_BACKEND;

/// Values derived from the record of one pattern.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PatternValue {
    /// Backend name.
    pub backend: String,
    /// Ranks of the partition.
    pub ranks: u64,
    /// Access method.
    pub access: AccessMethod,
    /// Pattern number, 0 to 42.
    pub pattern: u8,
    /// 1e6 bytes/s; None if nothing was moved.
    pub mb_per_second: Option<f64>,
    /// Significant digits justified by its calls and bytes.
    pub significant_digits: u32,
    /// True if it is based on fewer than 10 calls of a rank or less than 1 MiB (mark `n`).
    pub few_calls: bool,
    /// Scheduled time deducted because of earlier overruns: `scheduled_seconds` - `budget_seconds`.
    pub deducted_seconds: f64,
    /// True if time ended it and was less than 90 % of its scheduled time (mark `d`).
    pub short_of_time: bool,
}

/// One for each record, in the order of measurement.
pub(super) fn values(result: &RunResult) -> Vec<PatternValue> {
    let value = |p: &PatternRecord| PatternValue {
        backend: p.backend.clone(),
        ranks: p.ranks,
        access: p.access,
        pattern: p.pattern,
        mb_per_second: rate(p),
        significant_digits: known_digits(p),
        few_calls: few_calls(p),
        deducted_seconds: deducted_seconds(p),
        short_of_time: short_of_time(p),
    };
    result.patterns.iter().map(value).collect()
}

/// Returns MB/s (1e6 bytes/s) of one pattern; None if it moved nothing.
#[must_use]
pub fn rate(p: &PatternRecord) -> Option<f64> {
    mb_per_second(p.moved_bytes, p.seconds()).filter(|_| p.was_run() && p.moved_bytes > 0)
}

/// Significant digits of its rate.
#[must_use]
pub fn known_digits(p: &PatternRecord) -> u32 {
    digits::significant_digits(p.calls, p.moved_bytes)
}

/// True for a rate based on few calls or bytes. Rates of the null backend are not compared.
#[must_use]
pub fn few_calls(p: &PatternRecord) -> bool {
    p.backend != NULL_BACKEND && rate(p).is_some() && digits::is_few(p.calls, p.moved_bytes)
}

/// Warning of a backend, for the pattern with the fewest calls. Warm-up and fill-up are one call by definition and not counted.
pub(super) fn warning(backend: &str, own: &[&PatternRecord]) -> Option<Warning> {
    let timed: Vec<&PatternRecord> = own.iter().copied().filter(|p| p.time_units > 0 && rate(p).is_some()).collect();
    let few: Vec<&PatternRecord> = timed.iter().copied().filter(|p| few_calls(p)).collect();
    let worst = few.iter().min_by_key(|p| (p.calls, p.moved_bytes))?;
    let (patterns, of) = (few.len(), timed.len() as u64);
    let warning = with_worst(
        kinds::FEW_CALLS.warning().for_backend(backend).with_figure("patterns", patterns).with_figure("of", of),
        worst,
    );
    Some(warning.with_figure("calls", worst.calls).with_figure("moved_bytes", worst.moved_bytes).with_text(
        format!("{patterns} of {of} rates are based on fewer than 10 calls or 1 MiB: longer --time"),
        format!(
            "{backend}: {patterns} of {} are based on fewer than 10 calls of a rank or on less than 1 MiB and give only an \
             order of magnitude; the fewest, {} and {}, in {}.",
            count(of, "pattern run"),
            count(worst.calls, "call"),
            format_size(worst.moved_bytes),
            pattern_label(worst)
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::values::fixture::{edit_pattern, full_run};

    #[test]
    fn patterns_of_few_calls_are_counted_and_the_worst_is_named() {
        let mut result = full_run();
        let own = |result: &RunResult| warning("mpiio", &result.patterns.iter().collect::<Vec<_>>());
        assert_eq!(own(&result), None);
        let few =
            |result: &RunResult| values(result).iter().filter(|v| v.few_calls && v.significant_digits == 2).count();
        let before = few(&result);
        for (pattern, calls, moved_bytes) in [(10, 9, 1 << 30), (11, 2, 5 << 20), (12, 500, 1000), (13, 10, 1 << 20)] {
            edit_pattern(&mut result, 4, AccessMethod::Read, pattern, |p| {
                (p.calls, p.moved_bytes) = (calls, moved_bytes)
            });
        }
        edit_pattern(&mut result, 4, AccessMethod::Read, 14, |p| (p.calls, p.moved_bytes) = (0, 0));
        assert_eq!(few(&result), before + 3);
        let found = own(&result).unwrap();
        let expected = serde_json::json!({
            "patterns": 3, "of": 36 * 6 - 1, "pattern": 11, "access": "read", "ranks": 4, "calls": 2, "moved_bytes": 5 << 20,
        });
        assert_eq!((found.backend.as_deref(), serde_json::json!(found.figures)), (Some("mpiio"), expected));
    }

    #[test]
    fn warm_up_and_fill_up_are_few_but_not_warned_of() {
        let result = full_run();
        let few = values(&result).iter().filter(|v| v.few_calls).map(|v| v.pattern).collect::<Vec<_>>();
        assert_eq!(few.len(), 7 * 6);
        assert!(few.iter().all(|pattern| [0, 9, 17, 25, 33, 34, 42].contains(pattern)), "{few:?}");
    }
}
