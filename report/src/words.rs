//! Formatting of numbers and lists in sentences.

use std::fmt::Display;

use super::digits::format_significant;
use super::units::count;

/// `a, b and c`.
#[must_use]
pub fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [front @ .., last] => format!("{} and {last}", front.join(", ")),
    }
}

/// A share in percent with two significant digits or two decimals: `0.04 %`, `7.3 %`, `63 %`.
#[must_use]
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent == 0.0 {
        "0 %".to_owned()
    } else if percent < 1.0 {
        format!("{percent:.2} %")
    } else if percent < 10.0 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}

/// Two or three significant digits: `0.034`, `1.2`, `41`, `1234`.
#[must_use]
pub fn figure(value: f64) -> String {
    match value.abs() {
        size if size >= 10.0 => format!("{value:.0}"),
        size if size >= 1.0 => format!("{value:.1}"),
        size if size >= 0.1 => format!("{value:.2}"),
        size if size >= 0.01 => format!("{value:.3}"),
        0.0 => "0".to_owned(),
        _ => format!("{value:.1e}"),
    }
}

const MAX_RATE_DIGITS: u32 = 4;

/// A rate in MB/s with at most four digits, all of them significant.
#[must_use]
pub fn rate(mb_per_second: f64, known_digits: Option<u32>) -> String {
    // Rounded once, to the digits shown.
    let (decimals, digits) = match mb_per_second {
        v if v >= 999.5 => (0, MAX_RATE_DIGITS),
        v if v >= 99.95 => (0, 3),
        v if v >= 9.995 => (1, 3),
        v if v >= 0.995 => (2, 3),
        v if v >= 0.0995 => (2, 2),
        _ => (3, 2),
    };
    let text = format_significant(mb_per_second, known_digits.unwrap_or(digits).min(digits), decimals);
    // Only damaged files have such rates.
    if text.len() > 7 {
        format!("{mb_per_second:.0e}")
    } else {
        text
    }
}

/// Placeholder for a missing number.
pub const NO_VALUE: &str = "-";

/// A number, or a hyphen if it is missing.
pub fn or_hyphen(number: Option<impl Display>) -> String {
    number.map_or_else(|| NO_VALUE.to_owned(), |number| number.to_string())
}

/// A short time in nanoseconds, with a suitable unit.
#[must_use]
pub fn nanoseconds(ns: f64) -> String {
    if ns < 100.0 {
        format!("{ns:.1} ns")
    } else if ns < 1e4 {
        format!("{ns:.0} ns")
    } else if ns < 1e7 {
        format!("{:.1} us", ns / 1e3)
    } else {
        format!("{:.1} ms", ns / 1e6)
    }
}

/// Suffix of the worst case of `all`: the number of others.
#[must_use]
pub fn and_more(all: u64, noun: &str) -> String {
    match all {
        0 | 1 => String::new(),
        more => format!(" (and {} more)", count(more - 1, noun)),
    }
}

/// A reason without its full stop, for use inside a sentence.
#[must_use]
pub fn clause(reason: &str) -> &str {
    reason.trim_end().trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_words() {
        assert_eq!(count(1, "rank"), "1 rank");
        assert_eq!(count(0, "rank"), "0 ranks");
        assert_eq!(count(2, "process"), "2 processes");
        assert_eq!(list(&["a".into(), "b".into(), "c".into()]), "a, b and c");
        assert_eq!([figure(1234.5), figure(41.26), figure(1.25), figure(0.0312)].join(" "), "1234 41 1.2 0.031");
        assert_eq!([percent(0.0), percent(0.0004), percent(0.073), percent(0.63)].join(" "), "0 % 0.04 % 7.3 % 63 %");
        assert_eq!([and_more(1, "host"), and_more(3, "host")].concat(), " (and 2 hosts more)");
        assert_eq!(clause("it is full. "), "it is full");
    }

    #[test]
    fn rates_have_four_digits_at_most() {
        let shown = [0.0434, 0.5, 12.345, 123.45, 1234.5, 123_456.0].map(|v| rate(v, None));
        assert_eq!(shown, ["0.043", "0.50", "12.3", "123", "1234", "123500"]);
        assert_eq!(rate(1234.5, Some(2)), "1200");
        assert!(rate(1e300, None).len() <= 7);
    }
}
