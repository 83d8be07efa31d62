//! How much of the definition fits into the time: the effort, and the iterations of each loop, as the run goes on. Times are
//! those of the slowest rank, so all ranks come to the same.
//!
//! The run is a row of visits: all patterns in the first repetition, all of them in the second, all in the third. A visit is
//! known by its number.

use std::collections::{BTreeMap, BTreeSet};

use crate::b_eff::plan::effort::{
    choose, first_iterations, iterations, repetitions, Bound, Effort, Pilot, Remaining, METHODS, REPETITIONS,
};
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
    /// Later ones, and the visit from which on.
    efforts: Vec<(u64, Effort)>,
    pub(super) expected_seconds: f64,
    /// What the pilot foresaw for what was measured.
    foreseen_seconds: f64,
    pub(super) pilot_seconds: f64,
    /// Patterns that were visited in the first repetition: later ones repeat these.
    visited: BTreeSet<usize>,
    /// The fastest method by pattern and size, as the first visit found it.
    best: BTreeMap<(usize, usize), usize>,
    /// Time of the visits behind this one with this effort: it is asked for at every size.
    later: Option<(usize, Effort, f64)>,
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
            visited: BTreeSet::new(),
            best: BTreeMap::new(),
            later: None,
        }
    }

    /// Chooses the effort by what the pilot has found in `elapsed_seconds`.
    pub(super) fn begin(&mut self, pilot: Pilot, elapsed_seconds: f64) {
        let left = self.limit_seconds * PLANNED_SHARE - elapsed_seconds;
        let (effort, seconds) = choose(&pilot, &self.remaining(0, 0), left, 1.0, (Bound::None, self.quick));
        (self.effort, self.pilot, self.pilot_seconds) = (effort, Some(pilot), elapsed_seconds);
        self.expected_seconds = elapsed_seconds + seconds;
    }

    /// Visits of a whole run.
    pub(super) fn visits(&self) -> usize {
        self.plan.patterns.len() * REPETITIONS as usize
    }

    /// The pattern of a visit, by its index, and the repetition.
    pub(super) fn of_visit(&self, visit: usize) -> (usize, u64) {
        let patterns = self.plan.patterns.len().max(1);
        (visit % patterns, (visit / patterns) as u64)
    }

    /// Whether there is effort for this visit.
    pub(super) fn wants(&self, visit: usize) -> bool {
        let (index, repetition) = self.of_visit(visit);
        (repetition == 0 || self.visited.contains(&index)) && self.one(visit, 0).wanted(&self.effort)
    }

    /// Whether the effort has this size in this repetition.
    pub(super) fn has(&self, repetition: u64, size: usize) -> bool {
        repetition < repetitions(&self.effort, size)
    }

    /// A visit is over.
    pub(super) fn done(&mut self, visit: usize) {
        let (index, _) = self.of_visit(visit);
        self.visited.insert(index);
    }

    /// The efforts after the announced one, at the end of a run that was not interrupted.
    pub(super) fn efforts(&self, interrupted: bool) -> Vec<(u64, Effort)> {
        let mut efforts = self.efforts.clone();
        // What was skipped by an effort that grew again later stays skipped.
        let random = self.plan.patterns.iter().filter(|p| p.family == Family::Random).count() as u64;
        let is_random = |index: &&usize| self.plan.patterns[**index].family == Family::Random;
        let measured = self.visited.iter().filter(is_random).count() as u64;
        if !interrupted && measured < self.effort.random_rings.min(random) {
            efforts.push((self.visits() as u64, Effort { random_rings: measured, ..self.effort }));
        }
        efforts
    }

    /// What is left of a visit from size `size` on.
    fn one(&self, visit: usize, size: usize) -> Remaining {
        let (index, repetition) = self.of_visit(visit);
        let pattern = &self.plan.patterns[index];
        let random = self.plan.patterns[..index].iter().filter(|p| p.family == Family::Random).count() as u64;
        Remaining { family: pattern.family, random, steps: pattern.most_steps(), repetition, from_size: size }
    }

    /// What is left from size `size` of a visit on.
    fn remaining(&self, visit: usize, size: usize) -> Vec<Remaining> {
        let repeats = self.of_visit(visit).1 > 0;
        let comes = |n: &usize| !repeats || self.visited.contains(&self.of_visit(*n).0);
        (visit..self.visits()).filter(comes).map(|n| self.one(n, if n == visit { size } else { 0 })).collect()
    }

    /// Seconds that the pilot foresees from size `size` of a visit on.
    fn foreseen(&mut self, visit: usize, size: usize) -> f64 {
        let Some(pilot) = &self.pilot else { return 0.0 };
        let this = pilot.seconds(&self.one(visit, size), &self.effort);
        let known = self.later.filter(|(of, effort, _)| *of == visit && *effort == self.effort);
        let later = known.map_or_else(
            || self.remaining(visit + 1, 0).iter().map(|r| pilot.seconds(r, &self.effort)).sum(),
            |(.., seconds)| seconds,
        );
        self.later = Some((visit, self.effort, later));
        this + later
    }

    /// The method that a size measured by one method alone has: the fastest so far, in later repetitions that of the first.
    pub(super) fn single_method(&mut self, index: usize, size: usize, pace: &Pace) -> usize {
        *self.best.entry((index, size)).or_insert(pace.best)
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

    /// Fits the effort to the time that is left; `elapsed` is equal on all ranks. Within a visit it is only cut, and only
    /// if what is left would not fit: sizes of one pattern should be measured alike. So should repetitions: the effort grows
    /// in the first one alone.
    pub(super) fn keep_time(&mut self, visit: usize, size: usize, elapsed: f64) {
        let Some(pilot) = &self.pilot else { return };
        self.foreseen_seconds += pilot.size_seconds(&self.one(visit, 0), &self.effort, size);
        let (_, repetition) = self.of_visit(visit);
        let within = size + 1 < SIZES && self.has(repetition, size + 1);
        let (visit, size) = if within { (visit, size + 1) } else { (visit + 1, 0) };
        // How much slower than foreseen it went so far. A share of the limit stands on both sides: the first loops say little.
        let grace = 0.05 * self.limit_seconds;
        let slowness = ((elapsed - self.pilot_seconds + grace) / (self.foreseen_seconds + grace)).max(FASTEST);
        if within && elapsed + self.foreseen(visit, size) * slowness.max(1.0) <= self.limit_seconds {
            return;
        }
        let remaining = self.remaining(visit, size);
        let left = (self.limit_seconds - elapsed) * PLANNED_SHARE;
        let grows = !within && self.of_visit(visit).1 == 0;
        let bound = if grows { Bound::OneMoreThan(self.effort) } else { Bound::AtMost(self.effort) };
        let Some(pilot) = &self.pilot else { return };
        let (effort, seconds) = choose(pilot, &remaining, left, slowness, (bound, self.quick));
        self.expected_seconds = elapsed + seconds;
        if effort != self.effort && !remaining.is_empty() {
            self.effort = effort;
            self.efforts.push((visit as u64, effort));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff::plan::effort::{LOOP_SECONDS, SHORTEST_LOOP_SECONDS};

    fn plan() -> CommPlan {
        CommPlan::new(4, 1, 128 << 20, &Family::ALL).unwrap()
    }

    fn pilot(plan: &CommPlan) -> Pilot {
        let mut iteration_seconds = [[0.0; METHODS]; SIZES];
        for (size, bytes) in plan.sizes_bytes.iter().enumerate() {
            iteration_seconds[size] = [1e-6 + *bytes as f64 * 1e-9; METHODS];
        }
        Pilot {
            iteration_seconds,
            steps: 2,
            loop_seconds: 1e-5,
            verify_seconds_per_byte: 0.0,
            wipe_seconds_per_byte: 0.0,
            sizes_bytes: plan.sizes_bytes.clone(),
        }
    }

    /// Plays a run whose machine is so many times slower than the pilot saw it; visits as (pattern, repetition).
    fn play(plan: &CommPlan, limit_seconds: f64, slowness: f64) -> (Vec<(usize, u64)>, Effort) {
        let mut budget = Budget::new(plan, false, limit_seconds);
        let pilot = pilot(plan);
        budget.begin(pilot.clone(), 0.1);
        let (mut elapsed, mut visited) = (0.1, Vec::new());
        for visit in 0..budget.visits() {
            if !budget.wants(visit) {
                continue;
            }
            let (index, repetition) = budget.of_visit(visit);
            visited.push((index, repetition));
            for size in 0..SIZES {
                if !budget.has(repetition, size) {
                    break;
                }
                elapsed += slowness * pilot.size_seconds(&budget.one(visit, 0), &budget.effort, size);
                budget.keep_time(visit, size, elapsed);
            }
            budget.done(visit);
        }
        assert!(elapsed <= 1.1 * limit_seconds || limit_seconds < 2.0, "{elapsed} of {limit_seconds}");
        (visited, budget.effort)
    }

    #[test]
    fn every_pattern_comes_before_any_is_repeated() {
        let plan = plan();
        let (visited, effort) = play(&plan, 240.0, 1.0);
        let expected: Vec<_> = (0..3).flat_map(|r| (0..plan.patterns.len()).map(move |index| (index, r))).collect();
        assert_eq!(visited, expected);
        assert_eq!(effort.loop_seconds, LOOP_SECONDS);
    }

    /// What the first repetition left out stays out, and what it had is repeated.
    #[test]
    fn repetitions_repeat_what_the_first_one_had() {
        let plan = plan();
        for (limit_seconds, slowness) in [(240.0, 1.0), (60.0, 1.0), (60.0, 0.3), (30.0, 2.0), (12.0, 1.5), (5.0, 1.0)]
        {
            let (visited, _) = play(&plan, limit_seconds, slowness);
            let of = |r: u64| visited.iter().filter(move |(_, of)| *of == r).map(|(index, _)| *index);
            let first: BTreeSet<usize> = of(0).collect();
            for repetition in 1..3 {
                assert!(of(repetition).all(|index| first.contains(&index)), "{limit_seconds} {slowness}");
            }
        }
    }

    #[test]
    fn a_machine_that_slows_down_is_told_to_do_less() {
        let plan = plan();
        let (_, effort) = play(&plan, 20.0, 4.0);
        assert!(effort.loop_seconds < SHORTEST_LOOP_SECONDS || effort.single_from < SIZES as u64, "{effort:?}");
    }
}
