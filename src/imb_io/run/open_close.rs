//! Open_Close: opening the common file, one byte at offset 0, closing it, again and again. Through MPI-IO alone, as its row
//! says of other backends.

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
use crate::frame::run::trouble;
use crate::imb_io::plan::{Group, Pointer, Style, Transfer};

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
    let team = job.team;
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
    let made = if team.group.is_root() { File::create_new(&path).map(|_| ()) } else { Ok(()) };
    let made = made.map_err(|e| BackendError::from_io("open", &path, None, &e));
    if let Some(error) = trouble::agree(&team.active, made.as_ref().err(), job.during)? {
        return Ok(Staged::Failed(error));
    }
    let data = shape.data(bench.config.seed, job.number, team.member.group);
    contents::lay_out(&mut bench.ring, &shape, &data);
    let mut done = Done { file: name, ..Done::default() };
    let mut strategy = None;
    done.timed = timed(bench, job, steps, (&path, &pattern), &mut strategy)?;
    done.in_force.strategy = strategy.unwrap_or_default();
    let error = trouble::agree(&team.active, done.timed.error.as_ref(), job.during)?;
    if team.group.is_root() {
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
    strategy: &mut Option<String>,
) -> Result<Timed, MpiError> {
    let request = OpenRequest { path, mode: OpenMode::Update, comm: &job.team.group, hints: &bench.config.hints };
    let Bench { ring, laps, .. } = bench;
    let (mut timed, mut off) = (Timed::default(), Latency::off());
    job.team.group.barrier()?;
    job.team.group.barrier()?;
    let begin = Instant::now();
    laps.start_laps();
    for _ in 0..steps {
        // Opening fails on all ranks or on none, so all of them end here.
        let mut file = match job.backend.driver.open(&request) {
            Ok(file) => file,
            Err(e) => {
                timed.error.get_or_insert(e);
                break;
            }
        };
        let prepared = file.prepare(pattern, beff_backends::Direction::Write, ring, &[]);
        let moved = file.write(Batch { first_call: 0, calls: 1 }, ring, &mut off);
        // Closing is collective, and so is the next opening: also after an error of this rank alone.
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
        laps.lap();
    }
    timed.seconds = begin.elapsed().as_secs_f64();
    Ok(timed)
}
