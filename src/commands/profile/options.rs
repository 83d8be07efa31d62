//! Options of `beff-raw profile`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::frame::error::UsageError;

/// Options of `profile`.
#[derive(Clone, Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, disable_help_subcommand = true)]
pub struct ProfileArgs {
    /// Profile to write; existing files are not overwritten. Those of further MPI programs of a script are numbered [default:
    /// APP.profile.csv, or an unused name like it]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Maximum bytes that all ranks together may record on disk; calls beyond are not recorded, and the profile says so
    #[arg(long, value_name = "SIZE", value_parser = crate::frame::units::parse_size, default_value = "64G")]
    pub limit: u64,
    /// The launcher with its options, the program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
    /// Action on existing recordings
    #[command(subcommand)]
    pub action: Option<ProfileAction>,
}

/// Other actions.
#[derive(Clone, Debug, Subcommand)]
pub enum ProfileAction {
    /// Merge the files that the processes left in a directory, as after a kill, into a profile
    Merge(MergeArgs),
    /// Show the content of a profile: files, functions, sizes, hints, and the largest costs
    Show(ShowArgs),
}

/// Options of `profile merge`.
#[derive(Clone, Debug, Args)]
pub struct MergeArgs {
    /// Directory with the recordings
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Profile to write; existing files are not overwritten [default: DIR without `.parts`]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Options of `profile show`.
#[derive(Clone, Debug, Args)]
pub struct ShowArgs {
    /// The profile
    #[arg(value_name = "FILE")]
    pub profile: PathBuf,
    /// View to print
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = ShowFormat::Table)]
    pub format: ShowFormat,
    /// Every function of every file, not only what stands out (table)
    #[arg(long)]
    pub details: bool,
    /// Write an HTML page to this new file instead ('-': stdout): costs, ranks and offsets over time, sizes; no script, no network
    #[arg(long, value_name = "OUT", conflicts_with_all = ["details", "format"])]
    pub html: Option<PathBuf>,
}

/// Views of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ShowFormat {
    /// For people
    Table,
    /// For programs
    Json,
}

pub(super) fn check_absent(path: &std::path::Path) -> Result<(), UsageError> {
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    Err(UsageError::new(
        format!("{} exists already", path.display()),
        "Choose another name with -o: nothing is overwritten.",
    ))
}
