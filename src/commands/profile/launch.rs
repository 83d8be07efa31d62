//! `beff-raw profile -- COMMAND`: the command with the profiler before its MPI library.

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

use super::launcher::{is_launcher, with_variables, Launch};
use super::options::must_be_new;
use super::program::{Abi, Program};
use super::{library, merge, program, ProfileArgs};
use crate::frame::command::{complain, refuse};
use crate::frame::error::{Exit, UsageError};
use crate::frame::paths::word_of;
use crate::frame::system::launcher::started_with_others;

/// Runs the command, and ends this process as it ended: the exit code is the application's.
///
/// # Errors
/// The command cannot be started, or its profile cannot be written.
pub fn run(args: &ProfileArgs) -> anyhow::Result<Exit> {
    if let Some(processes) = started_with_others(|name| std::env::var(name).ok()) {
        return Ok(refuse(&inside_out(args, processes)));
    }
    let first = args.command.first().map_or(OsStr::new(""), OsString::as_os_str);
    let is_launched = is_launcher(first);
    let version = if is_launched { version_of(first) } else { String::new() };
    let found = program::find(&args.command, is_launched);
    let family = with_variables(&args.command, &[], &version).family;
    let Some(library) = library_for(&found, family) else {
        // The reason was told: the application runs as it is.
        let launch = Launch { words: args.command.clone(), environment: Vec::new(), family };
        end_as(start_and_wait(&launch)?);
    };
    let output = std::path::absolute(match &args.output {
        Some(path) => path.clone(),
        None => free_name(&found),
    })?;
    must_be_new(&output)?;
    let parts = merge::parts_of(&output);
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
    if let Err(error) = conclude(&parts, &output) {
        // The application's own end counts more than ours, and has been seen by nobody yet.
        complain(&format!("{error:#}"));
        if status.success() {
            return Ok(Exit::Failure);
        }
    }
    end_as(status)
}

/// A launcher has started this program several times: one of them alone can make the directory, and its application waits for
/// those of the others, which never start.
fn inside_out(args: &ProfileArgs, processes: u64) -> String {
    let words: Vec<String> = args.command.iter().map(|word| word_of(word)).collect();
    let output = args.output.as_ref().map_or_else(String::new, |path| format!("-o {} ", word_of(path.as_os_str())));
    let cause =
        format!("a launcher started `profile` as {processes} processes, but it is one that starts the launcher");
    let next = format!("beff-raw profile {output}-- mpirun -n {processes} {}", words.join(" "));
    UsageError::new(cause, format!("Put the launcher behind `--`: {next}")).to_string()
}

/// What the ranks get. A preload that is there already stays, behind ours.
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
        ("BEFF_PROFILE_OUT", merge::merged_in(parts, output).into()),
        ("BEFF_PROFILE_MERGER", program.into()),
        (merge::SILENT, "1".into()),
        ("BEFF_PROFILE_LIMIT_BYTES", args.limit.to_string().into()),
    ])
}

/// The profiler for what was found; None, with one sentence why, if there can be no profile.
fn library_for(found: &Program, family: Option<&str>) -> Option<PathBuf> {
    let run_as_is = "; it runs without a profile";
    let abi = match found {
        Program::Static(path) => {
            complain(&format!(
                "{} is linked statically, so nothing can stand before its MPI{run_as_is}",
                path.display()
            ));
            return None;
        }
        Program::NotFound => {
            complain(&format!("no word of the command is a program that can be found here{run_as_is}"));
            return None;
        }
        Program::Links(abi, _) => Some(*abi),
        // Python and the like load their MPI late; then it is that of the launcher.
        Program::Loads(_) => match family {
            Some("Open MPI") => Some(Abi::OpenMpi),
            Some("MPICH") => Some(Abi::Mpich),
            _ => None,
        },
    };
    let library = match abi {
        Some(abi) => library::find(abi),
        None => library::any().map(|(path, _)| path),
    };
    if library.is_none() {
        let (what, mpi) = match found {
            Program::Links(abi, path) => (path.display().to_string(), abi.name()),
            _ => ("the program".to_owned(), abi.map_or("any MPI", Abi::name)),
        };
        complain(&format!(
            "{what} uses {mpi}, and there is no libbeff_profiler.so for it beside this program or in BEFF_PROFILER \
             (build it with the MPICC of that MPI: cargo build --release -p beff-profiler){run_as_is}"
        ));
    }
    library
}

/// `app.profile.csv` for a program `app`, or the first free name like it.
fn free_name(found: &Program) -> PathBuf {
    let name = match found {
        Program::Links(_, path) | Program::Loads(path) | Program::Static(path) => path.file_name(),
        Program::NotFound => None,
    };
    let name = name.unwrap_or(OsStr::new("program"));
    let numbered = |number: u32| {
        let mut file = name.to_owned();
        file.push(if number == 1 { ".profile.csv".to_owned() } else { format!(".profile-{number}.csv") });
        PathBuf::from(file)
    };
    let is_free =
        |path: &PathBuf| path.symlink_metadata().is_err() && merge::parts_of(path).symlink_metadata().is_err();
    (1..10_000).map(numbered).find(is_free).unwrap_or_else(|| numbered(10_000))
}

/// What the launcher says of itself; empty if it does not.
fn version_of(launcher: &OsStr) -> String {
    let output = Command::new(launcher).arg("--version").stdin(Stdio::null()).output();
    output.map_or_else(
        |_| String::new(),
        |output| format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)),
    )
}

fn start_and_wait(launch: &Launch) -> anyhow::Result<ExitStatus> {
    let (first, rest) = launch.words.split_first().context("no command")?;
    // The terminal sends its signals to the application too; this process stays to merge what is there by then.
    let [interrupt, terminate] = [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM].map(|signal| {
        let seen = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(signal, Arc::clone(&seen)).map(|_| seen)
    });
    let (_interrupt, terminate) = (interrupt?, terminate?);
    let mut child = Command::new(first).args(rest).envs(launch.environment.clone()).spawn().map_err(|e| {
        UsageError::new(
            format!("cannot start {}: {e}", Path::new(first).display()),
            "Give the launcher and the program behind `--`, as they are typed without beff-raw.",
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

/// Sees to it that the profile is there, and says what is. Only what this recording was merged to counts as it.
fn conclude(parts: &Path, output: &Path) -> anyhow::Result<()> {
    if !merge::has_recordings(parts) {
        let _ = std::fs::remove_dir(parts);
        complain(
            "nothing was recorded: no process with the profiler started MPI (the program is static, starts its \
             processes another way, or its MPI is another one)",
        );
        return Ok(());
    }
    merge::publish(parts, output)?;
    merge::remove_parts(parts);
    let word = word_of(output.as_os_str());
    complain(&format!("wrote {}; `beff-raw profile show {word}` shows what is in it", output.display()));
    Ok(())
}

/// Ends this process as the application ended.
fn end_as(status: ExitStatus) -> ! {
    std::process::exit(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)))
}
