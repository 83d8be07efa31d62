//! What measuring itself cost, in words: the same for every benchmark.

use super::text::count;

/// How far apart two loops of the same calls may be.
const TOLERANCE: f64 = 0.05;

/// The 95 % interval of a ratio to a bare loop.
pub(crate) fn interval(interval: Option<[f64; 2]>) -> String {
    interval.map_or_else(|| "-".to_owned(), |[low, high]| format!("[{low:.3}, {high:.3}]"))
}

/// Stands behind a ratio to a bare loop that is not close to 1.
pub(crate) fn mark(ratio: f64) -> &'static str {
    if (ratio - 1.0).abs() <= TOLERANCE {
        ""
    } else {
        "  > 5 %"
    }
}

/// Allocations inside the clock, of which there must be none: in how many records (a `noun`), and the name of the first.
pub(crate) fn allocations<R>(
    records: &[R],
    allocations: impl Fn(&R) -> u64,
    noun: &str,
    name: impl Fn(&R) -> String,
) -> String {
    let with: Vec<&R> = records.iter().filter(|r| allocations(r) > 0).collect();
    let Some(first) = with.first() else {
        return "none inside the clock".to_owned();
    };
    format!(
        "DEFECT: {} inside the clock in {}, first in {}; please report this",
        count(with.iter().map(|r| allocations(r)).sum(), "allocation"),
        count(with.len() as u64, noun),
        name(first)
    )
}
