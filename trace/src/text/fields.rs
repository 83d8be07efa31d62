//! Splits lines into fields and parses values: CSV with quotes around a whole field.
//!
//! A field with a comma, a quote, a backslash, a `#`, a control character or leading or trailing blanks is quoted. In quotes, a quote is
//! doubled, a line break is `\n`, a carriage return `\r`, a backslash `\\`, and `\=` is a `=` that does not end a key. So a line break
//! always ends a line, and lines can be skipped without parsing them.

use std::borrow::Cow;

use super::error::{quoted, TextError};

#[derive(Clone, Copy, Debug)]
pub(super) struct LineField<'a> {
    /// Content without surrounding blanks and quotes.
    raw: &'a [u8],
    quoted: bool,
    /// Offset of the first `=`, unless it is quoted.
    equals: Option<usize>,
    /// Counted from 1.
    pub number: usize,
}

pub(super) struct LineFields<'a> {
    rest: Option<&'a [u8]>,
    number: usize,
}

type Result<T> = std::result::Result<T, TextError>;
type KeyValue<'a> = (Cow<'a, [u8]>, Cow<'a, [u8]>);

impl<'a> LineFields<'a> {
    pub(super) fn new(line: &'a [u8]) -> Self {
        Self { rest: Some(line), number: 0 }
    }

    #[inline]
    pub(super) fn next(&mut self) -> Option<Result<LineField<'a>>> {
        let rest = self.rest?;
        self.number += 1;
        let number = self.number;
        let (mut end, mut equals) = (0, None);
        while let Some(&b) = rest.get(end) {
            match b {
                b',' | b'"' => break,
                b'=' if equals.is_none() => equals = Some(end),
                _ => {}
            }
            end += 1;
        }
        if rest.get(end) != Some(&b'"') {
            self.rest = rest.get(end + 1..);
            let untrimmed = &rest[..end];
            let begin = untrimmed.trim_ascii_start();
            let equals = equals.map(|at| at - (untrimmed.len() - begin.len()));
            return Some(Ok(LineField { raw: begin.trim_ascii_end(), quoted: false, equals, number }));
        }
        if !rest[..end].trim_ascii().is_empty() {
            let next = "put quotes around the whole field, as in \"name=a,b\"";
            return Some(Err(TextError::new("a quote inside a field", next).with_field(number, "")));
        }
        Some(self.quoted(&rest[end + 1..], number))
    }

    /// Reads a field after its opening quote.
    fn quoted(&mut self, rest: &'a [u8], number: usize) -> Result<LineField<'a>> {
        let mut at = 0;
        loop {
            match (rest.get(at), rest.get(at + 1)) {
                (Some(b'"'), Some(b'"')) | (Some(b'\\'), Some(_)) => at += 2,
                (Some(b'"'), _) => break,
                (Some(_), _) => at += 1,
                (None, _) => {
                    return Err(TextError::new("a quote is not closed", "close it at the end of the field")
                        .with_field(number, ""))
                }
            }
        }
        let behind = &rest[at + 1..];
        let comma = behind.iter().position(|&b| b == b',');
        if !behind[..comma.unwrap_or(behind.len())].trim_ascii().is_empty() {
            let next = "put quotes around the whole field, and write \"\" for a quote in it";
            return Err(TextError::new("text after the closing quote", next).with_field(number, ""));
        }
        self.rest = comma.map(|comma| &behind[comma + 1..]);
        Ok(LineField { raw: &rest[..at], quoted: true, equals: None, number })
    }

    /// Returns the next field, which must exist.
    pub(super) fn required(&mut self, name: &str, next: &str) -> Result<LineField<'a>> {
        match self.next() {
            Some(field) => field.map_err(|e| e.with_field(self.number, name)),
            None => Err(TextError::new(format!("{name} is missing"), next).with_field(self.number + 1, name)),
        }
    }
}

impl<'a> LineField<'a> {
    /// Key and value of an unquoted field, the common case.
    #[inline]
    pub(super) fn plain_pair(&self) -> Option<(&'a [u8], &'a [u8])> {
        let at = self.equals?;
        Some((self.raw[..at].trim_ascii_end(), self.raw[at + 1..].trim_ascii_start()))
    }

    /// Its decoded bytes, and the offset of the `=` after the key.
    fn decoded(&self) -> Result<(Cow<'a, [u8]>, Option<usize>)> {
        if !self.quoted {
            return Ok((Cow::Borrowed(self.raw), self.equals));
        }
        let (mut bytes, mut equals) = (Vec::with_capacity(self.raw.len()), None);
        let mut rest = self.raw.iter();
        while let Some(&b) = rest.next() {
            let b = match b {
                b'"' => *rest.next().unwrap_or(&b'"'),
                b'\\' => match rest.next() {
                    Some(b'n') => b'\n',
                    Some(b'r') => b'\r',
                    Some(b'\\') => b'\\',
                    Some(b'=') => {
                        bytes.push(b'=');
                        continue;
                    }
                    other => {
                        let what = format!(
                            "\\{} is not an escape sequence",
                            other.map_or(' ', |&b| char::from(b)).escape_default()
                        );
                        return Err(TextError::new(what, "in quotes write \\\\ for a backslash, \\n for a line break")
                            .with_field(self.number, ""));
                    }
                },
                b => b,
            };
            if b == b'=' && equals.is_none() {
                equals = Some(bytes.len());
            }
            bytes.push(b);
        }
        Ok((Cow::Owned(bytes), equals))
    }

    #[inline]
    pub(super) fn bytes(&self) -> Result<Cow<'a, [u8]>> {
        if !self.quoted {
            return Ok(Cow::Borrowed(self.raw));
        }
        Ok(self.decoded()?.0)
    }

    pub(super) fn text(&self) -> Result<String> {
        text(self.bytes()?).map_err(|e| e.with_field(self.number, ""))
    }

    /// Key and value, None if there is no `=`.
    pub(super) fn pair(&self) -> Result<Option<KeyValue<'a>>> {
        Ok(match self.decoded()? {
            (_, None) => None,
            (Cow::Borrowed(b), Some(at)) => {
                Some((Cow::Borrowed(b[..at].trim_ascii()), Cow::Borrowed(b[at + 1..].trim_ascii())))
            }
            (Cow::Owned(mut b), Some(at)) => {
                let value = b.split_off(at + 1);
                b.pop();
                Some((Cow::Owned(b), Cow::Owned(value)))
            }
        })
    }

    /// Key and value, which must exist.
    pub(super) fn required_pair(&self) -> Result<KeyValue<'a>> {
        self.pair()?.ok_or_else(|| {
            TextError::new(format!("{} is not KEY=VALUE", quoted(self.raw)), "write a key, '=' and its value")
                .with_field(self.number, "")
        })
    }
}

pub(super) fn text(bytes: Cow<'_, [u8]>) -> Result<String> {
    String::from_utf8(bytes.into_owned())
        .map_err(|e| TextError::new(format!("{} is not UTF-8", quoted(e.as_bytes())), "write the file in UTF-8"))
}

const NUMBER_ADVICE: &str = "write a plain number, without suffixes or blanks (4 KiB is 4096)";

/// A number from 0 to 2^63 - 1.
#[inline]
pub(super) fn unsigned(bytes: &[u8]) -> Result<u64> {
    natural(bytes).map(i64::unsigned_abs)
}

#[inline]
fn natural(bytes: &[u8]) -> Result<i64> {
    let mut value = 0_i64;
    // Common case: these numbers cannot overflow.
    if (1..=18).contains(&bytes.len()) {
        let mut wrong = false;
        for &b in bytes {
            wrong |= !b.is_ascii_digit();
            value = value.wrapping_mul(10).wrapping_add(i64::from(b.wrapping_sub(b'0')));
        }
        if !wrong {
            return Ok(value);
        }
    }
    parse_checked(bytes)
}

/// The same with an error for every invalid number.
#[cold]
fn parse_checked(bytes: &[u8]) -> Result<i64> {
    let mut value = 0_i64;
    if bytes.is_empty() {
        return Err(TextError::new("a number is missing", NUMBER_ADVICE));
    }
    for &b in bytes {
        if !b.is_ascii_digit() {
            let sign = if bytes[0] == b'-' { "a number from 0" } else { "a number" };
            return Err(TextError::new(format!("{} is not {sign}", quoted(bytes)), NUMBER_ADVICE));
        }
        value = value.checked_mul(10).and_then(|v| v.checked_add(i64::from(b - b'0'))).ok_or_else(|| {
            TextError::new(
                format!("{} is beyond 63 bits", quoted(bytes)),
                "offsets and counts of MPI end at 9223372036854775807",
            )
        })?;
    }
    Ok(value)
}

pub(super) fn signed(bytes: &[u8]) -> Result<i64> {
    match bytes.strip_prefix(b"-") {
        Some(b"9223372036854775808") => Ok(i64::MIN),
        Some(digits) if digits.first() != Some(&b'-') => natural(digits).map(|v| -v),
        Some(_) => Err(TextError::new(format!("{} is not a number", quoted(bytes)), NUMBER_ADVICE)),
        None => natural(bytes),
    }
}

pub(super) fn unsigned32(bytes: &[u8]) -> Result<u32> {
    u32::try_from(unsigned(bytes)?)
        .map_err(|_| TextError::new(format!("{} is beyond 32 bits", quoted(bytes)), "write a smaller number"))
}

pub(super) fn index(bytes: &[u8], length: usize, section: &str) -> Result<u32> {
    let index = unsigned32(bytes)?;
    if (index as usize) < length {
        return Ok(index);
    }
    let known = match length {
        0 => format!("there is no '{section}' line before"),
        n => format!("the last '{section}' before is {}", n - 1),
    };
    Err(TextError::new(
        format!("{section} {index} is not defined: {known}"),
        format!("add a '{section},{index},...' line, or correct the number"),
    ))
}

/// Elements of a list. An empty value is an empty list.
pub(super) fn list(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let parts = (!bytes.is_empty()).then(|| bytes.split(|&b| b == b';').map(<[u8]>::trim_ascii));
    parts.into_iter().flatten()
}

pub(super) fn put(out: &mut Vec<u8>, number: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Writes a comma and a field.
pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    out.push(b',');
    put_field(out, &[(text, false)]);
}

/// Writes a comma and `key=value`; the key may have any characters.
pub(super) fn put_pair(out: &mut Vec<u8>, key: &str, value: &str) {
    out.push(b',');
    put_field(out, &[(key, true), ("=", false), (value, false)]);
}

/// Writes a field of several parts; a `=` in the marked ones does not end a key.
fn put_field(out: &mut Vec<u8>, parts: &[(&str, bool)]) {
    let odd = |&(text, key): &(&str, bool)| {
        text.bytes().any(|b| matches!(b, b',' | b'"' | b'\\' | b'#') || b.is_ascii_control() || (key && b == b'='))
            || text.starts_with(|c: char| c.is_ascii_whitespace())
            || text.ends_with(|c: char| c.is_ascii_whitespace())
    };
    let quoted = parts.iter().any(odd);
    if quoted {
        out.push(b'"');
    }
    for &(text, key) in parts {
        for b in text.bytes() {
            match b {
                b'"' if quoted => out.extend_from_slice(b"\"\""),
                b'\\' if quoted => out.extend_from_slice(b"\\\\"),
                b'\n' => out.extend_from_slice(b"\\n"),
                b'\r' => out.extend_from_slice(b"\\r"),
                b'=' if key => out.extend_from_slice(b"\\="),
                b => out.push(b),
            }
        }
    }
    if quoted {
        out.push(b'"');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_comes_back_as_field_and_as_pair() {
        for text in [
            "", "a", " a ", "a,b", "a\"b", "\"", "a\nb\r", "\\", "\\n", "=", "a=b", "#x", "\u{e9}\t", "\"\"", ",,",
            "\\\"", "a b",
        ] {
            for key in ["k", "a=b", " k", "=", "k\\=", "\""] {
                let mut line = b"x".to_vec();
                put_text(&mut line, text);
                put_pair(&mut line, key, text);
                assert!(!line.contains(&b'\n'));
                let mut fields = LineFields::new(&line);
                assert_eq!(fields.next().unwrap().unwrap().text().unwrap(), "x");
                assert_eq!(fields.next().unwrap().unwrap().text().unwrap(), text);
                let (k, v) = fields.next().unwrap().unwrap().required_pair().unwrap();
                assert_eq!((&*k, &*v), (key.as_bytes(), text.as_bytes()), "{}", String::from_utf8_lossy(&line));
                assert!(fields.next().is_none());
            }
        }
    }

    #[test]
    fn numbers_end_at_63_bits_and_say_so() {
        assert_eq!(unsigned(b"9223372036854775807").unwrap(), u64::try_from(i64::MAX).unwrap());
        assert!(unsigned(b"9223372036854775808").unwrap_err().cause().contains("beyond 63 bits"));
        assert_eq!(signed(b"-9223372036854775808").unwrap(), i64::MIN);
        assert_eq!(signed(b"-5").unwrap(), -5);
        for bad in [&b"--5"[..], b"", b"-", b"4K", b"+1", b"0x10", b"1 2"] {
            assert!(signed(bad).is_err(), "{bad:?}");
        }
        assert!(unsigned32(b"4294967296").is_err());
    }
}
