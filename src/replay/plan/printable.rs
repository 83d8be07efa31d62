//! Display of names from a profile. They are untrusted and must not control the terminal.

use crate::frame::terminal_escape;

/// The text with unprintable characters escaped, truncated after `most` characters.
#[must_use]
pub fn printable(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => terminal_escape::line(&text[..end]).into_owned() + "...",
        None => terminal_escape::line(text).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(printable("/data/größe.h5", 100), "/data/größe.h5");
        assert_eq!(printable("a\u{1b}[2Jb\nc", 100), "a\\u{1b}[2Jb\\u{a}c");
        assert_eq!(printable("\u{202e}txt", 100), "\\u{202e}txt");
        assert_eq!(printable("abcdef", 3), "abc...");
    }
}
