//! Plain text of at most [`WIDTH`] columns: wrapping, labelled fields, headings.

use crate::digits::format_significant;
use crate::terminal_escape;
pub use crate::units::count;
pub use crate::words::{figure, list, nanoseconds, percent};

/// Widest line of any table, in characters.
pub const WIDTH: usize = 110;

/// Width of the label column of [`TextPage::field`], with its margin.
const LABEL: usize = 16;

/// Text built line by line. Only [`TextPage::exact_line`] keeps trailing blanks.
#[derive(Debug)]
pub struct TextPage {
    text: String,
    width: usize,
}

impl Default for TextPage {
    fn default() -> Self {
        Self::with_width(WIDTH)
    }
}

impl TextPage {
    /// Creates an empty page that wraps at `width` characters.
    #[must_use]
    pub fn with_width(width: usize) -> Self {
        Self { text: String::new(), width }
    }

    /// Characters of a line.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// Appends one line, with control characters shown as escapes. All text passes this function.
    pub fn line(&mut self, line: impl AsRef<str>) {
        self.text.push_str(&terminal_escape::line(line.as_ref().trim_end()));
        self.text.push('\n');
    }

    /// Appends one line with its trailing blanks, for fixed formats.
    pub fn exact_line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Appends an empty line.
    pub fn blank(&mut self) {
        self.text.push('\n');
    }

    /// Appends an empty line, a title, and a rule.
    pub fn heading(&mut self, title: &str) {
        self.blank();
        for line in wrap(title, self.width) {
            self.line(line);
        }
        self.line("-".repeat(title.chars().count().min(self.width)));
    }

    /// Appends a label and its text, wrapped with a hanging indent. An empty label continues the field above.
    pub fn field(&mut self, label: &str, text: &str) {
        self.hanging(&prefix(label), text);
    }

    /// Appends a field for each text, with the label at the first.
    pub fn fields(&mut self, label: &str, texts: impl IntoIterator<Item = String>) {
        for (number, text) in texts.into_iter().enumerate() {
            self.field(if number == 0 { label } else { "" }, &text);
        }
    }

    /// Appends text after a prefix; further lines are indented by the width of the prefix.
    pub fn hanging(&mut self, prefix: &str, text: &str) {
        let indent = prefix.chars().count();
        let lines = wrap(text, self.width.saturating_sub(indent));
        if lines.is_empty() {
            self.line(prefix);
        }
        for (number, line) in lines.iter().enumerate() {
            if number == 0 {
                self.line(format!("{prefix}{line}"));
            } else {
                self.line(format!("{:indent$}{line}", ""));
            }
        }
    }

    /// The text so far.
    #[must_use]
    pub fn finish(self) -> String {
        self.text
    }
}

/// The label column; the longest label is also followed by a blank.
fn prefix(label: &str) -> String {
    format!("  {label:<width$} ", width = LABEL - 3)
}

/// Breaks text at white space into lines of at most `width` characters; longer words (paths, mount options) are split.
#[must_use]
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut used = 0;
    for word in text.split_whitespace() {
        // Escaped first, for the width as shown.
        let mut rest: Vec<char> = terminal_escape::line(word).chars().collect();
        if used > 0 && used + 1 + rest.len() > width {
            lines.push(std::mem::take(&mut line));
            used = 0;
        }
        while rest.len() > width {
            lines.push(rest.drain(..width).collect());
        }
        if used > 0 {
            line.push(' ');
            used += 1;
        }
        used += rest.len();
        line.extend(rest);
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

/// Joins non-default settings; None if there are none.
#[must_use]
pub fn join_settings(parts: impl IntoIterator<Item = Option<String>>) -> Option<String> {
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Formats with three decimals, or as many as fit into `width`.
#[must_use]
pub fn fit(value: f64, width: usize) -> String {
    format!("{value:.*}", decimals_that_fit(value, width))
}

/// The same with at most `significant_digits` significant digits.
#[must_use]
pub fn fit_significant(value: f64, known_digits: u32, width: usize) -> String {
    format_significant(value, known_digits, decimals_that_fit(value, width))
}

fn decimals_that_fit(value: f64, width: usize) -> usize {
    match format!("{value:.3}").len() {
        n if n <= width => 3,
        n if n <= width + 2 => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapping_keeps_every_word_and_every_width() {
        assert_eq!(wrap("one two  three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefghij k", 4), ["abcd", "efgh", "ij k"]);
        assert_eq!(wrap("ab abcdefgh", 4), ["ab", "abcd", "efgh"]);
        assert!(wrap("", 10).is_empty());
        assert_eq!(wrap("größe größe", 5), ["größe", "größe"], "characters count, not bytes");
    }

    #[test]
    fn a_field_hangs_below_its_label() {
        let mut page = TextPage::default();
        page.field("label", &"word ".repeat(30));
        let text = page.finish();
        assert!(text.lines().all(|l| l.chars().count() <= WIDTH));
        assert!(text.lines().nth(1).is_some_and(|l| l.starts_with("                word")));
    }

    #[test]
    fn numbers_fit_their_column() {
        assert_eq!([fit(1.5, 8), fit(123_456.75, 8), fit(1e9, 8)].join(" "), "1.500 123456.8 1000000000");
        assert_eq!(
            [fit_significant(1.26, 2, 8), fit_significant(1e9, 6, 8), fit_significant(123_456.75, 6, 8)].join(" "),
            "1.3 1000000000 123457"
        );
    }
}
