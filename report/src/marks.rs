//! Quality marks of numbers: one letter each, explained in a legend where they are used.

use std::collections::BTreeSet;

/// One mark. The order is that of the legend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum QualityMark {
    /// The verified data was wrong.
    Wrong,
    /// An error ended the pattern.
    Error,
    /// A signal ended the pattern.
    Interrupted,
    /// Ended by the time limit of the run.
    Limit,
    /// Ended by the time guard.
    TimeGuard,
    /// Ended by its share of the space.
    Space,
    /// Time shortened by earlier overruns.
    ShortTime,
    /// Based on few calls or few bytes.
    FewCalls,
    /// Read from memory.
    Cache,
    /// Unknown whether it was read from memory.
    CacheUnknown,
    /// Disturbed by interference.
    Interference,
    /// Fewer iterations than number and volume allow.
    Reduced,
    /// Not all patterns of the type were completed.
    Incomplete,
    /// Not measured because the run ended before.
    NotMeasured,
    /// Not run.
    NotRun,
}

impl QualityMark {
    /// Its letter.
    #[must_use]
    pub fn letter(self) -> char {
        match self {
            Self::Wrong => '!',
            Self::Error => 'e',
            Self::Interrupted => 'i',
            Self::Limit => 'l',
            Self::TimeGuard => 't',
            Self::Space => 's',
            Self::ShortTime => 'd',
            Self::FewCalls => 'n',
            Self::Cache => 'c',
            Self::CacheUnknown => '?',
            Self::Interference => 'b',
            Self::Reduced => 'r',
            Self::Incomplete => '~',
            Self::NotMeasured => '-',
            Self::NotRun => 'x',
        }
    }

    /// Meaning of the letter.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Wrong => "data wrong",
            Self::Error => "ended by an error",
            Self::Interrupted => "ended by a signal",
            Self::Limit => "ended by the time limit",
            Self::TimeGuard => "cut by the time guard",
            Self::Space => "ended by its space share",
            Self::ShortTime => "less than 90 % of its time, the rest lost to earlier overruns",
            Self::FewCalls => "fewer than 10 calls of a rank, or less than 1 MiB",
            Self::Cache => "more than 10 % read from cache, not from storage",
            Self::CacheUnknown => "not known whether read from storage or from cache",
            Self::Interference => "busy: interference above 5 % of CPU time",
            Self::Reduced => "fewer iterations, to keep within the time limit of a row",
            Self::Incomplete => "not all patterns of the type",
            Self::NotMeasured => "not measured",
            Self::NotRun => "not run",
        }
    }
}

/// A number with its marks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MarkedRate {
    /// MB/s; None if there is no number.
    pub mb_per_second: Option<f64>,
    /// Significant digits; None if not limited.
    pub significant_digits: Option<u32>,
    /// Its marks.
    pub marks: Vec<QualityMark>,
}

/// The letters of marks, without blanks.
#[must_use]
pub fn letters(marks: &[QualityMark]) -> String {
    marks.iter().map(|m| m.letter()).collect()
}

/// Marks in use, for the legend.
#[derive(Clone, Debug, Default)]
pub struct Legend {
    used: BTreeSet<QualityMark>,
}

impl Legend {
    /// Adds marks.
    pub fn note_marks(&mut self, marks: &[QualityMark]) {
        self.used.extend(marks.iter().copied());
    }

    /// One line with the meaning of each mark in use; None without marks.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        let parts: Vec<String> = self.used.iter().map(|m| format!("{} {}", m.letter(), m.meaning())).collect();
        (!parts.is_empty()).then(|| parts.join(",  "))
    }
}

/// Footnotes: texts too long for a column, numbered and printed once below the table.
#[derive(Debug, Default)]
pub struct Footnotes {
    texts: Vec<String>,
}

impl Footnotes {
    /// Number of the footnote for a text.
    pub fn number(&mut self, text: String) -> String {
        let position = self.texts.iter().position(|t| *t == text).unwrap_or_else(|| {
            self.texts.push(text);
            self.texts.len() - 1
        });
        format!("[{}]", position + 1)
    }

    /// All footnotes with their numbers.
    pub fn texts(&self) -> Vec<String> {
        self.texts.iter().zip(1..).map(|(text, number)| format!("[{number}] {text}")).collect()
    }
}
