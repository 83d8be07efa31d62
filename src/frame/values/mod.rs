//! What follows from the records of any benchmark: where reads came from, how sure a ratio is, what must be warned of.
//! Pure functions.

pub mod binding;
pub mod causes;
pub mod comparable;
pub mod compare;
pub(crate) mod hints;
pub mod machine_share;
pub(crate) mod pairs;
pub mod probe;
pub mod source;
pub(crate) mod warning;

pub use beff_report::criterion::{in_words, Criterion};
pub use pairs::Compared;
pub use source::CACHE_SHARE;

use crate::frame::records::Machine;

/// The backend that moves nothing. Its times are the cost of the program itself; no value is made of them.
pub const NULL_BACKEND: &str = "null";

/// The backend of MPI-IO, by which alone a value is that of the papers, and which alone lists hints.
pub const MPI_IO: &str = "mpiio";

/// Memory of all hosts together in bytes, as their control groups limit it: a page cache cannot be larger.
#[must_use]
pub fn memory_of_hosts(machine: &Machine) -> u64 {
    let usable = machine
        .hosts
        .iter()
        .map(|h| h.cgroup_memory_limit_bytes.map_or(h.memory_bytes, |limit| limit.min(h.memory_bytes)));
    usable.fold(0, u64::saturating_add)
}
