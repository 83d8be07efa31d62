//! Commands that belong to no benchmark. They need no MPI.

mod acceptance;
pub mod compare;
pub mod gate;
mod html_page;
pub mod info;
pub mod man;
mod over_time;
pub mod profile;
pub mod report;
mod results;
pub mod schema;
#[cfg(test)]
mod schema_tables;
pub mod shell;
pub mod workload;

use crate::frame::benchmark::Command;

/// All but those that `cli` derives from [`shell`], which need the whole command line.
pub const COMMANDS: [Command; 7] = [
    profile::COMMAND,
    workload::COMMAND,
    report::COMMAND,
    compare::COMMAND,
    gate::COMMAND,
    schema::COMMAND,
    info::COMMAND,
];
