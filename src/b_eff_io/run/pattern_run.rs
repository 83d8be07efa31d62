//! One pattern through all backends in turn, and its records.

use beff_ffi::MpiError;

use crate::b_eff_io::config::RepeatPolicy;
use crate::b_eff_io::plan::orders::OrderUnit;
use crate::b_eff_io::plan::patterns::PatternSpec;
use crate::b_eff_io::records::{
    JournalLine, MixRecord, OrderedRecord, PatternRecord, ReadExpectation, RepetitionRecord, StopReason, Verification,
};
use crate::b_eff_io::run::context::{OpenTypeFile, TypeContext, TypeRepetition};
#[cfg(feature = "test-hooks")]
use crate::b_eff_io::run::fault_injection;
use crate::b_eff_io::run::file_verification;
use crate::b_eff_io::run::files::WrittenPattern;
use crate::b_eff_io::run::first_measurement::FirstMeasurement;
use crate::b_eff_io::run::limit_check::omits;
use crate::b_eff_io::run::measurement::LoopMeasurement;
use crate::b_eff_io::run::pattern_execution::{describe, PatternExecution, PatternOutcome};
use crate::b_eff_io::run::pattern_plan::PatternPlan;
use crate::b_eff_io::run::state::RunState;
use crate::frame::records::{AccessMethod, Evidence, OmittedPart, RunOutcome};
use crate::frame::run::latency;
use crate::frame::run::{ProgressReport, TransferVolume};
use crate::frame::system::memory::ProcessIo;
use crate::frame::units::count;

/// Rounds of a measurement in another order, from which its confidence interval derives.
const ORDERED_ROUNDS: u32 = 8;
/// A shorter round would measure barriers and syncs.
const MIN_ROUND_SECONDS: f64 = 0.02;

/// Runs pattern number `index` of the type on all open files; the backends take turns in rounds. Collective over the partition.
///
/// # Errors
/// MPI between the ranks.
pub fn run_pattern(
    run: &mut RunState<'_>,
    place: TypeContext<'_>,
    open_files: &mut [OpenTypeFile],
    index: usize,
    spec: &PatternSpec,
) -> Result<(), MpiError> {
    let mut turns = Vec::with_capacity(open_files.len());
    for open in open_files.iter() {
        if run.stop.is_none() {
            turns.push(PatternExecution::new(run, place, open, index, spec)?);
        }
    }
    let rounds = rounds(run, &turns);
    let repetition_number = place.repetition.map_or(0, |type_repetition| type_repetition.number);
    for round in 0..rounds {
        // A long call has one round in each measurement. Which turn begins alternates from pattern to pattern: of single rounds the first
        // is some 10 % slower.
        for i in turn_order(turns.len(), round + repetition_number + index as u32) {
            if run.stop.is_none() && !turns[i].is_finished() {
                let seconds = turns[i].plan.scheduled_seconds / f64::from(rounds);
                report_progress(run, place, &open_files[i], spec, seconds);
                turns[i].run_round(run, place, &mut open_files[i], round, rounds)?;
            }
        }
    }
    for (open, turn) in open_files.iter_mut().zip(turns) {
        conclude(run, place, open, turn)?;
    }
    Ok(())
}

/// Order of the turns in a round: it rotates, so that each of `turns` has each place, and alternates, so that none always follows the same
/// other. Drift and what a turn leaves behind affect all alike.
fn turn_order(turns: usize, round: u32) -> Vec<usize> {
    let first = (round / 2) as usize;
    let forth = (0..turns).map(|place| (first + place) % turns);
    if round.is_multiple_of(2) {
        forth.collect()
    } else {
        forth.rev().collect()
    }
}

/// Number of rounds: as many as requested, as long as each is long enough to be a measurement.
fn rounds(run: &RunState<'_>, turns: &[PatternExecution]) -> u32 {
    let Some(turn) = turns.iter().find(|turn| !turn.is_finished()) else { return 1 };
    if turn.plan.written.spec.time_units == 0 {
        return 1;
    }
    let wanted = if turn.plan.orders.is_some() { run.config.rounds.max(ORDERED_ROUNDS) } else { run.config.rounds };
    // A repetition has those of the first measurement; each round has a sync.
    let by_time = (turn.plan.scheduled_seconds / MIN_ROUND_SECONDS) as u32;
    let rounds = if omits(run, OmittedPart::Rounds) { 1 } else { wanted };
    rounds.min(by_time).max(1)
}

/// Completes a pattern: its record, and the state of the run that depends on it.
fn conclude(
    run: &mut RunState<'_>,
    place: TypeContext<'_>,
    open: &mut OpenTypeFile,
    turn: PatternExecution,
) -> Result<(), MpiError> {
    let PatternExecution {
        plan: prelude,
        index,
        outcome: ran,
        rounds,
        mut verification,
        latency,
        watch,
        cpu_watch,
        at_seconds,
        ..
    } = turn;
    let evidence = match watch {
        // An order may access any of the chunks.
        Some(watch) if prelude.orders.is_some() => watch.end(place.site, place.comm, prelude.max_calls)?,
        Some(watch) => watch.end(place.site, place.comm, ran.calls())?,
        None => Evidence::default(),
    };
    let machine = cpu_watch.end(place.cpus, place.comm)?;
    open.own.add(ran.own());
    update_written(run, place, open, &prelude, ran.calls());
    let during = describe(run, place, open, &prelude);
    let counted = counted_bytes(place, &prelude, &ran);
    #[cfg(feature = "test-hooks")]
    fault_injection::inject_after(run, place, open, index)?;
    verification.add(file_verification::check_kernel_counts(run, place, open, index, counted, &during)?);
    let sample =
        file_verification::verify_sample(run, place, open, index, (ran.seconds(), verification.words_wrong > 0))?;
    let hints_granted =
        if prelude.hints.is_empty() { Vec::new() } else { run.granted_hints(open.handle.as_ref(), &during) };
    let of = ran.timed();
    let latency = latency.map_or(Ok(None), |histogram| latency::merge_histograms(place.comm, &histogram, of))?;
    let record = PatternRecord {
        hints_granted,
        rounds,
        sample,
        latency,
        evidence,
        interference: machine,
        at_seconds: Some(at_seconds),
        ..record(run, place, open, prelude, ran, verification)
    };
    if let Some(type_repetition) = place.repetition {
        record_repetition(run, type_repetition, record);
        return Ok(());
    }
    if let Some(unit) = place.order {
        record_ordered(run, unit, record);
        return Ok(());
    }
    record_first_measurement(run, open.backend, record);
    Ok(())
}

/// Bytes in the direction of the access method, for a comparison with the kernel's counters: of a mixed pattern those written.
fn counted_bytes(place: TypeContext<'_>, p: &PatternPlan, ran: &PatternOutcome) -> (u64, Option<ProcessIo>) {
    let (moved_bytes, io) = ran.moved();
    let reads = p.orders.and_then(|orders| orders.mix).map_or(0, |mix| mix.reads_before(ran.calls()));
    (moved_bytes.saturating_sub(reads * p.call_bytes() * place.partition.ranks), io)
}

/// Records the first measurement of a pattern, and what later patterns derive from it.
fn record_first_measurement(run: &mut RunState<'_>, backend: usize, record: PatternRecord) {
    run.first_measurements.push(FirstMeasurement::new(backend, &record));
    let state = &mut run.backends[backend];
    state.debt_seconds = (state.debt_seconds + record.seconds() - record.scheduled_seconds).max(0.0);
    add_progress(run, &record);
    let ended = record.ended.clone();
    run.observer.record(JournalLine::Pattern(Box::new(record)));
    stop_after(run, &ended);
}

/// Records a measurement in another order, which nothing derives from.
fn record_ordered(run: &mut RunState<'_>, unit: OrderUnit, record: PatternRecord) {
    add_progress(run, &record);
    let ended = record.ended.clone();
    let mix = unit.order.mix.map(|share| MixRecord {
        read_percent: share.read_percent,
        read_calls: share.mix().reads_before(record.calls),
        reads_expect: ReadExpectation::GenerationBefore,
        written_generation: unit.generation,
    });
    run.observer.record(JournalLine::Ordered(Box::new(OrderedRecord {
        order: unit.order.order,
        mix,
        measurement: record,
    })));
    stop_after(run, &ended);
}

/// Adds a measurement to what progress and metrics report.
fn add_progress(run: &mut RunState<'_>, record: &PatternRecord) {
    run.done_seconds += record.scheduled_seconds;
    run.unreported.push(TransferVolume {
        who: record.backend.clone(),
        bytes: record.moved_bytes,
        seconds: record.seconds(),
    });
}

/// The run ends with a pattern that a signal or the time limit has cut.
fn stop_after(run: &mut RunState<'_>, ended: &StopReason) {
    match ended {
        StopReason::Interrupted => run.stop = Some(RunOutcome::Interrupted),
        StopReason::Limit => run.stop = Some(RunOutcome::Limit),
        _ => {}
    }
}

/// Records a repetition, without batches and rounds to keep the journal short. A repetition without calls is not recorded;
/// why a pattern could not be run is kept.
fn record_repetition(run: &mut RunState<'_>, type_repetition: TypeRepetition, mut record: PatternRecord) {
    run.unreported.push(TransferVolume {
        who: record.backend.clone(),
        bytes: record.moved_bytes,
        seconds: record.seconds(),
    });
    let (pattern, ended) = (record.pattern, record.ended.clone());
    record.batches.clear();
    record.rounds.clear();
    if record.calls > 0 && !type_repetition.is_rebuild() {
        run.observer.record(JournalLine::Repetition(Box::new(RepetitionRecord {
            repetition: type_repetition.number,
            share: type_repetition.share,
            measurement: record,
        })));
    }
    if let StopReason::NotRun(reason) = &ended {
        run.refusals.push((pattern, reason.clone()));
    }
    stop_after(run, &ended);
}

/// Updates the description of the file's contents.
fn update_written(
    run: &mut RunState<'_>,
    place: TypeContext<'_>,
    open: &mut OpenTypeFile,
    p: &PatternPlan,
    calls: u64,
) {
    let file = &mut run.files[open.file];
    let spec = p.written.spec;
    match place.access {
        AccessMethod::Write => {
            // A segment keeps the range reserved for a pattern that was cut.
            let placed = if open.segment.is_some() { p.max_calls } else { calls };
            open.next_stream_bytes += placed * spec.call_bytes;
            file.written.push(WrittenPattern { calls, ..p.written.clone() });
        }
        AccessMethod::Rewrite => {
            if let Some(w) = file.written.iter_mut().find(|w| w.spec.number == spec.number) {
                match p.orders {
                    None => w.rewrite(calls, place.write_generation()),
                    Some(orders) => w.rewrite_in_order(orders, calls, place.write_generation()),
                }
            }
        }
        AccessMethod::Read => {}
    }
}

fn record(
    run: &RunState<'_>,
    place: TypeContext<'_>,
    open: &OpenTypeFile,
    p: PatternPlan,
    ran: PatternOutcome,
    verification: Verification,
) -> PatternRecord {
    let spec = p.written.spec;
    let m = match ran {
        PatternOutcome::Measured(m) => *m,
        PatternOutcome::NotRun(reason) => LoopMeasurement::empty(StopReason::NotRun(reason)),
        PatternOutcome::Empty => LoopMeasurement::empty(StopReason::Count),
    };
    let mut in_force = m.in_force.unwrap_or_default();
    if let Some(reason) = m.preallocation_error {
        in_force.strategy += &format!("; {reason}");
    }
    PatternRecord {
        backend: run.backends[open.backend].name.clone(),
        ranks: place.partition.ranks,
        access: place.access,
        pattern_type: spec.pattern_type,
        pattern: spec.number,
        chunk_bytes: spec.chunk_bytes,
        call_bytes: p.call_bytes(),
        time_units: spec.time_units,
        calls: m.calls,
        moved_bytes: m.moved_bytes,
        scheduled_seconds: p.scheduled_seconds,
        budget_seconds: p.budget_seconds,
        intervals: m.intervals,
        decisions: m.decisions,
        decision_cost_seconds: m.decision_cost_seconds,
        imbalance_seconds: Some(m.imbalance_seconds),
        slowest_ranks: m.slowest_ranks,
        batches: m.batches,
        rounds: Vec::new(),
        ended: m.ended,
        verification,
        sample: None,
        strategy: in_force.strategy,
        submissions: m.submissions,
        direct: run.backends[open.backend].options.proven_direct(in_force.direct),
        hints_granted: Vec::new(),
        hints_requested: p.hints,
        storage_read_bytes: m.io.map(|io| io.read_bytes),
        storage_written_bytes: m.io.map(|io| io.written_bytes),
        call_read_bytes: m.io.map(|io| io.call_read_bytes),
        call_written_bytes: m.io.map(|io| io.call_written_bytes),
        evidence: Evidence::default(),
        interference: None,
        latency: None,
        at_seconds: None,
        allocations_in_clock: m.allocations_in_clock,
    }
}

fn report_progress(
    run: &mut RunState<'_>,
    place: TypeContext<'_>,
    open: &OpenTypeFile,
    spec: &PatternSpec,
    next_seconds: f64,
) {
    let (backend, kind) = (&run.backends[open.backend].name, spec.pattern_type.name());
    let (ranks, access) = (place.partition.ranks, place.access_name());
    let again = match place.repetition {
        None => String::new(),
        Some(again) if again.is_rebuild() => "files of the cut run, ".to_owned(),
        Some(again) => format!("repetition {} of ", again.number),
    };
    let standing = ProgressReport {
        what: format!("{backend}, {}, {again}{access}: pattern {} ({kind})", count(ranks, "rank"), spec.number),
        stage: match place.repetition {
            None if place.order.is_some() => format!("other orders, {}", count(ranks, "rank")),
            None => format!("{access}, type {} ({kind}), {}", spec.pattern_type, count(ranks, "rank")),
            Some(_) => format!("repetitions, {}", count(ranks, "rank")),
        },
        done_seconds: done_seconds(run, place),
        all_seconds: run.all_seconds,
        next_seconds,
        ranks,
        transferred: std::mem::take(&mut run.unreported),
    };
    run.observer.progress(&standing);
}

/// Scheduled time of completed patterns. With repetitions the run lasts as long as requested, unless the first measurements take longer.
fn done_seconds(run: &RunState<'_>, place: TypeContext<'_>) -> f64 {
    let elapsed = run.elapsed_seconds();
    match place.repetition {
        Some(_) if run.config.repeat == RepeatPolicy::Auto => elapsed.min(run.all_seconds),
        None if run.config.repeat == RepeatPolicy::Auto => run.done_seconds.min(elapsed),
        _ => run.done_seconds,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_rotate_and_alternate() {
        let orders: Vec<Vec<usize>> = (0..6).map(|round| turn_order(3, round)).collect();
        assert_eq!(orders, [[0, 1, 2], [2, 1, 0], [1, 2, 0], [0, 2, 1], [2, 0, 1], [1, 0, 2]]);
        assert_eq!((0..4).map(|round| turn_order(2, round)[0]).collect::<Vec<_>>(), [0, 1, 1, 0]);
        assert_eq!((turn_order(1, 7), turn_order(0, 0)), (vec![0], vec![]));
    }
}
