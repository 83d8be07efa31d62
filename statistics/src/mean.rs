//! Mean of repeated measurements within one run, with a 95 % confidence interval.
//!
//! Rates are compared by their logarithms: the mean is the geometric mean, and the interval is Student's t interval of the
//! logarithms, which is wide for three measurements. It applies to the mean, not to the largest or the first measurement, and to
//! this run: variation between runs (placement of memory, nodes, fill of a file system) is not included.

use crate::student::two_sided_quantile;

/// Minimum number of measurements for an interval.
pub const MIN_MEASUREMENTS: usize = 3;

/// Minimum number of measurements for a stop at a narrow interval: with repeated checks, an interval of three or four is too often
/// narrow by chance (it contained the true mean in 90 % of simulated runs, with five in 92 to 95 %).
pub const MIN_TO_STOP: usize = 5;

/// Probability that the interval does not contain the mean.
const ERROR_PROBABILITY: f64 = 0.05;

/// Mean of repeated measurements, in their unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanEstimate {
    /// Number of measurements.
    pub measurements: u64,
    /// Geometric mean.
    pub mean: f64,
    /// 95 % interval of the mean; None with fewer than [`MIN_MEASUREMENTS`] measurements.
    pub interval: Option<[f64; 2]>,
}

impl MeanEstimate {
    /// Mean of measurements in any order; None without values, or if one of them is not a positive finite number.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let log = |value: f64| (value.is_finite() && value > 0.0).then(|| value.ln());
        let logs: Vec<f64> = values.into_iter().map(log).collect::<Option<_>>()?;
        if logs.is_empty() {
            return None;
        }
        let number = logs.len() as f64;
        let mean = logs.iter().sum::<f64>() / number;
        let half_width = (logs.len() >= MIN_MEASUREMENTS).then(|| {
            let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (number - 1.0);
            two_sided_quantile(ERROR_PROBABILITY, number - 1.0) * (variance / number).sqrt()
        });
        let interval = half_width.map(|half_width| [(mean - half_width).exp(), (mean + half_width).exp()]);
        Some(Self { measurements: logs.len() as u64, mean: mean.exp(), interval })
    }

    /// Half-width: distance of the upper end from the mean, as a share of it (0.05 for 5 %). The lower end has the same ratio.
    /// None if unknown.
    #[must_use]
    pub fn half_width_share(&self) -> Option<f64> {
        self.interval.map(|[_, high]| high / self.mean - 1.0)
    }

    /// True if the half-width is at most this share.
    #[must_use]
    pub fn is_within_share(&self, share: f64) -> bool {
        self.half_width_share().is_some_and(|half_width| half_width <= share)
    }

    /// True if the measurement may stop: the half-width is at most this share, with at least [`MIN_TO_STOP`] measurements.
    #[must_use]
    pub fn is_precise_enough(&self, share: f64) -> bool {
        self.measurements >= MIN_TO_STOP as u64 && self.is_within_share(share)
    }
}

/// Means of families by rounds: in round k, the value of a family is the geometric mean of the k-th measurements of its members, and
/// that of the round the geometric mean of its families, equally weighted. The number of rounds is that of the member with the fewest
/// measurements; none if a family has no member.
///
/// Rounds are the sampling unit, not members: a temporary disturbance affects all members of a round, so that their errors are not
/// independent.
#[must_use]
pub fn round_means(families: &[Vec<&[f64]>]) -> Vec<f64> {
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
    use crate::simulation::{lower_bound, run_count, upper_bound};

    use super::*;
    use rand_pcg::rand_core::{Rng, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    #[test]
    fn three_measurements_by_hand() {
        let found = MeanEstimate::of([1.0, 2.0, 4.0]).unwrap();
        assert_eq!((found.measurements, (found.mean - 2.0).abs() < 1e-12), (3, true));
        // The standard deviation of the logarithms is ln 2; Student's t of two degrees of freedom is 4.303.
        let factor = (4.302_65 * 2.0_f64.ln() / 3.0_f64.sqrt()).exp();
        let [low, high] = found.interval.unwrap();
        assert!((high / (2.0 * factor) - 1.0).abs() < 1e-4 && (low / (2.0 / factor) - 1.0).abs() < 1e-4, "{found:?}");
        assert!((found.half_width_share().unwrap() - (factor - 1.0)).abs() < 1e-3);
        assert!(!found.is_within_share(1.0) && found.is_within_share(10.0));
    }

    #[test]
    fn too_few_measurements_have_no_interval() {
        assert_eq!(MeanEstimate::of([]), None);
        assert_eq!(MeanEstimate::of([3.0]).and_then(|r| r.interval), None);
        assert_eq!(MeanEstimate::of([3.0, 4.0]).and_then(|r| r.half_width_share()), None);
        assert!(!MeanEstimate::of([3.0, 3.0]).unwrap().is_within_share(1e9), "two measurements have no interval");
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(MeanEstimate::of([1.0, bad, 2.0]), None);
        }
        let same = MeanEstimate::of([5.0; 4]).unwrap();
        assert!(same.is_within_share(1e-9), "{same:?}");
    }

    #[test]
    fn a_round_is_as_long_as_its_shortest_member() {
        let (a, b, c) = ([1.0, 4.0, 9.0], [4.0, 4.0], [8.0, 8.0, 8.0]);
        let found = round_means(&[vec![&a, &b], vec![&c]]);
        assert_eq!(found.len(), 2);
        // sqrt(sqrt(1 * 4) * 8) and sqrt(sqrt(4 * 4) * 8).
        assert!((found[0] - 4.0).abs() < 1e-12 && (found[1] - 32.0_f64.sqrt()).abs() < 1e-12, "{found:?}");
        assert!(round_means(&[vec![&a], vec![]]).is_empty() && round_means(&[]).is_empty());
    }

    /// Approximately normal: the sum of twelve uniform numbers between 0 and 1.
    fn normal(random: &mut Pcg64Mcg) -> f64 {
        (0..12).map(|_| (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64).sum::<f64>() - 6.0
    }

    /// Share of simulated runs whose interval contains the true mean.
    fn coverage(runs: u32, mut simulated: impl FnMut() -> (Vec<f64>, f64)) -> f64 {
        let held = (0..runs).filter(|_| {
            let (values, truth) = simulated();
            let [low, high] = MeanEstimate::of(values).and_then(|r| r.interval).expect("three or more");
            low <= truth && truth <= high
        });
        f64::from(held.count() as u32) / f64::from(runs)
    }

    /// The intervals contain the known mean in 95 % of the runs, with 3 to 30 measurements and with 1 to 50 % of noise.
    #[test]
    fn the_interval_holds_the_known_truth() {
        let mut random = Pcg64Mcg::seed_from_u64(16);
        for measured in [3, 4, 6, 10, 30] {
            for noise in [0.01, 0.1, 0.5] {
                let held = coverage(run_count(4000), || {
                    ((0..measured).map(|_| 1e9 * (noise * normal(&mut random)).exp()).collect(), 1e9)
                });
                println!("{measured} measurements, noise {noise}: {:.1} %", 100.0 * held);
                let bounds = lower_bound(0.93, run_count(4000))..=upper_bound(0.97, run_count(4000));
                assert!(bounds.contains(&held), "{measured} {noise}: {held}");
            }
        }
    }

    /// A stop at a narrow interval means repeated checks: the interval then contains the mean in at least 92 % of the runs.
    #[test]
    fn stopping_at_a_narrow_interval_keeps_the_coverage() {
        let mut random = Pcg64Mcg::seed_from_u64(5);
        for noise in [0.02, 0.05, 0.08, 0.12] {
            let held = coverage(run_count(4000), || {
                let mut values = Vec::new();
                while values.len() < 20
                    && !MeanEstimate::of(values.iter().copied()).is_some_and(|found| found.is_precise_enough(0.05))
                {
                    values.push((noise * normal(&mut random)).exp());
                }
                (values, 1.0)
            });
            println!("until 5 %, noise {noise}: {:.1} %", 100.0 * held);
            let bounds = lower_bound(0.915, run_count(4000))..=upper_bound(0.97, run_count(4000));
            assert!(bounds.contains(&held), "{noise}: {held}");
        }
    }

    /// The same for families whose members have common disturbances in each round. With the 36 members as independent
    /// measurements, the coverage would be far lower.
    #[test]
    fn rounds_hold_the_truth_though_their_members_are_disturbed_together() {
        let mut random = Pcg64Mcg::seed_from_u64(6);
        let mut simulate = |number: usize| {
            let together: Vec<f64> = (0..number).map(|_| 0.05 * normal(&mut random)).collect();
            let mut member = |speed: f64| -> Vec<f64> {
                together.iter().map(|all| speed * (all + 0.05 * normal(&mut random)).exp()).collect()
            };
            let buffers: Vec<Vec<f64>> = (0..6).map(|_| member(4.0)).collect();
            let random_rings: Vec<Vec<f64>> = (0..30).map(|_| member(1.0)).collect();
            [buffers, random_rings]
        };
        for number in [3, 5, 9] {
            let held = coverage(run_count(2000), || {
                let members = simulate(number);
                (round_means(&members.each_ref().map(|family| family.iter().map(Vec::as_slice).collect())), 2.0)
            });
            println!("{number} rounds: {:.1} %", 100.0 * held);
            let bounds = lower_bound(0.93, run_count(2000))..=upper_bound(0.97, run_count(2000));
            assert!(bounds.contains(&held), "{number}: {held}");
        }
        let independent = coverage(run_count(500), || {
            let [buffers, others] = simulate(3);
            (buffers.iter().map(|m| 2.0 / 4.0 * m[0]).chain(others.iter().map(|m| 2.0 * m[0])).collect(), 2.0)
        });
        assert!(independent < 0.6, "{independent}");
    }
}
