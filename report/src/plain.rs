//! Text that a terminal shows and does not obey: names of files and hosts, hints and messages of libraries may hold anything.
//!
//! A page passes through [`line()`] where its lines are made, so that columns and widths are those of what is shown; whatever reaches
//! stdout or stderr passes through [`text()`] once more.

use std::borrow::Cow;

/// True for a character that does more than being shown: a control character (C0, DEL, C1), a line or paragraph separator, one that
/// is not seen or that turns the direction of what follows.
fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

fn escaped(text: &str, acts: impl Fn(char) -> bool) -> Cow<'_, str> {
    // Nearly all text is of these.
    let is_printable = |byte: &u8| (b' '..=b'~').contains(byte);
    if text.as_bytes().iter().all(is_printable) || !text.chars().any(&acts) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if acts(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// A line: what acts stands there as `\u{1b}`, line breaks too.
#[must_use]
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, acts)
}

/// Several lines: likewise, but for their line feeds.
#[must_use]
pub fn text(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c != '\n' && acts(c))
}

/// A JSON document with the same values: what acts can only stand inside of strings, where `\u001b` means the same.
#[must_use]
pub fn json(document: Vec<u8>) -> Vec<u8> {
    // Nearly every document is of these.
    let is_printable = |byte: &u8| (b' '..=b'~').contains(byte) || *byte == b'\n';
    if document.iter().all(is_printable) {
        return document;
    }
    let Ok(text) = std::str::from_utf8(&document) else { return document };
    if !text.chars().any(|c| c != '\n' && acts(c)) {
        return document;
    }
    let mut out = String::with_capacity(text.len() + 64);
    for c in text.chars() {
        // All of them are below 2^16: one escape each.
        if c != '\n' && acts(c) {
            out.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            out.push(c);
        }
    }
    out.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_acts_is_shown() {
        assert!(matches!(line("größe, 42 %"), Cow::Borrowed("größe, 42 %")));
        assert_eq!(line("a\u{1b}[2J\nb\u{9b}\u{7f}"), "a\\u{1b}[2J\\u{a}b\\u{9b}\\u{7f}");
        assert_eq!(text("a\r\nb\u{202e}"), "a\\u{d}\nb\\u{202e}");
    }

    proptest! {
        #[test]
        fn no_text_has_any(any: String) {
            prop_assert!(!line(&any).chars().any(acts));
            prop_assert!(!text(&any).chars().any(|c| c != '\n' && acts(c)));
        }

        #[test]
        fn a_document_keeps_its_values(any: Vec<String>) {
            let shown = json(serde_json::to_vec_pretty(&any).unwrap());
            prop_assert!(!std::str::from_utf8(&shown).unwrap().chars().any(|c| c != '\n' && acts(c)));
            prop_assert_eq!(serde_json::from_slice::<Vec<String>>(&shown).unwrap(), any);
        }
    }
}
