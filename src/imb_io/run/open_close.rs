//! Open_Close: opening the common file, one byte at offset 0, closing it, again and again. Through MPI-IO alone, as its row
//! says of other backends.

use std::io::Write as _;
use std::path::Path;

use beff_backends::{BackendError, Batch, Batches, Direction, FilePath, Latency, OpenMode, OpenRequest, Pattern};
use beff_ffi::MpiError;

use super::check::reread;
use super::contents::{self, Source};
use super::found::Checked;
use super::job::RowJob;
use super::outcome::{Done, Stopped};
use super::shape::Shape;
use super::timed::Timed;
use super::Bench;
use crate::frame::run::clock::Instant;
use crate::frame::run::named;
use crate::imb_io::config::FileState;
use crate::imb_io::plan::{Group, Pointer, Style, Transfer};

/// The byte that every rank writes, as a benchmark of its own.
const BYTE: Transfer =
    Transfer { group: Group::Single, pointer: Pointer::Expl, direction: Direction::Write, style: Style::Blocking };

/// Makes the file, opens and closes it `steps` times, looks for the byte. Collective over the active ranks.
pub(super) fn run(bench: &mut Bench<'_>, job: &RowJob<'_>, steps: u64, counts: bool) -> Result<Done, Stopped> {
    let team = job.team;
    let shape = Shape::new(BYTE, 1, 1, (0, 1), bench.config.buffers)?;
    let pattern = shape.pattern()?;
    let name = Path::new(&job.backend.name).join(format!("row{:05}-group{:05}.dat", job.number, team.member.group));
    let path = bench.run_dir.file(&name);
    let data = shape.data(bench.config.seed, job.number, team.member.group);
    let mut before = [0];
    data.fill_before(0, &mut before);
    let before: &[u8] = if bench.config.file == Some(FileState::Existing) { &before } else { &[] };
    let make = || path.create()?.write_all(before);
    let made = if team.group.is_root() { make() } else { Ok(()) };
    let made = made.map_err(|e| BackendError::from_io("open", &path, None, &e));
    job.agree(made.and_then(|()| named::check(&job.backend.name, &path)))?;
    contents::lay_out(&mut bench.ring, &shape, &data);
    let mut done = Done { file: name, ..Done::default() };
    let mut strategy = None;
    done.cpu_watch.resume(&team.cpus);
    done.timed = timed(bench, job, steps, (&path, &pattern), &mut strategy)?;
    done.cpu_watch.pause(&team.cpus);
    done.in_force.strategy = strategy.unwrap_or_default();
    // Between two openings nobody looks: a look would be in the clock.
    let named = named::check(&job.backend.name, &path);
    let whole = job.agree(done.timed.error.take().map_or(named, Err));
    let mut checked = Ok(Checked::default());
    if team.group.is_root() {
        checked = reread(&shape, &data, Source { path: &path, drops: bench.config.cache.gives_pages_back() }, 0..1);
        if !(job.keep && counts) || whole.is_err() {
            // A name that stays is seen at the end, when the directory is removed.
            let _ = path.remove();
        }
    }
    whole?;
    done.checked = job.agree(checked)?;
    Ok(done)
}

fn timed(
    bench: &mut Bench<'_>,
    job: &RowJob<'_>,
    steps: u64,
    (path, pattern): (&FilePath, &Pattern),
    strategy: &mut Option<String>,
) -> Result<Timed, MpiError> {
    let request = OpenRequest { path, mode: OpenMode::Update, comm: &job.team.group, hints: &bench.config.hints };
    let Bench { ring, laps, .. } = bench;
    let (mut timed, mut off) = (Timed::default(), Latency::off());
    job.team.group.bare_barrier()?;
    job.team.group.bare_barrier()?;
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
        let prepared = file.prepare(pattern, Direction::Write, ring, &[]);
        let moved = file.write(Batches::new(Batch { first_call: 0, calls: 1 }, &mut off), ring);
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
