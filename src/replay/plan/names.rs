//! Names of a profile as they are shown. They come from elsewhere: nothing in them may reach a terminal as a command.

/// The text with what is not printable spelled out, cut after `most` characters.
#[must_use]
pub fn shown(text: &str, most: usize) -> String {
    let mut out = String::new();
    for (n, c) in text.chars().enumerate() {
        if n == most {
            out.push_str("...");
            break;
        }
        if is_plain(c) {
            out.push(c);
        } else {
            out.extend(c.escape_unicode());
        }
    }
    out
}

/// Neither a control character nor one that changes the direction of text.
fn is_plain(c: char) -> bool {
    let turns = ('\u{200b}'..='\u{200f}').contains(&c)
        || ('\u{2028}'..='\u{202e}').contains(&c)
        || ('\u{2066}'..='\u{2069}').contains(&c);
    !c.is_control() && !turns
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
