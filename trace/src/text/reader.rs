//! Streaming reader of a profile.

use std::path::Path;

use super::error::TextError;
use super::lines::ProfileLines;
use super::read_call::{CallParser, DictionarySizes};
use super::read_head::{first_line, HeadParser};
use super::section;
use crate::{Call, ProfileHead};

type Result<T> = std::result::Result<T, TextError>;

/// Maximum size of the head.
const HEAD_LIMIT_BYTES: u64 = 256 << 20;

/// Section of a rank while it is read.
#[derive(Clone, Copy)]
struct RankSection {
    rank: u32,
    calls: u64,
    calls_read: u64,
    last_begin_ns: u64,
    last_line: u64,
}

/// Calls of a profile with their ranks. Ends after the first error.
pub struct CallReader {
    lines: ProfileLines,
    parser: CallParser,
    /// Calls of each rank by the head, 0 if not stated.
    declared_calls: Vec<u64>,
    seen_ranks: Vec<bool>,
    wanted_rank: Option<u32>,
    /// Next section, whose first line is read.
    next_section: Option<(u32, u64)>,
    current_section: Option<RankSection>,
    is_finished: bool,
}

/// Opens a profile and reads the head.
///
/// # Errors
/// The first error in it, or the read error.
pub(super) fn open(path: &Path, want: Option<u32>) -> Result<(ProfileHead, CallReader)> {
    let mut lines = ProfileLines::open(path, want)?;
    let first = match lines.next()? {
        Some(line) => first_line(line),
        None => Err(TextError::new("the file is empty", "record again; the disk may have been full")),
    };
    first.map_err(|e| lines.locate(e))?;
    let mut parser = HeadParser::default();
    let next = loop {
        if lines.text_bytes() > HEAD_LIMIT_BYTES {
            let next = "this is not a profile, or it is damaged; record or merge it again";
            return Err(lines
                .locate(TextError::new(format!("more than {} MiB before the calls", HEAD_LIMIT_BYTES >> 20), next)));
        }
        let Some(line) = lines.next()? else { break None };
        if section::is_blank(line) {
            continue;
        }
        let read = if line.trim_ascii_start().starts_with(b"calls") {
            section::parse_calls(line).map(Some)
        } else {
            parser.parse_line(line).map(|()| None)
        };
        let read = read.map_err(|e| prefer_utf8_error(e, line));
        if let Some(next) = read.map_err(|e| lines.locate(e))? {
            break Some(next);
        }
    };
    let head = parser.finish().map_err(|e| lines.locate(e))?;
    if next.is_none() && lines.skipped().sections == 0 {
        return Err(lines.locate(no_calls_error(&head)));
    }
    if let Some(want) = want.filter(|want| *want as usize >= head.processes.len()) {
        let what = format!("there is no rank {want}: the profile has {}", head.processes.len());
        return Err(TextError::new(what, "use as many ranks as were recorded").with_location(path, 0));
    }
    let bounds = DictionarySizes {
        ranks: head.processes.len(),
        comms: head.comms.len(),
        types: head.types.len(),
        infos: head.infos.len(),
        files: head.files.len(),
    };
    let calls = CallReader {
        lines,
        parser: CallParser::new(bounds),
        declared_calls: head.processes.iter().map(|process| process.calls).collect(),
        seen_ranks: vec![false; bounds.ranks],
        wanted_rank: want,
        next_section: next,
        current_section: None,
        is_finished: false,
    };
    Ok((head, calls))
}

fn no_calls_error(head: &ProfileHead) -> TextError {
    TextError::new(
        format!(
            "no 'calls' line: only a head, with {} ranks, {} files, {} types",
            head.processes.len(),
            head.files.len(),
            head.types.len()
        ),
        "it was truncated while it was written or copied; get the complete file, or merge it again",
    )
}

/// A line that is not UTF-8 is reported as such, in preference to other errors.
fn prefer_utf8_error(error: TextError, line: &[u8]) -> TextError {
    match std::str::from_utf8(line) {
        Ok(_) => error,
        Err(e) => TextError::new(
            format!("byte {} of the line is not UTF-8", e.valid_up_to() + 1),
            "save the file in UTF-8, or get it again",
        ),
    }
}

impl CallReader {
    /// Number of calls of the current section by its first line; 0 if there is none.
    #[must_use]
    pub fn section_calls(&self) -> u64 {
        self.current_section.map_or(0, |part| part.calls)
    }

    /// Line of the last call, counted from 1 over the whole text.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.lines.line()
    }

    /// Returns the next call and its rank, None after the last.
    ///
    /// # Errors
    /// The first error in the profile, with its location.
    pub(super) fn advance(&mut self) -> Result<Option<(u32, Call)>> {
        loop {
            if let Some((rank, calls)) = self.next_section.take() {
                if !self.begin_section(rank, calls)? {
                    self.skip_section()?;
                    continue;
                }
            }
            let Some(line) = self.lines.next()? else {
                return self.check_end().map(|()| None);
            };
            let first = match line.first() {
                Some(first) if first.is_ascii_digit() => *first,
                _ => match line.trim_ascii_start().first() {
                    None | Some(b'#') => continue,
                    Some(first) => *first,
                },
            };
            if !first.is_ascii_digit() {
                let next = section::parse_calls(line).map_err(|e| prefer_utf8_error(misplaced_section(e, line), line));
                let next = next.map_err(|e| self.lines.locate(e))?;
                self.check_complete()?;
                self.next_section = Some(next);
                continue;
            }
            let call = self.parser.parse_line(line).map_err(|e| prefer_utf8_error(e, line));
            let call = call.map_err(|e| self.lines.locate(e))?;
            return match &mut self.current_section {
                Some(part) => part.check_call(&call, self.lines.line()).map(|()| Some((part.rank, call))),
                // All sections up to here are of other ranks.
                None => {
                    Err(TextError::new("a call outside of any part", "put calls,RANK,N before the calls of a rank"))
                }
            }
            .map_err(|e| self.lines.locate(e));
        }
    }

    /// Begins a section; false if it is not wanted.
    fn begin_section(&mut self, rank: u32, calls: u64) -> Result<bool> {
        let fail = |what: String, next: &str, field, key| {
            Err(self.lines.locate(TextError::new(what, next).with_field(field, key)))
        };
        let Some(seen) = self.seen_ranks.get(rank as usize).copied() else {
            return fail(
                format!("there is no rank {rank}: the profile has {}", self.seen_ranks.len()),
                "correct the rank, or 'ranks,N'",
                2,
                "rank",
            );
        };
        if seen {
            return fail(
                format!("duplicate calls of rank {rank}"),
                "a rank has one 'calls' line; put its calls together",
                2,
                "rank",
            );
        }
        let said = self.declared_calls[rank as usize];
        if said != 0 && said != calls {
            let what = format!("{calls} calls, but {said} by the line 'process' of rank {rank}");
            return fail(what, "both numbers must be that of the lines that follow", 3, "number of calls");
        }
        self.seen_ranks[rank as usize] = true;
        let wanted = self.wanted_rank.is_none_or(|want| want == rank);
        let last_line = self.lines.line();
        self.current_section =
            wanted.then_some(RankSection { rank, calls, calls_read: 0, last_begin_ns: 0, last_line });
        Ok(wanted)
    }

    fn skip_section(&mut self) -> Result<()> {
        loop {
            self.lines.skip_to_section()?;
            let Some(line) = self.lines.next()? else { return self.check_end().map(|()| self.is_finished = true) };
            if line.trim_ascii_start().starts_with(b"calls") {
                let next = section::parse_calls(line).map_err(|e| prefer_utf8_error(e, line));
                self.next_section = Some(next.map_err(|e| self.lines.locate(e))?);
                return Ok(());
            }
        }
    }

    /// Checks at the end of a section that all its calls were read.
    fn check_complete(&self) -> Result<()> {
        match self.current_section {
            Some(part) if part.calls_read < part.calls => Err(self.lines.locate(TextError::new(
                format!("the calls of rank {} end here: {} of {}", part.rank, part.calls_read, part.calls),
                "lines are missing, or correct the number in the 'calls' line before",
            ))),
            _ => Ok(()),
        }
    }

    fn check_end(&self) -> Result<()> {
        let fail = |what: String| {
            let next = "it was truncated while it was written or copied; get the complete file, or merge it again (to keep a part of it, correct the numbers of calls)";
            Err(self.lines.locate(TextError::new(what, next)))
        };
        let before = self.seen_ranks.iter().filter(|seen| **seen).count();
        if let Some(part) = self.current_section.filter(|part| part.calls_read < part.calls) {
            let whole = before - 1;
            return fail(format!(
                "the file ends with {} of {} calls of rank {}; {whole} ranks before are complete",
                part.calls_read, part.calls, part.rank
            ));
        }
        let missing = |rank: &usize| {
            self.declared_calls[*rank] > 0
                && !self.seen_ranks[*rank]
                && self.wanted_rank.is_none_or(|want| want as usize == *rank)
        };
        match (0..self.seen_ranks.len()).find(missing) {
            Some(rank) => fail(format!(
                "the file ends without the {} calls of rank {rank}; it has those of {before} ranks",
                self.declared_calls[rank]
            )),
            None => Ok(()),
        }
    }
}

fn misplaced_section(error: TextError, line: &[u8]) -> TextError {
    let word = line.trim_ascii_start().split(|&b| b == b',').next().unwrap_or_default().trim_ascii();
    match section::SECTIONS.iter().find(|name| name.as_bytes() == word) {
        Some(name) if *name != "calls" => {
            TextError::new(format!("'{name}' comes after calls"), "move the line up, before the first 'calls'")
                .with_field(1, "section")
        }
        _ => error,
    }
}

impl RankSection {
    fn check_call(&mut self, call: &Call, line: u64) -> Result<()> {
        if self.calls_read == self.calls {
            let what = format!("more calls of rank {} than the stated {}", self.rank, self.calls);
            return Err(TextError::new(what, "correct the number in the 'calls' line before"));
        }
        if self.calls_read > 0 && call.begin_ns <= self.last_begin_ns {
            let what =
                format!("it does not begin after the call of line {} ({} ns)", self.last_line, self.last_begin_ns);
            return Err(TextError::new(
                what,
                "sort the calls of a rank by their begin; no two may begin at the same ns",
            )
            .with_field(1, "begin"));
        }
        self.calls_read += 1;
        self.last_begin_ns = call.begin_ns;
        self.last_line = line;
        Ok(())
    }
}

impl Iterator for CallReader {
    type Item = Result<(u32, Call)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_finished {
            return None;
        }
        let next = self.advance().transpose();
        self.is_finished |= !matches!(next, Some(Ok(_)));
        next
    }
}
