//! What stands out in a run of IMB-IO: factors between rows that should be alike.

use super::RowValue;
use crate::frame::values::NULL_BACKEND;
use crate::imb_io::plan::Mode;
use crate::imb_io::records::{ImbResult, RowRecord};

/// Smaller factors do not stand out: between backends and modes, and between repetitions.
const FACTOR: f64 = 2.0;
const FACTOR_OF_REPETITIONS: f64 = 10.0;

/// More are not looked for.
pub const MOST: usize = 3;

/// With what a row is compared.
#[derive(Clone, Debug, PartialEq)]
pub enum Against {
    /// The same row through this backend, the best.
    Backend(String),
    /// The same row with one sync behind all repetitions instead of one behind each.
    Aggregate,
    /// The slowest repetition against the median one.
    Median,
}

/// Something that stands out.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Place of the slow row among the records.
    pub row: usize,
    /// With what it is compared.
    pub against: Against,
    /// How many times slower.
    pub factor: f64,
}

/// At most one of a kind, the largest factors first. Of each benchmark the largest size counts; reads from a cache do not.
#[must_use]
pub fn findings(result: &ImbResult, values: &[RowValue]) -> Vec<Finding> {
    let rows: Vec<Rated<'_>> = largest(result, values);
    let kinds = [of_backends(&rows), of_modes(&rows), of_repetitions(&rows)];
    let mut found: Vec<Finding> = kinds.into_iter().flatten().collect();
    found.sort_by(|a, b| b.factor.total_cmp(&a.factor));
    found.truncate(MOST);
    found
}

/// A row with its bandwidth, bytes per second by 1e6.
#[derive(Clone, Copy)]
struct Rated<'a> {
    row: usize,
    record: &'a RowRecord,
    rate: f64,
}

/// Rows that have a bandwidth of storage, of each benchmark, backend, ranks and mode that of the largest size.
fn largest<'a>(result: &'a ImbResult, values: &[RowValue]) -> Vec<Rated<'a>> {
    let mut found: Vec<Rated<'a>> = Vec::new();
    for (row, (record, value)) in result.rows.iter().zip(values).enumerate() {
        let rate = value.groups.first().and_then(|group| group.mb_per_second).filter(|rate| *rate > 0.0);
        let is_stored = !value.has_source || value.cached_share.is_some() && !value.cached;
        let (Some(rate), true) = (rate, is_stored && record.backend != NULL_BACKEND) else { continue };
        let own = Rated { row, record, rate };
        let is_same = |known: &&mut Rated<'_>| {
            is_alike(known.record, record) && known.record.backend == record.backend && known.record.mode == record.mode
        };
        match found.iter_mut().find(is_same) {
            Some(known) if known.record.sample_bytes < record.sample_bytes => *known = own,
            Some(_) => {}
            None => found.push(own),
        }
    }
    found
}

/// The same benchmark on as many ranks.
fn is_alike(a: &RowRecord, b: &RowRecord) -> bool {
    (&a.benchmark, a.ranks, a.groups) == (&b.benchmark, b.ranks, b.groups)
}

fn worst(found: impl Iterator<Item = Finding>, least: f64) -> Option<Finding> {
    found.filter(|f| f.factor.is_finite() && f.factor >= least).max_by(|a, b| a.factor.total_cmp(&b.factor))
}

fn of_backends(rows: &[Rated<'_>]) -> Option<Finding> {
    let of = |slow: &Rated<'_>| {
        let rivals = rows.iter().filter(|other| {
            is_alike(slow.record, other.record)
                && (slow.record.mode, slow.record.sample_bytes) == (other.record.mode, other.record.sample_bytes)
        });
        let best = rivals.max_by(|a, b| a.rate.total_cmp(&b.rate))?;
        let against = Against::Backend(best.record.backend.clone());
        Some(Finding { row: slow.row, against, factor: best.rate / slow.rate })
    };
    worst(rows.iter().filter_map(of), FACTOR)
}

fn of_modes(rows: &[Rated<'_>]) -> Option<Finding> {
    let of = |slow: &Rated<'_>| {
        let is_other = |other: &&Rated<'_>| {
            other.record.mode == Mode::Aggregate
                && is_alike(slow.record, other.record)
                && (&slow.record.backend, slow.record.sample_bytes)
                    == (&other.record.backend, other.record.sample_bytes)
        };
        let fast = rows.iter().find(is_other)?;
        Some(Finding { row: slow.row, against: Against::Aggregate, factor: fast.rate / slow.rate })
    };
    worst(rows.iter().filter(|r| r.record.mode == Mode::NonAggregate).filter_map(of), FACTOR)
}

fn of_repetitions(rows: &[Rated<'_>]) -> Option<Finding> {
    let of = |slow: &Rated<'_>| {
        let times = slow.record.repetition_times?;
        Some(Finding { row: slow.row, against: Against::Median, factor: times.max_seconds / times.median_seconds })
    };
    worst(rows.iter().filter_map(of), FACTOR_OF_REPETITIONS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imb_io::plan::Mode::{Aggregate, NonAggregate};
    use crate::imb_io::records::RowEnd;
    use crate::imb_io::values::derive;
    use crate::imb_io::values::fixture::{row, run};

    const MIB: Option<u64> = Some(1 << 20);

    fn of(rows: Vec<RowRecord>) -> Vec<Finding> {
        let mut result = run();
        result.rows = rows;
        findings(&result, &derive(&result).rows)
    }

    fn slower(mut record: RowRecord, factor: f64) -> RowRecord {
        record.times.iter_mut().for_each(|t| t.max_seconds *= factor);
        record
    }

    #[test]
    fn where_all_is_alike_nothing_stands_out() {
        assert_eq!(of(vec![row("S_Write_Indv", 1, Aggregate, MIB), row("S_Write_Indv", 1, NonAggregate, MIB)]), []);
        assert_eq!(of(Vec::new()), []);
    }

    #[test]
    fn syncs_behind_each_repetition_are_found() {
        let each = slower(row("S_Write_Indv", 1, NonAggregate, MIB), 8.0);
        let found = of(vec![row("S_Write_Indv", 1, Aggregate, MIB), each.clone()]);
        assert_eq!((found.len(), found[0].row, &found[0].against), (1, 1, &Against::Aggregate));
        assert!((found[0].factor - 8.0).abs() < 1e-9, "{found:?}");
        // Only the largest size counts, and only of rows that are complete.
        let small = row("S_Write_Indv", 1, Aggregate, Some(1));
        let failed = RowRecord { ended: RowEnd::Interrupted, ..row("S_Write_Indv", 1, Aggregate, MIB) };
        assert_eq!(of(vec![small, failed, each]), []);
    }

    #[test]
    fn a_slow_backend_is_compared_with_the_best() {
        let posix = RowRecord { backend: "posix".into(), ..row("P_Write_Expl", 2, Aggregate, MIB) };
        let found = of(vec![slower(row("P_Write_Expl", 2, Aggregate, MIB), 3.0), posix]);
        assert_eq!((found.len(), found[0].row, &found[0].against), (1, 0, &Against::Backend("posix".into())));
        assert!((found[0].factor - 3.0).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn a_slow_repetition_is_found() {
        let mut record = row("P_Write_Expl", 2, Aggregate, MIB);
        record.repetition_times.iter_mut().for_each(|t| t.max_seconds = 100.0 * t.median_seconds);
        assert!(matches!(of(vec![record])[..], [Finding { against: Against::Median, .. }]));
    }

    #[test]
    fn what_came_from_a_cache_is_no_finding() {
        let slow = slower(row("P_Read_Expl", 2, Aggregate, MIB), 3.0);
        let mut posix = RowRecord { backend: "posix".into(), ..row("P_Read_Expl", 2, Aggregate, MIB) };
        assert_eq!(of(vec![slow.clone(), posix.clone()]).len(), 1);
        posix.evidence = None;
        assert_eq!(of(vec![slow, posix]), []);
    }
}
