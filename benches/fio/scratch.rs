//! Files of both sides, and their initial state.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use nix::fcntl::{posix_fadvise, posix_fallocate, PosixFadviseAdvice};

use crate::sides::PreallocationPolicy;

/// Bytes per write call when a file is created.
const WRITE_BYTES: usize = 8 << 20;

/// Private directory, removed at the end.
#[derive(Debug)]
pub struct ScratchDirectory(PathBuf);

impl ScratchDirectory {
    pub fn new(parent: &Path) -> io::Result<Self> {
        let path = parent.join(format!("beff-raw-fio-{}", std::process::id()));
        fs::create_dir(&path).map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", path.display())))?;
        // Both sides use the same path.
        Ok(Self(path.canonicalize()?))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Creates the file that rewrites and reads of both sides share: written once, so that its physical location is the same for both,
    /// after preallocation by the policy of the row.
    pub fn create_base_file(&self, path: &Path, bytes: u64, policy: PreallocationPolicy) -> io::Result<()> {
        let mut step = vec![0; WRITE_BYTES];
        fill_random(&mut step);
        let mut file = File::create_new(path)?;
        match policy {
            PreallocationPolicy::None => {}
            PreallocationPolicy::Size => file.set_len(bytes)?,
            PreallocationPolicy::Default | PreallocationPolicy::Native | PreallocationPolicy::Zeros => {
                posix_fallocate(&file, 0, bytes as i64)?
            }
        }
        let mut left = bytes;
        while left > 0 {
            let now = left.min(WRITE_BYTES as u64);
            file.write_all(&step[..now as usize])?;
            left -= now;
        }
        file.sync_all()
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        if let Err(e) = fs::remove_dir_all(&self.0) {
            eprintln!("{} could not be removed: {e}", self.0.display());
        }
    }
}

/// Fills a buffer with bytes that neither compress nor repeat within a block.
pub fn fill_random(bytes: &mut [u8]) {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    for word in bytes.chunks_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        word.copy_from_slice(&state.to_le_bytes()[..word.len()]);
    }
}

/// Reads a file through the page cache, so that its pages are resident.
pub fn populate_page_cache(path: &Path) -> io::Result<()> {
    io::copy(&mut File::open(path)?, &mut io::sink()).map(drop)
}

/// Writes back and drops the pages of a file. The device traffic of a later read shows that it worked.
pub fn drop_page_cache(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    file.sync_all()?;
    posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED).map_err(io::Error::from)
}
