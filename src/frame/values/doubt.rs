//! Evidence in a result that a comparison with it decides nothing: a shared machine, an early end, storage drift, too little time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::interference::INTERFERENCE_THRESHOLD;
use crate::frame::records::{kinds, RunOutcome, Warning};

/// A reason why differences of a run prove nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "reason")]
pub enum Doubt {
    /// More than 5 % of the ranks' CPU time went to others, over all measurements. Shares are 0 to 1.
    Shared {
        /// CPU time of other processes.
        other_process_share: f64,
        /// Steal time: other guests of the hypervisor.
        steal_share: f64,
    },
    /// It ended before its plan.
    Cut {
        /// How it ended.
        outcome: RunOutcome,
    },
    /// The storage drifted by more than 10 % between the two probes.
    StorageDrift {
        /// Direction with the largest drift: `write` or `read`.
        access: String,
        /// End divided by start.
        ratio: f64,
    },
    /// The interval of its value is wider than a factor of two.
    TooShort {
        /// Upper divided by lower end.
        factor: f64,
    },
}

impl Doubt {
    /// True for evidence that several runs supersede: their scatter replaces the intervals within them.
    #[must_use]
    pub fn is_of_single_runs(&self) -> bool {
        matches!(self, Self::TooShort { .. })
    }
}

/// Evidence from the outcome and the warnings of a run. `intervals` are those of its values.
#[must_use]
pub fn doubts(outcome: RunOutcome, warnings: &[Warning], intervals: impl IntoIterator<Item = [f64; 2]>) -> Vec<Doubt> {
    let cut = (outcome != RunOutcome::Complete).then_some(Doubt::Cut { outcome });
    let shared = warnings.iter().filter(|warning| warning.is_kind(&kinds::INTERFERENCE)).find_map(|warning| {
        let [other_process_share, steal_share] =
            ["other_process_share", "steal_share"].map(|name| warning.number(name).unwrap_or(0.0));
        let is_shared = other_process_share.max(steal_share) > INTERFERENCE_THRESHOLD;
        is_shared.then_some(Doubt::Shared { other_process_share, steal_share })
    });
    let drift = warnings.iter().find(|warning| warning.is_kind(&kinds::STORAGE_DRIFT));
    let drift = drift.and_then(|warning| {
        Some(Doubt::StorageDrift { access: warning.text("access").to_owned(), ratio: warning.number("ratio")? })
    });
    let factors = intervals.into_iter().filter_map(|[low, high]| {
        let interval = beff_statistics::bootstrap::Interval { low, high };
        (!interval.is_resolved() && low > 0.0).then_some(high / low)
    });
    let short = factors.reduce(f64::max).map(|factor| Doubt::TooShort { factor });
    cut.into_iter().chain(shared).chain(drift).chain(short).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::records::{AccessMethod, InterferenceRecord};
    use crate::frame::values::interference::interference_warning;

    fn interference(other_process_seconds: f64, steal_seconds: f64, run_queue_wait_seconds: f64) -> Vec<Warning> {
        let record = InterferenceRecord {
            observed_seconds: 10.0,
            cpu_seconds: 20.0,
            steal_seconds,
            other_process_seconds,
            run_queue_wait_seconds: Some(run_queue_wait_seconds),
            ..InterferenceRecord::default()
        };
        interference_warning("pattern", std::iter::once(("a".to_owned(), Some(&record)))).into_iter().collect()
    }

    #[test]
    fn each_reason_has_its_threshold() {
        let of = |warnings: &[Warning]| doubts(RunOutcome::Complete, warnings, []);
        let shared = |other_process_share, steal_share| vec![Doubt::Shared { other_process_share, steal_share }];
        assert_eq!(of(&interference(2.0, 0.0, 0.0)), shared(0.1, 0.0));
        assert_eq!(of(&interference(0.5, 4.0, 0.0)), shared(0.025, 0.2));
        assert_eq!(of(&interference(0.9, 0.9, 4.0)), [], "ranks that wait for each other's CPU are no other process");
        let drift = kinds::STORAGE_DRIFT.warning().with_figure("access", AccessMethod::Read).with_figure("ratio", 0.7);
        assert_eq!(of(&[drift]), [Doubt::StorageDrift { access: "read".into(), ratio: 0.7 }]);
        for outcome in [RunOutcome::Limit, RunOutcome::Interrupted, RunOutcome::Failed, RunOutcome::Killed] {
            assert_eq!(doubts(outcome, &[], []), [Doubt::Cut { outcome }]);
        }
        let short = |intervals: &[[f64; 2]]| doubts(RunOutcome::Complete, &[], intervals.iter().copied());
        assert_eq!(short(&[[1.0, 2.0], [1.0, 3.0], [1.0, 2.5]]), [Doubt::TooShort { factor: 3.0 }]);
        assert_eq!(short(&[[1.0, 2.0]]), []);
    }
}
