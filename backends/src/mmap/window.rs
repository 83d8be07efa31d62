//! The part of the file that is mapped now.
//!
//! A window slides over the pattern's range: what a rank keeps mapped, with its page tables, stays bounded however long the
//! file is, and the cost of unmapping falls into the pattern that caused it.

use std::fs::File;
use std::path::Path;

use memmap2::{MmapOptions, MmapRaw};

use super::sigbus::Watch;
use crate::error::Cause;
use crate::{BackendError, Direction, Pattern, Result};

/// Bytes of the file mapped at once (more if a chunk is longer): unmapping it costs little beside filling it.
pub const WINDOW_BYTES: u64 = 256 << 20;

/// Name of the transfers in errors.
pub(super) fn operation(direction: Direction) -> &'static str {
    match direction {
        Direction::Write => "memcpy into mapping",
        Direction::Read => "memcpy out of mapping",
    }
}

/// A mapping of `start .. start + map.len()`, of which all below `usable_end` is also inside the file.
#[derive(Debug)]
pub(super) struct Window {
    direction: Direction,
    /// Bytes of every place that is asked for.
    chunk_bytes: u64,
    /// End of the last chunk the pattern may come to.
    pattern_end: u64,
    map: MmapRaw,
    start: u64,
    usable_end: u64,
}

impl Window {
    /// Maps the beginning of the pattern; nothing is usable before the first look at the length of the file.
    pub(super) fn new(
        pattern: &Pattern,
        direction: Direction,
        file: &File,
        watch: &Watch,
        path: &Path,
    ) -> Result<Self> {
        let chunks = pattern.max_calls.max(1) * pattern.chunks_per_call;
        let pattern_end = pattern.chunk_offset(chunks - 1) + pattern.chunk_bytes;
        let start = pattern.base_bytes;
        let map = map(file, direction, start, length(start, pattern.chunk_bytes, pattern_end), path)?;
        watch.mapped(map.as_mut_ptr() as usize, map.len(), start);
        Ok(Self { direction, chunk_bytes: pattern.chunk_bytes, pattern_end, map, start, usable_end: 0 })
    }

    /// What it was made for; a window for reading cannot be written to.
    pub(super) fn direction(&self) -> Direction {
        self.direction
    }

    /// Address of the chunk at `offset`: at least one chunk behind it is mapped and inside the file, until the next
    /// call.
    ///
    /// # Errors
    /// The chunk is not inside the file, or cannot be mapped.
    #[inline]
    pub(super) fn place(&mut self, offset: u64, file: &File, watch: &Watch, path: &Path) -> Result<*mut u8> {
        if offset < self.start || offset + self.chunk_bytes > self.usable_end {
            self.move_to(offset, file, watch, path)?;
        }
        // Below the length of the mapping, which is a usize.
        Ok(self.map.as_mut_ptr().wrapping_add((offset - self.start) as usize))
    }

    #[cold]
    fn move_to(&mut self, offset: u64, file: &File, watch: &Watch, path: &Path) -> Result<()> {
        let file_bytes = file.metadata().map_err(|e| BackendError::from_io("fstat", path, None, &e))?.len();
        let end = offset + self.chunk_bytes;
        if end > file_bytes {
            return Err(self.beyond_the_end(offset, file_bytes, path));
        }
        if offset < self.start || end > self.mapped_end() {
            let map = map(file, self.direction, offset, length(offset, self.chunk_bytes, self.pattern_end), path)?;
            // The old one must not be told of when it is gone, the new one not before it is there.
            watch.unmapped();
            (self.map, self.start) = (map, offset);
            watch.mapped(self.map.as_mut_ptr() as usize, self.map.len(), offset);
        }
        self.usable_end = self.mapped_end().min(file_bytes);
        Ok(())
    }

    fn mapped_end(&self) -> u64 {
        self.start + self.map.len() as u64
    }

    fn beyond_the_end(&self, offset: u64, file_bytes: u64, path: &Path) -> BackendError {
        // A store moves nothing, a read as much as pread would.
        let (got, why) = match self.direction {
            Direction::Read => (file_bytes.saturating_sub(offset), ""),
            Direction::Write => (0, ": no room was made for this batch, or the file was truncated meanwhile"),
        };
        let error = BackendError::short(operation(self.direction), path, offset, self.chunk_bytes, got);
        BackendError { text: format!("the file ends at {file_bytes}{why}"), ..error }
    }
}

/// Bytes to map from `offset` on.
fn length(offset: u64, chunk_bytes: u64, pattern_end: u64) -> u64 {
    WINDOW_BYTES.min(pattern_end.saturating_sub(offset)).max(chunk_bytes)
}

/// memmap2 begins at the page of `offset` and gives the address of `offset` itself.
fn map(file: &File, direction: Direction, offset: u64, len: u64, path: &Path) -> Result<MmapRaw> {
    let mut options = MmapOptions::new();
    options.offset(offset).len(usize::try_from(len).unwrap_or(usize::MAX));
    let made = match direction {
        Direction::Write => options.map_raw(file),
        Direction::Read => options.map_raw_read_only(file),
    };
    made.map_err(|e| {
        let (cause, next) = match e.raw_os_error() {
            Some(libc::ENOMEM) => (
                Some(Cause::Unsupported),
                "; raise the limit of the address space (ulimit -v) or of mappings (vm.max_map_count)",
            ),
            Some(libc::ENODEV | libc::EINVAL) => {
                (Some(Cause::Unsupported), "; this file system has no shared mappings: leave mmap out")
            }
            _ => (None, ""),
        };
        let error = BackendError::from_io("mmap", path, Some(offset), &e);
        let text = format!("cannot map {len} bytes: {}{next}", error.text);
        BackendError { cause: cause.unwrap_or(error.cause), text, ..error }
    })
}
