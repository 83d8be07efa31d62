//! How much of the definition fits into the time: the effort, and the iterations of each loop, as the run goes on. Times are
//! those of the slowest rank, so all ranks come to the same.

use crate::b_eff::plan::effort::{choose, first_iterations, iterations, Bound, Effort, Pilot, Remaining, METHODS};
use crate::b_eff::plan::sizes::SIZES;
use crate::b_eff::plan::{CommPlan, Family};
use crate::b_eff::records::{Method, SizeRecord};

/// Share of the time that is planned with; the rest is for what the pilot did not foresee.
const PLANNED_SHARE: f64 = 0.92;
/// Patterns that were faster than foreseen are believed to this share: the pilot may have been disturbed.
const FASTEST: f64 = 0.25;

/// How the loops of a pattern go on from size to size.
pub(super) struct Pace {
    /// By method.
    pub(super) iterations: [u64; METHODS],
    /// The fastest method so far.
    pub(super) best: usize,
}

/// The time of a run and what it is spent on.
pub(super) struct Budget<'a> {
    plan: &'a CommPlan,
    quick: bool,
    /// For the patterns.
    pub(super) limit_seconds: f64,
    pilot: Option<Pilot>,
    pub(super) effort: Effort,
    /// Later ones, and the pattern from which on.
    efforts: Vec<(u64, Effort)>,
    pub(super) expected_seconds: f64,
    /// What the pilot foresaw for what was measured.
    foreseen_seconds: f64,
    pub(super) pilot_seconds: f64,
    random_measured: u64,
}

impl<'a> Budget<'a> {
    /// Before the pilot.
    pub(super) fn new(plan: &'a CommPlan, quick: bool, limit_seconds: f64) -> Self {
        Self {
            plan,
            quick,
            limit_seconds,
            pilot: None,
            effort: Effort { loop_seconds: 0.0, single_from: 0, once_from: 0, random_rings: 0, extras: true },
            efforts: Vec::new(),
            expected_seconds: 0.0,
            foreseen_seconds: 0.0,
            pilot_seconds: 0.0,
            random_measured: 0,
        }
    }

    /// Chooses the effort by what the pilot has found in `elapsed_seconds`.
    pub(super) fn begin(&mut self, pilot: Pilot, elapsed_seconds: f64) {
        let left = self.limit_seconds * PLANNED_SHARE - elapsed_seconds;
        let (effort, seconds) = choose(&pilot, &self.remaining(0, 0), left, 1.0, (Bound::None, self.quick));
        (self.effort, self.pilot, self.pilot_seconds) = (effort, Some(pilot), elapsed_seconds);
        self.expected_seconds = elapsed_seconds + seconds;
    }

    /// Whether there is effort for this pattern.
    pub(super) fn wants(&self, index: usize) -> bool {
        self.remaining(index, 0).first().is_some_and(|r| r.wanted(&self.effort))
    }

    /// A pattern was measured.
    pub(super) fn done(&mut self, family: Family) {
        self.random_measured += u64::from(family == Family::Random);
    }

    /// The efforts after the announced one, at the end of a run that was not interrupted.
    pub(super) fn efforts(&self, interrupted: bool) -> Vec<(u64, Effort)> {
        let mut efforts = self.efforts.clone();
        // What was skipped by an effort that grew again later stays skipped.
        let random = self.plan.patterns.iter().filter(|p| p.family == Family::Random).count() as u64;
        if !interrupted && self.random_measured < self.effort.random_rings.min(random) {
            efforts
                .push((self.plan.patterns.len() as u64, Effort { random_rings: self.random_measured, ..self.effort }));
        }
        efforts
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

    /// How a pattern begins: as the pilot found its own ring.
    pub(super) fn first_pace(&self, methods: usize, steps: u64) -> Pace {
        let Some(pilot) = &self.pilot else { return Pace { iterations: [1; METHODS], best: 0 } };
        let seconds = pilot.iteration_seconds[0].map(|s| s * steps as f64 / pilot.steps.max(1) as f64);
        let best = (0..methods).min_by(|a, b| seconds[*a].total_cmp(&seconds[*b])).unwrap_or(0);
        Pace { iterations: seconds.map(|one| first_iterations(self.effort.loop_seconds, one)), best }
    }

    /// Iterations for the next size: as many as fill a loop if the times grow as the pilot's did.
    pub(super) fn set_pace(&self, pace: &mut Pace, methods: &[Method], record: &SizeRecord, size: usize) {
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
    pub(super) fn keep_time(&mut self, index: usize, size: usize, elapsed: f64) {
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
}
