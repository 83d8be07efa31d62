//! Marks beside a number: what the reader must know about it, one letter each, explained where they are used.

use std::collections::BTreeSet;

use super::text::Page;

/// One mark. The order is that of the legend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// The data read back was wrong.
    Wrong,
    /// An error ended the pattern.
    Error,
    /// A signal ended the pattern.
    Interrupted,
    /// Cut by the time guard.
    TimeGuard,
    /// Ended by its share of the space.
    Space,
    /// Ended by a time that earlier overruns had shortened.
    ShortTime,
    /// Read from memory.
    Cache,
    /// Nobody knows whether it was read from memory.
    CacheUnknown,
    /// Not all patterns of the type ran to their end.
    Incomplete,
    /// Not reached.
    NotMeasured,
    /// Not run.
    NotRun,
}

impl Mark {
    /// The letter.
    #[must_use]
    pub fn letter(self) -> char {
        match self {
            Self::Wrong => '!',
            Self::Error => 'e',
            Self::Interrupted => 'i',
            Self::TimeGuard => 't',
            Self::Space => 's',
            Self::ShortTime => 'd',
            Self::Cache => 'c',
            Self::CacheUnknown => '?',
            Self::Incomplete => '~',
            Self::NotMeasured => '-',
            Self::NotRun => 'x',
        }
    }

    /// What the letter means.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Wrong => "data wrong",
            Self::Error => "ended by an error",
            Self::Interrupted => "ended by a signal",
            Self::TimeGuard => "cut by the time guard",
            Self::Space => "ended by its space share",
            Self::ShortTime => "less than 90 % of its time, the rest lost to earlier overruns",
            Self::Cache => "more than 10 % read from cache, not from storage",
            Self::CacheUnknown => "not known whether read from storage or from cache",
            Self::Incomplete => "not all patterns of the type",
            Self::NotMeasured => "not measured",
            Self::NotRun => "not run",
        }
    }
}

/// A number with its marks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// MB/s; None if there is nothing to show.
    pub mb_per_second: Option<f64>,
    /// Its marks.
    pub marks: Vec<Mark>,
}

impl Cell {
    /// The number (or the mark that stands in its place) in `width` columns, then a blank and the other marks in three.
    #[must_use]
    pub fn show(&self, width: usize, decimals: usize) -> String {
        match self.mb_per_second {
            Some(value) => format!("{value:>width$.decimals$} {:<3}", letters(&self.marks)),
            None => {
                let (stand_in, others): (Vec<Mark>, Vec<Mark>) =
                    self.marks.iter().partition(|m| matches!(m, Mark::NotMeasured | Mark::NotRun));
                let stand_in = stand_in.first().copied().unwrap_or(Mark::NotMeasured).letter();
                format!("{stand_in:>width$} {:<3}", letters(&others))
            }
        }
    }
}

/// The letters of marks, without blanks.
#[must_use]
pub fn letters(marks: &[Mark]) -> String {
    marks.iter().map(|m| m.letter()).collect()
}

/// The marks that were used, for the legend.
#[derive(Debug, Default)]
pub struct Legend {
    used: BTreeSet<Mark>,
}

impl Legend {
    /// Remembers the marks of a cell.
    pub fn note(&mut self, cell: &Cell) {
        self.used.extend(cell.marks.iter().copied());
    }

    /// Remembers marks.
    pub fn note_marks(&mut self, marks: &[Mark]) {
        self.used.extend(marks.iter().copied());
    }

    /// One line with the meaning of each mark used; None if there were none.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        let parts: Vec<String> = self.used.iter().map(|m| format!("{} {}", m.letter(), m.meaning())).collect();
        (!parts.is_empty()).then(|| parts.join(",  "))
    }

    /// The line below a table that explains its marks; nothing if there were none.
    pub(crate) fn write(&self, page: &mut Page) {
        if let Some(text) = self.text() {
            page.hanging("  marks: ", &text);
        }
    }
}

/// Texts too long for a column, numbered and printed once below the table.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    texts: Vec<String>,
}

impl Notes {
    /// The number that stands for a text.
    pub(crate) fn number(&mut self, text: String) -> String {
        let position = self.texts.iter().position(|t| *t == text).unwrap_or_else(|| {
            self.texts.push(text);
            self.texts.len() - 1
        });
        format!("[{}]", position + 1)
    }

    /// All of them.
    pub(crate) fn write(&self, page: &mut Page) {
        page.blank();
        for (text, number) in self.texts.iter().zip(1..) {
            page.hanging(&format!("  [{number}] "), text);
        }
    }
}
