//! Hardware and software of a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Binding;
use beff_host::storage_sheet::StorageParameter;

/// One host of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostRecord {
    /// Host name.
    pub name: String,
    /// Ranks on it.
    pub ranks: u64,
    /// Usable cores.
    pub cores: u64,
    /// CPU model.
    pub cpu: String,
    /// Memory of the node.
    pub memory_bytes: u64,
    /// Memory limit of the control group, if smaller.
    pub cgroup_memory_limit_bytes: Option<u64>,
    /// Last-level cache.
    pub last_level_cache_bytes: u64,
    /// Memory ballooning, if the host is a virtual machine whose hypervisor reclaims free memory; None if not detected or not recorded.
    #[serde(default)]
    pub memory_ballooning: Option<MemoryBallooning>,
}

/// Memory ballooning: the hypervisor reclaims free memory of a virtual machine and must provide it again on the next use, by the page
/// cache too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryBallooning {
    /// Mechanism that reclaims memory.
    pub mechanism: String,
    /// New memory touched at the start to measure the cost.
    pub touched_bytes: u64,
    /// First touch of a page of it.
    pub first_touch_ns: f64,
    /// The same for a page of the same amount of memory, allocated again at once, before the hypervisor could reclaim it.
    pub touch_again_ns: f64,
}

impl MemoryBallooning {
    /// Ratio of first to second touch; above 1 if a reclaimed page costs more.
    #[must_use]
    pub fn first_touch_ratio(&self) -> f64 {
        if self.touch_again_ns > 0.0 {
            self.first_touch_ns / self.touch_again_ns
        } else {
            1.0
        }
    }
}

/// Basis of the alignment of direct I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DirectAlignBasis {
    /// Reported by the file system (statx STATX_DIOALIGN).
    Statx,
    /// The smallest alignment accepted in a trial, which proved that transfers bypass the page cache.
    TrialProven,
    /// The smallest alignment accepted in a trial; a bypass of the page cache is unproven.
    TrialUnproven,
    /// Given by `--dio-align`; a trial proved the bypass.
    OptionProven,
    /// Given by `--dio-align`, and accepted in a trial; a bypass of the page cache is unproven.
    OptionUnproven,
    /// A trial found that no transfer is direct.
    NotDirect,
}

impl DirectAlignBasis {
    /// False if transfers with O_DIRECT may use the page cache.
    #[must_use]
    pub fn is_proven(self) -> bool {
        matches!(self, Self::Statx | Self::TrialProven | Self::OptionProven)
    }
}

/// The file system under --path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StorageRecord {
    /// Requested directory.
    pub path: String,
    /// Mount point.
    pub mount_point: String,
    /// Source: device or export.
    pub source: String,
    /// Type.
    pub fs_type: String,
    /// Mount options.
    pub mount_options: String,
    /// Properties of the device from /sys: model, scheduler, rotational.
    pub device: Option<String>,
    /// Size of the file system.
    pub total_bytes: u64,
    /// Space available to this user at the start.
    pub free_bytes: u64,
    /// Alignment of offsets and lengths of direct I/O; None if unknown or not direct.
    pub direct_offset_align_bytes: Option<u64>,
    /// Memory alignment of direct I/O.
    pub direct_memory_align_bytes: Option<u64>,
    /// Basis of the alignment; None: not reported by the file system, and not tried because no backend needs it, or not recorded.
    #[serde(default)]
    pub direct_align_basis: Option<DirectAlignBasis>,
    /// What the trial of direct I/O found; None: no trial.
    #[serde(default)]
    pub direct_trial: Option<String>,
    /// The storage sheet: block size, stripe size and count, servers, cache, redundancy, and more where it is known. Queried on rank 0 from a
    /// file of the run, or given by `--storage`. Empty: not recorded.
    #[serde(default)]
    pub sheet: Vec<StorageParameter>,
}

/// Hardware and software, sufficient to repeat a run; common to all benchmarks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineRecord {
    /// Program version.
    pub program_version: String,
    /// Revision of the source.
    pub git_revision: String,
    /// MPI library at build time.
    pub mpi_built_with: String,
    /// Library string at run time (MPI_Get_library_version), one line.
    pub mpi_library: String,
    /// MPI standard version at run time.
    pub mpi_standard: String,
    /// Thread support level provided by the library (MPI_Query_thread): `single`, which is requested, or higher; None if not recorded.
    #[serde(default)]
    pub mpi_thread_level: Option<String>,
    /// Start, UTC, RFC 3339.
    pub started_utc: String,
    /// Command line.
    pub command_line: Vec<String>,
    /// Operating system and kernel.
    pub kernel: String,
    /// Kernel version (uname(2)): build number and time; None if not recorded.
    #[serde(default)]
    pub kernel_version: Option<String>,
    /// Hosts.
    pub hosts: Vec<HostRecord>,
    /// Ranks of MPI_COMM_WORLD.
    pub ranks: u64,
    /// Initial, requested and effective binding of the ranks; None if not recorded.
    #[serde(default)]
    pub binding: Option<Binding>,
    /// Memory available to one rank, minimum over all ranks.
    pub memory_per_rank_bytes: u64,
    /// Environment variables that change MPI or I/O, by name and value; those set by launchers for their own use are omitted.
    pub environment: Vec<(String, String)>,
}
