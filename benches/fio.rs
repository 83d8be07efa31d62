//! The posix and uring drivers beside fio doing the same work in the same run: `cargo bench --bench fio -- --path DIR`; with
//! `--ior PROGRAM` the posix driver beside IOR.
//! No timed test: it decides nothing, it shows where a driver is behind. `benches/README.md` says what is equal on both
//! sides and how to read the table.

// A command: it prints its result.
#![allow(clippy::print_stdout)]

#[path = "fio/device.rs"]
mod device;
#[path = "fio/ior.rs"]
mod ior;
#[path = "fio/machine.rs"]
mod machine;
#[path = "fio/removal.rs"]
mod removal;
#[path = "fio/rows.rs"]
mod rows;
#[path = "fio/scratch.rs"]
mod scratch;
#[path = "fio/sides.rs"]
mod sides;
#[path = "fio/statistics.rs"]
mod statistics;
#[path = "fio/worker.rs"]
mod worker;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use beff_raw::b_eff_io::run::queue_calibration::choice;
use beff_raw::frame::run::interrupt::Interrupt;
use beff_raw::frame::units::{format_size, parse_size, MIB};
use clap::Parser;

use device::{Device, Traffic};
use machine::Ticks;
use rows::{Row, Tally};
use scratch::Scratch;
use sides::{Access, Method, Room, Sample, Side, Work};

type Failure = Box<dyn std::error::Error>;

/// Smallest file of a row, and the largest of all its processes together.
const FILE_BYTES: std::ops::RangeInclusive<u64> = 16 * MIB..=1024 * MIB;
/// Largest files where chunks of [`LARGE_CHUNK_BYTES`] go past the page cache: a few hundred of them, the first of which come in short
/// batches that drain the queue.
const LARGE_FILE_BYTES: u64 = 4096 * MIB;
const LARGE_CHUNK_BYTES: u64 = 8 * MIB;
/// Bytes in flight at most, on both sides.
const IN_FLIGHT_BYTES: u64 = 64 * MIB;
/// Processors that others may keep busy where quiet is waited for.
const QUIET_PROCESSORS: f64 = 0.25;

/// Compares the posix and uring drivers with fio, or posix with IOR, row by row, in alternating pairs.
#[derive(Debug, Parser)]
#[command(name = "cargo bench --bench fio --")]
struct Args {
    /// Directory on the storage to measure; all files are made in a new directory below it and removed
    #[arg(long, value_name = "DIR")]
    path: Option<PathBuf>,
    /// Three pairs of short runs: to see that it works
    #[arg(long)]
    quick: bool,
    /// Pairs per row [default: 9, with --quick 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..))]
    pairs: Option<u32>,
    /// Time of one run, about; fio tells times in ms [default: 0.5, with --quick 0.1]
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<f64>,
    /// Operations in flight at most (uring)
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=4096))]
    depth: u32,
    /// Operations submitted and waited for together (uring) [default: a quarter of the depth]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    batch: Option<u32>,
    /// Largest chunk, M_PART of a run
    #[arg(long, value_name = "SIZE", default_value = "8M", value_parser = parse_size)]
    m_part: u64,
    /// Numbers of processes with a file each, on both sides
    #[arg(long, alias = "numjobs", value_name = "LIST", value_delimiter = ',', default_value = "1,2,4",
        value_parser = clap::value_parser!(u32).range(1..=64))]
    jobs: Vec<u32>,
    /// Memory our side goes through, as in a run (32 MiB or more) instead of what fio uses
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    ring: Option<u64>,
    /// Our largest operation of io_uring: larger chunks are moved by several; 0: a chunk is one [default: 0, or 8 MiB in operations of
    /// 1 or 2 MiB in flight, which have to be 3 % faster in three turns of all, as in a run]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    operation: Option<u64>,
    /// For chunks above 1 MiB the best of our depths and operations, all that a run tries, with no more memory than is in flight
    #[arg(long, conflicts_with_all = ["operation", "depth", "batch", "ring"])]
    search: bool,
    /// Leave our processes in the session of this command, where Open MPI leaves ranks. fio gives each of its processes one, as
    /// MPICH does, and Linux divides the cores among sessions (sched(7), autogroup)
    #[arg(long)]
    one_session: bool,
    /// Only rows whose name contains all of these, e.g. `uring,rewrite`
    #[arg(long, value_name = "WORDS", value_delimiter = ',')]
    only: Vec<String>,
    /// Wait up to this long before each pair until others leave the processors alone
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0)]
    patience: f64,
    /// The program
    #[arg(long, value_name = "PROGRAM", default_value = "fio")]
    fio: PathBuf,
    /// This IOR in place of fio: posix through the page cache, one buffer for all calls, each process in its segment of a shared
    /// file or in its own. Started by $BEFF_MPIRUN, else mpirun
    #[arg(long, value_name = "PROGRAM")]
    ior: Option<PathBuf>,
    /// Our side of one job: what it does comes on standard input
    #[arg(long, hide = true)]
    worker: bool,
    /// Given by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    if args.worker {
        return match worker::work() {
            Ok(()) => ExitCode::SUCCESS,
            Err(e) => {
                eprintln!("{e}");
                ExitCode::FAILURE
            }
        };
    }
    let Some(path) = args.path.clone() else {
        eprintln!("nothing was measured: name a directory on the storage, `cargo bench --bench fio -- --path DIR`");
        return ExitCode::SUCCESS;
    };
    let version = match &args.ior {
        Some(program) => Ok(format!("IOR ({})", program.display())),
        None => sides::fio_version(&args.fio),
    };
    let version = match version {
        Ok(version) => version,
        Err(e) => {
            eprintln!(
                "{}: {e}. Install fio 3.30 or newer (Debian, Ubuntu: `apt install fio`) or name it with --fio",
                args.fio.display()
            );
            return ExitCode::from(2);
        }
    };
    match compare(&args, &path, &version) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{e}");
            ExitCode::FAILURE
        }
    }
}

fn compare(args: &Args, path: &Path, version: &str) -> Result<(), Failure> {
    // A signal ends this between two runs, so that the files are removed.
    let interrupt = Interrupt::watch()?;
    let scratch = Scratch::new(path)?;
    let device = Device::of(scratch.path());
    let pairs = args.pairs.unwrap_or(if args.quick { 3 } else { 9 });
    println!(
        "{version}, depth {}, batches of {}, {pairs} pairs per row, order A B B A",
        args.depth,
        batch(args, args.depth)
    );
    match &device {
        Some(device) => println!("device {} below {}", device.name, path.display()),
        None => println!("no block device of its own below {}: requests are not known", path.display()),
    }
    println!(
        "{:<50} {:>8} {:>9} {:>9}  {:<22} {:<8} {:<22} {:>17} {:>13} {:>15} {:>9}",
        "row",
        "file",
        "ours",
        if args.ior.is_some() { "IOR" } else { "fio" },
        if args.ior.is_some() { "ours/IOR [95 %]" } else { "ours/fio [95 %]" },
        "verdict",
        "ours/ours without room",
        "request KiB o/f",
        "device/file",
        "sync ms o/f",
        "others o/f"
    );
    let rows = match &args.ior {
        Some(_) => Row::beside_ior(args.m_part, &args.jobs),
        None => Row::beside_fio(args.m_part, &args.jobs),
    };
    let mut tally = Tally::default();
    for row in rows {
        let name = row.name();
        if !args.only.is_empty() && !args.only.iter().all(|word| name.contains(word.as_str())) {
            continue;
        }
        let mut work = work(args, &scratch, &row)?;
        choose(args, &mut work)?;
        let mut samples = Vec::new();
        for pair in 0..pairs {
            if interrupt.raised() {
                return Err("ended by a signal; the rows above are whole".into());
            }
            let mut order = vec![Side::Ours, Side::Other];
            if has_before(&work) {
                order.push(Side::Before);
            }
            if pair % 2 == 1 {
                order.reverse();
            }
            if args.patience > 0.0 {
                machine::wait_for_quiet(QUIET_PROCESSORS, Duration::from_secs_f64(args.patience));
            }
            let mut both = [Sample::default(); 3];
            for side in order {
                both[side as usize] = measure(side, &work, device.as_ref())?;
            }
            samples.push(both);
        }
        let (text, ratio) = line(&work, &samples);
        println!("{name:<50} {text}");
        tally.add(row.method, ratio);
    }
    tally.lines().iter().for_each(|line| println!("{line}"));
    Ok(())
}

/// Our own driver without room stands beside it.
fn has_before(work: &Work) -> bool {
    work.access == Access::Write && work.room != Room::None
}

fn batch(args: &Args, depth: u32) -> u32 {
    args.batch.unwrap_or(depth / 4).clamp(1, depth)
}

/// Period of the memory of our side, as large as fio's: its queue has one buffer for each operation in flight. Memory is not free: with
/// twice as much, reads of 1 MiB that come out of the cache of a virtual machine's host are a tenth slower.
fn memory_bytes(row: &Row, depth: u32) -> u64 {
    match row.method {
        Method::UringDirect => u64::from(depth) * row.chunk_bytes,
        Method::PosixDirect | Method::PosixBuffered => 4096,
    }
}

/// What both sides do in a row: as many bytes as take about the time of one run.
fn work(args: &Args, scratch: &Scratch, row: &Row) -> Result<Work, Failure> {
    let operation_bytes = args.operation.filter(|bytes| *bytes > 0);
    let bound = |bytes: u64| {
        let by_bytes = (IN_FLIGHT_BYTES / bytes).clamp(2, u64::from(u32::MAX)) as u32;
        if row.method == Method::UringDirect {
            args.depth.min(by_bytes)
        } else {
            1
        }
    };
    let fio_depth = bound(row.chunk_bytes);
    let depth = bound(operation_bytes.map_or(row.chunk_bytes, |bytes| bytes.min(row.chunk_bytes)));
    let mut work = Work {
        fio: args.fio.clone(),
        ior: args.ior.clone(),
        path: scratch.path().join("fresh"),
        method: row.method,
        access: row.access,
        room: row.room,
        jobs: row.jobs,
        shared: row.shared,
        // IOR's processes are where its launcher puts them.
        sessions: !args.one_session && args.ior.is_none(),
        chunk_bytes: row.chunk_bytes,
        chunks: (4 * MIB / row.chunk_bytes).max(2),
        depth,
        batch: batch(args, depth),
        fio_depth,
        fio_batch: batch(args, fio_depth),
        ring_bytes: args.ring.unwrap_or(memory_bytes(row, fio_depth)).next_multiple_of(4096),
        operation_bytes,
    };
    let seconds = args.seconds.unwrap_or(if args.quick { 0.1 } else { 0.5 });
    let jobs = u64::from(row.jobs);
    let most = match () {
        () if args.quick => 256 * MIB,
        () if row.chunk_bytes >= LARGE_CHUNK_BYTES && row.method != Method::PosixBuffered => LARGE_FILE_BYTES,
        () => *FILE_BYTES.end(),
    } / jobs;
    if row.access != Access::Write {
        work.chunks = (most / row.chunk_bytes).max(2);
        make_base(scratch, &mut work)?;
    }
    // The pilot grows, because the first chunks tell little about the rate.
    for _ in 0..2 {
        let pilot = measure(Side::Ours, &work, None)?;
        let bytes = work.job_bytes() as f64 / (pilot.transfer_seconds + pilot.sync_seconds) * seconds;
        let bytes = (bytes as u64).clamp((*FILE_BYTES.start()).min(most), most);
        work.chunks = (bytes / row.chunk_bytes).max(2);
        if work.shared && work.access != Access::Write {
            // The segments lie where the smaller file has them.
            make_base(scratch, &mut work)?;
        }
    }
    Ok(work)
}

/// How our side moves large chunks: what is the fastest in three turns of all ways there are, which are those that a run tries. Without
/// `--search` the first two kinds of operations stand beside whole chunks.
fn choose(args: &Args, work: &mut Work) -> Result<(), Failure> {
    if work.method != Method::UringDirect || !choice::is_large(work.chunk_bytes) || args.operation.is_some() {
        return Ok(());
    }
    let cut = |(bytes, depth)| Work { depth, batch: depth / 4, operation_bytes: Some(bytes), ..work.clone() };
    let smaller = |(bytes, _): &(u64, u32)| *bytes < work.chunk_bytes;
    let operations = choice::OPERATIONS.into_iter().filter(smaller);
    let whole = |depth| Work { depth, batch: batch(args, depth), ..work.clone() };
    let mut ways = if args.search {
        let [least, ..] = choice::LARGE_DEPTHS;
        let fits = |d: &u32| *d == least || u64::from(*d) * work.chunk_bytes <= IN_FLIGHT_BYTES;
        let depths = choice::LARGE_DEPTHS.into_iter().filter(fits);
        depths.map(whole).chain(operations.map(cut)).collect()
    } else {
        std::iter::once(work.clone()).chain(operations.take(2).map(cut)).collect::<Vec<_>>()
    };
    if args.search {
        ways.iter_mut()
            .for_each(|way| way.ring_bytes = u64::from(way.depth) * way.operation_bytes.unwrap_or(way.chunk_bytes));
    }
    let mut seconds = vec![Vec::new(); ways.len()];
    for turn in 0..3 {
        let mut order: Vec<usize> = (0..ways.len()).collect();
        if turn % 2 == 1 {
            order.reverse();
        }
        for way in order {
            let sample = measure(Side::Ours, &ways[way], None)?;
            seconds[way].push(sample.transfer_seconds + sample.sync_seconds);
        }
    }
    let medians = seconds.iter().map(|seconds| statistics::median(seconds));
    // As in a run: whole chunks unless operations are more than 3 % faster.
    let handicap =
        |way: &Work| if args.search || way.operation_bytes.is_none() { 1.0 } else { 1.0 / choice::NEAR_THE_BEST };
    let best =
        ways.iter().zip(medians).map(|(way, median)| (way, median * handicap(way))).min_by(|a, b| a.1.total_cmp(&b.1));
    if let Some((way, _)) = best {
        *work = way.clone();
    }
    Ok(())
}

/// Files that are there in full length, those of the row before removed.
fn make_base(scratch: &Scratch, work: &mut Work) -> Result<(), Failure> {
    work.path = scratch.path().join("base");
    for entry in std::fs::read_dir(scratch.path())? {
        removal::remove(&entry?.path())?;
    }
    if work.shared {
        return Ok(scratch.make_base(&work.path, work.bytes(), work.room)?);
    }
    Ok(work.paths().iter().try_for_each(|path| scratch.make_base(path, work.job_bytes(), work.room))?)
}

/// One run of one side, from the same state: no file, or a file without a page in the cache.
fn measure(side: Side, work: &Work, device: Option<&Device>) -> Result<Sample, Failure> {
    match work.access {
        Access::Write => work.paths().iter().try_for_each(|path| removal::remove(path))?,
        Access::Rewrite | Access::Read => work.paths().iter().try_for_each(|path| scratch::drop_pages(path))?,
        Access::Cached => work.paths().iter().try_for_each(|path| scratch::fill_pages(path))?,
    }
    let before = device.and_then(Device::traffic);
    let ticks = Ticks::now();
    let mut sample = match side {
        Side::Ours => sides::ours(work)?,
        Side::Other if work.ior.is_some() => ior::ior(work)?,
        Side::Other => sides::fio(work)?,
        Side::Before => sides::ours(&Work { room: Room::None, ..work.clone() })?,
    };
    let after = device.and_then(Device::traffic);
    sample.others = ticks.zip(Ticks::now()).map(|(before, after)| after.others_since(&before));
    sample.traffic = before.zip(after).map(|(b, a)| a.since(&b, work.access.is_read()));
    if work.access == Access::Write {
        work.paths().iter().try_for_each(|path| removal::remove(path))?;
    }
    Ok(sample)
}

/// The figures of a row.
fn line(work: &Work, samples: &[[Sample; 3]]) -> (String, statistics::Estimate) {
    let bytes = work.bytes();
    let rate = |s: &Sample| bytes as f64 / 1e6 / (s.transfer_seconds + s.sync_seconds);
    let median_of = |side: Side, value: &dyn Fn(&Sample) -> f64| {
        statistics::median(&samples.iter().map(|pair| value(&pair[side as usize])).collect::<Vec<_>>())
    };
    let ratios: Vec<f64> = samples.iter().map(|[ours, fio, _]| rate(ours) / rate(fio)).collect();
    let ratio = statistics::Estimate::of(&ratios);
    let gain = if !has_before(work) {
        "-".to_owned()
    } else {
        let ratios: Vec<f64> = samples.iter().map(|[ours, _, before]| rate(ours) / rate(before)).collect();
        let gain = statistics::Estimate::of(&ratios);
        format!("{:.2} [{:.2}, {:.2}]", gain.middle, gain.low, gain.high)
    };
    let both = |value: &dyn Fn(&Sample) -> f64, digits: usize| {
        let [ours, fio] = [Side::Ours, Side::Other].map(|side| median_of(side, value));
        format!("{ours:.digits$} / {fio:.digits$}")
    };
    let known = samples.iter().all(|[ours, fio, _]| ours.traffic.is_some() && fio.traffic.is_some());
    let traffic = |s: &Sample| s.traffic.unwrap_or_default();
    let of_device = |value: &dyn Fn(Traffic) -> f64, digits: usize| {
        if known {
            both(&|s| value(traffic(s)), digits)
        } else {
            "-".to_owned()
        }
    };
    let way = match (work.chunk_bytes > MIB, work.operation_bytes) {
        (false, _) => String::new(),
        (true, None) => format!("  depth {}, whole", work.depth),
        (true, Some(bytes)) => format!("  depth {}, operations of {bytes}", work.depth),
    };
    let text = format!(
        "{:>8} {:>9.1} {:>9.1}  {:<22} {:<8} {:<22} {:>17} {:>13} {:>15} {:>9}{way}",
        format_size(bytes).replace(' ', ""),
        median_of(Side::Ours, &rate),
        median_of(Side::Other, &rate),
        format!("{:.3} [{:.3}, {:.3}]", ratio.middle, ratio.low, ratio.high),
        ratio.verdict(),
        gain,
        of_device(&|t| t.mean_request_bytes() / 1024.0, 1),
        of_device(&|t| t.bytes as f64 / bytes as f64, 2),
        both(&|s| s.sync_seconds * 1e3, 1),
        both(&|s| s.others.unwrap_or(f64::NAN), 1)
    );
    (text, ratio)
}
