//! What is measured again in the time that is left: pure arithmetic on what all ranks agreed on.
//!
//! A unit is one type with one access method, through all backends. First every unit is measured three times in all, cheap ones before
//! dear ones: with less a part does not know its own spread. Then the unit whose spread weighs most in the value for the time that it
//! takes; each further repeat of a unit tells less than the one before.

use crate::frame::records::Access;

/// Repeats of each unit before weights count: with the first pass three measurements.
const LEAST_REPEATS: u32 = 2;

/// The next time may take longer than the last one.
const SLOWER: f64 = 1.15;

/// One type with one access method.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit {
    /// Access method.
    pub access: Access,
    /// Pattern type, 0 to 4.
    pub pattern_type: u8,
    /// How often it was measured again.
    pub repeats: u32,
    /// What it took the longest time so far, everything included.
    pub seconds: f64,
    /// Its part of the variance of the value; 0: not known.
    pub need: f64,
}

impl Unit {
    fn fits(&self, left_seconds: f64) -> bool {
        self.seconds.is_finite() && self.seconds * SLOWER <= left_seconds
    }

    /// What a further repeat is worth, for each second.
    fn worth(&self) -> f64 {
        let need = if self.need.is_finite() { self.need.max(0.0) } else { 0.0 };
        need / (f64::from(self.repeats) + 1.0).powi(2) / self.seconds.max(1e-6)
    }
}

/// The unit to measure again; None: nothing fits any more.
#[must_use]
pub fn next(units: &[Unit], left_seconds: f64) -> Option<usize> {
    let fitting = || units.iter().enumerate().filter(|(_, unit)| unit.fits(left_seconds));
    let unknown = fitting()
        .filter(|(_, unit)| unit.repeats < LEAST_REPEATS)
        .min_by(|a, b| a.1.repeats.cmp(&b.1.repeats).then(a.1.seconds.total_cmp(&b.1.seconds)));
    let by_worth = |a: &(usize, &Unit), b: &(usize, &Unit)| {
        // The first of those that are worth the same, and of these the one with the fewest repeats.
        a.1.worth().total_cmp(&b.1.worth()).then(b.1.repeats.cmp(&a.1.repeats)).then(b.0.cmp(&a.0))
    };
    unknown.or_else(|| fitting().max_by(by_worth)).map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn unit(access: Access, pattern_type: u8, seconds: f64, need: f64) -> Unit {
        Unit { access, pattern_type, repeats: 0, seconds, need }
    }

    /// Plays the time that is left; returns the repeats of each unit.
    fn play(mut units: Vec<Unit>, mut left: f64) -> Vec<u32> {
        while let Some(at) = next(&units, left) {
            units[at].repeats += 1;
            left -= units[at].seconds;
        }
        units.iter().map(|unit| unit.repeats).collect()
    }

    #[test]
    fn all_know_something_before_one_knows_much() {
        let units =
            vec![unit(Access::Write, 0, 8.0, 0.1), unit(Access::Rewrite, 0, 2.0, 0.1), unit(Access::Read, 0, 1.0, 0.8)];
        assert_eq!(play(units.clone(), 3.4), [0, 1, 1]);
        assert_eq!(play(units.clone(), 12.5), [1, 1, 2], "the dear one comes before others again");
        let repeats = play(units, 60.0);
        assert!(repeats.iter().all(|n| *n >= 2) && repeats[2] > repeats[1] && repeats[1] > repeats[0], "{repeats:?}");
    }

    #[test]
    fn what_does_not_fit_does_not_stand_in_the_way() {
        let units = vec![unit(Access::Write, 0, 50.0, 1.0), unit(Access::Read, 0, 1.0, 0.0)];
        assert_eq!(play(units, 10.0), [0, 9]);
        assert_eq!(next(&[], 10.0), None);
        assert_eq!(next(&[unit(Access::Read, 0, f64::NAN, 1.0)], 10.0), None);
    }

    prop_compose! {
        fn any_unit()(
            access in prop_oneof![Just(Access::Write), Just(Access::Rewrite), Just(Access::Read)],
            pattern_type in 0_u8..5,
            repeats in 0_u32..6,
            seconds in 0.001..20.0_f64,
            need in prop_oneof![0.0..1.0_f64, Just(f64::NAN), Just(f64::INFINITY)],
        ) -> Unit {
            Unit { access, pattern_type, repeats, seconds, need }
        }
    }

    proptest! {
        #[test]
        fn what_is_chosen_fits_and_knows_least(units in proptest::collection::vec(any_unit(), 0..20), left in 0.0..30.0_f64) {
            let fitting: Vec<&Unit> = units.iter().filter(|u| u.seconds * SLOWER <= left).collect();
            match next(&units, left) {
                None => prop_assert!(fitting.is_empty()),
                Some(at) => {
                    let chosen = &units[at];
                    prop_assert!(chosen.seconds * SLOWER <= left);
                    let least = fitting.iter().map(|u| u.repeats).min().unwrap();
                    prop_assert!(least >= LEAST_REPEATS || chosen.repeats == least);
                    // Equal on all ranks: the same numbers give the same answer.
                    prop_assert_eq!(next(&units, left), Some(at));
                }
            }
        }

        /// The time is never overdrawn, and what is left at the end is less than the cheapest takes.
        #[test]
        fn the_time_is_kept_and_used(units in proptest::collection::vec(any_unit(), 1..15), left in 0.0..60.0_f64) {
            let before: Vec<u32> = units.iter().map(|u| u.repeats).collect();
            let repeats = play(units.clone(), left);
            let used: f64 = units.iter().zip(&repeats).zip(&before).map(|((u, n), b)| f64::from(n - b) * u.seconds).sum();
            let cheapest = units.iter().map(|u| u.seconds).fold(f64::INFINITY, f64::min);
            prop_assert!(used <= left + 1e-9 && left - used < cheapest * SLOWER + 1e-9);
        }
    }
}
