//! Output on stdout: a text, or one screen of short lines, whose parts may have colours.

use super::text::wrap;
use crate::terminal_escape;

/// Minimum and maximum width of a screen, in characters. Tables fit into [`MIN_COLUMNS`].
pub const MIN_COLUMNS: usize = 80;
/// Also the width of a full report.
const MAX_COLUMNS: usize = super::text::WIDTH;
/// Width of the label column, including the blanks on both sides.
pub const LABEL: usize = 14;
const ELLIPSIS: &str = " ...";
/// End of a text of which the full report has the rest.
const REST_IN_FULL: &str = " ... (--full)";

/// Style of a part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextStyle {
    /// Normal text.
    Plain,
    /// Emphasized.
    Strong,
    /// Success.
    Good,
    /// Failure.
    Bad,
    /// Warning.
    Warn,
    /// Secondary.
    Quiet,
}

/// Escape sequence of a style; None for normal text.
fn escape_sequence(tone: TextStyle) -> Option<&'static str> {
    match tone {
        TextStyle::Plain => None,
        TextStyle::Strong => Some("\u{1b}[1m"),
        TextStyle::Good => Some("\u{1b}[32m"),
        TextStyle::Bad => Some("\u{1b}[1;31m"),
        TextStyle::Warn => Some("\u{1b}[33m"),
        TextStyle::Quiet => Some("\u{1b}[2m"),
    }
}

const RESET: &str = "\u{1b}[0m";

/// A part of a line, with control characters shown as escapes.
#[derive(Clone, Debug)]
pub struct StyledText {
    tone: TextStyle,
    text: String,
}

/// Creates a part of a line.
#[must_use]
pub fn styled(tone: TextStyle, text: impl AsRef<str>) -> StyledText {
    StyledText { tone, text: terminal_escape::line(text.as_ref()).into_owned() }
}

/// Output on stdout.
#[derive(Clone, Debug)]
pub enum TerminalOutput {
    /// A text.
    Text(String),
    /// One screen.
    Screen(Screen),
}

impl From<String> for TerminalOutput {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl TerminalOutput {
    /// The text, with or without colour sequences; all other control characters are escaped.
    #[must_use]
    pub fn render(&self, colours: bool) -> String {
        match self {
            Self::Text(text) => terminal_escape::text(text).into_owned(),
            Self::Screen(screen) => screen.render(colours),
        }
    }
}

/// Verbosity of a screen, by the available lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verbosity {
    /// Every text as a whole.
    Whole,
    /// Two lines per text.
    Full,
    /// One line per warning.
    Short,
    /// One line per warning, and fewer warnings.
    Shorter,
    /// Only what cannot be omitted.
    Essential,
}

/// Lines of at most the width of a screen. Longer texts are truncated with dots.
#[derive(Clone, Debug)]
pub struct Screen {
    columns: usize,
    verbosity: Verbosity,
    lines: Vec<Vec<StyledText>>,
}

impl Screen {
    /// Creates an empty screen for a terminal with `columns` columns.
    #[must_use]
    pub fn new(columns: usize) -> Self {
        Self { columns: columns.clamp(MIN_COLUMNS, MAX_COLUMNS), verbosity: Verbosity::Whole, lines: Vec::new() }
    }

    /// Calls `write` with the largest verbosity whose output has at most `most` lines.
    pub fn fit_lines(columns: usize, most: usize, write: impl Fn(&mut Self)) -> Self {
        let with = |level| {
            let mut screen = Self { verbosity: level, ..Self::new(columns) };
            write(&mut screen);
            screen
        };
        let fitting = [Verbosity::Whole, Verbosity::Full, Verbosity::Short, Verbosity::Shorter]
            .into_iter()
            .map(with)
            .find(|screen| screen.height() <= most);
        fitting.unwrap_or_else(|| with(Verbosity::Essential))
    }

    /// Columns of a line.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Verbosity.
    #[must_use]
    pub fn verbosity(&self) -> Verbosity {
        self.verbosity
    }

    /// Lines so far.
    #[must_use]
    pub fn height(&self) -> usize {
        self.lines.len()
    }

    /// Appends an empty line, except at the top and after another one.
    pub fn blank(&mut self) {
        if self.lines.last().is_some_and(|line| !line.is_empty()) {
            self.lines.push(Vec::new());
        }
    }

    /// Appends a line of parts.
    pub fn line(&mut self, spans: impl IntoIterator<Item = StyledText>) {
        let mut available = self.columns;
        let mut line: Vec<StyledText> = Vec::new();
        for mut part in spans.into_iter().filter(|part| !part.text.is_empty()) {
            let length = part.text.chars().count();
            if length > available {
                // If even the dots do not fit, they are truncated.
                let kept = available.saturating_sub(ELLIPSIS.len());
                part.text = part.text.chars().take(kept).collect::<String>() + ELLIPSIS;
                if available < ELLIPSIS.len() {
                    part.text = ELLIPSIS.chars().take(available).collect();
                }
                line.push(part);
                break;
            }
            available -= length;
            line.push(part);
        }
        // Remove trailing blanks.
        while let Some(last) = line.last_mut() {
            last.text.truncate(last.text.trim_end().len());
            if !last.text.is_empty() {
                break;
            }
            line.pop();
        }
        self.lines.push(line);
    }

    /// Appends a label and a text in at most `most` lines, further lines indented. The end of a longer text names the option that shows it.
    pub fn field(&mut self, label: StyledText, text: &str, tone: TextStyle, most: usize) {
        let width = self.columns - LABEL;
        let mut lines = wrap(text, width);
        if lines.len() > most {
            lines.truncate(most);
            if let Some(last) = lines.last_mut() {
                *last = begin_of(last, width);
            }
        }
        let width = LABEL - 3;
        let labelled = StyledText { text: format!("  {:<width$.width$} ", label.text), ..label };
        let mut label = Some(labelled);
        for line in lines {
            let label = label.take().unwrap_or_else(|| styled(TextStyle::Plain, " ".repeat(LABEL)));
            self.line([label, styled(tone, line)]);
        }
    }

    fn render(&self, colours: bool) -> String {
        let mut text = String::new();
        for line in &self.lines {
            for part in line {
                match escape_sequence(part.tone).filter(|_| colours) {
                    Some(code) => text.extend([code, &part.text, RESET]),
                    None => text.push_str(&part.text),
                }
            }
            text.push('\n');
        }
        text
    }
}

/// The first words of a longer text in `width` columns, and the option that shows the rest.
#[must_use]
pub fn begin_of(text: &str, width: usize) -> String {
    wrap(text, width - REST_IN_FULL.len()).into_iter().next().unwrap_or_default() + REST_IN_FULL
}

/// A text in exactly `width` columns, truncated or padded.
#[must_use]
pub fn pad_to(text: &str, width: usize) -> String {
    format!("{:<width$.width$}", terminal_escape::line(text))
}

/// A text right-aligned in `width` columns, never truncated.
#[must_use]
pub fn align_right(text: &str, width: usize) -> String {
    format!("{text:>width$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn widest(text: &str) -> usize {
        text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
    }

    #[test]
    fn colours_are_added_to_the_same_text() {
        let mut screen = Screen::new(80);
        screen.blank();
        screen.line([
            styled(TextStyle::Strong, "value"),
            styled(TextStyle::Plain, "  "),
            styled(TextStyle::Bad, "NOT VALID"),
            styled(TextStyle::Plain, " "),
        ]);
        screen.blank();
        screen.blank();
        screen.field(styled(TextStyle::Warn, "!"), &"word ".repeat(40), TextStyle::Plain, 2);
        let sheet = TerminalOutput::Screen(screen);
        let (plain, coloured) = (sheet.render(false), sheet.render(true));
        assert!(plain.starts_with("value  NOT VALID\n\n  !           word word"), "{plain}");
        assert!(plain.ends_with("word ... (--full)\n") && plain.lines().count() == 4, "{plain}");
        assert!(!plain.contains('\u{1b}') && coloured.contains("\u{1b}[1;31mNOT VALID\u{1b}[0m"));
        let codes = [TextStyle::Strong, TextStyle::Good, TextStyle::Bad, TextStyle::Warn, TextStyle::Quiet]
            .map(|tone| escape_sequence(tone).unwrap());
        let bare = codes.into_iter().chain([RESET]).fold(coloured, |text, code| text.replace(code, ""));
        assert_eq!(bare, plain);
    }

    #[test]
    fn plain_text_is_not_changed() {
        let given = "a  \n\n b".to_owned();
        assert_eq!(TerminalOutput::from(given.clone()).render(true), given);
        assert_eq!(TerminalOutput::from("\u{1b}[2J".to_owned()).render(true), "\\u{1b}[2J");
    }

    proptest! {
        #[test]
        fn no_line_is_wider_than_the_screen(columns in 0_usize..300, texts: Vec<String>, most in 1_usize..4) {
            let mut screen = Screen::new(columns);
            screen.line(texts.iter().map(|text| styled(TextStyle::Good, text)));
            for text in &texts {
                let before = screen.height();
                screen.field(styled(TextStyle::Quiet, text), &text.repeat(9), TextStyle::Plain, most);
                prop_assert!(screen.height() <= before + most);
            }
            let text = TerminalOutput::Screen(screen).render(false);
            prop_assert!(widest(&text) <= columns.clamp(MIN_COLUMNS, MAX_COLUMNS));
            prop_assert!(text.lines().all(|line| line == line.trim_end()));
        }
    }
}
