//! Errors in a profile, with their location.

use std::fmt;
use std::path::Path;

/// Error in a profile: file, line, field, cause and next step.
#[derive(Debug)]
pub struct TextError(Box<ErrorDetails>);

#[derive(Debug, Default)]
struct ErrorDetails {
    file: String,
    line: u64,
    field: usize,
    key: String,
    what: String,
    next: String,
}

impl TextError {
    /// Creates an error with cause and next step; the location is added later.
    pub(super) fn new(what: impl Into<String>, next: impl Into<String>) -> Self {
        Self(Box::new(ErrorDetails { what: what.into(), next: next.into(), ..ErrorDetails::default() }))
    }

    /// Sets the number of the field, counted from 1, and its name.
    pub(super) fn with_field(mut self, field: usize, key: impl Into<String>) -> Self {
        if self.0.field == 0 {
            self.0.field = field;
            self.0.key = key.into();
        }
        self
    }

    /// Sets file and line; line 0 is the file as a whole.
    pub(super) fn with_location(mut self, file: &Path, line: u64) -> Self {
        self.0.file = file.display().to_string();
        self.0.line = line;
        self
    }

    /// Line, counted from 1 over the whole text; None for the file as a whole.
    #[must_use]
    pub fn line(&self) -> Option<u64> {
        (self.0.line > 0).then_some(self.0.line)
    }

    /// Field of the line, counted from 1; None for the line as a whole.
    #[must_use]
    pub fn field_number(&self) -> Option<usize> {
        (self.0.field > 0).then_some(self.0.field)
    }

    /// Cause without the location.
    #[must_use]
    pub fn cause(&self) -> &str {
        &self.0.what
    }

    /// Next step.
    #[must_use]
    pub fn next_step(&self) -> &str {
        &self.0.next
    }
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ErrorDetails { file, line, field, key, what, next } = &*self.0;
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

/// Excerpt of a line for a message: short and printable.
pub(super) fn quoted(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]);
    let end = if bytes.len() > 60 { "..." } else { "" };
    format!("'{}{end}'", text.escape_debug())
}
