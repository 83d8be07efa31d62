//! What every benchmark needs and none of them owns. No benchmark is named here, and none is imported: the rooms know the
//! frame, never the other way round.

pub(crate) mod backends;
pub mod benchmark;
pub mod checks;
pub mod command;
pub mod config;
pub mod error;
pub mod hints;
pub mod input;
pub mod options;
pub mod paths;
pub mod planted;
pub mod records;
pub mod report;
pub mod run;
pub mod system;
pub mod values;

pub use beff_report::{digits, plain, units, words};
