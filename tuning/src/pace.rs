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
/// Shorter work would measure opening and synchronisation.
pub const MIN_WORK_SECONDS: f64 = 0.05;
/// Longer work would leave too few trials for no gain.
const MAX_WORK_SECONDS: f64 = 30.0;

/// Duration of a trial by its work: a fixed part, and one that grows with the work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    fixed_seconds: f64,
    per_second: f64,
    /// Least known duration, as long as all trials had the same work: then nothing is known about less work.
    least_seconds: f64,
}

impl Pace {
    /// From the trials of the default.
    #[must_use]
    pub fn of(trials: &[Trial]) -> Option<Self> {
        let defaults: Vec<&Trial> = trials.iter().filter(|trial| trial.planned.setting.is_empty()).collect();
        // The first trial contains preparations that no other has.
        let counted = if defaults.len() > 1 { &defaults[1..] } else { &defaults[..] };
        let shortest = counted.iter().map(|trial| trial.planned.seconds).fold(f64::INFINITY, f64::min);
        let longest = counted.iter().map(|trial| trial.planned.seconds).fold(0.0, f64::max);
        let mean = |seconds: f64| {
            let walls: Vec<f64> =
                counted.iter().filter(|t| t.planned.seconds == seconds).map(|t| t.wall_seconds()).collect();
            walls.iter().sum::<f64>() / walls.len() as f64
        };
        if counted.is_empty() {
            return None;
        }
        let (short_wall, long_wall) = (mean(shortest), mean(longest));
        if longest > 1.5 * shortest {
            let per_second = ((long_wall - short_wall) / (longest - shortest)).max(0.0);
            let fixed_seconds = (long_wall - per_second * longest).max(0.0);
            return Some(Self { fixed_seconds, per_second, least_seconds: 0.0 });
        }
        let per_second = long_wall / longest.max(f64::MIN_POSITIVE);
        Some(Self { fixed_seconds: 0.0, per_second, least_seconds: long_wall })
    }

    /// Duration with this work.
    #[must_use]
    pub fn wall_seconds(&self, work_seconds: f64) -> f64 {
        (self.fixed_seconds + self.per_second * work_seconds).max(self.least_seconds)
    }

    /// The work with which `trials` of them take `seconds`, within reasonable bounds.
    #[must_use]
    pub fn work_seconds(&self, seconds: f64, trials: u32) -> f64 {
        let each = seconds / f64::from(trials.max(1)) - self.fixed_seconds;
        (each / self.per_second.max(1e-9)).clamp(MIN_WORK_SECONDS, MAX_WORK_SECONDS)
    }
}

/// Work of the pilots: the first one contains preparations, the others show how the duration grows with the work.
#[must_use]
pub fn pilot_work_seconds(budget_seconds: f64) -> [f64; 3] {
    let seconds = (budget_seconds * PILOT_SHARE).clamp(MIN_WORK_SECONDS, 1.0);
    [seconds, seconds, 3.0 * seconds]
}
