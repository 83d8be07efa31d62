//! Execution of a pattern by one backend, round by round: everything around the clock.

use std::ops::Range;

use beff_backends::{AccessPattern, Direction, TransferBuffer};
use beff_ffi::MpiError;
use hdrhistogram::Histogram;

use crate::b_eff_io::config::Verify;
use crate::b_eff_io::plan::memory;
use crate::b_eff_io::plan::patterns::PatternSpec;
use crate::b_eff_io::records::{JournalLine, StopReason, Verification};
use crate::b_eff_io::run::context::{OpenTypeFile, TypeContext};
#[cfg(feature = "test-hooks")]
use crate::b_eff_io::run::fault_injection;
use crate::b_eff_io::run::file_verification;
use crate::b_eff_io::run::measurement::{LoopMeasurement, OwnTransfer};
use crate::b_eff_io::run::pattern_plan::{loop_limits, plan_pattern, PatternPlan};
use crate::b_eff_io::run::state::RunState;
use crate::b_eff_io::run::timed_loop;
use crate::b_eff_io::run::timed_loop::{Inspector, LoopTask};
use crate::b_eff_io::run::verify::{Findings, StampedData};
use crate::frame::config::CachePolicy;
use crate::frame::records::{AccessMethod, ErrorRecord, RoundRecord, RunOutcome};
use crate::frame::run::agree::{broadcast, first_message};
use crate::frame::run::evidence::{drop_pages, ObservedFile, StorageObservation};
use crate::frame::run::interference::CpuObservation;
use crate::frame::system::memory::ProcessIo;

/// Execution of a pattern by one backend.
pub(super) struct PatternExecution {
    pub(super) plan: PatternPlan,
    /// This rank's share; None if there is nothing to run.
    pattern: Option<AccessPattern>,
    pub(super) index: usize,
    pub(super) outcome: PatternOutcome,
    pub(super) rounds: Vec<RoundRecord>,
    pub(super) verification: Verification,
    pub(super) latency: Option<Histogram<u64>>,
    pub(super) watch: Option<StorageObservation>,
    pub(super) cpu_watch: CpuObservation,
    /// Start, relative to that of the run.
    pub(super) at_seconds: f64,
}

impl PatternExecution {
    pub(super) fn new(
        run: &mut RunState<'_>,
        place: TypeContext<'_>,
        open: &OpenTypeFile,
        index: usize,
        spec: &PatternSpec,
    ) -> Result<Self, MpiError> {
        let prelude = plan_pattern(run, place, open, index, spec);
        let (pattern, ran) = match runnable_pattern(run, place, open, &prelude)? {
            Ok(pattern) => (Some(pattern), PatternOutcome::Empty),
            Err(ran) => (None, ran),
        };
        let verification = Verification::default();
        let cpu_watch = CpuObservation::default();
        let (rounds, latency, watch) = (Vec::new(), None, None);
        let at_seconds = run.elapsed_seconds();
        Ok(Self {
            plan: prelude,
            pattern,
            index,
            outcome: ran,
            rounds,
            verification,
            latency,
            watch,
            cpu_watch,
            at_seconds,
        })
    }

    /// True if no further round follows: nothing to run, all calls completed, or an early end.
    pub(super) fn is_finished(&self) -> bool {
        match (&self.pattern, &self.outcome) {
            (None, _) => true,
            (Some(_), PatternOutcome::Measured(m)) => m.progress.calls >= self.plan.max_calls || m.ended.is_cut(),
            (Some(_), _) => false,
        }
    }

    pub(super) fn run_round(
        &mut self,
        run: &mut RunState<'_>,
        place: TypeContext<'_>,
        open: &mut OpenTypeFile,
        round: u32,
        rounds: u32,
    ) -> Result<(), MpiError> {
        let Some(pattern) = self.pattern else { return Ok(()) };
        let resume = match &self.outcome {
            PatternOutcome::Measured(m) => Some(m.progress),
            _ => None,
        };
        let first_call = resume.map_or(0, |progress| progress.calls);
        let mut limits = loop_limits(run, place, open, &self.plan).until_round(round, rounds);
        if let Some(type_repetition) = place.repetition {
            // Other backends have had turns since the pattern began.
            let left =
                broadcast(place.comm, type_repetition.budget_seconds - type_repetition.begin.elapsed().as_secs_f64())?;
            if left <= 0.0 {
                return Ok(());
            }
            let end_seconds = resume.map_or(0.0, |progress| progress.elapsed_seconds) + left;
            limits.time_seconds = limits.time_seconds.map(|seconds| seconds.min(end_seconds));
        }
        if first_call >= limits.max_calls {
            return Ok(());
        }
        if resume.is_none() {
            let before = file_verification::verify_before_rewrite(run, place, open, self.index)?;
            self.verification.add(before);
            if run.stop.is_some() {
                return Ok(());
            }
        }
        let direction = prepare_buffer(run, place, open, (&pattern, self.index), first_call..limits.max_calls);
        if resume.is_none() {
            let path = run.run_dir.file(&run.files[open.file].name(place.part_rank(run)));
            let target = ObservedFile { path: &path, pattern: &pattern, calls: self.plan.max_calls };
            self.watch = watch(run, place, open, &target)?;
        }
        let task = LoopTask { pattern: &pattern, direction, limits: &limits, hints: &self.plan.hints, resume };
        if let Some(watch) = &mut self.watch {
            watch.resume(place.site);
        }
        self.cpu_watch.resume(place.cpus);
        let (m, inspected) = run_timed_loop(run, place, open, self.index, task)?;
        self.cpu_watch.pause(place.cpus);
        if let Some(watch) = &mut self.watch {
            watch.pause(place.site);
        }
        // The bytes of a mixed pattern are not all written.
        let is_write = direction == Direction::Write && !place.is_mixed();
        if is_write && m.ended != StopReason::Error && m.calls > 0 {
            run.backends[open.backend].sync.learn(m.moved_bytes, m.intervals.sync_seconds);
        }
        let during = describe(run, place, open, &self.plan);
        run.agree_on_error(place.comm, m.error.as_ref(), &during)?;
        let calls = first_call..m.progress.calls;
        self.add_round(run, m, round + 1);
        if !is_write && !calls.is_empty() {
            self.verify(run, place, open, &pattern, calls, inspected)?;
        }
        Ok(())
    }

    fn add_round(&mut self, run: &RunState<'_>, m: LoopMeasurement, number: u32) {
        if m.calls > 0 {
            let seconds = m.intervals.total_seconds();
            self.rounds.push(RoundRecord { number, calls: m.calls, moved_bytes: m.moved_bytes, seconds });
        }
        if let Some(histogram) = run.recorder.latency.histogram() {
            match &mut self.latency {
                // All histograms have the same bounds: adding cannot fail.
                Some(sum) => sum.add(histogram).unwrap_or_default(),
                None => self.latency = Some(histogram.clone()),
            }
        }
        match &mut self.outcome {
            PatternOutcome::Measured(sum) => sum.add(m),
            ran => *ran = PatternOutcome::Measured(Box::new(m)),
        }
    }

    fn verify(
        &mut self,
        run: &mut RunState<'_>,
        place: TypeContext<'_>,
        open: &OpenTypeFile,
        pattern: &AccessPattern,
        calls: Range<u64>,
        inspected: Option<Findings>,
    ) -> Result<(), MpiError> {
        // After an error or a signal the ranks may have read less than their number of calls implies.
        if !run.backends[open.backend].moves_data || run.stop == Some(RunOutcome::Failed) {
            return Ok(());
        }
        let (file, rank) = (&run.files[open.file], place.part_rank(run));
        let written = &file.written[self.index];
        let findings =
            inspected.unwrap_or_else(|| run.data.check_buffer(&run.buffer, file, written, pattern, rank, calls));
        self.verification
            .add(run.report_findings(place.comm, open.backend, place.call_order(), &findings)?.verification);
        Ok(())
    }
}

/// Runs the loop. With full verification, data in memory is inspected before later reads overwrite it.
fn run_timed_loop(
    run: &mut RunState<'_>,
    place: TypeContext<'_>,
    open: &mut OpenTypeFile,
    index: usize,
    task: LoopTask<'_>,
) -> Result<(LoopMeasurement, Option<Findings>), MpiError> {
    let reads = task.direction == Direction::Read || place.is_mixed();
    let inspects = reads && run.config.verify == Verify::Full && run.backends[open.backend].moves_data;
    let (data, file, rank, pattern) = (run.data, &run.files[open.file], place.part_rank(run), task.pattern);
    let mut findings = Findings::default();
    #[cfg(feature = "test-hooks")]
    let injury = fault_injection::read_fault(run, place, open, index);
    let most_calls = StampedData::retained_calls(&run.buffer, pattern);
    let mut look = |transfer_buffer: &mut TransferBuffer, calls: Range<u64>| {
        let next = calls.end..calls.end.saturating_add(most_calls);
        #[cfg(feature = "test-hooks")]
        if let Some(injury) = &injury {
            injury.apply(transfer_buffer, pattern, rank, &calls, &data);
        }
        findings.add(data.check_buffer(transfer_buffer, file, &file.written[index], pattern, rank, calls));
        data.poison(transfer_buffer, pattern, next);
    };
    let inspector = inspects.then_some(Inspector { max_calls: most_calls, inspect: &mut look });
    #[cfg(feature = "test-hooks")]
    let first_call = task.resume.map_or(0, |progress| progress.calls);
    let watches = (run.interrupt, inspector);
    let m = timed_loop::run(open.handle.as_mut(), place.comm, &mut run.buffer, task, &mut run.recorder, watches)?;
    #[cfg(feature = "test-hooks")]
    if let Some(injury) = injury.filter(|_| task.direction == Direction::Read) {
        let calls = first_call..m.progress.calls;
        if injury.is_in(&calls) {
            if !inspects {
                injury.apply(&mut run.buffer, pattern, rank, &calls, &data);
            }
            run.observer.record(JournalLine::InjectedFault(injury.record));
        }
    }
    Ok((m, inspects.then_some(findings)))
}

/// Fills the buffer for writes, or poisons it for reads. It remains unchanged for backends that do not access it: with more ranks than
/// cores filling it took longer than the patterns.
fn prepare_buffer(
    run: &mut RunState<'_>,
    place: TypeContext<'_>,
    open: &OpenTypeFile,
    (pattern, index): (&AccessPattern, usize),
    calls: Range<u64>,
) -> Direction {
    // Data does not depend on the order in which it is accessed.
    let file = &run.files[open.file];
    let data_call_bytes =
        if pattern.order.is_some() { file.written[index].spec.call_bytes } else { pattern.call_bytes() };
    let period_bytes = run.data.for_calls(data_call_bytes).period_bytes;
    let moves_data = run.backends[open.backend].moves_data;
    match place.access {
        AccessMethod::Write | AccessMethod::Rewrite => {
            if moves_data {
                run.fill_buffer(place.write_generation(), period_bytes);
            } else {
                run.buffer.set_period_bytes(period_bytes);
            }
            if place.is_mixed() {
                let landing_bytes = landing_bytes(run, open, pattern, period_bytes);
                let begin = memory::landing_begin_bytes(run.plan.period_bytes, run.plan.max_call_bytes);
                run.buffer.set_landing(begin as usize, landing_bytes, pattern.call_bytes());
                if moves_data {
                    run.data.poison(&mut run.buffer, pattern, calls);
                }
            }
        }
        AccessMethod::Read => {
            let landing_bytes = landing_bytes(run, open, pattern, period_bytes);
            run.buffer.set_period_bytes(landing_bytes);
            if moves_data {
                run.data.poison(&mut run.buffer, pattern, calls);
                run.invalidate_buffer();
            }
            return Direction::Read;
        }
    }
    Direction::Write
}

/// Period of the memory where reads leave their data.
fn landing_bytes(run: &RunState<'_>, open: &OpenTypeFile, pattern: &AccessPattern, period_bytes: u64) -> u64 {
    if !run.data.reused {
        return period_bytes;
    }
    let under_way = memory::reads_in_flight(run.config, &run.backends[open.backend].name);
    memory::read_windows_bytes(pattern.call_bytes(), under_way)
}

/// Outcome of a pattern.
pub(super) enum PatternOutcome {
    Measured(Box<LoopMeasurement>),
    NotRun(String),
    /// Nothing to do (a fill-up of zero bytes), or no round yet.
    Empty,
}

impl PatternOutcome {
    pub(super) fn calls(&self) -> u64 {
        match self {
            Self::Measured(m) => m.calls,
            _ => 0,
        }
    }

    /// Time of the slowest rank.
    pub(super) fn seconds(&self) -> f64 {
        match self {
            Self::Measured(m) => m.intervals.total_seconds(),
            _ => 0.0,
        }
    }

    /// Bytes of all ranks, and the kernel's counters for them.
    pub(super) fn moved(&self) -> (u64, Option<ProcessIo>) {
        match self {
            Self::Measured(m) => (m.moved_bytes, m.io),
            _ => (0, None),
        }
    }

    /// What this rank moved, and its time without the agreements.
    pub(super) fn own(&self) -> OwnTransfer {
        match self {
            Self::Measured(m) => m.own,
            _ => OwnTransfer::default(),
        }
    }

    /// Operation that the backend times with `--latency`.
    pub(super) fn timed(&self) -> &'static str {
        match self {
            Self::Measured(m) => m.in_force.as_ref().map_or("call", |in_force| in_force.latency_unit.name()),
            _ => "call",
        }
    }
}

/// This rank's share of the pattern, or the reason why it is not run. Collective.
fn runnable_pattern(
    run: &mut RunState<'_>,
    place: TypeContext<'_>,
    open: &OpenTypeFile,
    p: &PatternPlan,
) -> Result<Result<AccessPattern, PatternOutcome>, MpiError> {
    if p.max_calls == 0 {
        let fill_up = p.written.spec.call_bytes == 0;
        return Ok(Err(if fill_up {
            PatternOutcome::Empty
        } else {
            PatternOutcome::NotRun("its first write was not run".into())
        }));
    }
    let rank = place.part_rank(run);
    let file = &run.files[open.file];
    let pattern = match p.orders {
        None => file.pattern(&p.written, rank, p.max_calls),
        Some(orders) => file.ordered_pattern(&p.written, rank, orders),
    };
    let pattern = match pattern {
        Ok(pattern) => pattern,
        Err(e) => return Ok(Err(overflow(run, place, open, p, &e.to_string()))),
    };
    Ok(match first_message(place.comm, open.handle.support(&pattern).reason())? {
        Some((_, reason)) => Err(PatternOutcome::NotRun(reason)),
        None => Ok(pattern),
    })
}

/// Drops cached pages if that is the policy, and starts observing; None for a backend that moves no data.
fn watch(
    run: &mut RunState<'_>,
    place: TypeContext<'_>,
    open: &OpenTypeFile,
    target: &ObservedFile<'_>,
) -> Result<Option<StorageObservation>, MpiError> {
    let backend = &run.backends[open.backend];
    if !backend.moves_data {
        return Ok(None);
    }
    if place.access != AccessMethod::Write && run.config.cache == CachePolicy::Drop {
        if let Some(warning) = drop_pages(place.site, place.comm, target, &backend.name)? {
            run.observer.record(JournalLine::Warning(warning));
        }
    }
    Ok(Some(StorageObservation::begin(place.site, place.comm, target)))
}

fn overflow(
    run: &mut RunState<'_>,
    place: TypeContext<'_>,
    open: &OpenTypeFile,
    p: &PatternPlan,
    message: &str,
) -> PatternOutcome {
    let during = describe(run, place, open, p);
    let next_step = "use fewer ranks or a smaller --space; `beff-raw plan` shows the largest offset";
    let error = ErrorRecord::of_rank(0, &during, message.to_owned(), next_step);
    run.fail(ErrorRecord { ranks_affected: place.partition.ranks, ..error });
    PatternOutcome::NotRun(message.to_owned())
}

pub(super) fn describe(run: &RunState<'_>, place: TypeContext<'_>, open: &OpenTypeFile, p: &PatternPlan) -> String {
    let (spec, access) = (&p.written.spec, place.access_name());
    format!(
        "{}, {access}, {} ranks, type {}, pattern {} (chunk {} bytes)",
        run.backends[open.backend].name, place.partition.ranks, spec.pattern_type, spec.number, spec.chunk_bytes
    )
}
