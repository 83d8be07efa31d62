//! beff-raw: the effective I/O bandwidth benchmark b_eff_io, through MPI-IO and beneath it, and its siblings.
//!
//! Each benchmark is a room: [`b_eff_io`], [`b_eff`], [`imb_io`]. What they share is the [`frame`]. In every room
//! data flows one way: `cli` to `config` to `plan` to `run` to the backends, and back as `records` to `values` to
//! `report`. [`benchmarks`] is the table of rooms, [`cli`] makes a command line of it, [`commands`] are those of no
//! room. ARCHITECTURE.md says what must never appear where.
//!
//! ```
//! use beff_raw::benchmarks::{load, BENCHMARKS};
//!
//! // A benchmark is a row: its commands, and how its results are read again.
//! let names: Vec<&str> = BENCHMARKS.iter().map(|benchmark| benchmark.name).collect();
//! assert_eq!(names, ["b_eff_io", "b_eff", "imb_io", "replay"]);
//!
//! // Any file of results is known by its content: here one that is none.
//! assert!(load(b"{}").is_err());
//! ```
//!
//! # In which order to read
//!
//! 1. [`benchmarks`] and [`frame::benchmark`]: the table and its row; `main.rs` and [`cli`]: how it becomes a command
//!    line.
//! 2. One room from top to bottom: [`b_eff_io::cli`], [`b_eff_io::config`], [`b_eff_io::plan`] (what will be done,
//!    from the definition alone), [`b_eff_io::run`] (doing it), [`b_eff_io::records`] (what was seen),
//!    [`b_eff_io::values`] (what follows) and [`b_eff_io::report`] (how it is told).
//! 3. [`frame::run`], what stands around every clock, and [`frame::report`], the files of a run.
//! 4. The crates below: `beff_backends`, the ways to storage, and `beff_ffi`, the only door to MPI.
#![forbid(unsafe_code)]

pub mod b_eff;
pub mod b_eff_io;
pub mod benchmarks;
pub mod cli;
pub mod commands;
pub mod frame;
pub mod imb_io;
pub mod replay;
