//! The time that is left after the first pass: types are measured again, so that their values get intervals. The first pass is over by
//! then and its records are written; nothing here changes them.
//!
//! All ranks of a partition take the same decision: the time is rank 0's, what a unit took is the slowest rank's, what is worth most is
//! worked out on rank 0 from the records and told to the others.

use beff_backends::BackendError;
use beff_ffi::{Comm, MpiError};
use beff_statistics::bootstrap::SAMPLED_SHARE;

use crate::b_eff_io::config::{RepeatPolicy, Verify};
use crate::b_eff_io::plan::repeats::{cut, is_unknown, next, next_of_rounds, share_of, Unit, LEAST_REPEATS};
use crate::b_eff_io::plan::schedule::is_rewritten;
use crate::b_eff_io::run::batching::SyncModel;
use crate::b_eff_io::run::counted::Counters;
use crate::b_eff_io::run::files::{TypeFile, Written};
use crate::b_eff_io::run::passed::{Passed, Took};
use crate::b_eff_io::run::place::{Place, Repeat};
use crate::b_eff_io::run::state::Run;
use crate::b_eff_io::run::type_run::run_type;
use crate::frame::records::{Access, Outcome};
use crate::frame::run::agree::{of_root, slowest};
use crate::frame::run::clock::Instant;

/// Measures again on one partition for at most `seconds`. `number` is the place of the partition among all. Collective over the
/// partition.
///
/// # Errors
/// MPI between the ranks.
pub fn run_again(run: &mut Run<'_>, place: Place<'_>, number: usize, seconds: f64) -> Result<(), MpiError> {
    let of_rounds = run.config.repeat == RepeatPolicy::Rounds;
    let mut units = units(run, place.part.ranks);
    if !of_rounds {
        cut(&mut units, of_root(place.comm, seconds)?);
    }
    learn_of_root(run, place.comm)?;
    let begin = Instant::now();
    let mut writings = 0;
    let expected_seconds: f64 = units.iter().map(|unit| f64::from(unit.least_repeats) * unit.seconds).sum();
    let share_seconds = run.plan.rounds_seconds(run.config) / run.plan.partitions.len() as f64;
    while run.stop.is_none() {
        let left = of_root(place.comm, seconds - begin.elapsed().as_secs_f64())?;
        if is_interrupted(run, place.comm)? {
            break;
        }
        let chosen = if of_rounds {
            next_of_rounds(&units, left, 1.0 - SAMPLED_SHARE)
        } else {
            let judged = judged(run, place.comm, number)?;
            for unit in &mut units {
                unit.need = judged.needs[3 * unit.pattern_type.index() + unit.access as usize];
            }
            let chosen = next(&units, left);
            chosen.filter(|_| !judged.is_narrow || is_unknown(&units, chosen))
        };
        let Some(at) = chosen else { break };
        let unit = &mut units[at];
        let expected = unit.seconds;
        unit.repeats += 1;
        writings += 1;
        let repeat = Repeat {
            number: unit.repeats,
            share: unit.share,
            of_few_rounds: unit.is_partial,
            writing: writings,
            begin,
            seconds,
            left_seconds: left,
        };
        let place = Place { access: unit.access, pattern_type: unit.pattern_type, repeat: Some(repeat), ..place };
        place.comm.barrier()?;
        let started = Instant::now();
        if place.access != Access::Write || make_way(run, place)? {
            run_type(run, place)?;
        }
        if of_rounds {
            run.done_seconds = (run.done_seconds + share_seconds * expected / expected_seconds).min(run.all_seconds);
        }
        let took = slowest(place.comm, started.elapsed().as_secs_f64())?;
        // What a part of the first pass took was guessed.
        unit.seconds = if unit.is_partial && unit.repeats == 1 { took } else { unit.seconds.max(took) };
    }
    Ok(())
}

/// Ranks outside the partitions before have learned nothing there, and what is not equal on all ranks lets them make different numbers of
/// calls. Rank 0 is in every partition. Collective over the partition.
///
/// # Errors
/// MPI between the ranks.
pub fn learn_of_root(run: &mut Run<'_>, comm: &Comm) -> Result<(), MpiError> {
    for backend in &mut run.backends {
        let mut parts = backend.sync.to_parts();
        comm.bcast_f64(&mut parts, 0)?;
        backend.sync = SyncModel::from_parts(parts);
        if let Some(counters) = &mut backend.counters {
            let mut parts = counters.to_parts();
            comm.bcast_f64(&mut parts, 0)?;
            *counters = Counters::from_parts(parts);
        }
    }
    Ok(())
}

/// The types of the first pass that were measured; of ratios alone, those with patterns that lack rounds for one.
fn units(run: &Run<'_>, ranks: u64) -> Vec<Unit> {
    let config = run.config;
    let is_done = |took: &&Took| {
        took.ranks == ranks && (took.access != Access::Rewrite || is_rewritten(config.full_rewrite, took.pattern_type))
    };
    let of_rounds = config.repeat == RepeatPolicy::Rounds;
    let unit = |took: &Took| {
        let own = |p: &&Passed| p.ranks == ranks && p.access == took.access && p.pattern_type == took.pattern_type;
        let passed = || run.passed.iter().filter(own);
        let is_few = |p: &&Passed| p.time_units == 0 || run.has_few_rounds(ranks, p.access, p.pattern);
        let clocked_seconds = passed().map(|p| p.seconds).sum::<f64>();
        let few_seconds = passed().filter(is_few).map(|p| p.seconds).sum::<f64>();
        let fixed_seconds = (took.seconds - clocked_seconds).max(0.0);
        // Most of what is not clocked is done once for each pattern, but everything is compared once for the type.
        let fixed_part = match config.verify {
            Verify::Full => 1.0,
            Verify::Ring => passed().filter(is_few).count() as f64 / passed().count().max(1) as f64,
        };
        let need = if of_rounds { few_share(run, &passed().collect::<Vec<_>>()) } else { 0.0 };
        let lacks = passed().any(|p| p.time_units > 0 && is_few(&p)) || need >= 1.0 - SAMPLED_SHARE;
        // Files that are kept for the user hold all patterns.
        let is_partial = of_rounds && !(took.access == Access::Write && config.keep_files);
        Unit {
            access: took.access,
            pattern_type: took.pattern_type,
            repeats: 0,
            least_repeats: if of_rounds && !lacks { 0 } else { LEAST_REPEATS },
            seconds: if is_partial { fixed_part * fixed_seconds + few_seconds } else { took.seconds },
            fixed_seconds,
            share: 1.0,
            is_partial,
            need,
        }
    };
    run.took.iter().filter(is_done).map(unit).filter(|unit| unit.least_repeats > 0).collect()
}

/// Share of the patterns with few rounds, warm-up and fill-up too, in the time of these, of the backend in which it is largest. 0 where
/// there is nothing to compare.
fn few_share(run: &Run<'_>, passed: &[&Passed]) -> f64 {
    let share = |backend: usize| {
        let of = |counts: &dyn Fn(&Passed) -> bool| {
            let own = passed.iter().filter(|p| p.backend == backend && counts(p));
            own.map(|p| p.seconds).sum::<f64>()
        };
        of(&|p| run.has_few_rounds(p.ranks, p.access, p.pattern)) / of(&|_| true).max(f64::MIN_POSITIVE)
    };
    (0..run.backends.len()).filter(|backend| run.backends[*backend].moves_data).map(share).fold(0.0, f64::max)
}

/// Numbers of one partition in what rank 0 works out: the half width of the value, then what each unit weighs.
pub const JUDGED: usize = 1 + 15;

/// True if somebody wants the run to end.
fn is_interrupted(run: &mut Run<'_>, comm: &Comm) -> Result<bool, MpiError> {
    let mut wanted = [u64::from(run.interrupt.raised())];
    comm.max_u64(&mut wanted)?;
    if wanted[0] > 0 {
        run.stop = Some(Outcome::Interrupted);
    }
    Ok(wanted[0] > 0)
}

/// What the measurements so far say of one partition.
struct Judged {
    /// The value is known as well as `--until` asks.
    is_narrow: bool,
    /// What each unit weighs.
    needs: [f64; JUDGED - 1],
}

/// Worked out on rank 0 and told to the others. Collective over the partition.
fn judged(run: &mut Run<'_>, comm: &Comm, number: usize) -> Result<Judged, MpiError> {
    let all = run.observer.judgement();
    let own = all.get(number * JUDGED..(number + 1) * JUDGED).unwrap_or_default();
    let mut told = [0.0; JUDGED];
    told[0] = f64::INFINITY;
    told.iter_mut().zip(own).for_each(|(told, own)| *told = *own);
    comm.bcast_f64(&mut told, 0)?;
    let is_narrow = run.config.until_percent.is_some_and(|percent| told[0] <= percent / 100.0);
    let mut needs = [0.0; JUDGED - 1];
    needs.copy_from_slice(&told[1..]);
    Ok(Judged { is_narrow, needs })
}

/// Makes way for files of a type that are written anew under the same names in the same space. Those before are removed; where little is
/// written, which would take longer than writing, they are put aside once and shortened by as much. False: it failed, and the run ends.
/// Collective over the partition.
fn make_way(run: &mut Run<'_>, place: Place<'_>) -> Result<bool, MpiError> {
    let own = |f: &&TypeFile| f.ranks == place.part.ranks && f.pattern_type == place.pattern_type;
    let mut error = None;
    for file in run.files.iter().filter(own) {
        let moves = run.backends.iter().position(|b| b.name == file.backend && b.moves_data);
        // Nothing was opened of a backend that does not run, and the null backend has no files.
        let Some(backend) = moves.filter(|_| file.is_private() || place.comm.is_root()) else { continue };
        let path = run.run_dir.file(&file.name(place.comm.rank()));
        let writes_less = place.repeat.is_some_and(|repeat| repeat.share < 1.0 || repeat.of_few_rounds);
        // What is kept for the user are the files that a pass leaves, and nothing beside them.
        let is_aside =
            writes_less && !run.config.keep_files && path.put_aside(needed_bytes(run, place, file, backend)).is_ok();
        if let Err(e) = if is_aside { Ok(()) } else { path.remove() } {
            error.get_or_insert(BackendError::from_io("remove", run.run_dir.path().join(file.name(0)), None, &e));
        }
    }
    for file in run.files.iter_mut().filter(|f| own(&&**f)) {
        file.planned = std::mem::take(&mut file.written);
    }
    let during = format!("removing type {} to write it again", place.pattern_type);
    // Agreeing is a barrier too: nobody opens before all names are gone.
    Ok(!run.failed(place.comm, error.as_ref(), &during)?)
}

/// What the repeat puts into the file, and a call of each pattern more.
fn needed_bytes(run: &Run<'_>, place: Place<'_>, file: &TypeFile, backend: usize) -> u64 {
    let writers = if file.is_private() { 1 } else { file.ranks };
    let share = place.repeat.map_or(1.0, |repeat| repeat.share);
    let of = |written: &Written| {
        let passed = run.passed(backend, file.ranks, place.access, written.spec.number);
        (share_of(passed.map_or(0, |passed| passed.calls), share) + 1) * written.spec.call_bytes * writers
    };
    file.written.iter().filter(|written| !place.leaves_out(run, &written.spec)).map(of).sum()
}
