//! The plan of IMB-IO, the elementary MPI-IO benchmarks: names, tiles, sizes, numbers of ranks, iterations, rows. Pure
//! functions; all ranks of a row share one sample of X bytes, and a row is one line of the report.
//!
//! Source: user guide of the Intel MPI Benchmarks, IMB-IO, and the behaviour of the program of 2021 where the guide is silent.

pub mod benchmark;
pub mod catalogue;
pub mod iterations;
pub mod names;
pub mod overlap;
pub mod processes;
pub mod rows;
pub mod run;
pub mod sizes;
pub mod space;
pub mod tiles;

pub use crate::frame::error::PlanningError;
pub use benchmark::{
    BenchmarkClass, ImbBenchmark, MeasuredOperation, Mode, ModeChoice, Positioning, Synchronism, TransferSpec,
};
pub use iterations::{IterationPolicy, IterationRule};
pub use rows::PlannedRow;
pub use run::ImbPlan;
pub use sizes::SampleSizes;
pub use tiles::{SampleLayout, SamplePortion};
