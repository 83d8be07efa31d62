//! The whole measurement: pilot, announcement, pattern after pattern, within the time.

use std::time::Instant;

use beff_ffi::Comm;

use crate::b_eff::config::CommConfig;
use crate::b_eff::plan::effort::{
    choose, first_iterations, iterations, repetitions, Bound, Pilot, Remaining, METHODS, REPETITIONS, SIZES,
};
use crate::b_eff::plan::{CommPattern, CommPlan, Family};
use crate::b_eff::records::{
    Announcement, CommEnding, CommLine, CommPatternRecord, Effort, LoopRecord, Method, SizeRecord,
};
use crate::frame::records::{ErrorRecord, Outcome};
use crate::frame::run::interrupt::Interrupt;
use crate::frame::run::Observer;
use crate::frame::system::memory::high_water_bytes;

use super::memory::{Layout, Memory};
use super::pattern::{Broken, Loop, Pattern};
use super::{bare, pilot};
use crate::frame::run::Standing;

/// Share of the time that is planned with; the rest is for what the pilot did not foresee.
const PLANNED_SHARE: f64 = 0.92;
/// Patterns that were faster than foreseen are believed to this share: the pilot may have been disturbed.
const FASTEST: f64 = 0.25;
/// Size whose message is damaged with `--inject`, by index: 4096 bytes.
const DAMAGED_SIZE: usize = 12;
/// Loops of one size at most.
const LOOPS: usize = METHODS * REPETITIONS as usize;

/// A run under way.
pub struct Run<'a> {
    comm: &'a Comm,
    plan: &'a CommPlan,
    inject: bool,
    bare: bool,
    quick: bool,
    /// For the patterns.
    limit_seconds: f64,
    /// For everything.
    announced_limit_seconds: f64,
    interrupt: &'a Interrupt,
    observer: &'a mut dyn Observer<CommLine>,
    layout: Layout,
    memory: Memory,
    begin: Instant,
    pilot: Option<Pilot>,
    effort: Effort,
    efforts: Vec<(u64, Effort)>,
    expected_seconds: f64,
    /// What the pilot foresaw for what was measured.
    foreseen_seconds: f64,
    pilot_seconds: f64,
    verify_seconds: f64,
    /// Slots whose memory was touched by messages.
    touched_slots: u64,
    random_measured: u64,
    interrupted: bool,
}

/// How the loops of a pattern go on from size to size.
struct Pace {
    iterations: [u64; METHODS],
    best: usize,
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
        interrupt: &'a Interrupt,
        observer: &'a mut dyn Observer<CommLine>,
    ) -> Result<Self, String> {
        let begin = Instant::now();
        let layout = Self::layout(plan);
        let memory = Memory::new(layout, comm.rank())
            .map_err(|e| format!("rank {}: {} bytes for messages: {e}", comm.rank(), layout.rank_bytes()))?;
        let effort = Effort { loop_seconds: 0.0, single_from: 0, once_from: 0, random_rings: 0, extras: true };
        Ok(Self {
            comm,
            plan,
            inject: config.inject,
            bare: config.bare,
            quick: config.quick,
            limit_seconds: if config.bare {
                (config.time_seconds - bare::SECONDS).max(config.time_seconds / 4.0)
            } else {
                config.time_seconds
            },
            announced_limit_seconds: config.time_seconds,
            interrupt,
            observer,
            layout,
            memory,
            begin,
            pilot: None,
            effort,
            efforts: Vec::new(),
            expected_seconds: 0.0,
            foreseen_seconds: 0.0,
            pilot_seconds: 0.0,
            verify_seconds: 0.0,
            touched_slots: 0,
            random_measured: 0,
            interrupted: false,
        })
    }

    /// Sizes of the memory that a plan needs.
    #[must_use]
    pub fn layout(plan: &CommPlan) -> Layout {
        let slots = plan.patterns.iter().map(CommPattern::most_steps).max().unwrap_or(1).max(1);
        Layout { seed: plan.seed, slots, lmax_bytes: plan.lmax_bytes }
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
            &pilot::Limits { begin: self.begin, seconds: self.limit_seconds, interrupt: self.interrupt },
        )?;
        (self.pilot_seconds, self.touched_slots, self.interrupted) = (elapsed_seconds, slots, interrupted);
        let left = self.limit_seconds * PLANNED_SHARE - elapsed_seconds;
        let (effort, seconds) = choose(&pilot, &self.remaining(0, 0), left, 1.0, (Bound::None, self.quick));
        (self.effort, self.pilot) = (effort, Some(pilot));
        self.expected_seconds = elapsed_seconds + seconds;
        let announcement = Announcement {
            limit_seconds: self.announced_limit_seconds,
            expected_seconds: self.expected_seconds + if self.bare { bare::SECONDS } else { 0.0 },
            effort,
            pilot: records,
        };
        self.observer.record(CommLine::Announcement(announcement.clone()));
        Ok(announcement)
    }

    /// An error of rank 0 goes into the journal: what follows it is the end of all ranks.
    fn remember<T>(&mut self, result: Result<T, Broken>) -> Result<T, Broken> {
        if let Err(broken) = &result {
            self.observer.record(CommLine::Error(ErrorRecord {
                during: broken.place.clone(),
                rank: self.comm.rank(),
                ranks_affected: 1,
                message: broken.error.to_string(),
                next_step: "Look for a rank that ended, or for what the MPI library printed.".into(),
                no_space: false,
            }));
        }
        result
    }

    /// Measures all patterns. Collective.
    ///
    /// # Errors
    /// An MPI call that failed: the other ranks may wait for ever.
    pub fn execute(&mut self) -> Result<CommEnding, Broken> {
        let measured = self.all().and_then(|()| self.compare_bare());
        self.remember(measured)?;
        Ok(self.ending())
    }

    fn all(&mut self) -> Result<(), Broken> {
        let mut last = None;
        for index in 0..self.plan.patterns.len() {
            let wanted = self.remaining(index, 0).first().is_some_and(|r| r.wanted(&self.effort));
            if !wanted || self.interrupted {
                continue;
            }
            self.observer.progress(&Standing {
                what: self.plan.patterns[index].name.clone(),
                done_seconds: self.begin.elapsed().as_secs_f64(),
                all_seconds: self.expected_seconds,
                last_mb_per_second: last,
            });
            last = self.measure(index)?;
            self.random_measured += u64::from(self.plan.patterns[index].family == Family::Random);
        }
        Ok(())
    }

    /// Beside bare loops, if asked for.
    fn compare_bare(&mut self) -> Result<(), Broken> {
        if self.bare && !self.interrupted {
            for record in bare::compare(self.comm, self.plan, self.layout, &mut self.memory)? {
                self.observer.record(CommLine::Bare(record));
            }
        }
        Ok(())
    }

    fn ending(&self) -> CommEnding {
        let mut efforts = self.efforts.clone();
        // What was skipped by an effort that grew again later stays skipped.
        let random = self.plan.patterns.iter().filter(|p| p.family == Family::Random).count() as u64;
        if !self.interrupted && self.random_measured < self.effort.random_rings.min(random) {
            efforts
                .push((self.plan.patterns.len() as u64, Effort { random_rings: self.random_measured, ..self.effort }));
        }
        CommEnding {
            outcome: if self.interrupted { Outcome::Interrupted } else { Outcome::Complete },
            real_seconds: self.begin.elapsed().as_secs_f64(),
            pilot_seconds: self.pilot_seconds,
            verify_seconds: self.verify_seconds,
            efforts,
            rank_memory_high_water_bytes: high_water_bytes().unwrap_or(0),
            rank_memory_planned_bytes: self.layout.rank_bytes(),
        }
    }

    /// What is left from size `size` of pattern `index` on.
    fn remaining(&self, index: usize, size: usize) -> Vec<Remaining> {
        let mut random = 0;
        let all = self.plan.patterns.iter().enumerate().map(|(n, p)| {
            let this = Remaining {
                family: p.family,
                random,
                steps: p.most_steps(),
                from_size: if n == index { size } else { 0 },
            };
            random += u64::from(p.family == Family::Random);
            this
        });
        all.collect::<Vec<_>>().split_off(index)
    }

    /// One pattern; its last bandwidth.
    fn measure(&mut self, index: usize) -> Result<Option<f64>, Broken> {
        let begin = Instant::now();
        let plan = &self.plan.patterns[index];
        let broken = |error| Broken { place: plan.name.clone(), error };
        let mut pattern = Pattern::new(self.comm, self.layout, index as u64, plan).map_err(broken)?;
        let methods: &[Method] = if plan.family == Family::PingPong { &[Method::PingPong] } else { &Method::EXCHANGES };
        self.warm_up(&mut pattern, methods, plan.most_steps())?;
        let mut pace = self.first_pace(methods.len(), plan.most_steps());
        let mut sizes = Vec::with_capacity(SIZES);
        for size in 0..self.plan.sizes_bytes.len() {
            sizes.push(self.size(&mut pattern, methods, index, size, &mut pace)?);
            if self.interrupted {
                break;
            }
        }
        let mut sums = [pattern.bytes_checked, pattern.bytes_wrong, pattern.allocations];
        self.comm.sum_u64(&mut sums).map_err(broken)?;
        let last = sizes.last().and_then(|size| best_mb_per_second(size, plan.messages));
        let record = CommPatternRecord {
            pattern: plan.name.clone(),
            family: plan.family,
            shape: plan.shape.clone(),
            messages: plan.messages,
            sizes,
            bytes_checked: sums[0],
            bytes_wrong: sums[1],
            allocations_in_clock: sums[2],
            real_seconds: begin.elapsed().as_secs_f64(),
        };
        self.observer.record(CommLine::Pattern(Box::new(record)));
        if sums[1] > 0 {
            self.report_corruption(&pattern).map_err(broken)?;
        }
        Ok(last)
    }

    /// How a pattern begins: as the pilot found its own ring.
    fn first_pace(&self, methods: usize, steps: u64) -> Pace {
        let Some(pilot) = &self.pilot else { return Pace { iterations: [1; METHODS], best: 0 } };
        let seconds = pilot.iteration_seconds[0].map(|s| s * steps as f64 / pilot.steps.max(1) as f64);
        let best = (0..methods).min_by(|a, b| seconds[*a].total_cmp(&seconds[*b])).unwrap_or(0);
        Pace { iterations: seconds.map(|one| first_iterations(self.effort.loop_seconds, one)), best }
    }

    /// Before the clock: the first message to a neighbour connects, the first of a slot maps pages and registers memory.
    fn warm_up(&mut self, pattern: &mut Pattern<'_>, methods: &[Method], steps: u64) -> Result<(), Broken> {
        for (number, method) in methods.iter().enumerate() {
            let (method, size, number) = (*method, 0, number as u64);
            let l = Loop { method, repetition: 0, number, size, message_bytes: 1, iterations: 1 };
            pattern.timed(&mut self.memory, &l)?;
        }
        if steps > self.touched_slots {
            pattern.touch(&mut self.memory)?;
            self.touched_slots = steps;
        }
        pattern.allocations = 0;
        Ok(())
    }

    /// All loops of one size.
    fn size(
        &mut self,
        pattern: &mut Pattern<'_>,
        methods: &[Method],
        index: usize,
        size: usize,
        pace: &mut Pace,
    ) -> Result<SizeRecord, Broken> {
        let message_bytes = self.plan.sizes_bytes[size];
        let single = size as u64 >= self.effort.single_from;
        // Times of the loops, elapsed and comparing time, a signal.
        let mut shared = [0.0; LOOPS + 3];
        let mut loops = Vec::with_capacity(LOOPS);
        for repetition in 0..repetitions(&self.effort, size) as u32 {
            for (way, method) in methods.iter().copied().enumerate().filter(|(way, _)| !single || *way == pace.best) {
                let (iterations, number) = (pace.iterations[way], loops.len() as u64);
                let l = Loop { method, repetition, number, size, message_bytes, iterations };
                shared[loops.len()] = pattern.timed(&mut self.memory, &l)?;
                self.damage(pattern, index, &l);
                let begin = Instant::now();
                pattern.check(&self.memory, &l);
                shared[LOOPS] += begin.elapsed().as_secs_f64();
                loops.push(l);
            }
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
        self.keep_time(index, size, shared[LOOPS + 1]);
        self.set_pace(pace, methods, &record, size);
        Ok(record)
    }

    /// Iterations for the next size: as many as fill a loop if the times grow as the pilot's did.
    fn set_pace(&self, pace: &mut Pace, methods: &[Method], record: &SizeRecord, size: usize) {
        let Some(pilot) = self.pilot.as_ref().filter(|_| size + 1 < SIZES) else { return };
        let ratio = pilot.sizes_bytes[size + 1] as f64 / pilot.sizes_bytes[size] as f64;
        let mut fastest = f64::INFINITY;
        for (way, method) in methods.iter().enumerate() {
            let own = record.loops.iter().filter(|l| l.method == *method);
            let one = own.map(|l| l.seconds / l.iterations as f64).fold(f64::INFINITY, f64::min);
            if one.is_infinite() {
                continue;
            }
            let [now, next] = [size, size + 1].map(|s| pilot.iteration_seconds[s][way]);
            let growth = if now > 0.0 { (next / now).clamp(1.0, ratio) } else { 1.0 };
            pace.iterations[way] = iterations(self.effort.loop_seconds, one * growth);
            if one < fastest {
                (fastest, pace.best) = (one, way);
            }
        }
    }

    /// Fits the effort to the time that is left; `elapsed` is equal on all ranks. Within a pattern it is only cut, and only
    /// if what is left would not fit: sizes of one pattern should be measured alike.
    fn keep_time(&mut self, index: usize, size: usize, elapsed: f64) {
        let Some(pilot) = &self.pilot else { return };
        if let Some(done) = self.remaining(index, 0).first() {
            self.foreseen_seconds += pilot.size_seconds(done, &self.effort, size);
        }
        let within = size + 1 < SIZES;
        let (index, size) = if within { (index, size + 1) } else { (index + 1, 0) };
        let remaining = self.remaining(index, size);
        let now = remaining.iter().map(|r| pilot.seconds(r, &self.effort)).sum::<f64>();
        // How much slower than foreseen it went so far. A share of the limit stands on both sides: the first loops say little.
        let grace = 0.05 * self.limit_seconds;
        let slowness = ((elapsed - self.pilot_seconds + grace) / (self.foreseen_seconds + grace)).max(FASTEST);
        if within && elapsed + now * slowness.max(1.0) <= self.limit_seconds {
            return;
        }
        let left = (self.limit_seconds - elapsed) * PLANNED_SHARE;
        let bound = if within { Bound::AtMost(self.effort) } else { Bound::OneMoreThan(self.effort) };
        let (effort, seconds) = choose(pilot, &remaining, left, slowness, (bound, self.quick));
        self.expected_seconds = elapsed + seconds;
        if effort != self.effort && !remaining.is_empty() {
            self.effort = effort;
            self.efforts.push((index as u64, effort));
        }
    }

    /// With `--inject`: one loop of the first pattern, on the last rank that receives anything.
    fn damage(&mut self, pattern: &Pattern<'_>, index: usize, l: &Loop) {
        let plan = &self.plan.patterns[index];
        let receives = |rank: &u64| plan.steps(*rank).iter().any(|s| s.receive_from.is_some());
        if self.inject && index == 0 && l.size == DAMAGED_SIZE && l.number == 0 {
            let last = (0..self.comm.size()).rev().find(receives);
            if last == Some(self.comm.rank()) {
                pattern.damage(&mut self.memory, l);
            }
        }
    }

    /// Every rank's corruptions to rank 0.
    fn report_corruption(&mut self, pattern: &Pattern<'_>) -> Result<(), beff_ffi::MpiError> {
        // Plain records of our own: they are always written and read; were they not, the count of wrong bytes remains.
        let mine = serde_json::to_vec(&pattern.corruptions).unwrap_or_default();
        for bytes in self.comm.gather_bytes(&mine)? {
            let of_rank: Vec<_> = serde_json::from_slice(&bytes).unwrap_or_default();
            of_rank.into_iter().for_each(|c| self.observer.record(CommLine::Corruption(c)));
        }
        Ok(())
    }
}

/// Best bandwidth of a size in 1e6 bytes/s.
fn best_mb_per_second(size: &SizeRecord, messages: u64) -> Option<f64> {
    let rate = |l: &LoopRecord| (size.message_bytes * messages * l.iterations) as f64 / l.seconds / 1e6;
    size.loops.iter().map(rate).reduce(f64::max)
}
