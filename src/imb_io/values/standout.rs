//! Findings that stand out in a run of IMB-IO: large factors between comparable rows.

use super::RowValue;
use crate::frame::backends;
use crate::frame::values::NULL_BACKEND;
use crate::imb_io::plan::Mode;
use crate::imb_io::records::{ImbResult, RowRecord};

/// Minimum factors of a finding: between backends and modes, and between iterations.
const MIN_FACTOR: f64 = 2.0;
const MIN_ITERATION_FACTOR: f64 = 10.0;

/// Maximum number of findings.
pub const MAX_FINDINGS: usize = 3;

/// Reference of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub enum SlowdownReference {
    /// The same row through the best backend.
    Backend(String),
    /// The same row with one sync after all iterations instead of one after each.
    Aggregate,
    /// The slowest iteration compared with the median.
    Median,
}

/// A finding.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Index of the slow row.
    pub row: usize,
    /// Reference.
    pub reference: SlowdownReference,
    /// Slowdown factor.
    pub factor: f64,
}

/// At most one finding of each kind, the largest factors first, for the largest size of each benchmark, without reads from a
/// cache.
#[must_use]
pub fn findings(result: &ImbResult, values: &[RowValue]) -> Vec<Finding> {
    let rows: Vec<RatedRow<'_>> = rows_of_largest_size(result, values);
    let kinds = [slowest_backend(&rows), slowest_mode(&rows), slowest_iteration(&rows)];
    let mut found: Vec<Finding> = kinds.into_iter().flatten().collect();
    found.sort_by(|a, b| b.factor.total_cmp(&a.factor));
    found.truncate(MAX_FINDINGS);
    found
}

/// A row with its bandwidth in 1e6 bytes/s.
#[derive(Clone, Copy)]
struct RatedRow<'a> {
    row: usize,
    record: &'a RowRecord,
    rate: f64,
}

/// Rows with a bandwidth of storage: the largest size for each benchmark, backend, number of ranks and mode.
fn rows_of_largest_size<'a>(result: &'a ImbResult, values: &[RowValue]) -> Vec<RatedRow<'a>> {
    let mut found: Vec<RatedRow<'a>> = Vec::new();
    for (row, (record, value)) in result.rows.iter().zip(values).enumerate() {
        let rate = value.groups.first().and_then(|group| group.mb_per_second).filter(|rate| *rate > 0.0);
        let is_stored = !value.has_source || value.cached_share.is_some() && !value.cached;
        let (Some(rate), true) = (rate, is_stored && record.backend != NULL_BACKEND) else { continue };
        let own = RatedRow { row, record, rate };
        let is_same = |known: &&mut RatedRow<'_>| {
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

fn is_alike(a: &RowRecord, b: &RowRecord) -> bool {
    (&a.benchmark, a.ranks, a.groups) == (&b.benchmark, b.ranks, b.groups)
}

fn worst(found: impl Iterator<Item = Finding>, least: f64) -> Option<Finding> {
    found.filter(|f| f.factor.is_finite() && f.factor >= least).max_by(|a, b| a.factor.total_cmp(&b.factor))
}

fn slowest_backend(rows: &[RatedRow<'_>]) -> Option<Finding> {
    let of = |slow: &RatedRow<'_>| {
        let rivals = rows.iter().filter(|other| {
            is_alike(slow.record, other.record)
                && backends::backend_of(&slow.record.backend) != backends::backend_of(&other.record.backend)
                && (slow.record.mode, slow.record.sample_bytes) == (other.record.mode, other.record.sample_bytes)
        });
        let best = rivals.max_by(|a, b| a.rate.total_cmp(&b.rate))?;
        let against = SlowdownReference::Backend(best.record.backend.clone());
        Some(Finding { row: slow.row, reference: against, factor: best.rate / slow.rate })
    };
    worst(rows.iter().filter_map(of), MIN_FACTOR)
}

fn slowest_mode(rows: &[RatedRow<'_>]) -> Option<Finding> {
    let of = |slow: &RatedRow<'_>| {
        let is_other = |other: &&RatedRow<'_>| {
            other.record.mode == Mode::Aggregate
                && is_alike(slow.record, other.record)
                && (&slow.record.backend, slow.record.sample_bytes)
                    == (&other.record.backend, other.record.sample_bytes)
        };
        let fast = rows.iter().find(is_other)?;
        Some(Finding { row: slow.row, reference: SlowdownReference::Aggregate, factor: fast.rate / slow.rate })
    };
    worst(rows.iter().filter(|r| r.record.mode == Mode::NonAggregate).filter_map(of), MIN_FACTOR)
}

fn slowest_iteration(rows: &[RatedRow<'_>]) -> Option<Finding> {
    let of = |slow: &RatedRow<'_>| {
        let times = slow.record.iteration_times?;
        Some(Finding {
            row: slow.row,
            reference: SlowdownReference::Median,
            factor: times.max_seconds / times.median_seconds,
        })
    };
    worst(rows.iter().filter_map(of), MIN_ITERATION_FACTOR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imb_io::plan::Mode::{Aggregate, NonAggregate};
    use crate::imb_io::records::RowStatus;
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
    fn equal_rows_give_no_finding() {
        assert_eq!(of(vec![row("S_Write_Indv", 1, Aggregate, MIB), row("S_Write_Indv", 1, NonAggregate, MIB)]), []);
        assert_eq!(of(Vec::new()), []);
    }

    #[test]
    fn syncs_after_each_iteration_are_reported() {
        let each = slower(row("S_Write_Indv", 1, NonAggregate, MIB), 8.0);
        let found = of(vec![row("S_Write_Indv", 1, Aggregate, MIB), each.clone()]);
        assert_eq!((found.len(), found[0].row, &found[0].reference), (1, 1, &SlowdownReference::Aggregate));
        assert!((found[0].factor - 8.0).abs() < 1e-9, "{found:?}");
        // Only the largest size of complete rows counts.
        let small = row("S_Write_Indv", 1, Aggregate, Some(1));
        let failed = RowRecord { ended: RowStatus::Interrupted, ..row("S_Write_Indv", 1, Aggregate, MIB) };
        assert_eq!(of(vec![small, failed, each]), []);
    }

    #[test]
    fn a_slow_backend_is_compared_with_the_best() {
        let posix = RowRecord { backend: "posix".into(), ..row("P_Write_Expl", 2, Aggregate, MIB) };
        let found = of(vec![slower(row("P_Write_Expl", 2, Aggregate, MIB), 3.0), posix]);
        assert_eq!(
            (found.len(), found[0].row, &found[0].reference),
            (1, 0, &SlowdownReference::Backend("posix".into()))
        );
        assert!((found[0].factor - 3.0).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn a_slow_iteration_is_reported() {
        let mut record = row("P_Write_Expl", 2, Aggregate, MIB);
        record.iteration_times.iter_mut().for_each(|t| t.max_seconds = 100.0 * t.median_seconds);
        assert!(matches!(of(vec![record])[..], [Finding { reference: SlowdownReference::Median, .. }]));
    }

    #[test]
    fn cached_reads_give_no_finding() {
        let slow = slower(row("P_Read_Expl", 2, Aggregate, MIB), 3.0);
        let mut posix = RowRecord { backend: "posix".into(), ..row("P_Read_Expl", 2, Aggregate, MIB) };
        assert_eq!(of(vec![slow.clone(), posix.clone()]).len(), 1);
        posix.evidence = None;
        assert_eq!(of(vec![slow, posix]), []);
    }
}
