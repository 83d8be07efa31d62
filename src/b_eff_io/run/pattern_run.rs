//! One pattern through all backends, which take turns, and the records of it.

use beff_ffi::MpiError;

use crate::b_eff_io::config::RepeatPolicy;
use crate::b_eff_io::plan::patterns::PatternSpec;
use crate::b_eff_io::records::{Ended, JournalLine, PatternRecord, RepeatRecord, Verification};
use crate::b_eff_io::run::files::Written;
#[cfg(feature = "test-hooks")]
use crate::b_eff_io::run::inject;
use crate::b_eff_io::run::measured::Measured;
use crate::b_eff_io::run::passed::Passed;
use crate::b_eff_io::run::place::{Open, Place, Repeat};
use crate::b_eff_io::run::prelude::Prelude;
use crate::b_eff_io::run::recheck;
use crate::b_eff_io::run::state::Run;
use crate::b_eff_io::run::turn::{describe, Ran, Turn};
use crate::frame::records::{Access, Evidence, Outcome};
use crate::frame::run::latency;
use crate::frame::run::{Moved, Standing};
use crate::frame::units::count;

/// A round shorter than this would measure barriers and syncs.
const SHORTEST_ROUND_SECONDS: f64 = 0.02;

/// Runs pattern number `index` of the type through all open files, round by round in turn. Collective over the partition.
///
/// # Errors
/// MPI between the ranks.
pub fn run_pattern(
    run: &mut Run<'_>,
    place: Place<'_>,
    open_files: &mut [Open],
    index: usize,
    spec: &PatternSpec,
) -> Result<(), MpiError> {
    let mut turns = Vec::with_capacity(open_files.len());
    for open in open_files.iter() {
        if run.stop.is_none() {
            turns.push(Turn::new(run, place, open, index, spec)?);
        }
    }
    let rounds = rounds(run, &turns);
    let pass = place.repeat.map_or(0, |repeat| repeat.number);
    for round in 0..rounds {
        // There and back, so that what drifts with time hits all alike; a long call has one round in each pass.
        let forth = 0..turns.len();
        let order: Vec<usize> = if (round + pass).is_multiple_of(2) { forth.collect() } else { forth.rev().collect() };
        for i in order {
            if run.stop.is_none() && !turns[i].is_over() {
                let seconds = turns[i].prelude.scheduled_seconds / f64::from(rounds);
                tell_progress(run, place, &open_files[i], spec, seconds);
                turns[i].round(run, place, &mut open_files[i], round, rounds)?;
            }
        }
    }
    for (open, turn) in open_files.iter_mut().zip(turns) {
        conclude(run, place, open, turn)?;
    }
    Ok(())
}

/// Rounds of this pattern: as many as asked for, as long as each is long enough to be a measurement.
fn rounds(run: &Run<'_>, turns: &[Turn]) -> u32 {
    let Some(turn) = turns.iter().find(|turn| !turn.is_over()) else { return 1 };
    if turn.prelude.written.spec.time_units == 0 {
        return 1;
    }
    // A repeat has those of the first pass: each has a sync of its own.
    let by_time = (turn.prelude.scheduled_seconds / SHORTEST_ROUND_SECONDS) as u32;
    run.config.rounds.min(by_time).max(1)
}

/// The record of a pattern that is over, and what follows from it.
fn conclude(run: &mut Run<'_>, place: Place<'_>, open: &mut Open, turn: Turn) -> Result<(), MpiError> {
    let Turn { prelude, index, ran, rounds, mut verification, latency, watch, cpu_watch, at_seconds, .. } = turn;
    let evidence = match watch {
        Some(watch) => watch.end(place.site, place.comm, ran.calls())?,
        None => Evidence::default(),
    };
    let machine = cpu_watch.end(place.cpus, place.comm)?;
    note_written(run, place, open, &prelude, ran.calls());
    let during = describe(run, place, open, &prelude);
    #[cfg(feature = "test-hooks")]
    inject::behind(run, place, open, index)?;
    verification.add(recheck::unmade_calls(run, place, open, index, ran.moved(), &during)?);
    let sample = recheck::sample(run, place, open, index, (ran.seconds(), verification.words_wrong > 0))?;
    let hints_granted = if prelude.hints.is_empty() { Vec::new() } else { run.granted(open.handle.as_ref(), &during) };
    let of = ran.timed();
    let latency = latency.map_or(Ok(None), |histogram| latency::merge(place.comm, &histogram, of))?;
    let record = PatternRecord {
        hints_granted,
        rounds,
        sample,
        latency,
        evidence,
        machine,
        at_seconds: Some(at_seconds),
        ..record(run, place, open, prelude, ran, verification)
    };
    if let Some(repeat) = place.repeat {
        repeated(run, repeat, record);
        return Ok(());
    }
    run.passed.push(Passed {
        backend: open.backend,
        ranks: record.ranks,
        access: record.access,
        pattern_type: record.pattern_type,
        pattern: record.pattern,
        time_units: record.time_units,
        calls: record.calls,
        rounds: record.rounds.len() as u32,
        seconds: record.seconds(),
        calls_seconds: record.intervals.room_seconds + record.intervals.transfer_seconds,
    });
    let backend = &mut run.backends[open.backend];
    backend.debt_seconds = (backend.debt_seconds + record.seconds() - record.scheduled_seconds).max(0.0);
    run.done_seconds += record.scheduled_seconds;
    run.last.push(Moved { who: record.backend.clone(), bytes: record.moved_bytes, seconds: record.seconds() });
    let ended = record.ended.clone();
    run.observer.record(JournalLine::Pattern(Box::new(record)));
    if ended == Ended::Interrupted {
        run.stop = Some(Outcome::Interrupted);
    }
    Ok(())
}

/// The record of a repeat. Batches would only make the journal long; one that did not run leaves no record.
fn repeated(run: &mut Run<'_>, repeat: Repeat, mut record: PatternRecord) {
    run.last.push(Moved { who: record.backend.clone(), bytes: record.moved_bytes, seconds: record.seconds() });
    let ended = record.ended.clone();
    record.batches.clear();
    record.rounds.clear();
    if record.calls > 0 {
        run.observer.record(JournalLine::Repeat(Box::new(RepeatRecord {
            repeat: repeat.number,
            share: repeat.share,
            measured: record,
        })));
    }
    if ended == Ended::Interrupted {
        run.stop = Some(Outcome::Interrupted);
    }
}

/// Keeps what is in the file now.
fn note_written(run: &mut Run<'_>, place: Place<'_>, open: &mut Open, p: &Prelude, calls: u64) {
    let file = &mut run.files[open.file];
    let spec = p.written.spec;
    match place.access {
        Access::Write => {
            // A segment keeps its reserved place, also where a pattern was cut.
            let placed = if open.segment.is_some() { p.max_calls } else { calls };
            open.next_stream_bytes += placed * spec.call_bytes;
            file.written.push(Written { calls, ..p.written.clone() });
        }
        Access::Rewrite => {
            if let Some(w) = file.written.iter_mut().find(|w| w.spec.number == spec.number) {
                w.rewrite(calls, place.writes());
            }
        }
        Access::Read => {}
    }
}

fn record(
    run: &Run<'_>,
    place: Place<'_>,
    open: &Open,
    p: Prelude,
    ran: Ran,
    verification: Verification,
) -> PatternRecord {
    let spec = p.written.spec;
    let m = match ran {
        Ran::Measured(m) => *m,
        Ran::NotRun(reason) => Measured::nothing(Ended::NotRun(reason)),
        Ran::Empty => Measured::nothing(Ended::Count),
    };
    let mut in_force = m.in_force.unwrap_or_default();
    if let Some(reason) = m.without_room {
        in_force.strategy += &format!("; {reason}");
    }
    PatternRecord {
        backend: run.backends[open.backend].name.clone(),
        ranks: place.part.ranks,
        access: place.access,
        pattern_type: spec.pattern_type,
        pattern: spec.number,
        chunk_bytes: spec.chunk_bytes,
        call_bytes: spec.call_bytes,
        time_units: spec.time_units,
        calls: m.calls,
        moved_bytes: m.moved_bytes,
        scheduled_seconds: p.scheduled_seconds,
        budget_seconds: p.budget_seconds,
        intervals: m.intervals,
        decisions: m.decisions,
        decision_cost_seconds: m.decision_cost_seconds,
        held_up_seconds: Some(m.held_up_seconds),
        batches: m.batches,
        rounds: Vec::new(),
        ended: m.ended,
        verification,
        sample: None,
        strategy: in_force.strategy,
        submissions: m.submissions,
        direct: in_force.direct,
        hints_granted: Vec::new(),
        hints_requested: p.hints,
        storage_read_bytes: m.io.map(|io| io.read_bytes),
        storage_written_bytes: m.io.map(|io| io.written_bytes),
        call_read_bytes: m.io.map(|io| io.call_read_bytes),
        call_written_bytes: m.io.map(|io| io.call_written_bytes),
        evidence: Evidence::default(),
        machine: None,
        latency: None,
        at_seconds: None,
        allocations_in_clock: m.allocations_in_clock,
    }
}

fn tell_progress(run: &mut Run<'_>, place: Place<'_>, open: &Open, spec: &PatternSpec, next_seconds: f64) {
    let (backend, kind) = (&run.backends[open.backend].name, spec.pattern_type.name());
    let (ranks, access) = (place.part.ranks, place.access.name());
    let again = place.repeat.map_or_else(String::new, |repeat| format!("repeat {} of ", repeat.number));
    let standing = Standing {
        what: format!("{backend}, {}, {again}{access}: pattern {} ({kind})", count(ranks, "rank"), spec.number),
        stage: match place.repeat {
            None => format!("{access}, type {} ({kind}), {}", spec.pattern_type, count(ranks, "rank")),
            Some(_) => format!("repeats for the intervals, {}", count(ranks, "rank")),
        },
        done_seconds: done_seconds(run, place),
        all_seconds: run.all_seconds,
        next_seconds,
        ranks,
        last: std::mem::take(&mut run.last),
    };
    run.observer.progress(&standing);
}

/// Time of what is done. With repeats the run lasts as long as was asked for, unless the first pass is slower than that.
fn done_seconds(run: &Run<'_>, place: Place<'_>) -> f64 {
    let elapsed = run.begin.elapsed().as_secs_f64();
    match place.repeat {
        Some(_) if run.config.repeat == RepeatPolicy::Auto => elapsed.min(run.all_seconds),
        None if run.config.repeat == RepeatPolicy::Auto => run.done_seconds.min(elapsed),
        _ => run.done_seconds,
    }
}
