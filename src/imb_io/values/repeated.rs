//! Confidence intervals of repeated rows.

use beff_statistics::mean::MeanEstimate;
use schemars::JsonSchema;
use serde::Serialize;

use crate::frame::units::mb_per_second;
use crate::imb_io::records::{ImbResult, RowRecord, RowStatus};

/// Statistics over all measurements of a row, including the first: time of one iteration, slowest rank of the slowest group.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RepeatedRow {
    /// Number of measurements.
    #[schemars(range(min = 2))]
    pub measurements: u64,
    /// Geometric mean.
    pub mean_seconds: f64,
    /// 95 % confidence interval of that mean within this run (Student's t on the logarithms); None for fewer than 3 measurements.
    pub interval_seconds: Option<[f64; 2]>,
    /// Upper half-width, as a share of the mean; None if unknown.
    pub half_width_share: Option<f64>,
    /// X / mean in 1e6 bytes/s; None: Open_Close, or X = 0.
    pub mean_mb_per_second: Option<f64>,
    /// Its 95 % confidence interval; None if unknown.
    pub interval_mb_per_second: Option<[f64; 2]>,
}

/// None: the row is not complete, was not repeated, or has a time of 0.
pub(super) fn of(record: &RowRecord, again: &[&RowRecord]) -> Option<RepeatedRow> {
    let is_complete = |r: &&RowRecord| r.ended == RowStatus::Complete;
    let all: Vec<&RowRecord> = [record].into_iter().chain(again.iter().copied()).filter(is_complete).collect();
    if record.ended != RowStatus::Complete || all.len() < 2 {
        return None;
    }
    let slowest = |r: &&RowRecord| r.times.iter().map(|times| times.max_seconds).fold(0.0, f64::max);
    let found = MeanEstimate::of(all.iter().map(slowest))?;
    let rate = |seconds: f64| record.sample_bytes.filter(|bytes| *bytes > 0).and_then(|b| mb_per_second(b, seconds));
    let ends = found.interval.and_then(|[low, high]| Some([rate(high)?, rate(low)?]));
    Some(RepeatedRow {
        measurements: found.measurements,
        mean_seconds: found.mean,
        interval_seconds: found.interval,
        half_width_share: found.half_width_share(),
        mean_mb_per_second: rate(found.mean),
        interval_mb_per_second: ends,
    })
}

/// Repetitions of each row, in the order of the rows. Those of unknown rows (in a damaged file) are ignored.
pub(super) fn by_row(result: &ImbResult) -> Vec<Vec<&RowRecord>> {
    let mut all = vec![Vec::new(); result.rows.len()];
    for again in &result.repetitions {
        if let Some(own) = usize::try_from(again.row).ok().and_then(|row| all.get_mut(row)) {
            own.push(&again.measurement);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::records::{JournaledResult, RunOutcome};
    use crate::imb_io::plan::Mode;
    use crate::imb_io::records::{ImbLine, RowRepetition};
    use crate::imb_io::values::{derive, fixture, kinds, VerificationVerdict};

    fn result(factors: &[f64]) -> ImbResult {
        let mut result = fixture::run();
        result.rows.push(fixture::row("P_Read_Expl", 2, Mode::Aggregate, Some(4096)));
        result.rows.push(fixture::row("S_Write_Indv", 1, Mode::Aggregate, Some(1 << 20)));
        result.setup.rows = 2;
        for factor in factors {
            let mut measured = result.rows[1].clone();
            measured.times.iter_mut().for_each(|times| times.max_seconds *= factor);
            result.apply(ImbLine::Repetition(Box::new(RowRepetition { row: 1, measurement: measured })));
        }
        result
    }

    #[test]
    fn a_repeated_row_has_an_interval_and_keeps_its_first_measurement() {
        let (alone, several) = (derive(&result(&[])), derive(&result(&[2.0, 4.0])));
        let found = several.rows[1].repeated.unwrap();
        let first = several.rows[1].groups[0].times.max_seconds;
        assert_eq!(alone.rows[1].groups, several.rows[1].groups);
        assert_eq!((found.measurements, several.rows[0].repeated, alone.rows[1].repeated), (3, None, None));
        assert!((found.mean_seconds / (2.0 * first) - 1.0).abs() < 1e-9, "{found:?}");
        let [low, high] = found.interval_seconds.unwrap();
        let [least, most] = found.interval_mb_per_second.unwrap();
        assert!(low < found.mean_seconds && found.mean_seconds < high);
        assert!((least * high / 1.048_576 - 1.0).abs() < 1e-9 && (most * low / 1.048_576 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn two_measurements_give_no_interval_and_failed_ones_do_not_count() {
        let two = derive(&result(&[1.5])).rows[1].repeated.unwrap();
        assert_eq!((two.measurements, two.interval_seconds, two.interval_mb_per_second), (2, None, None));
        let mut failed = result(&[1.5, 1.25]);
        failed.repetitions[1].measurement.ended = RowStatus::Error("no".into());
        failed.repetitions.push(RowRepetition { row: 99, ..failed.repetitions[0].clone() });
        assert_eq!(derive(&failed).rows[1].repeated.unwrap().measurements, 2);
    }

    /// By the rule that ends the repetitions of a row: at least five measurements, and narrow.
    #[test]
    fn rows_with_a_wider_interval_than_requested_are_reported() {
        let reported = |factors: &[f64], until: Option<f64>, outcome: RunOutcome| {
            let mut result = result(factors);
            result.rows.truncate(2);
            result.config.until_share = until;
            result.ending.outcome = outcome;
            let found = derive(&result).warnings.into_iter().find(|w| w.is_kind(&kinds::NOT_NARROW))?;
            let number = |name: &str| found.figures[name].as_u64().unwrap();
            Some((number("rows"), number("of"), number("measurements"), found.number("half_width_share").is_some()))
        };
        let (complete, narrow, wide) = (RunOutcome::Complete, [1.001, 0.999, 1.0, 1.002], [2.0, 4.0, 3.0, 1.0]);
        // The first row was measured once.
        assert_eq!(reported(&narrow, Some(0.05), complete), Some((1, 2, 1, false)));
        assert_eq!(reported(&wide, Some(0.05), complete), Some((2, 2, 1, false)));
        assert_eq!(reported(&narrow[..3], Some(0.05), complete).map(|t| t.0), Some(2), "four are too few");
        assert_eq!(reported(&narrow, None, complete), None);
        assert_eq!(reported(&narrow, Some(0.05), RunOutcome::Interrupted), None);
        let mut second = result(&wide);
        second.rows = second.rows.drain(1..2).collect();
        second.repetitions.iter_mut().for_each(|again| again.row = 0);
        let mut is_reported = |until| {
            second.config.until_share = Some(until);
            let found = derive(&second).warnings.into_iter().find(|w| w.is_kind(&kinds::NOT_NARROW));
            found.is_some_and(|w| w.number("measurements") == Some(5.0) && w.cause.contains(" has +- "))
        };
        assert!(is_reported(0.05) && !is_reported(50.0));
    }

    #[test]
    fn the_end_of_the_repetitions_does_not_change_the_verdict() {
        let verdict = |factors: &[f64], outcome: RunOutcome| {
            let mut result = result(factors);
            result.ending.outcome = outcome;
            derive(&result).verdict.verdict
        };
        for outcome in [RunOutcome::Interrupted, RunOutcome::Killed] {
            assert_eq!(verdict(&[], outcome), VerificationVerdict::NotComplete);
            assert_eq!(verdict(&[1.0], outcome), VerificationVerdict::Verified);
        }
        let mut wrong = result(&[1.0]);
        wrong.repetitions[0].measurement.bytes_wrong = 1;
        assert_eq!(derive(&wrong).verdict.verdict, VerificationVerdict::WrongData);
        assert!(wrong.is_corrupt());
    }
}
