//! Escaping of control characters: names of files and hosts, hints and messages of libraries may contain anything.
//!
//! Lines of a page are escaped by [`line()`] when they are built, so that widths are those of the shown text; all output on stdout or
//! stderr is escaped by [`text()`] once more.

use std::borrow::Cow;

/// True for control characters (C0, DEL, C1), line and paragraph separators, invisible characters, and those that change the text
/// direction.
fn needs_escape(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

fn escaped(text: &str, acts: impl Fn(char) -> bool) -> Cow<'_, str> {
    // Fast path for nearly all texts.
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

/// Escapes a line: control characters, including line breaks, become `\u{1b}` etc.
#[must_use]
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, needs_escape)
}

/// Escapes several lines: as [`line()`], except for line feeds.
#[must_use]
pub fn text(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c != '\n' && needs_escape(c))
}

/// Escapes a JSON document without changing its values: control characters can only be inside strings, where `\u001b` is equivalent.
#[must_use]
pub fn json(document: Vec<u8>) -> Vec<u8> {
    // Fast path for nearly all documents.
    let is_printable = |byte: &u8| (b' '..=b'~').contains(byte) || *byte == b'\n';
    if document.iter().all(is_printable) {
        return document;
    }
    let Ok(text) = std::str::from_utf8(&document) else { return document };
    if !text.chars().any(|c| c != '\n' && needs_escape(c)) {
        return document;
    }
    let mut out = String::with_capacity(text.len() + 64);
    for c in text.chars() {
        // All are below 2^16: one escape each.
        if c != '\n' && needs_escape(c) {
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
    fn control_characters_are_escaped() {
        assert!(matches!(line("größe, 42 %"), Cow::Borrowed("größe, 42 %")));
        assert_eq!(line("a\u{1b}[2J\nb\u{9b}\u{7f}"), "a\\u{1b}[2J\\u{a}b\\u{9b}\\u{7f}");
        assert_eq!(text("a\r\nb\u{202e}"), "a\\u{d}\nb\\u{202e}");
    }

    proptest! {
        #[test]
        fn no_text_has_any(any: String) {
            prop_assert!(!line(&any).chars().any(needs_escape));
            prop_assert!(!text(&any).chars().any(|c| c != '\n' && needs_escape(c)));
        }

        #[test]
        fn a_document_keeps_its_values(any: Vec<String>) {
            let shown = json(serde_json::to_vec_pretty(&any).unwrap());
            prop_assert!(!std::str::from_utf8(&shown).unwrap().chars().any(|c| c != '\n' && needs_escape(c)));
            prop_assert_eq!(serde_json::from_slice::<Vec<String>>(&shown).unwrap(), any);
        }
    }
}
