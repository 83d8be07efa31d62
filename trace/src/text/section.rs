//! The line that begins the calls of a rank.

use super::error::{shown, TextError};
use super::fields::{small, unsigned, Fields};

/// What a profile begins with.
pub(super) const NAME: &str = "beff-raw profile";
/// The first line of this version.
pub(super) const FIRST_LINE: &str = "beff-raw profile,1";
/// Sections that stand before the calls.
pub(super) const HEAD: [&str; 11] =
    ["library", "command", "started", "cost", "ranks", "process", "comm", "type", "info", "file", "calls"];

/// Rank and number of calls of `calls,RANK,N`.
pub(super) fn calls(line: &[u8]) -> Result<(u32, u64), TextError> {
    const NEXT: &str = "write calls,RANK,N and then N lines, one for each call";
    let mut fields = Fields::of(line);
    let word = fields.need("section", NEXT)?;
    if *word.bytes()? != *b"calls" {
        return Err(unknown(&word.bytes()?));
    }
    let field = fields.need("rank", NEXT)?;
    let rank = small(&field.bytes()?).map_err(|e| e.field(field.number, "rank"))?;
    let field = fields.need("number of calls", NEXT)?;
    let calls = unsigned(&field.bytes()?).map_err(|e| e.field(field.number, "number of calls"))?;
    match fields.next() {
        None => Ok((rank, calls)),
        Some(field) => Err(TextError::new("too many fields", NEXT).field(field?.number, "")),
    }
}

/// A word at the begin of a line that is no section.
pub(super) fn unknown(word: &[u8]) -> TextError {
    TextError::new(
        format!("{} is no section", shown(word)),
        format!("lines begin with {} or, behind 'calls', with a time in ns; comments with #", HEAD.join(", ")),
    )
    .field(1, "section")
}

/// True for lines that say nothing.
pub(super) fn is_blank(line: &[u8]) -> bool {
    matches!(line.trim_ascii_start().first(), None | Some(b'#'))
}
