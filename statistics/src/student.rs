//! Student's t distribution.

use statrs::function::beta::checked_beta_reg;

/// Bisection steps of a quantile: eleven digits.
const BISECTION_STEPS: u32 = 40;

/// Probability of at least this |t| with `degrees` degrees of freedom; 1 for 0, 0 for infinity.
#[must_use]
pub fn two_sided_probability(t: f64, degrees: f64) -> f64 {
    if t.is_nan() || degrees.is_nan() || degrees <= 0.0 {
        return 1.0;
    }
    let square = t * t;
    if square.is_infinite() {
        return 0.0;
    }
    // Infinite degrees of freedom are an error there: the probability is then 1.
    checked_beta_reg(degrees / 2.0, 0.5, degrees / (degrees + square)).map_or(1.0, |share| share.clamp(0.0, 1.0))
}

/// Quantile of |t|: the value that is exceeded with this probability, both sides together.
#[must_use]
pub fn two_sided_quantile(probability: f64, degrees: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while two_sided_probability(high, degrees) > probability && high < 1e100 {
        high *= 2.0;
    }
    for _ in 0..BISECTION_STEPS {
        let middle = (low + high) / 2.0;
        if two_sided_probability(middle, degrees) > probability {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (probability, degrees, expected) in [
            (0.05, 1.0, 12.706),
            (0.05, 4.0, 2.776),
            (0.01, 4.0, 4.604),
            (0.01, 8.0, 3.355),
            (0.001, 10.0, 4.587),
            (0.05, 120.0, 1.980),
            (0.01, 1e6, 2.576),
        ] {
            let found = two_sided_quantile(probability, degrees);
            assert!((found - expected).abs() < 1e-3, "{probability} {degrees}: {found}");
        }
    }

    #[test]
    fn limits_are_exact() {
        assert_eq!(
            [
                two_sided_probability(0.0, 3.0),
                two_sided_probability(f64::INFINITY, 3.0),
                two_sided_probability(f64::NAN, 3.0)
            ],
            [1.0, 0.0, 1.0]
        );
        assert_eq!(two_sided_probability(2.0, 0.0), 1.0, "1 without degrees of freedom");
        assert_eq!(two_sided_probability(2.0, f64::INFINITY), 1.0, "1 with infinite degrees of freedom");
        // One degree of freedom is the Cauchy distribution: a half is beyond 1.
        assert!((two_sided_probability(1.0, 1.0) - 0.5).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn a_quantile_is_inverted_by_its_probability(probability in 1e-6..0.999_f64, degrees in 1.0..500.0_f64) {
            let back = two_sided_probability(two_sided_quantile(probability, degrees), degrees);
            prop_assert!((back / probability - 1.0).abs() < 1e-6, "{back}");
        }

        #[test]
        fn probability_falls_with_distance(t in 0.0..50.0_f64, more in 0.001..5.0_f64, degrees in 1.0..200.0_f64) {
            prop_assert!(two_sided_probability(t + more, degrees) <= two_sided_probability(t, degrees));
        }
    }
}
