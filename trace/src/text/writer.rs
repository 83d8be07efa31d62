//! Streaming writer of a profile.

use std::io::{self, Write};

use super::lines::SECTION_MAGIC;
use super::write_call::write_call;
use super::write_head::write_head;
use crate::{Call, ProfileHead};

const BUFFER_BYTES: usize = 256 << 10;
/// Fast; the next levels save a fifth of the size in twice the time.
const LEVEL: i32 = 1;

enum WriterOutput<W: Write> {
    Plain(W),
    Zstd(Box<zstd::Encoder<'static, W>>),
    Failed,
}

/// Writes a profile: head, then the calls of each rank. If compressed, each of these is a separate zstd frame.
pub struct ProfileWriter<W: Write> {
    out: WriterOutput<W>,
    zstd: bool,
    buffer: Vec<u8>,
    /// Calls of each rank by the head.
    declared_calls: Vec<u64>,
    begun_ranks: Vec<bool>,
    /// Current rank and number of its remaining calls.
    open_rank: Option<(u32, u64)>,
}

fn invalid_input(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

impl<W: Write> ProfileWriter<W> {
    /// Writes to `out`, compressed or not; `out` needs no buffering.
    pub fn new(out: W, zstd: bool) -> Self {
        Self {
            out: WriterOutput::Plain(out),
            zstd,
            buffer: Vec::with_capacity(BUFFER_BYTES + 4096),
            declared_calls: Vec::new(),
            begun_ranks: Vec::new(),
            open_rank: None,
        }
    }

    /// Writes the head, once.
    ///
    /// # Errors
    /// A write error.
    pub fn head(&mut self, head: &ProfileHead) -> io::Result<()> {
        self.begin_frame(None)?;
        self.declared_calls = head.processes.iter().map(|process| process.calls).collect();
        self.begun_ranks = vec![false; self.declared_calls.len()];
        write_head(&mut self.buffer, head);
        self.end_frame()
    }

    /// Begins the calls of a rank; `calls` of them follow, in the order of their begin.
    ///
    /// # Errors
    /// A write error; calls of the previous rank are missing; the rank is not in the head, was begun before, or has another number of calls
    /// there.
    pub fn begin_calls(&mut self, rank: u32, calls: u64) -> io::Result<()> {
        self.end_rank()?;
        let (Some(said), Some(begun)) =
            (self.declared_calls.get(rank as usize), self.begun_ranks.get_mut(rank as usize))
        else {
            return Err(invalid_input(format!("rank {rank} is not in the head")));
        };
        if std::mem::replace(begun, true) {
            return Err(invalid_input(format!("the calls of rank {rank} were begun before")));
        }
        if *said != 0 && *said != calls {
            return Err(invalid_input(format!("rank {rank} has {said} calls by the head, but {calls} now")));
        }
        let mut line = b"calls,".to_vec();
        super::fields::put(&mut line, rank);
        line.push(b',');
        super::fields::put(&mut line, calls);
        self.begin_frame(Some(&line))?;
        line.push(b'\n');
        self.buffer.extend_from_slice(&line);
        self.open_rank = Some((rank, calls));
        Ok(())
    }

    /// Writes a call of the current rank.
    ///
    /// # Errors
    /// A write error; the rank has all its calls.
    pub fn call(&mut self, call: &Call) -> io::Result<()> {
        match &mut self.open_rank {
            Some((_, left)) if *left > 0 => *left -= 1,
            Some((rank, _)) => return Err(invalid_input(format!("more calls of rank {rank} than stated"))),
            None => return Err(invalid_input("a call before any rank".to_owned())),
        }
        write_call(&mut self.buffer, call);
        if self.buffer.len() >= BUFFER_BYTES {
            self.drain()?;
        }
        Ok(())
    }

    /// Copies lines of [`write_call`]: all calls of the current rank.
    ///
    /// # Errors
    /// A read or write error; no rank was begun, or it has calls already.
    pub fn copy_calls(&mut self, lines: &mut impl io::Read) -> io::Result<()> {
        let Some((_, left)) = &mut self.open_rank else {
            return Err(invalid_input("lines before any rank".to_owned()));
        };
        *left = 0;
        loop {
            let used = self.buffer.len();
            self.buffer.resize(used + BUFFER_BYTES, 0);
            let read = lines.read(&mut self.buffer[used..]);
            self.buffer.truncate(used + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) => return Ok(()),
                Ok(_) => self.drain()?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes the remaining data, flushes, and returns the underlying writer.
    ///
    /// # Errors
    /// A write error; calls of the last rank are missing.
    pub fn finish(mut self) -> io::Result<W> {
        self.end_rank()?;
        self.drain()?;
        match self.out {
            WriterOutput::Plain(mut out) => {
                out.flush()?;
                Ok(out)
            }
            WriterOutput::Zstd(_) | WriterOutput::Failed => {
                Err(invalid_input("an earlier error ended this profile".to_owned()))
            }
        }
    }

    fn end_rank(&mut self) -> io::Result<()> {
        match self.open_rank.take() {
            Some((rank, left)) if left > 0 => Err(invalid_input(format!("{left} calls of rank {rank} are missing"))),
            Some(_) => self.end_frame(),
            None => Ok(()),
        }
    }

    /// Begins a frame, preceded by a skippable frame with its first line.
    fn begin_frame(&mut self, mark: Option<&[u8]>) -> io::Result<()> {
        if !self.zstd {
            return Ok(());
        }
        self.out = match std::mem::replace(&mut self.out, WriterOutput::Failed) {
            WriterOutput::Plain(mut out) => {
                if let Some(mark) = mark {
                    out.write_all(&SECTION_MAGIC.to_le_bytes())?;
                    out.write_all(&u32::try_from(mark.len()).map_err(io::Error::other)?.to_le_bytes())?;
                    out.write_all(mark)?;
                }
                let mut encoder = zstd::Encoder::new(out, LEVEL)?;
                encoder.include_checksum(true)?;
                WriterOutput::Zstd(Box::new(encoder))
            }
            other => other,
        };
        Ok(())
    }

    fn end_frame(&mut self) -> io::Result<()> {
        self.drain()?;
        if self.zstd {
            self.out = match std::mem::replace(&mut self.out, WriterOutput::Failed) {
                WriterOutput::Zstd(encoder) => WriterOutput::Plain(encoder.finish()?),
                other => other,
            };
        }
        Ok(())
    }

    fn drain(&mut self) -> io::Result<()> {
        match &mut self.out {
            WriterOutput::Plain(out) => out.write_all(&self.buffer)?,
            WriterOutput::Zstd(out) => out.write_all(&self.buffer)?,
            WriterOutput::Failed => return Err(invalid_input("an earlier error ended this profile".to_owned())),
        }
        self.buffer.clear();
        Ok(())
    }
}
