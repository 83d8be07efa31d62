//! The two sides: our drivers through their public interface, and fio as a program.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use beff_backends::{
    driver, Batch, Batches, Calibrated, Direct, Direction, DriverOptions, FilePath, Latency, OpenFile, OpenMode,
    OpenRequest, Pattern, Preallocate, Ring,
};
use beff_ffi::Comm;
use beff_raw::b_eff_io::config::Termination;
use beff_raw::b_eff_io::run::batching::{next, CallsEnd, Limits, Progress, Step};
use serde::{Deserialize, Serialize};

use crate::device::Traffic;
use crate::ior::file_of_process;
use crate::scratch::noise;
use crate::{worker, Failure};

/// How bytes move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Access {
    /// Of a file that is new and empty.
    Write,
    /// Of a file that is there in full length.
    Rewrite,
    /// None of its pages is in the cache.
    Read,
    /// All of them are.
    Cached,
}

impl Access {
    /// Moves bytes out of the file.
    pub fn is_read(self) -> bool {
        matches!(self, Self::Read | Self::Cached)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Rewrite => "rewrite",
            Self::Read => "read",
            Self::Cached => "cached",
        }
    }
}

/// Who works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Ours = 0,
    /// fio, or IOR.
    Other = 1,
    /// Our driver without room, in rows that have some.
    Before = 2,
}

/// Room in a new file, on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Room {
    /// What each side does unless told: ours `auto`, fio's `native`.
    Default,
    None,
    /// ftruncate; fio's `truncate`.
    Size,
    /// fallocate; fio's `native`, which is its default.
    Native,
    /// Zeros written before; fio has no such policy, its `native` stands beside.
    Zeros,
}

impl Room {
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::None => "none",
            Self::Size => "size",
            Self::Native => "native",
            Self::Zeros => "zeros",
        }
    }

    fn of_fio(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Size => "truncate",
            Self::Default | Self::Native | Self::Zeros => "native",
        }
    }
}

impl From<Room> for Preallocate {
    fn from(room: Room) -> Self {
        match room {
            Room::Default => Self::Auto,
            Room::None => Self::Off,
            Room::Size => Self::Size,
            Room::Native => Self::Native,
            Room::Zeros => Self::Zeros,
        }
    }
}

/// The work, equal for both sides.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Work {
    pub fio: PathBuf,
    /// The other side in place of fio.
    pub ior: Option<PathBuf>,
    pub path: PathBuf,
    pub method: Method,
    pub access: Access,
    /// Before writes of a new file.
    pub room: Room,
    pub chunk_bytes: u64,
    /// Of each file.
    pub chunks: u64,
    /// Processes, with a file or a segment each.
    pub jobs: u32,
    /// Segments of one file.
    pub shared: bool,
    /// Processes of ours have a session each, as those of fio.
    pub sessions: bool,
    /// Our operations in flight at most.
    pub depth: u32,
    /// Ours submitted and waited for together.
    pub batch: u32,
    /// The same of fio.
    pub fio_depth: u32,
    pub fio_batch: u32,
    /// Memory of our side.
    pub ring_bytes: u64,
    /// Our largest operation of io_uring; None: a chunk is one.
    pub operation_bytes: Option<u64>,
}

impl Work {
    /// Of all files.
    pub fn bytes(&self) -> u64 {
        self.job_bytes() * u64::from(self.jobs)
    }

    /// Of one process.
    pub fn job_bytes(&self) -> u64 {
        self.chunk_bytes * self.chunks
    }

    /// One for each job: the same one where they share it.
    pub fn paths(&self) -> Vec<PathBuf> {
        let own = |job: u32| match &self.ior {
            Some(_) => file_of_process(&self.path, job),
            None => self.path.with_extension(job.to_string()),
        };
        if self.shared || (self.jobs == 1 && self.ior.is_none()) {
            return vec![self.path.clone(); self.jobs as usize];
        }
        (0..self.jobs).map(own).collect()
    }

    fn direction(&self) -> Direction {
        if self.access.is_read() {
            Direction::Read
        } else {
            Direction::Write
        }
    }

    fn is_direct(&self) -> bool {
        self.method != Method::PosixBuffered
    }

    /// True if fio syncs within its own time. Its io_uring engine leaves `end_fsync` out without a word when more than
    /// one completion is waited for (seen with 3.33), so there the file is synced after fio has ended, by the same call as on our side.
    fn fio_syncs(&self) -> bool {
        !self.access.is_read() && self.method != Method::UringDirect
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

/// The driver: in this process, or in several.
pub fn ours(work: &Work) -> Result<Sample, Failure> {
    if work.shared && work.access == Access::Write {
        File::create_new(&work.path)?;
    }
    if work.jobs > 1 {
        return worker::ours(work);
    }
    let path = work.paths().swap_remove(0);
    let (file, ring) = prepare_ours(work, &path, 0)?;
    run_ours(work, file, ring)
}

/// The driver, in batches as a run makes them. Open, registration and close are outside the time, as in fio; room is inside.
pub fn run_ours(work: &Work, mut file: Box<dyn OpenFile>, mut ring: Ring) -> Result<Sample, Failure> {
    let direction = work.direction();
    let mut latency = Latency::off();
    let limits = Limits {
        max_calls: work.chunks,
        calls_end: CallsEnd::Count,
        time_seconds: None,
        whole_seconds: None,
        rounds: 1,
        time_is_guard: false,
        sync: None,
        expected_call_seconds: None,
        call_bytes_all_ranks: work.chunk_bytes,
        termination: Termination::Geometric,
    };
    let mut progress = Progress::default();
    let begin = Instant::now();
    while let Step::Run(calls) = next(&limits, &progress, progress.made()) {
        let batch = Batch { first_call: progress.calls, calls };
        if file.protocol().pipelined {
            flow(file.as_mut(), &mut ring, (direction, batch), &limits, &mut progress)?;
            continue;
        }
        let batch_begin = Instant::now();
        match direction {
            Direction::Write => {
                file.preallocate(batch)?;
                file.write(Batches::new(batch, &mut latency), &ring)?
            }
            Direction::Read => file.read(Batches::new(batch, &mut latency), &mut ring)?,
        };
        made(&mut progress, calls, batch_begin.elapsed().as_secs_f64());
    }
    let without_room = if direction == Direction::Write { file.trim()? } else { None };
    let transfer_seconds = begin.elapsed().as_secs_f64();
    if direction == Direction::Write {
        file.sync()?;
    }
    let all_seconds = begin.elapsed().as_secs_f64();
    if let Some(reason) = without_room {
        return Err(reason.into());
    }
    file.close()?;
    Ok(Sample { transfer_seconds, sync_seconds: all_seconds - transfer_seconds, ..Sample::default() })
}

fn made(progress: &mut Progress, calls: u64, seconds: f64) {
    *progress = progress.and_batch(calls, seconds);
}

/// Batches that follow each other without an end between them, as far as there is room for them, as in the loop of a pattern.
fn flow(
    file: &mut dyn OpenFile,
    ring: &mut Ring,
    (direction, batch): (Direction, Batch),
    limits: &Limits,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let begin = Instant::now();
    let most_calls = if direction == Direction::Write { file.preallocate(batch)? } else { u64::MAX };
    let mut room_seconds = begin.elapsed().as_secs_f64();
    let (mut newest, mut under_way_before, mut since) = (batch.calls, 0, Instant::now());
    let mut ask = |under_way: u64| {
        let ended = (newest + under_way_before).saturating_sub(under_way).max(1);
        let chunk_seconds = since.elapsed().as_secs_f64() / ended as f64;
        made(progress, newest, room_seconds + chunk_seconds * newest as f64);
        let Step::Run(calls) = next(limits, progress, progress.made()) else { return None };
        if calls > most_calls.saturating_sub(progress.calls) {
            return None;
        }
        (newest, under_way_before, since, room_seconds) = (calls, under_way, Instant::now(), 0.0);
        Some(calls)
    };
    let mut latency = Latency::off();
    match direction {
        Direction::Write => file.write(Batches::new(batch, &mut latency).followed_by(&mut ask), ring)?,
        Direction::Read => file.read(Batches::new(batch, &mut latency).followed_by(&mut ask), ring)?,
    };
    Ok(())
}

/// What comes before the time: the file open and prepared, and the memory.
pub fn prepare_ours(work: &Work, path: &Path, job: u32) -> Result<(Box<dyn OpenFile>, Ring), Failure> {
    let direction = work.direction();
    let name = if work.method == Method::UringDirect { "uring" } else { "posix" };
    let row = driver(name).ok_or("the driver is not in the table")?;
    let chunk_bytes = work.chunk_bytes;
    let operation_bytes = work.operation_bytes;
    let calibrated =
        vec![Calibrated { direction, chunk_bytes, depth: work.depth, wait_for: work.batch, operation_bytes }];
    let direct = if work.is_direct() { Direct::Required } else { Direct::Off };
    let preallocate = work.room.into();
    let options =
        DriverOptions { direct, queue_depth: work.depth, calibrated, preallocate, ..DriverOptions::default() };
    let mut ring = Ring::new(work.ring_bytes, chunk_bytes.next_multiple_of(4096))?;
    noise(ring.bytes_mut());
    let mode = match work.access {
        // Whoever comes first makes it, outside the time.
        Access::Write if work.shared => OpenMode::Update,
        Access::Write => OpenMode::CreateNew,
        Access::Rewrite => OpenMode::Update,
        Access::Read | Access::Cached => OpenMode::ReadOnly,
    };
    let own = Comm::own();
    let path = FilePath::of(path)?;
    let request = OpenRequest { path: &path, mode, comm: &own, hints: &[] };
    let mut file = (row.make)(&options).open(&request)?;
    let base_bytes = if work.shared { u64::from(job) * work.job_bytes() } else { 0 };
    let pattern = Pattern { base_bytes, ..Pattern::private(work.chunk_bytes, 1, work.chunks) };
    if let Some(reason) = file.support(&pattern).reason() {
        return Err(reason.into());
    }
    file.prepare(&pattern, direction, &mut ring, &[])?;
    Ok((file, ring))
}

/// The version as the program tells it.
pub fn fio_version(fio: &Path) -> std::io::Result<String> {
    let output = Command::new(fio).arg("--version").output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// fio with everything off that is not the transfer itself: clock readings for each operation, filling and scrambling of
/// buffers, its own dropping of the cache.
fn fio_arguments(work: &Work) -> Vec<String> {
    let (depth, batch) = (work.fio_depth, work.fio_batch);
    let mut words = vec![
        "--name=beff".into(),
        format!("--size={}", work.chunk_bytes * work.chunks),
        format!("--bs={}", work.chunk_bytes),
        format!("--rw={}", if work.access.is_read() { "read" } else { "write" }),
        format!("--direct={}", u8::from(work.is_direct())),
        format!("--overwrite={}", u8::from(work.access == Access::Rewrite)),
        format!("--end_fsync={}", u8::from(work.fio_syncs())),
    ];
    if work.jobs == 1 {
        words.push(format!("--filename={}", work.path.display()));
    } else {
        words.push(format!("--filename_format={}.$jobnum", work.path.display()));
        words.extend([format!("--numjobs={}", work.jobs), "--group_reporting=1".into()]);
    }
    words.push(format!("--fallocate={}", work.room.of_fio()));
    // A process for each job, as our side has them.
    words.extend((work.jobs == 1).then(|| "--thread".to_owned()));
    let fixed = "--invalidate=0 --gtod_reduce=1 --refill_buffers=0 --zero_buffers=0 \
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
    if !work.access.is_read() && !work.fio_syncs() {
        let files = work.paths().iter().map(File::open).collect::<Result<Vec<_>, _>>()?;
        let begin = Instant::now();
        files.iter().try_for_each(File::sync_all)?;
        sync_seconds = begin.elapsed().as_secs_f64();
    }
    let said = String::from_utf8_lossy(&output.stdout);
    // Notes may stand before the document.
    let document = said.find('{').map_or("", |at| &said[at..]);
    let document: serde_json::Value = serde_json::from_str(document)
        .map_err(|e| format!("fio gave no JSON ({e}): {said}{}", String::from_utf8_lossy(&output.stderr)))?;
    let job = &document["jobs"][0];
    let side = &job[if work.access.is_read() { "read" } else { "write" }];
    let (error, bytes) = (job["error"].as_i64(), side["io_bytes"].as_u64());
    if error != Some(0) || bytes != Some(work.bytes()) {
        let (said, status) = (String::from_utf8_lossy(&output.stderr), output.status);
        return Err(format!("fio moved {bytes:?} of {} bytes, error {error:?}, {status}: {said}", work.bytes()).into());
    }
    let milliseconds = side["runtime"].as_f64().ok_or("fio gave no runtime")?;
    // Rounded up to whole ms: half of one too much on average.
    Ok(Sample { transfer_seconds: ((milliseconds - 0.5) / 1e3).max(1e-4), sync_seconds, ..Sample::default() })
}
