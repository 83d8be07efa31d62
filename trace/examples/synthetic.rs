//! `synthetic DIR RANKS CALLS OUT`: creates the files of RANKS processes with CALLS calls in total in DIR and merges them to OUT. Prints
//! time and peak memory of both steps. Half of the calls are interleaved writes of 4 KiB to a shared file; the other half reads what the
//! previous rank wrote.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout)]

#[path = "../src/raw/recorder.rs"]
mod recorder;

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use beff_trace::raw::Event;
use beff_trace::{Amode, Call, Datatype, Function};
use recorder::{head, FixtureRecorder};

const BLOCK_BYTES: i64 = 4096;

fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) / 1024
}

/// CPU seconds of this thread.
fn cpu_seconds() -> f64 {
    let status = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    status.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

fn record(directory: &Path, ranks: u32, calls: u64) -> Result<(), Box<dyn Error>> {
    let each = (calls / u64::from(ranks)).max(2);
    for rank in 0..ranks {
        let mut recorder =
            FixtureRecorder::new(directory, &head(rank, ranks, "MPICH Version: 4.0", each * 1200 + 10_000))?;
        recorder.event(&Event::Type {
            id: 0,
            datatype: Datatype::Named { name: "BYTE".to_owned(), size_bytes: 1, extent_bytes: 1 },
        })?;
        recorder.event(&Event::Comm { id: 0, ranks: (0..ranks).collect() })?;
        let mut open = Call::new(Function::Open, 10 + u64::from(rank), 900);
        open.handle = Some(1);
        open.name = Some("/scratch/common".to_owned());
        (open.comm, open.amode, open.number) = (Some(0), Some(Amode(0b1010)), Some(-1));
        recorder.event(&Event::Call(Box::new(open)))?;
        let half = each / 2;
        for n in 1..each {
            let begin_ns = n * 1200 + u64::from(rank) * 7;
            let (function, of) =
                if n < half { (Function::WriteAt, rank) } else { (Function::ReadAt, (rank + 1) % ranks) };
            let mut call = Call::new(function, begin_ns, begin_ns + 900);
            (call.handle, call.datatype) = (Some(1), Some(0));
            call.offset = Some(((n % half) as i64 * i64::from(ranks) + i64::from(of)) * BLOCK_BYTES);
            (call.count, call.bytes) = (Some(BLOCK_BYTES), Some(BLOCK_BYTES as u64));
            recorder.compact(&call)?;
        }
        recorder.finish()?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, ranks, calls, out] = arguments.as_slice() else {
        return Err("usage: synthetic DIR RANKS CALLS OUT".into());
    };
    std::fs::create_dir_all(directory)?;
    let start = Instant::now();
    record(Path::new(directory), ranks.parse()?, calls.parse()?)?;
    println!("recorded in {:.1} s, {} MiB", start.elapsed().as_secs_f64(), peak_mib());
    let (start, before) = (Instant::now(), cpu_seconds());
    let report =
        beff_trace::merge::merge(Path::new(directory), Path::new(out), &beff_trace::merge::MergeOptions::default())?;
    let (passed, used) = (start.elapsed().as_secs_f64(), cpu_seconds() - before);
    println!("merged {} calls in {passed:.1} s (CPU {used:.1} s), {} MiB", report.calls, peak_mib());
    report.remarks().iter().for_each(|remark| println!("{remark}"));
    Ok(())
}
