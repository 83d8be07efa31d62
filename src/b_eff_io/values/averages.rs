//! The averages of the papers and of release 2.1, on plain numbers. All in MB/s (1e6 bytes/s).

use crate::b_eff_io::pattern_type::PatternType;

/// A rate for each pattern type; `None`: not measured.
pub type RatesByType = [Option<f64>; PatternType::COUNT];

fn weights() -> impl Iterator<Item = f64> {
    PatternType::ALL.into_iter().map(|t| f64::from(t.descriptor().weight))
}

/// Value of an access method: (2 x0 + x1 + x2 + x3 + x4) / 6; `None` if a type is missing.
#[must_use]
pub fn access_average(types: RatesByType) -> Option<f64> {
    let sum = weights().zip(types).try_fold(0.0, |sum, (weight, value)| Some(sum + weight * value?))?;
    Some(sum / weights().sum::<f64>())
}

/// Value of a partition in releases 1.x: 0.25 write + 0.25 rewrite + 0.50 read.
#[must_use]
pub fn release_1(write: Option<f64>, rewrite: Option<f64>, read: Option<f64>) -> Option<f64> {
    Some(0.25 * write? + 0.25 * rewrite? + 0.5 * read?)
}

/// Value of a partition in release 2.1: sqrt(WR * read), WR = (W0 + RW0 + W1 + W2 + W3 + W4) / 6.
///
/// The rewrite of type 0 replaces its second weight; other rewrites do not contribute.
#[must_use]
pub fn release_2_1(write: RatesByType, rewrite: RatesByType, read: Option<f64>) -> Option<f64> {
    let once = |weight: f64, write: Option<f64>, rewrite: Option<f64>| match weight {
        1.0 => write,
        _ => Some(write? + (weight - 1.0) * rewrite?),
    };
    let types = weights().zip(write.into_iter().zip(rewrite));
    let sum = types.map(|(weight, (w, rw))| once(weight, w, rw)).sum::<Option<f64>>()?;
    Some((sum / weights().sum::<f64>() * read?).sqrt())
}

/// Contribution of a timed pattern to the value of release 0.5 (all bytes / all time): (bytes, seconds).
///
/// According to the paper, patterns that missed their time are weighted by U. Our interpretation: if the real time is within 10 % of the
/// scheduled one, real bytes and real time count; otherwise the pattern counts with its bandwidth for its scheduled time, which is
/// proportional to U. U = 0 patterns, open and close have no schedule (`scheduled_seconds` = 0) and count unchanged.
#[must_use]
pub fn release_0_5_contribution(bytes: u64, seconds: f64, scheduled_seconds: f64) -> (f64, f64) {
    let bytes = bytes as f64;
    let in_time = (0.9 * scheduled_seconds..=1.1 * scheduled_seconds).contains(&seconds);
    if scheduled_seconds <= 0.0 || seconds <= 0.0 || in_time {
        (bytes, seconds)
    } else {
        (bytes / seconds * scheduled_seconds, scheduled_seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of release 2.1: the rows total-write, total-rewrite, total-read, their weighted averages, b_eff_io.
    struct PrintedSummary {
        totals: [[f64; 5]; 3],
        averages: [f64; 3],
        b_eff_io: f64,
    }

    /// Two runs of 23 November 2004, 4 processes, revision 2.1 with -rewrite (list-based and list-less I/O).
    const GENUINE: [PrintedSummary; 2] = [
        PrintedSummary {
            totals: [
                [58.579, 48.697, 77.944, 77.036, 73.113],
                [63.841, 61.525, 89.142, 89.221, 81.972],
                [300.390, 811.358, 1073.572, 1088.574, 575.428],
            ],
            averages: [65.658, 74.924, 691.619],
            b_eff_io: 214.516,
        },
        PrintedSummary {
            totals: [
                [64.766, 69.346, 78.069, 77.061, 73.395],
                [66.552, 71.260, 64.978, 59.074, 80.164],
                [166.638, 773.710, 1063.527, 1052.153, 519.084],
            ],
            averages: [71.234, 68.097, 623.625],
            b_eff_io: 211.208,
        },
    ];

    #[test]
    fn genuine_summaries_of_release_2_1_are_reproduced() {
        for summary in GENUINE {
            let totals = summary.totals.map(|row| row.map(Some));
            let averages = totals.map(|row| access_average(row).unwrap());
            for (ours, printed) in averages.iter().zip(summary.averages) {
                assert!((ours - printed).abs() <= 0.001, "{ours} {printed}");
            }
            let ours = release_2_1(totals[0], totals[1], Some(averages[2])).unwrap();
            assert!((ours - summary.b_eff_io).abs() <= 0.001, "{ours} {}", summary.b_eff_io);
        }
    }

    #[test]
    fn weights_of_the_papers() {
        let one = |of: usize, value| std::array::from_fn(|t| Some(if t == of { value } else { 0.0 }));
        let average = [0, 1, 2, 3, 4].map(|t| access_average(one(t, 6.0)));
        assert_eq!(average, [Some(2.0), Some(1.0), Some(1.0), Some(1.0), Some(1.0)]);
        assert_eq!(release_1(Some(4.0), Some(8.0), Some(10.0)), Some(8.0));
        let alone = [(4.0, 0.0, 0.0), (0.0, 4.0, 0.0), (0.0, 0.0, 4.0)];
        let parts = alone.map(|(write, rewrite, read)| release_1(Some(write), Some(rewrite), Some(read)));
        assert_eq!(parts, [Some(1.0), Some(1.0), Some(2.0)]);
        assert_eq!(release_2_1([Some(3.0); 5], [Some(9.0), None, None, None, None], Some(9.0)), Some(6.0));
        let parts = [0, 1, 2, 3, 4].map(|t| release_2_1(one(t, 6.0), [Some(0.0); 5], Some(4.0)));
        assert_eq!(parts, [Some(2.0); 5]);
    }

    #[test]
    fn missing_values_are_not_invented() {
        let four = [Some(1.0), Some(1.0), None, Some(1.0), Some(1.0)];
        assert_eq!(access_average(four), None);
        assert_eq!(release_1(Some(1.0), None, Some(1.0)), None);
        assert_eq!(release_2_1(four, [Some(1.0); 5], Some(1.0)), None);
        assert_eq!(release_2_1([Some(1.0); 5], [None; 5], Some(1.0)), None);
        assert_eq!(release_2_1([Some(1.0); 5], [Some(1.0); 5], None), None);
    }

    #[test]
    fn patterns_that_missed_their_time_count_by_their_schedule() {
        assert_eq!(release_0_5_contribution(1000, 10.0, 10.0), (1000.0, 10.0));
        assert_eq!(release_0_5_contribution(1000, 10.9, 10.0), (1000.0, 10.9));
        assert_eq!(release_0_5_contribution(1000, 20.0, 10.0), (500.0, 10.0));
        assert_eq!(release_0_5_contribution(1000, 5.0, 10.0), (2000.0, 10.0));
        assert_eq!(release_0_5_contribution(1000, 5.0, 0.0), (1000.0, 5.0));
        assert_eq!(release_0_5_contribution(0, 0.0, 10.0), (0.0, 0.0));
    }
}
