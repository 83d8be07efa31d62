//! `beff-raw workload`: profiles of well-known workloads, which `replay` runs as benchmarks. Needs no MPI.

mod btio;
mod checkpoint;
mod ior;
mod profile_text;
mod strided;
#[cfg(test)]
mod tests;

use clap::{Args, Subcommand};

pub use btio::Class;
pub use checkpoint::CheckpointLayout;

use crate::frame::benchmark::{keep_arguments, parse_options, Command};
use crate::frame::command::publish;
use crate::frame::error::{Exit, UsageError};
use crate::frame::options::{common_help, parse_size, words};

/// The command.
pub const COMMAND: Command = Command {
    name: "workload",
    about: "Write a well-known workload as a profile for `replay`",
    after_help: AFTER_HELP,
    options: WorkloadArgs::augment_args,
    translate: keep_arguments,
    run: |options| run(&parse_options(options)?),
    measures: false,
    is_host_specific: false,
};

const AFTER_HELP: &str = concat!(
    "Examples:
  BT-IO of class A on 4 ranks, then through MPI-IO, the file system and io_uring:
      beff-raw workload btio --ranks 4 --class A > btio.csv
      mpirun -n 4 beff-raw replay btio.csv --backend mpiio,posix,uring
  What it does, without running it:
      beff-raw profile show btio.csv
  Three checkpoints of 16 ranks with 256 MiB each, in files of their own:
      beff-raw workload checkpoint --ranks 16 --layout n-n --size 256M > checkpoint.csv

The profile is text, described in docs/profile.md, and can be edited. Its comments name the source of the workload.

",
    common_help!()
);

/// Options of `workload`.
#[derive(Clone, Debug, Args)]
pub struct WorkloadArgs {
    /// The workload.
    #[command(subcommand)]
    pub workload: Workload,
}

/// Number of ranks, common to all workloads.
#[derive(Clone, Copy, Debug, Args)]
pub struct RanksArgs {
    /// Number of ranks of the replay
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub ranks: u64,
}

/// The workloads.
#[derive(Clone, Debug, Subcommand)]
pub enum Workload {
    /// PRIOmark: every rank has every N-th block of one file, by views and by offsets
    Strided(StridedArgs),
    /// NAS BT-IO, subtype full: a grid in cells, collective calls through views
    Btio(BtioArgs),
    /// Checkpoints with headers, one file of all ranks or a file per rank
    Checkpoint(CheckpointArgs),
    /// IO500: 2 MiB transfers to a file per rank, then reads of another rank's file
    IorEasy(IorEasyArgs),
    /// IO500: transfers of 47008 bytes in turns to one file, then reads of another rank's data
    IorHard(IorHardArgs),
}

/// Options of `strided`.
#[derive(Clone, Copy, Debug, Args)]
pub struct StridedArgs {
    /// Ranks.
    #[command(flatten)]
    pub ranks: RanksArgs,
    /// Size of a block
    #[arg(long, value_name = "SIZE", default_value = "4K", value_parser = positive_size)]
    pub block: u64,
    /// Blocks of a rank in each half of the file
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..))]
    pub blocks: u64,
    /// Blocks of a call through the view
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..))]
    pub per_call: u64,
}

/// Options of `btio`.
#[derive(Clone, Copy, Debug, Args)]
pub struct BtioArgs {
    /// Ranks.
    #[command(flatten)]
    pub ranks: RanksArgs,
    /// Problem size
    #[arg(long, value_enum, value_name = "CLASS", default_value = "A", ignore_case = true)]
    pub class: Class,
}

/// Options of `checkpoint`.
#[derive(Clone, Copy, Debug, Args)]
pub struct CheckpointArgs {
    /// Ranks.
    #[command(flatten)]
    pub ranks: RanksArgs,
    /// Files of a checkpoint
    #[arg(long, value_enum, value_name = "FILES", default_value = "n-1")]
    pub layout: CheckpointLayout,
    /// Data of each rank
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = positive_size)]
    pub size: u64,
    /// Header of each file; 0: none
    #[arg(long, value_name = "SIZE", default_value = "4K", value_parser = parse_size)]
    pub header: u64,
    /// Data of one call
    #[arg(long, value_name = "SIZE", default_value = "4M", value_parser = positive_size)]
    pub transfer: u64,
    /// Number of checkpoints
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub checkpoints: u64,
}

/// Options of `ior-easy`.
#[derive(Clone, Copy, Debug, Args)]
pub struct IorEasyArgs {
    /// Ranks.
    #[command(flatten)]
    pub ranks: RanksArgs,
    /// Data of each rank
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = positive_size)]
    pub size: u64,
    /// Distance to the rank whose data is read; IO500 reads that of another host: the number of ranks of a host
    #[arg(long, value_name = "RANKS", default_value_t = 1)]
    pub shift: u64,
}

/// Options of `ior-hard`.
#[derive(Clone, Copy, Debug, Args)]
pub struct IorHardArgs {
    /// Ranks.
    #[command(flatten)]
    pub ranks: RanksArgs,
    /// Transfers of each rank
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..))]
    pub segments: u64,
    /// Distance to the rank whose data is read; IO500 reads that of another host: the number of ranks of a host
    #[arg(long, value_name = "RANKS", default_value_t = 1)]
    pub shift: u64,
}

words! { Class:
    S = "S", "12 points in each dimension, 0.8 MB in all";
    W = "W", "24 points, 22 MB";
    A = "A", "64 points, 419 MB";
    B = "B", "102 points, 1.7 GB";
    C = "C", "162 points, 6.8 GB";
    D = "D", "408 points, 136 GB";
}
words! { CheckpointLayout:
    Shared = "n-1", "one file of all ranks, collective calls";
    Separate = "n-n", "a file per rank, independent calls";
}

fn positive_size(text: &str) -> Result<u64, String> {
    match parse_size(text)? {
        0 => Err("the size must be above 0".into()),
        bytes => Ok(bytes),
    }
}

/// Calls of a profile: more would make a file of several gigabytes.
const MAX_CALLS: u64 = 20_000_000;

/// Runs the command.
///
/// # Errors
/// A workload that cannot have this number of ranks, or is too large.
pub fn run(args: &WorkloadArgs) -> anyhow::Result<Exit> {
    publish(profile(&args.workload)?.as_bytes())?;
    Ok(Exit::Ok)
}

/// The profile of a workload.
fn profile(workload: &Workload) -> Result<String, UsageError> {
    match *workload {
        Workload::Strided(StridedArgs { ranks: RanksArgs { ranks }, block, blocks, per_call }) => {
            check(ranks, blocks.saturating_mul(4), "--blocks")?;
            check_bytes(ranks, block.saturating_mul(blocks).saturating_mul(2), "--block or --blocks")?;
            let command = format!(
                "beff-raw workload strided --ranks {ranks} --block {block} --blocks {blocks} --per-call {per_call}"
            );
            Ok(strided::profile(ranks, (block, blocks, per_call), &command))
        }
        Workload::Btio(BtioArgs { ranks: RanksArgs { ranks }, class }) => {
            let command = format!("beff-raw workload btio --ranks {ranks} --class {class:?}");
            btio::profile(ranks, class, &command).map_err(|[cause, next]| UsageError::new(cause, next))
        }
        Workload::Checkpoint(args) => {
            let CheckpointArgs { ranks: RanksArgs { ranks }, layout, size, header, transfer, checkpoints } = args;
            check(
                ranks,
                size.div_ceil(transfer).saturating_mul(checkpoints + 1),
                "--checkpoints, or a larger --transfer",
            )?;
            check_bytes(ranks, size.saturating_add(header), "--size")?;
            let name = if layout == CheckpointLayout::Shared { "n-1" } else { "n-n" };
            let command = format!(
                "beff-raw workload checkpoint --ranks {ranks} --layout {name} --size {size} --header {header} --transfer {transfer} \
                 --checkpoints {checkpoints}"
            );
            let sizes = checkpoint::CheckpointSizes {
                rank_bytes: size,
                header_bytes: header,
                call_bytes: transfer,
                checkpoints,
            };
            Ok(checkpoint::profile(ranks, layout, sizes, &command))
        }
        Workload::IorEasy(IorEasyArgs { ranks: RanksArgs { ranks }, size, shift }) => {
            check(ranks, size / (1 << 20), "--size")?;
            let command = format!("beff-raw workload ior-easy --ranks {ranks} --size {size} --shift {shift}");
            Ok(ior::easy(ranks, size, shift % ranks, &command))
        }
        Workload::IorHard(IorHardArgs { ranks: RanksArgs { ranks }, segments, shift }) => {
            check(ranks, segments.saturating_mul(2), "--segments")?;
            let command = format!("beff-raw workload ior-hard --ranks {ranks} --segments {segments} --shift {shift}");
            Ok(ior::hard(ranks, segments, shift % ranks, &command))
        }
    }
}

fn check(ranks: u64, calls_per_rank: u64, option: &str) -> Result<(), UsageError> {
    if ranks.saturating_mul(calls_per_rank) <= MAX_CALLS {
        return Ok(());
    }
    let cause = format!("the workload has about {} calls, more than {MAX_CALLS}", ranks.saturating_mul(calls_per_rank));
    Err(UsageError::new(cause, format!("Give a smaller {option}, or fewer ranks.")))
}

/// File offsets have 63 bits.
fn check_bytes(ranks: u64, rank_bytes: u64, option: &str) -> Result<(), UsageError> {
    if i64::try_from(u128::from(ranks) * u128::from(rank_bytes)).is_ok() {
        return Ok(());
    }
    Err(UsageError::new("the file would have 2^63 bytes or more", format!("Give a smaller {option}.")))
}
