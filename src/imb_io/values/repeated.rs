//! How sure a row is that was measured several times.

use beff_statistics::repeated::Repeated;
use schemars::JsonSchema;
use serde::Serialize;

use crate::frame::units::mb_per_second;
use crate::imb_io::records::{ImbResult, RowEnd, RowRecord};

/// A row over all times it was measured, the first one included: of one repetition, the slowest rank of the slowest group.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RepeatedRow {
    /// How often it was measured.
    #[schemars(range(min = 2))]
    pub measured: u64,
    /// Geometric mean.
    pub mean_seconds: f64,
    /// 95 % interval of that mean within this run (Student's t on the logarithms); None: not known, measured fewer than 3 times.
    pub interval_seconds: Option<[f64; 2]>,
    /// How far its upper end is from the mean, as a share; None: not known.
    pub reach_share: Option<f64>,
    /// X / mean in 1e6 bytes/s; None: Open_Close, or nothing is moved.
    pub mean_mb_per_second: Option<f64>,
    /// Its 95 % interval; None: not known.
    pub interval_mb_per_second: Option<[f64; 2]>,
}

/// None: the row is not complete, was not measured again, or took no time.
pub(super) fn of(record: &RowRecord, again: &[&RowRecord]) -> Option<RepeatedRow> {
    let is_complete = |r: &&RowRecord| r.ended == RowEnd::Complete;
    let all: Vec<&RowRecord> = [record].into_iter().chain(again.iter().copied()).filter(is_complete).collect();
    if record.ended != RowEnd::Complete || all.len() < 2 {
        return None;
    }
    let slowest = |r: &&RowRecord| r.times.iter().map(|times| times.max_seconds).fold(0.0, f64::max);
    let found = Repeated::of(all.iter().map(slowest))?;
    let rate = |seconds: f64| record.sample_bytes.filter(|bytes| *bytes > 0).and_then(|b| mb_per_second(b, seconds));
    let ends = found.interval.and_then(|[low, high]| Some([rate(high)?, rate(low)?]));
    Some(RepeatedRow {
        measured: found.measured,
        mean_seconds: found.mean,
        interval_seconds: found.interval,
        reach_share: found.reach(),
        mean_mb_per_second: rate(found.mean),
        interval_mb_per_second: ends,
    })
}

/// The repeats of each row, in the order of the rows. Those of a row that is not there are of a damaged file.
pub(super) fn by_row(result: &ImbResult) -> Vec<Vec<&RowRecord>> {
    let mut all = vec![Vec::new(); result.rows.len()];
    for again in &result.repeats {
        if let Some(own) = usize::try_from(again.row).ok().and_then(|row| all.get_mut(row)) {
            own.push(&again.measured);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::records::{Outcome, Record};
    use crate::imb_io::plan::Mode;
    use crate::imb_io::records::{ImbLine, RowRepeat};
    use crate::imb_io::values::{derive, fixture, kinds, Verdict};

    fn result(factors: &[f64]) -> ImbResult {
        let mut result = fixture::run();
        result.rows.push(fixture::row("P_Read_Expl", 2, Mode::Aggregate, Some(4096)));
        result.rows.push(fixture::row("S_Write_Indv", 1, Mode::Aggregate, Some(1 << 20)));
        result.setup.rows = 2;
        for factor in factors {
            let mut measured = result.rows[1].clone();
            measured.times.iter_mut().for_each(|times| times.max_seconds *= factor);
            result.absorb(ImbLine::Repeat(Box::new(RowRepeat { row: 1, measured })));
        }
        result
    }

    #[test]
    fn a_row_that_was_measured_again_has_an_interval_and_stays_what_it_was() {
        let (alone, several) = (derive(&result(&[])), derive(&result(&[2.0, 4.0])));
        let found = several.rows[1].repeated.unwrap();
        let first = several.rows[1].groups[0].times.max_seconds;
        assert_eq!(alone.rows[1].groups, several.rows[1].groups);
        assert_eq!((found.measured, several.rows[0].repeated, alone.rows[1].repeated), (3, None, None));
        assert!((found.mean_seconds / (2.0 * first) - 1.0).abs() < 1e-9, "{found:?}");
        let [low, high] = found.interval_seconds.unwrap();
        let [least, most] = found.interval_mb_per_second.unwrap();
        assert!(low < found.mean_seconds && found.mean_seconds < high);
        assert!((least * high / 1.048_576 - 1.0).abs() < 1e-9 && (most * low / 1.048_576 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn two_say_nothing_and_what_failed_does_not_count() {
        let two = derive(&result(&[1.5])).rows[1].repeated.unwrap();
        assert_eq!((two.measured, two.interval_seconds, two.interval_mb_per_second), (2, None, None));
        let mut failed = result(&[1.5, 1.25]);
        failed.repeats[1].measured.ended = RowEnd::Error("no".into());
        failed.repeats.push(RowRepeat { row: 99, ..failed.repeats[0].clone() });
        assert_eq!(derive(&failed).rows[1].repeated.unwrap().measured, 2);
    }

    /// By the rule that ends the repeats of a row: five measurements, and narrow.
    #[test]
    fn rows_that_are_not_known_as_well_as_asked_are_told() {
        let told = |factors: &[f64], until: Option<f64>, outcome: Outcome| {
            let mut result = result(factors);
            result.rows.truncate(2);
            result.config.until_share = until;
            result.ending.outcome = outcome;
            let found = derive(&result).warnings.into_iter().find(|w| w.is(&kinds::NOT_NARROW))?;
            let number = |name: &str| found.figures[name].as_u64().unwrap();
            Some((number("rows"), number("of"), number("measured"), found.number("reach_share").is_some()))
        };
        let (complete, narrow, wide) = (Outcome::Complete, [1.001, 0.999, 1.0, 1.002], [2.0, 4.0, 3.0, 1.0]);
        // The first row was measured once.
        assert_eq!(told(&narrow, Some(0.05), complete), Some((1, 2, 1, false)));
        assert_eq!(told(&wide, Some(0.05), complete), Some((2, 2, 1, false)));
        assert_eq!(told(&narrow[..3], Some(0.05), complete).map(|t| t.0), Some(2), "four are too few");
        assert_eq!(told(&narrow, None, complete), None);
        assert_eq!(told(&narrow, Some(0.05), Outcome::Interrupted), None);
        let mut second = result(&wide);
        second.rows = second.rows.drain(1..2).collect();
        second.repeats.iter_mut().for_each(|again| again.row = 0);
        let mut is_told = |until| {
            second.config.until_share = Some(until);
            let found = derive(&second).warnings.into_iter().find(|w| w.is(&kinds::NOT_NARROW));
            found.is_some_and(|w| w.number("measured") == Some(5.0) && w.cause.contains(" reaches "))
        };
        assert!(is_told(0.05) && !is_told(50.0));
    }

    #[test]
    fn what_ends_the_repeats_leaves_the_rows_as_they_are() {
        let verdict = |repeats: &[f64], outcome: Outcome| {
            let mut result = result(repeats);
            result.ending.outcome = outcome;
            derive(&result).verdict.verdict
        };
        for outcome in [Outcome::Interrupted, Outcome::Killed] {
            assert_eq!(verdict(&[], outcome), Verdict::NotComplete);
            assert_eq!(verdict(&[1.0], outcome), Verdict::Verified);
        }
        let mut wrong = result(&[1.0]);
        wrong.repeats[0].measured.bytes_wrong = 1;
        assert_eq!(derive(&wrong).verdict.verdict, Verdict::WrongData);
        assert!(wrong.is_corrupt());
    }
}
