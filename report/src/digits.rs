//! Significant digits of a bandwidth, from the number of calls and bytes, and formatting with these digits.
//!
//! A rate is a mean over calls. Its error decreases with the square root of their number: a hundred times as many calls give one
//! more digit. The first digits are a convention: two below [`FEW_CALLS`], three from there on.

use crate::units::MIB;

/// Fewer calls of one rank than this count as few.
pub const FEW_CALLS: u64 = 10;

/// Fewer bytes than this count as few for any number of calls: caches and the clock's resolution dominate then.
pub const FEW_BYTES: u64 = MIB;

/// Factor of calls for each further digit.
const CALLS_PER_DIGIT: u64 = 100;

/// Digits of a bandwidth based on few calls or few bytes.
const DIGITS_OF_FEW: u32 = 2;

const MAX_DIGITS: u32 = 6;

/// True if a number is based on few calls of a rank or few bytes, and thus only an order of magnitude.
#[must_use]
pub fn is_few(calls: u64, bytes: u64) -> bool {
    calls < FEW_CALLS || bytes < FEW_BYTES
}

/// Significant digits of a bandwidth, 2 to 6, from the calls of a rank and the bytes of all ranks.
#[must_use]
pub fn significant_digits(calls: u64, bytes: u64) -> u32 {
    if is_few(calls, bytes) {
        DIGITS_OF_FEW
    } else {
        (DIGITS_OF_FEW + 1 + (calls / FEW_CALLS).ilog(CALLS_PER_DIGIT)).min(MAX_DIGITS)
    }
}

/// Rounds a number to significant digits.
#[must_use]
pub fn round_significant(value: f64, digits: u32) -> f64 {
    // Decimal rounding by printing and parsing avoids the errors of powers of ten.
    let text = format!("{value:.*e}", digits.saturating_sub(1) as usize);
    text.parse().unwrap_or(value)
}

/// Formats a number with its significant digits and at most `most_decimals` decimals; insignificant digits before the point are zero.
#[must_use]
pub fn format_significant(value: f64, digits: u32, most_decimals: usize) -> String {
    let value = round_significant(value, digits);
    let exponent = format!("{value:e}").split_once('e').and_then(|(_, exponent)| exponent.parse::<i64>().ok());
    let decimals = exponent.map_or(0, |exponent| (i64::from(digits) - 1 - exponent).max(0));
    format!("{value:.*}", usize::try_from(decimals).unwrap_or(0).min(most_decimals))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn few_is_below_ten_calls_or_one_mib() {
        for (calls, bytes, few) in
            [(9, 1 << 40, true), (10, MIB, false), (10, MIB - 1, true), (u64::MAX, 0, true), (0, u64::MAX, true)]
        {
            assert_eq!(is_few(calls, bytes), few, "{calls} {bytes}");
        }
    }

    #[test]
    fn a_hundred_times_as_many_calls_give_one_digit_more() {
        for (calls, digits) in [
            (0, 2),
            (9, 2),
            (10, 3),
            (999, 3),
            (1000, 4),
            (99_999, 4),
            (100_000, 5),
            (10_000_000, 6),
            (1_000_000_000, 6),
            (u64::MAX, 6),
        ] {
            assert_eq!(significant_digits(calls, u64::MAX), digits, "{calls}");
            assert_eq!(significant_digits(calls, MIB - 1), 2, "{calls}");
        }
    }

    #[test]
    fn only_significant_digits_are_shown() {
        for (value, digits, decimals, text) in [
            (0.0434, 2, 3, "0.043"),
            (0.0434, 2, 1, "0.0"),
            (1.26, 2, 3, "1.3"),
            (76.42, 2, 3, "76"),
            (1234.567, 2, 3, "1200"),
            (1234.567, 4, 3, "1235"),
            (1234.567, 6, 3, "1234.57"),
            (9.996, 3, 3, "10.0"),
            (99.96, 2, 1, "100"),
            (0.0, 2, 3, "0.0"),
            (12.5, 6, 1, "12.5"),
        ] {
            assert_eq!(format_significant(value, digits, decimals), text, "{value} {digits} {decimals}");
        }
    }

    proptest! {
        #[test]
        fn rounding_stays_within_half_a_digit(value in 1e-6_f64..1e9, digits in 1_u32..7) {
            let error = (round_significant(value, digits) / value - 1.0).abs();
            prop_assert!(error <= 0.5001 * 10_f64.powi(1 - digits as i32), "{value} {digits}: {error}");
            prop_assert_eq!(round_significant(round_significant(value, digits), digits), round_significant(value, digits));
            let text = format_significant(value, digits, 12);
            let significant = text.replace('.', "");
            let significant = significant.trim_start_matches('0');
            let significant = if text.contains('.') { significant } else { significant.trim_end_matches('0') };
            prop_assert!(significant.len() <= digits as usize, "{text} of {value} with {digits}");
        }
    }
}
