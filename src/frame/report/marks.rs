//! Marks beside a number: what the reader must know about it, one letter each, explained where they are used.

use std::collections::BTreeSet;

use super::text::Page;
use crate::frame::digits::shown;

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
    /// Rests on few calls or few bytes.
    FewCalls,
    /// Read from memory.
    Cache,
    /// Nobody knows whether it was read from memory.
    CacheUnknown,
    /// Others had a share of the machine.
    Shared,
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
            Self::FewCalls => 'n',
            Self::Cache => 'c',
            Self::CacheUnknown => '?',
            Self::Shared => 'b',
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
            Self::FewCalls => "fewer than 10 calls of a rank, or less than 1 MiB",
            Self::Cache => "more than 10 % read from cache, not from storage",
            Self::CacheUnknown => "not known whether read from storage or from cache",
            Self::Shared => "busy: others had more than 5 % of the CPUs",
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
    /// Its significant digits; None: all that are asked for.
    pub known_digits: Option<u32>,
    /// Its marks.
    pub marks: Vec<Mark>,
}

impl Cell {
    /// The number (or the mark that stands in its place) in `width` columns, then a blank and the other marks in three.
    #[must_use]
    pub fn show(&self, width: usize, decimals: usize) -> String {
        match self.mb_per_second {
            Some(value) => {
                let marks = letters(&self.marks);
                // More than three take room from the blanks before the number.
                let width = width.saturating_sub(marks.len().saturating_sub(3));
                format!("{} {marks:<3}", self.number(value, width, decimals))
            }
            None => {
                let (stand_in, others): (Vec<Mark>, Vec<Mark>) =
                    self.marks.iter().partition(|m| matches!(m, Mark::NotMeasured | Mark::NotRun));
                let stand_in = stand_in.first().copied().unwrap_or(Mark::NotMeasured).letter();
                format!("{stand_in:>width$} {:<3}", letters(&others))
            }
        }
    }

    /// A number in `width` columns with the digits that are known. What they leave free behind the point stays blank, so that
    /// points stand below each other.
    #[must_use]
    pub fn number(&self, value: f64, width: usize, decimals: usize) -> String {
        let Some(digits) = self.known_digits else { return format!("{value:>width$.decimals$}") };
        let text = shown(value, digits, decimals);
        let behind = |decimals: usize| if decimals > 0 { decimals + 1 } else { 0 };
        let free = behind(decimals) - text.find('.').map_or(0, |point| text.len() - point);
        let width = width.saturating_sub(free);
        let free = if width == 0 { 0 } else { free };
        format!("{text:>width$}{:free$}", "")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_stand_below_each_other_whatever_is_known() {
        let shown = |value: f64, known_digits: Option<u32>| {
            Cell { mb_per_second: Some(value), known_digits, marks: Vec::new() }.show(9, 3)
        };
        assert_eq!(shown(1234.567, None), " 1234.567    ");
        assert_eq!(shown(1234.567, Some(6)), " 1234.57     ");
        assert_eq!(shown(1234.567, Some(2)), " 1200        ");
        assert_eq!(shown(12.34567, Some(3)), "   12.3      ");
        assert_eq!(shown(0.0434, Some(2)), "    0.043    ");
        let beside = Cell { mb_per_second: Some(76.42), known_digits: Some(2), marks: vec![Mark::FewCalls] };
        assert_eq!(beside.show(0, 3), "76 n  ");
    }
}
