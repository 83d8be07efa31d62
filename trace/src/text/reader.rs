//! A profile from text, streamed.

use std::path::Path;

use super::error::TextError;
use super::read_call::{Bounds, CallParser};
use super::read_head::{first_line, HeadParser};
use super::section;
use super::source::Lines;
use crate::{Call, Head};

type Result<T> = std::result::Result<T, TextError>;

/// Most text before the calls.
const HEAD_LIMIT_BYTES: u64 = 256 << 20;

/// A rank's part while it is read.
#[derive(Clone, Copy)]
struct Part {
    rank: u32,
    calls: u64,
    done: u64,
    last_begin_ns: u64,
    last_line: u64,
}

/// Calls of a profile, one behind the other, with the rank of each. Ends behind the first error.
pub struct Calls {
    lines: Lines,
    parser: CallParser,
    /// Calls of each rank by the head, 0 if it does not say.
    said: Vec<u64>,
    seen: Vec<bool>,
    want: Option<u32>,
    /// The part whose first line is read, but not begun.
    next: Option<(u32, u64)>,
    part: Option<Part>,
    over: bool,
}

/// Opens a profile, reads what stands before the calls.
///
/// # Errors
/// What is wrong in it, or that it cannot be read.
pub(super) fn open(path: &Path, want: Option<u32>) -> Result<(Head, Calls)> {
    let mut lines = Lines::open(path, want)?;
    let first = match lines.next()? {
        Some(line) => first_line(line),
        None => Err(TextError::new("the file is empty", "record again; the disk may have been full")),
    };
    first.map_err(|e| lines.locate(e))?;
    let mut parser = HeadParser::default();
    let next = loop {
        if lines.text_bytes() > HEAD_LIMIT_BYTES {
            let next = "this is no profile, or it is damaged; record or merge it again";
            return Err(lines
                .locate(TextError::new(format!("more than {} MiB before the calls", HEAD_LIMIT_BYTES >> 20), next)));
        }
        let Some(line) = lines.next()? else { break None };
        if section::is_blank(line) {
            continue;
        }
        let read = if line.trim_ascii_start().starts_with(b"calls") {
            section::calls(line).map(Some)
        } else {
            parser.line(line).map(|()| None)
        };
        let read = read.map_err(|e| explain(e, line));
        if let Some(next) = read.map_err(|e| lines.locate(e))? {
            break Some(next);
        }
    };
    let head = parser.finish().map_err(|e| lines.locate(e))?;
    if next.is_none() && lines.passed().parts == 0 {
        return Err(lines.locate(no_calls(&head)));
    }
    if let Some(want) = want.filter(|want| *want as usize >= head.processes.len()) {
        let what = format!("there is no rank {want}: the profile has {}", head.processes.len());
        return Err(TextError::new(what, "use as many ranks as were recorded").at(path, 0));
    }
    let bounds = Bounds {
        ranks: head.processes.len(),
        comms: head.comms.len(),
        types: head.types.len(),
        infos: head.infos.len(),
        files: head.files.len(),
    };
    let calls = Calls {
        lines,
        parser: CallParser::new(bounds),
        said: head.processes.iter().map(|process| process.calls).collect(),
        seen: vec![false; bounds.ranks],
        want,
        next,
        part: None,
        over: false,
    };
    Ok((head, calls))
}

fn no_calls(head: &Head) -> TextError {
    TextError::new(
        format!(
            "no 'calls' line: only a head, with {} ranks, {} files, {} types",
            head.processes.len(),
            head.files.len(),
            head.types.len()
        ),
        "it was cut while it was written or copied; get the whole file, or merge it again",
    )
}

/// A line that is not UTF-8 is called so, whatever else is wrong.
fn explain(error: TextError, line: &[u8]) -> TextError {
    match std::str::from_utf8(line) {
        Ok(_) => error,
        Err(e) => TextError::new(
            format!("byte {} of the line is not UTF-8", e.valid_up_to() + 1),
            "save the file in UTF-8, or get it again",
        ),
    }
}

impl Calls {
    /// Calls of the part that is read, by its first line; 0 if none is.
    #[must_use]
    pub fn calls_of_part(&self) -> u64 {
        self.part.map_or(0, |part| part.calls)
    }

    /// Line of the last call, counted from 1 over the whole text.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.lines.line()
    }

    /// The next call and its rank, None behind the last.
    ///
    /// # Errors
    /// What is wrong in the profile, with the place.
    pub(super) fn advance(&mut self) -> Result<Option<(u32, Call)>> {
        loop {
            if let Some((rank, calls)) = self.next.take() {
                if !self.begin(rank, calls)? {
                    self.pass()?;
                    continue;
                }
            }
            let Some(line) = self.lines.next()? else {
                return self.end().map(|()| None);
            };
            let first = match line.first() {
                Some(first) if first.is_ascii_digit() => *first,
                _ => match line.trim_ascii_start().first() {
                    None | Some(b'#') => continue,
                    Some(first) => *first,
                },
            };
            if !first.is_ascii_digit() {
                let next = section::calls(line).map_err(|e| explain(misplaced(e, line), line));
                let next = next.map_err(|e| self.lines.locate(e))?;
                self.whole()?;
                self.next = Some(next);
                continue;
            }
            let call = self.parser.call(line).map_err(|e| explain(e, line));
            let call = call.map_err(|e| self.lines.locate(e))?;
            return match &mut self.part {
                Some(part) => part.check(&call, self.lines.line()).map(|()| Some((part.rank, call))),
                // All parts up to here are of other ranks.
                None => {
                    Err(TextError::new("a call outside of any part", "put calls,RANK,N before the calls of a rank"))
                }
            }
            .map_err(|e| self.lines.locate(e));
        }
    }

    /// Begins a part; false if it is not wanted.
    fn begin(&mut self, rank: u32, calls: u64) -> Result<bool> {
        let fail =
            |what: String, next: &str, field, key| Err(self.lines.locate(TextError::new(what, next).field(field, key)));
        let Some(seen) = self.seen.get(rank as usize).copied() else {
            return fail(
                format!("there is no rank {rank}: the profile has {}", self.seen.len()),
                "correct the rank, or 'ranks,N'",
                2,
                "rank",
            );
        };
        if seen {
            return fail(
                format!("the calls of rank {rank} are there a second time"),
                "a rank has one 'calls' line; put its calls together",
                2,
                "rank",
            );
        }
        let said = self.said[rank as usize];
        if said != 0 && said != calls {
            let what = format!("{calls} calls, but {said} by the line 'process' of rank {rank}");
            return fail(what, "make both numbers that of the lines that follow", 3, "number of calls");
        }
        self.seen[rank as usize] = true;
        let wanted = self.want.is_none_or(|want| want == rank);
        let last_line = self.lines.line();
        self.part = wanted.then_some(Part { rank, calls, done: 0, last_begin_ns: 0, last_line });
        Ok(wanted)
    }

    /// Passes over the calls of a rank that is not wanted.
    fn pass(&mut self) -> Result<()> {
        loop {
            self.lines.skim()?;
            let Some(line) = self.lines.next()? else { return self.end().map(|()| self.over = true) };
            if line.trim_ascii_start().starts_with(b"calls") {
                let next = section::calls(line).map_err(|e| explain(e, line));
                self.next = Some(next.map_err(|e| self.lines.locate(e))?);
                return Ok(());
            }
        }
    }

    /// The part that ends here has all its calls.
    fn whole(&self) -> Result<()> {
        match self.part {
            Some(part) if part.done < part.calls => Err(self.lines.locate(TextError::new(
                format!("the calls of rank {} end here: {} of {}", part.rank, part.done, part.calls),
                "lines are missing, or correct the number in the 'calls' line before",
            ))),
            _ => Ok(()),
        }
    }

    /// The text ends here.
    fn end(&self) -> Result<()> {
        let fail = |what: String| {
            let next = "it was cut while it was written or copied; get the whole file, or merge it again (a part of it can be kept: correct the numbers of calls)";
            Err(self.lines.locate(TextError::new(what, next)))
        };
        let before = self.seen.iter().filter(|seen| **seen).count();
        if let Some(part) = self.part.filter(|part| part.done < part.calls) {
            let whole = before - 1;
            return fail(format!(
                "the file ends with {} of {} calls of rank {}; {whole} ranks before are whole",
                part.done, part.calls, part.rank
            ));
        }
        let missing = |rank: &usize| {
            self.said[*rank] > 0 && !self.seen[*rank] && self.want.is_none_or(|want| want as usize == *rank)
        };
        match (0..self.seen.len()).find(missing) {
            Some(rank) => fail(format!(
                "the file ends without the {} calls of rank {rank}; {before} ranks are there",
                self.said[rank]
            )),
            None => Ok(()),
        }
    }
}

/// A section of the head behind the first calls.
fn misplaced(error: TextError, line: &[u8]) -> TextError {
    let word = line.trim_ascii_start().split(|&b| b == b',').next().unwrap_or_default().trim_ascii();
    match section::HEAD.iter().find(|name| name.as_bytes() == word) {
        Some(name) if *name != "calls" => {
            TextError::new(format!("'{name}' stands behind calls"), "move the line up, before the first 'calls'")
                .field(1, "section")
        }
        _ => error,
    }
}

impl Part {
    fn check(&mut self, call: &Call, line: u64) -> Result<()> {
        if self.done == self.calls {
            let what = format!("more calls of rank {} than the {} that were said", self.rank, self.calls);
            return Err(TextError::new(what, "correct the number in the 'calls' line before"));
        }
        if self.done > 0 && call.begin_ns <= self.last_begin_ns {
            let what =
                format!("it does not begin after the call of line {} ({} ns)", self.last_line, self.last_begin_ns);
            return Err(TextError::new(
                what,
                "sort the calls of a rank by their begin; no two may begin at the same ns",
            )
            .field(1, "begin"));
        }
        self.done += 1;
        self.last_begin_ns = call.begin_ns;
        self.last_line = line;
        Ok(())
    }
}

impl Iterator for Calls {
    type Item = Result<(u32, Call)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let next = self.advance().transpose();
        self.over |= !matches!(next, Some(Ok(_)));
        next
    }
}
