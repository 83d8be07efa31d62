//! The plan of IMB-IO, the elementary MPI-IO benchmarks: names, tiles, sizes, numbers of ranks, repetitions, rows. Pure;
//! one sample of X bytes is shared by all ranks of a row, and a row is one line of the report.
//!
//! Source: user guide of the Intel MPI Benchmarks, IMB-IO, and what the program of 2021 does where the guide is silent.

pub mod benchmark;
pub mod catalogue;
pub mod names;
pub mod overlap;
pub mod processes;
pub mod repetitions;
pub mod rows;
pub mod run;
pub mod sizes;
pub mod space;
pub mod tiles;

pub use crate::frame::error::PlanError;
pub use benchmark::{Action, Benchmark, Group, Mode, ModeChoice, Pointer, Style, Transfer};
pub use repetitions::{Policy, Repetitions};
pub use rows::Row;
pub use run::ImbPlan;
pub use sizes::Sizes;
pub use tiles::{Part, Place};
