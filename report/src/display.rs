//! Context of a displayed result: level of detail, terminal width, and files in which the result is saved.

use std::path::PathBuf;

/// Level of detail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DetailLevel {
    /// One screen: the value, what stands out, reliability.
    #[default]
    Screen,
    /// All tables.
    Full,
    /// All tables, with a line for each pattern (method, size).
    Details,
    /// All tables with pictures, for a browser.
    Page,
}

impl DetailLevel {
    /// From the command-line options; the larger level is used.
    #[must_use]
    pub fn of(full: bool, details: bool) -> Self {
        match (full, details) {
            (_, true) => Self::Details,
            (true, false) => Self::Full,
            _ => Self::Screen,
        }
    }
}

/// Where a result is saved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SaveStatus {
    /// Not saved.
    #[default]
    NotSaved,
    /// In these files.
    SavedTo(Vec<PathBuf>),
    /// Not all files could be written; the cause is reported on stderr.
    Failed,
    /// It was read from this file.
    LoadedFrom(PathBuf),
}

/// Context of a displayed result.
#[derive(Clone, Debug, Default)]
pub struct DisplayContext {
    /// Columns of the terminal.
    pub columns: usize,
    /// Where the result is saved.
    pub saved: SaveStatus,
}
