//! Time budget: adapts the effort and the iterations of each loop during the run. Times are those of the slowest rank, so
//! that all ranks decide alike.
//!
//! A visit is one repetition of one pattern. Visits are numbered: all patterns in the first repetition, all in the second, all
//! in the third.

use std::collections::{BTreeMap, BTreeSet};

use crate::b_eff::plan::effort::{
    choose_effort, iterations, repetitions_at, smallest_message_iterations, EffortBound, MeasurementEffort, PilotTimes,
    RemainingWork, METHOD_COUNT, REPETITIONS,
};
use crate::b_eff::plan::sizes::SIZE_COUNT;
use crate::b_eff::plan::{CommPlan, PatternFamily};
use crate::b_eff::records::{MessageMethod, SizeRecord};

/// Planned share of the time; the rest is a reserve for errors of the pilot's estimate.
const PLANNED_SHARE: f64 = 0.92;
/// Lower limit of the measured by the predicted time: a pilot may have been disturbed.
const MIN_SLOWNESS: f64 = 0.25;

/// Iterations of the loops of a pattern at the next size.
pub(super) struct IterationPlan {
    pub(super) iterations: [u64; METHOD_COUNT],
    pub(super) fastest_method: usize,
}

pub(super) struct Budget<'a> {
    plan: &'a CommPlan,
    quick: bool,
    pub(super) limit_seconds: f64,
    pilot: Option<PilotTimes>,
    pub(super) effort: MeasurementEffort,
    /// Changes of the effort, with their first visit.
    effort_changes: Vec<(u64, MeasurementEffort)>,
    pub(super) expected_seconds: f64,
    predicted_seconds: f64,
    pub(super) pilot_seconds: f64,
    /// Patterns of the first repetition: later repetitions are limited to these.
    visited: BTreeSet<usize>,
    /// Fastest method by pattern and size in the first visit.
    fastest_methods: BTreeMap<(usize, usize), usize>,
    /// Cached time of the visits after this one with this effort: it is needed at every size.
    later_visits: Option<(usize, MeasurementEffort, f64)>,
}

impl<'a> Budget<'a> {
    pub(super) fn new(plan: &'a CommPlan, quick: bool, limit_seconds: f64) -> Self {
        Self {
            plan,
            quick,
            limit_seconds,
            pilot: None,
            effort: MeasurementEffort {
                loop_seconds: 0.0,
                best_method_from: 0,
                unrepeated_from: 0,
                random_rings: 0,
                extras: true,
            },
            effort_changes: Vec::new(),
            expected_seconds: 0.0,
            predicted_seconds: 0.0,
            pilot_seconds: 0.0,
            visited: BTreeSet::new(),
            fastest_methods: BTreeMap::new(),
            later_visits: None,
        }
    }

    /// Chooses the effort from the times of the pilot, which ended after `elapsed_seconds`.
    pub(super) fn choose_effort(&mut self, pilot: PilotTimes, elapsed_seconds: f64) {
        let left = self.limit_seconds * PLANNED_SHARE - elapsed_seconds;
        let (effort, seconds) =
            choose_effort(&pilot, &self.remaining(0, 0), left, 1.0, (EffortBound::None, self.quick));
        (self.effort, self.pilot, self.pilot_seconds) = (effort, Some(pilot), elapsed_seconds);
        self.expected_seconds = elapsed_seconds + seconds;
    }

    pub(super) fn visit_count(&self) -> usize {
        self.plan.patterns.len() * REPETITIONS as usize
    }

    pub(super) fn pattern_and_repetition(&self, visit: usize) -> (usize, u64) {
        let patterns = self.plan.patterns.len().max(1);
        (visit % patterns, (visit / patterns) as u64)
    }

    pub(super) fn includes(&self, visit: usize) -> bool {
        let (index, repetition) = self.pattern_and_repetition(visit);
        (repetition == 0 || self.visited.contains(&index))
            && self.remaining_of_visit(visit, 0).is_included(&self.effort)
    }

    pub(super) fn includes_size(&self, repetition: u64, size: usize) -> bool {
        repetition < repetitions_at(&self.effort, size)
    }

    pub(super) fn finish_visit(&mut self, visit: usize) {
        let (index, _) = self.pattern_and_repetition(visit);
        self.visited.insert(index);
    }

    /// Changes of the effort after the announcement. A run that was not interrupted also reports omitted random rings.
    pub(super) fn effort_changes(&self, interrupted: bool) -> Vec<(u64, MeasurementEffort)> {
        let mut efforts = self.effort_changes.clone();
        // Rings skipped by an effort that increased again later are not measured.
        let random = self.plan.patterns.iter().filter(|p| p.family == PatternFamily::Random).count() as u64;
        let is_random = |index: &&usize| self.plan.patterns[**index].family == PatternFamily::Random;
        let measured = self.visited.iter().filter(is_random).count() as u64;
        if !interrupted && measured < self.effort.random_rings.min(random) {
            efforts.push((self.visit_count() as u64, MeasurementEffort { random_rings: measured, ..self.effort }));
        }
        efforts
    }

    /// Remaining work of a visit from size `size` on.
    fn remaining_of_visit(&self, visit: usize, size: usize) -> RemainingWork {
        let (index, repetition) = self.pattern_and_repetition(visit);
        let pattern = &self.plan.patterns[index];
        let random = self.plan.patterns[..index].iter().filter(|p| p.family == PatternFamily::Random).count() as u64;
        RemainingWork { family: pattern.family, random, steps: pattern.max_steps(), repetition, from_size: size }
    }

    /// Remaining work of the run from size `size` of a visit on.
    fn remaining(&self, visit: usize, size: usize) -> Vec<RemainingWork> {
        let is_repetition = self.pattern_and_repetition(visit).1 > 0;
        let comes = |n: &usize| !is_repetition || self.visited.contains(&self.pattern_and_repetition(*n).0);
        (visit..self.visit_count())
            .filter(comes)
            .map(|n| self.remaining_of_visit(n, if n == visit { size } else { 0 }))
            .collect()
    }

    /// Predicted seconds from size `size` of a visit to the end of the run.
    fn predict_seconds(&mut self, visit: usize, size: usize) -> f64 {
        let Some(pilot) = &self.pilot else { return 0.0 };
        let this = pilot.pattern_seconds(&self.remaining_of_visit(visit, size), &self.effort);
        let known = self.later_visits.filter(|(of, effort, _)| *of == visit && *effort == self.effort);
        let later = known.map_or_else(
            || self.remaining(visit + 1, 0).iter().map(|r| pilot.pattern_seconds(r, &self.effort)).sum(),
            |(.., seconds)| seconds,
        );
        self.later_visits = Some((visit, self.effort, later));
        this + later
    }

    /// Method of a size that is measured by one method alone: the fastest so far; in later repetitions, that of the first.
    pub(super) fn single_method(&mut self, index: usize, size: usize, pace: &IterationPlan) -> usize {
        *self.fastest_methods.entry((index, size)).or_insert(pace.fastest_method)
    }

    /// Iterations of the first size of a pattern, from the times of the pilot.
    pub(super) fn first_iteration_plan(&self, methods: usize, steps: u64) -> IterationPlan {
        let Some(pilot) = &self.pilot else {
            return IterationPlan { iterations: [1; METHOD_COUNT], fastest_method: 0 };
        };
        let seconds = pilot.iteration_seconds[0].map(|s| s * steps as f64 / pilot.steps.max(1) as f64);
        let best = (0..methods).min_by(|a, b| seconds[*a].total_cmp(&seconds[*b])).unwrap_or(0);
        IterationPlan {
            iterations: seconds.map(|one| smallest_message_iterations(self.effort.loop_seconds, one)),
            fastest_method: best,
        }
    }

    /// Sets the iterations of the next size, assuming that the times grow as in the pilot.
    pub(super) fn plan_next_size(
        &self,
        pace: &mut IterationPlan,
        methods: &[MessageMethod],
        record: &SizeRecord,
        size: usize,
    ) {
        let Some(pilot) = self.pilot.as_ref().filter(|_| size + 1 < SIZE_COUNT) else { return };
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
                (fastest, pace.fastest_method) = (one, way);
            }
        }
    }

    /// Adapts the effort to the remaining time; `elapsed` is equal on all ranks. Within a visit the effort is only reduced,
    /// and only if the remaining work would not fit: all sizes of a pattern should have the same effort. The effort increases
    /// only in the first repetition, so that all repetitions have the same.
    pub(super) fn adjust_effort(&mut self, visit: usize, size: usize, elapsed: f64) {
        let Some(pilot) = &self.pilot else { return };
        self.predicted_seconds += pilot.size_seconds(&self.remaining_of_visit(visit, 0), &self.effort, size);
        let (_, repetition) = self.pattern_and_repetition(visit);
        let within = size + 1 < SIZE_COUNT && self.includes_size(repetition, size + 1);
        let (visit, size) = if within { (visit, size + 1) } else { (visit + 1, 0) };
        // Ratio of measured to predicted time. A share of the limit is added to both, to damp the influence of the first loops.
        let grace = 0.05 * self.limit_seconds;
        let slowness = ((elapsed - self.pilot_seconds + grace) / (self.predicted_seconds + grace)).max(MIN_SLOWNESS);
        if within && elapsed + self.predict_seconds(visit, size) * slowness.max(1.0) <= self.limit_seconds {
            return;
        }
        let remaining = self.remaining(visit, size);
        let left = (self.limit_seconds - elapsed) * PLANNED_SHARE;
        let grows = !within && self.pattern_and_repetition(visit).1 == 0;
        let bound = if grows { EffortBound::OneMoreThan(self.effort) } else { EffortBound::AtMost(self.effort) };
        let Some(pilot) = &self.pilot else { return };
        let (effort, seconds) = choose_effort(pilot, &remaining, left, slowness, (bound, self.quick));
        self.expected_seconds = elapsed + seconds;
        if effort != self.effort && !remaining.is_empty() {
            self.effort = effort;
            self.effort_changes.push((visit as u64, effort));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff::plan::effort::{MIN_LOOP_SECONDS, TARGET_LOOP_SECONDS};

    fn plan() -> CommPlan {
        CommPlan::new(4, 1, 128 << 20, &PatternFamily::ALL).unwrap()
    }

    fn pilot(plan: &CommPlan) -> PilotTimes {
        let mut iteration_seconds = [[0.0; METHOD_COUNT]; SIZE_COUNT];
        for (size, bytes) in plan.sizes_bytes.iter().enumerate() {
            iteration_seconds[size] = [1e-6 + *bytes as f64 * 1e-9; METHOD_COUNT];
        }
        PilotTimes {
            iteration_seconds,
            steps: 2,
            loop_overhead_seconds: 1e-5,
            verify_seconds_per_byte: 0.0,
            wipe_seconds_per_byte: 0.0,
            sizes_bytes: plan.sizes_bytes.clone(),
        }
    }

    /// Simulates a run on a machine `slowness` times slower than in the pilot; visits as (pattern, repetition).
    fn simulate(plan: &CommPlan, limit_seconds: f64, slowness: f64) -> (Vec<(usize, u64)>, MeasurementEffort) {
        let mut budget = Budget::new(plan, false, limit_seconds);
        let pilot = pilot(plan);
        budget.choose_effort(pilot.clone(), 0.1);
        let (mut elapsed, mut visited) = (0.1, Vec::new());
        for visit in 0..budget.visit_count() {
            if !budget.includes(visit) {
                continue;
            }
            let (index, repetition) = budget.pattern_and_repetition(visit);
            visited.push((index, repetition));
            for size in 0..SIZE_COUNT {
                if !budget.includes_size(repetition, size) {
                    break;
                }
                elapsed += slowness * pilot.size_seconds(&budget.remaining_of_visit(visit, 0), &budget.effort, size);
                budget.adjust_effort(visit, size, elapsed);
            }
            budget.finish_visit(visit);
        }
        assert!(elapsed <= 1.1 * limit_seconds || limit_seconds < 2.0, "{elapsed} of {limit_seconds}");
        (visited, budget.effort)
    }

    #[test]
    fn every_pattern_is_measured_before_any_is_repeated() {
        let plan = plan();
        let (visited, effort) = simulate(&plan, 240.0, 1.0);
        let expected: Vec<_> = (0..3).flat_map(|r| (0..plan.patterns.len()).map(move |index| (index, r))).collect();
        assert_eq!(visited, expected);
        assert_eq!(effort.loop_seconds, TARGET_LOOP_SECONDS);
    }

    /// Later repetitions contain no pattern that the first one omitted.
    #[test]
    fn repetitions_repeat_the_patterns_of_the_first() {
        let plan = plan();
        for (limit_seconds, slowness) in [(240.0, 1.0), (60.0, 1.0), (60.0, 0.3), (30.0, 2.0), (12.0, 1.5), (5.0, 1.0)]
        {
            let (visited, _) = simulate(&plan, limit_seconds, slowness);
            let of = |r: u64| visited.iter().filter(move |(_, of)| *of == r).map(|(index, _)| *index);
            let first: BTreeSet<usize> = of(0).collect();
            for repetition in 1..3 {
                assert!(of(repetition).all(|index| first.contains(&index)), "{limit_seconds} {slowness}");
            }
        }
    }

    #[test]
    fn effort_is_reduced_on_a_machine_that_slows_down() {
        let plan = plan();
        let (_, effort) = simulate(&plan, 20.0, 4.0);
        assert!(effort.loop_seconds < MIN_LOOP_SECONDS || effort.best_method_from < SIZE_COUNT as u64, "{effort:?}");
    }
}
