//! Overhead of this program: its loops and bare loops in C run in turns, in the same process, on the same file and from the
//! same windows. Without syncs; the files stay in the page cache.

use std::path::Path;

use beff_backends::{AccessPattern, Batch, Direction, FilePath, OpenFile, OpenMode, OpenRequest};
use beff_ffi::bare_file::{BareCall, BareFile, BareLoop};
use beff_ffi::{Comm, Info, MpiError};

use super::contents::file_share;
use super::data::RowData;
use super::geometry::RowGeometry;
use super::job::ConfiguredBackend;
use super::timed_loop::{IterationLoop, OverlapMode, SyncPlacement};
use super::verify::{verify_range, verify_windows};
use super::{contents, timed_loop, RowContext};
use crate::frame::records::{ErrorRecord, RunOutcome};
use crate::frame::run::agree;
use crate::frame::run::loop_pairs::{LoopKind, LoopPairs};
use crate::frame::run::path_check;
use crate::imb_io::config::ImbConfig;
use crate::imb_io::plan::catalogue::default_list;
use crate::imb_io::plan::{BenchmarkClass, ImbBenchmark, Positioning, TransferSpec};
use crate::imb_io::records::{BareLoopPair, ImbBareRecord};

/// The benchmarks of the run that are compared.
fn compared_benchmarks(
    config: &ImbConfig,
) -> impl Iterator<Item = (&'static ImbBenchmark, &'static TransferSpec)> + use<'_> {
    let chosen = default_list().iter().filter(|benchmark| config.benchmarks.iter().any(|name| name == benchmark.name));
    chosen.filter(|benchmark| benchmark.has_bare_loop()).filter_map(|one| Some((one, one.transfer()?)))
}

const SIZES_BYTES: [u64; 4] = [4 << 10, 64 << 10, 1 << 20, 4 << 20];
/// Maximum bytes of a file, whose windows and pages both kinds of loops reuse.
const FILE_BYTES: u64 = 32 << 20;
const LOOP_SECONDS: f64 = 0.01;
const COMPARISON_SECONDS: f64 = 0.6;
const TURNS: LoopPairs = LoopPairs { share_seconds: COMPARISON_SECONDS, pair_limits: [7, 101] };
const MAX_CALLS: u64 = 1000;

/// Bytes for the windows; 0 without `--bare`.
pub(super) fn memory_bytes(config: &ImbConfig) -> u64 {
    if config.bare {
        FILE_BYTES
    } else {
        0
    }
}

pub(super) fn expected_seconds(config: &ImbConfig) -> f64 {
    if config.bare {
        (compared_benchmarks(config).count() * SIZES_BYTES.len()) as f64 * COMPARISON_SECONDS
    } else {
        0.0
    }
}

struct BareComparison<'a> {
    comm: &'a Comm,
    shape: RowGeometry,
    pattern: AccessPattern,
    data: RowData,
    harness: Box<dyn OpenFile>,
    bare: BareFile,
}

pub(super) enum BareOutcome {
    /// The records, complete on rank 0; why the run stops, with the records before it.
    Records(Vec<ImbBareRecord>, Option<RunOutcome>),
    Failed(ErrorRecord),
}

/// Runs all comparisons through the MPI-IO of the run, P and C on all ranks, S on the first. Collective over the world.
pub(super) fn compare(
    world: &Comm,
    bench: &mut RowContext<'_>,
    backends: &[ConfiguredBackend],
) -> Result<BareOutcome, MpiError> {
    let mut records = Vec::new();
    let is_usable = |backend: &&ConfiguredBackend| backend.name == "mpiio" && backend.unavailable_reason.is_none();
    let Some(backend) = backends.iter().find(is_usable) else {
        return Ok(BareOutcome::Records(records, None));
    };
    let own = Comm::comm_self();
    for (number, (benchmark, transfer)) in compared_benchmarks(bench.config).enumerate() {
        let alone = transfer.class == BenchmarkClass::Single;
        let comm = if alone { &own } else { world };
        let rows = ((number * SIZES_BYTES.len()) as u64..).zip(SIZES_BYTES);
        let measured: TextResult<Vec<_>> = if alone && !world.is_root() {
            Ok(Vec::new())
        } else {
            rows.map(|(row, bytes)| compare_one(comm, bench, backend, (benchmark, transfer), (bytes, row))).collect()
        };
        // The others wait for the first rank.
        world.idle_barrier()?;
        let stop = bench.interrupt.agree(world, 0.0)?;
        match agree::all_or_first_error(world, measured)? {
            Ok(measured) => records.extend(measured),
            Err((rank, message)) => {
                return Ok(BareOutcome::Failed(ErrorRecord {
                    during: format!("{} compared with a bare loop", benchmark.name),
                    rank,
                    ranks_affected: 1,
                    message,
                    next_step: "Repeat without --bare; the rows are not affected.".into(),
                    no_space: false,
                }))
            }
        }
        if stop.is_some() {
            return Ok(BareOutcome::Records(records, stop));
        }
    }
    Ok(BareOutcome::Records(records, None))
}

/// Result with an error message of this rank, or of all.
type TextResult<T> = Result<T, String>;

/// Agrees on the first error message of all ranks.
fn agree_on<T>(comm: &Comm, mine: TextResult<T>) -> TextResult<T> {
    agree::all_or_first_error(comm, mine).map_err(to_text)?.map_err(|(_, text)| text)
}

fn to_text(e: impl std::fmt::Display) -> String {
    e.to_string()
}

/// Compares one benchmark and size on all ranks of `comm`; the error is the same on all of them.
fn compare_one(
    comm: &Comm,
    bench: &mut RowContext<'_>,
    backend: &ConfiguredBackend,
    (benchmark, transfer): (&ImbBenchmark, &TransferSpec),
    (sample_bytes, row): (u64, u64),
) -> TextResult<ImbBareRecord> {
    let steps = (FILE_BYTES / sample_bytes).min(MAX_CALLS);
    let path = bench.run_dir.file(&Path::new(&backend.name).join(format!("bare{row:02}.dat")));
    let shape = RowGeometry::new(*transfer, sample_bytes, steps, (comm.rank(), comm.size()), bench.config.buffers)
        .map_err(to_text)?;
    let pattern = shape.pattern().map_err(to_text)?;
    let data = shape.data(bench.config.seed, u64::MAX - row, 0);
    // Reads and writes use a file of full length.
    agree_on(comm, contents::fill(comm, &shape, &path, |at, bytes| data.fill(at, bytes)).map_err(to_text))?;
    let hints = &backend.hints;
    let request = OpenRequest { path: &path, mode: OpenMode::Update, comm, hints };
    agree_on(comm, path_check::check_name(&backend.name, &path).map_err(to_text))?;
    let ours = agree_on(comm, backend.driver.open(&request).map_err(to_text))?;
    let info = Info::new(hints).map_err(to_text)?;
    let bare = agree_on(comm, BareFile::open(comm, &path, false, &info).map_err(to_text))?;
    agree_on(comm, path_check::check_name(&backend.name, &path).map_err(to_text))?;
    let mut sides = BareComparison { comm, shape, pattern, data, harness: ours, bare };
    let record = sides.measure_pairs(bench, &path, benchmark.name);
    let BareComparison { harness: ours, bare, .. } = sides;
    let closed = bare.close().map_err(to_text);
    let closed = closed.and(ours.close().map_err(to_text));
    remove(comm, &path);
    agree_on(comm, closed)?;
    record
}

fn remove(comm: &Comm, path: &FilePath) {
    if comm.is_root() {
        // A remaining file is removed with the directory.
        let _ = path.remove();
    }
}

impl BareComparison<'_> {
    fn measure_pairs(&mut self, bench: &mut RowContext<'_>, path: &FilePath, name: &str) -> TextResult<ImbBareRecord> {
        contents::fill_windows(&mut bench.buffer, &self.shape, &self.data);
        let steps = self.shape.steps;
        let calls = |one: f64| ((LOOP_SECONDS / one) as u64).clamp(steps.min(8), steps);
        let (repetitions, pairs) = TURNS.run(steps, calls, |order, steps| {
            let mut sides = [Ok(0.0), Ok(0.0)];
            for side in order {
                sides[side as usize] = match side {
                    LoopKind::Harness => self.run_harness(bench, steps),
                    LoopKind::Bare => self.run_bare(bench, steps),
                };
            }
            self.slowest(sides)
        })?;
        let record = ImbBareRecord {
            benchmark: name.to_owned(),
            ranks: self.comm.size(),
            sample_bytes: self.shape.sample_bytes,
            iterations: repetitions,
            pairs: pairs
                .into_iter()
                .map(|[ours_seconds, bare_seconds]| BareLoopPair { harness_seconds: ours_seconds, bare_seconds })
                .collect(),
        };
        self.verify(bench, path)?;
        Ok(record)
    }

    /// Times of the slowest rank for both loops, or the error of any rank.
    fn slowest(&self, [ours, bare]: [TextResult<f64>; 2]) -> TextResult<[f64; 2]> {
        let mine = ours.and_then(|ours| bare.map(|bare| [ours, bare]));
        let mut all = [0.0, 0.0, f64::from(u8::from(mine.is_err()))];
        if let Ok(seconds) = &mine {
            all[..2].copy_from_slice(seconds);
        }
        self.comm.max_f64(&mut all).map_err(to_text)?;
        if all[2] > 0.0 {
            return agree_on(self.comm, mine);
        }
        Ok([all[0], all[1]])
    }

    /// All ranks execute all calls, whatever fails on one of them.
    fn run_harness(&mut self, bench: &mut RowContext<'_>, steps: u64) -> TextResult<f64> {
        let direction = self.shape.transfer.direction;
        let prepared = self.harness.prepare(&self.pattern, direction, &mut bench.buffer, &[]);
        agree_on(self.comm, prepared.map_err(to_text))?;
        let task = IterationLoop {
            kind: self.pattern.kind,
            direction,
            syncs: SyncPlacement::None,
            calls: Batch { first_call: 0, calls: steps },
            total_calls: steps,
            pending: 1,
            single_calls: false,
            overlap_mode: OverlapMode::Blocking,
        };
        let timed =
            timed_loop::run(self.harness.as_mut(), self.comm, &mut bench.buffer, &task, &mut bench.iteration_times);
        let timed = timed.map_err(to_text)?;
        timed.error.map_or(Ok(timed.seconds), |e| Err(to_text(e)))
    }

    fn run_bare(&mut self, bench: &mut RowContext<'_>, steps: u64) -> TextResult<f64> {
        let explicit = self.shape.transfer.positioning == Positioning::Expl;
        let call = BareCall { explicit, collective: self.shape.transfer.class == BenchmarkClass::Collective };
        let (part, step_bytes) = (self.shape.portion, self.shape.step_bytes());
        let what = BareLoop {
            bytes: part.length_bytes as usize,
            windows: self.shape.windows,
            offset_bytes: part.offset_bytes,
            stride_bytes: step_bytes,
            calls: steps,
        };
        let view = if explicit {
            self.bare.set_view(0, 0, step_bytes)
        } else {
            self.bare.set_view(part.offset_bytes, part.length_bytes, step_bytes)
        };
        agree_on(self.comm, view.map_err(to_text))?;
        self.comm.bare_barrier().map_err(to_text)?;
        self.comm.bare_barrier().map_err(to_text)?;
        let seconds = match self.shape.transfer.direction {
            Direction::Write => self.bare.write(call, bench.buffer.bytes(), &what),
            Direction::Read => self.bare.read(call, bench.buffer.bytes_mut(), &what),
        };
        seconds.ok_or_else(|| "a call of the bare loop failed, or its last transfer was short".into())
    }

    /// Verifies both loops: repeats them with poisoned windows for reads, and a zeroed file for writes.
    fn verify(&mut self, bench: &mut RowContext<'_>, path: &FilePath) -> TextResult<()> {
        let writes = self.shape.transfer.direction == Direction::Write;
        if !writes {
            self.shape = self.shape.with_own_windows();
        }
        let range = file_share(self.shape.file_bytes, self.shape.rank, self.shape.ranks);
        let mut wrong = [0];
        for side in 0..2 {
            if writes {
                agree_on(self.comm, contents::zero_range(path, range.clone()).map_err(to_text))?;
            } else {
                contents::fill_windows(&mut bench.buffer, &self.shape, &self.data);
            }
            let steps = self.shape.steps;
            let outcome = if side == 0 { self.run_harness(bench, steps) } else { self.run_bare(bench, steps) };
            agree_on(self.comm, outcome)?;
            let checked = if writes {
                // The files stay in the page cache.
                let source = contents::ReadbackFile { path, drop_pages: false };
                agree_on(self.comm, verify_range(&self.shape, &self.data, source, range.clone()).map_err(to_text))?
            } else {
                let calls = Batch { first_call: 0, calls: self.shape.steps };
                verify_windows(self.comm, &self.shape, &self.data, &bench.buffer, calls).map_err(to_text)?
            };
            wrong[0] += checked.bytes_wrong;
        }
        self.comm.sum_u64(&mut wrong).map_err(to_text)?;
        match wrong[0] {
            0 => Ok(()),
            wrong => Err(format!("{wrong} wrong bytes after the loops")),
        }
    }
}
