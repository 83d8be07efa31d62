//! The two sides: our drivers through their public interface, and fio as a program.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use beff_backends::{
    driver, AccessPattern, Batch, Batches, CalibratedDepth, Direct, Direction, DriverOptions, FilePath, Latency,
    OpenFile, OpenMode, OpenRequest, OrderKind, Preallocate, ReadWriteMix, TransferBuffer,
};
use beff_ffi::Comm;
use beff_raw::b_eff_io::config::Termination;
use beff_raw::b_eff_io::run::batching::{next, BatchDecision, CallsEnd, LoopLimits, LoopProgress};
use serde::{Deserialize, Serialize};

use crate::device::DiskTraffic;
use crate::ior::file_of_process;
use crate::scratch::fill_random;
use crate::{worker, BenchError};

/// Backend and caching of the transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum IoMethod {
    UringDirect,
    PosixDirect,
    PosixBuffered,
}

impl IoMethod {
    pub fn name(self) -> &'static str {
        match self {
            Self::UringDirect => "uring direct",
            Self::PosixDirect => "posix direct",
            Self::PosixBuffered => "posix buffered",
        }
    }
}

/// Access to the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileWorkload {
    /// To a new, empty file.
    Write,
    /// To a file of full length.
    Rewrite,
    /// Without pages in the cache.
    Read,
    /// With all pages in the cache.
    Cached,
    /// As [`Self::Rewrite`], in random order.
    RandomRewrite,
    /// As [`Self::Read`], in random order.
    RandomRead,
    /// Both in random order: [`READ_PERCENT`] of the chunks are read, the others rewritten.
    RandomMixed,
}

/// Share of reads in [`FileWorkload::RandomMixed`].
const READ_PERCENT: u8 = 70;

impl FileWorkload {
    /// True for transfers from the file only.
    pub fn is_read(self) -> bool {
        matches!(self, Self::Read | Self::Cached | Self::RandomRead)
    }

    fn is_rewrite(self) -> bool {
        matches!(self, Self::Rewrite | Self::RandomRewrite | Self::RandomMixed)
    }

    /// True if each chunk is accessed once, in random order.
    pub fn is_random(self) -> bool {
        matches!(self, Self::RandomRewrite | Self::RandomRead | Self::RandomMixed)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Rewrite => "rewrite",
            Self::Read => "read",
            Self::Cached => "cached",
            Self::RandomRewrite => "randwrite",
            Self::RandomRead => "randread",
            Self::RandomMixed => "randrw",
        }
    }
}

/// Measured program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contender {
    Ours = 0,
    Other = 1,
    /// Our driver without preallocation, in rows with preallocation.
    WithoutPreallocation = 2,
}

/// Preallocation of a new file, on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PreallocationPolicy {
    /// Default of each side: ours `auto`, fio's `native_families`.
    Default,
    None,
    /// ftruncate; fio's `truncate`.
    Size,
    /// fallocate; fio's `native_families` (its default).
    Native,
    /// Zeros written in advance; fio has no such policy and is measured with `native_families`.
    Zeros,
}

impl PreallocationPolicy {
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

impl From<PreallocationPolicy> for Preallocate {
    fn from(policy: PreallocationPolicy) -> Self {
        match policy {
            PreallocationPolicy::Default => Self::Auto,
            PreallocationPolicy::None => Self::Off,
            PreallocationPolicy::Size => Self::Size,
            PreallocationPolicy::Native => Self::Native,
            PreallocationPolicy::Zeros => Self::Zeros,
        }
    }
}

/// Work of a row, equal for both sides.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JobDescription {
    pub fio: PathBuf,
    /// IOR instead of fio.
    pub ior: Option<PathBuf>,
    pub path: PathBuf,
    pub method: IoMethod,
    pub access: FileWorkload,
    /// Before writes of a new file.
    pub preallocation: PreallocationPolicy,
    pub chunk_bytes: u64,
    /// Per file.
    pub chunks: u64,
    /// Processes with one file or segment each.
    pub jobs: u32,
    /// Segments of one file.
    pub shared: bool,
    /// Our processes have one session each, as those of fio.
    pub sessions: bool,
    /// Our maximum number of operations in flight.
    pub depth: u32,
    /// Our operations per submission and wait.
    pub batch: u32,
    pub fio_depth: u32,
    pub fio_batch: u32,
    /// Size of our transfer buffer.
    pub buffer_bytes: u64,
    /// Our maximum io_uring operation; None: one per chunk.
    pub operation_bytes: Option<u64>,
}

impl JobDescription {
    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.job_bytes() * u64::from(self.jobs)
    }

    pub fn job_bytes(&self) -> u64 {
        self.chunk_bytes * self.chunks
    }

    /// One path per job, the same for all if the file is shared.
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
        self.method != IoMethod::PosixBuffered
    }

    /// True if fio's own time includes the sync. Its io_uring engine silently ignores `end_fsync` when it waits for more than one
    /// completion (seen with 3.33); there the file is synced after fio has ended, by the same call as on our side.
    fn fio_syncs(&self) -> bool {
        !self.access.is_read() && self.method != IoMethod::UringDirect
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct RunSample {
    /// Time of the transfers, including the sync where it cannot be separated.
    pub transfer_seconds: f64,
    /// Time of the sync, where known.
    pub sync_seconds: f64,
    /// Traffic of the device.
    pub traffic: Option<DiskTraffic>,
    /// CPUs used by other processes meanwhile.
    pub other_cpus: Option<f64>,
}

/// Measures our driver, in this process or in several.
pub fn measure_ours(work: &JobDescription) -> Result<RunSample, BenchError> {
    if work.shared && work.access == FileWorkload::Write {
        File::create_new(&work.path)?;
    }
    if work.jobs > 1 {
        return worker::measure_ours(work);
    }
    let path = work.paths().swap_remove(0);
    let (file, buffer) = prepare_ours(work, &path, 0)?;
    run_ours(work, file, buffer)
}

/// Runs our driver in batches as in a run. Open, registration and close are not timed, as in fio; preallocation is.
pub fn run_ours(
    work: &JobDescription,
    mut file: Box<dyn OpenFile>,
    mut buffer: TransferBuffer,
) -> Result<RunSample, BenchError> {
    let direction = work.direction();
    let mut latency = Latency::off();
    let limits = LoopLimits {
        max_calls: work.chunks,
        calls_end: CallsEnd::Count,
        time_seconds: None,
        pattern_seconds: None,
        rounds: 1,
        time_is_guard: false,
        sync: None,
        expected_call_seconds: None,
        call_bytes_all_ranks: work.chunk_bytes,
        termination: Termination::Geometric,
    };
    let mut progress = LoopProgress::default();
    let begin = Instant::now();
    while let BatchDecision::Run(calls) = next(&limits, &progress, progress.issued()) {
        let batch = Batch { first_call: progress.calls, calls };
        if file.protocol().pipelined {
            run_pipelined(file.as_mut(), &mut buffer, (work, batch), &limits, &mut progress)?;
            continue;
        }
        let batch_begin = Instant::now();
        if direction == Direction::Write {
            file.preallocate(batch)?;
        }
        transfer(file.as_mut(), &mut buffer, work, Batches::new(batch, &mut latency))?;
        add_batch(&mut progress, calls, batch_begin.elapsed().as_secs_f64());
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
    Ok(RunSample { transfer_seconds, sync_seconds: all_seconds - transfer_seconds, ..RunSample::default() })
}

fn add_batch(progress: &mut LoopProgress, calls: u64, seconds: f64) {
    *progress = progress.with_batch(calls, seconds);
}

/// Runs overlapping batches within the preallocated range, as the loop of a pattern does.
fn run_pipelined(
    file: &mut dyn OpenFile,
    buffer: &mut TransferBuffer,
    (work, batch): (&JobDescription, Batch),
    limits: &LoopLimits,
    progress: &mut LoopProgress,
) -> Result<(), BenchError> {
    let begin = Instant::now();
    let most_calls = if work.direction() == Direction::Write { file.preallocate(batch)? } else { u64::MAX };
    let mut preallocate_seconds = begin.elapsed().as_secs_f64();
    let (mut newest, mut under_way_before, mut since) = (batch.calls, 0, Instant::now());
    let mut ask = |under_way: u64| {
        let ended = (newest + under_way_before).saturating_sub(under_way).max(1);
        let chunk_seconds = since.elapsed().as_secs_f64() / ended as f64;
        add_batch(progress, newest, preallocate_seconds + chunk_seconds * newest as f64);
        let BatchDecision::Run(calls) = next(limits, progress, progress.issued()) else { return None };
        if calls > most_calls.saturating_sub(progress.calls) {
            return None;
        }
        (newest, under_way_before, since, preallocate_seconds) = (calls, under_way, Instant::now(), 0.0);
        Some(calls)
    };
    let mut latency = Latency::off();
    transfer(file, buffer, work, Batches::new(batch, &mut latency).with_next(&mut ask))
}

fn transfer(
    file: &mut dyn OpenFile,
    buffer: &mut TransferBuffer,
    work: &JobDescription,
    batches: Batches<'_>,
) -> Result<(), BenchError> {
    match (work.access, work.direction()) {
        (FileWorkload::RandomMixed, _) => file.transfer_mixed(batches, buffer)?,
        (_, Direction::Write) => file.write(batches, buffer)?,
        (_, Direction::Read) => file.read(batches, buffer)?,
    };
    Ok(())
}

/// Untimed preparation: opens and prepares the file and allocates the transfer buffer.
pub fn prepare_ours(
    work: &JobDescription,
    path: &Path,
    job: u32,
) -> Result<(Box<dyn OpenFile>, TransferBuffer), BenchError> {
    let direction = work.direction();
    let name = if work.method == IoMethod::UringDirect { "uring" } else { "posix" };
    let row = driver(name).ok_or("the driver is not in the table")?;
    let chunk_bytes = work.chunk_bytes;
    let operation_bytes = work.operation_bytes;
    let mix = (work.access == FileWorkload::RandomMixed).then(|| ReadWriteMix::new(READ_PERCENT));
    let calibrated = vec![CalibratedDepth {
        direction: mix.map_or(direction, ReadWriteMix::majority),
        chunk_bytes,
        depth: work.depth,
        wait_for: work.batch,
        operation_bytes,
    }];
    let direct = if work.is_direct() { Direct::Required } else { Direct::Off };
    let preallocate = work.preallocation.into();
    let options =
        DriverOptions { direct, queue_depth: work.depth, calibrated, preallocate, ..DriverOptions::default() };
    let call_bytes = chunk_bytes.next_multiple_of(4096);
    let landing = mix.map_or(0, |_| work.buffer_bytes + call_bytes);
    let mut buffer = TransferBuffer::new(work.buffer_bytes, call_bytes + landing)?;
    fill_random(buffer.bytes_mut());
    if mix.is_some() {
        buffer.set_landing((work.buffer_bytes + call_bytes) as usize, work.buffer_bytes, call_bytes);
    }
    let mode = match work.access {
        // The file is created outside the timed region.
        FileWorkload::Write if work.shared => OpenMode::Update,
        FileWorkload::Write => OpenMode::CreateNew,
        FileWorkload::Rewrite | FileWorkload::RandomRewrite | FileWorkload::RandomMixed => OpenMode::Update,
        FileWorkload::Read | FileWorkload::Cached | FileWorkload::RandomRead => OpenMode::ReadOnly,
    };
    let own = Comm::comm_self();
    let path = FilePath::of(path)?;
    let request = OpenRequest { path: &path, mode, comm: &own, hints: &[] };
    let mut file = (row.create)(&options).open(&request)?;
    let base_bytes = if work.shared { u64::from(job) * work.job_bytes() } else { 0 };
    let mut pattern = AccessPattern { base_bytes, ..AccessPattern::private(work.chunk_bytes, 1, work.chunks) };
    if work.access.is_random() {
        pattern = pattern.in_order(OrderKind::Random, u64::from(job));
        pattern = mix.map_or(pattern, |mix| pattern.with_mix(mix));
    }
    if let Some(reason) = file.support(&pattern).reason() {
        return Err(reason.into());
    }
    file.prepare(&pattern, direction, &mut buffer, &[])?;
    Ok((file, buffer))
}

pub fn fio_version(fio: &Path) -> std::io::Result<String> {
    let output = Command::new(fio).arg("--version").output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Arguments of fio, with everything off but the transfer: clock readings per operation, filling and scrambling of buffers, and dropping of
/// the cache.
fn fio_arguments(work: &JobDescription) -> Vec<String> {
    let (depth, batch) = (work.fio_depth, work.fio_batch);
    let random = if work.access.is_random() { "rand" } else { "" };
    let mut words = vec![
        "--name=beff".into(),
        format!("--size={}", work.chunk_bytes * work.chunks),
        format!("--bs={}", work.chunk_bytes),
        format!("--rw={random}{}", direction_of_fio(work.access)),
        format!("--direct={}", u8::from(work.is_direct())),
        format!("--overwrite={}", u8::from(work.access.is_rewrite())),
        format!("--end_fsync={}", u8::from(work.fio_syncs())),
    ];
    if work.jobs == 1 {
        words.push(format!("--filename={}", work.path.display()));
    } else {
        words.push(format!("--filename_format={}.$jobnum", work.path.display()));
        words.extend([format!("--numjobs={}", work.jobs), "--group_reporting=1".into()]);
    }
    words.push(format!("--fallocate={}", work.preallocation.of_fio()));
    words.extend((work.access == FileWorkload::RandomMixed).then(|| format!("--rwmixread={READ_PERCENT}")));
    // Each chunk once, by arithmetic as on our side: no bitmap of the chunks done.
    words.extend(work.access.is_random().then(|| "--random_generator=lfsr".to_owned()));
    // One process per job, as on our side.
    words.extend((work.jobs == 1).then(|| "--thread".to_owned()));
    let fixed = "--invalidate=0 --gtod_reduce=1 --refill_buffers=0 --zero_buffers=0 \
                 --scramble_buffers=0 --output-format=json";
    words.extend(fixed.split_whitespace().map(str::to_owned));
    if work.method == IoMethod::UringDirect {
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

fn direction_of_fio(access: FileWorkload) -> &'static str {
    match access {
        FileWorkload::RandomMixed => "rw",
        _ if access.is_read() => "read",
        _ => "write",
    }
}

/// Measures fio as a separate program. Its time begins when its files are open and its memory is registered, and ends with the last
/// completion, or with its sync.
pub fn measure_fio(work: &JobDescription) -> Result<RunSample, BenchError> {
    // With this glibc's malloc requests huge pages, as our transfer buffer does: they bound the size of device requests.
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
    // Notes may precede the document.
    let document = said.find('{').map_or("", |at| &said[at..]);
    let document: serde_json::Value = serde_json::from_str(document)
        .map_err(|e| format!("fio printed no JSON ({e}): {said}{}", String::from_utf8_lossy(&output.stderr)))?;
    let job = &document["jobs"][0];
    // Of one direction, or both.
    let sides = [&job["read"], &job["write"]];
    let bytes = sides.iter().map(|side| side["io_bytes"].as_u64()).sum::<Option<u64>>();
    let error = job["error"].as_i64();
    if error != Some(0) || bytes != Some(work.bytes()) {
        let (said, status) = (String::from_utf8_lossy(&output.stderr), output.status);
        return Err(format!("fio moved {bytes:?} of {} bytes, error {error:?}, {status}: {said}", work.bytes()).into());
    }
    let runtimes = sides.iter().filter_map(|side| side["runtime"].as_f64());
    let milliseconds = runtimes.reduce(f64::max).ok_or("fio reported no runtime")?;
    // fio rounds up to whole ms: half a ms too much on average.
    Ok(RunSample { transfer_seconds: ((milliseconds - 0.5) / 1e3).max(1e-4), sync_seconds, ..RunSample::default() })
}
