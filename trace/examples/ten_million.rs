//! Time and memory to write, read and summarize a large profile: `cargo run --release -p beff-trace --example ten_million [CALLS] [RANKS]
//! [DIR]`.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::fs::File;
use std::path::Path;
use std::time::Instant;

use beff_trace::text::{self, ProfileWriter};
use beff_trace::{Amode, Call, Datatype, Function, OpenedFile, Process, ProfileHead};

fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()).unwrap_or(0) >> 10
}

/// User and system CPU seconds of the process: on a loaded machine more meaningful than elapsed time.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let behind = stat.rsplit(") ").next().unwrap_or_default();
    let ticks = behind.split(' ').skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok());
    ticks.sum::<f64>() / 100.0
}

fn timed<T>(what: &str, run: impl FnOnce() -> Result<T, Box<dyn Error>>) -> Result<T, Box<dyn Error>> {
    let (begin, cpu) = (Instant::now(), cpu_seconds());
    let answer = run()?;
    let (seconds, cpu) = (begin.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    println!("{what}: {seconds:.2} s, CPU {cpu:.2} s, peak {} MiB", peak_mib());
    Ok(answer)
}

fn head(ranks: u32, calls: u64) -> ProfileHead {
    let process = |rank| Process {
        host: "node1".into(),
        pid: 1000 + rank,
        clock_offset_ns: [0, 0],
        end: beff_trace::RecordingStatus::Complete,
        calls,
        storage_bytes: None,
    };
    ProfileHead {
        library: "a library".into(),
        command: vec!["app".into()],
        processes: (0..ranks).map(process).collect(),
        comms: vec![(0..ranks).collect()],
        types: vec![Datatype::Named { name: "BYTE".into(), size_bytes: 1, extent_bytes: 1 }],
        files: vec![OpenedFile {
            path: "out.dat".into(),
            size_bytes: Some(0),
            fs_type: "ext4".into(),
            created_ns: None,
            removed_ns: None,
        }],
        ..ProfileHead::default()
    }
}

fn call(n: u64, calls: u64, rank: u32, ranks: u32) -> Call {
    let begin = 1_000_000_000 + n * 2000 + u64::from(rank);
    let function = match n {
        0 => Function::Open,
        n if n + 1 == calls => Function::Close,
        n if n % 2 == 0 => Function::ReadAt,
        _ => Function::WriteAt,
    };
    let mut call = Call::new(function, begin, begin + 700 + n % 300);
    call.handle = Some(1);
    if function == Function::Open {
        (call.comm, call.file, call.amode, call.number) = (Some(0), Some(0), Some(Amode(0b1010)), Some(0));
    } else if function != Function::Close {
        call.offset = i64::try_from((n / 2 * u64::from(ranks) + u64::from(rank)) * 4096).ok();
        (call.count, call.datatype, call.bytes) = (Some(4096), Some(0), Some(4096));
    }
    call
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |n: usize, default: u64| arguments.get(n).map_or(Ok(default), |a| a.parse());
    let (total, ranks) = (number(0, 10_000_000)?, u32::try_from(number(1, 4)?)?);
    let dir = arguments.get(2).map_or("/dev/shm", String::as_str);
    let calls = total / u64::from(ranks);
    for (name, zstd) in [("ten_million.csv", false), ("ten_million.csv.zst", true)] {
        let path = Path::new(dir).join(name);
        timed(&format!("{name} written"), || {
            let mut writer = ProfileWriter::new(File::create(&path)?, zstd);
            writer.head(&head(ranks, calls))?;
            for rank in 0..ranks {
                writer.begin_calls(rank, calls)?;
                (0..calls).try_for_each(|n| writer.call(&call(n, calls, rank, ranks)))?;
            }
            writer.finish()?;
            Ok(())
        })?;
        println!("  {} calls, {} MB", calls * u64::from(ranks), std::fs::metadata(&path)?.len() / 1_000_000);
        timed("  read by all", || {
            Ok(text::read_all_ranks(&path)?.1.try_fold(0_u64, |n, call| call.map(|_| n + 1))?)
        })?;
        timed("  read by the last rank", || {
            Ok(text::read_rank(&path, ranks - 1)?.1.try_fold(0_u64, |n, call| call.map(|_| n + 1))?)
        })?;
        timed("  summarized and shown", || Ok(beff_trace::summary::summarize(&path)?.text(100)))?;
        let begin = Instant::now();
        let mut writer = ProfileWriter::new(File::create(&path)?, zstd);
        writer.head(&head(ranks, calls))?;
        for rank in 0..ranks {
            writer.begin_calls(rank, calls)?;
            (0..calls).try_for_each(|n| writer.call(&call(n, calls, rank, ranks)))?;
        }
        writer.finish()?;
        let bytes = std::fs::metadata(&path)?.len();
        println!(
            "{name}: {total} calls, {} MB, written in {:.2} s, peak {} MiB",
            bytes / 1_000_000,
            begin.elapsed().as_secs_f64(),
            peak_mib()
        );
        let begin = Instant::now();
        let read = text::read_all_ranks(&path)?.1.try_fold(0_u64, |n, call| call.map(|_| n + 1))?;
        println!("{name}: {read} calls read in {:.2} s, peak {} MiB", begin.elapsed().as_secs_f64(), peak_mib());
        let begin = Instant::now();
        let read = text::read_rank(&path, ranks - 1)?.1.try_fold(0_u64, |n, call| call.map(|_| n + 1))?;
        println!("{name}: {read} calls of the last rank read in {:.2} s", begin.elapsed().as_secs_f64());
        std::fs::remove_file(&path)?;
    }
    Ok(())
}
