//! The line that begins the calls of a rank.

use super::error::{quoted, TextError};
use super::fields::{unsigned, unsigned32, LineFields};

/// Begin of the first line of a profile.
pub(super) const FORMAT_NAME: &str = "beff-raw profile";
pub(super) const FIRST_LINE: &str = "beff-raw profile,1";
pub(super) const SECTIONS: [&str; 11] =
    ["library", "command", "started", "cost", "ranks", "process", "comm", "type", "info", "file", "calls"];

/// Parses rank and number of calls of `calls,RANK,N`.
pub(super) fn parse_calls(line: &[u8]) -> Result<(u32, u64), TextError> {
    const NEXT: &str = "write calls,RANK,N and then N lines, one for each call";
    let mut fields = LineFields::new(line);
    let word = fields.required("section", NEXT)?;
    if *word.bytes()? != *b"calls" {
        return Err(unknown_section(&word.bytes()?));
    }
    let field = fields.required("rank", NEXT)?;
    let rank = unsigned32(&field.bytes()?).map_err(|e| e.with_field(field.number, "rank"))?;
    let field = fields.required("number of calls", NEXT)?;
    let calls = unsigned(&field.bytes()?).map_err(|e| e.with_field(field.number, "number of calls"))?;
    match fields.next() {
        None => Ok((rank, calls)),
        Some(field) => Err(TextError::new("too many fields", NEXT).with_field(field?.number, "")),
    }
}

/// Error for a word at the begin of a line that is no section.
pub(super) fn unknown_section(word: &[u8]) -> TextError {
    TextError::new(
        format!("{} is not a section", quoted(word)),
        format!("lines begin with {} or, after 'calls', with a time in ns; comments with #", SECTIONS.join(", ")),
    )
    .with_field(1, "section")
}

/// True for blank lines and comments.
pub(super) fn is_blank(line: &[u8]) -> bool {
    matches!(line.trim_ascii_start().first(), None | Some(b'#'))
}
