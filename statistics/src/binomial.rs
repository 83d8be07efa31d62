//! The binomial distribution.

/// Probability of at least `successes` in `trials` independent trials that each succeed with `probability`. For not more successes than
/// expected it is 1, an upper bound.
#[must_use]
pub fn upper_tail(trials: u64, successes: u64, probability: f64) -> f64 {
    if successes > trials {
        return 0.0;
    }
    if successes == 0 || probability >= 1.0 || successes as f64 <= trials as f64 * probability {
        return 1.0;
    }
    if probability <= 0.0 {
        return 0.0;
    }
    let failures = trials - successes;
    // Logarithm of the binomial coefficient, over the shorter of its two products.
    let factor = |i: u64| ((trials - i) as f64 / (i + 1) as f64).ln();
    let coefficient: f64 = (0..successes.min(failures)).map(factor).sum();
    let mut term = (coefficient + successes as f64 * probability.ln() + failures as f64 * (-probability).ln_1p()).exp();
    let (mut sum, odds) = (0.0, probability / (1.0 - probability));
    // Beyond the expected number the terms decrease.
    for made in successes..=trials {
        sum += term;
        if term <= sum * f64::EPSILON {
            break;
        }
        term *= (trials - made) as f64 / (made + 1) as f64 * odds;
    }
    sum.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_those_of_exact_arithmetic() {
        for (trials, successes, probability, expected) in [
            (8, 8, 0.5, 1.0 / 256.0),
            (8, 7, 0.5, 9.0 / 256.0),
            (10, 6, 0.5, 386.0 / 1024.0),
            (5, 5, 0.25, 1.0 / 1024.0),
            (4, 3, 1.0 / 3.0, 9.0 / 81.0),
            (1000, 1000, 0.01, 0.0),
        ] {
            let found = upper_tail(trials, successes, probability);
            assert!((found - expected).abs() < 1e-12, "{trials} {successes} {probability}: {found}");
        }
    }

    #[test]
    fn what_is_expected_or_impossible_has_a_bound() {
        assert_eq!(upper_tail(0, 0, 0.5), 1.0);
        assert_eq!(upper_tail(3, 4, 0.5), 0.0);
        assert_eq!(upper_tail(1_000_000_000_000, 5, 0.5), 1.0);
        assert_eq!((upper_tail(5, 1, 0.0), upper_tail(5, 5, 1.0)), (0.0, 1.0));
        let many = upper_tail(100_000, 50_500, 0.5);
        assert!((0.000_7..0.001).contains(&many), "{many}: 3.16 standard deviations");
    }
}
