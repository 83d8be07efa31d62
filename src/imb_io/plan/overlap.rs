//! Overlap of a non-blocking transfer with a computation.

/// Overlap in percent, 0 to 100: 100 max(0, min(1, (t_pure + t_CPU - t_ovrl) / min(t_pure, t_CPU))), where t_pure is the time
/// of the blocking call, t_CPU of the load alone and t_ovrl of the non-blocking call with the load inside. `None` if t_pure or
/// t_CPU is 0, or a time is not a number.
#[must_use]
pub fn percent(pure_seconds: f64, cpu_seconds: f64, overlapped_seconds: f64) -> Option<f64> {
    let times = [pure_seconds, cpu_seconds, overlapped_seconds];
    if times.iter().any(|seconds| !seconds.is_finite() || *seconds < 0.0) {
        return None;
    }
    let shorter_seconds = pure_seconds.min(cpu_seconds);
    let saved_seconds = pure_seconds + cpu_seconds - overlapped_seconds;
    (shorter_seconds > 0.0).then(|| 100.0 * (saved_seconds / shorter_seconds).clamp(0.0, 1.0))
}

/// Maximum seconds of an iteration with an overlap: the blocking call, the non-blocking call alone, the load alone (as long as
/// the blocking call), and the non-blocking call with the load as if nothing overlapped.
#[must_use]
pub fn iteration_seconds(pure_seconds: f64, alone_seconds: f64) -> f64 {
    let cpu_seconds = pure_seconds;
    pure_seconds + alone_seconds + cpu_seconds + (alone_seconds + cpu_seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn check_values() {
        for (pure, cpu, overlapped, expected) in [
            // Together as long as the longer one: the shorter one was hidden completely.
            (1.0, 1.0, 1.0, 100.0),
            (2.0, 8.0, 8.0, 100.0),
            (8.0, 2.0, 8.0, 100.0),
            // One after the other.
            (1.0, 1.0, 2.0, 0.0),
            (4.0, 1.0, 5.0, 0.0),
            (1.0, 1.0, 1.5, 50.0),
            (4.0, 2.0, 5.5, 25.0),
            // Longer than one after the other, shorter than the longer one: noise.
            (1.0, 1.0, 3.0, 0.0),
            (1.0, 2.0, 1.5, 100.0),
            (1.0, 1.0, 0.0, 100.0),
        ] {
            assert_eq!(percent(pure, cpu, overlapped), Some(expected), "{pure} {cpu} {overlapped}");
        }
    }

    #[test]
    fn nothing_overlaps_nothing() {
        for (pure, cpu, overlapped) in [
            (0.0, 1.0, 1.0),
            (1.0, 0.0, 1.0),
            (0.0, 0.0, 0.0),
            (f64::NAN, 1.0, 1.0),
            (1.0, f64::INFINITY, 1.0),
            (1.0, 1.0, f64::NAN),
            (-1.0, 1.0, 1.0),
            (1.0, 1.0, -1.0),
        ] {
            assert_eq!(percent(pure, cpu, overlapped), None, "{pure} {cpu} {overlapped}");
        }
    }

    #[test]
    fn an_iteration_is_three_runs_and_the_load() {
        assert_eq!(iteration_seconds(1.0, 0.0), 3.0);
        assert_eq!(iteration_seconds(0.0, 1.0), 2.0);
        assert_eq!(iteration_seconds(2.0, 8.0), 2.0 + 8.0 + 2.0 + 10.0);
    }

    proptest! {
        #[test]
        fn a_known_overlap_is_reproduced(pure in 1e-6..10.0_f64, cpu in 1e-6..10.0_f64, share in 0.0..=1.0_f64) {
            let found = percent(pure, cpu, pure + cpu - share * pure.min(cpu)).unwrap();
            prop_assert!((found - 100.0 * share).abs() < 1e-4, "{found} {share}");
        }

        #[test]
        fn always_between_0_and_100(pure: f64, cpu: f64, overlapped: f64) {
            prop_assert!(percent(pure, cpu, overlapped).is_none_or(|p| (0.0..=100.0).contains(&p)));
        }
    }
}
