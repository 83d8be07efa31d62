//! `beff-raw profile -- COMMAND`: runs the command with the profiler before its MPI library.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;

use super::launcher::{with_variables, LaunchCommand};
use super::options::check_absent;
use super::preload::environment_removal;
use super::program::{Abi, MpiLinkage};
use super::words::is_launcher;
use super::{library, merge, program, ProfileArgs};
use crate::frame::command::{print_diagnostic, reject_usage};
use crate::frame::error::{Exit, UsageError};
use crate::frame::paths::shell_word;
use crate::frame::system::launcher::launched_process_count;

/// Runs the command, and ends this process with the exit code of the application, or with 1 if that was 0 and a profile is missing.
///
/// # Errors
/// The command cannot be started, or its profile cannot be written.
pub fn run(args: &ProfileArgs) -> anyhow::Result<Exit> {
    if let Some(processes) = launched_process_count(|name| std::env::var(name).ok()) {
        return Ok(reject_usage(&nested_launch_error(args, processes)));
    }
    let first = args.command.first().map_or(OsStr::new(""), OsString::as_os_str);
    let is_launched = is_launcher(first);
    let version = if is_launched { launcher_version(first) } else { String::new() };
    let found = program::find(&args.command, is_launched);
    let family = with_variables(&args.command, &[], &version).family;
    let Some(library) = select_library(&found, family) else {
        // The reason was printed: the application runs without a profile.
        let launch = LaunchCommand { words: args.command.clone(), environment: Vec::new(), family };
        return Ok(exit_without_profile(start_and_wait(&launch)?));
    };
    let output = std::path::absolute(match &args.output {
        Some(path) => path.clone(),
        None => unused_name(&found),
    })?;
    check_absent(&output)?;
    let parts = merge::parts_directory(&output);
    std::fs::create_dir(&parts).map_err(|e| {
        UsageError::new(
            format!("cannot make {}, where the processes write: {e}", parts.display()),
            "Name another place with -o, on a file system that all hosts of the program share.",
        )
    })?;
    let status = start_and_wait(&with_variables(&args.command, &variables(args, &library, &parts, &output)?, &version));
    if status.is_err() {
        let _ = std::fs::remove_dir(&parts);
    }
    let status = status?;
    match finalize_profiles(&parts, &output, &args.command) {
        Ok(()) => exit_like(status),
        Err(error) => {
            print_diagnostic(&format!("{error:#}"));
            Ok(exit_without_profile(status))
        }
    }
}

/// Error if a launcher has started this program several times: only one of them can create the directory, and its application would wait
/// for those of the others, which never start.
fn nested_launch_error(args: &ProfileArgs, processes: u64) -> String {
    let words: Vec<String> = args.command.iter().map(|word| shell_word(word)).collect();
    let output = args.output.as_ref().map_or_else(String::new, |path| format!("-o {} ", shell_word(path.as_os_str())));
    let cause = format!("a launcher started `profile` as {processes} processes, but `profile` must start the launcher");
    let next = format!("beff-raw profile {output}-- mpirun -n {processes} {}", words.join(" "));
    UsageError::new(cause, format!("Put the launcher after `--`: {next}")).to_string()
}

/// Environment of the ranks. An existing preload stays, after the profiler.
fn variables(
    args: &ProfileArgs,
    library: &Path,
    parts: &Path,
    output: &Path,
) -> anyhow::Result<[(&'static str, OsString); 6]> {
    let mut preload = library.as_os_str().to_owned();
    if let Some(there) = std::env::var_os("LD_PRELOAD").filter(|there| !there.is_empty()) {
        preload.push(":");
        preload.push(there);
    }
    let program = std::env::current_exe().context("cannot find this program itself")?;
    Ok([
        ("LD_PRELOAD", preload),
        ("BEFF_PROFILE_DIR", parts.into()),
        ("BEFF_PROFILE_OUT", merge::merged_path(parts, output).into()),
        ("BEFF_PROFILE_MERGER", program.into()),
        (merge::LAUNCHED_VARIABLE, "1".into()),
        ("BEFF_PROFILE_LIMIT_BYTES", args.limit.to_string().into()),
    ])
}

/// Profiler for a program; None, with a printed reason, if there can be no profile.
fn select_library(found: &MpiLinkage, family: Option<&str>) -> Option<PathBuf> {
    let run_as_is = "; it runs without a profile";
    let abi = match found {
        MpiLinkage::Static(path) => {
            print_diagnostic(&format!(
                "{} is linked statically, so its MPI calls cannot be intercepted{run_as_is}",
                path.display()
            ));
            return None;
        }
        MpiLinkage::NotFound => {
            print_diagnostic(&format!("no word of the command is a program on this host{run_as_is}"));
            return None;
        }
        MpiLinkage::Links(abi, _) => Some(*abi),
        // Python and similar programs load MPI late; it is assumed to be that of the launcher.
        MpiLinkage::Loads(_) => match family {
            Some("Open MPI") => Some(Abi::OpenMpi),
            Some("MPICH") => Some(Abi::Mpich),
            _ => None,
        },
    };
    let library = match abi {
        Some(abi) => library::find(abi),
        None => library::find_any().map(|(path, _)| path),
    };
    if library.is_none() {
        let (what, mpi) = match found {
            MpiLinkage::Links(abi, path) => (path.display().to_string(), abi.name()),
            _ => ("the program".to_owned(), abi.map_or("any MPI", Abi::name)),
        };
        print_diagnostic(&format!(
            "{what} uses {mpi}, and there is no libbeff_profiler.so for it next to this program or in BEFF_PROFILER \
             (build it: {}){run_as_is}",
            library::build_command(abi)
        ));
    }
    library
}

/// `app.profile.csv` for a program `app`, or the first unused name like it.
fn unused_name(found: &MpiLinkage) -> PathBuf {
    let name = match found {
        MpiLinkage::Links(_, path) | MpiLinkage::Loads(path) | MpiLinkage::Static(path) => path.file_name(),
        MpiLinkage::NotFound => None,
    };
    let name = name.unwrap_or(OsStr::new("program"));
    let numbered = |number: u32| {
        let mut file = name.to_owned();
        file.push(if number == 1 { ".profile.csv".to_owned() } else { format!(".profile-{number}.csv") });
        PathBuf::from(file)
    };
    let is_free =
        |path: &PathBuf| path.symlink_metadata().is_err() && merge::parts_directory(path).symlink_metadata().is_err();
    (1..10_000).map(numbered).find(is_free).unwrap_or_else(|| numbered(10_000))
}

/// Version output of the launcher; empty if there is none.
fn launcher_version(launcher: &OsStr) -> String {
    let output = Command::new(launcher).arg("--version").stdin(Stdio::null()).output();
    output.map_or_else(
        |_| String::new(),
        |output| format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)),
    )
}

fn start_and_wait(launch: &LaunchCommand) -> anyhow::Result<ExitStatus> {
    let (first, rest) = launch.words.split_first().context("no command")?;
    // The terminal sends its signals to the application too; this process stays to merge the recordings.
    let [interrupt, terminate] = [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM].map(|signal| {
        let seen = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(signal, Arc::clone(&seen)).map(|_| seen)
    });
    let (_interrupt, terminate) = (interrupt?, terminate?);
    let mut child = Command::new(first).args(rest).envs(launch.environment.clone()).spawn().map_err(|e| {
        UsageError::new(
            format!("cannot start {}: {e}", Path::new(first).display()),
            "Give the launcher and the program after `--`, as they are typed without beff-raw.",
        )
    })?;
    wait(&mut child, &terminate)
}

fn wait(child: &mut Child, terminate: &AtomicBool) -> anyhow::Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait().context("cannot wait for the program")? {
            return Ok(status);
        }
        if terminate.swap(false, Ordering::Relaxed) {
            let _ = i32::try_from(child.id()).map(|id| kill(Pid::from_raw(id), Signal::SIGTERM));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Publishes the profile of each world and reports it. Only merges of this recording are accepted.
///
/// # Errors
/// Nothing was recorded, or the last of the profiles that could not be written; the others are printed.
fn finalize_profiles(parts: &Path, output: &Path, command: &[OsString]) -> anyhow::Result<()> {
    let worlds = merge::worlds(parts, output);
    let mut result = if worlds.is_empty() { Err(nothing_recorded(command).into()) } else { Ok(()) };
    for (recording, output) in worlds {
        if let Err(error) = merge::publish_profile(&recording, &output) {
            if let Err(earlier) = std::mem::replace(&mut result, Err(error)) {
                print_diagnostic(&format!("{earlier:#}"));
            }
            continue;
        }
        let word = shell_word(output.as_os_str());
        print_diagnostic(&format!("wrote {}; `beff-raw profile show {word}` shows its content", output.display()));
    }
    merge::remove_empty(parts);
    result
}

/// Why there is no recording, as far as the command tells.
fn nothing_recorded(command: &[OsString]) -> UsageError {
    match environment_removal(command) {
        Some(part) => UsageError::new(
            format!("nothing was recorded: `{part}` in the command removes the variables that load the profiler"),
            "Start the program without it; options of the launcher or `unset` remove other variables.",
        ),
        None => UsageError::new(
            "nothing was recorded: no process with the profiler started MPI (the program does not use MPI, is static, \
             or its MPI is another one; or something started it with other variables: env -i, ssh, sudo, a container)",
            "Start the program itself: beff-raw profile -- LAUNCHER -n RANKS PROGRAM; `beff-raw info` lists the MPIs \
             that can be recorded.",
        ),
    }
}

/// Exit code of an application without a profile; the reason was printed.
fn exit_without_profile(status: ExitStatus) -> Exit {
    if status.success() {
        return Exit::Failure;
    }
    exit_like(status)
}

/// Ends this process with the status of the application.
fn exit_like(status: ExitStatus) -> ! {
    std::process::exit(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)))
}
