//! The sector in which a region ends: kept until the next region completes it, or written for itself at a sync.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use memmap2::MmapMut;

use super::domain::Grid;
use crate::patience::uninterrupted;

/// Where the last region ended, inside of a sector. Known to all ranks alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tail {
    /// First byte behind the region.
    pub(crate) end: u64,
    /// Aggregator that has the sector's beginning.
    pub(crate) holder: u64,
    /// Not in the file yet.
    pub(crate) dirty: bool,
}

/// Memory for one sector that is kept and one that is looked at.
#[derive(Debug)]
pub(crate) struct Edge {
    memory: MmapMut,
    grid: Grid,
}

impl Edge {
    pub(crate) fn new(grid: Grid) -> io::Result<Self> {
        let len = usize::try_from(2 * grid.align).map_err(io::Error::other)?;
        Ok(Self { memory: MmapMut::map_anon(len)?, grid })
    }

    fn sector(&self) -> usize {
        self.grid.align as usize
    }

    /// Keeps the beginning of a sector.
    pub(crate) fn keep(&mut self, bytes: &[u8]) {
        self.memory[..bytes.len()].copy_from_slice(bytes);
    }

    /// What was kept.
    pub(crate) fn kept(&self, len: usize) -> &[u8] {
        &self.memory[..len]
    }

    /// The sector at `offset` as it is in the file, zeros behind its end.
    pub(crate) fn look(&mut self, file: &File, offset: u64) -> io::Result<&[u8]> {
        let align = self.sector();
        let sector = &mut self.memory[align..];
        let got = uninterrupted(|| file.read_at(sector, offset))?;
        // One sector comes whole, except at the end of the file.
        sector[got..].fill(0);
        Ok(sector)
    }

    /// Puts the kept beginning of the sector that `end` lies in into the file. What the file has behind it survives. If
    /// `last`, nobody writes behind this sector, and the file ends where it did before, or at `end` if that is later.
    pub(crate) fn flush(&mut self, file: &File, end: u64, last: bool) -> io::Result<()> {
        let (offset, align) = (self.grid.down(end), self.sector());
        let length = file.metadata()?.len();
        self.look(file, offset)?;
        self.memory.copy_within(..(end - offset) as usize, align);
        let sector = &self.memory[align..];
        let put = uninterrupted(|| file.write_at(sector, offset))?;
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
        let mut edge = Edge::new(Grid::new(512, 4096, 1)).unwrap();
        edge.keep(kept);
        edge.flush(&file, end, true).unwrap();
        let mut bytes = vec![0; file.metadata().unwrap().len() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    }

    #[test]
    fn what_lies_behind_survives_and_the_length_is_exact() {
        // A new end of file, with a hole before it.
        let bytes = flushed(&[], &[1; 8], 1032);
        assert_eq!((bytes.len(), &bytes[1024..]), (1032, &[1; 8][..]));
        // Inside of the file.
        let bytes = flushed(&[9; 2000], &[1; 8], 520);
        assert_eq!((bytes.len(), &bytes[510..522]), (2000, &[9, 9, 1, 1, 1, 1, 1, 1, 1, 1, 9, 9][..]));
        // The file ends behind the region, in the same sector.
        let bytes = flushed(&[9; 530], &[1; 8], 520);
        assert_eq!((bytes.len(), bytes[519], bytes[520], bytes[529]), (530, 1, 9, 9));
        // And before its end.
        let bytes = flushed(&[9; 516], &[1; 8], 520);
        assert_eq!((bytes.len(), bytes[511], bytes[512], bytes[519]), (520, 9, 1, 1));
    }
}
