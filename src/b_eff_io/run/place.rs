//! Where the work stands: access method, partition, type, and the files that are open there.

use beff_backends::OpenFile;
use beff_ffi::Comm;

use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::plan::patterns::PatternSpec;
use crate::b_eff_io::plan::segments::Segment;
use crate::b_eff_io::plan::space::PartitionSpace;
use crate::b_eff_io::run::state::Run;
use crate::frame::config::CachePolicy;
use crate::frame::records::Access;
use crate::frame::run::clock::Instant;
use crate::frame::run::evidence::Site;
use crate::frame::run::machine_share::HostCpus;
use beff_stamp::Generation;

/// Access method, partition, type.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// Access method.
    pub access: Access,
    /// Partition.
    pub part: &'a PartitionSpace,
    /// Its ranks.
    pub comm: &'a Comm,
    /// What is below their files.
    pub site: &'a Site,
    /// The CPUs they may use.
    pub cpus: &'a HostCpus,
    /// Pattern type.
    pub pattern_type: PatternType,
    /// None in the first pass.
    pub repeat: Option<Repeat>,
}

/// A type is measured again.
#[derive(Clone, Copy, Debug)]
pub struct Repeat {
    /// Which time, from 1.
    pub number: u32,
    /// Share of the calls of the first pass that it makes, above 0 to 1.
    pub share: f64,
    /// Of the type, only warm-up, fill-up, and what has too few rounds to be compared.
    pub of_few_rounds: bool,
    /// Which writing of this partition, from 1: no two of one place have the same data.
    pub writing: u32,
    /// When the repeats of the partition began.
    pub begin: Instant,
    /// Time that they have.
    pub seconds: f64,
    /// What is left of it, by rank 0.
    pub left_seconds: f64,
}

impl Place<'_> {
    /// The writing that a write here is.
    #[must_use]
    pub fn writes(&self) -> Generation {
        match (self.repeat, self.access) {
            (Some(repeat), _) => Generation::Later(repeat.writing),
            (None, Access::Rewrite) => Generation::Second,
            (None, _) => Generation::First,
        }
    }

    /// True for a pattern that this repeat does not measure.
    #[must_use]
    pub fn leaves_out(&self, run: &Run<'_>, spec: &PatternSpec) -> bool {
        self.repeat.is_some_and(|repeat| repeat.of_few_rounds)
            && spec.time_units > 0
            && !run.has_few_rounds(self.part.ranks, self.access, spec.number)
    }

    /// Whose part of the files this rank moves: its own, or with `--cache rank-shift` for reads that of a rank on another
    /// host. The order of a shared pointer is that of the ranks and cannot be shifted.
    #[must_use]
    pub fn part_rank(&self, run: &Run<'_>) -> u64 {
        let own = self.comm.rank();
        let ordered = self.pattern_type.is_shared(run.config.shared_pointer);
        if run.config.cache != CachePolicy::RankShift || self.access != Access::Read || ordered {
            return own;
        }
        // On one host there is no better neighbour than the next.
        let shift = match run.plan.rank_shift % self.part.ranks {
            0 => 1,
            shift => shift,
        };
        (own + shift) % self.part.ranks
    }
}

/// An open file of one backend.
pub struct Open {
    /// Which backend of the run.
    pub backend: usize,
    /// The file, open while the patterns of its type run.
    pub handle: Box<dyn OpenFile>,
    /// Which file of the run.
    pub file: usize,
    /// Counts of types 3 and 4, in a first write.
    pub segment: Option<Segment>,
    /// Where the next pattern begins in each rank's stream, in a first write.
    pub next_stream_bytes: u64,
    /// Slowest rank's time to open.
    pub open_seconds: f64,
    /// Hints asked at open.
    pub hints_requested: Vec<(String, String)>,
    /// Hints in force after it.
    pub hints_granted: Vec<(String, String)>,
}
