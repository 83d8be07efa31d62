//! Parsing and formatting of sizes, times and rates.
//!
//! Sizes take suffixes that are powers of two; bandwidth is in 1e6 bytes per second, as in the papers.

/// 2^20 bytes, the "MB" of the papers for sizes.
pub const MIB: u64 = 1 << 20;

/// Sizes below this are shown exactly: the chunk sizes of the patterns are smaller than this or whole MiB, and their additional
/// 8 bytes matter.
const EXACT_BELOW_BYTES: u64 = 10 * MIB;

const SIZE_UNITS: [(&str, u64); 5] =
    [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40), ("PiB", 1 << 50)];

/// Separates the leading number from its suffix.
fn split_number(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    (number, suffix.trim_start())
}

/// Parses a size in bytes: a number with an optional suffix K, M, G, T or P (powers of two; `KB` and `KiB` are equivalent). A fraction is
/// valid if it gives whole bytes (`1.5G`).
///
/// # Errors
/// A message with the text and the cause.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let (number, suffix) = split_number(text);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return Err(format!("'{text}' is not a size: it must begin with a number, e.g. 512M or 1.5G"));
    }
    let factor = size_factor(suffix).ok_or_else(|| {
        format!("'{text}' is not a size: '{suffix}' is not one of the suffixes B, K, M, G, T, P; write 512M or 1.5G")
    })?;
    let too_large = || format!("'{text}' is too large: sizes end below 16384 P (2^64 bytes)");
    let fraction = fraction.trim_end_matches('0');
    let digits = u32::try_from(fraction.len()).map_err(|_| too_large())?;
    // A fraction of a power of two up to 2^50 has at most 50 digits; more than 18 would overflow the arithmetic.
    let scale = 10_u128.checked_pow(digits).filter(|_| digits <= 18).ok_or_else(|| {
        format!("'{text}' has too many digits after the point: give the number of bytes without a suffix")
    })?;
    let parse = |s: &str| {
        if s.is_empty() {
            Ok(0)
        } else {
            s.parse::<u128>().map_err(|_| too_large())
        }
    };
    let scaled = parse(whole)?
        .checked_mul(scale)
        .and_then(|v| v.checked_add(parse(fraction).unwrap_or(0)))
        .and_then(|v| v.checked_mul(u128::from(factor)))
        .ok_or_else(too_large)?;
    if scaled % scale != 0 {
        return Err(format!("'{text}' is not a whole number of bytes"));
    }
    u64::try_from(scaled / scale).map_err(|_| too_large())
}

fn size_factor(suffix: &str) -> Option<u64> {
    let suffix = suffix.to_ascii_lowercase();
    if suffix.is_empty() || suffix == "b" {
        return Some(1);
    }
    SIZE_UNITS.iter().find_map(|(name, factor)| {
        let name = name.to_ascii_lowercase();
        let letter = &name[..1];
        (suffix == letter || suffix == name || suffix == format!("{letter}b")).then_some(*factor)
    })
}

/// Parses a time in seconds: a number with an optional suffix s, m (minutes) or h; without a suffix, seconds.
///
/// # Errors
/// A message with the text and the cause; a time must be finite and larger than 0.
pub fn parse_seconds(text: &str) -> Result<f64, String> {
    let (number, suffix) = split_number(text);
    let value: f64 = number
        .parse()
        .map_err(|_| format!("'{text}' is not a time: it must begin with a number, e.g. 90, 30m or 1.5h"))?;
    let factor = match suffix {
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        other => {
            return Err(format!(
                "'{text}' is not a time: '{other}' is not one of the suffixes s, m, h; write 90, 90s, 15m or 2h"
            ))
        }
    };
    let seconds = value * factor;
    if seconds.is_finite() && seconds > 0.0 {
        Ok(seconds)
    } else {
        Err(format!("'{text}' is not a valid time: it must be finite and larger than 0; write 90s, 15m or 2h"))
    }
}

/// A size with a unit: exact where it is whole in its unit (`1 MiB`), exact in a smaller unit below 10 MiB
/// (`32776 B`, `1032 KiB`), otherwise with one decimal (`1.5 GiB`).
#[must_use]
pub fn format_size(bytes: u64) -> String {
    let fits = SIZE_UNITS.iter().rev().filter(|(_, unit)| bytes >= *unit);
    let Some((name, unit)) = fits.clone().next() else {
        return format!("{bytes} B");
    };
    if bytes.is_multiple_of(*unit) {
        return format!("{} {name}", bytes / unit);
    }
    if bytes < EXACT_BELOW_BYTES {
        return match fits.clone().find(|(_, unit)| bytes.is_multiple_of(*unit)) {
            Some((name, unit)) => format!("{} {name}", bytes / unit),
            None => format!("{bytes} B"),
        };
    }
    let tenths = |unit: u64| (u128::from(bytes) * 10 + u128::from(unit) / 2) / u128::from(unit);
    let (name, tenths) = match SIZE_UNITS.iter().find(|(_, larger)| *larger == unit << 10) {
        // Rounding may require the next unit: 1.0 GiB, not 1024.0 MiB.
        Some((larger, _)) if tenths(*unit) >= 10_240 => (larger, 10),
        _ => (name, tenths(*unit)),
    };
    format!("{}.{} {name}", tenths / 10, tenths % 10)
}

/// A time with a suitable unit and one decimal: `12.3 us`, `4.0 s`, `15.0 min`, `1.5 h`.
#[must_use]
pub fn format_seconds(seconds: f64) -> String {
    let size = seconds.abs();
    let (value, unit) = if size == 0.0 || !size.is_finite() {
        (seconds, "s")
    } else if size < 1e-6 {
        (seconds * 1e9, "ns")
    } else if size < 1e-3 {
        (seconds * 1e6, "us")
    } else if size < 1.0 {
        (seconds * 1e3, "ms")
    } else if size < 60.0 {
        (seconds, "s")
    } else if size < 3600.0 {
        (seconds / 60.0, "min")
    } else {
        (seconds / 3600.0, "h")
    };
    format!("{value:.1} {unit}")
}

/// Bandwidth in 1e6 bytes per second; `None` if the time is not positive.
#[must_use]
pub fn mb_per_second(bytes: u64, seconds: f64) -> Option<f64> {
    (seconds.is_finite() && seconds > 0.0).then(|| bytes as f64 / seconds / 1e6)
}

/// `1 rank`, `2 ranks`, `2 processes`.
#[must_use]
pub fn count(number: u64, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ if noun.ends_with('s') || noun.ends_with("ch") => format!("{number} {noun}es"),
        _ => format!("{number} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_are_powers_of_two() {
        for (text, bytes) in [
            ("0", 0),
            ("17", 17),
            ("17B", 17),
            ("1k", 1024),
            ("1 KiB", 1024),
            ("1kb", 1024),
            ("1.5G", 3 << 29),
            (".5M", 1 << 19),
            ("2.50K", 2560),
            ("300T", 300 << 40),
            ("16383P", 16383 << 50),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn bad_sizes_are_refused_with_the_cause() {
        for (text, cause) in [
            ("", "begin with a number"),
            (".", "begin with a number"),
            ("-5", "begin with a number"),
            ("1.2.3", "begin with a number"),
            ("5 MB x", "suffix"),
            ("5KK", "suffix"),
            ("5i", "suffix"),
            ("1e3", "suffix"),
            ("0.3K", "whole number"),
            ("16384P", "too large"),
            ("99999999999999999999999999999999999999999", "too large"),
            ("1.0000000000000000000001K", "too many digits"),
        ] {
            let message = parse_size(text).unwrap_err();
            assert!(message.contains(cause), "{text}: {message}");
        }
    }

    #[test]
    fn times() {
        assert_eq!(parse_seconds("90"), Ok(90.0));
        assert_eq!(parse_seconds("0.5 s"), Ok(0.5));
        assert_eq!(parse_seconds("30m"), Ok(1800.0));
        assert_eq!(parse_seconds("1.5h"), Ok(5400.0));
        for text in ["", "0", "-1", "inf", "nan", "5x", "5 m m", "1e400", "1..2"] {
            assert!(parse_seconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn shown_sizes() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1 << 20, "1 MiB"),
            (32776, "32776 B"),
            (1_048_584, "1048584 B"),
            (MIB + 8192, "1032 KiB"),
            (3 << 29, "1.5 GiB"),
            ((1 << 30) - 1, "1.0 GiB"),
            (256 << 20, "256 MiB"),
            (u64::MAX, "16384.0 PiB"),
        ] {
            assert_eq!(format_size(bytes), text);
        }
    }

    #[test]
    fn shown_times_and_rates() {
        assert_eq!(format_seconds(0.0), "0.0 s");
        assert_eq!(format_seconds(12.3e-6), "12.3 us");
        assert_eq!(format_seconds(0.25), "250.0 ms");
        assert_eq!(format_seconds(900.0), "15.0 min");
        assert_eq!(format_seconds(5400.0), "1.5 h");
        assert_eq!(mb_per_second(2_000_000, 2.0), Some(1.0));
        assert_eq!(mb_per_second(1, 0.0), None);
    }

    proptest! {
        #[test]
        fn every_number_of_bytes_is_read_back(bytes: u64) {
            prop_assert_eq!(parse_size(&bytes.to_string()), Ok(bytes));
        }

        #[test]
        fn nothing_panics(text in ".{0,24}", bytes: u64, seconds: f64) {
            let _ = (parse_size(&text), parse_seconds(&text), format_size(bytes), format_seconds(seconds));
        }
    }
}
