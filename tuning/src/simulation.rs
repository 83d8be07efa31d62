//! Simulated storage with a known optimum and a clock of its own, for tests.

use rand_pcg::rand_core::Rng;
use rand_pcg::Pcg64Mcg;

use crate::search::{Search, SearchPlan};
use crate::trial::{Factor, PlannedTrial, Setting, Trial};

/// Storage whose rate depends on the setting.
pub struct SimulatedStorage {
    /// Ratio to the default of a setting.
    pub ratio: fn(&Setting) -> f64,
    /// Standard deviation of the logarithm of a rate.
    pub noise: f64,
    /// Increase of the rate until the end of the budget.
    pub drift: f64,
    /// Ratio of the first trial of a round.
    pub first: f64,
    /// Time of a trial beside its work.
    pub fixed_seconds: f64,
    pub budget_seconds: f64,
    pub seed: u64,
}

impl Default for SimulatedStorage {
    fn default() -> Self {
        Self { ratio: |_| 1.0, noise: 0.05, drift: 0.0, first: 1.0, fixed_seconds: 0.1, budget_seconds: 600.0, seed: 0 }
    }
}

impl SimulatedStorage {
    /// Result of a trial that begins at this time. The noise depends on its number alone.
    pub fn measure(&self, planned: PlannedTrial, earlier: &[Trial]) -> Trial {
        let begin_seconds = earlier.last().map_or(1.0, |trial| trial.end_seconds);
        let mut random = Pcg64Mcg::new((u128::from(self.seed) << 64) + ((earlier.len() as u128) << 1) + 1);
        let normal = (0..12).map(|_| random.next_u64() as f64 / u64::MAX as f64).sum::<f64>() - 6.0;
        let is_first = earlier
            .last()
            .is_none_or(|last| (last.planned.round, last.planned.phase) != (planned.round, planned.phase));
        let rate = 1e9
            * (self.ratio)(&planned.setting)
            * (self.noise * normal).exp()
            * (1.0 + self.drift * begin_seconds / self.budget_seconds)
            * if is_first { self.first } else { 1.0 };
        let measured_seconds = planned.seconds * 1e9 / rate;
        let end_seconds = begin_seconds + self.fixed_seconds + measured_seconds;
        Trial { planned, begin_seconds, end_seconds, measured_seconds, bytes_per_second: Some(rate) }
    }

    /// A whole search.
    pub fn search(&self, factors: &[Factor]) -> Search {
        let mut search = Search::new(self.plan(factors));
        while let Some(planned) = search.next_trial() {
            let trial = self.measure(planned, search.trials());
            search.add(trial);
        }
        search
    }

    pub fn plan(&self, factors: &[Factor]) -> SearchPlan {
        SearchPlan { factors: factors.to_vec(), budget_seconds: self.budget_seconds, has_others: true }
    }
}

/// Keys like those of a library, with one or two values each.
pub fn factors() -> Vec<Factor> {
    [("a", &["1", "2"][..]), ("b", &["1", "2"]), ("c", &["1", "2"]), ("d", &["1"]), ("e", &["1"]), ("f", &["1"])]
        .map(|(key, values)| Factor { key: key.into(), values: values.iter().map(|v| (*v).into()).collect() })
        .to_vec()
}

/// True if the setting contains these pairs.
pub fn has(setting: &Setting, pairs: &[(&str, &str)]) -> bool {
    pairs.iter().all(|(key, value)| setting.iter().any(|(k, v)| k == key && v == value))
}
