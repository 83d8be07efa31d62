//! Direct transfers of unaligned chunks through a copy: each rank reads the sectors, changes its bytes, and writes the sectors.
//! Where ranks share a sector, one overwrites new data of the other. Only shows that the tests detect such a loss.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use memmap2::MmapMut;

use crate::edges::{ceil, edge_error, floor, read_sector, write_sector, EdgeError};
use crate::route::FileRoute;
use crate::walk::ChunkWalk;
use crate::{AccessPattern, BackendError, Batch, Direction, Result, TransferBuffer};

/// Memory for one chunk and its first and last sectors.
#[derive(Debug)]
pub(crate) struct RmwBuffer {
    memory: MmapMut,
    align: u64,
}

impl RmwBuffer {
    /// Memory for the chunks of `pattern`, if its route needs any.
    pub(crate) fn for_route(route: &FileRoute, pattern: &AccessPattern, path: &Path) -> Result<Option<Self>> {
        let FileRoute::UnsafeReadModifyWrite { align_bytes } = route else {
            return Ok(None);
        };
        let memory = Self::new(pattern.chunk_bytes, *align_bytes);
        memory.map(Some).map_err(|e| BackendError::from_io("mmap (scratch buffer)", path, None, &e))
    }

    fn new(chunk_bytes: u64, align: u64) -> io::Result<Self> {
        let len = usize::try_from(ceil(chunk_bytes, align) + align).map_err(io::Error::other)?;
        Ok(Self { memory: MmapMut::map_anon(len)?, align })
    }

    pub(crate) fn write_batch(
        &mut self,
        direct: &File,
        pattern: &AccessPattern,
        batch: Batch,
        buffer: &TransferBuffer,
        path: &Path,
        mut chunk_done: impl FnMut(),
    ) -> Result<()> {
        let len = pattern.chunk_bytes as usize;
        for (offset, index) in ChunkWalk::new(pattern, Direction::Write, batch, buffer, path)? {
            let chunk = &buffer.bytes()[index..index + len];
            self.write(direct, chunk, offset).map_err(|error| edge_error(path, &error))?;
            chunk_done();
        }
        Ok(())
    }

    pub(crate) fn read_batch(
        &mut self,
        direct: &File,
        pattern: &AccessPattern,
        batch: Batch,
        buffer: &mut TransferBuffer,
        path: &Path,
        mut chunk_done: impl FnMut(),
    ) -> Result<()> {
        let len = pattern.chunk_bytes as usize;
        for (offset, index) in ChunkWalk::new(pattern, Direction::Read, batch, buffer, path)? {
            let chunk = &mut buffer.bytes_mut()[index..index + len];
            let got = self.read(direct, chunk, offset).map_err(|error| edge_error(path, &error))?;
            if got < len {
                return Err(BackendError::short_transfer("pread", path, offset, len as u64, got as u64));
            }
            chunk_done();
        }
        Ok(())
    }

    fn write(&mut self, direct: &File, chunk: &[u8], offset: u64) -> std::result::Result<(), EdgeError> {
        let align = self.align as usize;
        let (begin, sectors) = self.sectors(offset, chunk.len());
        let last = sectors.len() - align;
        read_sector(direct, &mut sectors[..align], begin)?;
        if last > 0 {
            read_sector(direct, &mut sectors[last..], begin + last as u64)?;
        }
        let at = (offset - begin) as usize;
        sectors[at..at + chunk.len()].copy_from_slice(chunk);
        write_sector(direct, sectors, begin)
    }

    /// Returns the number of bytes read.
    fn read(&mut self, direct: &File, chunk: &mut [u8], offset: u64) -> std::result::Result<usize, EdgeError> {
        let (begin, sectors) = self.sectors(offset, chunk.len());
        let got = direct.read_at(sectors, begin).map_err(|e| ("pread", begin, e))?;
        let at = (offset - begin) as usize;
        let got = got.saturating_sub(at).min(chunk.len());
        chunk[..got].copy_from_slice(&sectors[at..at + got]);
        Ok(got)
    }

    /// The sectors around `len` bytes at `offset`: their begin, and memory for them.
    fn sectors(&mut self, offset: u64, len: usize) -> (u64, &mut [u8]) {
        let begin = floor(offset, self.align);
        let bytes = ceil(offset + len as u64, self.align) - begin;
        (begin, &mut self.memory[..bytes as usize])
    }
}
