//! What a benchmark does: who takes part, what is moved and where, how a call ends and where the sync belongs.

use beff_backends::Direction;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who takes part, the first letter of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// S: one rank on a file of its own; the others wait.
    Single,
    /// P: all ranks of the row, each on its own.
    Parallel,
    /// C: all ranks of the row in collective calls.
    Collective,
}

impl Group {
    /// The letter a name begins with.
    #[must_use]
    pub fn letter(self) -> char {
        match self {
            Self::Single => 'S',
            Self::Parallel => 'P',
            Self::Collective => 'C',
        }
    }
}

/// What says where a call goes in the file, the end of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pointer {
    /// The file pointer of the rank; with several ranks in a view that shows its tiles only.
    Indv,
    /// An offset in each call.
    Expl,
    /// The one file pointer of all ranks.
    Shared,
    /// The file pointer of the rank in a file of its own.
    Priv,
}

impl Pointer {
    /// As in the names of the benchmarks.
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

/// How a call ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Style {
    /// The call returns when the buffer may be used again.
    Blocking,
    /// The call returns a request that is waited for (MPI_File_iwrite; with group C the collectives of MPI 3.1).
    Request,
    /// A collective call in two halves, begin and end. This is what the release calls a non-blocking collective.
    Split,
}

/// What a benchmark moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Who takes part.
    pub group: Group,
    /// What says where.
    pub pointer: Pointer,
    /// Write or read.
    pub direction: Direction,
    /// How a call ends.
    pub style: Style,
}

impl Transfer {
    /// A file for each rank.
    #[must_use]
    pub fn is_private(&self) -> bool {
        self.pointer == Pointer::Priv
    }

    /// The same bytes by the blocking call of the table: what t_pure is the time of.
    #[must_use]
    pub fn blocking(&self) -> Self {
        Self { style: Style::Blocking, ..*self }
    }

    /// Where a call goes is decided by the order of arrival: the file is in an order that nothing promises.
    #[must_use]
    pub fn by_arrival(&self) -> bool {
        self.group == Group::Parallel && self.pointer == Pointer::Shared
    }
}

/// What one repetition of a benchmark is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// One sample of X bytes.
    Transfer(Transfer),
    /// Opening the common file, writing 1 byte at offset 0, closing it.
    OpenClose,
}

/// One benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Benchmark {
    /// As it is printed. Typed in any case.
    pub name: &'static str,
    /// What is repeated.
    pub action: Action,
    /// The MPI calls of one repetition in words.
    pub calls: &'static str,
}

/// Where the sync of a write belongs. A heading of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// One sync behind all repetitions.
    Aggregate,
    /// One sync behind each.
    NonAggregate,
}

/// Which modes a user wants to see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ModeChoice {
    /// Aggregate, then non-aggregate.
    #[default]
    Both,
    /// Aggregate alone.
    Aggregate,
    /// Non-aggregate alone, where there is such a mode; what has one mode keeps it, as in the release.
    NonAggregate,
}

impl Benchmark {
    /// What it moves; `None` for Open_Close.
    #[must_use]
    pub fn transfer(&self) -> Option<&Transfer> {
        match &self.action {
            Action::Transfer(transfer) => Some(transfer),
            Action::OpenClose => None,
        }
    }

    /// Whether one rank does everything and no other number of ranks makes sense.
    #[must_use]
    pub fn is_single(&self) -> bool {
        self.transfer().is_some_and(|t| t.group == Group::Single)
    }

    /// Whether it runs again with a CPU load, and is reported with its overlap.
    #[must_use]
    pub fn has_overlap(&self) -> bool {
        self.transfer().is_some_and(|t| t.style != Style::Blocking)
    }

    /// Whether there is a non-aggregate mode: for blocking writes only.
    #[must_use]
    pub fn has_non_aggregate(&self) -> bool {
        self.transfer().is_some_and(|t| t.direction == Direction::Write && t.style == Style::Blocking)
    }

    /// The modes in which it runs, in the order of the report; never none.
    #[must_use]
    pub fn modes(&self, choice: ModeChoice) -> &'static [Mode] {
        match choice {
            _ if !self.has_non_aggregate() => &[Mode::Aggregate],
            ModeChoice::Both => &[Mode::Aggregate, Mode::NonAggregate],
            ModeChoice::Aggregate => &[Mode::Aggregate],
            ModeChoice::NonAggregate => &[Mode::NonAggregate],
        }
    }

    /// Whether it means something in a file of MPI alone: collective calls, a shared file pointer, the opening itself. The
    /// others are offsets and lengths, and run through any backend; where they [have overlap](Self::has_overlap), through
    /// one that can leave a transfer in flight while the program computes.
    #[must_use]
    pub fn needs_mpi_file(&self) -> bool {
        self.transfer().is_none_or(|t| t.group == Group::Collective || t.pointer == Pointer::Shared)
    }
}
