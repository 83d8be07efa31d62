//! Estimated end of a run.

/// Weight of the plan as a share of the whole: one slow pattern at the begin does not double the estimate.
const PRIOR_SHARE: f64 = 0.05;

/// Seconds until the end, if `done_seconds` of `all_seconds` planned have taken `elapsed_seconds`. The rest is extrapolated from them,
/// which includes work that is not in the plan (filling, comparing, removing files).
#[must_use]
pub fn remaining_seconds(elapsed_seconds: f64, done_seconds: f64, all_seconds: f64) -> f64 {
    let known = |seconds: f64| if seconds.is_finite() { seconds.max(0.0) } else { 0.0 };
    let [elapsed, done, all] = [elapsed_seconds, done_seconds, all_seconds].map(known);
    let rest = (all - done).max(0.0);
    if rest == 0.0 {
        return 0.0;
    }
    let prior = PRIOR_SHARE * all;
    rest * (elapsed + prior) / (done + prior)
}

/// Time of day `seconds` from now.
pub(crate) fn end_time(seconds: f64) -> String {
    jiff::Timestamp::now()
        .checked_add(jiff::SignedDuration::try_from_secs_f64(seconds.max(0.0)).unwrap_or_default())
        .map_or_else(|_| "an unknown time".into(), |end| format!("{} UTC", end.strftime("%H:%M:%S")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn before_anything_is_done_the_plan_holds() {
        assert_eq!(remaining_seconds(0.0, 0.0, 60.0), 60.0);
        assert_eq!(remaining_seconds(0.0, 0.0, 0.0), 0.0);
    }

    #[test]
    fn what_takes_twice_as_long_goes_on_so() {
        let left = remaining_seconds(40.0, 20.0, 60.0);
        assert!((74.0..=80.0).contains(&left), "{left}");
        let left = remaining_seconds(10.0, 20.0, 60.0);
        assert!((20.0..=24.0).contains(&left), "{left}");
    }

    proptest! {
        #[test]
        fn never_negative_or_without_end(elapsed: f64, done: f64, all: f64) {
            let left = remaining_seconds(elapsed, done, all);
            prop_assert!(left >= 0.0 && !left.is_nan());
        }

        /// For a run whose parts all take the planned time times one factor, the estimate is within the weight of the plan.
        #[test]
        fn a_steady_run_is_foreseen(factor in 0.1_f64..20.0, share in 0.3_f64..1.0, all in 1.0_f64..1e5) {
            let (done, truth) = (share * all, (1.0 - share) * all * factor);
            let left = remaining_seconds(done * factor, done, all);
            let bound = truth.max((1.0 - share) * all) * 0.18 + truth.min((1.0 - share) * all) * 0.18 + 1e-9;
            prop_assert!((left - truth).abs() <= bound, "{} {}", left, truth);
        }
    }
}
