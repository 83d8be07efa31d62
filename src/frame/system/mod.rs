//! Parts of the machine that take part in a run: survey of all hosts, file system of the files, residency of their pages, and bytes moved
//! by this process. Facts about a single host are in the crate `beff_host`.

pub mod job_time;
pub mod memory;
pub mod residency;
pub mod storage;
pub mod survey;

pub use beff_host::{
    affinity, backing_store, ballooning, bound_threads, caches, command, cpu_time, environment, host, launcher,
    placement, storage_sheet, terminal, topology, traffic, ucx, workers, SystemError,
};
