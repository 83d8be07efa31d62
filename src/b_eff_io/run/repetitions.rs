//! Repetitions in the time that remains after the first measurement: types are measured again to obtain confidence intervals. The records
//! of the first measurement do not change.
//!
//! All ranks of a partition make the same decision: the time is rank 0's, the duration of a unit is the slowest rank's, and rank 0 computes
//! the weights of the units from the records and broadcasts them.

use beff_backends::BackendError;
use beff_ffi::{Comm, MpiError};
use beff_statistics::bootstrap::SAMPLED_SHARE;

use crate::b_eff_io::config::{RepeatPolicy, Verify};
use crate::b_eff_io::plan::orders;
use crate::b_eff_io::plan::repetitions::{
    cut, has_unknown_spread, next, next_of_rounds, share_of, RepetitionUnit, MIN_REPETITIONS,
};
use crate::b_eff_io::plan::schedule::is_rewritten;
use crate::b_eff_io::run::batching::SyncModel;
use crate::b_eff_io::run::context::{TypeContext, TypeRepetition};
use crate::b_eff_io::run::files::{TypeFile, WrittenPattern};
use crate::b_eff_io::run::first_measurement::{FirstMeasurement, TypeDuration};
use crate::b_eff_io::run::kernel_counters::KernelCounters;
use crate::b_eff_io::run::state::RunState;
use crate::b_eff_io::run::type_run::run_type;
use crate::frame::records::{AccessMethod, RunOutcome};
use crate::frame::run::agree::{broadcast, max_seconds};
use crate::frame::run::clock::Instant;

/// Measures repetitions on one partition for at most `seconds`. `number` is the index of the partition. Collective over the partition.
///
/// # Errors
/// MPI between the ranks.
pub fn run_repetitions(
    run: &mut RunState<'_>,
    place: TypeContext<'_>,
    number: usize,
    seconds: f64,
) -> Result<(), MpiError> {
    let of_rounds = run.config.repeat == RepeatPolicy::Rounds;
    let mut units = units(run, place.partition.ranks);
    if !of_rounds {
        cut(&mut units, broadcast(place.comm, seconds)?);
    }
    adopt_root_state(run, place.comm)?;
    let begin = Instant::now();
    // The orders have written the first ones.
    let mut writings = orders::units(run.config).len() as u32;
    let expected_seconds: f64 = units.iter().map(|unit| f64::from(unit.min_repetitions) * unit.seconds).sum();
    let share_seconds = run.plan.rounds_seconds(run.config) / run.plan.partitions.len() as f64;
    while run.stop.is_none() {
        let left = broadcast(place.comm, seconds - begin.elapsed().as_secs_f64())?;
        if is_interrupted(run, place.comm)? {
            break;
        }
        let chosen = if of_rounds {
            next_of_rounds(&units, left, 1.0 - SAMPLED_SHARE)
        } else {
            let judged = repetition_needs(run, place.comm, number)?;
            for unit in &mut units {
                unit.need = judged.needs[3 * unit.pattern_type.index() + unit.access as usize];
            }
            let chosen = next(&units, left);
            chosen.filter(|_| !judged.is_narrow || has_unknown_spread(&units, chosen))
        };
        let Some(at) = chosen else { break };
        let unit = &mut units[at];
        let expected = unit.seconds;
        unit.repetitions += 1;
        writings += 1;
        let type_repetition = TypeRepetition {
            number: unit.repetitions,
            share: unit.share,
            of_few_rounds: unit.is_partial,
            generation: writings,
            begin,
            budget_seconds: seconds,
            remaining_seconds: left,
        };
        let place = TypeContext {
            access: unit.access,
            pattern_type: unit.pattern_type,
            repetition: Some(type_repetition),
            ..place
        };
        place.comm.barrier()?;
        let started = Instant::now();
        if place.access != AccessMethod::Write || clear_type_files(run, place)? {
            run_type(run, place)?;
        }
        if of_rounds {
            run.done_seconds = (run.done_seconds + share_seconds * expected / expected_seconds).min(run.all_seconds);
        }
        let took = max_seconds(place.comm, started.elapsed().as_secs_f64())?;
        // The duration of a part of the first measurement was an estimate.
        unit.seconds = if unit.is_partial && unit.repetitions == 1 { took } else { unit.seconds.max(took) };
    }
    Ok(())
}

/// Adopts rank 0's sync models and counters, because state that differs between ranks would lead to different numbers of calls. Ranks
/// outside earlier partitions have measured nothing there; rank 0 is in every partition. Collective over the partition.
///
/// # Errors
/// MPI between the ranks.
pub fn adopt_root_state(run: &mut RunState<'_>, comm: &Comm) -> Result<(), MpiError> {
    for backend in &mut run.backends {
        let mut parts = backend.sync.to_parts();
        comm.bcast_f64(&mut parts, 0)?;
        backend.sync = SyncModel::from_parts(parts);
        if let Some(counters) = &mut backend.counters {
            let mut parts = counters.to_parts();
            comm.bcast_f64(&mut parts, 0)?;
            *counters = KernelCounters::from_parts(parts);
        }
    }
    Ok(())
}

/// The measured types; for ratios alone, those with patterns that have too few rounds for one.
fn units(run: &RunState<'_>, ranks: u64) -> Vec<RepetitionUnit> {
    let config = run.config;
    let is_done = |took: &&TypeDuration| {
        took.ranks == ranks
            && (took.access != AccessMethod::Rewrite || is_rewritten(config.full_rewrite, took.pattern_type))
    };
    let of_rounds = config.repeat == RepeatPolicy::Rounds;
    let unit = |took: &TypeDuration| {
        let own =
            |p: &&FirstMeasurement| p.ranks == ranks && p.access == took.access && p.pattern_type == took.pattern_type;
        let passed = || run.first_measurements.iter().filter(own);
        let is_few = |p: &&FirstMeasurement| p.time_units == 0 || run.has_few_rounds(ranks, p.access, p.pattern);
        let clocked_seconds = passed().map(|p| p.seconds).sum::<f64>();
        let few_seconds = passed().filter(is_few).map(|p| p.seconds).sum::<f64>();
        let fixed_seconds = (took.seconds - clocked_seconds).max(0.0);
        // Most of the untimed work is done once per pattern, but full verification once per type.
        let fixed_part = match config.verify {
            Verify::Full => 1.0,
            Verify::Sample => passed().filter(is_few).count() as f64 / passed().count().max(1) as f64,
        };
        let need = if of_rounds { few_rounds_share(run, &passed().collect::<Vec<_>>()) } else { 0.0 };
        let lacks = passed().any(|p| p.time_units > 0 && is_few(&p)) || need >= 1.0 - SAMPLED_SHARE;
        // Files kept for the user contain all patterns.
        let is_partial = of_rounds && !(took.access == AccessMethod::Write && config.keep_files);
        RepetitionUnit {
            access: took.access,
            pattern_type: took.pattern_type,
            repetitions: 0,
            min_repetitions: if of_rounds && !lacks { 0 } else { MIN_REPETITIONS },
            seconds: if is_partial { fixed_part * fixed_seconds + few_seconds } else { took.seconds },
            fixed_seconds,
            share: 1.0,
            is_partial,
            need,
        }
    };
    run.type_durations.iter().filter(is_done).map(unit).filter(|unit| unit.min_repetitions > 0).collect()
}

/// Share of patterns with few rounds in the time of all patterns of the type, warm-up and fill-up included, for the backend in which it is
/// largest. 0 without patterns to compare.
fn few_rounds_share(run: &RunState<'_>, passed: &[&FirstMeasurement]) -> f64 {
    let share = |backend: usize| {
        let of = |counts: &dyn Fn(&FirstMeasurement) -> bool| {
            let own = passed.iter().filter(|p| p.backend == backend && counts(p));
            own.map(|p| p.seconds).sum::<f64>()
        };
        of(&|p| run.has_few_rounds(p.ranks, p.access, p.pattern)) / of(&|_| true).max(f64::MIN_POSITIVE)
    };
    (0..run.backends.len()).filter(|backend| run.backends[*backend].moves_data).map(share).fold(0.0, f64::max)
}

/// Numbers per partition that rank 0 computes: half-width of the value, then the weight of each unit.
pub const NUMBERS_PER_PARTITION: usize = 1 + 15;

fn is_interrupted(run: &mut RunState<'_>, comm: &Comm) -> Result<bool, MpiError> {
    let outcome = run.interrupt.agree(comm, 0.0)?;
    // The first measurement is complete: at the limit so is the run.
    run.stop = outcome.filter(|outcome| *outcome != RunOutcome::Limit);
    Ok(outcome.is_some())
}

struct RepetitionNeeds {
    /// The value has the precision requested by `--until`.
    is_narrow: bool,
    needs: [f64; NUMBERS_PER_PARTITION - 1],
}

/// Computed on rank 0 and broadcast. Collective over the partition.
fn repetition_needs(run: &mut RunState<'_>, comm: &Comm, number: usize) -> Result<RepetitionNeeds, MpiError> {
    let all = run.observer.derived_numbers();
    let own = all.get(number * NUMBERS_PER_PARTITION..(number + 1) * NUMBERS_PER_PARTITION).unwrap_or_default();
    let mut numbers = [0.0; NUMBERS_PER_PARTITION];
    numbers[0] = f64::INFINITY;
    numbers.iter_mut().zip(own).for_each(|(numbers, own)| *numbers = *own);
    comm.bcast_f64(&mut numbers, 0)?;
    let is_narrow = run.config.until_percent.is_some_and(|percent| numbers[0] <= percent / 100.0);
    let mut needs = [0.0; NUMBERS_PER_PARTITION - 1];
    needs.copy_from_slice(&numbers[1..]);
    Ok(RepetitionNeeds { is_narrow, needs })
}

/// Clears names and space for files of a type that are written anew. Old files are removed; where little is written, and removing would
/// take longer, they are renamed once and shortened by as many bytes. False: an error occurred, which ends the run. Collective over the
/// partition.
fn clear_type_files(run: &mut RunState<'_>, place: TypeContext<'_>) -> Result<bool, MpiError> {
    let own = |f: &&TypeFile| f.ranks == place.partition.ranks && f.pattern_type == place.pattern_type;
    let mut error = None;
    for file in run.files.iter().filter(own) {
        let moves = run.backends.iter().position(|b| b.name == file.backend && b.moves_data);
        // A backend that is not run has opened nothing, and the null backend has no files.
        let Some(backend) = moves.filter(|_| file.is_private() || place.comm.is_root()) else { continue };
        let path = run.run_dir.file(&file.name(place.comm.rank()));
        let writes_less = place.repetition.is_some_and(|r| r.share < 1.0 || r.of_few_rounds);
        // Only complete files are kept for the user.
        let is_aside =
            writes_less && !run.config.keep_files && path.move_aside(needed_bytes(run, place, file, backend)).is_ok();
        if let Err(e) = if is_aside { Ok(()) } else { path.remove() } {
            error.get_or_insert(BackendError::from_io("remove", &path, None, &e));
        }
    }
    for file in run.files.iter_mut().filter(|f| own(&&**f)) {
        file.previous = std::mem::take(&mut file.written);
    }
    let during = format!("removing type {} before a repetition", place.pattern_type);
    // The agreement is also a barrier: no rank opens before all names are removed.
    Ok(!run.agree_on_error(place.comm, error.as_ref(), &during)?)
}

/// Bytes that the repetition writes to the file, plus one call of each pattern.
fn needed_bytes(run: &RunState<'_>, place: TypeContext<'_>, file: &TypeFile, backend: usize) -> u64 {
    let writers = if file.is_private() { 1 } else { file.ranks };
    let share = place.repetition.map_or(1.0, |r| r.share);
    let of = |written: &WrittenPattern| {
        let passed = run.first_measurement(backend, file.ranks, place.access, written.spec.number);
        (share_of(passed.map_or(0, |passed| passed.calls), share) + 1) * written.spec.call_bytes * writers
    };
    file.written.iter().filter(|written| !place.skips(run, &written.spec)).map(of).sum()
}
