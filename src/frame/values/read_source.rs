//! Origin of reads: storage or a cache.
//!
//! Bytes from storage are the minimum of the bytes that the kernel counts for the ranks and of the traffic of each level of devices: other
//! programs can only increase the devices' traffic, a cache below (for the file of a loop device) can only decrease it. A server (nfs,
//! FUSE, the host of a virtual machine) has a cache that is not visible to the client: such a read can be proven to be cached, but never to
//! come from storage. If none of this is available, the origin is unknown, never "storage".

use crate::frame::records::{Evidence, StorageRecord};
use crate::frame::system::backing_store::{backing_store, has_complete_read_count, is_virtual_device, BackingStore};

/// Share of cached bytes above which a read counts as cached.
pub const CACHED_THRESHOLD: f64 = 0.10;

/// Origin of the bytes of one read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ReadOrigin {
    /// Bytes from storage; None if unknown.
    pub storage_bytes: Option<u64>,
    /// Share that did not come from storage, 0 to 1.
    pub cache_share: Option<f64>,
    /// True if the read counts as cached.
    pub is_cached: bool,
}

/// Reads that count as cached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CachedReads {
    /// Number of reads.
    pub reads: u64,
    /// Requested bytes.
    pub requested_bytes: u64,
    /// Part of them from storage.
    pub storage_bytes: u64,
}

impl CachedReads {
    /// Sums reads given as (requested bytes, bytes from storage); None if none counts as cached.
    pub(crate) fn of(reads: impl Iterator<Item = (u64, u64)>) -> Option<Self> {
        let is_cached = |&(asked, storage): &(u64, u64)| cache_share(storage, asked) > CACHED_THRESHOLD;
        let one = |(asked_bytes, storage_bytes)| Self { reads: 1, requested_bytes: asked_bytes, storage_bytes };
        reads.filter(is_cached).map(one).reduce(|a, b| Self {
            reads: a.reads + b.reads,
            requested_bytes: a.requested_bytes.saturating_add(b.requested_bytes),
            storage_bytes: a.storage_bytes.saturating_add(b.storage_bytes),
        })
    }
}

/// A read of any benchmark whose origin is determined.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadObservation<'a> {
    /// File system of the files.
    pub storage: &'a StorageRecord,
    /// Evidence recorded for it.
    pub evidence: &'a Evidence,
    /// Bytes it moved, all ranks; not 0.
    pub moved_bytes: u64,
    /// Bytes counted by the kernel for the ranks, if available.
    pub counted_bytes: Option<u64>,
    /// True if the page cache was bypassed.
    pub direct: Option<bool>,
}

impl ReadObservation<'_> {
    pub(crate) fn source(&self) -> ReadOrigin {
        let storage_bytes = self.storage_bytes();
        let cache_share = storage_bytes.map(|bytes| cache_share(bytes, self.moved_bytes));
        ReadOrigin { storage_bytes, cache_share, is_cached: cache_share.is_some_and(|share| share > CACHED_THRESHOLD) }
    }

    /// Bytes of the read that came from storage, at most the bytes moved: read-ahead and whole pages fetch more.
    ///
    /// The result is an upper bound: the minimum of the bytes fetched by the kernel for the ranks, the bytes not in the page cache, and the
    /// traffic of the devices below the files (others can only increase it, a cache below, such as that of a loop device's file,
    /// only decrease it). A small value therefore proves a cache. A large value proves storage only if nothing but disks is below
    /// the examined caches.
    fn storage_bytes(&self) -> Option<u64> {
        let own = self.host_bytes();
        let least = [own, self.evidence.device_read_bytes()].into_iter().flatten().min()?.min(self.moved_bytes);
        let is_known = own.is_some() && self.is_disk_backed();
        (is_known || cache_share(least, self.moved_bytes) > CACHED_THRESHOLD).then_some(least)
    }

    /// Bytes that reached this host for the ranks only.
    fn host_bytes(&self) -> Option<u64> {
        match (self.keeper(), self.counted_read_bytes()) {
            (_, Some(fetched)) => Some(fetched),
            (BackingStore::Memory, None) => Some(0),
            (BackingStore::Devices, None) => self.estimate_from_residency(),
            // An empty page cache proves nothing: pages are dropped when a file is opened, or are never cached.
            (BackingStore::Server | BackingStore::Unknown, None) => None,
        }
    }

    /// Treats an unknown file system on visible devices like other local ones.
    fn keeper(&self) -> BackingStore {
        match backing_store(&self.storage.fs_type) {
            BackingStore::Unknown if !self.evidence.devices.is_empty() => BackingStore::Devices,
            known => known,
        }
    }

    /// True if there is no unexamined cache: of a server, of the file of a loop device, of a layer below.
    fn is_disk_backed(&self) -> bool {
        let source = self.storage.source.strip_prefix("/dev/").unwrap_or_default();
        let disks = || {
            if self.evidence.devices.is_empty() {
                !is_virtual_device(source)
            } else {
                !self.evidence.bottom_devices().any(is_virtual_device)
            }
        };
        self.keeper() == BackingStore::Devices && disks()
    }

    /// Bytes counted by the kernel for the ranks, where it counts all reads.
    fn counted_read_bytes(&self) -> Option<u64> {
        let has_option = |name: &str| self.storage.mount_options.split(',').any(|option| option.starts_with(name));
        // With DAX, storage is read as memory and not counted.
        let counts = has_complete_read_count(&self.storage.fs_type) || self.keeper() == BackingStore::Devices;
        self.counted_bytes.filter(|_| counts && !has_option("dax"))
    }

    /// Estimates the bytes from the page-cache residency before the read.
    fn estimate_from_residency(&self) -> Option<u64> {
        // Direct reads bypass the page cache.
        let resident = self.evidence.resident_before_share()?;
        let resident = if self.direct == Some(true) { 0.0 } else { resident };
        Some(((1.0 - resident) * self.moved_bytes as f64) as u64)
    }
}

/// Share of a read of `moved_bytes` that did not come from storage, 0 to 1.
fn cache_share(storage_bytes: u64, moved_bytes: u64) -> f64 {
    1.0 - storage_bytes as f64 / moved_bytes as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::records::fixture::storage;
    use crate::frame::records::DeviceTraffic;

    /// A read of 1000 bytes of which the kernel counted `counted_bytes`.
    fn source(counted_bytes: u64) -> ReadOrigin {
        let storage = storage();
        let evidence = Evidence::default();
        let reading = ReadObservation {
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
        assert!(!source(1000).is_cached && !source(901).is_cached, "9.9 %");
        assert!(source(899).is_cached && source(0).is_cached, "10.1 %");
        assert_eq!(source(750).cache_share, Some(0.25));
    }

    #[test]
    fn only_cached_reads_are_summed() {
        let reads = [(1000, 1000), (1000, 901), (1000, 899), (500, 100)];
        let all = CachedReads { reads: 2, requested_bytes: 1500, storage_bytes: 999 };
        assert_eq!(CachedReads::of(reads.into_iter()), Some(all));
        assert_eq!(CachedReads::of([(1000, 901)].into_iter()), None);
    }

    fn source_on(fs_type: &str, counted_bytes: Option<u64>, evidence: &Evidence) -> ReadOrigin {
        let storage = StorageRecord { fs_type: fs_type.into(), ..storage() };
        ReadObservation { storage: &storage, evidence, moved_bytes: 1000, counted_bytes, direct: None }.source()
    }

    fn resident(resident_bytes: u64) -> Evidence {
        Evidence { resident_before_bytes: Some(resident_bytes), range_bytes: 1000, ..Evidence::default() }
    }

    fn devices(names: &[(&str, u64)]) -> Evidence {
        let device = |&(device, read_bytes): &(&str, u64)| DeviceTraffic {
            device: device.into(),
            read_bytes,
            written_bytes: 0,
            read_requests: 1,
            write_requests: 1,
        };
        Evidence { devices: names.iter().map(device).collect(), ..resident(0) }
    }

    /// A read from the server's memory also has an empty page cache and a full count.
    #[test]
    fn reads_from_a_server_are_never_from_storage() {
        for fs_type in [
            "fuse.mergerfs",
            "fuse",
            "fuse.glusterfs",
            "nfs4",
            "ceph",
            "lustre",
            "9p",
            "cifs",
            "beegfs",
            "gpfs",
            "virtiofs",
        ] {
            for counted in [None, Some(1000), Some(5000)] {
                for evidence in [Evidence::default(), resident(0), resident(1000)] {
                    let source = source_on(fs_type, counted, &evidence);
                    assert_eq!(source, ReadOrigin::default(), "{fs_type} {counted:?} {evidence:?}");
                }
            }
        }
        let direct = ReadObservation {
            storage: &StorageRecord { fs_type: "fuse.mergerfs".into(), ..storage() },
            evidence: &resident(0),
            moved_bytes: 1000,
            counted_bytes: Some(1000),
            direct: Some(true),
        };
        assert_eq!(direct.source(), ReadOrigin::default());
    }

    #[test]
    fn a_small_complete_count_proves_a_cache() {
        assert_eq!(source_on("nfs4", Some(250), &resident(0)).cache_share, Some(0.75));
        assert_eq!(source_on("nfs", Some(0), &Evidence::default()).storage_bytes, Some(0));
        // Other file systems do not count all kinds of reads.
        assert_eq!(source_on("fuse.mergerfs", Some(0), &resident(1000)), ReadOrigin::default());
        assert_eq!(source_on("lustre", Some(0), &resident(1000)), ReadOrigin::default());
    }

    #[test]
    fn file_systems_over_others_and_unknown_ones_are_not_known() {
        for fs_type in ["overlay", "zfs", "newfs"] {
            assert_eq!(source_on(fs_type, Some(1000), &resident(0)), ReadOrigin::default(), "{fs_type}");
            assert_eq!(source_on(fs_type, None, &resident(0)), ReadOrigin::default(), "{fs_type}");
        }
        assert_eq!(
            source_on("newfs", Some(1000), &devices(&[("sda", 1000)])).cache_share,
            Some(0.0),
            "its disk is visible"
        );
        assert_eq!(
            source_on("fuseblk", Some(1000), &devices(&[("sda", 1000)])),
            ReadOrigin::default(),
            "bytes of others?"
        );
        assert_eq!(source_on("fuseblk", Some(1000), &devices(&[("sda", 0)])).cache_share, Some(1.0));
    }

    #[test]
    fn the_bottom_device_decides() {
        let share = |names: &[(&str, u64)]| source_on("ext4", Some(1000), &devices(names)).cache_share;
        assert_eq!(share(&[("loop0", 1000)]), None, "its file may be in memory or on a server");
        assert_eq!(share(&[("loop0", 1000), ("sda", 1000)]), Some(0.0));
        assert_eq!(share(&[("nbd0", 1000)]), None);
        assert_eq!(share(&[("loop0", 10)]), Some(0.99));
        assert_eq!(share(&[("a:sda", 500), ("b:zram0", 500)]), None);
    }

    #[test]
    fn files_in_memory_are_read_from_there() {
        assert_eq!(source_on("tmpfs", None, &Evidence::default()).cache_share, Some(1.0));
        assert_eq!(source_on("ramfs", Some(0), &Evidence::default()).cache_share, Some(1.0));
        assert_eq!(
            source_on("tmpfs", Some(1000), &Evidence::default()),
            ReadOrigin::default(),
            "swapped to unknown storage"
        );
    }
}
