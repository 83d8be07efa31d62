//! Open_Close: opening the common file, one byte at offset 0, closing it, again and again.

use std::fs::{self, File};
use std::path::Path;
use std::time::Instant;

use beff_backends::{BackendError, Batch, Latency, OpenMode, OpenRequest, Pattern};
use beff_ffi::MpiError;

use super::check::{reread, Checked};
use super::contents;
use super::row::RowJob;
use super::shape::Shape;
use super::stage::{Done, Staged};
use super::timed::Timed;
use super::Bench;
use crate::engine::trouble;
use crate::plan::imb::{Group, Pointer, Style, Transfer};

/// The byte that every rank writes, as a benchmark of its own.
const BYTE: Transfer = Transfer {
    group: Group::Single,
    pointer: Pointer::Expl,
    direction: beff_backends::Direction::Write,
    style: Style::Blocking,
};

/// Makes the file, opens and closes it `steps` times, looks for the byte. Collective over the active ranks.
///
/// # Errors
/// MPI between the ranks.
pub(super) fn run(bench: &mut Bench<'_>, job: &RowJob<'_>, steps: u64, counts: bool) -> Result<Staged, MpiError> {
    let (team, moves_data) = (job.team, job.backend.moves_data);
    let shape = match Shape::new(BYTE, 1, 1, (0, 1)) {
        Ok(shape) => shape,
        Err(e) => return Ok(Staged::NotRun(e.to_string())),
    };
    let pattern = match shape.pattern() {
        Ok(pattern) => pattern,
        Err(e) => return Ok(Staged::NotRun(e.to_string())),
    };
    let name = Path::new(&job.backend.name).join(format!("row{:05}-group{:05}.dat", job.number, team.member.group));
    let path = bench.run_dir.path().join(&name);
    let made = if team.group.is_root() && moves_data { File::create_new(&path).map(|_| ()) } else { Ok(()) };
    let made = made.map_err(|e| BackendError::from_io("open", &path, None, &e));
    if let Some(error) = trouble::agree(&team.active, made.as_ref().err(), job.during)? {
        return Ok(Staged::Failed(error));
    }
    let data = shape.data(bench.config.seed, job.number, team.member.group);
    contents::lay_out(&mut bench.ring, &shape, &data);
    let mut done = Done { file: name, ..Done::default() };
    done.timed = timed(bench, job, steps, (&path, &pattern), &mut done.in_force.strategy)?;
    let error = trouble::agree(&team.active, done.timed.error.as_ref(), job.during)?;
    if team.group.is_root() && moves_data {
        let mut checked = Checked::default();
        reread(&mut checked, &shape, &data, &path, 0, 1);
        done.checked = checked;
        if !(job.keep && counts) || error.is_some() {
            // A name that stays is seen at the end, when the directory is removed.
            let _ = fs::remove_file(&path);
        }
    }
    Ok(error.map_or_else(|| Staged::Done(Box::new(done)), Staged::Failed))
}

fn timed(
    bench: &mut Bench<'_>,
    job: &RowJob<'_>,
    steps: u64,
    (path, pattern): (&Path, &Pattern),
    strategy: &mut String,
) -> Result<Timed, MpiError> {
    let mode = if job.backend.moves_data { OpenMode::Update } else { OpenMode::CreateNew };
    let hints: &[(String, String)] = if job.backend.is_mpi { &bench.config.hints } else { &[] };
    let request = OpenRequest { path, mode, comm: &job.team.group, hints };
    let Bench { ring, laps, .. } = bench;
    let mut timed = Timed::default();
    job.team.group.barrier()?;
    job.team.group.barrier()?;
    let begin = Instant::now();
    laps.start_laps();
    for _ in 0..steps {
        let mut once = || -> Result<u64, BackendError> {
            let mut file = job.backend.driver.open(&request)?;
            let prepared = file.prepare(pattern, beff_backends::Direction::Write, ring, &[]);
            let moved = file.write(Batch { first_call: 0, calls: 1 }, ring, &mut Latency::off());
            // Closing is collective: also after an error.
            let closed = file.close();
            *strategy = prepared?.strategy;
            closed.and(moved)
        };
        match once() {
            Ok(bytes) => timed.moved_bytes += bytes,
            Err(e) => {
                // MPI_File_open and MPI_File_close fail on all ranks, or on none.
                timed.error = Some(e);
                break;
            }
        }
        laps.lap();
    }
    timed.seconds = begin.elapsed().as_secs_f64();
    Ok(timed)
}
