//! Compares the posix and uring drivers with fio on the same work in the same run: `cargo bench --bench fio -- --path DIR`; with `--ior
//! PROGRAM` the posix driver with IOR. It is not a pass/fail test: it shows where a driver is slower. `benches/README.md` lists what is
//! equal on both sides and explains the table.

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

use device::{DiskDevice, DiskTraffic};
use machine::CpuTicks;
use rows::{ComparedCase, MethodRatios};
use scratch::ScratchDirectory;
use sides::{Contender, FileWorkload, IoMethod, JobDescription, PreallocationPolicy, RunSample};

type BenchError = Box<dyn std::error::Error>;

/// Smallest file of a row, and largest size of all its files together.
const FILE_SIZE_RANGE: std::ops::RangeInclusive<u64> = 16 * MIB..=1024 * MIB;
/// Maximum file size where chunks of [`LARGE_CHUNK_BYTES`] bypass the page cache: a few hundred chunks, the first of which are issued in
/// short batches that drain the queue.
const MAX_LARGE_FILE_BYTES: u64 = 4096 * MIB;
const LARGE_CHUNK_BYTES: u64 = 8 * MIB;
/// Maximum bytes in flight, on both sides.
const MAX_IN_FLIGHT_BYTES: u64 = 64 * MIB;
/// CPUs that other processes may use for the system to count as idle.
const MAX_OTHER_CPUS: f64 = 0.25;

/// Compares the posix and uring drivers with fio, or posix with IOR, row by row, in alternating pairs.
#[derive(Debug, Parser)]
#[command(name = "cargo bench --bench fio --")]
struct ComparisonArgs {
    /// Directory on the storage to measure; all files are created in a new directory below it and removed
    #[arg(long, value_name = "DIR")]
    path: Option<PathBuf>,
    /// Three pairs of short runs, as a functional check
    #[arg(long)]
    quick: bool,
    /// Pairs per row [default: 9, with --quick 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..))]
    pairs: Option<u32>,
    /// Approximate time of one run; fio reports times in ms [default: 0.5, with --quick 0.1]
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<f64>,
    /// Maximum operations in flight (uring)
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=4096))]
    depth: u32,
    /// Operations per submission and wait (uring) [default: a quarter of the depth]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    batch: Option<u32>,
    /// Largest chunk, as M_PART in a run
    #[arg(long, value_name = "SIZE", default_value = "8M", value_parser = parse_size)]
    m_part: u64,
    /// Numbers of processes, each with its own file, on both sides
    #[arg(long, alias = "numjobs", value_name = "LIST", value_delimiter = ',', default_value = "1,2,4",
        value_parser = clap::value_parser!(u32).range(1..=64))]
    jobs: Vec<u32>,
    /// Size of our transfer buffer; a run uses 32 MiB or more [default: as much as fio]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    ring: Option<u64>,
    /// Maximum size of our io_uring operations; larger chunks are split; 0: one operation per chunk [default: 0, or 8 MiB in operations of
    /// 1 or 2 MiB in flight if these are 3 % faster in three rounds of trials, as in a run]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    operation: Option<u64>,
    /// For chunks above 1 MiB use the best of all depths and operation sizes that a run tries, with a buffer of the bytes in flight
    #[arg(long, conflicts_with_all = ["operation", "depth", "batch", "ring"])]
    search: bool,
    /// Keep our processes in the session of this command, as Open MPI does with ranks. fio creates a session per process, as MPICH does,
    /// and Linux divides CPU time among sessions (sched(7), autogroup)
    #[arg(long)]
    one_session: bool,
    /// Only rows whose name contains all of these words, e.g. `uring,rewrite` or `rand`
    #[arg(long, value_name = "WORDS", value_delimiter = ',')]
    only: Vec<String>,
    /// Wait up to this long before each pair until other processes leave the CPUs idle
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0)]
    patience: f64,
    /// Path of fio
    #[arg(long, value_name = "PROGRAM", default_value = "fio")]
    fio: PathBuf,
    /// Compare with this IOR instead of fio: POSIX through the page cache, one buffer for all calls, each process in its segment of a
    /// shared file or in its own file. Launched by $BEFF_MPIRUN, else mpirun
    #[arg(long, value_name = "PROGRAM")]
    ior: Option<PathBuf>,
    /// Run one job of our side; the job description is read from standard input
    #[arg(long, hide = true)]
    worker: bool,
    /// Passed by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    let args = ComparisonArgs::parse();
    if args.worker {
        return match worker::run_worker() {
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

fn compare(args: &ComparisonArgs, path: &Path, version: &str) -> Result<(), BenchError> {
    // A signal ends the comparison between two runs, so that the files are removed.
    let interrupt = Interrupt::watch()?;
    let scratch = ScratchDirectory::new(path)?;
    let device = DiskDevice::of(scratch.path());
    let pairs = args.pairs.unwrap_or(if args.quick { 3 } else { 9 });
    println!(
        "{version}, depth {}, batches of {}, {pairs} pairs per row, order A B B A",
        args.depth,
        batch(args, args.depth)
    );
    match &device {
        Some(device) => println!("device {} below {}", device.name, path.display()),
        None => println!("no dedicated block device below {}: requests are unknown", path.display()),
    }
    println!(
        "{:<50} {:>8} {:>9} {:>9}  {:<22} {:<8} {:<22} {:>17} {:>13} {:>15} {:>9}",
        "row",
        "file",
        "ours",
        if args.ior.is_some() { "IOR" } else { "fio" },
        if args.ior.is_some() { "ours/IOR [95 %]" } else { "ours/fio [95 %]" },
        "verdict",
        "ours/no preallocation",
        "request KiB o/f",
        "device/file",
        "sync ms o/f",
        "other CPUs"
    );
    let rows = match &args.ior {
        Some(_) => ComparedCase::for_ior(args.m_part, &args.jobs),
        None => ComparedCase::for_fio(args.m_part, &args.jobs),
    };
    let mut tally = MethodRatios::default();
    for row in rows {
        let name = row.name();
        if !args.only.is_empty() && !args.only.iter().all(|word| name.contains(word.as_str())) {
            continue;
        }
        let mut work = plan_job(args, &scratch, &row)?;
        choose_operations(args, &mut work)?;
        let mut samples = Vec::new();
        for pair in 0..pairs {
            if interrupt.is_raised() {
                return Err("interrupted by a signal; the rows above are complete".into());
            }
            let mut order = vec![Contender::Ours, Contender::Other];
            if has_baseline(&work) {
                order.push(Contender::WithoutPreallocation);
            }
            if pair % 2 == 1 {
                order.reverse();
            }
            if args.patience > 0.0 {
                machine::wait_until_idle(MAX_OTHER_CPUS, Duration::from_secs_f64(args.patience));
            }
            let mut both = [RunSample::default(); 3];
            for side in order {
                both[side as usize] = measure(side, &work, device.as_ref())?;
            }
            samples.push(both);
        }
        let (text, ratio) = format_row(&work, &samples);
        println!("{name:<50} {text}");
        tally.add(row.method, ratio);
    }
    tally.lines().iter().for_each(|line| println!("{line}"));
    Ok(())
}

/// True if our driver without preallocation is measured too.
fn has_baseline(work: &JobDescription) -> bool {
    work.access == FileWorkload::Write && work.preallocation != PreallocationPolicy::None
}

fn batch(args: &ComparisonArgs, depth: u32) -> u32 {
    args.batch.unwrap_or(depth / 4).clamp(1, depth)
}

/// Size of our transfer buffer, equal to fio's: its queue has one buffer per operation in flight. The size matters: with twice as much,
/// reads of 1 MiB from the cache of a virtual machine's host are a tenth slower.
fn memory_bytes(row: &ComparedCase, depth: u32) -> u64 {
    match row.method {
        IoMethod::UringDirect => u64::from(depth) * row.chunk_bytes,
        IoMethod::PosixDirect | IoMethod::PosixBuffered => 4096,
    }
}

/// Describes the work of both sides in a row, with as many bytes as take about the time of one run.
fn plan_job(
    args: &ComparisonArgs,
    scratch: &ScratchDirectory,
    row: &ComparedCase,
) -> Result<JobDescription, BenchError> {
    let operation_bytes = args.operation.filter(|bytes| *bytes > 0);
    let bound = |bytes: u64| {
        let by_bytes = (MAX_IN_FLIGHT_BYTES / bytes).clamp(2, u64::from(u32::MAX)) as u32;
        if row.method == IoMethod::UringDirect {
            args.depth.min(by_bytes)
        } else {
            1
        }
    };
    let fio_depth = bound(row.chunk_bytes);
    let depth = bound(operation_bytes.map_or(row.chunk_bytes, |bytes| bytes.min(row.chunk_bytes)));
    let mut work = JobDescription {
        fio: args.fio.clone(),
        ior: args.ior.clone(),
        path: scratch.path().join("fresh"),
        method: row.method,
        access: row.access,
        preallocation: row.preallocation,
        jobs: row.jobs,
        shared: row.shared,
        // The launcher places IOR's processes.
        sessions: !args.one_session && args.ior.is_none(),
        chunk_bytes: row.chunk_bytes,
        chunks: (4 * MIB / row.chunk_bytes).max(2),
        depth,
        batch: batch(args, depth),
        fio_depth,
        fio_batch: batch(args, fio_depth),
        buffer_bytes: args.ring.unwrap_or(memory_bytes(row, fio_depth)).next_multiple_of(4096),
        operation_bytes,
    };
    let seconds = args.seconds.unwrap_or(if args.quick { 0.1 } else { 0.5 });
    let jobs = u64::from(row.jobs);
    let most = match () {
        () if args.quick => 256 * MIB,
        () if row.chunk_bytes >= LARGE_CHUNK_BYTES && row.method != IoMethod::PosixBuffered => MAX_LARGE_FILE_BYTES,
        () => *FILE_SIZE_RANGE.end(),
    } / jobs;
    if row.access != FileWorkload::Write {
        work.chunks = (most / row.chunk_bytes).max(2);
        create_base_files(scratch, &mut work)?;
    }
    // The file grows after a pilot, because the rate of the first chunks is not representative.
    for _ in 0..2 {
        let pilot = measure(Contender::Ours, &work, None)?;
        let bytes = work.job_bytes() as f64 / (pilot.transfer_seconds + pilot.sync_seconds) * seconds;
        let bytes = (bytes as u64).clamp((*FILE_SIZE_RANGE.start()).min(most), most);
        work.chunks = (bytes / row.chunk_bytes).max(2);
        if work.shared && work.access != FileWorkload::Write {
            // The offsets of the segments depend on the file size.
            create_base_files(scratch, &mut work)?;
        }
    }
    Ok(work)
}

/// Chooses how our side transfers large chunks: the fastest in three rounds over all alternatives that a run tries. Without `--search` the
/// first two operation sizes are compared with whole chunks.
fn choose_operations(args: &ComparisonArgs, work: &mut JobDescription) -> Result<(), BenchError> {
    if work.method != IoMethod::UringDirect || !choice::is_large(work.chunk_bytes) || args.operation.is_some() {
        return Ok(());
    }
    let cut = |(bytes, depth)| JobDescription { depth, batch: depth / 4, operation_bytes: Some(bytes), ..work.clone() };
    let smaller = |(bytes, _): &(u64, u32)| *bytes < work.chunk_bytes;
    let operations = choice::OPERATIONS.into_iter().filter(smaller);
    let whole = |depth| JobDescription { depth, batch: batch(args, depth), ..work.clone() };
    let mut ways = if args.search {
        let [least, ..] = choice::LARGE_DEPTHS;
        let fits = |d: &u32| *d == least || u64::from(*d) * work.chunk_bytes <= MAX_IN_FLIGHT_BYTES;
        let depths = choice::LARGE_DEPTHS.into_iter().filter(fits);
        depths.map(whole).chain(operations.map(cut)).collect()
    } else {
        std::iter::once(work.clone()).chain(operations.take(2).map(cut)).collect::<Vec<_>>()
    };
    if args.search {
        ways.iter_mut()
            .for_each(|way| way.buffer_bytes = u64::from(way.depth) * way.operation_bytes.unwrap_or(way.chunk_bytes));
    }
    let mut seconds = vec![Vec::new(); ways.len()];
    for turn in 0..3 {
        let mut order: Vec<usize> = (0..ways.len()).collect();
        if turn % 2 == 1 {
            order.reverse();
        }
        for way in order {
            let sample = measure(Contender::Ours, &ways[way], None)?;
            seconds[way].push(sample.transfer_seconds + sample.sync_seconds);
        }
    }
    let medians = seconds.iter().map(|seconds| statistics::median(seconds));
    // As in a run, whole chunks are kept unless operations are more than 3 % faster.
    let handicap = |way: &JobDescription| {
        if args.search || way.operation_bytes.is_none() {
            1.0
        } else {
            1.0 / choice::NEAR_BEST_SHARE
        }
    };
    let best =
        ways.iter().zip(medians).map(|(way, median)| (way, median * handicap(way))).min_by(|a, b| a.1.total_cmp(&b.1));
    if let Some((way, _)) = best {
        *work = way.clone();
    }
    Ok(())
}

/// Removes the files of the previous row and creates files of full length.
fn create_base_files(scratch: &ScratchDirectory, work: &mut JobDescription) -> Result<(), BenchError> {
    work.path = scratch.path().join("base");
    for entry in std::fs::read_dir(scratch.path())? {
        removal::remove(&entry?.path())?;
    }
    if work.shared {
        return Ok(scratch.create_base_file(&work.path, work.bytes(), work.preallocation)?);
    }
    Ok(work.paths().iter().try_for_each(|path| scratch.create_base_file(path, work.job_bytes(), work.preallocation))?)
}

/// Measures one side once, from the same initial state: no file, or a file without pages in the cache.
fn measure(side: Contender, work: &JobDescription, device: Option<&DiskDevice>) -> Result<RunSample, BenchError> {
    match work.access {
        FileWorkload::Write => work.paths().iter().try_for_each(|path| removal::remove(path))?,
        FileWorkload::Rewrite
        | FileWorkload::Read
        | FileWorkload::RandomRewrite
        | FileWorkload::RandomRead
        | FileWorkload::RandomMixed => work.paths().iter().try_for_each(|path| scratch::drop_page_cache(path))?,
        FileWorkload::Cached => work.paths().iter().try_for_each(|path| scratch::populate_page_cache(path))?,
    }
    let before = device.and_then(DiskDevice::counters);
    let ticks = CpuTicks::now();
    let mut sample = match side {
        Contender::Ours => sides::measure_ours(work)?,
        Contender::Other if work.ior.is_some() => ior::measure_ior(work)?,
        Contender::Other => sides::measure_fio(work)?,
        Contender::WithoutPreallocation => {
            sides::measure_ours(&JobDescription { preallocation: PreallocationPolicy::None, ..work.clone() })?
        }
    };
    let after = device.and_then(DiskDevice::counters);
    sample.other_cpus = ticks.zip(CpuTicks::now()).map(|(before, after)| after.other_cpus_since(&before));
    sample.traffic = before.zip(after).map(|(b, a)| a.since(&b, work.access.is_read()));
    if work.access == FileWorkload::Write {
        work.paths().iter().try_for_each(|path| removal::remove(path))?;
    }
    Ok(sample)
}

fn format_row(work: &JobDescription, samples: &[[RunSample; 3]]) -> (String, statistics::MedianEstimate) {
    let bytes = work.bytes();
    let rate = |s: &RunSample| bytes as f64 / 1e6 / (s.transfer_seconds + s.sync_seconds);
    let median_of = |side: Contender, value: &dyn Fn(&RunSample) -> f64| {
        statistics::median(&samples.iter().map(|pair| value(&pair[side as usize])).collect::<Vec<_>>())
    };
    let ratios: Vec<f64> = samples.iter().map(|[ours, fio, _]| rate(ours) / rate(fio)).collect();
    let ratio = statistics::MedianEstimate::of(&ratios);
    let gain = if !has_baseline(work) {
        "-".to_owned()
    } else {
        let ratios: Vec<f64> = samples.iter().map(|[ours, _, before]| rate(ours) / rate(before)).collect();
        let gain = statistics::MedianEstimate::of(&ratios);
        format!("{:.2} [{:.2}, {:.2}]", gain.median, gain.low, gain.high)
    };
    let both = |value: &dyn Fn(&RunSample) -> f64, digits: usize| {
        let [ours, fio] = [Contender::Ours, Contender::Other].map(|side| median_of(side, value));
        format!("{ours:.digits$} / {fio:.digits$}")
    };
    let known = samples.iter().all(|[ours, fio, _]| ours.traffic.is_some() && fio.traffic.is_some());
    let traffic = |s: &RunSample| s.traffic.unwrap_or_default();
    let of_device = |value: &dyn Fn(DiskTraffic) -> f64, digits: usize| {
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
        median_of(Contender::Ours, &rate),
        median_of(Contender::Other, &rate),
        format!("{:.3} [{:.3}, {:.3}]", ratio.median, ratio.low, ratio.high),
        ratio.verdict(),
        gain,
        of_device(&|t| t.mean_request_bytes() / 1024.0, 1),
        of_device(&|t| t.bytes as f64 / bytes as f64, 2),
        both(&|s| s.sync_seconds * 1e3, 1),
        both(&|s| s.other_cpus.unwrap_or(f64::NAN), 1)
    );
    (text, ratio)
}
