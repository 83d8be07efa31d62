//! Duration of trials, and what fits into the budget.

use crate::trial::Trial;

/// Shares of the budget at which the phases end.
pub const NOISE_END: f64 = 0.11;
/// End of the single keys.
pub const SINGLE_END: f64 = 0.40;
/// End of the combinations.
pub const COMBINATION_END: f64 = 0.58;
/// End of the elimination.
pub const ELIMINATION_END: f64 = 0.65;

/// Work of a pilot, as a share of the budget.
const PILOT_SHARE: f64 = 0.002;
/// Trials measure no less: shorter ones would measure opening and synchronisation.
const MIN_MEASURED_SECONDS: f64 = 0.05;
/// Nor less than this share of the rest of their time, which would be the larger part of the search otherwise, up to a second.
const MIN_MEASURED_SHARE: f64 = 0.5;
/// Trials measure no more: there would be too few of them.
const MAX_MEASURED_SECONDS: f64 = 30.0;

/// Duration of a trial by its work: a fixed part, and one that is measured. How long the work takes is an estimate of the runner, which the
/// trials correct.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    fixed_seconds: f64,
    /// Measured time for each second of work.
    measured_share: f64,
}

impl Pace {
    /// From the trials of the default with the most work.
    #[must_use]
    pub fn of(trials: &[Trial]) -> Option<Self> {
        let defaults: Vec<&Trial> = trials.iter().filter(|trial| trial.planned.setting.is_empty()).collect();
        // The first trial contains preparations that no other has.
        let counted = if defaults.len() > 1 { &defaults[1..] } else { &defaults[..] };
        let longest = counted.iter().map(|trial| trial.planned.seconds).fold(0.0, f64::max);
        let own: Vec<&&Trial> = counted.iter().filter(|trial| trial.planned.seconds == longest).collect();
        let count = own.len() as f64;
        if own.is_empty() || longest <= 0.0 {
            return None;
        }
        let mean = |seconds: fn(&Trial) -> f64| own.iter().map(|trial| seconds(trial)).sum::<f64>() / count;
        let measured = mean(|trial| trial.measured_seconds.min(trial.wall_seconds()));
        let wall = mean(Trial::wall_seconds);
        Some(Self { fixed_seconds: wall - measured, measured_share: measured.max(1e-9) / longest })
    }

    /// Duration with this work.
    #[must_use]
    pub fn wall_seconds(&self, work_seconds: f64) -> f64 {
        self.fixed_seconds + self.measured_share * work_seconds
    }

    /// Shortest duration.
    #[must_use]
    pub fn least_wall_seconds(&self) -> f64 {
        self.fixed_seconds + self.least_measured_seconds()
    }

    fn least_measured_seconds(&self) -> f64 {
        (MIN_MEASURED_SHARE * self.fixed_seconds).clamp(MIN_MEASURED_SECONDS, 1.0)
    }

    /// The work with which `trials` of them take `seconds`, within reasonable bounds.
    #[must_use]
    pub fn work_seconds(&self, seconds: f64, trials: u32) -> f64 {
        self.measurable_seconds(seconds, trials) / self.measured_share
    }

    /// Measured part of each of `trials` that take `seconds` together, within reasonable bounds.
    #[must_use]
    pub fn measurable_seconds(&self, seconds: f64, trials: u32) -> f64 {
        let each = seconds / f64::from(trials.max(1)) - self.fixed_seconds;
        each.min(MAX_MEASURED_SECONDS).max(self.least_measured_seconds())
    }
}

/// Work of the pilots: the first one contains preparations, the last one shows how long a trial is.
#[must_use]
pub fn pilot_work_seconds(budget_seconds: f64) -> [f64; 3] {
    let seconds = (budget_seconds * PILOT_SHARE).clamp(MIN_MEASURED_SECONDS, 1.0);
    [seconds, seconds, 3.0 * seconds]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::{Phase, PlannedTrial, Setting};

    fn trial(seconds: f64, measured_seconds: f64, wall_seconds: f64) -> Trial {
        let planned = PlannedTrial { phase: Phase::Pilot, round: 0, setting: Setting::new(), seconds };
        Trial { planned, begin_seconds: 0.0, end_seconds: wall_seconds, measured_seconds, bytes_per_second: Some(1.0) }
    }

    /// The estimate of the runner is five times too long.
    #[test]
    fn trials_correct_the_estimate_of_their_work() {
        assert_eq!(Pace::of(&[]), None);
        let pace = Pace::of(&[trial(1.0, 9.0, 9.0), trial(1.0, 0.3, 0.5), trial(3.0, 0.6, 0.8)]).unwrap();
        let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found} {expected}");
        near(pace.wall_seconds(10.0), 0.2 + 2.0);
        near(pace.work_seconds(22.0, 10), 10.0);
        near(pace.least_wall_seconds(), 0.3);
        near(pace.work_seconds(1.0, 10), 0.1 / 0.2);
    }
}
