//! The commands that belong to no benchmark. They need no MPI.

pub mod compare;
pub mod info;
mod page;
pub mod profile;
pub mod report;
mod results;
pub mod schema;
#[cfg(test)]
mod schema_tables;
pub mod shell;

use crate::frame::benchmark::Command;

/// All but those that `cli` makes of [`shell`]: they need the whole command line.
pub const COMMANDS: [Command; 5] =
    [profile::COMMAND, report::COMMAND, compare::COMMAND, schema::COMMAND, info::COMMAND];
