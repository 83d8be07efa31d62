//! Numbers and lists as parts of sentences.

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

/// A share in percent with as many digits as it deserves: `0.04 %`, `7.3 %`, `63 %`.
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

/// A short time given in nanoseconds, with the unit that suits it.
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

/// Behind the worst case of `all`: how many more there are.
#[must_use]
pub fn others(all: u64, noun: &str) -> String {
    match all {
        0 | 1 => String::new(),
        more => format!(" (and {} more)", count(more - 1, noun)),
    }
}

/// A reason as part of a sentence that brings its own full stop.
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
        assert_eq!([others(1, "host"), others(3, "host")].concat(), " (and 2 hosts more)");
        assert_eq!(clause("it is full. "), "it is full");
    }
}
