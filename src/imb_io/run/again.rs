//! Which rows are measured again, and which are known well enough.

use std::collections::BTreeMap;

use beff_statistics::repeated::Repeated;

use crate::frame::config::Repeat;
use crate::imb_io::records::{RowEnd, RowRecord};

/// A row may take longer than it did.
const LONGER: f64 = 1.1;

/// A complete row.
#[derive(Clone, Debug)]
struct Known {
    /// Its place among the records.
    record: u64,
    /// Its repetitions.
    repetitions: u64,
    /// Of one repetition, the slowest group's, of each time it was measured.
    seconds: Vec<f64>,
    /// All of its times together.
    spent_seconds: f64,
    /// The longest of them.
    longest_seconds: f64,
}

/// The rows that were measured, by the number of their job. The times are those that rank 0 knows: it decides for the others.
#[derive(Debug)]
pub(super) struct Again {
    repeat: Repeat,
    until_share: Option<f64>,
    limit_seconds: f64,
    rows: BTreeMap<u64, Known>,
    records: u64,
}

impl Again {
    pub(super) fn new(repeat: Repeat, until_share: Option<f64>, limit_seconds: f64) -> Self {
        Self { repeat, until_share, limit_seconds, rows: BTreeMap::new(), records: 0 }
    }

    /// A row was measured for the first time.
    pub(super) fn first(&mut self, number: u64, record: &RowRecord) {
        let place = self.records;
        self.records += 1;
        if record.ended == RowEnd::Complete {
            let known = Known {
                record: place,
                repetitions: record.repetitions,
                seconds: Vec::new(),
                spent_seconds: 0.0,
                longest_seconds: 0.0,
            };
            self.rows.insert(number, known);
            self.take_in(number, record);
        }
    }

    /// It was measured once more. What failed once is not tried again.
    pub(super) fn take_in(&mut self, number: u64, record: &RowRecord) {
        if record.ended != RowEnd::Complete {
            self.rows.remove(&number);
        } else if let Some(known) = self.rows.get_mut(&number) {
            known.seconds.push(record.times.iter().map(|times| times.max_seconds).fold(0.0, f64::max));
            known.spent_seconds += record.real_seconds;
            known.longest_seconds = known.longest_seconds.max(record.real_seconds);
        }
    }

    /// Place among the records and repetitions of a row, if it is complete.
    pub(super) fn of(&self, number: u64) -> Option<(u64, u64)> {
        self.rows.get(&number).map(|known| (known.record, known.repetitions))
    }

    /// Whether it is measured once more.
    pub(super) fn wants(&self, number: u64) -> bool {
        let Some(known) = self.rows.get(&number) else { return false };
        let is_known =
            |share: f64| Repeated::of(known.seconds.iter().copied()).is_some_and(|found| found.is_known_within(share));
        // What took no time at all has no logarithm, and never will.
        let is_over = self.until_share.is_some_and(is_known) || known.seconds.contains(&0.0);
        let fits = known.spent_seconds + LONGER * known.longest_seconds <= self.limit_seconds;
        !is_over && (fits || self.repeat != Repeat::Auto)
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

    /// Measures row 7 until it is not wanted any more, with noise of this size; how often.
    fn play(mut again: Again, noise: f64, real_seconds: f64) -> usize {
        again.first(7, &record(1.0, real_seconds));
        let mut number = 0;
        while again.repeat.goes_on_after(number as u64) && again.wants(7) && number < 1000 {
            number += 1;
            again.take_in(7, &record(1.0 + noise * (number % 3) as f64, real_seconds));
        }
        number
    }

    #[test]
    fn a_row_is_measured_until_it_is_known_or_its_time_is_over() {
        assert_eq!(play(Again::new(Repeat::Auto, Some(0.05), 10.0), 0.001, 0.25), 4, "five in all");
        assert_eq!(
            play(Again::new(Repeat::Auto, Some(0.05), 10.0), 5.0, 1.0),
            8,
            "nine seconds, and the next might not fit"
        );
        assert_eq!(play(Again::new(Repeat::Times(3), None, 10.0), 5.0, 60.0), 3);
        assert_eq!(play(Again::new(Repeat::Times(30), Some(0.05), 10.0), 0.001, 60.0), 4);
        assert_eq!(play(Again::new(Repeat::Off, None, 10.0), 5.0, 0.25), 0);
    }

    #[test]
    fn places_are_counted_over_all_rows_and_what_failed_is_left_alone() {
        let mut again = Again::new(Repeat::Times(9), None, 10.0);
        let failed = RowRecord { ended: RowEnd::Error("no".into()), ..record(1.0, 0.1) };
        again.first(4, &failed);
        again.first(5, &record(1.0, 0.1));
        assert_eq!((again.of(4), again.wants(4), again.of(5)), (None, false, Some((1, 1000))));
        again.take_in(5, &failed);
        assert!(!again.wants(5));
        again.first(6, &record(0.0, 0.1));
        assert!(!again.wants(6), "no time has no interval");
    }
}
