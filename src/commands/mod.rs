//! The commands that belong to no benchmark. They need no MPI.

pub mod info;
pub mod profile;
pub mod report;
pub mod schema;

use crate::frame::benchmark::Command;

/// All of them.
pub const COMMANDS: [Command; 4] = [profile::COMMAND, report::COMMAND, schema::COMMAND, info::COMMAND];
