//! Execution of the plan: timed loops, agreements, data stamps and their verification.
//!
//! The order of work is access method, partition, type, pattern, backend. The loops access backends only through their trait and report
//! only through [`RunObserver`](crate::frame::run::RunObserver); they format nothing and write no result files.
//!
//! From outside to inside: [`execute`] (the outermost loops), [`type_run`] (open files), [`pattern_run`] (backends in turn), [`pattern_execution`] (one
//! round), [`timed_loop`] (the timed loop), [`reduction`] (pending reductions). All of them work on [`state`], in the context of a [`context`];
//! [`sync_calibration`], [`queue_calibration`] and [`first_writes`] run before the first measurements, [`repetitions`] after them.
//! [`trials`] repeat a fixed number of calls with different settings.

pub mod batching;
#[cfg(test)]
mod communication_tests;
pub mod connection_setup;
pub mod context;
pub mod continuation;
pub mod cut_run;
pub mod drivers;
pub mod execute;
#[cfg(feature = "test-hooks")]
pub mod fault_injection;
pub mod file_verification;
pub mod files;
pub mod first_measurement;
pub mod first_writes;
mod host_transfers;
pub mod kernel_counters;
pub mod limit_check;
#[cfg(test)]
mod limit_tests;
pub mod measurement;
pub mod orders;
pub mod pattern_execution;
pub mod pattern_plan;
pub mod pattern_run;
pub mod peak_memory;
pub mod queue_calibration;
pub mod reduction;
pub mod region;
pub mod repetitions;
pub mod run_limit;
#[cfg(test)]
mod run_tests;
pub mod sample_blocks;
pub mod state;
#[cfg(test)]
mod strict_tests;
pub mod submissions;
pub mod sync_calibration;
pub mod timed_loop;
pub mod trials;
pub mod type_run;
pub mod verify;
