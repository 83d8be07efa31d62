//! The machine and the software of a run, as far as they explain its numbers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Binding;

/// One host of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostRecord {
    /// Host name.
    pub name: String,
    /// Ranks on it.
    pub ranks: u64,
    /// Cores that may be used.
    pub cores: u64,
    /// CPU model.
    pub cpu: String,
    /// Memory of the node.
    pub memory_bytes: u64,
    /// Memory limit of the control group, if it is smaller.
    pub cgroup_memory_limit_bytes: Option<u64>,
    /// Last-level cache.
    pub last_level_cache_bytes: u64,
    /// It is a virtual machine whose own host takes free memory back; None: not as far as can be seen, or not recorded.
    #[serde(default)]
    pub memory_taken_back: Option<TakenBack>,
}

/// Free memory goes back to the host of a virtual machine. What is used again, by the page cache too, the host has to give once more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TakenBack {
    /// What takes it.
    pub by: String,
    /// New memory that was touched at the start, to see what it costs.
    pub touched_bytes: u64,
    /// What the first touch of a page of it took.
    pub first_touch_ns: f64,
    /// The same of a page of as much memory, taken once more at once, before the host could have it.
    pub touch_again_ns: f64,
}

impl TakenBack {
    /// Above 1: what a page that was gone costs more.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        if self.touch_again_ns > 0.0 {
            self.first_touch_ns / self.touch_again_ns
        } else {
            1.0
        }
    }
}

/// The file system under --path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StorageRecord {
    /// Directory asked for.
    pub path: String,
    /// Mount point.
    pub mount_point: String,
    /// Source: device or export.
    pub source: String,
    /// Type.
    pub fs_type: String,
    /// Mount options.
    pub mount_options: String,
    /// Device facts where /sys tells: model, scheduler, rotational.
    pub device: Option<String>,
    /// Size of the file system.
    pub total_bytes: u64,
    /// Free for this user at the start.
    pub free_bytes: u64,
    /// Offset alignment of direct I/O, as statx tells; None: the file system does not tell.
    pub direct_offset_align_bytes: Option<u64>,
    /// Memory alignment of direct I/O, likewise.
    pub direct_memory_align_bytes: Option<u64>,
}

/// The machine and the software, enough to repeat a run; the same for every benchmark.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Machine {
    /// Program version.
    pub program_version: String,
    /// Revision of the source.
    pub git_revision: String,
    /// MPI it was built with.
    pub mpi_built_with: String,
    /// Library string at run time (MPI_Get_library_version), one line.
    pub mpi_library: String,
    /// MPI standard version at run time.
    pub mpi_standard: String,
    /// Support for threads that the library gives (MPI_Query_thread): `single`, which is asked for, or more; None: not recorded.
    #[serde(default)]
    pub mpi_thread_level: Option<String>,
    /// Start, UTC, RFC 3339.
    pub started_utc: String,
    /// Command line.
    pub command_line: Vec<String>,
    /// Operating system and kernel.
    pub kernel: String,
    /// Version of the kernel (uname(2)): its number and time of build; None: not recorded.
    #[serde(default)]
    pub kernel_version: Option<String>,
    /// Hosts.
    pub hosts: Vec<HostRecord>,
    /// Ranks of the world.
    pub ranks: u64,
    /// Where the ranks were found, what was asked, and where they ran; None: not recorded.
    #[serde(default)]
    pub binding: Option<Binding>,
    /// Memory one rank can use, the smallest of all ranks.
    pub memory_per_rank_bytes: u64,
    /// Environment variables set on purpose that change MPI or I/O, by name and value; what launchers set for themselves is left out.
    pub environment: Vec<(String, String)>,
}
