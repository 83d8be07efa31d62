//! Escaping of text in markup.

use std::borrow::Cow;

use crate::terminal_escape::line;

/// Escapes text for use between tags and in quoted attributes. Control characters are shown as escapes.
#[must_use]
pub fn escape(text: &str) -> Cow<'_, str> {
    let text = line(text);
    if !text.contains(['&', '<', '>', '"', '\'']) {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

const MAX_SLUG: usize = 60;

/// A name for anchors and files: letters, digits, dot, dash and underscore. Never empty, never begins with a dot or a dash.
#[must_use]
pub fn slug(text: &str) -> String {
    let name: String = text
        .chars()
        .take(MAX_SLUG)
        .map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' })
        .collect();
    match name.trim_start_matches(['.', '-']) {
        "" => "_".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_text_and_no_markup() {
        assert_eq!(escape("</script><b a='\"'>&\u{1b}"), "&lt;/script&gt;&lt;b a=&#39;&quot;&#39;&gt;&amp;\\u{1b}");
        assert!(matches!(escape("ext4 on /dev/vda"), Cow::Borrowed(_)));
    }

    #[test]
    fn names_of_files_lead_nowhere() {
        assert_eq!([slug("../../etc/x"), slug(""), slug("-rf"), slug("a b<c>")], ["_.._etc_x", "_", "rf", "a_b_c_"]);
        assert!(slug(&"x".repeat(500)).len() <= MAX_SLUG);
    }
}
