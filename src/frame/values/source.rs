//! Where a read came from: storage or a cache.
//!
//! Bytes from storage are the least of what the kernel counts for the ranks and of what passed each level of devices: other programs
//! can only make the devices' numbers larger, a cache below (the file of a loop device) only smaller. Where none of that is known
//! the answer is "not known", never "storage".

use crate::frame::records::{Evidence, StorageRecord};
use crate::frame::system::storage::is_in_memory;
use crate::frame::system::traffic::is_remote;

/// Share of a read that must come from a cache before it is called a cache figure.
pub const CACHE_SHARE: f64 = 0.10;

/// Where the bytes of one read came from.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Source {
    /// Bytes from storage; None: not known.
    pub storage_bytes: Option<u64>,
    /// Share that did not come from there, 0 to 1.
    pub cache_share: Option<f64>,
    /// True if that is a cache figure.
    pub cached: bool,
}

/// Reads that are cache figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cached {
    /// How many.
    pub reads: u64,
    /// Bytes they asked for.
    pub asked_bytes: u64,
    /// Bytes of that from storage.
    pub storage_bytes: u64,
}

impl Cached {
    /// Of reads as (bytes asked for, of these from storage); None if none of them is a cache figure.
    pub(crate) fn of(reads: impl Iterator<Item = (u64, u64)>) -> Option<Self> {
        let is_cached = |&(asked, storage): &(u64, u64)| share_not_from(storage, asked) > CACHE_SHARE;
        let one = |(asked_bytes, storage_bytes)| Self { reads: 1, asked_bytes, storage_bytes };
        reads.filter(is_cached).map(one).reduce(|a, b| Self {
            reads: a.reads + b.reads,
            asked_bytes: a.asked_bytes + b.asked_bytes,
            storage_bytes: a.storage_bytes + b.storage_bytes,
        })
    }
}

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
    pub(crate) fn source(&self) -> Source {
        let storage_bytes = self.storage_bytes();
        let cache_share = storage_bytes.map(|bytes| share_not_from(bytes, self.moved_bytes));
        Source { storage_bytes, cache_share, cached: cache_share.is_some_and(|share| share > CACHE_SHARE) }
    }

    /// Bytes of the read that came from storage, at most those it moved: read-ahead and whole pages fetch more.
    ///
    /// It is the least of what the kernel fetched for the ranks and of what passed the devices below the files: others
    /// can only make the devices' numbers larger, and a cache below (a loop device's file) only smaller. Where the
    /// kernel does not count for processes, what was in the page cache before the read is taken as what came from there.
    fn storage_bytes(&self) -> Option<u64> {
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
fn share_not_from(storage_bytes: u64, moved_bytes: u64) -> f64 {
    1.0 - storage_bytes as f64 / moved_bytes as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::records::fixture::storage;

    /// A read of 1000 bytes of which the kernel counted so many.
    fn source(counted_bytes: u64) -> Source {
        let storage = storage();
        let evidence = Evidence::default();
        let reading = Reading {
            storage: &storage,
            evidence: &evidence,
            moved_bytes: 1000,
            counted_bytes: Some(counted_bytes),
            direct: None,
        };
        reading.source()
    }

    #[test]
    fn more_than_ten_percent_from_a_cache_is_a_cache_figure() {
        assert!(!source(1000).cached && !source(901).cached, "9.9 %");
        assert!(source(899).cached && source(0).cached, "10.1 %");
        assert_eq!(source(750).cache_share, Some(0.25));
    }

    #[test]
    fn sums_have_the_cache_figures_alone() {
        let reads = [(1000, 1000), (1000, 901), (1000, 899), (500, 100)];
        let all = Cached { reads: 2, asked_bytes: 1500, storage_bytes: 999 };
        assert_eq!(Cached::of(reads.into_iter()), Some(all));
        assert_eq!(Cached::of([(1000, 901)].into_iter()), None);
    }

    /// A file system that counts some ways of reading or none: from nine tenths on the count is believed.
    #[test]
    fn a_count_of_nearly_all_bytes_is_one() {
        let storage = StorageRecord { fs_type: "lustre".into(), ..storage() };
        let evidence = Evidence { resident_before_bytes: Some(1000), range_bytes: 1000, ..Evidence::default() };
        let of = |counted| {
            let counted_bytes = Some(counted);
            Reading { storage: &storage, evidence: &evidence, moved_bytes: 1000, counted_bytes, direct: None }.source()
        };
        assert_eq!((of(901).storage_bytes, of(899).storage_bytes), (Some(901), Some(0)));
    }
}
