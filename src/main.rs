//! beff-raw: parses the command line, runs the command and returns its exit code.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use beff_ffi::alloc::CountingAllocator;
use beff_raw::cli::{self, CommandLineError};
use beff_raw::frame::command::{exit_with_clap, print_diagnostic, publish_once, reject_usage};
use beff_raw::frame::error::{Exit, UsageError};
use beff_raw::frame::run::interrupt::{catch_sigxfsz, exit_at_once_on_signals};
use beff_raw::frame::system::launcher::is_launched;

/// Counts allocations, so that every result shows that there were none inside the clock.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn main() -> ExitCode {
    if let Err(error) = catch_sigxfsz() {
        print_diagnostic(&format!(
            "SIGXFSZ cannot be caught, so a limit of file sizes would end this process: {error}"
        ));
    }
    let env = |name: &str| std::env::var(name).ok();
    if std::env::args_os().len() <= 1 && !is_launched(env) {
        return nothing_typed();
    }
    let (command, options) = match cli::parse(std::env::args_os()) {
        Ok(parsed) => parsed,
        Err(CommandLineError::Usage(error)) => return reject_usage(&error.to_string()).into(),
        Err(CommandLineError::Clap(said)) => return exit_with_clap(&said),
    };
    if command.measures {
        if let Err(error) = exit_at_once_on_signals() {
            print_diagnostic(&format!("signals cannot be caught before the run: {error}"));
        }
    }
    let exit = (command.run)(&options).unwrap_or_else(|error| {
        let message = format!("{error:#}");
        if error.is::<UsageError>() && !command.is_host_specific {
            return reject_usage(&message);
        }
        print_diagnostic(&message);
        if error.is::<UsageError>() {
            Exit::Usage
        } else {
            Exit::Failure
        }
    });
    exit.into()
}

/// Prints a short help: a run of a minute on one rank would not help a new user.
fn nothing_typed() -> ExitCode {
    if let Err(error) = publish_once(cli::short_help().as_bytes()) {
        print_diagnostic(&error.to_string());
        return Exit::Failure.into();
    }
    reject_usage("nothing was measured: start it with mpirun -n N beff-raw, or on one rank with beff-raw io").into()
}
