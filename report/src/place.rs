//! Where a result is shown, and what becomes of it: facts that its pages speak of and cannot look up.

use std::path::PathBuf;

/// How much is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// One screen: the value, what stands out, what to trust.
    #[default]
    Screen,
    /// All tables.
    Full,
    /// All tables, with a line for each pattern (method, size).
    Details,
    /// All tables with pictures, for a browser.
    Page,
}

impl Level {
    /// From the options of the command line; the larger one counts.
    #[must_use]
    pub fn of(full: bool, details: bool) -> Self {
        match (full, details) {
            (_, true) => Self::Details,
            (true, false) => Self::Full,
            _ => Self::Screen,
        }
    }
}

/// What becomes of a result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Saved {
    /// It is not kept.
    #[default]
    Nothing,
    /// In these files.
    Files(Vec<PathBuf>),
    /// Not all files could be written; why is said on stderr.
    Failed,
    /// It was read from this file.
    From(PathBuf),
}

/// Where a result is shown.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// Columns of the terminal.
    pub columns: usize,
    /// What becomes of the result.
    pub saved: Saved,
}
