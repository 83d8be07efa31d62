//! Schedule of the repetitions of rows.

use std::collections::BTreeMap;

use beff_statistics::mean::MeanEstimate;

use crate::frame::config::RepetitionPolicy;
use crate::imb_io::records::{RowRecord, RowStatus};

/// Safety factor for the time of the next repetition.
const DURATION_MARGIN: f64 = 1.1;

#[derive(Clone, Debug)]
struct MeasuredRow {
    record: u64,
    iterations: u64,
    /// Time of one iteration of the slowest group, for each measurement.
    seconds: Vec<f64>,
    /// Total time of all measurements.
    spent_seconds: f64,
    /// Longest time of a measurement.
    longest_seconds: f64,
}

/// Measured rows by the number of their job. Rank 0 decides for all ranks by its times.
#[derive(Debug)]
pub(super) struct RowRepetitionSchedule {
    repeat: RepetitionPolicy,
    until_share: Option<f64>,
    limit_seconds: f64,
    rows: BTreeMap<u64, MeasuredRow>,
    records: u64,
}

impl RowRepetitionSchedule {
    pub(super) fn new(policy: RepetitionPolicy, until_share: Option<f64>, limit_seconds: f64) -> Self {
        Self { repeat: policy, until_share, limit_seconds, rows: BTreeMap::new(), records: 0 }
    }

    pub(super) fn add_first(&mut self, number: u64, record: &RowRecord) {
        let place = self.records;
        self.records += 1;
        if record.ended == RowStatus::Complete {
            let known = MeasuredRow {
                record: place,
                iterations: record.iterations,
                seconds: Vec::new(),
                spent_seconds: 0.0,
                longest_seconds: 0.0,
            };
            self.rows.insert(number, known);
            self.add_repetition(number, record);
        }
    }

    /// Adds a repetition. A row that failed once is not repeated.
    pub(super) fn add_repetition(&mut self, number: u64, record: &RowRecord) {
        if record.ended != RowStatus::Complete {
            self.rows.remove(&number);
        } else if let Some(known) = self.rows.get_mut(&number) {
            known.seconds.push(record.times.iter().map(|times| times.max_seconds).fold(0.0, f64::max));
            known.spent_seconds += record.real_seconds;
            known.longest_seconds = known.longest_seconds.max(record.real_seconds);
        }
    }

    /// Index of the record and iterations of a row, if it is complete.
    pub(super) fn record_and_iterations(&self, number: u64) -> Option<(u64, u64)> {
        self.rows.get(&number).map(|known| (known.record, known.iterations))
    }

    /// True if one of these rows, which share their rounds, needs a repetition, and none of them lacks the time for it.
    pub(super) fn needs_repetition(&self, numbers: &[u64]) -> bool {
        let known = || numbers.iter().filter_map(|number| self.rows.get(number));
        let is_precise = |row: &MeasuredRow, share: f64| {
            MeanEstimate::of(row.seconds.iter().copied()).is_some_and(|found| found.is_precise_enough(share))
        };
        // A time of 0 has no logarithm.
        let is_over = |row: &MeasuredRow| {
            self.until_share.is_some_and(|share| is_precise(row, share)) || row.seconds.contains(&0.0)
        };
        let fits = |row: &MeasuredRow| row.spent_seconds + DURATION_MARGIN * row.longest_seconds <= self.limit_seconds;
        !known().all(is_over) && (known().all(fits) || self.repeat != RepetitionPolicy::Auto)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imb_io::plan::Mode;
    use crate::imb_io::records::GroupTimes;
    use crate::imb_io::values::fixture;

    fn record(factor: f64, real_seconds: f64) -> RowRecord {
        let mut record = fixture::row("S_Write_Indv", 1, Mode::Aggregate, Some(4096));
        record.times = vec![GroupTimes { max_seconds: 1e-5 * factor, ..record.times[0] }];
        record.real_seconds = real_seconds;
        record
    }

    /// Counts the repetitions of row 7 with noise of this size.
    fn count_repetitions(mut again: RowRepetitionSchedule, noise: f64, real_seconds: f64) -> usize {
        again.add_first(7, &record(1.0, real_seconds));
        let mut number = 0;
        while again.repeat.allows_another(number as u64) && again.needs_repetition(&[7]) && number < 1000 {
            number += 1;
            again.add_repetition(7, &record(1.0 + noise * (number % 3) as f64, real_seconds));
        }
        number
    }

    #[test]
    fn a_row_is_repeated_until_its_interval_is_narrow_or_its_time_is_used() {
        assert_eq!(
            count_repetitions(RowRepetitionSchedule::new(RepetitionPolicy::Auto, Some(0.05), 10.0), 0.001, 0.25),
            4,
            "five in all"
        );
        assert_eq!(
            count_repetitions(RowRepetitionSchedule::new(RepetitionPolicy::Auto, Some(0.05), 10.0), 5.0, 1.0),
            8,
            "nine seconds, and another might exceed the limit"
        );
        assert_eq!(count_repetitions(RowRepetitionSchedule::new(RepetitionPolicy::Times(3), None, 10.0), 5.0, 60.0), 3);
        assert_eq!(
            count_repetitions(RowRepetitionSchedule::new(RepetitionPolicy::Times(30), Some(0.05), 10.0), 0.001, 60.0),
            4
        );
        assert_eq!(count_repetitions(RowRepetitionSchedule::new(RepetitionPolicy::Off, None, 10.0), 5.0, 0.25), 0);
    }

    #[test]
    fn record_indices_count_all_rows_and_failed_rows_are_not_repeated() {
        let mut again = RowRepetitionSchedule::new(RepetitionPolicy::Times(9), None, 10.0);
        let failed = RowRecord { ended: RowStatus::Error("no".into()), ..record(1.0, 0.1) };
        again.add_first(4, &failed);
        again.add_first(5, &record(1.0, 0.1));
        assert_eq!(
            (again.record_and_iterations(4), again.needs_repetition(&[4]), again.record_and_iterations(5)),
            (None, false, Some((1, 1000)))
        );
        again.add_repetition(5, &failed);
        assert!(!again.needs_repetition(&[5]));
        again.add_first(6, &record(0.0, 0.1));
        assert!(!again.needs_repetition(&[6]), "no time has no interval");
    }
    #[test]
    fn rows_of_a_round_are_repeated_together() {
        let mut again = RowRepetitionSchedule::new(RepetitionPolicy::Auto, Some(0.05), 10.0);
        for (number, noise) in [(1, 0.0), (2, 0.5)] {
            again.add_first(number, &record(1.0, 0.1));
            (0..5).for_each(|n| again.add_repetition(number, &record(1.0 + noise * f64::from(n), 0.1)));
        }
        assert!(!again.needs_repetition(&[1]) && again.needs_repetition(&[2]) && again.needs_repetition(&[1, 2]));
        again.add_repetition(1, &record(1.0, 9.0));
        assert!(!again.needs_repetition(&[1, 2]), "the time of one is used");
        assert!(!again.needs_repetition(&[8]), "unknown");
    }
}
