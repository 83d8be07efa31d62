//! Continuation of a run that was cut: its complete units are kept, their state is derived from the records, and their files are moved here
//! or written again.

use beff_ffi::MpiError;

use crate::b_eff_io::config::{Config, RepeatPolicy};
use crate::b_eff_io::plan::patterns::{of_type, patterns, PatternSpec};
use crate::b_eff_io::plan::schedule::is_rewritten;
use crate::b_eff_io::plan::PATTERNS;
use crate::b_eff_io::records::{ContinuationRecord, JournalLine, PatternRecord, TypeRecord, UnitRecord};
use crate::b_eff_io::run::context::{TypeContext, TypeRepetition};
use crate::b_eff_io::run::cut_run::{is_of_pattern, is_of_type, CutRun};
use crate::b_eff_io::run::files::{TypeFile, WrittenPattern};
use crate::b_eff_io::run::first_measurement::{FirstMeasurement, TypeDuration};
use crate::b_eff_io::run::state::RunState;
use crate::b_eff_io::run::type_run::{find_or_plan, run_type};
use crate::frame::records::{AccessMethod, ErrorRecord};
use crate::frame::run::agree::max_seconds;
use crate::frame::run::clock::Instant;
use beff_stamp::Generation;

/// Generation of data that is written again: no repetition of a run has it.
const REBUILT_GENERATION: u32 = u32::MAX;
/// No time limit: the calls end by their number.
const UNLIMITED_SECONDS: f64 = 1e9;

/// Records the kept units, and what became of their files. On rank 0.
pub fn record(run: &mut RunState<'_>, cut: &CutRun) {
    let CutRun { result, .. } = cut;
    result.continuations.iter().for_each(|c| run.observer.record(JournalLine::Continuation(c.clone())));
    result.patterns.iter().for_each(|p| run.observer.record(JournalLine::Pattern(Box::new(p.clone()))));
    result.types.iter().for_each(|t| run.observer.record(JournalLine::Type(t.clone())));
    result.corruptions.iter().for_each(|c| run.observer.record(JournalLine::Corruption(c.clone())));
}

/// Number of types with files that were moved here, number written again, and the time for both.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProvidedFiles {
    reused: u64,
    rebuilt: u64,
    seconds: f64,
}

/// Restores the state of the run after the kept units of a partition, with their files. Collective over the partition.
///
/// # Errors
/// MPI between the ranks.
pub fn restore(
    run: &mut RunState<'_>,
    cut: &CutRun,
    place: TypeContext<'_>,
    provided: &mut ProvidedFiles,
) -> Result<(), MpiError> {
    let specs = patterns(place.partition.m_part_bytes);
    for unit in cut.kept.iter().filter(|unit| unit.ranks == place.partition.ranks) {
        for backend in 0..run.backends.len() {
            if let Err(message) = restore_unit(run, cut, place, &specs, unit, backend) {
                let during = format!("continuation, {}", unit.name());
                run.fail(ErrorRecord::of_rank(0, &during, message, "start the run anew"));
                return Ok(());
            }
        }
        let UnitRecord { ranks, access, pattern_type } = *unit;
        let opens: f64 =
            cut.result.types.iter().filter(|t| is_of_type(t, unit)).map(|t| t.open_seconds + t.close_seconds).sum();
        let patterns: f64 =
            cut.result.patterns.iter().filter(|p| is_of_pattern(p, unit)).map(PatternRecord::seconds).sum();
        run.type_durations.push(TypeDuration { ranks, access, pattern_type, seconds: opens + patterns });
    }
    let begin = Instant::now();
    let written =
        cut.kept.iter().filter(|unit| unit.ranks == place.partition.ranks && unit.access == AccessMethod::Write);
    for unit in written.filter(|unit| is_used_again(run.config, cut, unit)) {
        if run.stop.is_some() {
            break;
        }
        let place = TypeContext { pattern_type: unit.pattern_type, ..place };
        if move_files(run, cut, place)? {
            provided.reused += 1;
        } else {
            rebuild_files(run, place)?;
            provided.rebuilt += 1;
        }
    }
    provided.seconds += max_seconds(place.comm, begin.elapsed().as_secs_f64())?;
    Ok(())
}

/// The record of the continuation; removes what is left of the cut run. On rank 0, when all ranks have their files.
#[must_use]
pub fn finish(cut: &CutRun, provided: ProvidedFiles) -> ContinuationRecord {
    let left = cut.directory.as_ref().and_then(|directory| directory.remove().err().map(|e| (directory, e)));
    ContinuationRecord {
        journal: cut.journal.clone(),
        started_utc: cut.result.manifest.machine.started_utc.clone(),
        units_kept: cut.kept.len() as u64,
        cut_in: cut.cut_in,
        types_reused: provided.reused,
        types_rebuilt: provided.rebuilt,
        rebuild_seconds: provided.seconds,
        files_left: left.map(|(directory, e)| format!("{}: {e}", directory.current_path())),
    }
}

/// True if the files of a kept first write are rewritten, read, or kept for the user.
fn is_used_again(config: &Config, cut: &CutRun, unit: &UnitRecord) -> bool {
    let is_measured = |access| match access {
        AccessMethod::Rewrite => is_rewritten(config.full_rewrite, unit.pattern_type),
        _ => true,
    };
    let remains = |access| is_measured(access) && !cut.is_kept(access, unit.ranks, unit.pattern_type);
    config.keep_files
        || config.repeat != RepeatPolicy::Off
        || remains(AccessMethod::Rewrite)
        || remains(AccessMethod::Read)
}

fn restore_unit(
    run: &mut RunState<'_>,
    cut: &CutRun,
    place: TypeContext<'_>,
    specs: &[PatternSpec; PATTERNS],
    unit: &UnitRecord,
    backend: usize,
) -> Result<(), String> {
    let name = run.backends[backend].name.clone();
    let records: Vec<&PatternRecord> =
        cut.result.patterns.iter().filter(|p| p.backend == name && is_of_pattern(p, unit)).collect();
    let calls = |spec: &PatternSpec| {
        let record = records.iter().find(|record| record.pattern == spec.number);
        record.map(|record| record.calls).ok_or_else(|| format!("the journal has no record of pattern {}", spec.number))
    };
    let place = TypeContext { access: unit.access, pattern_type: unit.pattern_type, ..place };
    let (index, segment) = find_or_plan(run, place, specs, &name)?;
    let mut stream_bytes = 0;
    for (at, spec) in of_type(specs, unit.pattern_type).iter().enumerate() {
        let calls = calls(spec)?;
        match unit.access {
            AccessMethod::Write => {
                let spec = segment.as_ref().map_or(*spec, |segment| segment.spec(spec));
                let written = WrittenPattern::empty(spec, stream_bytes, Generation::First);
                run.files[index].written.push(WrittenPattern { calls, ..written });
                stream_bytes += segment.as_ref().map_or(calls, |segment| segment.calls[at]) * spec.call_bytes;
            }
            AccessMethod::Rewrite => run.files[index].written[at].rewrite(calls, Generation::Second),
            AccessMethod::Read => {}
        }
    }
    for record in records {
        run.first_measurements.push(FirstMeasurement::new(backend, record));
        run.done_seconds += record.scheduled_seconds;
    }
    Ok(())
}

/// Files of a type that this rank moves or removes, with the bytes that they have after the kept units.
fn own_files<'a>(run: &'a RunState<'_>, place: TypeContext<'_>) -> Vec<&'a TypeFile> {
    let is_own = |file: &&TypeFile| {
        let moves_data = run.backends.iter().any(|backend| backend.name == file.backend && backend.moves_data);
        file.ranks == place.partition.ranks
            && file.pattern_type == place.pattern_type
            && moves_data
            && (file.is_private() || place.comm.is_root())
    };
    run.files.iter().filter(is_own).collect()
}

/// Moves the files of a type from the directory of the cut run. False if they do not contain what the records say, or not on all ranks.
/// Collective over the partition.
fn move_files(run: &RunState<'_>, cut: &CutRun, place: TypeContext<'_>) -> Result<bool, MpiError> {
    let rank = place.comm.rank();
    let recorded_bytes = |file: &TypeFile| {
        let of =
            |t: &&TypeRecord| t.backend == file.backend && t.ranks == file.ranks && t.pattern_type == file.pattern_type;
        cut.result.types.iter().rfind(of).map(|t| t.file_bytes)
    };
    let directory = cut.directory.as_ref().filter(|_| cut.has_intact_files(place.partition.ranks, place.pattern_type));
    let is_there = |file: &TypeFile| {
        let found = directory.and_then(|directory| directory.file(&file.name(rank)).size_bytes().ok());
        found.is_some() && found == recorded_bytes(file)
    };
    let all = |mine: bool| {
        let mut least = [u64::from(mine)];
        place.comm.min_u64(&mut least).map(|()| least[0] == 1)
    };
    if !all(own_files(run, place).into_iter().all(is_there))? {
        return Ok(false);
    }
    let moves = |file: &TypeFile| {
        let name = file.name(rank);
        directory.is_some_and(|directory| directory.file(&name).move_to(&run.run_dir.file(&name)).is_ok())
    };
    all(own_files(run, place).into_iter().all(moves))
}

/// Writes the data of the kept units of a type, as a repetition of its first write that is not recorded. Collective over the partition.
fn rebuild_files(run: &mut RunState<'_>, place: TypeContext<'_>) -> Result<(), MpiError> {
    let rank = place.comm.rank();
    // Those that were moved before another rank failed to.
    for file in own_files(run, place) {
        let _ = run.run_dir.file(&file.name(rank)).remove();
    }
    place.comm.barrier()?;
    let is_own = |file: &&mut TypeFile| file.ranks == place.partition.ranks && file.pattern_type == place.pattern_type;
    run.files.iter_mut().filter(is_own).for_each(|file| file.previous = std::mem::take(&mut file.written));
    let rebuild = TypeRepetition {
        number: 0,
        share: 1.0,
        of_few_rounds: false,
        generation: REBUILT_GENERATION,
        begin: Instant::now(),
        budget_seconds: UNLIMITED_SECONDS,
        remaining_seconds: UNLIMITED_SECONDS,
    };
    run_type(run, TypeContext { access: AccessMethod::Write, repetition: Some(rebuild), ..place })?;
    let calls = |written: &[WrittenPattern]| written.iter().map(|pattern| pattern.calls).collect::<Vec<_>>();
    let is_short = |file: &TypeFile| calls(&file.written) != calls(&file.previous);
    let short = run.files.iter().filter(|f| f.ranks == place.partition.ranks && f.pattern_type == place.pattern_type);
    if run.stop.is_none() && short.into_iter().any(is_short) {
        let during = format!("continuation, files of type {}", place.pattern_type);
        let message = "the data of the cut run could not be written again".to_owned();
        run.fail(ErrorRecord::of_rank(0, &during, message, "start the run anew"));
    }
    Ok(())
}
