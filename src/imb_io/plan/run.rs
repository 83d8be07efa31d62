//! The plan of a run of IMB-IO: all rows, and the memory for their data.

use super::names::select;
use super::processes::{counts, Groups};
use super::rows::{rows, Row};
use super::tiles::part;
use super::{Benchmark, PlanError, Repetitions, Transfer};
use crate::frame::units::MIB;
use crate::imb_io::config::ImbConfig;
use beff_backends::Direction;

/// Samples of a row that are in memory at the same time, in bytes of all ranks, where each has memory of its own. Later writes
/// repeat their data, later reads come when these have been compared. A little more than the volume of a row by default.
pub const LAP_BYTES: u64 = 64 * MIB;

/// What will run, the same on every rank.
#[derive(Clone, Debug)]
pub struct ImbPlan {
    /// What is measured, in order.
    pub benchmarks: Vec<&'static Benchmark>,
    /// Numbers of ranks.
    pub counts: Vec<u64>,
    /// Sizes of the samples.
    pub sizes_bytes: Vec<u64>,
    /// All rows, each for every backend.
    pub rows: Vec<Row>,
    /// How often each is repeated.
    pub repetitions: Repetitions,
    /// Ranks of the world.
    pub world_ranks: u64,
    /// Several groups at the same time.
    pub multi: bool,
}

impl ImbPlan {
    /// The plan of a configuration for `world_ranks` ranks.
    ///
    /// # Errors
    /// [`PlanError::Argument`] for what the configuration should not have had in it.
    pub fn new(config: &ImbConfig, world_ranks: u64) -> Result<Self, PlanError> {
        let benchmarks = select(&config.benchmarks, &[], &[])?;
        let counts = counts(config.npmin, world_ranks)?;
        let sizes_bytes = config.sizes.bytes()?;
        config.repetitions.check()?;
        let rows = rows(&benchmarks, &counts, config.modes, &sizes_bytes);
        Ok(Self {
            benchmarks,
            counts,
            sizes_bytes,
            rows,
            repetitions: config.repetitions,
            world_ranks,
            multi: config.multi.is_some(),
        })
    }

    /// The groups of a row.
    ///
    /// # Errors
    /// As [`Groups::new`].
    pub fn groups(&self, row: &Row) -> Result<Groups, PlanError> {
        row.groups(self.world_ranks, self.multi)
    }

    /// Repetitions of a row before its time is looked at.
    #[must_use]
    pub fn most(&self, row: &Row) -> u64 {
        self.repetitions.most(row.sample_bytes, row.mode)
    }

    /// Bytes for the data of one rank, the largest over all rows.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let of = |row: &Row| {
            let sample = row.sample_bytes.unwrap_or(1);
            let steps = lap_steps(sample, self.most(row));
            // Rank 0 has the longest part.
            steps.saturating_mul(part(sample, row.ranks, 0).map_or(0, |part| part.length_bytes))
        };
        self.rows.iter().map(of).max().unwrap_or(0)
    }

    /// Bytes for looking at a file in order of arrival, as a whole on one rank; the largest of them, 0 without any.
    #[must_use]
    pub fn whole_file_bytes(&self) -> u64 {
        let writes = |t: &Transfer| t.by_arrival() && t.direction == Direction::Write;
        let by_arrival = |row: &&Row| row.benchmark.transfer().is_some_and(writes);
        let of = |row: &Row| row.sample_bytes.unwrap_or(0).saturating_mul(self.most(row));
        self.rows.iter().filter(by_arrival).map(of).max().unwrap_or(0)
    }
}

/// Samples of a row with memory of their own, of `steps` in all; at least 1.
#[must_use]
pub fn lap_steps(sample_bytes: u64, steps: u64) -> u64 {
    match sample_bytes {
        0 => steps.max(1),
        bytes => steps.min(LAP_BYTES / bytes).max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ModeChoice, Sizes};
    use super::*;
    use crate::frame::config::{BindPolicy, CachePolicy, DirectPolicy, Repeat};
    use crate::imb_io::config::{Buffers, FileState};

    fn config(benchmarks: &[&str]) -> ImbConfig {
        ImbConfig {
            benchmarks: benchmarks.iter().map(ToString::to_string).collect(),
            backends: vec!["mpiio".into()],
            path: ".".into(),
            run_dir: None,
            keep_files: false,
            out: None,
            npmin: 1,
            multi: None,
            sizes: Sizes::default(),
            repetitions: Repetitions::default(),
            repeat: Repeat::Off,
            until_share: None,
            modes: ModeChoice::Both,
            file: Some(FileState::Existing),
            buffers: Some(Buffers::Reused),
            hints: Vec::new(),
            unique_open: false,
            cache: CachePolicy::Drop,
            direct: DirectPolicy::ByBackend,
            queue_depth: 32,
            bind: BindPolicy::Auto,
            seed: 1,
            bare: false,
            inject: false,
        }
    }

    #[test]
    fn every_byte_of_a_row_is_its_own_by_default() {
        let plan = ImbPlan::new(&config(&[]), 4).unwrap();
        assert_eq!(plan.rows.len(), (10 + 35 * 3) * 24 + 3);
        for row in &plan.rows {
            let steps = plan.most(row);
            assert_eq!(lap_steps(row.sample_bytes.unwrap_or(1), steps), steps);
        }
        // 640 samples of 64 KiB, or 40 MiB in fewer larger ones.
        assert_eq!(plan.memory_bytes(), 40 * MIB);
        assert_eq!(plan.whole_file_bytes(), 40 * MIB);
        assert_eq!(ImbPlan::new(&config(&["P_Read_Shared", "P_Write_Expl"]), 4).unwrap().whole_file_bytes(), 0);
    }

    #[test]
    fn laps_bound_the_memory() {
        let sizes = Sizes::List(vec![3 * MIB, 100 * MIB]);
        let repetitions = Repetitions { volume_bytes: 1 << 40, ..Repetitions::default() };
        let plan = ImbPlan::new(&ImbConfig { sizes, repetitions, ..config(&["P_Write_Indv"]) }, 2).unwrap();
        assert_eq!((lap_steps(3 * MIB, 1000), lap_steps(100 * MIB, 1000), lap_steps(0, 1000)), (21, 1, 1000));
        assert_eq!(plan.memory_bytes(), 100 * MIB);
    }

    #[test]
    fn groups_of_one_rank_are_one() {
        let multi =
            ImbConfig { multi: Some(crate::imb_io::config::Multi::Each), ..config(&["s_read_indv", "p_read_indv"]) };
        let plan = ImbPlan::new(&multi, 5).unwrap();
        let groups: Vec<_> =
            plan.rows.iter().filter(|r| r.sample_bytes == Some(4)).map(|r| plan.groups(r).unwrap().groups).collect();
        assert_eq!(groups, [1, 5, 2, 1, 1]);
    }
}
