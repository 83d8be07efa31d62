//! `beff-raw info`: capabilities of this build and this machine, and what is missing. Runs without mpirun.

use std::fmt::Write;
use std::path::PathBuf;

use beff_backends::{
    check_availability, drivers, Availability, DirectoryHandle, DriverOptions, DriverRow, OpenMode, OpenRequest,
};
use beff_ffi::Comm;
use clap::Args;

use super::profile::{profiler_build_command, profilers};
use crate::frame::benchmark::{keep_arguments, parse_options, Command};
use crate::frame::command::publish;
use crate::frame::error::{Exit, UsageError};
use crate::frame::options::common_help;
use crate::frame::records::{DirectAlignBasis, StorageRecord};
use crate::frame::report::machine::{direct_alignment_text, storage_sheet_lines};
use crate::frame::run::{direct_trial, harness, storage_sheet};
use crate::frame::system::job_time::JobTime;
use crate::frame::system::storage::{self, storage_record};
use crate::frame::system::survey::{io_layer, LIBRARY_CHARS};
use crate::frame::system::{environment, host, job_time, memory};
use crate::frame::units::{format_seconds, format_size};

/// The command.
pub const COMMAND: Command = Command {
    name: "info",
    about: "Show capabilities of this build and machine, and what is missing",
    after_help: AFTER_HELP,
    options: InfoArgs::augment_args,
    translate: keep_arguments,
    run: |options| run(&parse_options(options)?),
    measures: false,
    is_host_specific: true,
};

const AFTER_HELP: &str = concat!(
    "Examples:
  Capabilities of this build and this host:
      beff-raw info
  The same for the storage under /scratch:
      beff-raw info --path /scratch
  The same on a compute node, under the batch system's launcher:
      srun -N 1 -n 1 beff-raw info --path /scratch

",
    common_help!()
);

/// Options of `info`.
#[derive(Clone, Debug, Args)]
pub struct InfoArgs {
    /// Directory on the storage to examine
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub path: PathBuf,
}

/// Runs the command.
///
/// # Errors
/// A path that does not exist, facts that are unavailable.
pub fn run(args: &InfoArgs) -> anyhow::Result<Exit> {
    let mut storage = storage_record(&args.path)
        .map_err(|e| UsageError::new(e.to_string(), "Name an existing directory with --path."))?;
    if storage.direct_align_basis.is_none() {
        let name = format!(".beff-raw-info-{}-direct", std::process::id());
        // A directory that cannot be opened is reported by each backend.
        if let Ok(directory) = DirectoryHandle::open(&args.path) {
            direct_trial::determine_alignment(&directory.file(name.as_ref()), &mut storage, None);
        }
    }
    if let Ok(directory) = DirectoryHandle::open(&args.path) {
        let path = directory.file(format!(".beff-raw-info-{}-sheet", std::process::id()).as_ref());
        storage.sheet = storage_sheet::of_new_file(&path, &storage.fs_type, &[], memory::usable_node_memory_bytes()?);
    }
    let mut text = String::new();
    build(&mut text)?;
    machine(&mut text)?;
    storage_lines(&mut text, &storage)?;
    backends(&mut text, args, &storage)?;
    publish(text.as_bytes())?;
    Ok(Exit::Ok)
}

fn build(text: &mut String) -> anyhow::Result<()> {
    let library = beff_ffi::library_version(LIBRARY_CHARS)?;
    writeln!(text, "beff-raw {} (source {})", env!("CARGO_PKG_VERSION"), env!("BEFF_GIT_REVISION"))?;
    writeln!(text, "  built with   {}", beff_ffi::built_with())?;
    writeln!(text, "  MPI library  {}", library.chars().take(90).collect::<String>())?;
    writeln!(text, "  MPI-IO layer {}", io_layer(&library, &environment::relevant_environment()))?;
    let profilers = profilers();
    if profilers.is_empty() {
        writeln!(text, "  profiler     none; to build it for this MPI: {}", profiler_build_command())?;
    }
    for profiler in profilers {
        writeln!(text, "  profiler     {profiler}")?;
    }
    Ok(())
}

fn machine(text: &mut String) -> anyhow::Result<()> {
    let node = memory::node_memory_bytes()?;
    let limit = memory::cgroup_memory_limit_bytes(node);
    writeln!(text, "\nThis host: {}, {}", host::host_name()?, host::kernel()?)?;
    writeln!(text, "  cores        {} usable, {}", host::usable_cores()?, host::cpu_model())?;
    let limit = limit.map_or("no control-group limit".into(), |l| format!("control-group limit {}", format_size(l)));
    writeln!(text, "  memory       {}, {limit}", format_size(node))?;
    writeln!(text, "  last cache   {}", format_size(memory::last_level_cache_bytes()))?;
    writeln!(text, "  batch job    {}", batch_job(job_time::remaining()))?;
    let ns = harness::null_access_ns();
    writeln!(
        text,
        "  harness      {ns:.2} ns per 1 kB access of the null backend (offset, window, backend interface; moves nothing)"
    )?;
    Ok(())
}

/// What `--time-limit auto` would use.
fn batch_job(answer: Result<JobTime, String>) -> String {
    match answer {
        Ok(JobTime { left_seconds: Some(seconds), source }) => {
            format!("{} left, by {source} (--time-limit auto)", format_seconds(seconds.max(0.0)))
        }
        Ok(JobTime { left_seconds: None, source }) => format!("without a time limit, by {source}"),
        Err(asked) => format!("end unknown: {asked}"),
    }
}

fn storage_lines(text: &mut String, s: &StorageRecord) -> anyhow::Result<()> {
    writeln!(text, "\nStorage under {}", s.path)?;
    writeln!(text, "  file system  {} on {} ({}), {}", s.fs_type, s.mount_point, s.source, s.mount_options)?;
    if let Some(device) = &s.device {
        writeln!(text, "  device       {device}")?;
    }
    writeln!(text, "  free         {} of {}", format_size(s.free_bytes), format_size(s.total_bytes))?;
    writeln!(text, "  direct I/O   {}", direct_alignment_text(s))?;
    if !s.direct_align_basis.is_some_and(DirectAlignBasis::is_proven) {
        let next = match s.direct_offset_align_bytes {
            Some(bytes) => format!("--direct required will not run here, unless with --dio-align {bytes}"),
            None => {
                "--direct required will not run here; choose a --path on another file system, e.g. ext4 or xfs".into()
            }
        };
        writeln!(text, "               {next}")?;
    }
    for (label, value) in storage_sheet_lines(s) {
        writeln!(text, "  {label:<12} {value}")?;
    }
    if storage::is_in_memory(&s.fs_type) {
        writeln!(text, "  warning      these files are in memory: choose a --path on a disk to measure storage")?;
    }
    Ok(())
}

fn backends(text: &mut String, args: &InfoArgs, storage: &StorageRecord) -> anyhow::Result<()> {
    writeln!(text, "\nBackends (--backend a,b,c runs them in turn)")?;
    for row in drivers() {
        let mut can = Vec::new();
        if row.can_direct {
            can.push(if storage.direct_offset_align_bytes.is_some() { "direct I/O" } else { "no direct I/O here" });
        }
        if row.has_hints {
            can.push("hints");
        }
        if row.has_shared_pointer {
            can.push("shared file pointer");
        }
        writeln!(
            text,
            "  {:<7} {}{}",
            row.name,
            row.summary,
            if can.is_empty() { String::new() } else { format!(" [{}]", can.join(", ")) }
        )?;
        if let Some(trouble) = find_problem(row, args) {
            writeln!(text, "          does not work here: {trouble}")?;
        }
    }
    writeln!(text, "\nMeasure: mpirun -n {} beff-raw --path {}", host::usable_cores()?, args.path.display())?;
    Ok(())
}

/// Opens a new file through the driver, unless that needs MPI; returns the problem, None if it works.
fn find_problem(row: &DriverRow, args: &InfoArgs) -> Option<String> {
    // MPI-IO needs an initialized MPI: only a run can check it.
    if row.is_collective_native {
        return None;
    }
    let name = format!(".beff-raw-info-{}-{}", std::process::id(), row.name);
    let path = match DirectoryHandle::open(&args.path) {
        Ok(directory) => directory.file(name.as_ref()),
        Err(e) => return Some(format!("--path {}: {e}", args.path.display())),
    };
    if row.needs_support_check {
        return match check_availability(row, &DriverOptions::default(), &path) {
            Availability::Available => None,
            Availability::Unavailable(e) | Availability::Failed(e) => Some(e.to_string()),
        };
    }
    let own = Comm::comm_self();
    // A communicator of one rank sends no messages, so this works without MPI for drivers that only query its rank.
    let request = OpenRequest { path: &path, mode: OpenMode::CreateNew, comm: &own, hints: &[] };
    let opened = (row.create)(&DriverOptions::default()).open(&request);
    let result = opened.and_then(beff_backends::OpenFile::close);
    let _ = path.remove();
    result.err().map(|e| e.to_string())
}
