//! How many digits of a bandwidth are known, by what it rests on, and numbers shown with no more of them.
//!
//! A rate is a mean over calls. Its error falls with the root of their number: a hundred times as many give one digit more.
//! The first digits are a convention: two below [`FEW_CALLS`], three from there on.

use crate::units::MIB;

/// Fewer calls of one rank than this are few.
pub const FEW_CALLS: u64 = 10;

/// Fewer bytes than this are few, however many calls moved them: caches and clocks decide then.
pub const FEW_BYTES: u64 = MIB;

/// Calls for three digits, and how many times as many each further one needs.
const STEP: u64 = 100;

/// Digits of a bandwidth that rests on few calls or few bytes.
const DIGITS_OF_FEW: u32 = 2;

/// More digits are never shown.
const MOST_DIGITS: u32 = 6;

/// True if a number rests on too little to be more than an order of magnitude: few calls of a rank, or few bytes.
#[must_use]
pub fn is_few(calls: u64, bytes: u64) -> bool {
    calls < FEW_CALLS || bytes < FEW_BYTES
}

/// Significant digits of a bandwidth from this many calls of a rank and bytes of all ranks, 2 to 6.
#[must_use]
pub fn known_digits(calls: u64, bytes: u64) -> u32 {
    if is_few(calls, bytes) {
        DIGITS_OF_FEW
    } else {
        (DIGITS_OF_FEW + 1 + (calls / FEW_CALLS).ilog(STEP)).min(MOST_DIGITS)
    }
}

/// A number rounded to its significant digits.
#[must_use]
pub fn rounded(value: f64, digits: u32) -> f64 {
    // What is printed is read back: decimal rounding without the errors of powers of ten.
    let text = format!("{value:.*e}", digits.saturating_sub(1) as usize);
    text.parse().unwrap_or(value)
}

/// A number with its significant digits and at most so many behind the point; zeros stand for digits before the point
/// that are not known.
#[must_use]
pub fn shown(value: f64, digits: u32, most_decimals: usize) -> String {
    let value = rounded(value, digits);
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
            assert_eq!(known_digits(calls, u64::MAX), digits, "{calls}");
            assert_eq!(known_digits(calls, MIB - 1), 2, "{calls}");
        }
    }

    #[test]
    fn no_digit_is_shown_that_is_not_known() {
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
            assert_eq!(shown(value, digits, decimals), text, "{value} {digits} {decimals}");
        }
    }

    proptest! {
        #[test]
        fn rounding_stays_within_half_a_digit(value in 1e-6_f64..1e9, digits in 1_u32..7) {
            let error = (rounded(value, digits) / value - 1.0).abs();
            prop_assert!(error <= 0.5001 * 10_f64.powi(1 - digits as i32), "{value} {digits}: {error}");
            prop_assert_eq!(rounded(rounded(value, digits), digits), rounded(value, digits));
            let text = shown(value, digits, 12);
            let significant = text.replace('.', "");
            let significant = significant.trim_start_matches('0');
            let significant = if text.contains('.') { significant } else { significant.trim_end_matches('0') };
            prop_assert!(significant.len() <= digits as usize, "{text} of {value} with {digits}");
        }
    }
}
