//! Sources of reads: storage or a cache.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::records::{PatternRecord, RunResult};
use crate::frame::records::AccessMethod;
use crate::frame::values::read_source::{ReadObservation, ReadOrigin};
use crate::frame::values::NULL_BACKEND;

/// Source of the bytes of one read pattern.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReadSource {
    /// Backend name.
    pub backend: String,
    /// Ranks of the partition.
    pub ranks: u64,
    /// Pattern type, 0 to 4.
    pub pattern_type: PatternType,
    /// Pattern number, 0 to 42.
    pub pattern: u8,
    /// Bytes all ranks read.
    pub moved_bytes: u64,
    /// Of these, bytes that came from storage; None if unknown.
    pub storage_bytes: Option<u64>,
    /// Share that did not, 0 to 1; None if unknown.
    pub cache_share: Option<f64>,
    /// True for a cache rate: more than 10 % (mark `c`).
    pub cached: bool,
}

/// Sources of all reads that moved data, in the order of measurement.
#[must_use]
pub fn sources(result: &RunResult) -> Vec<ReadSource> {
    let of = |r: &PatternRecord| {
        let ReadOrigin { storage_bytes, cache_share, is_cached: cached } = source(result, r);
        ReadSource {
            backend: r.backend.clone(),
            ranks: r.ranks,
            pattern_type: r.pattern_type,
            pattern: r.pattern,
            moved_bytes: r.moved_bytes,
            storage_bytes,
            cache_share,
            cached,
        }
    };
    result.patterns.iter().filter(|r| has_source(r)).map(of).collect()
}

/// True for a read that moved bytes of files, whether its source is known or not.
#[must_use]
pub fn has_source(record: &PatternRecord) -> bool {
    record.access == AccessMethod::Read && record.backend != NULL_BACKEND && record.moved_bytes > 0
}

/// Share of the bytes read that did not come from storage, 0 to 1; None if unknown, or nothing was read.
#[must_use]
pub fn cache_share(result: &RunResult, record: &PatternRecord) -> Option<f64> {
    source(result, record).cache_share
}

/// Bytes of a read that came from storage, at most those it moved; None if unknown, or nothing was read.
#[must_use]
pub fn storage_bytes(result: &RunResult, record: &PatternRecord) -> Option<u64> {
    source(result, record).storage_bytes
}

fn source(result: &RunResult, record: &PatternRecord) -> ReadOrigin {
    let reading = ReadObservation {
        storage: &result.manifest.storage,
        evidence: &record.evidence,
        moved_bytes: record.moved_bytes,
        counted_bytes: record.storage_read_bytes,
        direct: record.direct,
    };
    if has_source(record) {
        reading.source()
    } else {
        ReadOrigin::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::values::fixture::full_run;
    use crate::frame::records::{DeviceTraffic, Evidence};

    /// A read of 1000 bytes: bytes counted by the kernel, by devices, and resident before.
    fn share(fs_type: &str, counted: Option<u64>, devices: &[u64], resident: Option<u64>) -> Option<f64> {
        let mut result = full_run();
        result.manifest.storage.fs_type = fs_type.into();
        let mut record = result.patterns.iter().find(|p| p.access == AccessMethod::Read).unwrap().clone();
        record.moved_bytes = 1000;
        record.storage_read_bytes = counted;
        let device = |(number, &read_bytes): (usize, &u64)| DeviceTraffic {
            device: format!("d{number}"),
            read_bytes,
            written_bytes: 0,
            read_requests: 1,
            write_requests: 0,
        };
        record.evidence = Evidence {
            devices: devices.iter().enumerate().map(device).collect(),
            resident_before_bytes: resident,
            range_bytes: 1000,
            ..Evidence::default()
        };
        cache_share(&result, &record)
    }

    #[test]
    fn the_least_of_process_and_devices_came_from_storage() {
        assert_eq!(share("ext4", Some(1000), &[], None), Some(0.0));
        assert_eq!(share("ext4", Some(0), &[], None), Some(1.0));
        assert_eq!(share("ext4", Some(250), &[5000], None), Some(0.75), "others read as well");
        assert_eq!(share("ext4", Some(1000), &[1000, 0], None), Some(1.0), "a loop device whose file is cached");
        assert_eq!(share("ext4", Some(4096), &[4096], Some(1000)), Some(0.0), "read-ahead and whole pages");
    }

    #[test]
    fn without_the_count_of_the_process_residency_is_the_estimate() {
        assert_eq!(share("ext4", None, &[], Some(1000)), Some(1.0));
        assert_eq!(share("ext4", None, &[2000], Some(0)), Some(0.0));
        assert_eq!(share("ext4", None, &[0], Some(0)), Some(1.0));
        assert_eq!(share("ext4", None, &[], None), None);
        assert_eq!(share("ext4", None, &[2000], None), None, "device counts include other processes");
        assert_eq!(share("ext4", None, &[20], None), Some(0.98), "but they are an upper bound");
    }

    #[test]
    fn a_count_that_means_nothing_is_not_used() {
        assert_eq!(share("nfs4", Some(0), &[], None), Some(1.0));
        assert_eq!(share("nfs4", Some(1000), &[], Some(0)), None, "from the memory of the server?");
        assert_eq!(share("lustre", Some(0), &[], Some(500)), None);
        assert_eq!(share("fuse.mergerfs", Some(1000), &[], Some(0)), None);
        assert_eq!(share("zfs", Some(1000), &[], None), None);
        assert_eq!(share("tmpfs", Some(0), &[], None), Some(1.0));
    }

    #[test]
    fn direct_reads_do_not_come_from_the_page_cache() {
        let mut result = full_run();
        let at = result.patterns.iter().position(|p| p.access == AccessMethod::Read).unwrap();
        result.patterns[at].storage_read_bytes = None;
        result.patterns[at].evidence =
            Evidence { resident_before_bytes: Some(8), range_bytes: 8, ..Evidence::default() };
        assert_eq!(cache_share(&result, &result.patterns[at]), Some(1.0));
        result.patterns[at].direct = Some(true);
        assert_eq!(cache_share(&result, &result.patterns[at]), Some(0.0));
    }

    #[test]
    fn writes_and_the_null_backend_have_no_source() {
        let mut result = full_run();
        let reads = result.patterns.iter().filter(|p| p.access == AccessMethod::Read).count();
        assert_eq!(sources(&result).len(), reads);
        assert!(sources(&result).iter().all(|s| s.cache_share == Some(0.0) && !s.cached));
        result.patterns.iter_mut().for_each(|p| p.backend = NULL_BACKEND.into());
        assert_eq!(sources(&result), []);
    }
}
