//! beff-raw: the effective I/O bandwidth benchmark b_eff_io, through MPI-IO and other interfaces, and related benchmarks.
//!
//! Each benchmark is a module: [`b_eff_io`], [`b_eff`], [`imb_io`], [`replay`], [`tune`]. Their common parts are in [`frame`]. In every benchmark
//! module data flows one way: `cli` to `config` to `plan` to `run` to the backends, and back as `records` to `values` to `report`.
//! [`benchmarks`] is the table of them, [`cli`] derives a command line from it, and [`commands`] has the commands of no benchmark.
//! ARCHITECTURE.md lists the dependencies that are forbidden.
//!
//! ```
//! use beff_raw::benchmarks::{load, BENCHMARKS};
//!
//! // A benchmark is a row: its commands, and how its results are read.
//! let names: Vec<&str> = BENCHMARKS.iter().map(|benchmark| benchmark.name).collect();
//! assert_eq!(names, ["b_eff_io", "b_eff", "imb_io", "replay", "tune"]);
//!
//! // A file of results is recognized by its content: this one is none.
//! assert!(load(b"{}").is_err());
//! ```
//!
//! # Reading order
//!
//! 1. [`benchmarks`] and [`frame::benchmark`]: the table and its row; `main.rs` and [`cli`]: the command line.
//! 2. One benchmark module from top to bottom: [`b_eff_io::cli`], [`b_eff_io::config`], [`b_eff_io::plan`] (derived from the definition
//!    alone), [`b_eff_io::run`] (execution), [`b_eff_io::records`] (measured data), [`b_eff_io::values`] (derived values) and
//!    [`b_eff_io::report`] (presentation).
//! 3. [`frame::run`], common to all timed runs, and [`frame::report`], the files of a run.
//! 4. The crates below: `beff_backends`, the interfaces to storage, and `beff_ffi`, the only one that calls MPI.
#![forbid(unsafe_code)]

pub mod b_eff;
pub mod b_eff_io;
pub mod benchmarks;
pub mod cli;
pub mod commands;
pub mod frame;
pub mod imb_io;
pub mod replay;
pub mod tune;
