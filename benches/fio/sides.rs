//! The two sides: our drivers through their public interface, and fio as a program.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use beff_backends::{
    driver, Batch, Direct, Direction, DriverOptions, FilePath, Latency, OpenMode, OpenRequest, Pattern, Ring, Tuned,
};
use beff_ffi::Comm;
use beff_raw::b_eff_io::config::Termination;
use beff_raw::b_eff_io::run::batching::{next, CallsEnd, Limits, Progress, Step};

use crate::device::Traffic;
use crate::scratch::noise;
use crate::Failure;

/// How bytes move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    UringDirect,
    PosixDirect,
    PosixBuffered,
}

impl Method {
    pub fn name(self) -> &'static str {
        match self {
            Self::UringDirect => "uring direct",
            Self::PosixDirect => "posix direct",
            Self::PosixBuffered => "posix buffered",
        }
    }
}

/// What is done with the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Of a file that is new and empty.
    Write,
    /// Of a file that is there in full length.
    Rewrite,
    Read,
}

impl Access {
    pub fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Rewrite => "rewrite",
            Self::Read => "read",
        }
    }
}

/// Who works.
#[derive(Clone, Copy, Debug)]
pub enum Side {
    Ours = 0,
    Fio = 1,
}

/// The work, equal for both sides.
#[derive(Clone, Debug)]
pub struct Work {
    pub fio: PathBuf,
    pub path: PathBuf,
    pub method: Method,
    pub access: Access,
    pub chunk_bytes: u64,
    pub chunks: u64,
    /// Operations in flight at most.
    pub depth: u32,
    /// Operations submitted and waited for together.
    pub batch: u32,
    /// Memory of our side.
    pub ring_bytes: u64,
}

impl Work {
    pub fn bytes(&self) -> u64 {
        self.chunk_bytes * self.chunks
    }

    fn is_direct(&self) -> bool {
        self.method != Method::PosixBuffered
    }

    /// True if fio syncs within its own time. Its io_uring engine leaves `end_fsync` out without a word when more than
    /// one completion is waited for (seen with 3.33), so there the file is synced after fio has ended, by the same call as on our side.
    fn fio_syncs(&self) -> bool {
        self.access != Access::Read && self.method != Method::UringDirect
    }
}

/// One run of one side.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    /// Time of the transfers; with the sync where that cannot be told apart.
    pub transfer_seconds: f64,
    /// Time of the sync, where it is known.
    pub sync_seconds: f64,
    /// What the device was asked for.
    pub traffic: Option<Traffic>,
    /// Processors kept busy by others meanwhile.
    pub others: Option<f64>,
}

/// The driver, in batches as a run makes them. Open, registration and close are outside the time, as in fio.
pub fn ours(work: &Work) -> Result<Sample, Failure> {
    let direction = if work.access == Access::Read { Direction::Read } else { Direction::Write };
    let name = if work.method == Method::UringDirect { "uring" } else { "posix" };
    let row = driver(name).ok_or("the driver is not in the table")?;
    let chunk_bytes = work.chunk_bytes;
    let tuned = vec![Tuned { direction, chunk_bytes, depth: work.depth, wait_for: work.batch }];
    let direct = if work.is_direct() { Direct::Required } else { Direct::Off };
    let options = DriverOptions { direct, queue_depth: work.depth, tuned, ..DriverOptions::default() };
    let mut ring = Ring::new(work.ring_bytes, chunk_bytes.next_multiple_of(4096))?;
    noise(ring.bytes_mut());
    let mode = match work.access {
        Access::Write => OpenMode::CreateNew,
        Access::Rewrite => OpenMode::Update,
        Access::Read => OpenMode::ReadOnly,
    };
    let own = Comm::own();
    let path = FilePath::of(&work.path)?;
    let request = OpenRequest { path: &path, mode, comm: &own, hints: &[] };
    let mut file = (row.make)(&options).open(&request)?;
    let pattern = Pattern::private(work.chunk_bytes, 1, work.chunks);
    if let Some(reason) = file.unsupported(&pattern) {
        return Err(reason.into());
    }
    file.prepare(&pattern, direction, &mut ring, &[])?;
    let mut latency = Latency::off();
    let limits = Limits {
        max_calls: work.chunks,
        calls_end: CallsEnd::Count,
        time_seconds: None,
        time_is_guard: false,
        sync: None,
        call_bytes_all_ranks: chunk_bytes,
        termination: Termination::Geometric,
    };
    let mut progress = Progress::default();
    let begin = Instant::now();
    while let Step::Run(calls) = next(&limits, &progress) {
        let batch = Batch { first_call: progress.calls, calls };
        let batch_begin = Instant::now();
        match direction {
            Direction::Write => file.write(batch, &ring, &mut latency)?,
            Direction::Read => file.read(batch, &mut ring, &mut latency)?,
        };
        progress.calls += calls;
        progress.last_calls = calls;
        progress.last_seconds = batch_begin.elapsed().as_secs_f64();
    }
    let transfer_seconds = begin.elapsed().as_secs_f64();
    if direction == Direction::Write {
        file.sync()?;
    }
    let all_seconds = begin.elapsed().as_secs_f64();
    file.close()?;
    Ok(Sample { transfer_seconds, sync_seconds: all_seconds - transfer_seconds, ..Sample::default() })
}

/// The version as the program tells it.
pub fn fio_version(fio: &Path) -> std::io::Result<String> {
    let output = Command::new(fio).arg("--version").output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// fio with everything off that is not the transfer itself: clock readings for each operation, filling and scrambling of
/// buffers, preallocation, its own dropping of the cache.
fn fio_arguments(work: &Work) -> Vec<String> {
    let (depth, batch) = (work.depth, work.batch);
    let mut words = vec![
        "--name=beff".into(),
        format!("--filename={}", work.path.display()),
        format!("--size={}", work.bytes()),
        format!("--bs={}", work.chunk_bytes),
        format!("--rw={}", if work.access == Access::Read { "read" } else { "write" }),
        format!("--direct={}", u8::from(work.is_direct())),
        format!("--overwrite={}", u8::from(work.access == Access::Rewrite)),
        format!("--end_fsync={}", u8::from(work.fio_syncs())),
    ];
    let fixed = "--thread --fallocate=none --invalidate=0 --gtod_reduce=1 --refill_buffers=0 --zero_buffers=0 \
                 --scramble_buffers=0 --output-format=json";
    words.extend(fixed.split_whitespace().map(str::to_owned));
    if work.method == Method::UringDirect {
        words.extend([
            "--ioengine=io_uring".into(),
            "--fixedbufs=1".into(),
            "--registerfiles=1".into(),
            format!("--iodepth={depth}"),
            format!("--iodepth_batch_submit={batch}"),
            format!("--iodepth_batch_complete_min={batch}"),
            format!("--iodepth_batch_complete_max={depth}"),
        ]);
    } else {
        words.push("--ioengine=psync".into());
    }
    words
}

/// fio as a program of its own. Its time begins when its files are open and its memory is registered, and ends with the last completion, or with
/// its sync.
pub fn fio(work: &Work) -> Result<Sample, Failure> {
    // glibc's malloc then asks for huge pages, as our memory does: they decide how large requests to the device can be.
    let huge = ("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1");
    let output = Command::new(&work.fio).args(fio_arguments(work)).env(huge.0, huge.1).stdin(Stdio::null()).output()?;
    let mut sync_seconds = 0.0;
    if work.access != Access::Read && !work.fio_syncs() {
        let file = File::open(&work.path)?;
        let begin = Instant::now();
        file.sync_all()?;
        sync_seconds = begin.elapsed().as_secs_f64();
    }
    let said = String::from_utf8_lossy(&output.stdout);
    // Notes may stand before the document.
    let document = said.find('{').map_or("", |at| &said[at..]);
    let document: serde_json::Value = serde_json::from_str(document)
        .map_err(|e| format!("fio gave no JSON ({e}): {said}{}", String::from_utf8_lossy(&output.stderr)))?;
    let job = &document["jobs"][0];
    let side = &job[if work.access == Access::Read { "read" } else { "write" }];
    let (error, bytes) = (job["error"].as_i64(), side["io_bytes"].as_u64());
    if error != Some(0) || bytes != Some(work.bytes()) {
        let (said, status) = (String::from_utf8_lossy(&output.stderr), output.status);
        return Err(format!("fio moved {bytes:?} of {} bytes, error {error:?}, {status}: {said}", work.bytes()).into());
    }
    let milliseconds = side["runtime"].as_f64().ok_or("fio gave no runtime")?;
    // Rounded up to whole ms: half of one too much on average.
    Ok(Sample { transfer_seconds: ((milliseconds - 0.5) / 1e3).max(1e-4), sync_seconds, ..Sample::default() })
}
