//! The commands that belong to no benchmark. They need no MPI.

pub mod compare;
pub mod info;
pub mod profile;
pub mod report;
pub mod schema;

use crate::frame::benchmark::Command;

/// All of them.
pub const COMMANDS: [Command; 5] =
    [profile::COMMAND, report::COMMAND, compare::COMMAND, schema::COMMAND, info::COMMAND];
