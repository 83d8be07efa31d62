//! Values derived from the records of any benchmark: origin of reads, confidence of ratios, warnings. Pure functions.

pub mod acceptance;
pub(crate) mod bare_loop;
pub mod binding;
pub mod causes;
pub mod comparable;
pub mod compare;
pub mod doubt;
pub mod gate;
pub(crate) mod hints;
pub mod history;
pub mod interference;
pub mod over_time;
pub mod read_source;
pub mod storage_drift;
pub(crate) mod time_limit;
pub(crate) mod warning;

pub use bare_loop::BareLoopRatio;
pub use beff_report::criterion::{validity_text, Criterion};
pub use read_source::CACHED_THRESHOLD;

use crate::frame::records::{HostRecord, MachineRecord};

/// The backend that moves no data. Its times are the overhead of the program itself; no value is derived from them.
pub const NULL_BACKEND: &str = "null";

/// The backend of MPI-IO, the only one whose value is that of the papers and the only one that lists hints.
pub const MPI_IO: &str = "mpiio";

/// Memory of all hosts together in bytes, limited by their control groups: an upper bound of the page cache.
#[must_use]
pub fn memory_of_hosts(machine: &MachineRecord) -> u64 {
    usable_memory_bytes(&machine.hosts)
}

/// The same for some hosts.
#[must_use]
pub fn usable_memory_bytes<'a>(hosts: impl IntoIterator<Item = &'a HostRecord>) -> u64 {
    let usable = hosts
        .into_iter()
        .map(|h| h.cgroup_memory_limit_bytes.map_or(h.memory_bytes, |limit| limit.min(h.memory_bytes)));
    usable.fold(0, u64::saturating_add)
}
