//! Selection of repetitions for the remaining time: pure arithmetic on agreed numbers.
//!
//! A unit is one type with one access method, through all backends. First every unit is measured three times in all, short ones first:
//! fewer measurements do not determine its variance. Then the unit is chosen that reduces the variance of the value most per second; each
//! further repetition reduces it less.
//!
//! If the time is too short, long units are cut: each of their patterns makes a share of its calls. Cut first writes are measured once and
//! last, because they leave less data in the files; units that rewrite or read these are not measured after that.
//!
//! For ratios of backends only the patterns with too few rounds are repeated, and not cut: a long call is one call.

use crate::b_eff_io::pattern_type::PatternType;
use crate::frame::records::AccessMethod;

/// Shorter runs have no repetitions by default: too few would fit.
pub const MIN_REPEATED_SECONDS: f64 = 10.0;

/// Minimum repetitions of each unit before weights count: three measurements with the first.
pub const MIN_REPETITIONS: u32 = 2;

/// A repetition may take this many times longer than the previous one.
const SLOWDOWN: f64 = 1.15;

/// A cut repetition may exceed its share by this factor: each pattern makes a whole call, and starts once.
const SLOWDOWN_CUT: f64 = 1.4;

/// A smaller share of the calls measures only the start of a pattern.
const MIN_SHARE: f64 = 1.0 / 32.0;

/// One type with one access method.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RepetitionUnit {
    /// Access method.
    pub access: AccessMethod,
    /// Pattern type, 0 to 4.
    pub pattern_type: PatternType,
    /// Repetitions so far.
    pub repetitions: u32,
    /// Minimum repetitions before weights count.
    pub min_repetitions: u32,
    /// Longest time of a repetition so far, everything included; before the first one the expected time.
    pub seconds: f64,
    /// Part of it that does not decrease with fewer calls: open, close, work between patterns.
    pub fixed_seconds: f64,
    /// Share of the first measurement's calls that a repetition makes: 1 all, 0 none.
    pub share: f64,
    /// Only some of its patterns are repeated.
    pub is_partial: bool,
    /// Its share of the variance of the value; 0 if unknown.
    pub need: f64,
}

impl RepetitionUnit {
    fn fits(&self, left_seconds: f64) -> bool {
        self.share > 0.0 && self.seconds.is_finite() && self.seconds * SLOWDOWN <= left_seconds
    }

    /// Expected time of a repetition with a share of the calls, if `seconds` is that of a whole one.
    fn expected_seconds(&self, share: f64) -> f64 {
        self.fixed_seconds + (self.seconds - self.fixed_seconds) * share * SLOWDOWN_CUT
    }

    /// Share with which a repetition takes at most this time, below 1; negative if none does.
    fn share_within(&self, seconds: f64) -> f64 {
        let clocked = ((self.seconds - self.fixed_seconds) * SLOWDOWN_CUT).max(1e-9);
        ((seconds - self.fixed_seconds) / clocked).min(1.0 - f64::EPSILON)
    }

    /// True if a repetition makes fewer calls or patterns than the first measurement.
    fn is_reduced(&self) -> bool {
        self.share < 1.0 || self.is_partial
    }

    /// True if the files of the type hold less data than after the first measurement.
    fn has_cut_files(&self) -> bool {
        self.is_reduced() && self.access == AccessMethod::Write && self.repetitions > 0
    }

    /// Benefit of a further repetition per second.
    fn worth(&self) -> f64 {
        let need = if self.need.is_finite() { self.need.max(0.0) } else { 0.0 };
        need / (f64::from(self.repetitions) + 1.0).powi(2) / self.seconds.max(1e-6)
    }
}

/// Number of calls that is this share of `calls`.
#[must_use]
pub fn share_of(calls: u64, share: f64) -> u64 {
    (calls as f64 * share).ceil() as u64
}

/// Cuts units so that all can be repeated twice in `left_seconds`: those that take less than an even part remain whole, the others share
/// the rest. Cut first writes and units with hardly any calls are repeated once, with more of their calls. With enough time nothing is cut;
/// with too little the longest units are excluded.
pub fn cut(units: &mut [RepetitionUnit], left_seconds: f64) {
    let mut kept: Vec<&mut RepetitionUnit> = units.iter_mut().filter(|unit| unit.seconds.is_finite()).collect();
    kept.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    let shares = even_shares(&kept, left_seconds);
    for (unit, _) in
        kept.iter_mut().zip(shares).filter(|(unit, share)| *share < 1.0 && unit.access == AccessMethod::Write)
    {
        unit.min_repetitions = 1;
    }
    let shares = loop {
        let shares = even_shares(&kept, left_seconds);
        let Some(at) = smallest(&shares).filter(|at| shares[*at] < MIN_SHARE) else { break shares };
        if kept[at].min_repetitions > 1 {
            kept[at].min_repetitions = 1;
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

/// Shares of units, shortest first, with which their repetitions take an even part of the time, or all that they need.
fn even_shares(units: &[&mut RepetitionUnit], left_seconds: f64) -> Vec<f64> {
    let mut left = left_seconds.max(0.0);
    let share = |(at, unit): (usize, &&mut RepetitionUnit)| {
        let repetitions = f64::from(unit.min_repetitions);
        let (wanted, given) = (repetitions * unit.seconds * SLOWDOWN, left / (units.len() - at) as f64);
        if wanted <= given {
            left -= wanted;
            return 1.0;
        }
        left -= given;
        unit.share_within(given / repetitions / SLOWDOWN)
    };
    units.iter().enumerate().map(share).collect()
}

/// True if the files of its type hold less data than it would rewrite or read.
fn lacks_data(unit: &RepetitionUnit, units: &[RepetitionUnit]) -> bool {
    unit.access != AccessMethod::Write && units.iter().any(|w| w.has_cut_files() && w.pattern_type == unit.pattern_type)
}

/// The next unit to repeat; None if none fits.
#[must_use]
pub fn next(units: &[RepetitionUnit], left_seconds: f64) -> Option<usize> {
    let fitting = || units.iter().enumerate().filter(|(_, unit)| unit.fits(left_seconds) && !lacks_data(unit, units));
    let last = |unit: &RepetitionUnit| unit.is_reduced() && unit.access == AccessMethod::Write;
    let unknown = fitting().filter(|(_, unit)| unit.repetitions < unit.min_repetitions).min_by(|a, b| {
        let by_repetitions = || a.1.repetitions.cmp(&b.1.repetitions).then(a.1.seconds.total_cmp(&b.1.seconds));
        last(a.1).cmp(&last(b.1)).then_with(by_repetitions)
    });
    let by_worth = |a: &(usize, &RepetitionUnit), b: &(usize, &RepetitionUnit)| {
        // The first of those with equal benefit, and of these the one with the fewest repetitions.
        a.1.worth().total_cmp(&b.1.worth()).then(b.1.repetitions.cmp(&a.1.repetitions)).then(b.0.cmp(&a.0))
    };
    unknown.or_else(|| fitting().max_by(by_worth)).map(|(at, _)| at)
}

/// True if the unit chosen by [`next`] has an unknown variance. Until then a narrow interval relies on other units or on chance, and is no
/// reason to stop.
#[must_use]
pub fn has_unknown_spread(units: &[RepetitionUnit], chosen: Option<usize>) -> bool {
    chosen.is_some_and(|at| units[at].repetitions < units[at].min_repetitions)
}

/// The next unit to repeat for ratios, which need all its repetitions: a unit that has begun is completed first, and none begins that does
/// not fit completely. If `need` is so large that there is no ratio without the unit, its time is reserved; first writes come last, because
/// they leave less data in the files.
#[must_use]
pub fn next_of_rounds(units: &[RepetitionUnit], left_seconds: f64, least_need: f64) -> Option<usize> {
    let lacks = |unit: &RepetitionUnit| unit.min_repetitions.saturating_sub(unit.repetitions);
    let takes = |unit: &RepetitionUnit| f64::from(lacks(unit)) * unit.seconds * SLOWDOWN;
    let is_needed = |unit: &RepetitionUnit| unit.need >= least_need;
    let needed = units.iter().filter(|unit| is_needed(unit)).map(takes).filter(|seconds| *seconds <= left_seconds);
    let needed_seconds: f64 = needed.sum();
    let fits = |unit: &RepetitionUnit| takes(unit) + if is_needed(unit) { 0.0 } else { needed_seconds } <= left_seconds;
    let order = |unit: &RepetitionUnit| (unit.repetitions == 0, unit.access == AccessMethod::Write, !is_needed(unit));
    let is_open = |unit: &RepetitionUnit| lacks(unit) > 0 && fits(unit) && !lacks_data(unit, units);
    let open = units.iter().enumerate().filter(|(_, unit)| is_open(unit));
    open.min_by(|a, b| order(a.1).cmp(&order(b.1)).then(a.1.seconds.total_cmp(&b.1.seconds))).map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn unit(access: AccessMethod, pattern_type: PatternType, seconds: f64, need: f64) -> RepetitionUnit {
        let least_repeats = MIN_REPETITIONS;
        RepetitionUnit {
            access,
            pattern_type,
            repetitions: 0,
            min_repetitions: least_repeats,
            seconds,
            fixed_seconds: 0.0,
            share: 1.0,
            is_partial: false,
            need,
        }
    }

    /// Simulates the remaining time; returns the repetitions of each unit.
    fn simulate(mut units: Vec<RepetitionUnit>, mut left: f64) -> Vec<u32> {
        while let Some(at) = next(&units, left) {
            units[at].repetitions += 1;
            left -= units[at].seconds;
        }
        units.iter().map(|unit| unit.repetitions).collect()
    }

    #[test]
    fn all_units_are_measured_before_one_is_measured_often() {
        let units = vec![
            unit(AccessMethod::Write, PatternType::Scatter, 8.0, 0.1),
            unit(AccessMethod::Rewrite, PatternType::Scatter, 2.0, 0.1),
            unit(AccessMethod::Read, PatternType::Scatter, 1.0, 0.8),
        ];
        assert_eq!(simulate(units.clone(), 3.4), [0, 1, 1]);
        assert_eq!(simulate(units.clone(), 12.5), [1, 1, 2], "the long unit precedes further repetitions");
        let repetitions = simulate(units, 60.0);
        assert!(
            repetitions.iter().all(|n| *n >= 2) && repetitions[2] > repetitions[1] && repetitions[1] > repetitions[0],
            "{repetitions:?}"
        );
    }

    #[test]
    fn a_narrow_interval_ends_nothing_before_all_that_fits_was_measured_as_often_as_planned() {
        let mut units = vec![
            unit(AccessMethod::Write, PatternType::Scatter, 8.0, 0.1),
            unit(AccessMethod::Read, PatternType::Scatter, 1.0, 0.8),
        ];
        let mut unknown = 0;
        while let Some(at) = next(&units, 10.0).filter(|at| has_unknown_spread(&units, Some(*at))) {
            units[at].repetitions += 1;
            unknown += 1;
        }
        assert_eq!((unknown, units[0].repetitions, units[1].repetitions), (4, 2, 2));
        // Units that do not fit any more are not waited for.
        units[0].repetitions = 1;
        assert!(has_unknown_spread(&units, next(&units, 10.0)) && !has_unknown_spread(&units, next(&units, 5.0)));
        assert!(!has_unknown_spread(&units, None));
    }

    #[test]
    fn for_ratios_begun_units_are_completed_and_files_are_written_last() {
        let few = |access, pattern_type, seconds, need| RepetitionUnit {
            is_partial: true,
            ..unit(access, pattern_type, seconds, need)
        };
        let units = [
            few(AccessMethod::Write, PatternType::Scatter, 0.5, 0.2),
            few(AccessMethod::Read, PatternType::Scatter, 1.0, 0.2),
            few(AccessMethod::Rewrite, PatternType::Scatter, 0.7, 0.05),
            few(AccessMethod::Read, PatternType::Shared, 9.0, 0.3),
        ];
        let order = |mut left: f64| {
            let (mut units, mut order) = (units.to_vec(), Vec::new());
            while let Some(at) = next_of_rounds(&units, left, 0.1) {
                units[at].repetitions += 1;
                left -= units[at].seconds;
                order.push(at);
            }
            order
        };
        assert_eq!(order(100.0), [1, 1, 3, 3, 2, 2, 0, 0]);
        // The long unit does not fit twice, and reserves no time.
        assert_eq!(order(12.0), [1, 1, 2, 2, 0, 0]);
        // Time needed for a ratio is not used by units that have one anyway.
        assert_eq!(order(2.2), [0, 0], "one repetition gives no ratio: {units:?}");
        assert!(order(1.1).is_empty() && order(f64::NAN).is_empty());
        // Files written anew are not read, however much time remains.
        let mut written = units.to_vec();
        written[0].repetitions = 2;
        assert_eq!(next_of_rounds(&written, 100.0, 0.1), Some(3), "type 1 has its files");
        written.truncate(3);
        assert_eq!(next_of_rounds(&written, 100.0, 0.1), None);
    }

    #[test]
    fn a_unit_that_does_not_fit_blocks_no_other() {
        let units = vec![
            unit(AccessMethod::Write, PatternType::Scatter, 50.0, 1.0),
            unit(AccessMethod::Read, PatternType::Scatter, 1.0, 0.0),
        ];
        assert_eq!(simulate(units, 10.0), [0, 9]);
        assert_eq!(next(&[], 10.0), None);
        assert_eq!(next(&[unit(AccessMethod::Read, PatternType::Scatter, f64::NAN, 1.0)], 10.0), None);
    }

    /// As in a run of two minutes whose first measurement takes 97 s: without cuts no first write was repeated.
    #[test]
    fn where_time_is_short_the_dear_ones_are_cut() {
        let mut units: Vec<RepetitionUnit> =
            PatternType::ALL.into_iter().map(|t| unit(AccessMethod::Write, t, 8.0, 0.1)).collect();
        units.extend(PatternType::ALL.into_iter().map(|t| unit(AccessMethod::Rewrite, t, 6.0, 0.1)));
        units.extend(PatternType::ALL.into_iter().map(|t| unit(AccessMethod::Read, t, 0.2, 0.1)));
        cut(&mut units, 22.0);
        let shares: Vec<f64> = units.iter().map(|u| u.share).collect();
        assert!(
            shares[..10].iter().all(|s| (0.0625..0.2).contains(s)) && shares[10..].iter().all(|s| *s == 1.0),
            "{shares:?}"
        );
        let mut order = Vec::new();
        let mut left = 22.0;
        while let Some(at) = next(&units, left) {
            units[at].repetitions += 1;
            left -= units[at].seconds;
            order.push(at);
        }
        assert!(
            units.iter().all(|u| u.repetitions >= if u.access == AccessMethod::Write { 1 } else { 2 }),
            "{units:?}"
        );
        let first_write = order.iter().position(|at| *at < 5).unwrap();
        assert!(order[..first_write].len() == 20 && order[first_write..].iter().all(|at| *at < 5), "{order:?}");
    }

    /// With half of that time: once each, rather than twice with tiny shares; the fixed time of a repetition is included.
    #[test]
    fn where_time_is_very_short_all_are_measured_once_again() {
        let mut units: Vec<RepetitionUnit> =
            PatternType::ALL.into_iter().map(|t| unit(AccessMethod::Write, t, 8.0, 0.1)).collect();
        units.extend(PatternType::ALL.into_iter().map(|t| unit(AccessMethod::Rewrite, t, 10.0, 0.1)));
        units.iter_mut().for_each(|unit| unit.fixed_seconds = 0.2);
        cut(&mut units, 10.0);
        assert!(units.iter().all(|u| u.share >= MIN_SHARE && u.share < 0.13 && u.min_repetitions == 1), "{units:?}");
        let cost: f64 = units.iter().map(|u| u.seconds).sum();
        assert!((8.0..10.0 / SLOWDOWN + 1e-9).contains(&cost), "{cost}");
        assert!(simulate(units, 10.0 + 1e-9).iter().all(|n| *n >= 1));
    }

    #[test]
    fn with_time_enough_nothing_is_cut_and_with_hardly_any_the_dearest_are_left_out() {
        let whole = vec![
            unit(AccessMethod::Write, PatternType::Scatter, 8.0, 0.1),
            unit(AccessMethod::Read, PatternType::Scatter, 1.0, 0.8),
        ];
        let mut units = whole.clone();
        cut(&mut units, 20.8);
        assert_eq!(units, whole);
        cut(&mut units, 0.5);
        assert!(units[0].share == 0.0 && (0.15..0.16).contains(&units[1].share), "{units:?}");
        cut(&mut units, -1.0);
        assert_eq!(next(&units, 100.0), None);
        let mut units = vec![
            unit(AccessMethod::Read, PatternType::Scatter, f64::NAN, 1.0),
            unit(AccessMethod::Read, PatternType::Shared, 0.0, 1.0),
        ];
        cut(&mut units, 1.0);
        assert_eq!(units[1].share, 1.0);
    }

    prop_compose! {
        fn any_unit()(
            access in prop_oneof![Just(AccessMethod::Write), Just(AccessMethod::Rewrite), Just(AccessMethod::Read)],
            pattern_type in proptest::sample::select(&PatternType::ALL[..]),
            repetitions in 0_u32..6,
            seconds in 0.001..20.0_f64,
            need in prop_oneof![0.0..1.0_f64, Just(f64::NAN), Just(f64::INFINITY)],
        ) -> RepetitionUnit {
            RepetitionUnit { repetitions, ..unit(access, pattern_type, seconds, need) }
        }
    }

    proptest! {
        #[test]
        fn the_chosen_unit_fits_and_has_the_fewest_repetitions(units in proptest::collection::vec(any_unit(), 0..20), left in 0.0..30.0_f64) {
            let fitting: Vec<&RepetitionUnit> = units.iter().filter(|u| u.seconds * SLOWDOWN <= left).collect();
            match next(&units, left) {
                None => prop_assert!(fitting.is_empty()),
                Some(at) => {
                    let chosen = &units[at];
                    prop_assert!(chosen.seconds * SLOWDOWN <= left);
                    let least = fitting.iter().map(|u| u.repetitions).min().unwrap();
                    prop_assert!(least >= MIN_REPETITIONS || chosen.repetitions == least);
                    // Equal on all ranks: equal input gives equal results.
                    prop_assert_eq!(next(&units, left), Some(at));
                }
            }
        }

        /// For any times: all units that are not excluded are repeated twice, if they take the expected time.
        #[test]
        fn what_is_cut_fits(
            seconds in proptest::collection::vec((0.001..20.0_f64, 0.0..1.0_f64), 1..15),
            left in 0.01..60.0_f64,
        ) {
            let all = [AccessMethod::Write, AccessMethod::Rewrite, AccessMethod::Read];
            let mut units: Vec<RepetitionUnit> =
                seconds.iter().enumerate().map(|(i, (s, _))| unit(all[i % 3], PatternType::ALL[i / 3], *s, 0.5)).collect();
            units.iter_mut().zip(&seconds).for_each(|(unit, (s, fixed))| unit.fixed_seconds = s * fixed);
            cut(&mut units, left);
            let of = |u: &RepetitionUnit| f64::from(u.min_repetitions) * u.seconds;
            let expected: f64 = units.iter().filter(|u| u.share > 0.0).map(of).sum();
            prop_assert!(expected * SLOWDOWN <= left * (1.0 + 1e-9));
            let repetitions = simulate(units.clone(), left * (1.0 + 1e-9));
            for (unit, n) in units.iter().zip(&repetitions) {
                prop_assert_eq!(*n >= unit.min_repetitions, unit.share > 0.0, "{:?}", units);
                prop_assert!(unit.share == 0.0 || unit.share >= MIN_SHARE && unit.share <= 1.0);
            }
        }

        /// The time is never exceeded, and what remains is less than the shortest unit needs.
        #[test]
        fn the_time_is_kept_and_used(units in proptest::collection::vec(any_unit(), 1..15), left in 0.0..60.0_f64) {
            let before: Vec<u32> = units.iter().map(|u| u.repetitions).collect();
            let counts = simulate(units.clone(), left);
            let used: f64 = units.iter().zip(&counts).zip(&before).map(|((u, n), b)| f64::from(n - b) * u.seconds).sum();
            let cheapest = units.iter().map(|u| u.seconds).fold(f64::INFINITY, f64::min);
            prop_assert!(used <= left + 1e-9 && left - used < cheapest * SLOWDOWN + 1e-9);
        }
    }
}
