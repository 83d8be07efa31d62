//! Account of the wall-clock time: timed regions, and what is outside of them.

use super::TimeAccount;
use crate::b_eff_io::records::{PatternRecord, RunResult, TypeRecord};

/// The account of a result; None if the times before the measurement are not recorded, or if they are those of several runs.
pub(super) fn account(result: &RunResult) -> Option<TimeAccount> {
    let ending = &result.ending;
    let set_up = ending.set_up.filter(|_| result.continuations.is_empty())?;
    let of_files = |t: &TypeRecord| t.open_seconds + t.close_seconds;
    let timed_seconds = result.patterns.iter().map(PatternRecord::seconds).sum::<f64>()
        + result.repetitions.iter().map(|r| r.measurement.seconds()).sum::<f64>()
        + result.ordered.iter().map(|o| o.measurement.seconds()).sum::<f64>()
        + result.types.iter().map(of_files).sum::<f64>()
        + result.ordered_types.iter().map(|o| of_files(&o.measurement)).sum::<f64>()
        + result.type_repetitions.iter().map(|r| of_files(&r.measurement)).sum::<f64>();
    let probe_seconds: f64 = result.probes.iter().map(|probe| probe.seconds).sum();
    let start_seconds = set_up.start_seconds.unwrap_or(0.0);
    let before_seconds = start_seconds + set_up.survey_seconds + set_up.preparation_seconds;
    let total_seconds = before_seconds + probe_seconds + ending.real_seconds + ending.cleanup_seconds;
    let named_seconds = timed_seconds + ending.calibrate_seconds + ending.full_verify_seconds + set_up.journal_seconds;
    Some(TimeAccount {
        total_seconds,
        timed_seconds,
        // Times of the slowest rank may exceed those of rank 0 by the cost of a barrier.
        outside_share: if total_seconds > 0.0 { (1.0 - timed_seconds / total_seconds).max(0.0) } else { 0.0 },
        start_seconds,
        survey_seconds: set_up.survey_seconds,
        preparation_seconds: set_up.preparation_seconds + ending.calibrate_seconds + probe_seconds,
        verification_seconds: ending.full_verify_seconds,
        writing_seconds: set_up.journal_seconds,
        agreement_seconds: (ending.real_seconds - named_seconds).max(0.0),
        removal_seconds: ending.cleanup_seconds,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::report::fixtures;

    #[test]
    fn the_causes_add_up_to_the_total() {
        for mut result in [fixtures::ladder(), fixtures::failed()] {
            let timed: f64 = result.patterns.iter().map(PatternRecord::seconds).sum();
            result.ending.real_seconds += timed + 100.0;
            let account = account(&result);
            let Some(a) = account else {
                assert_eq!(result.ending.set_up, None);
                continue;
            };
            let outside = a.start_seconds
                + a.survey_seconds
                + a.preparation_seconds
                + a.verification_seconds
                + a.writing_seconds
                + a.agreement_seconds
                + a.removal_seconds;
            assert!((a.timed_seconds + outside - a.total_seconds).abs() < 1e-9, "{a:?}");
            assert!((a.outside_share * a.total_seconds - outside).abs() < 1e-6, "{a:?}");
            assert!(a.timed_seconds >= timed && a.agreement_seconds > 0.0);
            result.ending.set_up = None;
            assert_eq!(super::account(&result), None);
        }
    }
}
