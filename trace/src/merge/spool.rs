//! The calls of all ranks as text, in one temporary file until the head is known: chunks, one behind the other.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::call::Call;
use crate::text::write_call;

#[derive(Debug, Default)]
struct Lines {
    chunks: Vec<(u64, u32)>,
    buffer: Vec<u8>,
    calls: u64,
}

/// The file, and what of it belongs to whom.
#[derive(Debug)]
pub(super) struct Spool {
    file: File,
    used: u64,
    chunk_bytes: usize,
    ranks: Vec<Lines>,
}

impl Spool {
    /// Makes the file in a directory; it goes away by itself.
    pub(super) fn new(directory: &Path, ranks: usize) -> io::Result<Self> {
        let chunk_bytes = ((64 << 20) / ranks.max(1)).clamp(4 << 10, 256 << 10);
        let mut all = Vec::new();
        all.resize_with(ranks, Lines::default);
        Ok(Self { file: tempfile::tempfile_in(directory)?, used: 0, chunk_bytes, ranks: all })
    }

    pub(super) fn call(&mut self, index: usize, call: &Call) -> io::Result<()> {
        let lines = &mut self.ranks[index];
        lines.calls += 1;
        write_call(&mut lines.buffer, call);
        if lines.buffer.len() >= self.chunk_bytes {
            self.flush(index)?;
        }
        Ok(())
    }

    fn flush(&mut self, index: usize) -> io::Result<()> {
        let lines = &mut self.ranks[index];
        for chunk in lines.buffer.chunks(1 << 30) {
            self.file.write_all(chunk)?;
            lines.chunks.push((self.used, chunk.len() as u32));
            self.used += chunk.len() as u64;
        }
        lines.buffer.clear();
        Ok(())
    }

    /// Calls of a rank.
    pub(super) fn calls(&self, index: usize) -> u64 {
        self.ranks[index].calls
    }

    /// All lines of a rank.
    pub(super) fn lines(&mut self, index: usize) -> io::Result<impl Read + '_> {
        self.flush(index)?;
        Ok(Back { file: &self.file, chunks: self.ranks[index].chunks.iter(), at: 0, left: 0 })
    }
}

struct Back<'a> {
    file: &'a File,
    chunks: std::slice::Iter<'a, (u64, u32)>,
    at: u64,
    left: usize,
}

impl Read for Back<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            let Some((at, bytes)) = self.chunks.next() else { return Ok(0) };
            (self.at, self.left) = (*at, *bytes as usize);
        }
        let room = into.len().min(self.left);
        let read = self.file.read_at(&mut into[..room], self.at)?;
        if read == 0 && room > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.at += read as u64;
        self.left -= read;
        Ok(read)
    }
}
