//! What the block device below a directory was asked for.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::sys::stat::{major, minor};

/// Sectors of /proc/diskstats, whatever the device uses.
const SECTOR_BYTES: u64 = 512;

/// A block device.
#[derive(Debug)]
pub struct Device {
    pub name: String,
    number: (i32, i32),
}

/// Bytes and requests, after merging, of everybody who uses the device.
#[derive(Clone, Copy, Debug, Default)]
pub struct Traffic {
    pub bytes: u64,
    pub requests: u64,
}

/// The counters of a device.
#[derive(Clone, Copy, Debug)]
pub struct Counters {
    read: Traffic,
    written: Traffic,
}

impl Device {
    /// The device that holds `path`, if the kernel counts it.
    pub fn of(path: &Path) -> Option<Self> {
        let number = std::fs::metadata(path).ok()?.dev();
        let number = (i32::try_from(major(number)).ok()?, i32::try_from(minor(number)).ok()?);
        let stats = procfs::diskstats().ok()?;
        let name = stats.into_iter().find(|s| (s.major, s.minor) == number)?.name;
        Some(Self { name, number })
    }

    /// The counters now.
    pub fn traffic(&self) -> Option<Counters> {
        let stats = procfs::diskstats().ok()?;
        let s = stats.into_iter().find(|s| (s.major, s.minor) == self.number)?;
        Some(Counters {
            read: Traffic { bytes: s.sectors_read * SECTOR_BYTES, requests: s.reads },
            written: Traffic { bytes: s.sectors_written * SECTOR_BYTES, requests: s.writes },
        })
    }
}

impl Counters {
    /// What was read, or written, since `earlier`.
    pub fn since(&self, earlier: &Self, read: bool) -> Traffic {
        let (now, then) = if read { (self.read, earlier.read) } else { (self.written, earlier.written) };
        Traffic { bytes: now.bytes.saturating_sub(then.bytes), requests: now.requests.saturating_sub(then.requests) }
    }
}

impl Traffic {
    /// Bytes of one request.
    pub fn mean_request_bytes(&self) -> f64 {
        self.bytes as f64 / self.requests.max(1) as f64
    }
}
