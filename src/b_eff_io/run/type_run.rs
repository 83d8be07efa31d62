//! One pattern type with one access method on one partition, for every backend: open, patterns in turn, close.

use beff_backends::{Driver, OpenMode, OpenRequest};
use beff_ffi::{Comm, MpiError};

use crate::b_eff_io::config::CallOrder;
use crate::b_eff_io::plan::hints;
use crate::b_eff_io::plan::orders::OrderUnit;
use crate::b_eff_io::plan::patterns::{of_type, patterns, PatternSpec};
use crate::b_eff_io::plan::segments::{segment, Segment};
use crate::b_eff_io::plan::PATTERNS;
use crate::b_eff_io::records::{JournalLine, OrderedTypeRecord, TypeRecord, TypeRepetitionRecord};
use crate::b_eff_io::run::context::{OpenTypeFile, TypeContext};
use crate::b_eff_io::run::file_verification;
use crate::b_eff_io::run::files::{TypeFile, WrittenPattern};
use crate::b_eff_io::run::host_transfers::host_transfers;
use crate::b_eff_io::run::limit_check::check_limit;
use crate::b_eff_io::run::measurement::OwnTransfer;
use crate::b_eff_io::run::pattern_run::run_pattern;
use crate::b_eff_io::run::state::{BackendState, RunState};
use crate::frame::records::{AccessMethod, ErrorRecord, RunOutcome};
use crate::frame::run::agree::{broadcast, max_seconds};
use crate::frame::run::clock::Instant;
use crate::frame::run::path_check;

/// Runs the type through all backends, which take turns in each pattern. Collective over the partition.
///
/// # Errors
/// MPI between the ranks.
pub fn run_type(run: &mut RunState<'_>, place: TypeContext<'_>) -> Result<(), MpiError> {
    run.skip_corrupt();
    let specs = patterns(place.partition.m_part_bytes);
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
        if let Some(current) = &mut place.repetition {
            current.remaining_seconds =
                broadcast(place.comm, current.budget_seconds - current.begin.elapsed().as_secs_f64())?;
        }
        if place.skips(run, spec) {
            skip_pattern(run, place, &open_files, index);
            continue;
        }
        if place.repetition.is_none() {
            check_limit(run, place, open_files.len(), spec)?;
            if run.stop.is_some() {
                break;
            }
        }
        run_pattern(run, place, &mut open_files, index, spec)?;
    }
    if run.stop == Some(RunOutcome::Interrupted) && place.comm.is_root() {
        // A launcher that forwards a signal may kill soon after: names are removed first, while the files are open.
        let _ = run.run_dir.remove();
    }
    run.peak_memory.sample();
    for open in open_files {
        close(run, place, open)?;
    }
    Ok(())
}

/// Notes that a file written anew contains nothing of this pattern.
fn skip_pattern(run: &mut RunState<'_>, place: TypeContext<'_>, open_files: &[OpenTypeFile], index: usize) {
    for open in open_files.iter().filter(|_| place.access == AccessMethod::Write) {
        let file = &mut run.files[open.file];
        let WrittenPattern { spec, stream_bytes, .. } = file.previous[index];
        file.written.push(WrittenPattern::empty(spec, stream_bytes, place.write_generation()));
    }
}

fn open(
    run: &mut RunState<'_>,
    place: TypeContext<'_>,
    specs: &[PatternSpec; PATTERNS],
    backend: usize,
) -> Result<Option<OpenTypeFile>, MpiError> {
    let TypeContext { access, partition: part, comm, pattern_type, .. } = place;
    let name = run.backends[backend].name.clone();
    let during = format!("{name}, {}, {} ranks, open of type {pattern_type}", access.name(), part.ranks);
    let (index, segment) = match find_or_plan(run, place, specs, &name) {
        Ok(found) => found,
        Err(message) => {
            // The plan, and so its error, is the same on all ranks.
            let next_step = "use fewer ranks, less --memory-per-process, or a smaller --space";
            let error = ErrorRecord::of_rank(0, &during, message, next_step);
            run.fail(ErrorRecord { ranks_affected: part.ranks, ..error });
            return Ok(None);
        }
    };
    let own = Comm::comm_self();
    let file = &run.files[index];
    let path = run.run_dir.file(&file.name(place.part_rank(run)));
    let hints_requested = hints::for_open(&run.config.of(&name).hints, part.ranks, access, pattern_type);
    let mode = match access {
        AccessMethod::Write => OpenMode::CreateNew,
        AccessMethod::Rewrite => OpenMode::Update,
        AccessMethod::Read => OpenMode::ReadOnly,
    };
    let of_file = if file.is_private() { &own } else { comm };
    let request = OpenRequest { path: &path, mode, comm: of_file, hints: &hints_requested };
    // Outside the clock, and agreed on, because open is collective.
    if run.agree_on_error(comm, path_check::check_name(&name, &path).err().as_ref(), &during)? {
        return Ok(None);
    }
    let (opened, open_seconds) = timed_call(&mut run.backends[backend], comm, |driver| driver.open(&request))?;
    run.limit.iter_mut().for_each(|limit| limit.note_open_or_close(open_seconds));
    let opened = opened.and_then(|file| path_check::check_name(&name, &path).map(|()| file));
    if run.agree_on_error(comm, opened.as_ref().err(), &during)? {
        // Ranks whose open succeeded keep the file until the process ends, because close is collective.
        if let Ok(file) = opened {
            std::mem::forget(file);
        }
        return Ok(None);
    }
    let Ok(handle) = opened else { return Ok(None) };
    let hints_granted = run.granted_hints(handle.as_ref(), &during);
    Ok(Some(OpenTypeFile {
        backend,
        handle,
        file: index,
        segment,
        next_stream_bytes: 0,
        own: OwnTransfer::default(),
        open_seconds,
        hints_requested,
        hints_granted,
    }))
}

/// Opens or closes after a barrier; returns the result and the time of the slowest rank, which is added to the debt of the backend.
/// Collective.
fn timed_call<T>(
    backend: &mut BackendState,
    comm: &Comm,
    work: impl FnOnce(&dyn Driver) -> T,
) -> Result<(T, f64), MpiError> {
    comm.barrier()?;
    let begin = Instant::now();
    let done = work(backend.driver.as_ref());
    let seconds = max_seconds(comm, begin.elapsed().as_secs_f64())?;
    backend.debt_seconds += seconds;
    Ok((done, seconds))
}

/// Index of the file in the list of the run, and its segment for a first write of types 3 and 4.
pub(super) fn find_or_plan(
    run: &mut RunState<'_>,
    place: TypeContext<'_>,
    specs: &[PatternSpec; PATTERNS],
    backend: &str,
) -> Result<(usize, Option<Segment>), String> {
    let TypeContext { access, partition: part, pattern_type, .. } = place;
    let same = |f: &TypeFile| f.backend == backend && f.ranks == part.ranks;
    if access != AccessMethod::Write || place.repetition.is_some() {
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
        previous: Vec::new(),
    });
    Ok((run.files.len() - 1, plan))
}

fn close(run: &mut RunState<'_>, place: TypeContext<'_>, open: OpenTypeFile) -> Result<(), MpiError> {
    let TypeContext { access, partition: part, comm, pattern_type, .. } = place;
    let OpenTypeFile { backend, handle, file, own, open_seconds, hints_requested, hints_granted, .. } = open;
    let name = run.backends[backend].name.clone();
    let (closed, close_seconds) = timed_call(&mut run.backends[backend], comm, |_| handle.close())?;
    run.limit.iter_mut().for_each(|limit| limit.note_open_or_close(close_seconds));
    let during = format!("{name}, {}, {} ranks, close of type {pattern_type}", access.name(), part.ranks);
    // After a signal the names have been removed, which some libraries report; the files are no longer needed.
    let error = closed.err().filter(|_| run.stop != Some(RunOutcome::Interrupted));
    run.agree_on_error(comm, error.as_ref(), &during)?;
    let hosts = host_transfers(comm, (run.recorder.host, run.hosts), own)?;
    let full_verification = file_verification::verify_file(run, place, backend, file)?;
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
        hosts,
        full_verification,
    };
    run.observer.record(match place.repetition {
        None => match place.order {
            None => JournalLine::Type(record),
            Some(OrderUnit { order: CallOrder { order, mix }, .. }) => {
                JournalLine::OrderedType(OrderedTypeRecord { order, mix, measurement: record })
            }
        },
        Some(current) if current.is_rebuild() => return Ok(()),
        Some(current) => {
            JournalLine::TypeRepetition(TypeRepetitionRecord { repetition: current.number, measurement: record })
        }
    });
    Ok(())
}
