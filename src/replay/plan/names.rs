//! Names of a profile as they are shown. They come from elsewhere: nothing in them may reach a terminal as a command.

use crate::frame::plain;

/// The text with what is not printable spelled out, cut after `most` characters.
#[must_use]
pub fn shown(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => plain::line(&text[..end]).into_owned() + "...",
        None => plain::line(text).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_the_terminal_as_a_command() {
        assert_eq!(shown("/data/größe.h5", 100), "/data/größe.h5");
        assert_eq!(shown("a\u{1b}[2Jb\nc", 100), "a\\u{1b}[2Jb\\u{a}c");
        assert_eq!(shown("\u{202e}txt", 100), "\\u{202e}txt");
        assert_eq!(shown("abcdef", 3), "abc...");
    }
}
