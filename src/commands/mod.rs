//! The commands that belong to no benchmark. They need no MPI.

pub mod compare;
pub mod info;
mod page;
pub mod profile;
pub mod report;
mod results;
pub mod schema;
pub mod shell;

use crate::frame::benchmark::Command;

/// All of them.
pub const COMMANDS: [Command; 7] = [
    profile::COMMAND,
    report::COMMAND,
    compare::COMMAND,
    schema::COMMAND,
    info::COMMAND,
    shell::COMPLETIONS,
    shell::MAN,
];
