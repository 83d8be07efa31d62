//! A value of the list.

use serde::Serialize;

/// Whether a value may be compared with those of other systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ListedStatus {
    /// Valid by the release.
    Valid,
    /// Three partitions in 30 minutes: too short for the release, but the way in which its program was used.
    ThreePartitions,
    /// Not valid.
    NotValid,
    /// Not stated by the file.
    Unknown,
}

impl ListedStatus {
    /// True if the value is accepted as that of a system.
    #[must_use]
    pub fn is_accepted(self) -> bool {
        matches!(self, Self::Valid | Self::ThreePartitions)
    }

    /// Words of reports.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Valid => "VALID",
            Self::ThreePartitions => "3 partitions in 30 min",
            Self::NotValid => "NOT VALID",
            Self::Unknown => "validity unknown",
        }
    }
}

/// The value by one release.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReleaseEntry {
    /// Release.
    pub release: &'static str,
    /// Value in 1e6 bytes/s; None: not measured.
    pub mb_per_second: Option<f64>,
    /// Whether it may be compared.
    pub status: ListedStatus,
    /// The run was scheduled by this release.
    pub is_own_definition: bool,
}

/// A partition of a run, through one backend.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ListedValue {
    /// File of the result.
    pub file: String,
    /// Program and version.
    pub program: String,
    /// Start, as recorded.
    pub started: String,
    /// The system: its storage, or its host if the storage is not recorded.
    pub system: String,
    /// First host, and the number of others.
    pub hosts: String,
    /// Backend.
    pub backend: String,
    /// True through MPI-IO, of which alone the value is that of the papers.
    pub is_mpi_io: bool,
    /// Ranks of the partition.
    pub ranks: u64,
    /// Most ranks of the partition on a host; None: not recorded.
    pub ranks_per_host: Option<u64>,
    /// Scheduled time T; None: not recorded.
    pub time_seconds: Option<f64>,
    /// MPI library; empty: not recorded.
    pub mpi: String,
    /// Hints, or the file with them; empty: none.
    pub hints: String,
    /// Values by release.
    pub values: Vec<ReleaseEntry>,
}
