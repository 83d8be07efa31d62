//! beff-raw: the effective I/O bandwidth benchmark b_eff_io, through MPI-IO and beneath it, and its siblings.
//!
//! Each benchmark is a room: [`b_eff_io`], [`b_eff`], [`imb_io`]. What they share is the [`frame`]. In every room data
//! flows one way: `cli` to `config` to `plan` to `run` to the backends, and back as `records` to `values` to `report`.
//! [`benchmarks`] is the table of rooms, [`cli`] makes a command line of it, [`commands`] are those of no room.
//! ARCHITECTURE.md says what must never appear where.
#![forbid(unsafe_code)]

pub mod b_eff;
pub mod b_eff_io;
pub mod benchmarks;
pub mod cli;
pub mod commands;
pub mod frame;
pub mod imb_io;
