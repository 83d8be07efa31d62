//! Where a read came from: storage or a cache.
//!
//! Bytes from storage are the least of what the kernel counts for the ranks and of what passed each level of devices: other programs
//! can only make the devices' numbers larger, a cache below (the file of a loop device) only smaller. Behind a server (nfs, FUSE, the
//! host of a virtual machine) is a cache that nobody here sees: there a read can be known to be cached, never to be from storage.
//! Where none of that is known the answer is "not known", never "storage".

use crate::frame::records::{Evidence, StorageRecord};
use crate::frame::system::keeper::{counts_all, is_no_disk, keeper, Keeper};

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
            asked_bytes: a.asked_bytes.saturating_add(b.asked_bytes),
            storage_bytes: a.storage_bytes.saturating_add(b.storage_bytes),
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
    /// None of what is known can be too small: it is the least of what the kernel fetched for the ranks, of what the page cache
    /// did not have, and of what passed the devices below the files (others can only make it larger, a cache below, such as
    /// that of a loop device's file, only smaller). So it proves a cache where it is small. That it is large proves storage
    /// only where nothing but disks is behind the caches that were looked into.
    fn storage_bytes(&self) -> Option<u64> {
        let own = self.own_bytes();
        let least = [own, self.evidence.device_read_bytes()].into_iter().flatten().min()?.min(self.moved_bytes);
        let is_known = own.is_some() && self.ends_at_disks();
        (is_known || share_not_from(least, self.moved_bytes) > CACHE_SHARE).then_some(least)
    }

    /// What reached this host for the ranks and for nobody else.
    fn own_bytes(&self) -> Option<u64> {
        match (self.keeper(), self.fetched_bytes()) {
            (_, Some(fetched)) => Some(fetched),
            (Keeper::Memory, None) => Some(0),
            (Keeper::Devices, None) => self.estimate(),
            // A page cache without pages says nothing: pages go when a file is opened, or never get there.
            (Keeper::Server | Keeper::Unknown, None) => None,
        }
    }

    /// What is not known by its name but lies on devices that are seen is a file system like others.
    fn keeper(&self) -> Keeper {
        match keeper(&self.storage.fs_type) {
            Keeper::Unknown if !self.evidence.devices.is_empty() => Keeper::Devices,
            known => known,
        }
    }

    /// True if there is no cache that nobody looks into: of a server, of the file of a loop device, of a layer below.
    fn ends_at_disks(&self) -> bool {
        let source = self.storage.source.strip_prefix("/dev/").unwrap_or_default();
        let disks = || {
            if self.evidence.devices.is_empty() {
                !is_no_disk(source)
            } else {
                !self.evidence.bottoms().any(is_no_disk)
            }
        };
        self.keeper() == Keeper::Devices && disks()
    }

    /// What the kernel counted for the ranks, where it counts all.
    fn fetched_bytes(&self) -> Option<u64> {
        let has_option = |name: &str| self.storage.mount_options.split(',').any(|option| option.starts_with(name));
        // With DAX storage is read as memory, without being counted.
        let counts = counts_all(&self.storage.fs_type) || self.keeper() == Keeper::Devices;
        self.counted_bytes.filter(|_| counts && !has_option("dax"))
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
    use crate::frame::records::DeviceTraffic;

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

    fn on(fs_type: &str, counted_bytes: Option<u64>, evidence: &Evidence) -> Source {
        let storage = StorageRecord { fs_type: fs_type.into(), ..storage() };
        Reading { storage: &storage, evidence, moved_bytes: 1000, counted_bytes, direct: None }.source()
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

    /// An empty page cache and a full count are what a read from the server's memory looks like.
    #[test]
    fn behind_a_server_nothing_is_ever_from_storage() {
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
                    let source = on(fs_type, counted, &evidence);
                    assert_eq!(source, Source::default(), "{fs_type} {counted:?} {evidence:?}");
                }
            }
        }
        let direct = Reading {
            storage: &StorageRecord { fs_type: "fuse.mergerfs".into(), ..storage() },
            evidence: &resident(0),
            moved_bytes: 1000,
            counted_bytes: Some(1000),
            direct: Some(true),
        };
        assert_eq!(direct.source(), Source::default());
    }

    /// What the client had itself did not even come from the server.
    #[test]
    fn where_all_is_counted_a_small_count_is_a_cache() {
        assert_eq!(on("nfs4", Some(250), &resident(0)).cache_share, Some(0.75));
        assert_eq!(on("nfs", Some(0), &Evidence::default()).storage_bytes, Some(0));
        // The others do not count all ways of reading.
        assert_eq!(on("fuse.mergerfs", Some(0), &resident(1000)), Source::default());
        assert_eq!(on("lustre", Some(0), &resident(1000)), Source::default());
    }

    #[test]
    fn file_systems_over_others_and_unknown_ones_are_not_known() {
        for fs_type in ["overlay", "zfs", "newfs"] {
            assert_eq!(on(fs_type, Some(1000), &resident(0)), Source::default(), "{fs_type}");
            assert_eq!(on(fs_type, None, &resident(0)), Source::default(), "{fs_type}");
        }
        assert_eq!(on("newfs", Some(1000), &devices(&[("sda", 1000)])).cache_share, Some(0.0), "its disk is seen");
        assert_eq!(on("fuseblk", Some(1000), &devices(&[("sda", 1000)])), Source::default(), "whose bytes are they?");
        assert_eq!(on("fuseblk", Some(1000), &devices(&[("sda", 0)])).cache_share, Some(1.0));
    }

    #[test]
    fn what_is_behind_the_last_device_counts() {
        let share = |names: &[(&str, u64)]| on("ext4", Some(1000), &devices(names)).cache_share;
        assert_eq!(share(&[("loop0", 1000)]), None, "its file may lie in memory or on a server");
        assert_eq!(share(&[("loop0", 1000), ("sda", 1000)]), Some(0.0));
        assert_eq!(share(&[("nbd0", 1000)]), None);
        assert_eq!(share(&[("loop0", 10)]), Some(0.99));
        assert_eq!(share(&[("a:sda", 500), ("b:zram0", 500)]), None);
    }

    #[test]
    fn files_in_memory_are_read_from_there() {
        assert_eq!(on("tmpfs", None, &Evidence::default()).cache_share, Some(1.0));
        assert_eq!(on("ramfs", Some(0), &Evidence::default()).cache_share, Some(1.0));
        assert_eq!(on("tmpfs", Some(1000), &Evidence::default()), Source::default(), "swapped, on what?");
    }
}
