//! The whole measurement: pilot, announcement, pattern after pattern, within the time.

use beff_ffi::{Comm, MpiError};

use crate::b_eff::config::CommConfig;
use crate::b_eff::plan::effort::{METHODS, REPETITIONS};
use crate::b_eff::plan::sizes::SIZES;
use crate::b_eff::plan::{Buffers, CommPattern, CommPlan, Family};
use crate::b_eff::records::{
    Announcement, CommEnding, CommLine, CommPatternRecord, LoopRecord, MessageMemory, Method, SizeRecord, Visit, Whole,
};
use crate::frame::config::Repeat;
use crate::frame::records::{ErrorRecord, Outcome};
use crate::frame::run::agree::gather;
use crate::frame::run::clock::Instant;
use crate::frame::run::interrupt::Interrupt;
use crate::frame::run::machine_share::{CpuWatch, HostCpus};
use crate::frame::run::{Moved, Observer, Standing};
use crate::frame::system::memory::{high_water_bytes, huge_page_bytes};
use crate::frame::units::format_size;

use super::budget::{Budget, Pace};
use super::layout::Layout;
use super::memory::Memory;
use super::pattern::{Broken, Loop, Pattern};
use super::repeats::{mean_of, Repeats};
use super::{bare, pilot};

/// Messages of this size are damaged with `--inject`.
#[cfg(feature = "test-hooks")]
const DAMAGED_BYTES: u64 = 4096;
/// Loops of one size in a visit at most.
const LOOPS: usize = METHODS;

/// One repetition of one pattern.
#[derive(Clone, Copy, Debug)]
struct Turn {
    /// The pattern, by its index in the plan.
    index: usize,
    /// From 0; those of the definition come first.
    repetition: u64,
    /// Number of the visit in the definition; None: it is repeated with the time that is left.
    visit: Option<usize>,
}

/// A run under way.
pub struct Run<'a> {
    comm: &'a Comm,
    plan: &'a CommPlan,
    #[cfg(feature = "test-hooks")]
    inject: bool,
    bare: bool,
    quick: bool,
    /// For everything; the patterns have less where something comes after them.
    limit_seconds: f64,
    budget: Budget<'a>,
    repeat: Repeat,
    repeats: Repeats,
    /// Time so far, of the slowest rank: equal on all.
    elapsed_seconds: f64,
    interrupt: &'a Interrupt,
    observer: &'a mut dyn Observer<CommLine>,
    layout: Layout,
    memory: Memory,
    cpus: HostCpus,
    begin: Instant,
    verify_seconds: f64,
    /// Slots whose memory was touched by messages.
    touched_slots: u64,
    interrupted: bool,
    /// The definition was measured as a whole.
    is_whole: bool,
    /// The last bandwidth, for whoever waits.
    last: Option<Moved>,
}

impl<'a> Run<'a> {
    /// Maps and lays out the memory of the messages. `comm` carries nothing else while the run lasts.
    ///
    /// # Errors
    /// Memory that cannot be mapped, this rank's.
    pub fn new(
        comm: &'a Comm,
        plan: &'a CommPlan,
        config: &CommConfig,
        cpus: HostCpus,
        interrupt: &'a Interrupt,
        observer: &'a mut dyn Observer<CommLine>,
    ) -> Result<Self, String> {
        let begin = Instant::now();
        let layout = Self::layout(plan, config.buffers);
        let memory = Memory::new(layout, comm.rank())
            .map_err(|e| format!("rank {}: {} bytes for messages: {e}", comm.rank(), 2 * layout.mapped_bytes()))?;
        let limit_seconds = config.time_seconds;
        let of_patterns = (limit_seconds - bare::seconds(config.quick)).max(limit_seconds / 4.0);
        let patterns_seconds = if config.bare { of_patterns } else { limit_seconds };
        Ok(Self {
            comm,
            plan,
            repeat: config.repeat,
            repeats: Repeats::new(config.repeat, config.until_share, patterns_seconds),
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
            interrupted: false,
            is_whole: false,
            last: None,
        })
    }

    /// Sizes of the memory that a plan needs.
    #[must_use]
    pub fn layout(plan: &CommPlan, buffers: Buffers) -> Layout {
        let slots = plan.patterns.iter().map(CommPattern::most_steps).max().unwrap_or(1).max(1);
        Layout { seed: plan.seed, slots, lmax_bytes: plan.lmax_bytes, buffers }
    }

    /// Flies the pilot and says what will be measured and for how long. Collective.
    ///
    /// # Errors
    /// An MPI call that failed.
    pub fn announce(&mut self) -> Result<Announcement, Broken> {
        let flown = self.fly();
        self.remember(flown)
    }

    fn fly(&mut self) -> Result<Announcement, Broken> {
        let pilot::Flown { pilot, records, slots, elapsed_seconds, interrupted } = pilot::fly(
            self.comm,
            self.plan,
            self.layout,
            &mut self.memory,
            &pilot::Limits { begin: self.begin, seconds: self.budget.limit_seconds, interrupt: self.interrupt },
        )?;
        (self.touched_slots, self.interrupted) = (slots, interrupted);
        self.budget.begin(pilot, elapsed_seconds);
        // The first pattern begins here: the pilot is no part of its time.
        self.elapsed_seconds = elapsed_seconds;
        let announcement = Announcement {
            limit_seconds: self.limit_seconds,
            expected_seconds: self.budget.expected_seconds + if self.bare { bare::seconds(self.quick) } else { 0.0 },
            effort: self.budget.effort,
            pilot: records,
            memory: Some(
                self.message_memory().map_err(|error| Broken { place: "memory of the messages".into(), error })?,
            ),
        };
        self.observer.record(CommLine::Announcement(announcement.clone()));
        Ok(announcement)
    }

    /// The memory of the messages as the kernel gave it, over all ranks. Collective.
    fn message_memory(&self) -> Result<MessageMemory, MpiError> {
        let huge = huge_page_bytes(&self.memory.all());
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

    /// An error of rank 0 goes into the journal: what follows it is the end of all ranks.
    fn remember<T>(&mut self, result: Result<T, Broken>) -> Result<T, Broken> {
        if let Err(broken) = &result {
            let next_step = "Look for a rank that ended, or for what the MPI library printed.";
            let message = broken.error.to_string();
            let error = ErrorRecord::of_rank(self.comm.rank(), &broken.place, message, next_step);
            self.observer.record(CommLine::Error(error));
        }
        result
    }

    /// Measures all patterns. Collective.
    ///
    /// # Errors
    /// An MPI call that failed: the other ranks may wait for ever.
    pub fn execute(&mut self) -> Result<CommEnding, Broken> {
        let measured = self.all().and_then(|()| self.again()).and_then(|()| self.compare_bare());
        self.remember(measured)?;
        Ok(self.ending())
    }

    /// The repetition is the outermost loop: the three of one cell lie far apart in time, so that what disturbs the machine
    /// for a while meets one of them.
    fn all(&mut self) -> Result<(), Broken> {
        for visit in 0..self.budget.visits() {
            if !self.budget.wants(visit) || self.interrupted {
                continue;
            }
            let (index, repetition) = self.budget.of_visit(visit);
            self.observer.progress(&Standing {
                what: format!("{} ({} of {REPETITIONS})", self.plan.patterns[index].name, repetition + 1),
                done_seconds: self.begin.elapsed().as_secs_f64(),
                all_seconds: self.all_seconds(),
                stage: format!("repetition {} of {REPETITIONS}", repetition + 1),
                next_seconds: self.budget.expected_seconds / self.budget.visits() as f64,
                ranks: self.comm.size(),
                last: self.last.take().into_iter().collect(),
            });
            self.measure(Turn { index, repetition, visit: Some(visit) })?;
            self.budget.done(visit);
        }
        Ok(())
    }

    /// What the patterns will take, repeats included: these may end earlier.
    fn all_seconds(&self) -> f64 {
        if self.repeat == Repeat::Auto {
            self.budget.limit_seconds.max(self.budget.expected_seconds)
        } else {
            self.budget.expected_seconds
        }
    }

    /// Patterns again, as long as time is left. The value was measured before.
    fn again(&mut self) -> Result<(), Broken> {
        if !self.interrupted {
            let (real_seconds, efforts) = (self.begin.elapsed().as_secs_f64(), self.budget.efforts(false));
            self.observer.record(CommLine::Whole(Whole { real_seconds, efforts }));
            self.is_whole = true;
        }
        let mut repetitions = vec![REPETITIONS; self.plan.patterns.len()];
        while !self.interrupted {
            let Some(index) = self.repeats.next(self.elapsed_seconds) else { break };
            let repetition = repetitions[index];
            self.observer.progress(&Standing {
                what: format!("{} again ({})", self.plan.patterns[index].name, repetition + 1),
                done_seconds: self.begin.elapsed().as_secs_f64(),
                all_seconds: self.all_seconds(),
                stage: "repeats in the time that is left".to_owned(),
                next_seconds: 0.0,
                ranks: self.comm.size(),
                last: self.last.take().into_iter().collect(),
            });
            self.measure(Turn { index, repetition, visit: None })?;
            repetitions[index] += 1;
        }
        let last = self.last.take().into_iter().collect();
        self.observer.measured(!self.interrupted, last);
        Ok(())
    }

    /// Beside bare loops, if asked for.
    fn compare_bare(&mut self) -> Result<(), Broken> {
        if self.bare && !self.interrupted {
            for record in bare::compare(self.comm, self.plan, self.quick, self.layout, &mut self.memory)? {
                self.observer.record(CommLine::Bare(record));
            }
        }
        Ok(())
    }

    fn ending(&self) -> CommEnding {
        CommEnding {
            outcome: if self.interrupted { Outcome::Interrupted } else { Outcome::Complete },
            real_seconds: self.begin.elapsed().as_secs_f64(),
            pilot_seconds: self.budget.pilot_seconds,
            verify_seconds: self.verify_seconds,
            efforts: self.budget.efforts(self.interrupted && !self.is_whole),
            rank_memory_high_water_bytes: high_water_bytes().unwrap_or(0),
            rank_memory_planned_bytes: 2 * self.layout.mapped_bytes(),
        }
    }

    /// One repetition of a pattern.
    fn measure(&mut self, turn: Turn) -> Result<(), Broken> {
        let (begin, begin_seconds) = (Instant::now(), self.elapsed_seconds);
        let index = turn.index;
        let plan = &self.plan.patterns[index];
        let broken = |error| Broken { place: plan.name.clone(), error };
        let mut pattern = Pattern::new(self.comm, self.layout, index as u64, plan).map_err(broken)?;
        let methods: &[Method] = if plan.family == Family::PingPong { &[Method::PingPong] } else { &Method::EXCHANGES };
        self.warm_up(&mut pattern, methods, plan.most_steps())?;
        let mut cpu_watch = CpuWatch::default();
        cpu_watch.resume(&self.cpus);
        let mut pace = self.budget.first_pace(methods.len(), plan.most_steps());
        let mut sizes = Vec::with_capacity(SIZES);
        for size in 0..self.plan.sizes_bytes.len() {
            if self.interrupted || self.is_over(turn, size) {
                break;
            }
            sizes.push(self.size(&mut pattern, methods, turn, size, &mut pace)?);
        }
        cpu_watch.pause(&self.cpus);
        let mut sums = [pattern.bytes_checked, pattern.bytes_wrong, pattern.allocations];
        self.comm.sum_u64(&mut sums).map_err(broken)?;
        self.last = sizes.last().and_then(|size| best(size, plan.messages));
        let mean = mean_of(&sizes, plan.messages, self.plan.sizes_bytes.len());
        self.repeats.take_in(index, plan.family, mean, self.elapsed_seconds - begin_seconds);
        let record = CommPatternRecord {
            pattern: plan.name.clone(),
            family: plan.family,
            shape: plan.shape.clone(),
            messages: plan.messages,
            sizes,
            bytes_checked: sums[0],
            bytes_wrong: sums[1],
            allocations_in_clock: sums[2],
            machine: cpu_watch.end(&self.cpus, self.comm).map_err(broken)?,
            real_seconds: begin.elapsed().as_secs_f64(),
        };
        let record = Visit(Box::new(record));
        self.observer.record(if turn.visit.is_some() { CommLine::Pattern(record) } else { CommLine::Repeat(record) });
        if sums[1] > 0 {
            self.report_corruption(&pattern).map_err(broken)?;
        }
        Ok(())
    }

    /// Whether the turn ends before this size: by the effort, or with a repeat by the time.
    fn is_over(&self, turn: Turn, size: usize) -> bool {
        match turn.visit {
            Some(_) => !self.budget.has(turn.repetition, size),
            None => self.elapsed_seconds >= self.budget.limit_seconds,
        }
    }

    /// Before the clock: the first message to a neighbour connects, the first of a slot maps pages and registers memory.
    fn warm_up(&mut self, pattern: &mut Pattern<'_>, methods: &[Method], steps: u64) -> Result<(), Broken> {
        for (number, method) in methods.iter().enumerate() {
            let (method, number) = (*method, number as u64);
            let l = Loop { method, repetition: 0, number, message_bytes: 1, iterations: 1 };
            pattern.timed(&mut self.memory, &l)?;
            pattern.check(&mut self.memory, &l);
        }
        if steps > self.touched_slots {
            pattern.touch(&mut self.memory)?;
            self.touched_slots = steps;
        }
        pattern.allocations = 0;
        Ok(())
    }

    /// The loops of one size in a visit.
    fn size(
        &mut self,
        pattern: &mut Pattern<'_>,
        methods: &[Method],
        turn: Turn,
        size: usize,
        pace: &mut Pace,
    ) -> Result<SizeRecord, Broken> {
        let Turn { index, repetition, visit } = turn;
        let message_bytes = self.plan.sizes_bytes[size];
        let single = size as u64 >= self.budget.effort.single_from;
        let only = single.then(|| self.budget.single_method(index, size, pace));
        // Times of the loops, elapsed and comparing time, a signal.
        let mut shared = [0.0; LOOPS + 3];
        let mut loops = Vec::with_capacity(LOOPS);
        for (way, method) in methods.iter().copied().enumerate().filter(|(way, _)| only.is_none_or(|o| o == *way)) {
            // Of all loops of this cell.
            let number = repetition * METHODS as u64 + loops.len() as u64;
            let repetition = repetition as u32;
            let l = Loop { method, repetition, number, message_bytes, iterations: pace.iterations[way] };
            shared[loops.len()] = pattern.timed(&mut self.memory, &l)?;
            #[cfg(feature = "test-hooks")]
            self.damage(pattern, index, &l);
            let begin = Instant::now();
            pattern.check(&mut self.memory, &l);
            shared[LOOPS] += begin.elapsed().as_secs_f64();
            loops.push(l);
        }
        shared[LOOPS + 1] = self.begin.elapsed().as_secs_f64();
        shared[LOOPS + 2] = f64::from(u8::from(self.interrupt.raised()));
        let broken = |error| Broken { place: self.plan.patterns[index].name.clone(), error };
        self.comm.max_f64(&mut shared).map_err(broken)?;
        self.verify_seconds += shared[LOOPS];
        self.interrupted |= shared[LOOPS + 2] > 0.0;
        let records = loops.iter().zip(shared).map(|(l, seconds)| LoopRecord {
            method: l.method,
            repetition: l.repetition,
            iterations: l.iterations,
            seconds,
        });
        let record = SizeRecord { message_bytes, loops: records.collect() };
        self.elapsed_seconds = shared[LOOPS + 1];
        if let Some(visit) = visit {
            self.budget.keep_time(visit, size, shared[LOOPS + 1]);
        }
        self.budget.set_pace(pace, methods, &record, size);
        Ok(record)
    }

    /// With `--inject`: one loop of the first pattern, on the last rank that receives anything.
    #[cfg(feature = "test-hooks")]
    fn damage(&mut self, pattern: &Pattern<'_>, index: usize, l: &Loop) {
        let plan = &self.plan.patterns[index];
        let receives = |rank: &u64| plan.steps(*rank).iter().any(|s| s.receive_from.is_some());
        if self.inject && index == 0 && l.message_bytes == DAMAGED_BYTES && l.number == 0 {
            let last = (0..self.comm.size()).rev().find(receives);
            if last == Some(self.comm.rank()) {
                pattern.damage(&mut self.memory, l);
            }
        }
    }

    /// Every rank's corruptions to rank 0.
    fn report_corruption(&mut self, pattern: &Pattern<'_>) -> Result<(), MpiError> {
        for corruption in gather(self.comm, &pattern.corruptions)?.into_iter().flatten() {
            self.observer.record(CommLine::Corruption(corruption));
        }
        Ok(())
    }
}

/// Best bandwidth of a size in 1e6 bytes/s.
fn best(size: &SizeRecord, messages: u64) -> Option<Moved> {
    let moved = |l: &LoopRecord| Moved {
        who: format_size(size.message_bytes),
        bytes: size.message_bytes * messages * l.iterations,
        seconds: l.seconds,
    };
    let rate = |moved: &Moved| moved.bytes as f64 / moved.seconds;
    size.loops.iter().map(moved).max_by(|a, b| rate(a).total_cmp(&rate(b)))
}
