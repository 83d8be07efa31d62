//! Calls of all ranks as text in one temporary file until the head is known, as a sequence of chunks.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::call::Call;
use crate::text::write_call;

#[derive(Debug, Default)]
struct SpooledLines {
    chunks: Vec<(u64, u32)>,
    buffer: Vec<u8>,
    calls: u64,
}

/// The temporary file and its allocation to ranks.
#[derive(Debug)]
pub(super) struct Spool {
    file: File,
    used: u64,
    chunk_bytes: usize,
    ranks: Vec<SpooledLines>,
}

impl Spool {
    /// Creates the file in a directory; it is removed automatically.
    pub(super) fn new(directory: &Path, ranks: usize) -> io::Result<Self> {
        let chunk_bytes = ((64 << 20) / ranks.max(1)).clamp(4 << 10, 256 << 10);
        let mut all = Vec::new();
        all.resize_with(ranks, SpooledLines::default);
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

    pub(super) fn calls(&self, index: usize) -> u64 {
        self.ranks[index].calls
    }

    pub(super) fn lines(&mut self, index: usize) -> io::Result<impl Read + '_> {
        self.flush(index)?;
        Ok(SpoolReader { file: &self.file, chunks: self.ranks[index].chunks.iter(), offset: 0, remaining_bytes: 0 })
    }
}

struct SpoolReader<'a> {
    file: &'a File,
    chunks: std::slice::Iter<'a, (u64, u32)>,
    offset: u64,
    remaining_bytes: usize,
}

impl Read for SpoolReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.remaining_bytes == 0 {
            let Some((at, bytes)) = self.chunks.next() else { return Ok(0) };
            (self.offset, self.remaining_bytes) = (*at, *bytes as usize);
        }
        let max_bytes = into.len().min(self.remaining_bytes);
        let read = self.file.read_at(&mut into[..max_bytes], self.offset)?;
        if read == 0 && max_bytes > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.offset += read as u64;
        self.remaining_bytes -= read;
        Ok(read)
    }
}
