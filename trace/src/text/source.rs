//! A profile as lines, compressed or not, with bounded memory. Parts of other ranks are passed over where the frames of a compressed
//! profile allow it.
//!
//! Before each compressed part the writer puts a frame that decompressors skip (magic 0x184D2A5B), with the line that the part begins
//! with: `calls,RANK,N`. The part has N + 1 lines. A profile that was compressed by other means has no such frames and is read whole.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::{Path, PathBuf};

use super::error::TextError;
use super::section;

/// Magic of the frame before a part.
pub(super) const MARK: u32 = 0x184D_2A5B;
/// Longest line.
pub(super) const LINE_LIMIT_BYTES: usize = 16 << 20;
const ZSTD: u32 = 0xFD2F_B528;
const BUFFER_BYTES: usize = 256 << 10;
/// Decompression needs no more memory than this, as a power of two.
const WINDOW_LOG: u32 = 27;

enum Frames {
    Between(BufReader<File>),
    Inside(zstd::Decoder<'static, BufReader<File>>),
    Over,
}

enum Source {
    Plain(File),
    Zstd { frames: Frames, want: Option<u32> },
}

/// Parts of other ranks that were not decompressed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Passed {
    /// Their lines.
    pub lines: u64,
    /// How many.
    pub parts: u64,
}

/// The lines of a profile.
pub(super) struct Lines {
    path: PathBuf,
    source: Source,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Number of the last line, from 1.
    line: u64,
    at_end: bool,
    passed: Passed,
    /// Text that was read.
    read_bytes: u64,
}

impl Lines {
    /// Opens a profile. With a rank wanted, the parts of others may be left out.
    pub(super) fn open(path: &Path, want: Option<u32>) -> Result<Self, TextError> {
        let fail = |e: io::Error| {
            TextError::new(format!("cannot be read: {e}"), "check the name and the permissions").at(path, 0)
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
        let compressed = have == 4 && (number == ZSTD || number & !0xF == MARK & !0xF);
        file.rewind().map_err(|e| {
            TextError::new(
                format!("cannot be read from its begin again: {e}"),
                "write it to a file; pipes cannot be read by all ranks",
            )
            .at(path, 0)
        })?;
        let source = if compressed {
            let frames = Frames::Between(BufReader::with_capacity(BUFFER_BYTES, file));
            Source::Zstd { frames, want }
        } else {
            Source::Plain(file)
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
            passed: Passed::default(),
            read_bytes: 0,
        })
    }

    /// Number of the last line, from 1.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// Parts that were not decompressed.
    pub(super) fn passed(&self) -> Passed {
        self.passed
    }

    /// Text up to the last line.
    pub(super) fn text_bytes(&self) -> u64 {
        self.read_bytes - (self.end - self.start) as u64
    }

    /// Puts the file and the line of now into an error.
    pub(super) fn locate(&self, error: TextError) -> TextError {
        error.at(&self.path, self.line)
    }

    /// The next line without its end, None behind the last.
    ///
    /// # Errors
    /// Reading fails; a line is too long; the last line has no end.
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
                let next = "it was cut while it was written or copied; get the whole file, or, if the line is whole, end it with a line break";
                return Err(self.locate(TextError::new("the last line has no end", next)));
            }
            seen = self.end - self.start;
            self.fill()?;
        }
    }

    /// Passes over lines until one begins with `c`, which is left to be read next.
    pub(super) fn skim(&mut self) -> Result<(), TextError> {
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

    /// Reads more behind what is there, which moves to the begin of the buffer.
    fn fill(&mut self) -> Result<(), TextError> {
        let before = self.passed.lines;
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end == self.buffer.len() {
            if self.end >= LINE_LIMIT_BYTES {
                self.line += 1;
                return Err(self.locate(TextError::new(
                    format!("longer than {} MiB", LINE_LIMIT_BYTES >> 20),
                    "this is no profile, or it is damaged; record or merge it again",
                )));
            }
            self.buffer.resize((self.end * 2).min(LINE_LIMIT_BYTES), 0);
        }
        let room = &mut self.buffer[self.end..];
        let got = match &mut self.source {
            Source::Plain(file) => read(file, room),
            Source::Zstd { frames, want } => frames.read(room, *want, &mut self.passed),
        };
        let got = got.map_err(|e| {
            let next = match e.kind() {
                io::ErrorKind::UnexpectedEof => {
                    "the file was cut while it was written or copied; get the whole file, or merge it again"
                }
                _ => "check the file and its disk, or merge it again",
            };
            TextError::new(format!("cannot be read on: {e}"), next).at(&self.path, self.line + 1)
        })?;
        // No whole line is left in the buffer, so these lines lie between the last one and the next.
        self.line = self.line.saturating_add(self.passed.lines - before);
        self.at_end = got == 0;
        self.end += got;
        self.read_bytes += got as u64;
        Ok(())
    }
}

fn read(from: &mut impl Read, room: &mut [u8]) -> io::Result<usize> {
    loop {
        match from.read(room) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

impl Frames {
    /// Text of the frames, 0 bytes at the end.
    fn read(&mut self, room: &mut [u8], want: Option<u32>, passed: &mut Passed) -> io::Result<usize> {
        loop {
            match std::mem::replace(self, Self::Over) {
                Self::Over => return Ok(0),
                Self::Inside(mut decoder) => {
                    let got = read(&mut decoder, room)?;
                    if got > 0 {
                        *self = Self::Inside(decoder);
                        return Ok(got);
                    }
                    *self = Self::Between(decoder.finish());
                }
                Self::Between(file) => *self = enter(file, want, passed)?,
            }
        }
    }
}

/// Into the next frame that is wanted.
fn enter(mut file: BufReader<File>, want: Option<u32>, passed: &mut Passed) -> io::Result<Frames> {
    let mut mark = None;
    loop {
        let mut magic = [0; 4];
        match read(&mut file, &mut magic)? {
            0 => return Ok(Frames::Over),
            n => file.read_exact(&mut magic[n..])?,
        }
        match u32::from_le_bytes(magic) {
            ZSTD => {
                if let (Some((rank, calls)), Some(want)) = (mark.take(), want) {
                    if rank != want {
                        pass_frame(&mut file)?;
                        passed.lines = passed.lines.saturating_add(calls + 1);
                        passed.parts += 1;
                        continue;
                    }
                }
                file.seek_relative(-4)?;
                let mut decoder = zstd::Decoder::with_buffer(file)?.single_frame();
                decoder.window_log_max(WINDOW_LOG)?;
                return Ok(Frames::Inside(decoder));
            }
            number if number & !0xF == MARK & !0xF => {
                let mut length = [0; 4];
                file.read_exact(&mut length)?;
                let length = u32::from_le_bytes(length);
                if number == MARK && length <= 64 {
                    let mut text = vec![0; length as usize];
                    file.read_exact(&mut text)?;
                    mark = section::calls(&text).ok();
                } else {
                    file.seek_relative(i64::from(length))?;
                }
            }
            _ => return Err(damaged("a compressed part begins with something else than a zstd frame")),
        }
    }
}

/// Passes over a frame whose magic is read: its header and those of its blocks (RFC 8878, section 3.1.1).
fn pass_frame(file: &mut BufReader<File>) -> io::Result<()> {
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
            3 => return Err(damaged("a zstd block of a type that does not exist")),
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
