//! beff-raw: what was typed becomes a command, the command's end becomes the exit code.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use beff_ffi::alloc::CountingAllocator;
use beff_raw::cli::{self, Command, NoCommand};
use beff_raw::commands;
use beff_raw::error::{Exit, UsageError};

/// Counts, so that every result can say that nothing was allocated inside the clock.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn main() -> ExitCode {
    let command = match cli::parse(std::env::args_os()) {
        Ok(command) => command,
        Err(NoCommand::Refused(error)) => return commands::refuse(&error.to_string()).into(),
        Err(NoCommand::Said(said)) => return commands::end_with(&said),
    };
    // They look at the host and its files, which another process of a launch may see otherwise.
    let of_this_host = matches!(command, Command::Info(_) | Command::Report(_));
    let outcome = match command {
        Command::Io(args) => commands::io::run(&args),
        Command::Comm(args) => commands::comm::run(&args),
        Command::Imb(args) => commands::imb::run(&args),
        Command::Plan(args) => commands::plan::run(&args),
        Command::Report(args) => commands::report::run(&args),
        Command::Info(args) => commands::info::run(&args),
    };
    let exit = outcome.unwrap_or_else(|error| {
        let message = format!("{error:#}");
        if error.is::<UsageError>() && !of_this_host {
            return commands::refuse(&message);
        }
        commands::complain(&message);
        if error.is::<UsageError>() {
            Exit::Usage
        } else {
            Exit::Failure
        }
    });
    exit.into()
}
