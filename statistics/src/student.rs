//! Student's t distribution: how often chance alone is that far off.

/// Steps of the continued fraction at most; some dozen are enough for all arguments there are.
const STEPS: u32 = 500;

/// Halvings of the interval that a quantile is looked for in: eleven digits.
const HALVINGS: u32 = 40;

/// Probability that |t| is at least this with so many degrees of freedom; 1 for 0, 0 for infinity.
#[must_use]
pub fn two_sided(t: f64, degrees: f64) -> f64 {
    if t.is_nan() || degrees.is_nan() || degrees <= 0.0 {
        return 1.0;
    }
    let square = t * t;
    if square.is_infinite() {
        return 0.0;
    }
    incomplete_beta(degrees / 2.0, 0.5, degrees / (degrees + square)).clamp(0.0, 1.0)
}

/// The t that chance reaches with this probability, both sides together.
#[must_use]
pub fn quantile(probability: f64, degrees: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while two_sided(high, degrees) > probability && high < 1e100 {
        high *= 2.0;
    }
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        if two_sided(middle, degrees) > probability {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// Regularised incomplete beta function (Abramowitz and Stegun 26.5.8, continued fraction by Lentz).
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp();
    if x < (a + 1.0) / (a + b + 2.0) {
        front * fraction(a, b, x) / a
    } else {
        1.0 - front * fraction(b, a, 1.0 - x) / b
    }
}

fn fraction(a: f64, b: f64, x: f64) -> f64 {
    let away_from_zero = |value: f64| if value.abs() < f64::MIN_POSITIVE { f64::MIN_POSITIVE } else { value };
    let mut c = 1.0;
    let mut d = away_from_zero(1.0 - (a + b) * x / (a + 1.0)).recip();
    let mut sum = d;
    for step in 1..=STEPS {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut last = 1.0;
        for term in [even, odd] {
            d = away_from_zero(1.0 + term * d).recip();
            c = away_from_zero(1.0 + term / c);
            last = c * d;
            sum *= last;
        }
        if (last - 1.0).abs() < 1e-15 {
            break;
        }
    }
    sum
}

/// Logarithm of the gamma function of a positive number (Lanczos, g = 7).
fn ln_gamma(x: f64) -> f64 {
    const G: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    if x < 0.5 {
        // Reflection: Γ(x) Γ(1 - x) = π / sin(π x).
        return (std::f64::consts::PI / (std::f64::consts::PI * x).sin()).ln() - ln_gamma(1.0 - x);
    }
    let x = x - 1.0;
    let t = x + 7.5;
    let series = G.iter().zip(1..).fold(0.999_999_999_999_809_9, |sum, (g, n)| sum + g / (x + f64::from(n)));
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * t.ln() - t + series.ln()
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
            let found = quantile(probability, degrees);
            assert!((found - expected).abs() < 1e-3, "{probability} {degrees}: {found}");
        }
    }

    #[test]
    fn the_ends_are_what_they_are() {
        assert_eq!([two_sided(0.0, 3.0), two_sided(f64::INFINITY, 3.0), two_sided(f64::NAN, 3.0)], [1.0, 0.0, 1.0]);
        assert_eq!(two_sided(2.0, 0.0), 1.0, "nothing is known without a degree of freedom");
        // With one degree it is the distribution of Cauchy: a half beyond 1.
        assert!((two_sided(1.0, 1.0) - 0.5).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn a_quantile_leads_back(probability in 1e-6..0.999_f64, degrees in 1.0..500.0_f64) {
            let back = two_sided(quantile(probability, degrees), degrees);
            prop_assert!((back / probability - 1.0).abs() < 1e-6, "{back}");
        }

        #[test]
        fn farther_is_rarer(t in 0.0..50.0_f64, more in 0.001..5.0_f64, degrees in 1.0..200.0_f64) {
            prop_assert!(two_sided(t + more, degrees) <= two_sided(t, degrees));
        }
    }
}
