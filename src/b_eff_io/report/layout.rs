//! The classic arrangement of the results (rows = chunk sizes, columns = pattern types) and look-ups in the records.

use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::plan::patterns::number_at;
use crate::b_eff_io::records::{PatternRecord, RunResult, TypeRecord};
use crate::b_eff_io::values::ladder::{PatternComparison, TypeComparison};
use crate::b_eff_io::values::{Derived, PartitionValue, TypeValue};
use crate::frame::records::{AccessMethod, DeviceTraffic, Evidence};
use crate::frame::units;
use crate::frame::values::NULL_BACKEND;

/// Row names of the classic table, in the order of the 2.1 summary file.
pub const ROWS: [&str; 7] = ["1 kB", "1 kB+8", "32 kB", "32 kB+8", "1 MB", "1 MB+8", "M_PART"];

/// Chunk sizes of the rows; the last row is M_PART and depends on the partition.
pub const ROW_BYTES: [u64; 6] = [1024, 1032, 32_768, 32_776, 1_048_576, 1_048_584];

/// Pattern 2 (1 MB chunks, 2 MB per call) has no row of its own in the classic layout.
pub const PATTERN_OUTSIDE_TABLE: u8 = 2;

/// Caveat for values of release 2.1. The lines fit into the summary file.
pub const RELEASE_2_1_CAVEAT: [&str; 2] = [
    "The program of 2001 counts the deletion of its files as reading. Where it ran beside this one,",
    "that was 61 to 73 % of its read time, and its value about half of the one given here.",
];

/// Number of the pattern in row `row` (0 to 6) and column `pattern_type` (0 to 4) of the classic table: the pattern table of the paper
/// without warm-up, fill-up and pattern 2.
#[must_use]
pub fn classic_pattern(row: usize, pattern_type: PatternType) -> Option<u8> {
    /// Positions of the rows in the order of execution, which begins with the warm-up and M_PART.
    const POSITIONS: [usize; 7] = [4, 6, 3, 5, 2, 7, 1];
    POSITIONS.get(row).and_then(|&position| number_at(pattern_type, position))
}

/// Backends that move data: the others have no results, only costs.
pub fn storage_backends(result: &RunResult) -> impl Iterator<Item = &String> {
    result.config.backends.iter().filter(|backend| *backend != NULL_BACKEND)
}

/// Patterns of a backend on a partition, in the order of measurement.
pub fn patterns<'r>(result: &'r RunResult, backend: &'r str, ranks: u64) -> impl Iterator<Item = &'r PatternRecord> {
    result.patterns.iter().filter(move |r| r.ranks == ranks && r.backend == backend)
}

/// A backend on a partition with one access method.
#[derive(Clone, Copy, Debug)]
pub struct RecordSelector<'r> {
    /// Name of the backend.
    pub backend: &'r str,
    /// Ranks of the partition.
    pub ranks: u64,
    /// Access method.
    pub access: AccessMethod,
}

impl<'r> RecordSelector<'r> {
    /// Selects the records beside this pattern.
    #[must_use]
    pub fn of(record: &'r PatternRecord) -> Self {
        Self { backend: &record.backend, ranks: record.ranks, access: record.access }
    }

    fn matches(self, backend: &str, ranks: u64, access: AccessMethod) -> bool {
        self.access == access && self.ranks == ranks && self.backend == backend
    }

    /// Its patterns, in the order of measurement.
    pub fn records(self, result: &'r RunResult) -> impl Iterator<Item = &'r PatternRecord> {
        result.patterns.iter().filter(move |r| self.matches(&r.backend, r.ranks, r.access))
    }

    /// Its types, in the order of measurement.
    pub fn types(self, result: &'r RunResult) -> impl Iterator<Item = &'r TypeRecord> {
        result.types.iter().filter(move |t| self.matches(&t.backend, t.ranks, t.access))
    }

    /// The record of one pattern, if it exists.
    #[must_use]
    pub fn record(self, result: &'r RunResult, pattern: u8) -> Option<&'r PatternRecord> {
        self.records(result).find(|r| r.pattern == pattern)
    }

    /// The value of one type.
    #[must_use]
    pub fn type_value(self, derived: &'r Derived, pattern_type: PatternType) -> Option<&'r TypeValue> {
        derived.types.iter().find(|v| v.pattern_type == pattern_type && self.matches(&v.backend, v.ranks, v.access))
    }

    /// One pattern of the comparison with other backends; None without comparison.
    #[must_use]
    pub fn pattern_comparison(self, derived: &'r Derived, pattern: u8) -> Option<&'r PatternComparison> {
        derived.ladder.patterns.iter().find(|r| r.pattern == pattern && self.matches(&r.backend, r.ranks, r.access))
    }

    /// One type of the comparison.
    #[must_use]
    pub fn type_comparison(self, derived: &'r Derived, pattern_type: PatternType) -> Option<&'r TypeComparison> {
        let mut rungs = derived.ladder.types.iter();
        rungs.find(|r| r.pattern_type == pattern_type && self.matches(&r.backend, r.ranks, r.access))
    }
}

/// The value of one partition.
#[must_use]
pub fn partition_value<'a>(derived: &'a Derived, backend: &str, ranks: u64) -> Option<&'a PartitionValue> {
    derived.partitions.iter().find(|v| v.ranks == ranks && v.backend == backend)
}

/// Traffic of the mounted device; with several hosts the sum over their devices. None if unknown.
#[must_use]
pub fn mounted_device(evidence: &Evidence) -> Option<DeviceTraffic> {
    let host = |device: &DeviceTraffic| device.device.rsplit_once(':').map(|(host, _)| host.to_owned());
    let mut hosts = Vec::new();
    let mut sum: Option<DeviceTraffic> = None;
    for device in &evidence.devices {
        // The devices of a host are ordered: the mounted one is followed by those below it.
        if hosts.contains(&host(device)) {
            continue;
        }
        hosts.push(host(device));
        match &mut sum {
            None => sum = Some(device.clone()),
            Some(sum) => {
                sum.device = format!("{} {}", sum.device, device.device);
                sum.read_bytes += device.read_bytes;
                sum.written_bytes += device.written_bytes;
                sum.read_requests += device.read_requests;
                sum.write_requests += device.write_requests;
            }
        }
    }
    sum
}

/// Position of an access method in the arrays of [`PartitionValue`].
#[must_use]
pub fn access_index(access: AccessMethod) -> usize {
    match access {
        AccessMethod::Write => 0,
        AccessMethod::Rewrite => 1,
        AccessMethod::Read => 2,
    }
}

/// Label of an access method in pictures.
#[must_use]
pub fn access_label(access: AccessMethod) -> &'static str {
    match access {
        AccessMethod::Write => "first write",
        AccessMethod::Rewrite => "rewrite",
        AccessMethod::Read => "read",
    }
}

/// Formats a chunk size as in the paper, in at most nine characters: `1 kB`, `32 kB+8`, `1 MB+8 kB`. Other sizes are plain bytes, rounded
/// above 10 MB.
#[must_use]
pub fn chunk_label(bytes: u64) -> String {
    const KB: u64 = 1024;
    const UNITS: [(u64, &str); 3] = [(KB * KB * KB, "GB"), (KB * KB, "MB"), (KB, "kB")];
    for (unit, name) in UNITS {
        let (whole, rest) = (bytes / unit, bytes % unit);
        match rest {
            _ if !(1..1024).contains(&whole) => {}
            0 => return format!("{whole} {name}"),
            8 | 256 => return format!("{whole} {name}+{rest}"),
            8192 if name == "MB" => return format!("{whole} {name}+8 kB"),
            _ if bytes >= 10 * KB * KB => return format!("{:.1} {name}", bytes as f64 / unit as f64),
            _ => {}
        }
    }
    bytes.to_string()
}

/// Describes the patterns: types, whether all are rewritten, whether type 1 uses the shared pointer, and the multiples of segments in
/// bytes.
#[must_use]
pub fn pattern_options(
    types: &[PatternType],
    (full_rewrite, shared_pointer, segment_multiple_bytes): (bool, bool, u64),
) -> String {
    let types: Vec<String> = types.iter().map(|&t| format!("{t} {}", t.name())).collect();
    format!(
        "types {}; {}; type 1 through {}; segments in multiples of {}",
        types.join(", "),
        if full_rewrite { "all types rewritten" } else { "only type 0 rewritten" },
        if shared_pointer { "the shared file pointer" } else { "a strided view" },
        units::format_size(segment_multiple_bytes)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_and_column_names_another_pattern() {
        let mut seen: Vec<u8> = PatternType::ALL
            .iter()
            .flat_map(|&t| (0..ROWS.len()).filter_map(move |row| classic_pattern(row, t)))
            .collect();
        seen.sort_unstable();
        // All 43 but the warm-ups 0, 9, 17, 25, 34, the fill-ups 33, 42 and pattern 2.
        let expected: Vec<u8> = (0..43).filter(|p| ![0, 2, 9, 17, 25, 33, 34, 42].contains(p)).collect();
        assert_eq!(seen, expected);
        assert_eq!(classic_pattern(7, PatternType::Scatter), None);
    }

    #[test]
    fn the_mounted_device_is_the_first_of_each_host() {
        let device = |name: &str, read_bytes: u64| DeviceTraffic {
            device: name.into(),
            read_bytes,
            written_bytes: 1,
            read_requests: 2,
            write_requests: 3,
        };
        let of = |devices: Vec<DeviceTraffic>| mounted_device(&Evidence { devices, ..Evidence::default() });
        assert_eq!(of(Vec::new()), None);
        assert_eq!(of(vec![device("loop0", 7), device("vda", 9)]), Some(device("loop0", 7)));
        let sum = of(vec![device("a:loop0", 7), device("a:vda", 9), device("b:loop1", 5), device("b:vda", 9)]).unwrap();
        assert_eq!((sum.device.as_str(), sum.read_bytes, sum.write_requests), ("a:loop0 b:loop1", 12, 6));
    }

    #[test]
    fn chunk_sizes_read_as_in_the_paper() {
        let shown: Vec<String> =
            [8, 1024, 1032, 32_776, 1_048_576, 1_048_832, 1_056_768, 2_097_152, 1 << 30, 1_234_560, 65_273_856]
                .into_iter()
                .map(chunk_label)
                .collect();
        assert_eq!(
            shown,
            ["8", "1 kB", "1 kB+8", "32 kB+8", "1 MB", "1 MB+256", "1 MB+8 kB", "2 MB", "1 GB", "1234560", "62.2 MB"]
        );
    }
}
