//! The mapped part of the file.
//!
//! A window moves over the pattern's range: mapped bytes and page tables stay bounded for any file length, and the pattern that
//! maps them pays for the unmapping. Only a pattern with an order is mapped as a whole.

use std::fs::File;
use std::path::Path;

use memmap2::{MmapOptions, MmapRaw};

use super::sigbus::MappingRegistration;
use crate::error::FailureCause;
use crate::{AccessPattern, BackendError, Direction, Result};

/// Bytes mapped at once (more if a chunk is longer): unmapping costs little compared with filling.
pub const WINDOW_BYTES: u64 = 256 << 20;

/// Name of the transfers in errors.
pub(super) fn operation_name(direction: Direction) -> &'static str {
    match direction {
        Direction::Write => "memcpy into mapping",
        Direction::Read => "memcpy out of mapping",
    }
}

/// A mapping of `start .. start + map.len()`, of which all below `usable_end` is also inside the file.
#[derive(Debug)]
pub(super) struct MappedWindow {
    direction: Direction,
    chunk_bytes: u64,
    /// End of the pattern's last chunk.
    pattern_end: u64,
    map: MmapRaw,
    start: u64,
    usable_end: u64,
}

impl MappedWindow {
    /// Maps the beginning of the pattern; usable only after a check of the file length.
    pub(super) fn new(
        pattern: &AccessPattern,
        direction: Direction,
        file: &File,
        watch: &MappingRegistration,
        path: &Path,
    ) -> Result<Self> {
        let chunks = pattern.max_calls.max(1) * pattern.chunks_per_call;
        let pattern_end = pattern.chunk_offset(chunks - 1) + pattern.chunk_bytes;
        let start = pattern.base_bytes;
        // In another order the window would move with almost every call.
        let window_bytes = if pattern.order.is_some() { pattern_end - start } else { WINDOW_BYTES };
        let len = mapping_bytes(start, pattern.chunk_bytes, pattern_end, window_bytes);
        let map = map_range(file, direction, start, len, path)?;
        watch.set_mapping(map.as_mut_ptr() as usize, map.len(), start);
        Ok(Self { direction, chunk_bytes: pattern.chunk_bytes, pattern_end, map, start, usable_end: 0 })
    }

    /// A window for reading cannot be written to.
    pub(super) fn direction(&self) -> Direction {
        self.direction
    }

    /// Address of the chunk at `offset`, which is mapped and inside the file until the next call.
    ///
    /// # Errors
    /// The chunk is not inside the file, or cannot be mapped.
    #[inline]
    pub(super) fn address_of(
        &mut self,
        offset: u64,
        file: &File,
        watch: &MappingRegistration,
        path: &Path,
    ) -> Result<*mut u8> {
        if offset < self.start || offset + self.chunk_bytes > self.usable_end {
            self.remap(offset, file, watch, path)?;
        }
        // Below the length of the mapping, which is a usize.
        Ok(self.map.as_mut_ptr().wrapping_add((offset - self.start) as usize))
    }

    #[cold]
    fn remap(&mut self, offset: u64, file: &File, watch: &MappingRegistration, path: &Path) -> Result<()> {
        let file_bytes = file.metadata().map_err(|e| BackendError::from_io("fstat", path, None, &e))?.len();
        let end = offset + self.chunk_bytes;
        if end > file_bytes {
            return Err(self.end_of_file_error(offset, file_bytes, path));
        }
        if offset < self.start || end > self.mapped_end() {
            let map = map_range(
                file,
                self.direction,
                offset,
                mapping_bytes(offset, self.chunk_bytes, self.pattern_end, WINDOW_BYTES),
                path,
            )?;
            // Only an existing mapping may be registered.
            watch.clear_mapping();
            (self.map, self.start) = (map, offset);
            watch.set_mapping(self.map.as_mut_ptr() as usize, self.map.len(), offset);
        }
        self.usable_end = self.mapped_end().min(file_bytes);
        Ok(())
    }

    fn mapped_end(&self) -> u64 {
        self.start + self.map.len() as u64
    }

    fn end_of_file_error(&self, offset: u64, file_bytes: u64, path: &Path) -> BackendError {
        // A store moves nothing, a read as much as pread would.
        let (got, why) = match self.direction {
            Direction::Read => (file_bytes.saturating_sub(offset), ""),
            Direction::Write => (0, ": this batch was not preallocated, or the file was truncated meanwhile"),
        };
        let error = BackendError::short_transfer(operation_name(self.direction), path, offset, self.chunk_bytes, got);
        BackendError { text: format!("the file ends at {file_bytes}{why}"), ..error }
    }
}

fn mapping_bytes(offset: u64, chunk_bytes: u64, pattern_end: u64, window_bytes: u64) -> u64 {
    window_bytes.min(pattern_end.saturating_sub(offset)).max(chunk_bytes)
}

/// memmap2 maps whole pages and returns the address of `offset` itself.
fn map_range(file: &File, direction: Direction, offset: u64, len: u64, path: &Path) -> Result<MmapRaw> {
    let mut options = MmapOptions::new();
    options.offset(offset).len(usize::try_from(len).unwrap_or(usize::MAX));
    let mapping = match direction {
        Direction::Write => options.map_raw(file),
        Direction::Read => options.map_raw_read_only(file),
    };
    mapping.map_err(|e| {
        let (cause, next) = match e.raw_os_error() {
            Some(libc::ENOMEM) => (
                Some(FailureCause::Unsupported),
                "; raise the limit of the address space (ulimit -v) or of mappings (vm.max_map_count)",
            ),
            Some(libc::ENODEV | libc::EINVAL) => {
                (Some(FailureCause::Unsupported), "; this file system has no shared mappings: omit mmap")
            }
            _ => (None, ""),
        };
        let error = BackendError::from_io("mmap", path, Some(offset), &e);
        let text = format!("cannot map {len} bytes: {}{next}", error.text);
        BackendError { cause: cause.unwrap_or(error.cause), text, ..error }
    })
}
