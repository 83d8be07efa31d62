//! Iterations of a sample: limits by number, volume and time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::benchmark::Mode;
use crate::frame::units::MIB;
use crate::imb_io::plan::PlanningError;

/// Reduction of the iterations of a row below those that number and volume allow, in the words of `-iter_policy`.
///
/// A file pointer is never reset: before reads, the file is made as long as all iterations together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IterationPolicy {
    /// The time limit of the row. The default.
    #[default]
    Dynamic,
    /// Interpretation of a word without a public definition: the time limit, and no more iterations than the previous size,
    /// so that one fast size among slow ones has no other number.
    MultipleNp,
    /// As `dynamic`, because the benchmarks of IMB-IO give no criterion. Also an interpretation.
    Auto,
    /// No reduction: number and volume alone count, whatever the time.
    Off,
    /// No reduction, and no limit by volume: exactly the given number for every size. An extension of this program.
    Set,
}

impl IterationPolicy {
    /// All policies.
    pub const ALL: [Self; 5] = [Self::Dynamic, Self::MultipleNp, Self::Auto, Self::Off, Self::Set];

    /// Name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Dynamic => "dynamic",
            Self::MultipleNp => "multiple_np",
            Self::Auto => "auto",
            Self::Off => "off",
            Self::Set => "set",
        }
    }

    /// The policy of that name, in any case.
    ///
    /// # Errors
    /// [`PlanningError::Argument`] with all names.
    pub fn from_name(name: &str) -> Result<Self, PlanningError> {
        Self::ALL.into_iter().find(|policy| policy.name().eq_ignore_ascii_case(name.trim())).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            PlanningError::argument(format!("there is no iteration policy '{name}'; there are {names}"))
        })
    }

    /// True if the policy has a time limit of a row.
    #[must_use]
    pub fn is_timed(self) -> bool {
        matches!(self, Self::Dynamic | Self::MultipleNp | Self::Auto)
    }
}

/// Cost of a row so far, of the slowest rank; the same on all ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowCost {
    /// Seconds of one iteration including the sync in non-aggregate mode and all runs of an overlap
    /// ([`super::overlap::iteration_seconds`]).
    pub iteration_seconds: f64,
    /// Seconds of the row already used: preparation of its file, the pilot measurement.
    pub spent_seconds: f64,
}

/// Rule for the iterations of all rows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IterationRule {
    /// Maximum iterations in aggregate mode, n0.
    pub aggregate: u64,
    /// Maximum iterations in non-aggregate mode, n0.
    pub non_aggregate: u64,
    /// Maximum total bytes of all iterations of a row, unless a single one moves more.
    pub volume_bytes: u64,
    /// Time limit of a row in seconds.
    pub limit_seconds: f64,
    /// Further reduction.
    pub policy: IterationPolicy,
}

impl Default for IterationRule {
    /// 1000 and 100, 40 MiB, 10 s.
    fn default() -> Self {
        Self {
            aggregate: 1000,
            non_aggregate: 100,
            volume_bytes: 40 * MIB,
            limit_seconds: 10.0,
            policy: IterationPolicy::Dynamic,
        }
    }
}

impl IterationRule {
    /// This rule with the values of `n[,volume[,nonaggregate[,policy]]]`: a number, a volume in MiB, a number, a name.
    /// Without its own number, the non-aggregate mode has no more iterations than the aggregate mode.
    ///
    /// # Errors
    /// [`PlanningError::Argument`] for invalid values, and as [`IterationRule::check`].
    pub fn with_iter(self, text: &str) -> Result<Self, PlanningError> {
        let no = |what: &str| {
            PlanningError::argument(format!(
                "iterations '{text}': {what}; expected n[,volume in MiB[,n in non-aggregate mode[,policy]]], e.g. 1000,40,100"
            ))
        };
        let number = |word: &str| word.trim().parse::<u64>().map_err(|_| no(&format!("'{word}' is no whole number")));
        let words: Vec<&str> = text.split(',').collect();
        if words.len() > 4 {
            return Err(no("more than four values"));
        }
        let mut rule = Self { aggregate: number(words[0])?, ..self };
        rule.non_aggregate = rule.non_aggregate.min(rule.aggregate);
        if let Some(volume) = words.get(1) {
            rule.volume_bytes = number(volume)?.checked_mul(MIB).ok_or_else(|| no("the volume is too large"))?;
        }
        if let Some(count) = words.get(2) {
            rule.non_aggregate = number(count)?;
        }
        if let Some(policy) = words.get(3) {
            rule.policy = IterationPolicy::from_name(policy)?;
        }
        rule.check().map(|()| rule)
    }

    /// Checks that every row has at least one iteration and a valid time limit.
    ///
    /// # Errors
    /// [`PlanningError::Argument`] for 0 iterations and for a time limit that is not a positive number.
    pub fn check(&self) -> Result<(), PlanningError> {
        if self.aggregate == 0 || self.non_aggregate == 0 {
            return Err(PlanningError::argument("0 iterations measure nothing; give at least 1"));
        }
        if !(self.limit_seconds.is_finite() && self.limit_seconds > 0.0) {
            return Err(PlanningError::argument(format!(
                "a time limit of {} s for each size; it must be above 0",
                self.limit_seconds
            )));
        }
        Ok(())
    }

    /// Iterations before the reduction by time: max(1, min(volume / X, n0)); n0 for X = 0, for Open_Close (`None`), which
    /// does not measure its one byte, and with [`IterationPolicy::Set`].
    #[must_use]
    pub fn max_iterations(&self, sample_bytes: Option<u64>, mode: Mode) -> u64 {
        let most = match mode {
            Mode::Aggregate => self.aggregate,
            Mode::NonAggregate => self.non_aggregate,
        };
        match sample_bytes {
            Some(bytes) if bytes > 0 && self.policy != IterationPolicy::Set => {
                (self.volume_bytes / bytes).min(most).max(1)
            }
            _ => most,
        }
    }

    /// Iterations of a row: `most`, reduced by the policy; at least 1. `previous` is the number of the previous size in the
    /// same mode on the same ranks.
    #[must_use]
    pub fn reduced_iterations(&self, most: u64, measured: &RowCost, previous: Option<u64>) -> u64 {
        if !self.policy.is_timed() {
            return most.max(1);
        }
        let most = match previous {
            Some(previous) if self.policy == IterationPolicy::MultipleNp => most.min(previous),
            _ => most,
        };
        fitting_iterations(most, self.limit_seconds - measured.spent_seconds, measured.iteration_seconds)
    }

    /// Upper bound in seconds for `rows` rows, to be printed before the run: each has the time limit, which includes its
    /// preparation. Only a row whose preparation and single iteration together exceed the limit takes longer. `None` without a
    /// time limit.
    #[must_use]
    pub fn bound_seconds(&self, rows: u64) -> Option<f64> {
        self.policy.is_timed().then_some(rows as f64 * self.limit_seconds)
    }
}

/// Iterations that fit into `left_seconds`, 1 to `most`: `most` if an iteration is too short to be measured, 1 if a time is
/// NaN.
#[must_use]
pub fn fitting_iterations(most: u64, left_seconds: f64, repetition_seconds: f64) -> u64 {
    let fits = if left_seconds.is_nan() || left_seconds <= 0.0 || repetition_seconds.is_nan() {
        1
    } else if repetition_seconds <= 0.0 {
        most
    } else {
        // A quotient of positive numbers; the cast rounds down and saturates.
        (left_seconds / repetition_seconds) as u64
    };
    fits.min(most).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RULE: fn() -> IterationRule = IterationRule::default;

    fn iteration_cost(repetition_seconds: f64) -> RowCost {
        RowCost { iteration_seconds: repetition_seconds, spent_seconds: 0.0 }
    }

    #[test]
    fn number_and_volume() {
        for (bytes, aggregate, non_aggregate) in [
            (0, 1000, 100),
            (1, 1000, 100),
            (32768, 1000, 100),
            // 40 MiB / 1000 is 41943.04.
            (41943, 1000, 100),
            (41944, 999, 100),
            (65536, 640, 100),
            (1 << 18, 160, 100),
            (1 << 19, 80, 80),
            (1 << 22, 10, 10),
            (40 << 20, 1, 1),
            (1 << 30, 1, 1),
        ] {
            assert_eq!(RULE().max_iterations(Some(bytes), Mode::Aggregate), aggregate, "{bytes}");
            assert_eq!(RULE().max_iterations(Some(bytes), Mode::NonAggregate), non_aggregate, "{bytes}");
        }
        assert_eq!(RULE().max_iterations(None, Mode::Aggregate), 1000);
        let set = IterationRule { policy: IterationPolicy::Set, ..RULE() };
        assert_eq!(set.max_iterations(Some(1 << 30), Mode::NonAggregate), 100);
        assert_eq!(IterationRule { volume_bytes: 0, ..RULE() }.max_iterations(Some(1), Mode::Aggregate), 1);
    }

    #[test]
    fn time_reduces_unless_it_is_off() {
        let with = |policy| IterationRule { policy, ..RULE() };
        for (seconds, expected) in [(1e-6, 640), (0.01, 640), (0.03125, 320), (0.125, 80), (9.9, 1), (60.0, 1)] {
            assert_eq!(
                with(IterationPolicy::Dynamic).reduced_iterations(640, &iteration_cost(seconds), Some(1)),
                expected,
                "{seconds}"
            );
            assert_eq!(
                with(IterationPolicy::Auto).reduced_iterations(640, &iteration_cost(seconds), Some(1)),
                expected,
                "{seconds}"
            );
            assert_eq!(
                with(IterationPolicy::MultipleNp).reduced_iterations(640, &iteration_cost(seconds), None),
                expected,
                "{seconds}"
            );
            assert_eq!(
                with(IterationPolicy::MultipleNp).reduced_iterations(640, &iteration_cost(seconds), Some(100)),
                expected.min(100)
            );
            assert_eq!(with(IterationPolicy::Off).reduced_iterations(640, &iteration_cost(seconds), Some(1)), 640);
            assert_eq!(with(IterationPolicy::Set).reduced_iterations(640, &iteration_cost(seconds), Some(1)), 640);
        }
        let late = RowCost { iteration_seconds: 0.125, spent_seconds: 5.0 };
        assert_eq!(RULE().reduced_iterations(640, &late, None), 40);
        assert_eq!(RULE().reduced_iterations(640, &RowCost { spent_seconds: 11.0, ..late }, None), 1);
    }

    #[test]
    fn odd_times_leave_a_number() {
        assert_eq!(fitting_iterations(10, 1.0, 0.0), 10);
        assert_eq!(fitting_iterations(10, 1.0, -1.0), 10);
        assert_eq!(fitting_iterations(10, 0.0, 0.0), 1);
        assert_eq!((fitting_iterations(10, 1.0, f64::NAN), fitting_iterations(10, f64::NAN, 1.0)), (1, 1));
        assert_eq!((fitting_iterations(10, 1.0, f64::INFINITY), fitting_iterations(10, f64::INFINITY, 1.0)), (1, 10));
        assert_eq!(fitting_iterations(0, 1.0, 0.1), 1);
    }

    #[test]
    fn values_as_users_type_them() {
        let default = RULE();
        assert_eq!(default.with_iter("1000,40,100").unwrap(), default);
        assert_eq!(default.with_iter("20").unwrap(), IterationRule { aggregate: 20, non_aggregate: 20, ..default });
        assert_eq!(default.with_iter("2000").unwrap(), IterationRule { aggregate: 2000, ..default });
        assert_eq!(
            default.with_iter(" 10, 0,30 , OFF").unwrap(),
            IterationRule {
                aggregate: 10,
                non_aggregate: 30,
                volume_bytes: 0,
                policy: IterationPolicy::Off,
                ..default
            }
        );
        for text in ["", "0", "5,,5", "5,1,0", "-1", "1,2,3,4", "1,2,3,off,5", "1.5", "1,18446744073709551615"] {
            assert!(default.with_iter(text).is_err(), "{text}");
        }
        for policy in IterationPolicy::ALL {
            assert_eq!(IterationPolicy::from_name(&policy.name().to_uppercase()), Ok(policy));
        }
        let text = IterationPolicy::from_name("on").unwrap_err().to_string();
        assert!(text.contains("dynamic, multiple_np, auto, off, set"), "{text}");
        for limit_seconds in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(IterationRule { limit_seconds, ..default }.check().is_err());
        }
    }

    #[test]
    fn a_bound_is_known_only_with_a_limit() {
        assert_eq!(RULE().bound_seconds(24), Some(240.0));
        assert_eq!(IterationRule { policy: IterationPolicy::Off, ..RULE() }.bound_seconds(24), None);
        assert_eq!(IterationRule { policy: IterationPolicy::Set, ..RULE() }.bound_seconds(24), None);
    }

    proptest! {
        /// The result does not exceed the limit, and one more iteration would, or is not allowed.
        #[test]
        fn the_limit_holds_and_is_used(
            most in 1_u64..10_000, spent_seconds in 0.0..12.0_f64, iteration_seconds in 1e-7..20.0_f64,
        ) {
            let n = RULE().reduced_iterations(most, &RowCost { iteration_seconds, spent_seconds }, None);
            let end = |n: u64| spent_seconds + n as f64 * iteration_seconds;
            prop_assert!((1..=most).contains(&n));
            prop_assert!(n == 1 || end(n) <= 10.0 + 1e-9);
            prop_assert!(n == most || end(n + 1) > 10.0 - 1e-9);
        }

        #[test]
        fn volume_and_number_hold(bytes in 1_u64..1 << 31, count in 1_u64..2000, volume_mib in 0_u64..2000) {
            let rule = RULE().with_iter(&format!("{count},{volume_mib}")).unwrap();
            let n = rule.max_iterations(Some(bytes), Mode::Aggregate);
            prop_assert!((1..=count).contains(&n));
            prop_assert!(n == 1 || n * bytes <= volume_mib * MIB);
            prop_assert!(n == count || (n + 1) * bytes > volume_mib * MIB);
            prop_assert!(rule.max_iterations(Some(bytes + 1), Mode::Aggregate) <= n);
        }
    }
}
