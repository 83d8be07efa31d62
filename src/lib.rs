//! beff-raw: the effective I/O bandwidth benchmark b_eff_io, through MPI-IO and beneath it.
//!
//! Data flows one way: [`cli`] to [`config`] to [`plan`] to [`engine`] to the backends, and back as [`results`] to
//! [`stats`] to [`report`]. ARCHITECTURE.md says what must never appear where.
#![forbid(unsafe_code)]

pub mod cli;
pub mod commands;
pub mod config;
pub mod config_build;
pub mod engine;
pub mod error;
pub mod plan;
pub mod report;
pub mod results;
pub mod stats;
pub mod system;
pub mod units;
