//! Latencies of all ranks in one record.

use std::collections::BTreeMap;

use beff_ffi::{Comm, MpiError};
use hdrhistogram::Histogram;

use crate::frame::records::LatencyRecord;
use crate::frame::run::agree::reduce;

/// Merges the histograms of all ranks. The record is complete on rank 0; None on other ranks, and if no call was made. Collective,
/// outside the clock.
///
/// # Errors
/// MPI errors.
pub fn merge_histograms(comm: &Comm, mine: &Histogram<u64>, of: &str) -> Result<Option<LatencyRecord>, MpiError> {
    let counts: Vec<(u64, u64)> = mine.iter_recorded().map(|v| (v.value_iterated_to(), v.count_at_value())).collect();
    let mut all = Histogram::new_from(mine);
    for (value, count) in reduce(comm, counts, merge_counts)?.unwrap_or_default() {
        all.saturating_record_n(value, count);
    }
    Ok((!all.is_empty()).then(|| LatencyRecord {
        of: of.to_owned(),
        count: all.len(),
        p50_ns: all.value_at_quantile(0.5),
        p99_ns: all.value_at_quantile(0.99),
        p999_ns: all.value_at_quantile(0.999),
        max_ns: all.max(),
    }))
}

/// Sums of counts by value; both lists are in the order of values.
fn merge_counts(lower: Vec<(u64, u64)>, higher: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    let mut sums: BTreeMap<u64, u64> = lower.into_iter().collect();
    for (value, count) in higher {
        let sum = sums.entry(value).or_default();
        *sum = sum.saturating_add(count);
    }
    sums.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_known_times() {
        let mut histogram = Histogram::new_with_bounds(1, 1_000_000, 3).unwrap();
        (1..=1000_u64).for_each(|ns| histogram.record(ns).unwrap());
        let record = merge_histograms(&Comm::comm_self(), &histogram, "call").unwrap().unwrap();
        assert_eq!((record.count, record.p50_ns, record.p99_ns, record.max_ns), (1000, 500, 990, 1000));
        histogram.reset();
        assert_eq!(merge_histograms(&Comm::comm_self(), &histogram, "call").unwrap(), None);
    }
}
