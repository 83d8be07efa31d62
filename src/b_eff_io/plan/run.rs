//! The plan of one run, from the configuration and the facts of the machine.

use crate::b_eff_io::config::{Config, RepeatPolicy};
use crate::b_eff_io::plan::memory::{RankMemory, RankMemoryParts};
use crate::b_eff_io::plan::partitions;
use crate::b_eff_io::plan::patterns::{m_part_bytes, patterns};
use crate::b_eff_io::plan::schedule::{partition_seconds, pattern_seconds};
use crate::b_eff_io::plan::space::{plan_space, PartitionSpace};
use crate::b_eff_io::plan::{memory, orders, PlanError};
use crate::frame::backends;
use crate::frame::records::AccessMethod;

/// Facts of the machine. Equal on all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Ranks of the world.
    pub ranks: u64,
    /// Of these, ranks on the host of rank 0.
    pub ranks_of_first_host: u64,
    /// Memory available to one rank, minimum over the ranks.
    pub memory_per_rank_bytes: u64,
    /// Maximum share of the caches of a rank.
    pub cache_share_bytes: u64,
    /// Maximum size of all files of the run; None if no backend of the run writes any.
    pub limit_bytes: Option<u64>,
    /// Contestants of the run that write files.
    pub writing_backends: u64,
}

/// Average share of the scheduled time that repetitions of long calls take.
const ROUNDS_TIME_SHARE: f64 = 0.2;

/// Share of the scheduled time that is kept for repetitions beyond T, if the first measurement leaves less of T.
const RESERVED_SHARE: f64 = 0.25;

/// The plan of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunPlan {
    /// Partitions in ascending size, with M_PART and the calls the space allows.
    pub partitions: Vec<PartitionSpace>,
    /// Scheduled time of one partition, of one backend.
    pub partition_seconds: f64,
    /// Period of the data stream.
    pub period_bytes: u64,
    /// Maximum bytes of one call.
    pub max_call_bytes: u64,
    /// Bytes of the transfer buffer after its period.
    pub tail_bytes: u64,
    /// Maximum share of the caches of a rank.
    pub cache_share_bytes: u64,
    /// Memory of one rank.
    pub rank_memory: RankMemory,
    /// Distance between a rank and the one whose data it reads with `--cache rank-shift`: on another host, if there is one.
    pub rank_shift: u64,
}

impl RunPlan {
    /// Creates the plan.
    ///
    /// # Errors
    /// Partitions that exceed the world, insufficient space, offsets beyond the largest file offset.
    pub fn new(config: &Config, facts: &Facts) -> Result<Self, PlanError> {
        let sizes = partitions::sizes(&config.partitions, facts.ranks)?;
        let memory_bytes = config.memory_per_process_bytes.unwrap_or(facts.memory_per_rank_bytes);
        let m_part = m_part_bytes(memory_bytes, config.release);
        let partitions = plan_space(
            facts.limit_bytes,
            &sizes,
            facts.writing_backends,
            m_part,
            &config.types,
            config.segment_multiple_bytes,
        )?;
        let m_part = partitions.iter().map(|p| p.m_part_bytes).max().unwrap_or(m_part);
        let max_call_bytes = memory::max_call_bytes(&patterns(m_part), &config.types, config.segment_multiple_bytes);
        let period_bytes = match memory::reused_reads(config) {
            None => memory::period_bytes(facts.cache_share_bytes, memory_bytes),
            Some(reads) => memory::reused_period_bytes(reads, max_call_bytes),
        };
        let shares = memory::shares_memory(config, facts.ranks) && facts.ranks == facts.ranks_of_first_host;
        let tail_bytes = memory::tail_bytes(period_bytes, max_call_bytes, config.mix.is_some());
        let rank_memory = RankMemory::of(RankMemoryParts {
            period_bytes,
            tail_bytes,
            domain_bytes: memory::domain_bytes(config, facts.ranks),
            sharing_ranks: if shares { facts.ranks } else { 1 },
            file_bytes: memory::mapped_bytes(memory::maps_files(config), &config.types, &partitions),
        });
        Ok(Self {
            partition_seconds: partition_seconds(config.release, config.time_seconds, sizes.len()),
            partitions,
            period_bytes,
            max_call_bytes,
            tail_bytes,
            cache_share_bytes: facts.cache_share_bytes,
            rank_memory,
            rank_shift: facts.ranks_of_first_host.max(1),
        })
    }

    /// Time limit of the run: T for each partition and backend with repetitions until its end; otherwise the scheduled time, which is less
    /// for a subset of the types.
    #[must_use]
    pub fn planned_seconds(&self, config: &Config) -> f64 {
        match config.repeat {
            RepeatPolicy::Auto => self.limit_seconds(config) + self.orders_seconds(config),
            RepeatPolicy::Rounds | RepeatPolicy::Off => {
                self.scheduled_seconds(config) + self.rounds_seconds(config) + self.orders_seconds(config)
            }
        }
    }

    /// Scheduled time of the measurements in other orders.
    #[must_use]
    pub fn orders_seconds(&self, config: &Config) -> f64 {
        let (units, definition) = (orders::units(config), (config.release, config.full_rewrite));
        let one_backend = orders::scheduled_seconds(&units, definition, self.partition_seconds, &self.partitions);
        one_backend * config.backends.len() as f64
    }

    /// Expected time of repetitions of long calls; 0 for other policies. It depends on the storage, mostly on the length of those calls.
    #[must_use]
    pub fn rounds_seconds(&self, config: &Config) -> f64 {
        if config.repeat == RepeatPolicy::Rounds {
            ROUNDS_TIME_SHARE * self.scheduled_seconds(config)
        } else {
            0.0
        }
    }

    /// Time that repetitions have at least, beyond T if necessary. T itself is not shared: it is the scheduled time of the definition.
    #[must_use]
    pub fn reserved_seconds(&self, config: &Config) -> f64 {
        RESERVED_SHARE * self.scheduled_seconds(config)
    }

    /// T for each partition and backend.
    #[must_use]
    pub fn limit_seconds(&self, config: &Config) -> f64 {
        self.partition_seconds * self.partitions.len() as f64 * config.backends.len() as f64
    }

    /// Scheduled time of all patterns of all partitions and backends.
    #[must_use]
    pub fn scheduled_seconds(&self, config: &Config) -> f64 {
        let mut sum = 0.0;
        for part in &self.partitions {
            for spec in &patterns(part.m_part_bytes) {
                for access in AccessMethod::ALL {
                    if config.types.contains(&spec.pattern_type) {
                        let (release, full_rewrite) = (config.release, config.full_rewrite);
                        sum += pattern_seconds(release, full_rewrite, self.partition_seconds, spec, access);
                    }
                }
            }
        }
        sum * config.backends.len() as f64
    }
}

/// Backends of the run that write files.
#[must_use]
pub fn writing_backends(config: &Config) -> u64 {
    config.backends.iter().filter_map(|name| backends::row(name)).filter(|row| row.uses_space).count() as u64
}
