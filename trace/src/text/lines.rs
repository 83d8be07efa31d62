//! Lines of a profile, compressed or not, with bounded memory. Sections of other ranks are skipped where the frames of a compressed profile
//! allow it.
//!
//! Before each compressed section the writer inserts a skippable frame (magic 0x184D2A5B) with the first line of the section:
//! `calls,RANK,N`. The section has N + 1 lines. A profile compressed by other means has no such frames and is read completely.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::{Path, PathBuf};

use super::error::TextError;
use super::section;

/// Magic of the frame before a section.
pub(super) const SECTION_MAGIC: u32 = 0x184D_2A5B;
pub(super) const MAX_LINE_BYTES: usize = 16 << 20;
const ZSTD_MAGIC: u32 = 0xFD2F_B528;
const BUFFER_BYTES: usize = 256 << 10;
/// Maximum window of the decompression, as a power of two.
const WINDOW_LOG: u32 = 27;

enum ZstdFrames {
    BetweenFrames(BufReader<File>),
    InFrame(zstd::Decoder<'static, BufReader<File>>),
    Finished,
}

enum ProfileInput {
    Plain(File),
    Zstd { frames: ZstdFrames, want: Option<u32> },
}

/// Sections of other ranks that were not decompressed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SkippedSections {
    pub lines: u64,
    pub sections: u64,
}

pub(super) struct ProfileLines {
    path: PathBuf,
    source: ProfileInput,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    line: u64,
    at_end: bool,
    skipped: SkippedSections,
    read_bytes: u64,
}

impl ProfileLines {
    /// Opens a profile. With a rank, the sections of others may be omitted.
    pub(super) fn open(path: &Path, want: Option<u32>) -> Result<Self, TextError> {
        let fail = |e: io::Error| {
            TextError::new(format!("cannot be read: {e}"), "check the name and the permissions").with_location(path, 0)
        };
        let mut file = File::open(path).map_err(fail)?;
        let mut magic = [0; 4];
        let mut have = 0;
        while have < 4 {
            match file.read(&mut magic[have..]).map_err(fail)? {
                0 => break,
                n => have += n,
            }
        }
        let number = u32::from_le_bytes(magic);
        let compressed = have == 4 && (number == ZSTD_MAGIC || number & !0xF == SECTION_MAGIC & !0xF);
        file.rewind().map_err(|e| {
            TextError::new(format!("cannot be rewound: {e}"), "write it to a file; pipes cannot be read by all ranks")
                .with_location(path, 0)
        })?;
        let source = if compressed {
            let frames = ZstdFrames::BetweenFrames(BufReader::with_capacity(BUFFER_BYTES, file));
            ProfileInput::Zstd { frames, want }
        } else {
            ProfileInput::Plain(file)
        };
        let buffer = vec![0; BUFFER_BYTES];
        Ok(Self {
            path: path.into(),
            source,
            buffer,
            start: 0,
            end: 0,
            line: 0,
            at_end: false,
            skipped: SkippedSections::default(),
            read_bytes: 0,
        })
    }

    pub(super) fn line(&self) -> u64 {
        self.line
    }

    pub(super) fn skipped(&self) -> SkippedSections {
        self.skipped
    }

    /// Text bytes up to the last line.
    pub(super) fn text_bytes(&self) -> u64 {
        self.read_bytes - (self.end - self.start) as u64
    }

    /// Adds the file and the current line to an error.
    pub(super) fn locate(&self, error: TextError) -> TextError {
        error.with_location(&self.path, self.line)
    }

    /// Returns the next line without its end, None after the last.
    ///
    /// # Errors
    /// A read error; a line that is too long; a last line without end.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, TextError> {
        let mut seen = self.start;
        loop {
            if let Some(n) = memchr::memchr(b'\n', &self.buffer[seen..self.end]) {
                let (from, to) = (self.start, seen + n);
                self.start = to + 1;
                self.line += 1;
                let line = &self.buffer[from..to];
                return Ok(Some(line.strip_suffix(b"\r").unwrap_or(line)));
            }
            if self.at_end && self.start == self.end {
                return Ok(None);
            }
            if self.at_end {
                self.line += 1;
                let next = "it was truncated while it was written or copied; get the complete file, or, if the line is complete, end it with a line break";
                return Err(self.locate(TextError::new("the last line has no end", next)));
            }
            seen = self.end - self.start;
            self.fill()?;
        }
    }

    /// Skips lines until one begins with `c`, which is read next.
    pub(super) fn skip_to_section(&mut self) -> Result<(), TextError> {
        loop {
            let mut at = self.start;
            for n in memchr::memchr_iter(b'\n', &self.buffer[self.start..self.end]) {
                if self.buffer[at..].trim_ascii_start().first() == Some(&b'c') {
                    break;
                }
                at = self.start + n + 1;
                self.line += 1;
            }
            let stopped = memchr::memchr(b'\n', &self.buffer[at..self.end]).is_some();
            self.start = at;
            if stopped || self.at_end {
                return Ok(());
            }
            self.fill()?;
        }
    }

    /// Moves the remaining bytes to the begin of the buffer and reads more.
    fn fill(&mut self) -> Result<(), TextError> {
        let before = self.skipped.lines;
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end == self.buffer.len() {
            if self.end >= MAX_LINE_BYTES {
                self.line += 1;
                return Err(self.locate(TextError::new(
                    format!("longer than {} MiB", MAX_LINE_BYTES >> 20),
                    "this is not a profile, or it is damaged; record or merge it again",
                )));
            }
            self.buffer.resize((self.end * 2).min(MAX_LINE_BYTES), 0);
        }
        let spare = &mut self.buffer[self.end..];
        let got = match &mut self.source {
            ProfileInput::Plain(file) => read(file, spare),
            ProfileInput::Zstd { frames, want } => frames.read(spare, *want, &mut self.skipped),
        };
        let got = got.map_err(|e| {
            let next = match e.kind() {
                io::ErrorKind::UnexpectedEof => {
                    "the file was truncated while it was written or copied; get the complete file, or merge it again"
                }
                _ => "check the file and its disk, or merge it again",
            };
            TextError::new(format!("read error: {e}"), next).with_location(&self.path, self.line + 1)
        })?;
        // The buffer has no complete line, so the skipped lines lie between the last line and the next.
        self.line = self.line.saturating_add(self.skipped.lines - before);
        self.at_end = got == 0;
        self.end += got;
        self.read_bytes += got as u64;
        Ok(())
    }
}

fn read(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match from.read(buffer) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

fn invalid_data(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

impl ZstdFrames {
    /// Reads text of the frames, 0 bytes at the end.
    fn read(&mut self, buffer: &mut [u8], want: Option<u32>, passed: &mut SkippedSections) -> io::Result<usize> {
        loop {
            match std::mem::replace(self, Self::Finished) {
                Self::Finished => return Ok(0),
                Self::InFrame(mut decoder) => {
                    let got = read(&mut decoder, buffer)?;
                    if got > 0 {
                        *self = Self::InFrame(decoder);
                        return Ok(got);
                    }
                    *self = Self::BetweenFrames(decoder.finish());
                }
                Self::BetweenFrames(file) => *self = enter_frame(file, want, passed)?,
            }
        }
    }
}

fn enter_frame(mut file: BufReader<File>, want: Option<u32>, passed: &mut SkippedSections) -> io::Result<ZstdFrames> {
    let mut mark = None;
    loop {
        let mut magic = [0; 4];
        match read(&mut file, &mut magic)? {
            0 => return Ok(ZstdFrames::Finished),
            n => file.read_exact(&mut magic[n..])?,
        }
        match u32::from_le_bytes(magic) {
            ZSTD_MAGIC => {
                if let (Some((rank, calls)), Some(want)) = (mark.take(), want) {
                    if rank != want {
                        skip_frame(&mut file)?;
                        passed.lines = passed.lines.saturating_add(calls + 1);
                        passed.sections += 1;
                        continue;
                    }
                }
                file.seek_relative(-4)?;
                let mut decoder = zstd::Decoder::with_buffer(file)?.single_frame();
                decoder.window_log_max(WINDOW_LOG)?;
                return Ok(ZstdFrames::InFrame(decoder));
            }
            number if number & !0xF == SECTION_MAGIC & !0xF => {
                let mut length = [0; 4];
                file.read_exact(&mut length)?;
                let length = u32::from_le_bytes(length);
                if number == SECTION_MAGIC && length <= 64 {
                    let mut text = vec![0; length as usize];
                    file.read_exact(&mut text)?;
                    mark = section::parse_calls(&text).ok();
                } else {
                    file.seek_relative(i64::from(length))?;
                }
            }
            _ => return Err(invalid_data("a compressed section does not begin with a zstd frame")),
        }
    }
}

/// Skips a frame whose magic is read: its header and those of its blocks (RFC 8878, section 3.1.1).
fn skip_frame(file: &mut BufReader<File>) -> io::Result<()> {
    let mut descriptor = [0];
    file.read_exact(&mut descriptor)?;
    let single = descriptor[0] & 0x20 != 0;
    let size_bytes = match descriptor[0] >> 6 {
        0 => i64::from(single),
        n => 1 << n,
    };
    let dictionary_bytes = [0, 1, 2, 4][usize::from(descriptor[0] & 3)];
    file.seek_relative(i64::from(!single) + dictionary_bytes + size_bytes)?;
    loop {
        let mut header = [0; 4];
        file.read_exact(&mut header[..3])?;
        let header = u32::from_le_bytes(header);
        let bytes = match (header >> 1) & 3 {
            1 => 1,
            3 => return Err(invalid_data("a zstd block of an invalid type")),
            _ => header >> 3,
        };
        file.seek_relative(i64::from(bytes))?;
        if header & 1 != 0 {
            break;
        }
    }
    if descriptor[0] & 4 != 0 {
        file.read_exact(&mut [0; 4])?;
    }
    Ok(())
}
