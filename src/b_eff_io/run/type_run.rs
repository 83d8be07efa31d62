//! One pattern type with one access method on one partition: open, patterns in turn, close, for every backend.

use std::time::Instant;

use beff_backends::{BackendError, OpenFile, OpenMode, OpenRequest};
use beff_ffi::{Comm, MpiError};

use crate::b_eff_io::plan::hints;
use crate::b_eff_io::plan::patterns::{of_type, patterns, PatternSpec};
use crate::b_eff_io::plan::segments::{segment, Segment};
use crate::b_eff_io::plan::space::PartitionSpace;
use crate::b_eff_io::records::{CorruptionRecord, JournalLine, TypeRecord, Verification};
use crate::b_eff_io::run::files::TypeFile;
use crate::b_eff_io::run::pattern_run::{run_pattern, Open};
use crate::b_eff_io::run::turn::part_rank;
use crate::b_eff_io::run::verify::{reader_of, Findings};
use crate::b_eff_io::run::whole::Run;
use crate::frame::records::{Access, ErrorRecord, Outcome};
use crate::frame::run::evidence::Site;
use crate::frame::run::trouble;

/// Where the work stands: access method, partition, type.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// Access method.
    pub access: Access,
    /// Partition.
    pub part: &'a PartitionSpace,
    /// Its ranks.
    pub comm: &'a Comm,
    /// What is below their files.
    pub site: &'a Site,
    /// Pattern type.
    pub pattern_type: u8,
}

/// Runs the type through all backends, pattern by pattern in turn. Collective over the partition.
///
/// # Errors
/// MPI between the ranks.
pub fn run_type(
    run: &mut Run<'_>,
    access: Access,
    part: &PartitionSpace,
    (comm, site): (&Comm, &Site),
    pattern_type: u8,
) -> Result<(), MpiError> {
    let place = Place { access, part, comm, site, pattern_type };
    let specs = patterns(part.m_part_bytes);
    let mut open_files = Vec::new();
    for backend in 0..run.backends.len() {
        if run.stop.is_some() {
            break;
        }
        if let Some(open) = open(run, place, &specs, backend)? {
            open_files.push(open);
        }
    }
    for (index, spec) in of_type(&specs, pattern_type).iter().enumerate() {
        if run.stop.is_some() {
            break;
        }
        run_pattern(run, place, &mut open_files, index, spec)?;
    }
    if run.stop == Some(Outcome::Interrupted) && comm.is_root() {
        // A launcher that passes a signal on may kill soon after: the names go first, while the files are open.
        let _ = run.run_dir.remove();
    }
    for open in open_files {
        close(run, place, open)?;
    }
    Ok(())
}

fn open(
    run: &mut Run<'_>,
    place: Place<'_>,
    specs: &[PatternSpec; 43],
    backend: usize,
) -> Result<Option<Open>, MpiError> {
    let Place { access, part, comm, pattern_type, .. } = place;
    let name = run.backends[backend].name.clone();
    let during = format!("{name}, {}, {} ranks, open of type {pattern_type}", access.name(), part.ranks);
    let (index, plan) = match find_or_plan(run, place, specs, &name) {
        Ok(found) => found,
        Err(message) => {
            // The plan is the same on all ranks, and so is its failure.
            run.fail(ErrorRecord {
                during,
                rank: 0,
                ranks_affected: part.ranks,
                message,
                next_step: "use fewer ranks, less --memory-per-process, or a smaller --space".into(),
                no_space: false,
            });
            return Ok(None);
        }
    };
    let own = Comm::own();
    let file = &run.files[index];
    let path = run.run_dir.path().join(file.name(part_rank(run, place)));
    let requested = hints::for_open(&run.config.hints, part.ranks, access, pattern_type);
    let mode = match access {
        Access::Write => OpenMode::CreateNew,
        Access::Rewrite => OpenMode::Update,
        Access::Read => OpenMode::ReadOnly,
    };
    let request =
        OpenRequest { path: &path, mode, comm: if file.is_private() { &own } else { comm }, hints: &requested };
    comm.barrier()?;
    let begin = Instant::now();
    let opened = run.backends[backend].driver.open(&request);
    let mut seconds = [begin.elapsed().as_secs_f64()];
    comm.max_f64(&mut seconds)?;
    run.backends[backend].debt_seconds += seconds[0];
    if let Some(record) = trouble::agree(comm, opened.as_ref().err(), &during)? {
        run.fail(record);
        // Those that could open keep the file until the process ends: closing is collective.
        if let Ok(file) = opened {
            std::mem::forget(file);
        }
        return Ok(None);
    }
    let Ok(handle) = opened else { return Ok(None) };
    let hints_granted = granted(run, handle.as_ref(), &during);
    Ok(Some(Open {
        backend,
        handle,
        file: index,
        segment: plan,
        next_stream_bytes: 0,
        open_seconds: seconds[0],
        hints_requested: requested,
        hints_granted,
    }))
}

/// Hints in force as the library tells; that it cannot tell is an error like any other.
pub fn granted(run: &mut Run<'_>, file: &dyn OpenFile, during: &str) -> Vec<(String, String)> {
    file.hints_in_force().unwrap_or_else(|e| {
        run.observer.record(JournalLine::Error(ErrorRecord {
            during: during.to_owned(),
            rank: 0,
            ranks_affected: 1,
            message: e.to_string(),
            next_step: "the hints in force are unknown; the measurement itself goes on".into(),
            no_space: false,
        }));
        Vec::new()
    })
}

/// The file's place in the list of the run, and for a first write of types 3 and 4 its segment.
fn find_or_plan(
    run: &mut Run<'_>,
    place: Place<'_>,
    specs: &[PatternSpec; 43],
    backend: &str,
) -> Result<(usize, Option<Segment>), String> {
    let Place { access, part, pattern_type, .. } = place;
    let same = |f: &TypeFile| f.backend == backend && f.ranks == part.ranks;
    if access != Access::Write {
        let index = run.files.iter().position(|f| same(f) && f.pattern_type == pattern_type);
        return index.map(|i| (i, None)).ok_or_else(|| format!("type {pattern_type} was not written"));
    }
    let plan = if pattern_type >= 3 {
        let mut counts = [0; 43];
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
    });
    Ok((run.files.len() - 1, plan))
}

fn close(run: &mut Run<'_>, place: Place<'_>, open: Open) -> Result<(), MpiError> {
    let Place { access, part, comm, pattern_type, .. } = place;
    let Open { backend, handle, file, open_seconds, hints_requested, hints_granted, .. } = open;
    let name = run.backends[backend].name.clone();
    comm.barrier()?;
    let begin = Instant::now();
    let closed = handle.close();
    let mut seconds = [begin.elapsed().as_secs_f64()];
    comm.max_f64(&mut seconds)?;
    run.backends[backend].debt_seconds += seconds[0];
    let during = format!("{name}, {}, {} ranks, close of type {pattern_type}", access.name(), part.ranks);
    // After a signal the names are gone already, which some libraries complain about; nobody needs the files any more.
    let error = closed.err().filter(|_| run.stop != Some(Outcome::Interrupted));
    if let Some(record) = trouble::agree(comm, error.as_ref(), &during)? {
        run.fail(record);
    }
    let verified = run.verifies_fully() && access != Access::Read && run.backends[backend].moves_data;
    let full_verification = if verified && run.stop.is_none() { verify_fully(run, place, file)? } else { None };
    let path = run.run_dir.path().join(run.files[file].name(0));
    run.observer.record(JournalLine::Type(TypeRecord {
        backend: name,
        ranks: part.ranks,
        access,
        pattern_type,
        open_seconds,
        close_seconds: seconds[0],
        file_bytes: std::fs::metadata(path).map_or(0, |m| m.len()),
        segment_bytes: run.files[file].segment_bytes,
        hints_requested,
        hints_granted,
        full_verification,
    }));
    Ok(())
}

fn verify_fully(run: &mut Run<'_>, place: Place<'_>, file: usize) -> Result<Option<Verification>, MpiError> {
    let Place { access, comm, .. } = place;
    let begin = Instant::now();
    let checked = run.data.check_file(run.run_dir.path(), &run.files[file], access, comm.rank());
    let (findings, error) = match checked {
        Ok(findings) => (findings, None),
        Err(e) => {
            let path = run.run_dir.path().join(run.files[file].name(reader_of(comm.rank(), comm.size())));
            (Findings::default(), Some(BackendError::from_io("re-read for --verify full", path, None, &e)))
        }
    };
    let verification = report_findings(run, comm, &findings)?;
    if let Some(record) = trouble::agree(comm, error.as_ref(), "--verify full")? {
        run.fail(record);
    }
    run.full_verify_seconds += begin.elapsed().as_secs_f64();
    Ok(Some(verification))
}

/// Sums of all ranks; wrong places go into the records. Collective.
///
/// # Errors
/// MPI between the ranks.
pub fn report_findings(run: &mut Run<'_>, comm: &Comm, findings: &Findings) -> Result<Verification, MpiError> {
    let mut sums = [findings.verification.words_checked, findings.verification.words_wrong];
    comm.sum_u64(&mut sums)?;
    if sums[1] > 0 {
        let mine = serde_json::to_vec(&findings.places).unwrap_or_default();
        for bytes in comm.gather_bytes(&mine)? {
            // Written by the same program a moment ago; if it is unreadable, the count of wrong words still tells.
            let places: Vec<CorruptionRecord> = serde_json::from_slice(&bytes).unwrap_or_default();
            for place in places {
                run.observer.record(JournalLine::Corruption(place));
            }
        }
    }
    Ok(Verification { words_checked: sums[0], words_wrong: sums[1] })
}

/// A file that is open while the patterns of its type run.
pub type OpenHandle = Box<dyn OpenFile>;
