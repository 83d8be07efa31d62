//! The best setting against the default, on new files with other data and another order.

use crate::effects::{pair_differences, EffectRatio, Sample, CONFIRMATION_ERROR};
use crate::trial::{Phase, PlannedTrial, Setting, Trial};

/// Fewest pairs for an interval.
pub const MIN_PAIRS: u32 = 4;
/// Most pairs.
const MAX_PAIRS: u32 = 400;

/// The pair of a round. The best is first in every other round.
#[must_use]
pub fn pair(best: &Setting, round: u32, seconds: f64, phase: Phase) -> [PlannedTrial; 2] {
    let planned = |setting: &Setting| PlannedTrial { phase, round, setting: setting.clone(), seconds };
    let (best, default) = (planned(best), planned(&Setting::new()));
    if round.is_multiple_of(2) {
        [best, default]
    } else {
        [default, best]
    }
}

/// True if another pair ends before `end_seconds`, as long as the mean pair so far; before the first pair `expected_seconds`.
#[must_use]
pub fn fits_another(trials: &[Trial], elapsed_seconds: f64, end_seconds: f64, expected_seconds: f64) -> bool {
    let walls: Vec<f64> =
        trials.iter().filter(|t| t.planned.phase == Phase::Confirmation).map(Trial::wall_seconds).collect();
    let pairs = walls.len() as u32 / 2;
    let pair_seconds = if pairs == 0 { expected_seconds } else { walls.iter().sum::<f64>() / f64::from(pairs) };
    // The scatter of a pair must not exceed the budget.
    pairs < MAX_PAIRS && elapsed_seconds + 1.15 * pair_seconds <= end_seconds
}

/// Ratio of the best to the default over an even number of pairs, so that each was as often first; None without pairs.
#[must_use]
pub fn ratio(trials: &[Trial], phase: Phase) -> Option<EffectRatio> {
    let own: Vec<&Trial> = trials.iter().filter(|trial| trial.planned.phase == phase).collect();
    let mut differences = pair_differences(&own, &[]);
    if differences.len() > 1 {
        differences.truncate(differences.len() / 2 * 2);
    }
    (!differences.is_empty()).then(|| Sample::of(&differences).ratio(CONFIRMATION_ERROR))
}
