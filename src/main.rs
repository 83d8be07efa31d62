//! beff-raw: what was typed becomes a command, the command's end becomes the exit code.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use beff_ffi::alloc::CountingAllocator;
use beff_raw::cli::{self, NoCommand};
use beff_raw::frame::command::{complain, end_with, publish_once, refuse};
use beff_raw::frame::error::{Exit, UsageError};
use beff_raw::frame::run::interrupt::make_file_limits_errors;
use beff_raw::frame::system::launcher::is_launched;

/// Counts, so that every result can say that nothing was allocated inside the clock.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn main() -> ExitCode {
    if let Err(error) = make_file_limits_errors() {
        complain(&format!("SIGXFSZ cannot be caught, so a limit of file sizes would end this process: {error}"));
    }
    let env = |name: &str| std::env::var(name).ok();
    if std::env::args_os().len() <= 1 && !is_launched(env) {
        return nothing_typed();
    }
    let (command, options) = match cli::parse(std::env::args_os()) {
        Ok(parsed) => parsed,
        Err(NoCommand::Refused(error)) => return refuse(&error.to_string()).into(),
        Err(NoCommand::Said(said)) => return end_with(&said),
    };
    let exit = (command.run)(&options).unwrap_or_else(|error| {
        let message = format!("{error:#}");
        if error.is::<UsageError>() && !command.of_this_host {
            return refuse(&message);
        }
        complain(&message);
        if error.is::<UsageError>() {
            Exit::Usage
        } else {
            Exit::Failure
        }
    });
    exit.into()
}

/// Somebody wants to know what this is: a run of a minute on one rank would not tell.
fn nothing_typed() -> ExitCode {
    if let Err(error) = publish_once(cli::short_help().as_bytes()) {
        complain(&error.to_string());
        return Exit::Failure.into();
    }
    refuse("nothing was measured: start it with mpirun -n N beff-raw, or on one rank with beff-raw io").into()
}
