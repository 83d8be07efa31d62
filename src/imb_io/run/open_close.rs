//! Open_Close: iterations of opening the common file, writing one byte at offset 0 and closing it. Through MPI-IO alone; rows of
//! other backends are not run.

use std::io::Write as _;
use std::path::Path;

use beff_backends::{AccessPattern, BackendError, Batch, Batches, Direction, FilePath, Latency, OpenMode, OpenRequest};
use beff_ffi::MpiError;

use super::contents::{self, ReadbackFile};
use super::geometry::RowGeometry;
use super::job::RowJob;
use super::outcome::{FileResult, RowAbort};
use super::timed_loop::LoopTiming;
use super::verify::verify_range;
use super::verify_result::VerifyResult;
use super::RowContext;
use crate::frame::run::clock::Instant;
use crate::frame::run::path_check;
use crate::imb_io::config::InitialFileState;
use crate::imb_io::plan::{BenchmarkClass, Positioning, Synchronism, TransferSpec};

/// Transfer of the byte that every rank writes.
const BYTE: TransferSpec = TransferSpec {
    class: BenchmarkClass::Single,
    positioning: Positioning::Expl,
    direction: Direction::Write,
    synchronism: Synchronism::Blocking,
};

/// Creates the file, opens and closes it `steps` times, and verifies the byte. Collective over the active ranks.
pub(super) fn run(
    bench: &mut RowContext<'_>,
    job: &RowJob<'_>,
    steps: u64,
    counts: bool,
) -> Result<FileResult, RowAbort> {
    let team = job.team;
    let shape = RowGeometry::new(BYTE, 1, 1, (0, 1), bench.config.buffers)?;
    let pattern = shape.pattern()?;
    let name = Path::new(&job.backend.name).join(format!("row{:05}-group{:05}.dat", job.number, team.member.group));
    let path = bench.run_dir.file(&name);
    let data = shape.data(bench.config.seed, job.number, team.member.group);
    let mut before = [0];
    data.fill_initial(0, &mut before);
    let before: &[u8] = if bench.config.file == Some(InitialFileState::Existing) { &before } else { &[] };
    let make = || path.create()?.write_all(before);
    let created = if team.group.is_root() { make() } else { Ok(()) };
    let created = created.map_err(|e| BackendError::from_io("open", &path, None, &e));
    job.agree(created.and_then(|()| path_check::check_name(&job.backend.name, &path)))?;
    contents::fill_windows(&mut bench.buffer, &shape, &data);
    let mut done = FileResult { file: name, ..FileResult::default() };
    let mut strategy = None;
    done.cpu_watch.resume(&team.cpus);
    done.timed = run_timed(bench, job, steps, (&path, &pattern), &mut strategy)?;
    done.cpu_watch.pause(&team.cpus);
    done.in_force.strategy = strategy.unwrap_or_default();
    // No check between two openings, because it would be timed.
    let named = path_check::check_name(&job.backend.name, &path);
    let whole = job.agree(done.timed.error.take().map_or(named, Err));
    let mut checked = Ok(VerifyResult::default());
    if team.group.is_root() {
        checked = verify_range(
            &shape,
            &data,
            ReadbackFile { path: &path, drop_pages: bench.config.cache.drops_pages() },
            0..1,
        );
        if !(job.keep_files && counts) || whole.is_err() {
            // A remaining file is reported at the end, when the directory is removed.
            let _ = path.remove();
        }
    }
    whole?;
    done.checked = job.agree(checked)?;
    Ok(done)
}

fn run_timed(
    bench: &mut RowContext<'_>,
    job: &RowJob<'_>,
    steps: u64,
    (path, pattern): (&FilePath, &AccessPattern),
    strategy: &mut Option<String>,
) -> Result<LoopTiming, MpiError> {
    let request = OpenRequest { path, mode: OpenMode::Update, comm: &job.team.group, hints: &job.backend.hints };
    let RowContext { buffer: transfer_buffer, iteration_times: laps, .. } = bench;
    let (mut timed, mut off) = (LoopTiming::default(), Latency::off());
    job.team.group.bare_barrier()?;
    job.team.group.bare_barrier()?;
    let begin = Instant::now();
    laps.start_intervals();
    for _ in 0..steps {
        // Opening fails on all ranks or on none.
        let mut file = match job.backend.driver.open(&request) {
            Ok(file) => file,
            Err(e) => {
                timed.error.get_or_insert(e);
                break;
            }
        };
        let prepared = file.prepare(pattern, Direction::Write, transfer_buffer, &[]);
        let moved = file.write(Batches::new(Batch { first_call: 0, calls: 1 }, &mut off), transfer_buffer);
        // Close and the next open are collective, and needed after an error of this rank alone, too.
        let closed = file.close();
        match prepared.and_then(|in_force| moved.and_then(|bytes| closed.map(|()| (in_force, bytes)))) {
            Ok((in_force, bytes)) => {
                timed.moved_bytes += bytes;
                strategy.get_or_insert(in_force.strategy);
            }
            Err(e) => {
                timed.error.get_or_insert(e);
            }
        }
        laps.record_interval();
    }
    timed.seconds = begin.elapsed().as_secs_f64();
    Ok(timed)
}
