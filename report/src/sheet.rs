//! What goes to stdout: a text that is given, or one screen of short lines, whose parts may have colours.

use super::text::wrap;
use crate::plain;

/// Narrowest and widest screen, in characters. Tables fit into [`NARROW`].
pub const NARROW: usize = 80;
/// The width of a whole report too.
const WIDE: usize = super::text::WIDTH;
/// Width of the labels at the beginning of a line, with the blanks on both sides.
pub const LABEL: usize = 14;
/// Behind what was cut off.
const DOTS: &str = " ...";

/// How a part of a text is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// As it is.
    Plain,
    /// What the eye shall find first.
    Strong,
    /// All is well.
    Good,
    /// It is not.
    Bad,
    /// Something to know.
    Warn,
    /// Only needed once.
    Quiet,
}

/// The sequence that begins a part of a line; None: nothing is sent.
fn code(tone: Tone) -> Option<&'static str> {
    match tone {
        Tone::Plain => None,
        Tone::Strong => Some("\u{1b}[1m"),
        Tone::Good => Some("\u{1b}[32m"),
        Tone::Bad => Some("\u{1b}[1;31m"),
        Tone::Warn => Some("\u{1b}[33m"),
        Tone::Quiet => Some("\u{1b}[2m"),
    }
}

const NORMAL: &str = "\u{1b}[0m";

/// A part of a line. What a terminal would obey is shown as an escape.
#[derive(Clone, Debug)]
pub struct Span {
    tone: Tone,
    text: String,
}

/// A part of a line.
#[must_use]
pub fn span(tone: Tone, text: impl AsRef<str>) -> Span {
    Span { tone, text: plain::line(text.as_ref()).into_owned() }
}

/// What goes to stdout.
#[derive(Clone, Debug)]
pub enum Sheet {
    /// A text as it is.
    Text(String),
    /// One screen.
    Screen(Screen),
}

impl From<String> for Sheet {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl Sheet {
    /// The text, with the sequences of colours or without; nothing else in it is obeyed by a terminal.
    #[must_use]
    pub fn render(&self, colours: bool) -> String {
        match self {
            Self::Text(text) => plain::text(text).into_owned(),
            Self::Screen(screen) => screen.render(colours),
        }
    }
}

/// How much room there is for what can be said shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// Two lines for a text.
    Ample,
    /// One line for a warning.
    Tight,
    /// And fewer of them.
    Least,
    /// Only what cannot be left out.
    Bare,
}

/// Lines no wider than a screen. What does not fit is cut, and dots say so.
#[derive(Clone, Debug)]
pub struct Screen {
    columns: usize,
    room: Room,
    lines: Vec<Vec<Span>>,
}

impl Screen {
    /// Nothing yet, for a terminal with so many columns.
    #[must_use]
    pub fn new(columns: usize) -> Self {
        Self { columns: columns.clamp(NARROW, WIDE), room: Room::Ample, lines: Vec::new() }
    }

    /// What `write` writes with as much room as keeps it within `most` lines.
    pub fn within(columns: usize, most: usize, write: impl Fn(&mut Self)) -> Self {
        let with = |room| {
            let mut screen = Self { room, ..Self::new(columns) };
            write(&mut screen);
            screen
        };
        let fitting =
            [Room::Ample, Room::Tight, Room::Least].into_iter().map(with).find(|screen| screen.height() <= most);
        fitting.unwrap_or_else(|| with(Room::Bare))
    }

    /// Columns of a line.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// How much room there is.
    #[must_use]
    pub fn room(&self) -> Room {
        self.room
    }

    /// Lines so far.
    #[must_use]
    pub fn height(&self) -> usize {
        self.lines.len()
    }

    /// An empty line; none at the top and none behind another.
    pub fn blank(&mut self) {
        if self.lines.last().is_some_and(|line| !line.is_empty()) {
            self.lines.push(Vec::new());
        }
    }

    /// One line of parts.
    pub fn line(&mut self, spans: impl IntoIterator<Item = Span>) {
        let mut room = self.columns;
        let mut line: Vec<Span> = Vec::new();
        for mut part in spans.into_iter().filter(|part| !part.text.is_empty()) {
            let length = part.text.chars().count();
            if length > room {
                // Where not even the dots fit, they take the place of what stands before them.
                let kept = room.saturating_sub(DOTS.len());
                part.text = part.text.chars().take(kept).collect::<String>() + DOTS;
                if room < DOTS.len() {
                    part.text = DOTS.chars().take(room).collect();
                }
                line.push(part);
                break;
            }
            room -= length;
            line.push(part);
        }
        // No blanks at the end.
        while let Some(last) = line.last_mut() {
            last.text.truncate(last.text.trim_end().len());
            if !last.text.is_empty() {
                break;
            }
            line.pop();
        }
        self.lines.push(line);
    }

    /// A label and a text behind it in at most `most` lines, the further ones indented. A text that begins with the same label is
    /// given an empty one.
    pub fn field(&mut self, label: Span, text: &str, tone: Tone, most: usize) {
        let width = self.columns - LABEL;
        let mut lines = wrap(text, width);
        if lines.len() > most {
            lines.truncate(most);
            if let Some(last) = lines.last_mut() {
                let words = wrap(last, width - DOTS.len());
                *last = words.into_iter().next().unwrap_or_default() + DOTS;
            }
        }
        let width = LABEL - 3;
        let labelled = Span { text: format!("  {:<width$.width$} ", label.text), ..label };
        let mut label = Some(labelled);
        for line in lines {
            let label = label.take().unwrap_or_else(|| span(Tone::Plain, " ".repeat(LABEL)));
            self.line([label, span(tone, line)]);
        }
    }

    fn render(&self, colours: bool) -> String {
        let mut text = String::new();
        for line in &self.lines {
            for part in line {
                match code(part.tone).filter(|_| colours) {
                    Some(code) => text.extend([code, &part.text, NORMAL]),
                    None => text.push_str(&part.text),
                }
            }
            text.push('\n');
        }
        text
    }
}

/// A text in exactly so many columns, as it is shown: cut, or with blanks behind it.
#[must_use]
pub fn fixed(text: &str, width: usize) -> String {
    format!("{:<width$.width$}", plain::line(text))
}

/// A text at the right end of so many columns. What is wider stays whole.
#[must_use]
pub fn right(text: &str, width: usize) -> String {
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
            span(Tone::Strong, "value"),
            span(Tone::Plain, "  "),
            span(Tone::Bad, "NOT VALID"),
            span(Tone::Plain, " "),
        ]);
        screen.blank();
        screen.blank();
        screen.field(span(Tone::Warn, "!"), &"word ".repeat(40), Tone::Plain, 2);
        let sheet = Sheet::Screen(screen);
        let (plain, coloured) = (sheet.render(false), sheet.render(true));
        assert!(plain.starts_with("value  NOT VALID\n\n  !           word word"), "{plain}");
        assert!(plain.ends_with("word ...\n") && plain.lines().count() == 4, "{plain}");
        assert!(!plain.contains('\u{1b}') && coloured.contains("\u{1b}[1;31mNOT VALID\u{1b}[0m"));
        let codes = [Tone::Strong, Tone::Good, Tone::Bad, Tone::Warn, Tone::Quiet].map(|tone| code(tone).unwrap());
        let bare = codes.into_iter().chain([NORMAL]).fold(coloured, |text, code| text.replace(code, ""));
        assert_eq!(bare, plain);
    }

    #[test]
    fn a_text_that_is_given_stays_as_it_is() {
        let given = "a  \n\n b".to_owned();
        assert_eq!(Sheet::from(given.clone()).render(true), given);
        assert_eq!(Sheet::from("\u{1b}[2J".to_owned()).render(true), "\\u{1b}[2J");
    }

    proptest! {
        #[test]
        fn no_line_is_wider_than_the_screen(columns in 0_usize..300, texts: Vec<String>, most in 1_usize..4) {
            let mut screen = Screen::new(columns);
            screen.line(texts.iter().map(|text| span(Tone::Good, text)));
            for text in &texts {
                let before = screen.height();
                screen.field(span(Tone::Quiet, text), &text.repeat(9), Tone::Plain, most);
                prop_assert!(screen.height() <= before + most);
            }
            let text = Sheet::Screen(screen).render(false);
            prop_assert!(widest(&text) <= columns.clamp(NARROW, WIDE));
            prop_assert!(text.lines().all(|line| line == line.trim_end()));
        }
    }
}
