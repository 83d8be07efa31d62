//! Maximum storage space of the files of a run.

use super::benchmark::ImbBenchmark;
use super::iterations::IterationRule;
use super::rows::PlannedRow;

/// Bytes on the storage, with the iterations that number and volume allow. A time limit may reduce them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequiredSpace {
    /// All files of the largest row together. They are removed before the next row.
    pub largest_bytes: u64,
    /// Files of the last row of each benchmark, if they are kept.
    pub kept_bytes: u64,
}

/// Bytes of the files of one row, all groups and ranks: X for each iteration, one byte for Open_Close.
#[must_use]
pub fn row_bytes(row: &PlannedRow, repetitions: &IterationRule, groups: u64) -> u64 {
    let file_bytes =
        row.sample_bytes.map_or(1, |bytes| bytes.saturating_mul(repetitions.max_iterations(Some(bytes), row.mode)));
    file_bytes.saturating_mul(groups)
}

/// Space of the files of `rows` in a world of `world_ranks`; `copies` is the number of backends that write the files of a
/// benchmark.
#[must_use]
pub fn required_space(
    rows: &[PlannedRow],
    repetitions: &IterationRule,
    (world_ranks, multi): (u64, bool),
    copies: impl Fn(&ImbBenchmark) -> u64,
) -> RequiredSpace {
    let mut space = RequiredSpace::default();
    for (index, row) in rows.iter().enumerate() {
        let copies = copies(row.benchmark);
        if copies == 0 {
            continue;
        }
        let groups = row.groups(world_ranks, multi).map_or(1, |groups| groups.groups);
        let bytes = row_bytes(row, repetitions, groups);
        space.largest_bytes = space.largest_bytes.max(bytes);
        if rows.get(index + 1).is_none_or(|next| next.benchmark != row.benchmark) {
            space.kept_bytes = space.kept_bytes.saturating_add(bytes.saturating_mul(copies));
        }
    }
    space
}

#[cfg(test)]
mod tests {
    use super::super::names::select;
    use super::super::processes::counts;
    use super::super::rows::rows;
    use super::super::{IterationPolicy, ModeChoice};
    use super::*;

    fn of(names: &str, sizes: &[u64], repetitions: &IterationRule, multi: bool) -> RequiredSpace {
        let chosen = select(&[names.to_owned()], &[], &[]).unwrap();
        let rows = rows(&chosen, &counts(1, 5).unwrap(), ModeChoice::Both, sizes);
        required_space(&rows, repetitions, (5, multi), |benchmark| if benchmark.needs_mpi_file() { 1 } else { 2 })
    }

    #[test]
    fn check_values() {
        let rule = IterationRule::default();
        let space = |largest_bytes, kept_bytes| RequiredSpace { largest_bytes, kept_bytes };
        // 640 iterations of 64 KiB; the last row is non-aggregate, 100 of them, by two backends.
        assert_eq!(of("S_Write_Indv", &[0, 65536], &rule, false), space(640 << 16, 2 * (100 << 16)));
        // One call that is larger than the volume; five groups of one rank.
        assert_eq!(of("P_Read_Expl", &[1 << 30, 5], &rule, true), space(5 << 30, 2 * 5000));
        assert_eq!(of("Open_Close,C_Read_Expl", &[8], &rule, false), space(8000, 8001));
        assert_eq!(of("Open_Close", &[8], &rule, true), space(5, 1));
        // One rank, also with groups.
        assert_eq!(of("S_Write_Indv", &[65536], &rule, true), of("S_Write_Indv", &[65536], &rule, false));
        let most = IterationRule { aggregate: u64::MAX, policy: IterationPolicy::Set, ..rule };
        assert_eq!(of("S_Read_Indv", &[8], &most, false), space(u64::MAX, u64::MAX));
        assert_eq!(required_space(&[], &rule, (1, false), |_| 1), RequiredSpace::default());
    }
}
