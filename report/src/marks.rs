//! Marks beside a number: what the reader must know about it, one letter each, explained where they are used.

use std::collections::BTreeSet;

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
    /// Fewer repetitions than number and volume allow.
    Reduced,
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
            Self::Reduced => 'r',
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
            Self::Reduced => "fewer repetitions, to keep within the time limit of a row",
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

/// The letters of marks, without blanks.
#[must_use]
pub fn letters(marks: &[Mark]) -> String {
    marks.iter().map(|m| m.letter()).collect()
}

/// The marks that were used, for the legend.
#[derive(Clone, Debug, Default)]
pub struct Legend {
    used: BTreeSet<Mark>,
}

impl Legend {
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
}

/// Texts too long for a column, numbered and printed once below the table.
#[derive(Debug, Default)]
pub struct Notes {
    texts: Vec<String>,
}

impl Notes {
    /// The number that stands for a text.
    pub fn number(&mut self, text: String) -> String {
        let position = self.texts.iter().position(|t| *t == text).unwrap_or_else(|| {
            self.texts.push(text);
            self.texts.len() - 1
        });
        format!("[{}]", position + 1)
    }

    /// All of them, each behind its number.
    pub fn texts(&self) -> Vec<String> {
        self.texts.iter().zip(1..).map(|(text, number)| format!("[{number}] {text}")).collect()
    }
}
