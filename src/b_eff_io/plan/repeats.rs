//! What is measured again in the time that is left: pure arithmetic on what all ranks agreed on.
//!
//! A unit is one type with one access method, through all backends. First every unit is measured three times in all, cheap ones before
//! dear ones: with less a part does not know its own spread. Then the unit whose spread weighs most in the value for the time that it
//! takes; each further repeat of a unit tells less than the one before.
//!
//! Where the time is too short for that, the dear units are cut: each of their patterns makes a share of its calls. Cut first writes are
//! made once and come last, because they leave less in the files; what reads or rewrites those is not measured again after that.
//!
//! For ratios of backends only the patterns with too few rounds are measured again, which is not cut: a long call is one call.

use crate::b_eff_io::pattern_type::PatternType;
use crate::frame::records::Access;

/// Repeats of each unit before weights count: with the first pass three measurements.
pub const LEAST_REPEATS: u32 = 2;

/// The next time may take longer than the last one.
const SLOWER: f64 = 1.15;

/// What is cut may take longer than its share: each pattern makes a whole call, and begins once.
const SLOWER_CUT: f64 = 1.4;

/// A smaller share of the calls measures the begin of a pattern, not the pattern.
const LEAST_SHARE: f64 = 1.0 / 32.0;

/// One type with one access method.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit {
    /// Access method.
    pub access: Access,
    /// Pattern type, 0 to 4.
    pub pattern_type: PatternType,
    /// How often it was measured again.
    pub repeats: u32,
    /// As often before weights count.
    pub least_repeats: u32,
    /// What a repeat took the longest time so far, everything included; before the first one what is expected.
    pub seconds: f64,
    /// Of that, what does not become less with fewer calls: opening, closing, what is done between patterns.
    pub fixed_seconds: f64,
    /// Share of the calls of the first pass that a repeat makes: 1 whole, 0 none.
    pub share: f64,
    /// Only some of its patterns are measured again.
    pub is_partial: bool,
    /// Its part of the variance of the value; 0: not known.
    pub need: f64,
}

impl Unit {
    fn fits(&self, left_seconds: f64) -> bool {
        self.share > 0.0 && self.seconds.is_finite() && self.seconds * SLOWER <= left_seconds
    }

    /// What a repeat with a share of the calls takes, if `seconds` is that of a whole one.
    fn expected_seconds(&self, share: f64) -> f64 {
        self.fixed_seconds + (self.seconds - self.fixed_seconds) * share * SLOWER_CUT
    }

    /// The share with which a repeat takes no more than this, below 1; negative if none does.
    fn share_in(&self, seconds: f64) -> f64 {
        let clocked = ((self.seconds - self.fixed_seconds) * SLOWER_CUT).max(1e-9);
        ((seconds - self.fixed_seconds) / clocked).min(1.0 - f64::EPSILON)
    }

    /// A repeat makes less than the first pass.
    fn makes_less(&self) -> bool {
        self.share < 1.0 || self.is_partial
    }

    /// The files of the type hold less than they did.
    fn has_cut_files(&self) -> bool {
        self.makes_less() && self.access == Access::Write && self.repeats > 0
    }

    /// What a further repeat is worth, for each second.
    fn worth(&self) -> f64 {
        let need = if self.need.is_finite() { self.need.max(0.0) } else { 0.0 };
        need / (f64::from(self.repeats) + 1.0).powi(2) / self.seconds.max(1e-6)
    }
}

/// The calls that are a share of so many.
#[must_use]
pub fn share_of(calls: u64, share: f64) -> u64 {
    (calls as f64 * share).ceil() as u64
}

/// Cuts units so that all can be measured twice again in `left_seconds`: those that take less than an even part of it stay whole, the
/// others share the rest. First writes that are cut are measured once, with more of their calls, and so is what would make hardly any.
/// With time enough nothing is cut; with hardly any the dearest are left out.
pub fn cut(units: &mut [Unit], left_seconds: f64) {
    let mut kept: Vec<&mut Unit> = units.iter_mut().filter(|unit| unit.seconds.is_finite()).collect();
    kept.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    let shares = even_shares(&kept, left_seconds);
    for (unit, _) in kept.iter_mut().zip(shares).filter(|(unit, share)| *share < 1.0 && unit.access == Access::Write) {
        unit.least_repeats = 1;
    }
    let shares = loop {
        let shares = even_shares(&kept, left_seconds);
        let Some(at) = smallest(&shares).filter(|at| shares[*at] < LEAST_SHARE) else { break shares };
        if kept[at].least_repeats > 1 {
            kept[at].least_repeats = 1;
        } else {
            kept.remove(at).share = 0.0;
        }
    };
    for (unit, share) in kept.into_iter().zip(shares).filter(|(_, share)| *share < 1.0) {
        unit.share = share;
        unit.seconds = unit.expected_seconds(share);
    }
}

fn smallest(shares: &[f64]) -> Option<usize> {
    (0..shares.len()).min_by(|a, b| shares[*a].total_cmp(&shares[*b]))
}

/// Shares of units, cheap ones first, with which their repeats take an even part of the time, or all that they want.
fn even_shares(units: &[&mut Unit], left_seconds: f64) -> Vec<f64> {
    let mut left = left_seconds.max(0.0);
    let share = |(at, unit): (usize, &&mut Unit)| {
        let repeats = f64::from(unit.least_repeats);
        let (wanted, given) = (repeats * unit.seconds * SLOWER, left / (units.len() - at) as f64);
        if wanted <= given {
            left -= wanted;
            return 1.0;
        }
        left -= given;
        unit.share_in(given / repeats / SLOWER)
    };
    units.iter().enumerate().map(share).collect()
}

/// True if the files of its type hold less than it would rewrite or read.
fn is_lost(unit: &Unit, units: &[Unit]) -> bool {
    unit.access != Access::Write && units.iter().any(|w| w.has_cut_files() && w.pattern_type == unit.pattern_type)
}

/// The unit to measure again; None: nothing fits any more.
#[must_use]
pub fn next(units: &[Unit], left_seconds: f64) -> Option<usize> {
    let fitting = || units.iter().enumerate().filter(|(_, unit)| unit.fits(left_seconds) && !is_lost(unit, units));
    let last = |unit: &Unit| unit.makes_less() && unit.access == Access::Write;
    let unknown = fitting().filter(|(_, unit)| unit.repeats < unit.least_repeats).min_by(|a, b| {
        let by_repeats = || a.1.repeats.cmp(&b.1.repeats).then(a.1.seconds.total_cmp(&b.1.seconds));
        last(a.1).cmp(&last(b.1)).then_with(by_repeats)
    });
    let by_worth = |a: &(usize, &Unit), b: &(usize, &Unit)| {
        // The first of those that are worth the same, and of these the one with the fewest repeats.
        a.1.worth().total_cmp(&b.1.worth()).then(b.1.repeats.cmp(&a.1.repeats)).then(b.0.cmp(&a.0))
    };
    unknown.or_else(|| fitting().max_by(by_worth)).map(|(at, _)| at)
}

/// True if this choice of [`next`] is a unit that does not know its own spread yet. Before, a narrow interval is narrow by what stands for
/// others, or by chance, and ends nothing.
#[must_use]
pub fn is_unknown(units: &[Unit], chosen: Option<usize>) -> bool {
    chosen.is_some_and(|at| units[at].repeats < units[at].least_repeats)
}

/// The unit to measure again for ratios, which need all repeats of it: one that is begun is ended first, and none is begun that does not fit
/// whole. Where `need` is so large that there is no ratio without, its time is kept from others; first writes leave less in the files, and
/// come last.
#[must_use]
pub fn next_of_rounds(units: &[Unit], left_seconds: f64, least_need: f64) -> Option<usize> {
    let lacks = |unit: &Unit| unit.least_repeats.saturating_sub(unit.repeats);
    let takes = |unit: &Unit| f64::from(lacks(unit)) * unit.seconds * SLOWER;
    let is_needed = |unit: &Unit| unit.need >= least_need;
    let needed = units.iter().filter(|unit| is_needed(unit)).map(takes).filter(|seconds| *seconds <= left_seconds);
    let needed_seconds: f64 = needed.sum();
    let fits = |unit: &Unit| takes(unit) + if is_needed(unit) { 0.0 } else { needed_seconds } <= left_seconds;
    let order = |unit: &Unit| (unit.repeats == 0, unit.access == Access::Write, !is_needed(unit));
    let is_open = |unit: &Unit| lacks(unit) > 0 && fits(unit) && !is_lost(unit, units);
    let open = units.iter().enumerate().filter(|(_, unit)| is_open(unit));
    open.min_by(|a, b| order(a.1).cmp(&order(b.1)).then(a.1.seconds.total_cmp(&b.1.seconds))).map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn unit(access: Access, pattern_type: PatternType, seconds: f64, need: f64) -> Unit {
        let least_repeats = LEAST_REPEATS;
        Unit {
            access,
            pattern_type,
            repeats: 0,
            least_repeats,
            seconds,
            fixed_seconds: 0.0,
            share: 1.0,
            is_partial: false,
            need,
        }
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
        let units = vec![
            unit(Access::Write, PatternType::Scatter, 8.0, 0.1),
            unit(Access::Rewrite, PatternType::Scatter, 2.0, 0.1),
            unit(Access::Read, PatternType::Scatter, 1.0, 0.8),
        ];
        assert_eq!(play(units.clone(), 3.4), [0, 1, 1]);
        assert_eq!(play(units.clone(), 12.5), [1, 1, 2], "the dear one comes before others again");
        let repeats = play(units, 60.0);
        assert!(repeats.iter().all(|n| *n >= 2) && repeats[2] > repeats[1] && repeats[1] > repeats[0], "{repeats:?}");
    }

    #[test]
    fn a_narrow_interval_ends_nothing_before_all_that_fits_was_measured_as_often_as_planned() {
        let mut units = vec![
            unit(Access::Write, PatternType::Scatter, 8.0, 0.1),
            unit(Access::Read, PatternType::Scatter, 1.0, 0.8),
        ];
        let mut unknown = 0;
        while let Some(at) = next(&units, 10.0).filter(|at| is_unknown(&units, Some(*at))) {
            units[at].repeats += 1;
            unknown += 1;
        }
        assert_eq!((unknown, units[0].repeats, units[1].repeats), (4, 2, 2));
        // What does not fit any more is not waited for.
        units[0].repeats = 1;
        assert!(is_unknown(&units, next(&units, 10.0)) && !is_unknown(&units, next(&units, 5.0)));
        assert!(!is_unknown(&units, None));
    }

    #[test]
    fn for_ratios_what_is_begun_is_ended_and_files_are_written_last() {
        let few = |access, pattern_type, seconds, need| Unit {
            is_partial: true,
            ..unit(access, pattern_type, seconds, need)
        };
        let units = [
            few(Access::Write, PatternType::Scatter, 0.5, 0.2),
            few(Access::Read, PatternType::Scatter, 1.0, 0.2),
            few(Access::Rewrite, PatternType::Scatter, 0.7, 0.05),
            few(Access::Read, PatternType::Shared, 9.0, 0.3),
        ];
        let order = |mut left: f64| {
            let (mut units, mut order) = (units.to_vec(), Vec::new());
            while let Some(at) = next_of_rounds(&units, left, 0.1) {
                units[at].repeats += 1;
                left -= units[at].seconds;
                order.push(at);
            }
            order
        };
        assert_eq!(order(100.0), [1, 1, 3, 3, 2, 2, 0, 0]);
        // The dear one does not fit twice, and keeps no time from others.
        assert_eq!(order(12.0), [1, 1, 2, 2, 0, 0]);
        // Where a ratio needs the time, what has one anyway does not take it.
        assert_eq!(order(2.2), [0, 0], "one repeat alone is none: {units:?}");
        assert!(order(1.1).is_empty() && order(f64::NAN).is_empty());
        // What was written anew is not read, however much time is left.
        let mut written = units.to_vec();
        written[0].repeats = 2;
        assert_eq!(next_of_rounds(&written, 100.0, 0.1), Some(3), "type 1 has its files");
        written.truncate(3);
        assert_eq!(next_of_rounds(&written, 100.0, 0.1), None);
    }

    #[test]
    fn what_does_not_fit_does_not_stand_in_the_way() {
        let units = vec![
            unit(Access::Write, PatternType::Scatter, 50.0, 1.0),
            unit(Access::Read, PatternType::Scatter, 1.0, 0.0),
        ];
        assert_eq!(play(units, 10.0), [0, 9]);
        assert_eq!(next(&[], 10.0), None);
        assert_eq!(next(&[unit(Access::Read, PatternType::Scatter, f64::NAN, 1.0)], 10.0), None);
    }

    /// As in a run of two minutes whose first pass takes 97 s: before, no first write was measured again.
    #[test]
    fn where_time_is_short_the_dear_ones_are_cut() {
        let mut units: Vec<Unit> = PatternType::ALL.into_iter().map(|t| unit(Access::Write, t, 8.0, 0.1)).collect();
        units.extend(PatternType::ALL.into_iter().map(|t| unit(Access::Rewrite, t, 6.0, 0.1)));
        units.extend(PatternType::ALL.into_iter().map(|t| unit(Access::Read, t, 0.2, 0.1)));
        cut(&mut units, 22.0);
        let shares: Vec<f64> = units.iter().map(|u| u.share).collect();
        assert!(
            shares[..10].iter().all(|s| (0.0625..0.2).contains(s)) && shares[10..].iter().all(|s| *s == 1.0),
            "{shares:?}"
        );
        let mut order = Vec::new();
        let mut left = 22.0;
        while let Some(at) = next(&units, left) {
            units[at].repeats += 1;
            left -= units[at].seconds;
            order.push(at);
        }
        assert!(units.iter().all(|u| u.repeats >= if u.access == Access::Write { 1 } else { 2 }), "{units:?}");
        let first_write = order.iter().position(|at| *at < 5).unwrap();
        assert!(order[..first_write].len() == 20 && order[first_write..].iter().all(|at| *at < 5), "{order:?}");
    }

    /// With half of that time: once each, rather than twice with tiny shares; what a repeat takes beside its calls is counted.
    #[test]
    fn where_time_is_very_short_all_are_measured_once_again() {
        let mut units: Vec<Unit> = PatternType::ALL.into_iter().map(|t| unit(Access::Write, t, 8.0, 0.1)).collect();
        units.extend(PatternType::ALL.into_iter().map(|t| unit(Access::Rewrite, t, 10.0, 0.1)));
        units.iter_mut().for_each(|unit| unit.fixed_seconds = 0.2);
        cut(&mut units, 10.0);
        assert!(units.iter().all(|u| u.share >= LEAST_SHARE && u.share < 0.13 && u.least_repeats == 1), "{units:?}");
        let cost: f64 = units.iter().map(|u| u.seconds).sum();
        assert!((8.0..10.0 / SLOWER + 1e-9).contains(&cost), "{cost}");
        assert!(play(units, 10.0 + 1e-9).iter().all(|n| *n >= 1));
    }

    #[test]
    fn with_time_enough_nothing_is_cut_and_with_hardly_any_the_dearest_are_left_out() {
        let whole = vec![
            unit(Access::Write, PatternType::Scatter, 8.0, 0.1),
            unit(Access::Read, PatternType::Scatter, 1.0, 0.8),
        ];
        let mut units = whole.clone();
        cut(&mut units, 20.8);
        assert_eq!(units, whole);
        cut(&mut units, 0.5);
        assert!(units[0].share == 0.0 && (0.15..0.16).contains(&units[1].share), "{units:?}");
        cut(&mut units, -1.0);
        assert_eq!(next(&units, 100.0), None);
        let mut units = vec![
            unit(Access::Read, PatternType::Scatter, f64::NAN, 1.0),
            unit(Access::Read, PatternType::Shared, 0.0, 1.0),
        ];
        cut(&mut units, 1.0);
        assert_eq!(units[1].share, 1.0);
    }

    prop_compose! {
        fn any_unit()(
            access in prop_oneof![Just(Access::Write), Just(Access::Rewrite), Just(Access::Read)],
            pattern_type in proptest::sample::select(&PatternType::ALL[..]),
            repeats in 0_u32..6,
            seconds in 0.001..20.0_f64,
            need in prop_oneof![0.0..1.0_f64, Just(f64::NAN), Just(f64::INFINITY)],
        ) -> Unit {
            Unit { repeats, ..unit(access, pattern_type, seconds, need) }
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

        /// Whatever the units take: all that are not left out are measured twice again, if they take what is expected.
        #[test]
        fn what_is_cut_fits(
            seconds in proptest::collection::vec((0.001..20.0_f64, 0.0..1.0_f64), 1..15),
            left in 0.01..60.0_f64,
        ) {
            let all = [Access::Write, Access::Rewrite, Access::Read];
            let mut units: Vec<Unit> =
                seconds.iter().enumerate().map(|(i, (s, _))| unit(all[i % 3], PatternType::ALL[i / 3], *s, 0.5)).collect();
            units.iter_mut().zip(&seconds).for_each(|(unit, (s, fixed))| unit.fixed_seconds = s * fixed);
            cut(&mut units, left);
            let of = |u: &Unit| f64::from(u.least_repeats) * u.seconds;
            let expected: f64 = units.iter().filter(|u| u.share > 0.0).map(of).sum();
            prop_assert!(expected * SLOWER <= left * (1.0 + 1e-9));
            let repeats = play(units.clone(), left * (1.0 + 1e-9));
            for (unit, n) in units.iter().zip(&repeats) {
                prop_assert_eq!(*n >= unit.least_repeats, unit.share > 0.0, "{:?}", units);
                prop_assert!(unit.share == 0.0 || unit.share >= LEAST_SHARE && unit.share <= 1.0);
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
