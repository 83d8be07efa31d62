//! The sector in which a region ends: kept until the next region completes it, or written separately at a sync.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use memmap2::MmapMut;

use super::domain::DomainGrid;
use crate::retry::retry_interrupted;

/// The end of the last region inside a sector. Known to all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PartialSector {
    /// End offset of the region.
    pub(crate) end: u64,
    /// Aggregator that holds the beginning of the sector.
    pub(crate) holder: u64,
    /// Not yet written to the file.
    pub(crate) dirty: bool,
}

/// Memory for one kept sector and one that is read.
#[derive(Debug)]
pub(crate) struct SectorBuffer {
    memory: MmapMut,
    grid: DomainGrid,
}

impl SectorBuffer {
    pub(crate) fn new(grid: DomainGrid) -> io::Result<Self> {
        let len = usize::try_from(2 * grid.sector_bytes).map_err(io::Error::other)?;
        Ok(Self { memory: MmapMut::map_anon(len)?, grid })
    }

    fn sector(&self) -> usize {
        self.grid.sector_bytes as usize
    }

    pub(crate) fn keep(&mut self, bytes: &[u8]) {
        self.memory[..bytes.len()].copy_from_slice(bytes);
    }

    pub(crate) fn kept_bytes(&self, len: usize) -> &[u8] {
        &self.memory[..len]
    }

    /// Reads the sector at `offset`; zeros beyond the end of the file.
    pub(crate) fn read_sector(&mut self, file: &File, offset: u64) -> io::Result<&[u8]> {
        let align = self.sector();
        let sector = &mut self.memory[align..];
        let got = retry_interrupted(|| file.read_at(sector, offset))?;
        // A sector is read completely, except at the end of the file.
        sector[got..].fill(0);
        Ok(sector)
    }

    /// Writes the kept beginning of the sector that contains `end` to the file; bytes of the file beyond it are preserved. If
    /// `last`, no rank writes beyond this sector, and the file keeps its length, or ends at `end` if that is larger.
    pub(crate) fn flush(&mut self, file: &File, end: u64, last: bool) -> io::Result<()> {
        let (offset, align) = (self.grid.floor(end), self.sector());
        let length = file.metadata()?.len();
        self.read_sector(file, offset)?;
        self.memory.copy_within(..(end - offset) as usize, align);
        let sector = &self.memory[align..];
        let put = retry_interrupted(|| file.write_at(sector, offset))?;
        if put < align {
            return Err(io::Error::other(format!("wrote {put} of the {align} bytes of the last sector")));
        }
        if last && length < offset + align as u64 {
            file.set_len(length.max(end))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flushed(before: &[u8], kept: &[u8], end: u64) -> Vec<u8> {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(before, 0).unwrap();
        let mut edge = SectorBuffer::new(DomainGrid::new(512, 4096, 1)).unwrap();
        edge.keep(kept);
        edge.flush(&file, end, true).unwrap();
        let mut bytes = vec![0; file.metadata().unwrap().len() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    }

    #[test]
    fn bytes_beyond_the_region_survive_and_the_length_is_exact() {
        // Extends the file after a hole.
        let bytes = flushed(&[], &[1; 8], 1032);
        assert_eq!((bytes.len(), &bytes[1024..]), (1032, &[1; 8][..]));
        // Inside the file.
        let bytes = flushed(&[9; 2000], &[1; 8], 520);
        assert_eq!((bytes.len(), &bytes[510..522]), (2000, &[9, 9, 1, 1, 1, 1, 1, 1, 1, 1, 9, 9][..]));
        // The file ends beyond the region, in the same sector.
        let bytes = flushed(&[9; 530], &[1; 8], 520);
        assert_eq!((bytes.len(), bytes[519], bytes[520], bytes[529]), (530, 1, 9, 9));
        // The file ends before the region.
        let bytes = flushed(&[9; 516], &[1; 8], 520);
        assert_eq!((bytes.len(), bytes[511], bytes[512], bytes[519]), (520, 9, 1, 1));
    }
}
