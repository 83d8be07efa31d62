//! What is wrong with a profile, and where.

use std::fmt;
use std::path::Path;

/// What is wrong with a profile: file, line, field, cause and next step.
#[derive(Debug)]
pub struct TextError(Box<Parts>);

#[derive(Debug, Default)]
struct Parts {
    file: String,
    line: u64,
    field: usize,
    key: String,
    what: String,
    next: String,
}

impl TextError {
    /// What is wrong and what to do. Where comes later.
    pub(super) fn new(what: impl Into<String>, next: impl Into<String>) -> Self {
        Self(Box::new(Parts { what: what.into(), next: next.into(), ..Parts::default() }))
    }

    /// In which field, counted from 1, and what it is called.
    pub(super) fn field(mut self, field: usize, key: impl Into<String>) -> Self {
        if self.0.field == 0 {
            self.0.field = field;
            self.0.key = key.into();
        }
        self
    }

    /// In which file and line; 0 is the file as a whole.
    pub(super) fn at(mut self, file: &Path, line: u64) -> Self {
        self.0.file = file.display().to_string();
        self.0.line = line;
        self
    }

    /// The line, counted from 1 over the whole text; None if the file as a whole is meant.
    #[must_use]
    pub fn line(&self) -> Option<u64> {
        (self.0.line > 0).then_some(self.0.line)
    }

    /// The field of the line, counted from 1; None if the line as a whole is meant.
    #[must_use]
    pub fn field_number(&self) -> Option<usize> {
        (self.0.field > 0).then_some(self.0.field)
    }

    /// What is wrong, without the place.
    #[must_use]
    pub fn what(&self) -> &str {
        &self.0.what
    }

    /// What to do next.
    #[must_use]
    pub fn next_step(&self) -> &str {
        &self.0.next
    }
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parts { file, line, field, key, what, next } = &*self.0;
        f.write_str(file)?;
        if *line > 0 {
            write!(f, ":{line}")?;
        }
        f.write_str(": ")?;
        if *field > 0 {
            write!(f, "field {field}")?;
            if !key.is_empty() {
                write!(f, " ({key})")?;
            }
            f.write_str(": ")?;
        }
        write!(f, "{what}; {next}")
    }
}

impl std::error::Error for TextError {}

/// A part of a line for a message: short, printable.
pub(super) fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]);
    let end = if bytes.len() > 60 { "..." } else { "" };
    format!("'{}{end}'", text.escape_debug())
}
