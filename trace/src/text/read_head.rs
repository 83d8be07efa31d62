//! Parses the head.

use super::error::{quoted, TextError};
use super::fields::{index, list, signed, text, unsigned, unsigned32, LineField, LineFields};
use super::read_type::{nesting_depth, read_type, stored_numbers};
use super::section::{self, FIRST_LINE, FORMAT_NAME};
use crate::{OpenedFile, Process, ProfileHead, RecordingStatus};

type Result<T> = std::result::Result<T, TextError>;

/// Maximum number of ranks of a profile.
pub(super) const RANKS_LIMIT: usize = 1 << 20;
/// Maximum number of entries of a dictionary.
const ENTRIES_LIMIT: usize = 1 << 20;
/// A hint takes as much memory as this many numbers.
const HINT_WEIGHT: usize = 16;
/// Maximum number of numbers in all communicators and types together: 256 MiB.
const NUMBERS_LIMIT: usize = 1 << 25;
/// Maximum nesting depth of types, because traversals may be recursive.
const DEPTH_LIMIT: u16 = 128;

#[derive(Default)]
pub(super) struct HeadParser {
    head: ProfileHead,
    ranks: Option<usize>,
    numbers: usize,
    depths: Vec<u16>,
    seen_sections: [bool; 4],
}

pub(super) fn first_line(line: &[u8]) -> Result<()> {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line).trim_ascii_end();
    if line == FIRST_LINE.as_bytes() {
        return Ok(());
    }
    let foreign = || {
        TextError::new(
            format!("this is not a profile: it begins with {}", quoted(line)),
            format!("a profile begins with the line {FIRST_LINE}"),
        )
    };
    let Some(version) = line.strip_prefix(FORMAT_NAME.as_bytes()).and_then(|rest| rest.strip_prefix(b",")) else {
        return Err(foreign());
    };
    match unsigned(version) {
        Ok(version) if version > 1 => Err(TextError::new(
            format!("version {version} was written by a newer release; this one reads version 1"),
            "use the release that wrote it, or a newer one",
        )
        .with_field(2, "version")),
        _ => Err(foreign()),
    }
}

impl HeadParser {
    pub(super) fn parse_line(&mut self, line: &[u8]) -> Result<()> {
        let mut fields = LineFields::new(line);
        let word = fields.required("section", "")?.bytes()?;
        match &*word {
            b"library" => self.once(0, &mut fields, |head, fields| {
                head.library = fields.required("library", "write the name of the MPI library")?.text()?;
                Ok(())
            })?,
            b"command" => self.once(1, &mut fields, |head, fields| {
                while let Some(field) = fields.next() {
                    head.command.push(field?.text()?);
                }
                Ok(())
            })?,
            b"started" => self.once(2, &mut fields, |head, fields| {
                head.started_unix_ns = parse_number(fields, "time", unsigned)?;
                Ok(())
            })?,
            b"cost" => self.once(3, &mut fields, |head, fields| {
                head.cost_ns = Some(parse_number(fields, "cost", parse_cost)?);
                Ok(())
            })?,
            b"ranks" => self.ranks(&mut fields)?,
            b"process" => self.process(&mut fields)?,
            b"comm" => self.comm(&mut fields)?,
            b"type" => self.datatype(&mut fields)?,
            b"info" => self.info(&mut fields)?,
            b"file" => self.file(&mut fields)?,
            other if other.first().is_some_and(u8::is_ascii_digit) => {
                return Err(TextError::new(
                    "a call before any 'calls' line",
                    "put calls,RANK,N before the calls of a rank",
                )
                .with_field(1, "section"));
            }
            other => return Err(section::unknown_section(other)),
        }
        match fields.next() {
            None => Ok(()),
            Some(field) => Err(TextError::new("too many fields", "see docs/profile.md for the fields of each section")
                .with_field(field?.number, "")),
        }
    }

    /// Returns the head after its last line.
    pub(super) fn finish(mut self) -> Result<ProfileHead> {
        if let Some(ranks) = self.ranks {
            self.head.processes.resize_with(ranks, unknown_process);
        }
        if self.head.processes.is_empty() {
            return Err(TextError::new("the number of ranks is missing", "add a line ranks,N before the calls"));
        }
        Ok(self.head)
    }

    fn once(
        &mut self,
        which: usize,
        fields: &mut LineFields<'_>,
        read: impl FnOnce(&mut ProfileHead, &mut LineFields<'_>) -> Result<()>,
    ) -> Result<()> {
        if std::mem::replace(&mut self.seen_sections[which], true) {
            return Err(TextError::new("duplicate line", "remove one of them").with_field(1, "section"));
        }
        read(&mut self.head, fields)
    }

    fn ranks(&mut self, fields: &mut LineFields<'_>) -> Result<()> {
        let ranks = parse_number(fields, "number of ranks", unsigned)?;
        if self.ranks.is_some() || !self.head.processes.is_empty() {
            return Err(TextError::new(
                "'ranks' comes after another 'ranks' or 'process' line",
                "put it once before them",
            )
            .with_field(1, "section"));
        }
        self.ranks = Some(usize::try_from(ranks).ok().filter(|n| (1..=RANKS_LIMIT).contains(n)).ok_or_else(|| {
            TextError::new(format!("{ranks} ranks"), format!("a profile has 1 to {RANKS_LIMIT} ranks"))
                .with_field(2, "number of ranks")
        })?);
        Ok(())
    }

    fn process(&mut self, fields: &mut LineFields<'_>) -> Result<()> {
        let limit = self.ranks.unwrap_or(RANKS_LIMIT);
        check_consecutive(fields, self.head.processes.len(), "process", "rank")?;
        if self.head.processes.len() >= limit {
            return Err(TextError::new(format!("more processes than ranks: {limit}"), "correct the line 'ranks'")
                .with_field(2, "rank"));
        }
        let mut process = unknown_process();
        process.host = fields.required("host", "write process,RANK,HOST")?.text()?;
        while let Some(field) = fields.next() {
            process_field(&mut process, &field?)?;
        }
        self.head.processes.push(process);
        Ok(())
    }

    fn rank_count(&self) -> usize {
        self.ranks.unwrap_or(self.head.processes.len())
    }

    fn comm(&mut self, fields: &mut LineFields<'_>) -> Result<()> {
        check_consecutive(fields, self.head.comms.len(), "comm", "number")?;
        let size = self.rank_count();
        let field = fields.required("ranks", "write world ranks separated by ';', ranges as 0-3, or 'world'")?;
        let value = field.bytes()?;
        if size == 0 {
            return Err(TextError::new(
                "the number of ranks is not known here",
                "put the line ranks,N or the process lines before",
            )
            .with_field(1, "section"));
        }
        let ranks = parse_ranks(&value, size, NUMBERS_LIMIT.saturating_sub(self.numbers))
            .map_err(|e| e.with_field(field.number, "ranks"))?;
        let mut sorted = ranks.clone();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(TextError::new(format!("duplicate rank {}", pair[0]), "list every rank once")
                .with_field(field.number, "ranks"));
        }
        self.numbers += ranks.len();
        self.head.comms.push(ranks);
        Ok(())
    }

    fn datatype(&mut self, fields: &mut LineFields<'_>) -> Result<()> {
        let known = self.head.types.len();
        check_consecutive(fields, known, "type", "number")?;
        let datatype = read_type(fields, known)?;
        self.numbers += stored_numbers(&datatype);
        if self.numbers > NUMBERS_LIMIT {
            return Err(too_many_numbers());
        }
        let depth = nesting_depth(&datatype, &self.depths);
        if depth > DEPTH_LIMIT {
            return Err(TextError::new(
                format!("nested deeper than {DEPTH_LIMIT} types"),
                "describe the same data with fewer constructors",
            ));
        }
        self.depths.push(depth);
        self.head.types.push(datatype);
        Ok(())
    }

    fn info(&mut self, fields: &mut LineFields<'_>) -> Result<()> {
        check_consecutive(fields, self.head.infos.len(), "info", "number")?;
        let mut hints: Vec<(String, String)> = Vec::new();
        while let Some(field) = fields.next() {
            let field = field?;
            let (key, value) = field.required_pair()?;
            let read = |bytes| text(bytes).map_err(|e: TextError| e.with_field(field.number, "hint"));
            hints.push((read(key)?, read(value)?));
            self.numbers += HINT_WEIGHT;
            if self.numbers > NUMBERS_LIMIT {
                return Err(too_many_numbers());
            }
        }
        self.head.infos.push(hints);
        Ok(())
    }

    fn file(&mut self, fields: &mut LineFields<'_>) -> Result<()> {
        check_consecutive(fields, self.head.files.len(), "file", "number")?;
        let path = fields.required("path", "write file,NUMBER,PATH,SIZE")?.text()?;
        let mut file =
            OpenedFile { path, size_bytes: None, fs_type: String::new(), created_ns: None, removed_ns: None };
        while let Some(field) = fields.next() {
            let field = field?;
            match (field.pair()?, field.number) {
                (Some((key, value)), _) if *key == *b"fs" => {
                    file.fs_type = text(value).map_err(|e| e.with_field(field.number, "fs"))?
                }
                (Some((key, value)), _) if *key == *b"made" => {
                    file.created_ns = Some(unsigned(&value).map_err(|e| e.with_field(field.number, "made"))?)
                }
                (Some((key, value)), _) if *key == *b"gone" => {
                    file.removed_ns = Some(unsigned(&value).map_err(|e| e.with_field(field.number, "gone"))?)
                }
                (None, 4) if *field.bytes()? == *b"-" => {}
                (None, 4) => {
                    file.size_bytes = Some(
                        unsigned(&field.bytes()?)
                            .map_err(|e| e.with_field(4, "size in bytes, or - if it did not exist"))?,
                    )
                }
                _ => {
                    return Err(TextError::new(
                        "this is not a field of a file",
                        "write file,NUMBER,PATH,SIZE, optionally with fs=TYPE, made=TIME, gone=TIME",
                    )
                    .with_field(field.number, ""))
                }
            }
        }
        self.head.files.push(file);
        Ok(())
    }
}

fn unknown_process() -> Process {
    Process {
        host: String::new(),
        pid: 0,
        clock_offset_ns: [0, 0],
        end: RecordingStatus::Complete,
        calls: 0,
        storage_bytes: None,
    }
}

fn process_field(process: &mut Process, field: &LineField<'_>) -> Result<()> {
    let at = |name: &'static str| move |e: TextError| e.with_field(field.number, name);
    let Some((key, value)) = field.pair()? else {
        if field.number == 4 {
            process.pid = unsigned32(&field.bytes()?).map_err(at("pid"))?;
            return Ok(());
        }
        return Err(TextError::new("this is not a field of a process", "write process,RANK,HOST,PID,key=value,...")
            .with_field(field.number, ""));
    };
    match &*key {
        b"clock" => process.clock_offset_ns = parse_pair(&value, signed).map_err(at("clock"))?,
        b"calls" => process.calls = unsigned(&value).map_err(at("calls"))?,
        b"storage" => process.storage_bytes = Some(parse_pair(&value, unsigned).map_err(at("storage"))?),
        b"end" => {
            let end = std::str::from_utf8(&value).ok().and_then(RecordingStatus::from_name);
            process.end = end.ok_or_else(|| {
                TextError::new(format!("{} is not a valid end", quoted(&value)), "write complete, aborted, cut or full")
                    .with_field(field.number, "end")
            })?;
        }
        other => {
            return Err(TextError::new(
                format!("a process has no key {}", quoted(other)),
                "it has clock, end, calls, storage",
            )
            .with_field(field.number, ""))
        }
    }
    Ok(())
}

/// Two numbers separated by `;`.
fn parse_pair<T>(value: &[u8], read: impl Fn(&[u8]) -> Result<T>) -> Result<[T; 2]> {
    let numbers = list(value).map(read).collect::<Result<Vec<T>>>()?;
    <[T; 2]>::try_from(numbers).map_err(|_| TextError::new("not two numbers", "write two numbers separated by ';'"))
}

fn parse_number<T>(fields: &mut LineFields<'_>, name: &str, read: impl Fn(&[u8]) -> Result<T>) -> Result<T> {
    let field = fields.required(name, "write a number")?;
    read(&field.bytes()?).map_err(|e| e.with_field(field.number, name))
}

fn parse_cost(bytes: &[u8]) -> Result<f64> {
    let value = std::str::from_utf8(bytes)
        .ok()
        .and_then(|text| text.parse::<f64>().ok())
        .filter(|v| v.is_finite() && *v >= 0.0);
    value
        .ok_or_else(|| TextError::new(format!("{} is not a cost", quoted(bytes)), "write ns per call, as in cost,23.5"))
}

/// Checks that the number of a line is the next one.
fn check_consecutive(fields: &mut LineFields<'_>, expected: usize, section: &str, name: &str) -> Result<()> {
    let found = parse_number(fields, name, unsigned32)?;
    if expected >= ENTRIES_LIMIT {
        return Err(TextError::new(
            format!("more than {ENTRIES_LIMIT} lines '{section}'"),
            "a profile has no more; write fewer",
        ));
    }
    if found as usize == expected {
        return Ok(());
    }
    let next = format!("number the '{section}' lines from 0 without gaps");
    Err(TextError::new(format!("{section} {found} where {expected} is the next"), next).with_field(2, name))
}

fn too_many_numbers() -> TextError {
    TextError::new(
        "communicators, types and hints have too many numbers",
        format!("all together may have {NUMBERS_LIMIT}"),
    )
}

fn parse_ranks(value: &[u8], size: usize, capacity: usize) -> Result<Vec<u32>> {
    if value == b"world" {
        return if size <= capacity { Ok((0..).take(size).collect()) } else { Err(too_many_numbers()) };
    }
    let rank = |part: &[u8]| {
        index(part, size, "rank").map_err(|_| {
            TextError::new(
                format!("{} is not a rank: the profile has {size}", quoted(part)),
                "write ranks separated by ';', ranges as 0-3",
            )
        })
    };
    let mut ranks = Vec::new();
    for part in list(value) {
        let dash = part.iter().position(|&b| b == b'-');
        let (first, last) = match dash {
            Some(at) => (rank(part[..at].trim_ascii())?, rank(part[at + 1..].trim_ascii())?),
            None => (rank(part)?, rank(part)?),
        };
        if last < first {
            return Err(TextError::new(
                format!("{} is descending", quoted(part)),
                "write a range from the lower to the higher rank",
            ));
        }
        // A range is at most as long as the world, and a rank may occur only once.
        if ranks.len() + (last - first) as usize >= capacity.min(size) {
            return Err(if capacity < size {
                too_many_numbers()
            } else {
                TextError::new("more ranks than there are", "list every rank once")
            });
        }
        ranks.extend(first..=last);
    }
    Ok(ranks)
}
