//! Formatting of numbers.

/// Ratio of a part to a whole; 0 if the whole is 0.
#[allow(clippy::cast_precision_loss)] // shares and seconds
pub(super) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

#[allow(clippy::cast_precision_loss)]
pub(super) fn bytes(bytes: u64) -> String {
    if bytes < 10_000 || (bytes < 1 << 20 && !bytes.is_multiple_of(1024)) {
        return format!("{} bytes", count(bytes));
    }
    let (mut value, mut unit) = (bytes as f64 / 1024.0, "KiB");
    for next in ["MiB", "GiB", "TiB", "PiB", "EiB"] {
        if value >= 1024.0 {
            (value, unit) = (value / 1024.0, next);
        }
    }
    format!("{} {unit}", digits(value))
}

pub(super) fn seconds(seconds: f64) -> String {
    match seconds {
        0.0 => "0 s".to_owned(),
        s if s < 1e-6 => format!("{} ns", digits(s * 1e9)),
        s if s < 1e-3 => format!("{} us", digits(s * 1e6)),
        s if s < 1.0 => format!("{} ms", digits(s * 1e3)),
        s if s < 7200.0 => format!("{} s", digits(s)),
        s => format!("{} h", digits(s / 3600.0)),
    }
}

fn digits(value: f64) -> String {
    match value {
        v if v >= 99.95 || v.fract() == 0.0 => format!("{v:.0}"),
        v if v >= 9.995 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

pub(super) fn percent(share: f64) -> String {
    match share * 100.0 {
        p if p > 0.0 && p < 1.0 => "less than 1 %".to_owned(),
        p => format!("{p:.0} %"),
    }
}

/// A number with digit groups.
pub(super) fn count(number: u64) -> String {
    let plain = number.to_string();
    let mut text = String::with_capacity(plain.len() + plain.len() / 3);
    for (n, digit) in plain.chars().enumerate() {
        if n > 0 && (plain.len() - n).is_multiple_of(3) && plain.len() > 4 {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// Number with the singular or plural noun.
pub(super) fn plural(number: u64, one: &str, many: &str) -> String {
    if number == 1 {
        format!("1 {one}")
    } else {
        format!("{} {many}", count(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_have_units() {
        assert_eq!(bytes(8), "8 bytes");
        assert_eq!(bytes(4096), "4096 bytes");
        assert_eq!(bytes(65536), "64 KiB");
        assert_eq!(bytes(100_001), "100 001 bytes");
        assert_eq!(bytes(3 << 29), "1.50 GiB");
        assert_eq!(seconds(0.0123), "12.3 ms");
        assert_eq!(seconds(300.4), "300 s");
        assert_eq!(seconds(2e-9), "2 ns");
        assert_eq!(percent(0.004), "less than 1 %");
        assert_eq!(percent(0.41), "41 %");
        assert_eq!(count(1_200_000), "1 200 000");
        assert_eq!(plural(1, "call", "calls"), "1 call");
    }
}
