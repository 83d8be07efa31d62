//! The files both sides work on, and the state they start from.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use nix::fcntl::{posix_fadvise, posix_fallocate, PosixFadviseAdvice};

use crate::sides::Room;

/// Bytes written at once when a file is laid out.
const STEP_BYTES: usize = 8 << 20;

/// A directory of its own, removed at the end.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes it below `parent`.
    pub fn new(parent: &Path) -> io::Result<Self> {
        let path = parent.join(format!("beff-raw-fio-{}", std::process::id()));
        fs::create_dir(&path).map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", path.display())))?;
        // One way of naming it for both sides.
        Ok(Self(path.canonicalize()?))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A file that rewrites and reads of both sides share: written once, so that it lies in the same place for both. Room was made for it
    /// as the row says.
    pub fn make_base(&self, path: &Path, bytes: u64, room: Room) -> io::Result<()> {
        let mut step = vec![0; STEP_BYTES];
        noise(&mut step);
        let mut file = File::create_new(path)?;
        match room {
            Room::None => {}
            Room::Size => file.set_len(bytes)?,
            Room::Default | Room::Native | Room::Zeros => posix_fallocate(&file, 0, bytes as i64)?,
        }
        let mut left = bytes;
        while left > 0 {
            let now = left.min(STEP_BYTES as u64);
            file.write_all(&step[..now as usize])?;
            left -= now;
        }
        file.sync_all()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(e) = fs::remove_dir_all(&self.0) {
            eprintln!("{} could not be removed: {e}", self.0.display());
        }
    }
}

/// Bytes that neither compress nor repeat within a block.
pub fn noise(bytes: &mut [u8]) {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    for word in bytes.chunks_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        word.copy_from_slice(&state.to_le_bytes()[..word.len()]);
    }
}

/// Reads a file through the page cache, so that its pages are there.
pub fn fill_pages(path: &Path) -> io::Result<()> {
    io::copy(&mut File::open(path)?, &mut io::sink()).map(drop)
}

/// Writes back and drops the pages of a file. What a read then takes from the device shows that it worked.
pub fn drop_pages(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    file.sync_all()?;
    posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED).map_err(io::Error::from)
}
