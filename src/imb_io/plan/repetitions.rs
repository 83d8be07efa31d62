//! How often a sample is repeated: a number, a volume, a time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::benchmark::Mode;
use crate::frame::units::MIB;
use crate::imb_io::plan::PlanError;

/// What may reduce the repetitions of a row below those that number and volume allow, in the words of `-iter_policy`.
///
/// No reduction is needed for a file pointer to go back: before reads, the file is made as long as all repetitions together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// The time limit of the row. The default.
    #[default]
    Dynamic,
    /// Our reading of a word whose definition we do not have: the time limit, and no more repetitions than the size before
    /// had, so that one quick size among slow ones does not stand on another number.
    MultipleNp,
    /// As `dynamic`: there is nothing to choose by among the benchmarks of IMB-IO. Our reading, too.
    Auto,
    /// Nothing: number and volume alone count, whatever the time.
    Off,
    /// Nothing, and the volume does not count either: exactly the number that was given, for every size. Ours.
    Set,
}

impl Policy {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Dynamic, Self::MultipleNp, Self::Auto, Self::Off, Self::Set];

    /// As it is typed.
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

    /// The policy of that name, in any case of letters.
    ///
    /// # Errors
    /// [`PlanError::Argument`] with the names there are.
    pub fn from_name(name: &str) -> Result<Self, PlanError> {
        Self::ALL.into_iter().find(|policy| policy.name().eq_ignore_ascii_case(name.trim())).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            PlanError::argument(format!("there is no policy of repetitions '{name}'; there are {names}"))
        })
    }

    /// Whether a row ends by its time limit.
    #[must_use]
    pub fn is_timed(self) -> bool {
        matches!(self, Self::Dynamic | Self::MultipleNp | Self::Auto)
    }
}

/// What a row has cost so far, the same on all ranks (the slowest one).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Seconds of one repetition with all that belongs to it: the sync in non-aggregate mode, both runs where there is an
    /// overlap ([`super::overlap::repetition_seconds`]).
    pub repetition_seconds: f64,
    /// Seconds of the row that are gone already: preparing its file, the trial that the number above comes from.
    pub spent_seconds: f64,
}

/// The rule for the repetitions of all rows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Repetitions {
    /// Most repetitions in aggregate mode, n0.
    pub aggregate: u64,
    /// Most repetitions in non-aggregate mode, n0.
    pub non_aggregate: u64,
    /// Bytes that all repetitions of a row move together at most, unless one moves more.
    pub volume_bytes: u64,
    /// Time limit of a row in seconds.
    pub limit_seconds: f64,
    /// What else reduces them.
    pub policy: Policy,
}

impl Default for Repetitions {
    /// 1000 and 100, 40 MiB, 10 s.
    fn default() -> Self {
        Self {
            aggregate: 1000,
            non_aggregate: 100,
            volume_bytes: 40 * MIB,
            limit_seconds: 10.0,
            policy: Policy::Dynamic,
        }
    }
}

impl Repetitions {
    /// This rule with what `n[,volume[,nonaggregate[,policy]]]` says: a number, a volume in MiB, a number, a name. Without
    /// a number of its own the non-aggregate mode has no more repetitions than the other.
    ///
    /// # Errors
    /// [`PlanError::Argument`] for what is none of these, and for what [`Repetitions::check`] refuses.
    pub fn with_iter(self, text: &str) -> Result<Self, PlanError> {
        let no = |what: &str| {
            PlanError::argument(format!(
                "repetitions '{text}': {what}; expected n[,volume in MiB[,n in non-aggregate mode[,policy]]], e.g. 1000,40,100"
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
            rule.policy = Policy::from_name(policy)?;
        }
        rule.check().map(|()| rule)
    }

    /// Whether every row would have at least one repetition and an end.
    ///
    /// # Errors
    /// [`PlanError::Argument`] for 0 repetitions and for a time limit that is not a positive number.
    pub fn check(&self) -> Result<(), PlanError> {
        if self.aggregate == 0 || self.non_aggregate == 0 {
            return Err(PlanError::argument("0 repetitions measure nothing; ask for at least 1"));
        }
        if !(self.limit_seconds.is_finite() && self.limit_seconds > 0.0) {
            return Err(PlanError::argument(format!(
                "a time limit of {} s for each size; it must be above 0",
                self.limit_seconds
            )));
        }
        Ok(())
    }

    /// Repetitions before any time is looked at: max(1, min(volume / X, n0)); n0 for X = 0, for Open_Close (`None`), whose
    /// one byte is not what it measures, and with [`Policy::Set`].
    #[must_use]
    pub fn most(&self, sample_bytes: Option<u64>, mode: Mode) -> u64 {
        let most = match mode {
            Mode::Aggregate => self.aggregate,
            Mode::NonAggregate => self.non_aggregate,
        };
        match sample_bytes {
            Some(bytes) if bytes > 0 && self.policy != Policy::Set => (self.volume_bytes / bytes).min(most).max(1),
            _ => most,
        }
    }

    /// Repetitions of a row: `most`, reduced as the policy says. `previous` is what the size before had in the same mode on the
    /// same ranks. At least 1.
    #[must_use]
    pub fn reduced(&self, most: u64, measured: &Measured, previous: Option<u64>) -> u64 {
        if !self.policy.is_timed() {
            return most.max(1);
        }
        let most = match previous {
            Some(previous) if self.policy == Policy::MultipleNp => most.min(previous),
            _ => most,
        };
        fitting(most, self.limit_seconds - measured.spent_seconds, measured.repetition_seconds)
    }

    /// Upper bound in seconds for what `rows` rows take, to be printed before the run: each has the time limit, which
    /// includes its preparation. Only a row whose preparation and single repetition together exceed the limit takes longer. `None` if
    /// no time limit is in force.
    #[must_use]
    pub fn bound_seconds(&self, rows: u64) -> Option<f64> {
        self.policy.is_timed().then_some(rows as f64 * self.limit_seconds)
    }
}

/// Repetitions that fit into `left_seconds`, 1 to `most`. A repetition too short to be measured does not reduce them; a
/// time that is no number leaves one.
#[must_use]
pub fn fitting(most: u64, left_seconds: f64, repetition_seconds: f64) -> u64 {
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

    const RULE: fn() -> Repetitions = Repetitions::default;

    fn took(repetition_seconds: f64) -> Measured {
        Measured { repetition_seconds, spent_seconds: 0.0 }
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
            assert_eq!(RULE().most(Some(bytes), Mode::Aggregate), aggregate, "{bytes}");
            assert_eq!(RULE().most(Some(bytes), Mode::NonAggregate), non_aggregate, "{bytes}");
        }
        assert_eq!(RULE().most(None, Mode::Aggregate), 1000);
        let set = Repetitions { policy: Policy::Set, ..RULE() };
        assert_eq!(set.most(Some(1 << 30), Mode::NonAggregate), 100);
        assert_eq!(Repetitions { volume_bytes: 0, ..RULE() }.most(Some(1), Mode::Aggregate), 1);
    }

    #[test]
    fn time_reduces_unless_it_is_off() {
        let with = |policy| Repetitions { policy, ..RULE() };
        for (seconds, expected) in [(1e-6, 640), (0.01, 640), (0.03125, 320), (0.125, 80), (9.9, 1), (60.0, 1)] {
            assert_eq!(with(Policy::Dynamic).reduced(640, &took(seconds), Some(1)), expected, "{seconds}");
            assert_eq!(with(Policy::Auto).reduced(640, &took(seconds), Some(1)), expected, "{seconds}");
            assert_eq!(with(Policy::MultipleNp).reduced(640, &took(seconds), None), expected, "{seconds}");
            assert_eq!(with(Policy::MultipleNp).reduced(640, &took(seconds), Some(100)), expected.min(100));
            assert_eq!(with(Policy::Off).reduced(640, &took(seconds), Some(1)), 640);
            assert_eq!(with(Policy::Set).reduced(640, &took(seconds), Some(1)), 640);
        }
        let late = Measured { repetition_seconds: 0.125, spent_seconds: 5.0 };
        assert_eq!(RULE().reduced(640, &late, None), 40);
        assert_eq!(RULE().reduced(640, &Measured { spent_seconds: 11.0, ..late }, None), 1);
    }

    #[test]
    fn odd_times_leave_a_number() {
        assert_eq!(fitting(10, 1.0, 0.0), 10);
        assert_eq!(fitting(10, 1.0, -1.0), 10);
        assert_eq!(fitting(10, 0.0, 0.0), 1);
        assert_eq!((fitting(10, 1.0, f64::NAN), fitting(10, f64::NAN, 1.0)), (1, 1));
        assert_eq!((fitting(10, 1.0, f64::INFINITY), fitting(10, f64::INFINITY, 1.0)), (1, 10));
        assert_eq!(fitting(0, 1.0, 0.1), 1);
    }

    #[test]
    fn values_as_users_type_them() {
        let default = RULE();
        assert_eq!(default.with_iter("1000,40,100").unwrap(), default);
        assert_eq!(default.with_iter("20").unwrap(), Repetitions { aggregate: 20, non_aggregate: 20, ..default });
        assert_eq!(default.with_iter("2000").unwrap(), Repetitions { aggregate: 2000, ..default });
        assert_eq!(
            default.with_iter(" 10, 0,30 , OFF").unwrap(),
            Repetitions { aggregate: 10, non_aggregate: 30, volume_bytes: 0, policy: Policy::Off, ..default }
        );
        for text in ["", "0", "5,,5", "5,1,0", "-1", "1,2,3,4", "1,2,3,off,5", "1.5", "1,18446744073709551615"] {
            assert!(default.with_iter(text).is_err(), "{text}");
        }
        for policy in Policy::ALL {
            assert_eq!(Policy::from_name(&policy.name().to_uppercase()), Ok(policy));
        }
        let text = Policy::from_name("on").unwrap_err().to_string();
        assert!(text.contains("dynamic, multiple_np, auto, off, set"), "{text}");
        for limit_seconds in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Repetitions { limit_seconds, ..default }.check().is_err());
        }
    }

    #[test]
    fn a_bound_is_known_only_with_a_limit() {
        assert_eq!(RULE().bound_seconds(24), Some(240.0));
        assert_eq!(Repetitions { policy: Policy::Off, ..RULE() }.bound_seconds(24), None);
        assert_eq!(Repetitions { policy: Policy::Set, ..RULE() }.bound_seconds(24), None);
    }

    proptest! {
        /// What fits does not exceed the limit, and one more would, or is not allowed.
        #[test]
        fn the_limit_holds_and_is_used(
            most in 1_u64..10_000, spent_seconds in 0.0..12.0_f64, repetition_seconds in 1e-7..20.0_f64,
        ) {
            let n = RULE().reduced(most, &Measured { repetition_seconds, spent_seconds }, None);
            let end = |n: u64| spent_seconds + n as f64 * repetition_seconds;
            prop_assert!((1..=most).contains(&n));
            prop_assert!(n == 1 || end(n) <= 10.0 + 1e-9);
            prop_assert!(n == most || end(n + 1) > 10.0 - 1e-9);
        }

        #[test]
        fn volume_and_number_hold(bytes in 1_u64..1 << 31, count in 1_u64..2000, volume_mib in 0_u64..2000) {
            let rule = RULE().with_iter(&format!("{count},{volume_mib}")).unwrap();
            let n = rule.most(Some(bytes), Mode::Aggregate);
            prop_assert!((1..=count).contains(&n));
            prop_assert!(n == 1 || n * bytes <= volume_mib * MIB);
            prop_assert!(n == count || (n + 1) * bytes > volume_mib * MIB);
            prop_assert!(rule.most(Some(bytes + 1), Mode::Aggregate) <= n);
        }
    }
}
