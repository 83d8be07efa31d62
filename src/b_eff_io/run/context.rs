//! Context of a measurement: access method, partition, type, and open files.

use beff_backends::OpenFile;
use beff_ffi::Comm;

use crate::b_eff_io::config::CallOrder;
use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::plan::orders::{is_ordered, OrderUnit};
use crate::b_eff_io::plan::patterns::PatternSpec;
use crate::b_eff_io::plan::segments::Segment;
use crate::b_eff_io::plan::space::PartitionSpace;
use crate::b_eff_io::run::measurement::OwnTransfer;
use crate::b_eff_io::run::state::RunState;
use crate::frame::config::CachePolicy;
use crate::frame::records::AccessMethod;
use crate::frame::run::clock::Instant;
use crate::frame::run::evidence::StorageSite;
use crate::frame::run::interference::HostCpus;
use beff_stamp::Generation;

/// Access method, partition, type and repetition being measured.
#[derive(Clone, Copy)]
pub struct TypeContext<'a> {
    /// Access method.
    pub access: AccessMethod,
    /// Partition.
    pub partition: &'a PartitionSpace,
    /// Its ranks.
    pub comm: &'a Comm,
    /// Storage of their files.
    pub site: &'a StorageSite,
    /// The CPUs they may use.
    pub cpus: &'a HostCpus,
    /// Pattern type.
    pub pattern_type: PatternType,
    /// None in the first measurement.
    pub repetition: Option<TypeRepetition>,
    /// The measurement of another order, beside the definition.
    pub order: Option<OrderUnit>,
}

/// A repetition of a type.
#[derive(Clone, Copy, Debug)]
pub struct TypeRepetition {
    /// Number, from 1; 0: files of a cut run are written again.
    pub number: u32,
    /// Share of the first measurement's calls, above 0, at most 1.
    pub share: f64,
    /// Only warm-up, fill-up, and patterns with too few rounds for a comparison.
    pub of_few_rounds: bool,
    /// Number of the write in this partition, from 1: each has different data.
    pub generation: u32,
    /// Start of the repetitions of the partition.
    pub begin: Instant,
    /// Time budget of all of them.
    pub budget_seconds: f64,
    /// Remaining time, by rank 0's clock.
    pub remaining_seconds: f64,
}

impl TypeRepetition {
    /// True if files of a cut run are written again, which is not recorded.
    #[must_use]
    pub fn is_rebuild(&self) -> bool {
        self.number == 0
    }
}

impl TypeContext<'_> {
    /// True unless it is a repetition or beside the definition.
    #[must_use]
    pub fn is_first_measurement(&self) -> bool {
        self.repetition.is_none() && self.order.is_none()
    }

    /// Order of a measurement beside the definition.
    #[must_use]
    pub fn call_order(&self) -> Option<CallOrder> {
        self.order.map(|unit| unit.order)
    }

    /// True for a measurement with reads and writes.
    #[must_use]
    pub fn is_mixed(&self) -> bool {
        self.order.is_some_and(|unit| unit.order.mix.is_some())
    }

    /// Name of what is measured, for messages: the access method, with the order of one beside the definition.
    #[must_use]
    pub fn access_name(&self) -> String {
        match self.order {
            None => self.access.name().to_owned(),
            Some(OrderUnit { order, .. }) if order.mix.is_some() => format!("{} reads and writes", order.name()),
            Some(OrderUnit { order, access, .. }) => format!("{} {}", order.name(), access.name()),
        }
    }

    /// Generation of the data written here.
    #[must_use]
    pub fn write_generation(&self) -> Generation {
        if let Some(unit) = self.order {
            return Generation::Later(unit.generation);
        }
        match (self.repetition, self.access) {
            (Some(type_repetition), _) => Generation::Later(type_repetition.generation),
            (None, AccessMethod::Rewrite) => Generation::Second,
            (None, _) => Generation::First,
        }
    }

    /// True for a pattern that this repetition or order does not measure.
    #[must_use]
    pub fn skips(&self, run: &RunState<'_>, spec: &PatternSpec) -> bool {
        if self.order.is_some() {
            return !is_ordered(spec);
        }
        self.repetition.is_some_and(|type_repetition| type_repetition.of_few_rounds)
            && spec.time_units > 0
            && !run.has_few_rounds(self.partition.ranks, self.access, spec.number)
    }

    /// Rank whose part of the files this rank transfers: its own, or for reads with `--cache rank-shift` that of a rank on another host.
    /// The order of a shared pointer is that of the ranks and cannot be shifted.
    #[must_use]
    pub fn part_rank(&self, run: &RunState<'_>) -> u64 {
        let own = self.comm.rank();
        let ordered = self.pattern_type.uses_shared_pointer(run.config.shared_pointer);
        if run.config.cache != CachePolicy::RankShift || self.access != AccessMethod::Read || ordered {
            return own;
        }
        // On one host the next rank is as good as any other.
        let shift = match run.plan.rank_shift % self.partition.ranks {
            0 => 1,
            shift => shift,
        };
        (own + shift) % self.partition.ranks
    }
}

/// An open file of one backend.
pub struct OpenTypeFile {
    /// Index of the backend in the run.
    pub backend: usize,
    /// The open file.
    pub handle: Box<dyn OpenFile>,
    /// Index of the file in the run.
    pub file: usize,
    /// Calls of types 3 and 4, in a first write.
    pub segment: Option<Segment>,
    /// Position of the next pattern in each rank's stream, in a first write.
    pub next_stream_bytes: u64,
    /// What this rank has moved in the patterns so far.
    pub own: OwnTransfer,
    /// Time of the slowest rank to open.
    pub open_seconds: f64,
    /// Hints passed to open.
    pub hints_requested: Vec<(String, String)>,
    /// Hints in force after it.
    pub hints_granted: Vec<(String, String)>,
}
