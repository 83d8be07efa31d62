//! Words and numbers of reports. No MPI, no files, no clock.

#![forbid(unsafe_code)]

pub mod digits;
pub mod plain;
pub mod units;
