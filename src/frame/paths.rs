//! Names of files in results and between ranks. A name is bytes (open(2)), JSON is Unicode: a byte that is no part of UTF-8 is
//! written as the character U+0000 and two hexadecimal digits. No name has a zero byte, so nothing is lost and nothing is
//! ambiguous. For `#[serde(with = "crate::frame::paths")]`.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serializer};

/// What stands before the digits of a byte.
const MARK: char = '\0';

/// Writes a path.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&text_of(path))
}

/// Reads a path.
///
/// # Errors
/// Text that no path is written as.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
    let text = String::deserialize(from)?;
    path_of(&text).ok_or_else(|| serde::de::Error::custom("a path with U+0000 that stands for no byte"))
}

/// Paths that may be missing, likewise.
pub mod optional {
    use super::{path_of, text_of, Deserialize, Deserializer, PathBuf, Serializer};

    /// Writes a path.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
        match path {
            Some(path) => to.serialize_some(&text_of(path)),
            None => to.serialize_none(),
        }
    }

    /// Reads a path.
    ///
    /// # Errors
    /// Text that no path is written as.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PathBuf>, D::Error> {
        let unreadable = || serde::de::Error::custom("a path with U+0000 that stands for no byte");
        let text = Option::<String>::deserialize(from)?;
        text.map(|text| path_of(&text).ok_or_else(unreadable)).transpose()
    }
}

/// A word of a command line as it can be typed again in quotes of the shell, `$'...'` where it is not UTF-8.
#[must_use]
pub fn word_of(word: &OsStr) -> String {
    word.to_str().map_or_else(|| format!("$'{}'", word.as_bytes().escape_ascii()), str::to_owned)
}

fn text_of(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            // Writing to a string cannot fail.
            let _ = write!(text, "{MARK}{byte:02x}");
        }
    }
    text
}

fn path_of(text: &str) -> Option<PathBuf> {
    let mut parts = text.split(MARK);
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
            prop_assert_eq!(path_of(&text_of(&path)), Some(path));
        }

        #[test]
        fn unicode_stays_as_it_is(name in "[^\0]{0,40}") {
            prop_assert_eq!(text_of(Path::new(&name)), name);
        }

        #[test]
        fn any_text_is_a_path_or_refused(text in ".{0,40}", at in 0_usize..40) {
            let cut = text.char_indices().nth(at).map_or(text.len(), |(at, _)| at);
            let marked = format!("{}{MARK}{}", &text[..cut], &text[cut..]);
            let _ = path_of(&marked);
        }
    }

    #[test]
    fn a_byte_is_a_mark_and_two_digits() {
        let path = PathBuf::from(OsString::from_vec(b"/a\xffb".to_vec()));
        assert_eq!(text_of(&path), "/a\0ffb");
        assert_eq!([path_of("a\0"), path_of("a\0f"), path_of("a\0zz"), path_of("\0\u{e9}")], [const { None }; 4]);
        assert_eq!(word_of(path.as_os_str()), r"$'/a\xffb'");
    }
}
