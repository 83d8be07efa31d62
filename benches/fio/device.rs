//! Traffic of the block device below a directory.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::sys::stat::{major, minor};

/// Sector size in /proc/diskstats, independent of the device.
const SECTOR_BYTES: u64 = 512;

#[derive(Debug)]
pub struct DiskDevice {
    pub name: String,
    number: (i32, i32),
}

/// Bytes and requests after merging, of all users of the device.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiskTraffic {
    pub bytes: u64,
    pub requests: u64,
}

#[derive(Clone, Copy, Debug)]
pub struct DiskCounters {
    read: DiskTraffic,
    written: DiskTraffic,
}

impl DiskDevice {
    /// Returns the device of `path` if the kernel has counters of it.
    pub fn of(path: &Path) -> Option<Self> {
        let number = std::fs::metadata(path).ok()?.dev();
        let number = (i32::try_from(major(number)).ok()?, i32::try_from(minor(number)).ok()?);
        let stats = procfs::diskstats().ok()?;
        let name = stats.into_iter().find(|s| (s.major, s.minor) == number)?.name;
        Some(Self { name, number })
    }

    pub fn counters(&self) -> Option<DiskCounters> {
        let stats = procfs::diskstats().ok()?;
        let s = stats.into_iter().find(|s| (s.major, s.minor) == self.number)?;
        Some(DiskCounters {
            read: DiskTraffic { bytes: s.sectors_read * SECTOR_BYTES, requests: s.reads },
            written: DiskTraffic { bytes: s.sectors_written * SECTOR_BYTES, requests: s.writes },
        })
    }
}

impl DiskCounters {
    /// Traffic of reads, or of writes, since `earlier`.
    pub fn since(&self, earlier: &Self, read: bool) -> DiskTraffic {
        let (now, then) = if read { (self.read, earlier.read) } else { (self.written, earlier.written) };
        DiskTraffic {
            bytes: now.bytes.saturating_sub(then.bytes),
            requests: now.requests.saturating_sub(then.requests),
        }
    }
}

impl DiskTraffic {
    pub fn mean_request_bytes(&self) -> f64 {
        self.bytes as f64 / self.requests.max(1) as f64
    }
}
