//! A run of b_eff: pilot, announcement, patterns and repetitions within the time limit.

use beff_ffi::{Comm, MpiError};

use crate::b_eff::config::CommConfig;
use crate::b_eff::plan::effort::{METHOD_COUNT, REPETITIONS};
use crate::b_eff::plan::sizes::SIZE_COUNT;
use crate::b_eff::plan::{BufferMode, CommPattern, CommPlan, PatternFamily};
use crate::b_eff::records::{
    Announcement, CommEnding, CommLine, CommPatternRecord, DefinitionRecord, LoopRecord, MessageMemory, MessageMethod,
    PatternRepetition, SizeRecord,
};
use crate::frame::config::RepetitionPolicy;
use crate::frame::records::{ErrorRecord, RunOutcome};
use crate::frame::run::agree::collect;
use crate::frame::run::clock::Instant;
use crate::frame::run::interference::{CpuObservation, HostCpus};
use crate::frame::run::interrupt::{stop_outcome, Interrupt};
use crate::frame::run::{ProgressReport, RunObserver, TransferVolume};
use crate::frame::system::memory::{high_water_bytes, huge_page_bytes};
use crate::frame::units::format_size;

use super::budget::{Budget, IterationPlan};
use super::layout::BufferLayout;
use super::message_buffers::MessageBuffers;
use super::pattern::{MessageLoop, PatternError, PreparedPattern};
use super::repetitions::{repetition_mean, RepetitionScheduler};
use super::{bare, pilot};

#[cfg(feature = "test-hooks")]
const INJECTED_MESSAGE_BYTES: u64 = 4096;
/// Maximum number of loops of one size in a visit.
const MAX_LOOPS: usize = METHOD_COUNT;

/// One repetition of one pattern.
#[derive(Clone, Copy, Debug)]
struct ScheduledRepetition {
    index: usize,
    /// Repetition, from 0; those of the definition come first.
    repetition: u64,
    /// Number of the visit in the definition; None for a further repetition.
    visit: Option<usize>,
}

/// A run of b_eff.
pub struct CommRun<'a> {
    comm: &'a Comm,
    plan: &'a CommPlan,
    #[cfg(feature = "test-hooks")]
    inject: bool,
    bare: bool,
    quick: bool,
    /// Time limit of the whole run; that of the patterns is lower if bare loops follow.
    limit_seconds: f64,
    budget: Budget<'a>,
    repeat: RepetitionPolicy,
    scheduler: RepetitionScheduler,
    /// Elapsed time of the slowest rank, equal on all ranks.
    elapsed_seconds: f64,
    interrupt: &'a Interrupt,
    observer: &'a mut dyn RunObserver<CommLine>,
    layout: BufferLayout,
    memory: MessageBuffers,
    cpus: HostCpus,
    begin: Instant,
    verify_seconds: f64,
    touched_slots: u64,
    /// Why the run stops; None while it continues.
    stop: Option<RunOutcome>,
    is_definition_complete: bool,
    /// Last bandwidth, for the progress output.
    last_rate: Option<TransferVolume>,
}

impl<'a> CommRun<'a> {
    /// Maps and fills the message memory. The run takes at most `limit_seconds`, equal on all ranks. `comm` must not be used otherwise during the run.
    ///
    /// # Errors
    /// Memory of this rank that cannot be mapped.
    pub fn new(
        comm: &'a Comm,
        plan: &'a CommPlan,
        (config, limit_seconds): (&CommConfig, f64),
        cpus: HostCpus,
        interrupt: &'a Interrupt,
        observer: &'a mut dyn RunObserver<CommLine>,
    ) -> Result<Self, String> {
        let begin = Instant::now();
        let layout = Self::layout(plan, config.buffers);
        let memory = MessageBuffers::new(layout, comm.rank())
            .map_err(|e| format!("rank {}: {} bytes for messages: {e}", comm.rank(), 2 * layout.mapped_bytes()))?;
        let of_patterns = (limit_seconds - bare::estimated_seconds(config.quick)).max(limit_seconds / 4.0);
        let patterns_seconds = if config.bare { of_patterns } else { limit_seconds };
        Ok(Self {
            comm,
            plan,
            repeat: config.repeat,
            scheduler: RepetitionScheduler::new(config.repeat, config.until_share, patterns_seconds),
            elapsed_seconds: 0.0,
            #[cfg(feature = "test-hooks")]
            inject: config.inject,
            bare: config.bare,
            quick: config.quick,
            limit_seconds,
            budget: Budget::new(plan, config.quick, patterns_seconds),
            interrupt,
            observer,
            layout,
            memory,
            cpus,
            begin,
            verify_seconds: 0.0,
            touched_slots: 0,
            stop: None,
            is_definition_complete: false,
            last_rate: None,
        })
    }

    /// Layout of the message memory of a plan.
    #[must_use]
    pub fn layout(plan: &CommPlan, buffers: BufferMode) -> BufferLayout {
        let slots = plan.patterns.iter().map(CommPattern::max_steps).max().unwrap_or(1).max(1);
        BufferLayout { seed: plan.seed, slots, lmax_bytes: plan.lmax_bytes, buffers }
    }

    /// Runs the pilot and returns the announcement. Collective.
    ///
    /// # Errors
    /// A failed MPI call.
    pub fn announce(&mut self) -> Result<Announcement, PatternError> {
        let flown = self.run_pilot();
        self.record_error(flown)
    }

    fn run_pilot(&mut self) -> Result<Announcement, PatternError> {
        let pilot::PilotOutcome { times: pilot, records, slots, elapsed_seconds, stop } = pilot::run_pilot(
            self.comm,
            self.plan,
            self.layout,
            &mut self.memory,
            &pilot::PilotLimits { begin: self.begin, seconds: self.budget.limit_seconds, interrupt: self.interrupt },
        )?;
        (self.touched_slots, self.stop) = (slots, stop);
        self.budget.choose_effort(pilot, elapsed_seconds);
        self.elapsed_seconds = elapsed_seconds;
        let announcement = Announcement {
            limit_seconds: self.limit_seconds,
            expected_seconds: self.budget.expected_seconds
                + if self.bare { bare::estimated_seconds(self.quick) } else { 0.0 },
            effort: self.budget.effort,
            pilot: records,
            memory: Some(
                self.message_memory()
                    .map_err(|error| PatternError { context: "memory of the messages".into(), error })?,
            ),
        };
        self.observer.record(CommLine::Announcement(announcement.clone()));
        Ok(announcement)
    }

    /// Message memory with its huge pages, over all ranks. Collective.
    fn message_memory(&self) -> Result<MessageMemory, MpiError> {
        let huge = huge_page_bytes(&self.memory.both());
        let mut sums = [huge.unwrap_or(0), u64::from(huge.is_none())];
        self.comm.sum_u64(&mut sums)?;
        let mut least = [huge.unwrap_or(0)];
        self.comm.min_u64(&mut least)?;
        let [total, unknown] = sums;
        Ok(MessageMemory {
            half_bytes: self.layout.memory_bytes(),
            huge_page_total_bytes: (unknown == 0).then_some(total),
            huge_page_smallest_bytes: (unknown == 0).then_some(least[0]),
        })
    }

    /// Records an error in the journal of rank 0, before all ranks end.
    fn record_error<T>(&mut self, result: Result<T, PatternError>) -> Result<T, PatternError> {
        if let Err(broken) = &result {
            let next_step = "Check for a rank that ended, and for messages of the MPI library.";
            let message = broken.error.to_string();
            let error = ErrorRecord::of_rank(self.comm.rank(), &broken.context, message, next_step);
            self.observer.record(CommLine::Error(error));
        }
        result
    }

    /// Measures all patterns. Collective.
    ///
    /// # Errors
    /// A failed MPI call: the other ranks may wait forever.
    pub fn execute(&mut self) -> Result<CommEnding, PatternError> {
        let measured =
            self.measure_definition().and_then(|()| self.measure_repetitions()).and_then(|()| self.compare_bare());
        self.record_error(measured)?;
        Ok(self.ending())
    }

    /// The repetition is the outermost loop: the repetitions of one cell are far apart in time, so that a temporary disturbance
    /// affects only one of them.
    fn measure_definition(&mut self) -> Result<(), PatternError> {
        for visit in 0..self.budget.visit_count() {
            if !self.budget.includes(visit) || self.stop.is_some() {
                continue;
            }
            let (index, repetition) = self.budget.pattern_and_repetition(visit);
            self.observer.progress(&ProgressReport {
                what: format!("{} ({} of {REPETITIONS})", self.plan.patterns[index].name, repetition + 1),
                done_seconds: self.begin.elapsed().as_secs_f64(),
                all_seconds: self.total_seconds(),
                stage: format!("repetition {} of {REPETITIONS}", repetition + 1),
                next_seconds: self.budget.expected_seconds / self.budget.visit_count() as f64,
                ranks: self.comm.size(),
                transferred: self.last_rate.take().into_iter().collect(),
            });
            self.measure_pattern(ScheduledRepetition { index, repetition, visit: Some(visit) })?;
            self.budget.finish_visit(visit);
        }
        Ok(())
    }

    /// Expected time of the patterns, further repetitions included; these may end earlier.
    fn total_seconds(&self) -> f64 {
        if self.repeat == RepetitionPolicy::Auto {
            self.budget.limit_seconds.max(self.budget.expected_seconds)
        } else {
            self.budget.expected_seconds
        }
    }

    /// Further repetitions in the remaining time. They do not change the value.
    fn measure_repetitions(&mut self) -> Result<(), PatternError> {
        if self.stop.is_none() {
            let (real_seconds, efforts) = (self.begin.elapsed().as_secs_f64(), self.budget.effort_changes(false));
            self.observer.record(CommLine::Definition(DefinitionRecord { real_seconds, efforts }));
            self.is_definition_complete = true;
        }
        let mut repetitions = vec![REPETITIONS; self.plan.patterns.len()];
        while self.stop.is_none() {
            let Some(index) = self.scheduler.next_pattern(self.elapsed_seconds) else { break };
            let repetition = repetitions[index];
            self.observer.progress(&ProgressReport {
                what: format!("{} repeated ({})", self.plan.patterns[index].name, repetition + 1),
                done_seconds: self.begin.elapsed().as_secs_f64(),
                all_seconds: self.total_seconds(),
                stage: "repetitions in the remaining time".to_owned(),
                next_seconds: 0.0,
                ranks: self.comm.size(),
                transferred: self.last_rate.take().into_iter().collect(),
            });
            self.measure_pattern(ScheduledRepetition { index, repetition, visit: None })?;
            repetitions[index] += 1;
        }
        let last = self.last_rate.take().into_iter().collect();
        self.observer.measurement_ended(self.stop.is_none(), last);
        Ok(())
    }

    fn compare_bare(&mut self) -> Result<(), PatternError> {
        if self.bare && self.stop.is_none() {
            for record in
                bare::compare_with_bare_loops(self.comm, self.plan, self.quick, self.layout, &mut self.memory)?
            {
                self.observer.record(CommLine::Bare(record));
            }
        }
        Ok(())
    }

    fn ending(&self) -> CommEnding {
        CommEnding {
            outcome: self.stop.unwrap_or(RunOutcome::Complete),
            real_seconds: self.begin.elapsed().as_secs_f64(),
            pilot_seconds: self.budget.pilot_seconds,
            verify_seconds: self.verify_seconds,
            efforts: self.budget.effort_changes(self.stop.is_some() && !self.is_definition_complete),
            rank_memory_high_water_bytes: high_water_bytes().unwrap_or(0),
            rank_memory_planned_bytes: 2 * self.layout.mapped_bytes(),
        }
    }

    fn measure_pattern(&mut self, turn: ScheduledRepetition) -> Result<(), PatternError> {
        let (begin, begin_seconds) = (Instant::now(), self.elapsed_seconds);
        let index = turn.index;
        let plan = &self.plan.patterns[index];
        let broken = |error| PatternError { context: plan.name.clone(), error };
        let mut pattern = PreparedPattern::new(self.comm, self.layout, index as u64, plan).map_err(broken)?;
        let methods: &[MessageMethod] =
            if plan.family == PatternFamily::PingPong { &[MessageMethod::PingPong] } else { &MessageMethod::EXCHANGES };
        self.warm_up(&mut pattern, methods, plan.max_steps())?;
        let mut cpu_watch = CpuObservation::default();
        cpu_watch.resume(&self.cpus);
        let mut pace = self.budget.first_iteration_plan(methods.len(), plan.max_steps());
        let mut sizes = Vec::with_capacity(SIZE_COUNT);
        for size in 0..self.plan.sizes_bytes.len() {
            if self.stop.is_some() || self.is_finished(turn, size) {
                break;
            }
            sizes.push(self.measure_size(&mut pattern, methods, turn, size, &mut pace)?);
        }
        cpu_watch.pause(&self.cpus);
        let mut sums = [pattern.bytes_checked, pattern.bytes_wrong, pattern.allocations];
        self.comm.sum_u64(&mut sums).map_err(broken)?;
        self.last_rate = sizes.last().and_then(|size| best_rate(size, plan.messages));
        let mean = repetition_mean(&sizes, plan.messages, self.plan.sizes_bytes.len());
        self.scheduler.add_measurement(index, plan.family, mean, self.elapsed_seconds - begin_seconds);
        let record = CommPatternRecord {
            pattern: plan.name.clone(),
            family: plan.family,
            shape: plan.shape.clone(),
            messages: plan.messages,
            sizes,
            bytes_checked: sums[0],
            bytes_wrong: sums[1],
            allocations_in_clock: sums[2],
            interference: cpu_watch.end(&self.cpus, self.comm).map_err(broken)?,
            real_seconds: begin.elapsed().as_secs_f64(),
        };
        let record = PatternRepetition(Box::new(record));
        self.observer.record(if turn.visit.is_some() {
            CommLine::Pattern(record)
        } else {
            CommLine::Repetition(record)
        });
        if sums[1] > 0 {
            self.report_corruption(&pattern).map_err(broken)?;
        }
        Ok(())
    }

    /// True if the repetition ends before this size: by the effort or, beyond the definition, by the time limit.
    fn is_finished(&self, turn: ScheduledRepetition, size: usize) -> bool {
        match turn.visit {
            Some(_) => !self.budget.includes_size(turn.repetition, size),
            None => self.elapsed_seconds >= self.budget.limit_seconds,
        }
    }

    /// Untimed messages: the first to a neighbour connects, the first of a slot maps pages and registers memory.
    fn warm_up(
        &mut self,
        pattern: &mut PreparedPattern<'_>,
        methods: &[MessageMethod],
        steps: u64,
    ) -> Result<(), PatternError> {
        for (number, method) in methods.iter().enumerate() {
            let (method, number) = (*method, number as u64);
            let l = MessageLoop { method, repetition: 0, number, message_bytes: 1, iterations: 1 };
            pattern.run_timed(&mut self.memory, &l)?;
            pattern.check(&mut self.memory, &l);
        }
        if steps > self.touched_slots {
            pattern.first_touch(&mut self.memory)?;
            self.touched_slots = steps;
        }
        pattern.allocations = 0;
        Ok(())
    }

    fn measure_size(
        &mut self,
        pattern: &mut PreparedPattern<'_>,
        methods: &[MessageMethod],
        turn: ScheduledRepetition,
        size: usize,
        pace: &mut IterationPlan,
    ) -> Result<SizeRecord, PatternError> {
        let ScheduledRepetition { index, repetition, visit } = turn;
        let message_bytes = self.plan.sizes_bytes[size];
        let single = size as u64 >= self.budget.effort.best_method_from;
        let only = single.then(|| self.budget.single_method(index, size, pace));
        // Times of the loops, time of the comparison, elapsed time, signal.
        let mut shared = [0.0; MAX_LOOPS + 3];
        let mut loops = Vec::with_capacity(MAX_LOOPS);
        for (way, method) in methods.iter().copied().enumerate().filter(|(way, _)| only.is_none_or(|o| o == *way)) {
            // Number among all loops of this pattern and size.
            let number = repetition * METHOD_COUNT as u64 + loops.len() as u64;
            let repetition = repetition as u32;
            let l = MessageLoop { method, repetition, number, message_bytes, iterations: pace.iterations[way] };
            shared[loops.len()] = pattern.run_timed(&mut self.memory, &l)?;
            #[cfg(feature = "test-hooks")]
            self.inject_fault(pattern, index, &l);
            let begin = Instant::now();
            pattern.check(&mut self.memory, &l);
            shared[MAX_LOOPS] += begin.elapsed().as_secs_f64();
            loops.push(l);
        }
        shared[MAX_LOOPS + 1] = self.begin.elapsed().as_secs_f64();
        shared[MAX_LOOPS + 2] = self.interrupt.request(0.0) as f64;
        let broken = |error| PatternError { context: self.plan.patterns[index].name.clone(), error };
        self.comm.max_f64(&mut shared).map_err(broken)?;
        self.verify_seconds += shared[MAX_LOOPS];
        self.stop = stop_outcome(shared[MAX_LOOPS + 2] as u64);
        let records = loops.iter().zip(shared).map(|(l, seconds)| LoopRecord {
            method: l.method,
            repetition: l.repetition,
            iterations: l.iterations,
            seconds,
        });
        let record = SizeRecord { message_bytes, loops: records.collect() };
        self.elapsed_seconds = shared[MAX_LOOPS + 1];
        if let Some(visit) = visit {
            self.budget.adjust_effort(visit, size, shared[MAX_LOOPS + 1]);
        }
        self.budget.plan_next_size(pace, methods, &record, size);
        Ok(record)
    }

    /// With `--inject`: one loop of the first pattern, on the last receiving rank.
    #[cfg(feature = "test-hooks")]
    fn inject_fault(&mut self, pattern: &PreparedPattern<'_>, index: usize, l: &MessageLoop) {
        let plan = &self.plan.patterns[index];
        let receives = |rank: &u64| plan.steps(*rank).iter().any(|s| s.receive_from.is_some());
        if self.inject && index == 0 && l.message_bytes == INJECTED_MESSAGE_BYTES && l.number == 0 {
            let last = (0..self.comm.size()).rev().find(receives);
            if last == Some(self.comm.rank()) {
                pattern.inject_fault(&mut self.memory, l);
            }
        }
    }

    /// Gathers the corruptions of all ranks on rank 0.
    fn report_corruption(&mut self, pattern: &PreparedPattern<'_>) -> Result<(), MpiError> {
        for corruption in collect(self.comm, pattern.corruptions.clone())? {
            self.observer.record(CommLine::Corruption(corruption));
        }
        Ok(())
    }
}

/// Loop with the best bandwidth of a size.
fn best_rate(size: &SizeRecord, messages: u64) -> Option<TransferVolume> {
    let moved = |l: &LoopRecord| TransferVolume {
        who: format_size(size.message_bytes),
        bytes: size.message_bytes * messages * l.iterations,
        seconds: l.seconds,
    };
    let rate = |moved: &TransferVolume| moved.bytes as f64 / moved.seconds;
    size.loops.iter().map(moved).max_by(|a, b| rate(a).total_cmp(&rate(b)))
}
