//! Where a read came from: storage or a cache.

use crate::frame::records::{Evidence, StorageRecord};
use crate::frame::system::storage::is_in_memory;
use crate::frame::system::traffic::is_remote;

/// Share of a read that must come from a cache before it is called a cache figure.
pub const CACHE_SHARE: f64 = 0.10;

/// A read whose source is asked for, of any benchmark.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading<'a> {
    /// File system of the files.
    pub storage: &'a StorageRecord,
    /// What was seen around it.
    pub evidence: &'a Evidence,
    /// Bytes it moved, all ranks; not 0.
    pub moved_bytes: u64,
    /// What the kernel counted for the ranks, if it does.
    pub counted_bytes: Option<u64>,
    /// True if the page cache was bypassed.
    pub direct: Option<bool>,
}

impl Reading<'_> {
    /// Bytes that came from storage, see [`storage_bytes`].
    pub(crate) fn storage_bytes(&self) -> Option<u64> {
        let fetched = self.fetched_bytes().or_else(|| self.estimate())?;
        let devices = self.evidence.device_read_bytes().unwrap_or(u64::MAX);
        Some(fetched.min(devices).min(self.moved_bytes))
    }

    /// What the kernel counted for the ranks, where that means something.
    fn fetched_bytes(&self) -> Option<u64> {
        let counted = self.counted_bytes?;
        let storage = self.storage;
        let has_option = |name: &str| storage.mount_options.split(',').any(|option| option.starts_with(name));
        // zfs counts what it answers from its own cache too; with DAX storage is read as memory, without being counted.
        if storage.fs_type == "zfs" || has_option("dax") {
            return None;
        }
        // nfs counts like a disk. Others count some ways of reading or none: then only a large number says something.
        let is_exact =
            !is_remote(&storage.fs_type) || storage.fs_type.starts_with("nfs") || is_in_memory(&storage.fs_type);
        let is_enough = counted as f64 >= (1.0 - CACHE_SHARE) * self.moved_bytes as f64;
        (is_exact || is_enough).then_some(counted)
    }

    /// From what was in the page cache before the read.
    fn estimate(&self) -> Option<u64> {
        // Direct reads do not come from the page cache, whatever is in it.
        let resident = self.evidence.resident_before_share()?;
        let resident = if self.direct == Some(true) { 0.0 } else { resident };
        Some(((1.0 - resident) * self.moved_bytes as f64) as u64)
    }
}

/// Share of a read of `moved_bytes` that did not come from storage, 0 to 1.
pub(crate) fn share_not_from(storage_bytes: u64, moved_bytes: u64) -> f64 {
    1.0 - storage_bytes as f64 / moved_bytes as f64
}
