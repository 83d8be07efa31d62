//! The plan of a run: all rows, and the memory for their data.

use super::names::select;
use super::processes::{counts, Groups};
use super::rows::{rows, PlannedRow};
use super::tiles::sample_portion;
use super::{ImbBenchmark, IterationRule, PlanningError, TransferSpec};
use crate::frame::units::MIB;
use crate::imb_io::config::ImbConfig;
use beff_backends::Direction;

/// Bytes of samples of all ranks that have separate windows in memory at the same time. Later writes repeat their data, later
/// reads follow when these have been compared. A little more than the default volume of a row.
pub const PERIOD_BYTES: u64 = 64 * MIB;

/// Plan of a run, the same on every rank.
#[derive(Clone, Debug)]
pub struct ImbPlan {
    /// Benchmarks in run order.
    pub benchmarks: Vec<&'static ImbBenchmark>,
    /// Numbers of ranks.
    pub counts: Vec<u64>,
    /// Sample sizes.
    pub sizes_bytes: Vec<u64>,
    /// All rows, each for every backend.
    pub rows: Vec<PlannedRow>,
    /// Rule for the iterations.
    pub iterations: IterationRule,
    /// Ranks of the world.
    pub world_ranks: u64,
    /// True if several groups run at the same time.
    pub multi: bool,
}

impl ImbPlan {
    /// The plan of a configuration for `world_ranks` ranks.
    ///
    /// # Errors
    /// [`PlanningError::Argument`] for an invalid configuration.
    pub fn new(config: &ImbConfig, world_ranks: u64) -> Result<Self, PlanningError> {
        let benchmarks = select(&config.benchmarks, &[], &[])?;
        let counts = counts(config.npmin, world_ranks)?;
        let sizes_bytes = config.sizes.bytes()?;
        config.iterations.check()?;
        let rows = rows(&benchmarks, &counts, config.modes, &sizes_bytes);
        Ok(Self {
            benchmarks,
            counts,
            sizes_bytes,
            rows,
            iterations: config.iterations,
            world_ranks,
            multi: config.multi.is_some(),
        })
    }

    /// The groups of a row.
    ///
    /// # Errors
    /// As [`Groups::new`].
    pub fn groups(&self, row: &PlannedRow) -> Result<Groups, PlanningError> {
        row.groups(self.world_ranks, self.multi)
    }

    /// Iterations of a row before the reduction by time.
    #[must_use]
    pub fn max_iterations(&self, row: &PlannedRow) -> u64 {
        self.iterations.max_iterations(row.sample_bytes, row.mode)
    }

    /// Bytes for the data of one rank, the largest over all rows.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let of = |row: &PlannedRow| {
            let sample = row.sample_bytes.unwrap_or(1);
            let steps = period_steps(sample, self.max_iterations(row));
            // Rank 0 has the longest portion.
            steps.saturating_mul(sample_portion(sample, row.ranks, 0).map_or(0, |part| part.length_bytes))
        };
        self.rows.iter().map(of).max().unwrap_or(0)
    }

    /// Bytes of the largest file in order of arrival, which one rank reads as a whole for verification; 0 without such files.
    #[must_use]
    pub fn whole_file_bytes(&self) -> u64 {
        let writes = |t: &TransferSpec| t.is_arrival_ordered() && t.direction == Direction::Write;
        let by_arrival = |row: &&PlannedRow| row.benchmark.transfer().is_some_and(writes);
        let of = |row: &PlannedRow| row.sample_bytes.unwrap_or(0).saturating_mul(self.max_iterations(row));
        self.rows.iter().filter(by_arrival).map(of).max().unwrap_or(0)
    }
}

/// Number of samples with separate windows, of `steps`; at least 1.
#[must_use]
pub fn period_steps(sample_bytes: u64, steps: u64) -> u64 {
    match sample_bytes {
        0 => steps.max(1),
        bytes => steps.min(PERIOD_BYTES / bytes).max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ModeChoice, SampleSizes};
    use super::*;
    use crate::frame::config::{BindPolicy, CachePolicy, DirectPolicy, RepetitionPolicy};
    use crate::imb_io::config::{InitialFileState, IterationBuffers};

    fn config(benchmarks: &[&str]) -> ImbConfig {
        ImbConfig {
            benchmarks: benchmarks.iter().map(ToString::to_string).collect(),
            backends: vec!["mpiio".into()],
            variants: Vec::new(),
            path: ".".into(),
            run_dir: None,
            keep_files: false,
            out: None,
            npmin: 1,
            multi: None,
            sizes: SampleSizes::default(),
            iterations: IterationRule::default(),
            repeat: RepetitionPolicy::Off,
            until_share: None,
            time_limit: None,
            modes: ModeChoice::Both,
            file: Some(InitialFileState::Existing),
            buffers: Some(IterationBuffers::Reused),
            hints: Vec::new(),
            unique_open: false,
            cache: CachePolicy::Drop,
            direct: DirectPolicy::ByBackend,
            dio_align_bytes: None,
            storage: Vec::new(),
            stripe: None,
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
            let steps = plan.max_iterations(row);
            assert_eq!(period_steps(row.sample_bytes.unwrap_or(1), steps), steps);
        }
        // 640 samples of 64 KiB, or 40 MiB in fewer larger ones.
        assert_eq!(plan.memory_bytes(), 40 * MIB);
        assert_eq!(plan.whole_file_bytes(), 40 * MIB);
        assert_eq!(ImbPlan::new(&config(&["P_Read_Shared", "P_Write_Expl"]), 4).unwrap().whole_file_bytes(), 0);
    }

    #[test]
    fn the_period_bounds_the_memory() {
        let sizes = SampleSizes::List(vec![3 * MIB, 100 * MIB]);
        let repetitions = IterationRule { volume_bytes: 1 << 40, ..IterationRule::default() };
        let plan = ImbPlan::new(&ImbConfig { sizes, iterations: repetitions, ..config(&["P_Write_Indv"]) }, 2).unwrap();
        assert_eq!((period_steps(3 * MIB, 1000), period_steps(100 * MIB, 1000), period_steps(0, 1000)), (21, 1, 1000));
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
