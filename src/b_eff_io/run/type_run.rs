//! One pattern type with one access method on one partition: open, patterns in turn, close, for every backend.

use beff_backends::{Driver, OpenMode, OpenRequest};
use beff_ffi::{Comm, MpiError};

use crate::b_eff_io::plan::hints;
use crate::b_eff_io::plan::patterns::{of_type, patterns, PatternSpec};
use crate::b_eff_io::plan::segments::{segment, Segment};
use crate::b_eff_io::plan::PATTERNS;
use crate::b_eff_io::records::{JournalLine, TypeRecord, TypeRepeatRecord};
use crate::b_eff_io::run::files::{TypeFile, Written};
use crate::b_eff_io::run::pattern_run::run_pattern;
use crate::b_eff_io::run::place::{Open, Place};
use crate::b_eff_io::run::recheck;
use crate::b_eff_io::run::state::{Backend, Run};
use crate::frame::records::{Access, ErrorRecord, Outcome};
use crate::frame::run::agree::{of_root, slowest};
use crate::frame::run::clock::Instant;
use crate::frame::run::named;

/// Runs the type through all backends, pattern by pattern in turn. Collective over the partition.
///
/// # Errors
/// MPI between the ranks.
pub fn run_type(run: &mut Run<'_>, place: Place<'_>) -> Result<(), MpiError> {
    let specs = patterns(place.part.m_part_bytes);
    let mut open_files = Vec::new();
    for backend in 0..run.backends.len() {
        if run.stop.is_some() {
            break;
        }
        if let Some(open) = open(run, place, &specs, backend)? {
            open_files.push(open);
        }
    }
    for (index, spec) in of_type(&specs, place.pattern_type).iter().enumerate() {
        if run.stop.is_some() {
            break;
        }
        let mut place = place;
        if let Some(repeat) = &mut place.repeat {
            repeat.left_seconds = of_root(place.comm, repeat.seconds - repeat.begin.elapsed().as_secs_f64())?;
        }
        if place.leaves_out(run, spec) {
            leave_out(run, place, &open_files, index);
            continue;
        }
        run_pattern(run, place, &mut open_files, index, spec)?;
    }
    if run.stop == Some(Outcome::Interrupted) && place.comm.is_root() {
        // A launcher that passes a signal on may kill soon after: the names go first, while the files are open.
        let _ = run.run_dir.remove();
    }
    run.memory_seen.look();
    for open in open_files {
        close(run, place, open)?;
    }
    Ok(())
}

/// What is written anew has nothing of this pattern.
fn leave_out(run: &mut Run<'_>, place: Place<'_>, open_files: &[Open], index: usize) {
    for open in open_files.iter().filter(|_| place.access == Access::Write) {
        let file = &mut run.files[open.file];
        let Written { spec, stream_bytes, .. } = file.planned[index];
        file.written.push(Written::nothing(spec, stream_bytes, place.writes()));
    }
}

fn open(
    run: &mut Run<'_>,
    place: Place<'_>,
    specs: &[PatternSpec; PATTERNS],
    backend: usize,
) -> Result<Option<Open>, MpiError> {
    let Place { access, part, comm, pattern_type, .. } = place;
    let name = run.backends[backend].name.clone();
    let during = format!("{name}, {}, {} ranks, open of type {pattern_type}", access.name(), part.ranks);
    let (index, segment) = match find_or_plan(run, place, specs, &name) {
        Ok(found) => found,
        Err(message) => {
            // The plan is the same on all ranks, and so is its failure.
            let next_step = "use fewer ranks, less --memory-per-process, or a smaller --space";
            let error = ErrorRecord::of_rank(0, &during, message, next_step);
            run.fail(ErrorRecord { ranks_affected: part.ranks, ..error });
            return Ok(None);
        }
    };
    let own = Comm::own();
    let file = &run.files[index];
    let path = run.run_dir.file(&file.name(place.part_rank(run)));
    let hints_requested = hints::for_open(&run.config.hints, part.ranks, access, pattern_type);
    let mode = match access {
        Access::Write => OpenMode::CreateNew,
        Access::Rewrite => OpenMode::Update,
        Access::Read => OpenMode::ReadOnly,
    };
    let of_file = if file.is_private() { &own } else { comm };
    let request = OpenRequest { path: &path, mode, comm: of_file, hints: &hints_requested };
    // Outside the clock, and agreed on: the opening is collective.
    if run.failed(comm, named::check(&name, &path).err().as_ref(), &during)? {
        return Ok(None);
    }
    let (opened, open_seconds) = timed(&mut run.backends[backend], comm, |driver| driver.open(&request))?;
    let opened = opened.and_then(|file| named::check(&name, &path).map(|()| file));
    if run.failed(comm, opened.as_ref().err(), &during)? {
        // Those that could open keep the file until the process ends: closing is collective.
        if let Ok(file) = opened {
            std::mem::forget(file);
        }
        return Ok(None);
    }
    let Ok(handle) = opened else { return Ok(None) };
    let hints_granted = run.granted(handle.as_ref(), &during);
    Ok(Some(Open {
        backend,
        handle,
        file: index,
        segment,
        next_stream_bytes: 0,
        open_seconds,
        hints_requested,
        hints_granted,
    }))
}

/// Opens or closes, after a barrier: what came of it, and the time of the slowest rank, by which the backend is now behind
/// its schedule. Collective.
fn timed<T>(backend: &mut Backend, comm: &Comm, work: impl FnOnce(&dyn Driver) -> T) -> Result<(T, f64), MpiError> {
    comm.barrier()?;
    let begin = Instant::now();
    let done = work(backend.driver.as_ref());
    let seconds = slowest(comm, begin.elapsed().as_secs_f64())?;
    backend.debt_seconds += seconds;
    Ok((done, seconds))
}

/// The file's place in the list of the run, and for a first write of types 3 and 4 its segment.
fn find_or_plan(
    run: &mut Run<'_>,
    place: Place<'_>,
    specs: &[PatternSpec; PATTERNS],
    backend: &str,
) -> Result<(usize, Option<Segment>), String> {
    let Place { access, part, pattern_type, .. } = place;
    let same = |f: &TypeFile| f.backend == backend && f.ranks == part.ranks;
    if access != Access::Write || place.repeat.is_some() {
        let index = run.files.iter().position(|f| same(f) && f.pattern_type == pattern_type);
        return index.map(|i| (i, None)).ok_or_else(|| format!("type {pattern_type} was not written"));
    }
    let plan = if pattern_type.has_segments() {
        let mut counts = [0; PATTERNS];
        for w in run.files.iter().filter(|f| same(f)).flat_map(|f| &f.written) {
            counts[usize::from(w.spec.number)] = w.calls;
        }
        let multiple = run.config.segment_multiple_bytes;
        let s = segment(pattern_type, specs, &counts, &run.config.types, &part.max_calls, multiple);
        Some(s.map_err(|e| e.to_string())?)
    } else {
        None
    };
    run.files.push(TypeFile {
        backend: backend.to_owned(),
        ranks: part.ranks,
        pattern_type,
        segment_bytes: plan.as_ref().map(|s| s.segment_bytes),
        shared_pointer: run.config.shared_pointer,
        written: Vec::new(),
        planned: Vec::new(),
    });
    Ok((run.files.len() - 1, plan))
}

fn close(run: &mut Run<'_>, place: Place<'_>, open: Open) -> Result<(), MpiError> {
    let Place { access, part, comm, pattern_type, .. } = place;
    let Open { backend, handle, file, open_seconds, hints_requested, hints_granted, .. } = open;
    let name = run.backends[backend].name.clone();
    let (closed, close_seconds) = timed(&mut run.backends[backend], comm, |_| handle.close())?;
    let during = format!("{name}, {}, {} ranks, close of type {pattern_type}", access.name(), part.ranks);
    // After a signal the names are gone already, which some libraries complain about; nobody needs the files any more.
    let error = closed.err().filter(|_| run.stop != Some(Outcome::Interrupted));
    run.failed(comm, error.as_ref(), &during)?;
    let full_verification = recheck::whole_file(run, place, backend, file)?;
    let path = run.run_dir.file(&run.files[file].name(0));
    let record = TypeRecord {
        backend: name,
        ranks: part.ranks,
        access,
        pattern_type,
        open_seconds,
        close_seconds,
        file_bytes: path.size_bytes().unwrap_or(0),
        segment_bytes: run.files[file].segment_bytes,
        hints_requested,
        hints_granted,
        full_verification,
    };
    run.observer.record(match place.repeat {
        None => JournalLine::Type(record),
        Some(repeat) => JournalLine::TypeRepeat(TypeRepeatRecord { repeat: repeat.number, measured: record }),
    });
    Ok(())
}
