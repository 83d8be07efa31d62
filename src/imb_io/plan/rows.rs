//! All rows of a run in order.

use super::benchmark::{ImbBenchmark, Mode, ModeChoice};
use super::processes::{benchmark_rank_counts, Groups};
use crate::imb_io::plan::PlanningError;

/// One line of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedRow {
    /// Benchmark.
    pub benchmark: &'static ImbBenchmark,
    /// Ranks of each group.
    pub ranks: u64,
    /// Mode.
    pub mode: Mode,
    /// X in bytes; `None` for Open_Close, which has iterations only.
    pub sample_bytes: Option<u64>,
}

impl PlannedRow {
    /// The groups that run at the same time on `world_ranks` ranks; always one for single-rank benchmarks.
    ///
    /// # Errors
    /// As [`Groups::new`].
    pub fn groups(&self, world_ranks: u64, multi: bool) -> Result<Groups, PlanningError> {
        Groups::new(self.ranks, world_ranks, multi && !self.benchmark.is_single())
    }
}

/// The rows of `benchmarks`, nested by number of ranks, mode and size. Groups that run at the same time share a row.
/// [`super::IterationRule::bound_seconds`] of their number is the longest time of the run.
#[must_use]
pub fn rows(
    benchmarks: &[&'static ImbBenchmark],
    counts: &[u64],
    modes: ModeChoice,
    sizes_bytes: &[u64],
) -> Vec<PlannedRow> {
    let mut rows = Vec::new();
    for &benchmark in benchmarks {
        for &ranks in benchmark_rank_counts(benchmark, counts) {
            for &mode in benchmark.modes(modes) {
                let row = |sample_bytes| PlannedRow { benchmark, ranks, mode, sample_bytes };
                match benchmark.transfer() {
                    Some(_) => rows.extend(sizes_bytes.iter().map(|bytes| row(Some(*bytes)))),
                    None => rows.push(row(None)),
                }
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::super::names::select;
    use super::super::processes::counts;
    use super::super::{IterationRule, SampleSizes};
    use super::*;

    fn of(names: &[&str], npmin: u64, world_ranks: u64, modes: ModeChoice) -> Vec<PlannedRow> {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let chosen = select(&names, &[], &[]).unwrap();
        rows(&chosen, &counts(npmin, world_ranks).unwrap(), modes, &SampleSizes::default().bytes().unwrap())
    }

    #[test]
    fn the_default_list_and_its_bound() {
        // 45 headings with sizes: 37 - 1 benchmarks and 9 second modes. S has 8 + 2 headings, on one rank.
        let both = |world| of(&[], 1, world, ModeChoice::Both);
        assert_eq!(both(1).len(), 45 * 24 + 1);
        assert_eq!(both(4).len(), (10 + 35 * 3) * 24 + 3);
        assert_eq!(of(&[], 4, 4, ModeChoice::Aggregate).len(), 36 * 24 + 1);
        assert_eq!(IterationRule::default().bound_seconds(both(4).len() as u64), Some(27_630.0));
    }

    #[test]
    fn ranks_modes_sizes_in_this_order() {
        let rows = of(&["s_write_expl", "P_Write_Shared", "Open_Close"], 2, 5, ModeChoice::Both);
        let seen: Vec<_> = rows.iter().filter(|r| r.sample_bytes != Some(0) && r.sample_bytes < Some(2)).collect();
        let short: Vec<_> = seen.iter().map(|r| (r.benchmark.name, r.ranks, r.mode, r.sample_bytes)).collect();
        let (once, each) = (Mode::Aggregate, Mode::NonAggregate);
        let mut expected = vec![("S_Write_Expl", 1, once, Some(1)), ("S_Write_Expl", 1, each, Some(1))];
        for ranks in [2, 4, 5] {
            expected.extend([once, each].map(|mode| ("P_Write_Shared", ranks, mode, Some(1))));
        }
        expected.extend([2, 4, 5].map(|ranks| ("Open_Close", ranks, once, None)));
        assert_eq!(short, expected);
        assert!(rows[..24].windows(2).all(|w| w[0].sample_bytes < w[1].sample_bytes));
    }

    #[test]
    fn ten_million_ranks_have_few_rows() {
        assert_eq!(of(&["Open_Close"], 1, 10_000_000, ModeChoice::Both).len(), 25);
    }
}
