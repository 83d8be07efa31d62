//! What of the machine takes part in a run: what all hosts say together, the file system of the files, which of their pages are in
//! memory, and what this process moved. What a single host tells is in the crate `beff_host`.

pub mod memory;
pub mod residency;
pub mod storage;
pub mod survey;

pub use beff_host::{
    affinity, caches, cpu_time, environment, host, keeper, launcher, neighbours, placement, taken_back, terminal,
    topology, traffic, workers, SystemError,
};
