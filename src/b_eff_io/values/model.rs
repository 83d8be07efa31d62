//! The derived values as recorded in files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::b_eff_io::config::Release;
use crate::b_eff_io::pattern_type::PatternType;
use crate::frame::records::AccessMethod;
use crate::frame::values::Criterion;

/// Wall-clock time of rank 0 from the start of its process until the files are removed, by cause. The causes add up to the total.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimeAccount {
    /// All of it; the time of the launcher and of writing the output files is not known to the result.
    pub total_seconds: f64,
    /// Timed regions: patterns, repetitions, opening and closing.
    pub timed_seconds: f64,
    /// Share of the total outside the timed regions.
    pub outside_share: f64,
    /// Start of the process to the configuration: MPI_Init.
    pub start_seconds: f64,
    /// Survey of hosts and storage, overhead of the harness, output files, run directory.
    pub survey_seconds: f64,
    /// Trials of the backends, memory, calibrations, probes of the storage.
    pub preparation_seconds: f64,
    /// Reading back written data.
    pub verification_seconds: f64,
    /// Writing the journal.
    pub writing_seconds: f64,
    /// Between the timed regions: agreement of the ranks, evidence, dropping of pages, buffers.
    pub agreement_seconds: f64,
    /// Removal of the files.
    pub removal_seconds: f64,
}

/// Value of one pattern type with one access method.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TypeValue {
    /// Backend name.
    pub backend: String,
    /// Ranks of the partition.
    pub ranks: u64,
    /// Access method.
    pub access: AccessMethod,
    /// Pattern type, 0 to 4.
    pub pattern_type: PatternType,
    /// Bytes of all patterns of the type, warm-up and fill-up too.
    pub moved_bytes: u64,
    /// Open + patterns (sync included) + close.
    pub seconds: f64,
    /// moved_bytes / seconds in 1e6 bytes/s; None if nothing was measured.
    pub mb_per_second: Option<f64>,
    /// True if every pattern of the type was run and none ended by an error or signal.
    pub complete: bool,
}

/// Values by the three definitions, MB/s (1e6 bytes/s); None if an access method or type is missing, and for the null backend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReleaseValues {
    /// Euro-Par 2000: all bytes / all time, patterns that missed their time weighted by U.
    pub release_0_5: Option<f64>,
    /// "Benchmark Design for Characterization of Balanced High-Performance Architectures": 0.25 write + 0.25 rewrite + 0.5 read, each (2
    /// x0 + x1 + x2 + x3 + x4) / 6.
    pub release_1: Option<f64>,
    /// Program of December 2001: sqrt(WR * read), WR = (W0 + RW0 + W1 + W2 + W3 + W4) / 6.
    pub release_2_1: Option<f64>,
}

/// Value of one partition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PartitionValue {
    /// Backend name.
    pub backend: String,
    /// Ranks.
    pub ranks: u64,
    /// Weighted averages of write, rewrite, read, in this order: (2 x0 + x1 + x2 + x3 + x4) / 6; None as in [`ReleaseValues`].
    pub access_mb_per_second: [Option<f64>; 3],
    /// Bytes of each access method.
    pub access_bytes: [u64; 3],
    /// Measured time of each access method.
    pub access_seconds: [f64; 3],
    /// The three values.
    pub values: ReleaseValues,
}

/// Value of the system: the maximum over the partitions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SystemValue {
    /// Backend name.
    pub backend: String,
    /// The three values, each the maximum over the partitions.
    pub values: ReleaseValues,
    /// Ranks of the partition with the maximum, in the order 0.5, 1, 2.1.
    pub ranks: [Option<u64>; 3],
}

/// Scheduled and real time of one access method on one partition, and the parts of the difference: `real = scheduled + sync + open_close +
/// counted + loop - unused`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AccessTime {
    /// Backend name.
    pub backend: String,
    /// Ranks of the partition.
    pub ranks: u64,
    /// Access method.
    pub access: AccessMethod,
    /// Scheduled time of its patterns by the definition.
    pub scheduled_seconds: f64,
    /// Measured time: patterns, opening and closing.
    pub real_seconds: f64,
    /// Beyond the schedule: syncs at the end of patterns.
    pub sync_seconds: f64,
    /// Beyond the schedule: opening and closing, which are not scheduled.
    pub open_close_seconds: f64,
    /// Beyond the schedule: patterns that the definition drives by counts.
    pub counted_seconds: f64,
    /// Beyond the schedule: loops driven by time, waiting for slower ranks included.
    pub loop_seconds: f64,
    /// Scheduled time not used by patterns that ended early.
    pub unused_seconds: f64,
}

/// Whether a value is comparable with that of another system by the definition, and caveats.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Validity {
    /// Backend name.
    pub backend: String,
    /// Definition.
    pub release: Release,
    /// Valid by the definition: all its criteria are met.
    pub valid: bool,
    /// The criteria of the definition.
    pub criteria: Vec<Criterion>,
    /// Deviations from rules of this program that the definition does not have; they do not affect `valid`.
    #[serde(default)]
    pub caveats: Vec<String>,
}
