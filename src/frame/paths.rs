//! File names in results and between ranks. A name is bytes (open(2)), JSON is Unicode: a byte that is not part of UTF-8 is written as
//! the character U+0000 and two hexadecimal digits. No name has a zero byte, so the encoding is lossless and unambiguous. For
//! `#[serde(with = "crate::frame::paths")]`.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serializer};

/// Character before the digits of a byte.
const ESCAPE: char = '\0';

/// Writes a path.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&encode_path(path))
}

/// Reads a path.
///
/// # Errors
/// Text that is not an encoded path.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
    let text = String::deserialize(from)?;
    decode_path(&text).ok_or_else(|| serde::de::Error::custom("a path with U+0000 that encodes no byte"))
}

/// The same for optional paths.
pub mod optional {
    use super::{decode_path, encode_path, Deserialize, Deserializer, PathBuf, Serializer};

    /// Writes a path.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
        match path {
            Some(path) => to.serialize_some(&encode_path(path)),
            None => to.serialize_none(),
        }
    }

    /// Reads a path.
    ///
    /// # Errors
    /// Text that is not an encoded path.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PathBuf>, D::Error> {
        let unreadable = || serde::de::Error::custom("a path with U+0000 that encodes no byte");
        let text = Option::<String>::deserialize(from)?;
        text.map(|text| decode_path(&text).ok_or_else(unreadable)).transpose()
    }
}

/// A word of a command line as it can be typed in quotes of the shell, `$'...'` where it is not UTF-8.
#[must_use]
pub fn shell_word(word: &OsStr) -> String {
    word.to_str().map_or_else(|| format!("$'{}'", word.as_bytes().escape_ascii()), str::to_owned)
}

/// A word of a command line as it is typed: in quotes where the shell would change it.
#[must_use]
pub fn quoted_word(word: &OsStr) -> String {
    let text = shell_word(word);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%=".contains(c);
    if word.to_str().is_none() || (!text.is_empty() && text.chars().all(is_plain)) {
        text
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

fn encode_path(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            // Writing to a string cannot fail.
            let _ = write!(text, "{ESCAPE}{byte:02x}");
        }
    }
    text
}

fn decode_path(text: &str) -> Option<PathBuf> {
    let mut parts = text.split(ESCAPE);
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    Some(OsString::from_vec(bytes).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_name_comes_back(bytes in prop::collection::vec(1_u8..=255, 0..40)) {
            let path = PathBuf::from(OsString::from_vec(bytes));
            prop_assert_eq!(decode_path(&encode_path(&path)), Some(path));
        }

        #[test]
        fn unicode_stays_as_it_is(name in "[^\0]{0,40}") {
            prop_assert_eq!(encode_path(Path::new(&name)), name);
        }

        #[test]
        fn any_text_is_a_path_or_refused(text in ".{0,40}", at in 0_usize..40) {
            let cut = text.char_indices().nth(at).map_or(text.len(), |(at, _)| at);
            let marked = format!("{}{ESCAPE}{}", &text[..cut], &text[cut..]);
            let _ = decode_path(&marked);
        }
    }

    #[test]
    fn a_byte_is_a_mark_and_two_digits() {
        let path = PathBuf::from(OsString::from_vec(b"/a\xffb".to_vec()));
        assert_eq!(encode_path(&path), "/a\0ffb");
        assert_eq!(
            [decode_path("a\0"), decode_path("a\0f"), decode_path("a\0zz"), decode_path("\0\u{e9}")],
            [const { None }; 4]
        );
        assert_eq!(shell_word(path.as_os_str()), r"$'/a\xffb'");
    }
}
