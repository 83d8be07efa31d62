//! The commands that belong to no benchmark. They need no MPI.

pub mod info;
pub mod profile;
pub mod report;

use crate::frame::benchmark::Command;

/// All of them.
pub const COMMANDS: [Command; 3] = [profile::COMMAND, report::COMMAND, info::COMMAND];
