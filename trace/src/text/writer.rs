//! A profile as text, streamed.

use std::io::{self, Write};

use super::source::MARK;
use super::write_call::write_call;
use super::write_head::write_head;
use crate::{Call, Head};

const BUFFER_BYTES: usize = 256 << 10;
/// Fast; the next levels make a fifth less of it in twice the time.
const LEVEL: i32 = 1;

enum Out<W: Write> {
    Plain(W),
    Zstd(Box<zstd::Encoder<'static, W>>),
    Lost,
}

/// Writes a profile: head, then the calls of each rank. Compressed, each of these is a zstd frame of its own.
pub struct Writer<W: Write> {
    out: Out<W>,
    zstd: bool,
    buffer: Vec<u8>,
    /// Calls of each rank by the head.
    said: Vec<u64>,
    begun: Vec<bool>,
    /// Rank and calls that are still to come.
    rank: Option<(u32, u64)>,
}

fn wrong(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

impl<W: Write> Writer<W> {
    /// Writes to `out`, compressed or not; `out` needs no buffer.
    pub fn new(out: W, zstd: bool) -> Self {
        Self {
            out: Out::Plain(out),
            zstd,
            buffer: Vec::with_capacity(BUFFER_BYTES + 4096),
            said: Vec::new(),
            begun: Vec::new(),
            rank: None,
        }
    }

    /// Writes what stands before the calls, once.
    ///
    /// # Errors
    /// Writing fails.
    pub fn head(&mut self, head: &Head) -> io::Result<()> {
        self.begin_part(None)?;
        self.said = head.processes.iter().map(|process| process.calls).collect();
        self.begun = vec![false; self.said.len()];
        write_head(&mut self.buffer, head);
        self.end_part()
    }

    /// Begins the calls of a rank; `calls` of them follow, in the order of their begin.
    ///
    /// # Errors
    /// Writing fails; calls of the rank before are missing; the rank is not in the head, was there, or has another number of calls there.
    pub fn begin_calls(&mut self, rank: u32, calls: u64) -> io::Result<()> {
        self.end_rank()?;
        let (Some(said), Some(begun)) = (self.said.get(rank as usize), self.begun.get_mut(rank as usize)) else {
            return Err(wrong(format!("rank {rank} is not in the head")));
        };
        if std::mem::replace(begun, true) {
            return Err(wrong(format!("the calls of rank {rank} are there already")));
        }
        if *said != 0 && *said != calls {
            return Err(wrong(format!("rank {rank} has {said} calls by the head, and {calls} now")));
        }
        let mut line = b"calls,".to_vec();
        super::fields::put(&mut line, rank);
        line.push(b',');
        super::fields::put(&mut line, calls);
        self.begin_part(Some(&line))?;
        line.push(b'\n');
        self.buffer.extend_from_slice(&line);
        self.rank = Some((rank, calls));
        Ok(())
    }

    /// Writes a call of the rank that was begun.
    ///
    /// # Errors
    /// Writing fails; the rank has all its calls.
    pub fn call(&mut self, call: &Call) -> io::Result<()> {
        match &mut self.rank {
            Some((_, left)) if *left > 0 => *left -= 1,
            Some((rank, _)) => return Err(wrong(format!("more calls of rank {rank} than were said"))),
            None => return Err(wrong("a call before any rank".to_owned())),
        }
        write_call(&mut self.buffer, call);
        if self.buffer.len() >= BUFFER_BYTES {
            self.drain()?;
        }
        Ok(())
    }

    /// Copies lines that [`write_call`] made: all calls of the rank that was begun.
    ///
    /// # Errors
    /// Reading or writing fails; the rank was not begun, or has calls already.
    pub fn copy_calls(&mut self, lines: &mut impl io::Read) -> io::Result<()> {
        let Some((_, left)) = &mut self.rank else { return Err(wrong("lines before any rank".to_owned())) };
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

    /// Writes what is left and flushes; gives back where it was written to.
    ///
    /// # Errors
    /// Writing fails; calls of the last rank are missing.
    pub fn finish(mut self) -> io::Result<W> {
        self.end_rank()?;
        self.drain()?;
        match self.out {
            Out::Plain(mut out) => {
                out.flush()?;
                Ok(out)
            }
            Out::Zstd(_) | Out::Lost => Err(wrong("an earlier error has ended this profile".to_owned())),
        }
    }

    fn end_rank(&mut self) -> io::Result<()> {
        match self.rank.take() {
            Some((rank, left)) if left > 0 => Err(wrong(format!("{left} calls of rank {rank} are missing"))),
            Some(_) => self.end_part(),
            None => Ok(()),
        }
    }

    /// Begins a frame, behind a mark of the line with which it begins.
    fn begin_part(&mut self, mark: Option<&[u8]>) -> io::Result<()> {
        if !self.zstd {
            return Ok(());
        }
        self.out = match std::mem::replace(&mut self.out, Out::Lost) {
            Out::Plain(mut out) => {
                if let Some(mark) = mark {
                    out.write_all(&MARK.to_le_bytes())?;
                    out.write_all(&u32::try_from(mark.len()).map_err(io::Error::other)?.to_le_bytes())?;
                    out.write_all(mark)?;
                }
                let mut encoder = zstd::Encoder::new(out, LEVEL)?;
                encoder.include_checksum(true)?;
                Out::Zstd(Box::new(encoder))
            }
            other => other,
        };
        Ok(())
    }

    fn end_part(&mut self) -> io::Result<()> {
        self.drain()?;
        if self.zstd {
            self.out = match std::mem::replace(&mut self.out, Out::Lost) {
                Out::Zstd(encoder) => Out::Plain(encoder.finish()?),
                other => other,
            };
        }
        Ok(())
    }

    fn drain(&mut self) -> io::Result<()> {
        match &mut self.out {
            Out::Plain(out) => out.write_all(&self.buffer)?,
            Out::Zstd(out) => out.write_all(&self.buffer)?,
            Out::Lost => return Err(wrong("an earlier error has ended this profile".to_owned())),
        }
        self.buffer.clear();
        Ok(())
    }
}
