//! How sure a number is that was measured several times within one run: its mean with a 95 % interval.
//!
//! Speeds are compared by their logarithms, so the mean is the geometric one, and the interval is Student's on the logarithms: with
//! three measurements it is wide, because three know little of their own spread. It holds for the mean, and not for the largest of
//! the measurements or for the first one; and for this run: what changes from run to run (where memory lies, which nodes, the
//! fill of a file system) is in none of them.

use crate::student::quantile;

/// With fewer measurements nothing is said about their spread.
pub const MIN_MEASURED: usize = 3;

/// With fewer measurements a narrow interval ends nothing: looked at again and again, one of three or four is narrow by chance too
/// often (it then held the truth in 90 % of simulated runs, with five in 92 to 95 %).
pub const LEAST_TO_END: usize = 5;

/// Probability that the interval does not hold the mean.
const OUTSIDE: f64 = 0.05;

/// The mean of repeated measurements, in their unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Repeated {
    /// How often it was measured.
    pub measured: u64,
    /// Geometric mean.
    pub mean: f64,
    /// 95 % interval of the mean; None: not known, fewer than [`MIN_MEASURED`].
    pub interval: Option<[f64; 2]>,
}

impl Repeated {
    /// From what was measured, in any order; None of nothing, and if one of them is no number above zero.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let log = |value: f64| (value.is_finite() && value > 0.0).then(|| value.ln());
        let logs: Vec<f64> = values.into_iter().map(log).collect::<Option<_>>()?;
        if logs.is_empty() {
            return None;
        }
        let number = logs.len() as f64;
        let mean = logs.iter().sum::<f64>() / number;
        let reach = (logs.len() >= MIN_MEASURED).then(|| {
            let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (number - 1.0);
            quantile(OUTSIDE, number - 1.0) * (variance / number).sqrt()
        });
        let interval = reach.map(|reach| [(mean - reach).exp(), (mean + reach).exp()]);
        Some(Self { measured: logs.len() as u64, mean: mean.exp(), interval })
    }

    /// How far the upper end is from the mean, as a share of it: 0.05 for 5 %. The lower end is as far by the ratio. None: not known.
    #[must_use]
    pub fn reach(&self) -> Option<f64> {
        self.interval.map(|[_, high]| high / self.mean - 1.0)
    }

    /// Whether the interval reaches no farther than this share.
    #[must_use]
    pub fn is_within(&self, share: f64) -> bool {
        self.reach().is_some_and(|reach| reach <= share)
    }

    /// Whether it is known well enough to measure it no more: within this share by enough measurements.
    #[must_use]
    pub fn is_known_within(&self, share: f64) -> bool {
        self.measured >= LEAST_TO_END as u64 && self.is_within(share)
    }
}

/// The mean of families by rounds: in round k each family is the geometric mean of the k-th measurements of its members, and the round
/// that of its families, which weigh alike. As many rounds as the member with the fewest has; none if a family has no member.
///
/// A round is the unit, and not a member: what disturbs the machine for a while meets all members of a round, so that their errors do
/// not cancel as independent ones would.
#[must_use]
pub fn rounds(families: &[Vec<&[f64]>]) -> Vec<f64> {
    let fewest = |members: &Vec<&[f64]>| members.iter().map(|member| member.len()).min().unwrap_or(0);
    let number = families.iter().map(fewest).min().unwrap_or(0);
    let of_family = |members: &Vec<&[f64]>, round: usize| {
        members.iter().map(|member| member[round].ln()).sum::<f64>() / members.len() as f64
    };
    let of_round = |round: usize| {
        let sum = families.iter().map(|members| of_family(members, round)).sum::<f64>();
        (sum / families.len() as f64).exp()
    };
    (0..number).map(of_round).collect()
}

#[cfg(test)]
mod tests {
    use crate::simulated::{least, most, runs};

    use super::*;
    use rand_pcg::rand_core::{Rng, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    #[test]
    fn three_measurements_by_hand() {
        let found = Repeated::of([1.0, 2.0, 4.0]).unwrap();
        assert_eq!((found.measured, (found.mean - 2.0).abs() < 1e-12), (3, true));
        // The logarithms scatter by ln 2; Student's t of two degrees is 4.303.
        let reach = (4.302_65 * 2.0_f64.ln() / 3.0_f64.sqrt()).exp();
        let [low, high] = found.interval.unwrap();
        assert!((high / (2.0 * reach) - 1.0).abs() < 1e-4 && (low / (2.0 / reach) - 1.0).abs() < 1e-4, "{found:?}");
        assert!((found.reach().unwrap() - (reach - 1.0)).abs() < 1e-3);
        assert!(!found.is_within(1.0) && found.is_within(10.0));
    }

    #[test]
    fn what_is_not_known_is_not_said() {
        assert_eq!(Repeated::of([]), None);
        assert_eq!(Repeated::of([3.0]).and_then(|r| r.interval), None);
        assert_eq!(Repeated::of([3.0, 4.0]).and_then(|r| r.reach()), None);
        assert!(!Repeated::of([3.0, 3.0]).unwrap().is_within(1e9), "two do not know their spread");
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Repeated::of([1.0, bad, 2.0]), None);
        }
        let same = Repeated::of([5.0; 4]).unwrap();
        assert!(same.is_within(1e-9), "{same:?}");
    }

    #[test]
    fn a_round_is_as_long_as_its_shortest_member() {
        let (a, b, c) = ([1.0, 4.0, 9.0], [4.0, 4.0], [8.0, 8.0, 8.0]);
        let found = rounds(&[vec![&a, &b], vec![&c]]);
        assert_eq!(found.len(), 2);
        // sqrt(sqrt(1 * 4) * 8) and sqrt(sqrt(4 * 4) * 8).
        assert!((found[0] - 4.0).abs() < 1e-12 && (found[1] - 32.0_f64.sqrt()).abs() < 1e-12, "{found:?}");
        assert!(rounds(&[vec![&a], vec![]]).is_empty() && rounds(&[]).is_empty());
    }

    /// Twelve numbers between 0 and 1 have a sum that is normal enough.
    fn normal(random: &mut Pcg64Mcg) -> f64 {
        (0..12).map(|_| (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64).sum::<f64>() - 6.0
    }

    /// Share of simulated runs whose interval holds the true mean.
    fn coverage(runs: u32, mut simulated: impl FnMut() -> (Vec<f64>, f64)) -> f64 {
        let held = (0..runs).filter(|_| {
            let (values, truth) = simulated();
            let [low, high] = Repeated::of(values).and_then(|r| r.interval).expect("three or more");
            low <= truth && truth <= high
        });
        f64::from(held.count() as u32) / f64::from(runs)
    }

    /// Known truth: the intervals hold it in 95 of 100 runs, with 3 measurements as with 30, with 1 % of noise as with 50 %.
    #[test]
    fn the_interval_holds_the_known_truth() {
        let mut random = Pcg64Mcg::seed_from_u64(16);
        for measured in [3, 4, 6, 10, 30] {
            for noise in [0.01, 0.1, 0.5] {
                let held = coverage(runs(4000), || {
                    ((0..measured).map(|_| 1e9 * (noise * normal(&mut random)).exp()).collect(), 1e9)
                });
                println!("{measured} measurements, noise {noise}: {:.1} %", 100.0 * held);
                let bounds = least(0.93, runs(4000))..=most(0.97, runs(4000));
                assert!(bounds.contains(&held), "{measured} {noise}: {held}");
            }
        }
    }

    /// Who stops when the interval is narrow looks several times: it then holds the truth in 92 of 100 runs and more.
    #[test]
    fn an_end_by_a_narrow_interval_costs_little_of_the_trust() {
        let mut random = Pcg64Mcg::seed_from_u64(5);
        for noise in [0.02, 0.05, 0.08, 0.12] {
            let held = coverage(runs(4000), || {
                let mut values = Vec::new();
                while values.len() < 20
                    && !Repeated::of(values.iter().copied()).is_some_and(|found| found.is_known_within(0.05))
                {
                    values.push((noise * normal(&mut random)).exp());
                }
                (values, 1.0)
            });
            println!("until 5 %, noise {noise}: {:.1} %", 100.0 * held);
            let bounds = least(0.915, runs(4000))..=most(0.97, runs(4000));
            assert!(bounds.contains(&held), "{noise}: {held}");
        }
    }

    /// The same for families of members that are disturbed together, round by round. Taken for independent, the 36 members would
    /// hold it in far fewer.
    #[test]
    fn rounds_hold_the_truth_though_their_members_are_disturbed_together() {
        let mut random = Pcg64Mcg::seed_from_u64(6);
        let mut simulate = |number: usize| {
            let together: Vec<f64> = (0..number).map(|_| 0.05 * normal(&mut random)).collect();
            let mut member = |speed: f64| -> Vec<f64> {
                together.iter().map(|all| speed * (all + 0.05 * normal(&mut random)).exp()).collect()
            };
            let rings: Vec<Vec<f64>> = (0..6).map(|_| member(4.0)).collect();
            let random_rings: Vec<Vec<f64>> = (0..30).map(|_| member(1.0)).collect();
            [rings, random_rings]
        };
        for number in [3, 5, 9] {
            let held = coverage(runs(2000), || {
                let members = simulate(number);
                (rounds(&members.each_ref().map(|family| family.iter().map(Vec::as_slice).collect())), 2.0)
            });
            println!("{number} rounds: {:.1} %", 100.0 * held);
            let bounds = least(0.93, runs(2000))..=most(0.97, runs(2000));
            assert!(bounds.contains(&held), "{number}: {held}");
        }
        let independent = coverage(runs(500), || {
            let [rings, others] = simulate(3);
            (rings.iter().map(|m| 2.0 / 4.0 * m[0]).chain(others.iter().map(|m| 2.0 * m[0])).collect(), 2.0)
        });
        assert!(independent < 0.6, "{independent}");
    }
}
