//! Benchmarks: participating ranks, transfer, positioning and synchronism of the calls, position of the sync.

use beff_backends::Direction;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Participating ranks, the first letter of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BenchmarkClass {
    /// S: one rank on its own file; the others wait.
    Single,
    /// P: all ranks of the row, independently.
    Parallel,
    /// C: all ranks of the row in collective calls.
    Collective,
}

impl BenchmarkClass {
    /// First letter of the name.
    #[must_use]
    pub fn letter(self) -> char {
        match self {
            Self::Single => 'S',
            Self::Parallel => 'P',
            Self::Collective => 'C',
        }
    }
}

/// Positioning of a call in the file (MPI-4 chapter 14), the end of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Positioning {
    /// Individual file pointer; with several ranks in a view of the rank's tiles only.
    Indv,
    /// Explicit offset.
    Expl,
    /// Shared file pointer.
    Shared,
    /// Individual file pointer in a private file of the rank.
    Priv,
}

impl Positioning {
    /// Suffix in the names of benchmarks.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Indv => "Indv",
            Self::Expl => "Expl",
            Self::Shared => "Shared",
            Self::Priv => "Priv",
        }
    }
}

/// Synchronism of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Synchronism {
    /// The call returns when the buffer may be reused.
    Blocking,
    /// The call returns a request, which is completed later (MPI_File_iwrite; with class C the collectives of MPI 3.1).
    Request,
    /// A split collective call, begin and end. The release calls it a non-blocking collective.
    Split,
}

/// Transfer of a benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferSpec {
    /// Participating ranks.
    pub class: BenchmarkClass,
    /// Positioning.
    pub positioning: Positioning,
    /// Write or read.
    pub direction: Direction,
    /// Synchronism.
    pub synchronism: Synchronism,
}

impl TransferSpec {
    /// True if each rank has its own file.
    #[must_use]
    pub fn is_private(&self) -> bool {
        self.positioning == Positioning::Priv
    }

    /// The same transfer by the blocking call of the catalogue, whose time is t_pure.
    #[must_use]
    pub fn blocking(&self) -> Self {
        Self { synchronism: Synchronism::Blocking, ..*self }
    }

    /// True if the order of arrival determines the offsets of calls, so that the order of data in the file is undefined.
    #[must_use]
    pub fn is_arrival_ordered(&self) -> bool {
        self.class == BenchmarkClass::Parallel && self.positioning == Positioning::Shared
    }
}

/// Operation of one iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasuredOperation {
    /// One sample of X bytes.
    Transfer(TransferSpec),
    /// Open the common file, write 1 byte at offset 0, close the file.
    OpenClose,
}

/// One benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImbBenchmark {
    /// Name as printed; input may be in any case.
    pub name: &'static str,
    /// Operation of one iteration.
    pub operation: MeasuredOperation,
    /// The MPI calls of one iteration in words.
    pub calls: &'static str,
}

/// Position of the sync of a write. A heading of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// One sync after all iterations.
    Aggregate,
    /// One sync after each iteration.
    NonAggregate,
}

/// Modes to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ModeChoice {
    /// Aggregate, then non-aggregate.
    #[default]
    Both,
    /// Aggregate alone.
    Aggregate,
    /// Non-aggregate alone; benchmarks with a single mode keep it, as in the release.
    NonAggregate,
}

impl ImbBenchmark {
    /// The transfer; `None` for Open_Close.
    #[must_use]
    pub fn transfer(&self) -> Option<&TransferSpec> {
        match &self.operation {
            MeasuredOperation::Transfer(transfer) => Some(transfer),
            MeasuredOperation::OpenClose => None,
        }
    }

    /// True if its calls are compared with bare loops in C: blocking ones at known offsets of the common file.
    #[must_use]
    pub fn has_bare_loop(&self) -> bool {
        self.transfer().is_some_and(|transfer| {
            transfer.synchronism == Synchronism::Blocking
                && matches!(transfer.positioning, Positioning::Indv | Positioning::Expl)
        })
    }

    /// True if the benchmark runs on a single rank only.
    #[must_use]
    pub fn is_single(&self) -> bool {
        self.transfer().is_some_and(|t| t.class == BenchmarkClass::Single)
    }

    /// True if the benchmark also runs with a CPU load and is reported with its overlap.
    #[must_use]
    pub fn has_overlap(&self) -> bool {
        self.transfer().is_some_and(|t| t.synchronism != Synchronism::Blocking)
    }

    /// True for blocking writes, which alone have a non-aggregate mode.
    #[must_use]
    pub fn has_non_aggregate(&self) -> bool {
        self.transfer().is_some_and(|t| t.direction == Direction::Write && t.synchronism == Synchronism::Blocking)
    }

    /// The modes of the benchmark, in the order of the report; never empty.
    #[must_use]
    pub fn modes(&self, choice: ModeChoice) -> &'static [Mode] {
        match choice {
            _ if !self.has_non_aggregate() => &[Mode::Aggregate],
            ModeChoice::Both => &[Mode::Aggregate, Mode::NonAggregate],
            ModeChoice::Aggregate => &[Mode::Aggregate],
            ModeChoice::NonAggregate => &[Mode::NonAggregate],
        }
    }

    /// True if the benchmark needs an MPI file: for collective calls, a shared file pointer, or the opening itself. Others
    /// consist of offsets and lengths, and run through any backend; those that [have overlap](Self::has_overlap) through
    /// backends that can keep a transfer in flight while the program computes.
    #[must_use]
    pub fn needs_mpi_file(&self) -> bool {
        self.transfer().is_none_or(|t| t.class == BenchmarkClass::Collective || t.positioning == Positioning::Shared)
    }
}
