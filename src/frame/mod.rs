//! Common parts of all benchmarks. No benchmark module is named or imported here: benchmark modules depend on the frame, never the other
//! way round.

pub(crate) mod backends;
pub mod benchmark;
pub mod checks;
pub mod command;
pub mod config;
pub mod error;
pub mod fault_injection;
pub mod hints;
pub mod input;
pub mod options;
pub mod paths;
pub mod rank_directories;
pub mod records;
pub mod report;
pub mod result_directory;
pub mod run;
pub mod system;
pub mod trials;
pub mod values;
pub mod variants;

pub use beff_report::{digits, terminal_escape, units, words};
