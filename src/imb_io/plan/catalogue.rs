//! Every benchmark with what it does: the 37 of the release, and ours for the non-blocking collectives of MPI 3.1.

use beff_backends::Direction;
use serde::{Deserialize, Serialize};

use super::table::ALL;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// One sync behind all repetitions.
    Aggregate,
    /// One sync behind each.
    NonAggregate,
}

/// Which modes a user wants to see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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

    /// Whether it runs a second time with a CPU load, and is reported with its overlap.
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

    /// Whether it is one of the 37 of the release.
    #[must_use]
    pub fn in_release(&self) -> bool {
        all()[..RELEASE].contains(self)
    }
}

/// Benchmarks of the release.
pub const RELEASE: usize = 37;

/// What runs if nothing is named: all 37, group by group as in the guide, S, P, C, then Open_Close. The order within a
/// group is ours: first what blocks, then what does not; by pointer (Indv, Expl, Shared, Priv); a read after its write.
#[must_use]
pub fn default_list() -> &'static [Benchmark] {
    &ALL[..RELEASE]
}

/// All that can be named: [`default_list`], then ours.
#[must_use]
pub fn all() -> &'static [Benchmark] {
    &ALL
}

#[cfg(test)]
mod tests {
    use super::Group::{Collective as C, Parallel as P, Single as S};
    use super::Pointer::{Expl, Indv, Priv, Shared};
    use super::Style::{Blocking, Request, Split};
    use super::*;

    fn style(style: Style) -> usize {
        all().iter().filter_map(Benchmark::transfer).filter(|t| t.style == style).count()
    }

    fn of(group: Group, style: Style) -> usize {
        default_list().iter().filter_map(Benchmark::transfer).filter(|t| t.group == group && t.style == style).count()
    }

    #[test]
    fn eighteen_of_each_and_open_close() {
        assert_eq!((default_list().len(), all().len()), (37, 41));
        assert_eq!([S, P, C].map(|group| of(group, Blocking)), [4, 8, 6]);
        assert_eq!((of(S, Request), of(P, Request), of(C, Split)), (4, 8, 6));
        assert_eq!((style(Blocking), style(Request), style(Split)), (18, 4 + 8 + 4, 6));
        let first = |name| default_list().iter().position(|b| b.name.starts_with(name)).unwrap();
        assert_eq!((first("S_"), first("P_"), first("C_"), first("Open_Close")), (0, 8, 24, 36));
        assert!(all().iter().all(|b| b.in_release() == default_list().contains(b)));
        for (n, benchmark) in all().iter().enumerate() {
            assert!(all()[..n].iter().all(|other| other.name != benchmark.name && other.action != benchmark.action));
        }
    }

    /// The rows are typed; these rules say what they must be.
    #[test]
    fn names_and_calls_follow_from_what_is_done() {
        for benchmark in all() {
            let Some(t) = benchmark.transfer() else { continue };
            let ours = t.group == C && t.style == Request;
            let (word, verb) = if t.direction == Direction::Write { ("Write", "write") } else { ("Read", "read") };
            let i = if t.style == Blocking { "" } else { "I" };
            let all = if ours { "_All" } else { "" };
            assert_eq!(benchmark.name, format!("{}_{i}{word}{all}_{}", t.group.letter(), t.pointer.name()));
            let end = match (t.group, t.pointer) {
                (C, Indv | Priv) => "_all",
                (C, Expl) => "_at_all",
                (C, Shared) => "_ordered",
                (_, Indv | Priv) => "",
                (_, Expl) => "_at",
                (_, Shared) => "_shared",
            };
            let calls = match t.style {
                Blocking => format!("MPI_File_{verb}{end}"),
                Request => format!("MPI_File_i{verb}{end}, MPI_Wait"),
                Split => format!("MPI_File_{verb}{end}_begin, MPI_File_{verb}{end}_end"),
            };
            assert_eq!(benchmark.calls, calls);
        }
    }

    #[test]
    fn nothing_of_the_catalogue_is_impossible() {
        for t in all().iter().filter_map(Benchmark::transfer) {
            assert!(t.group != S || matches!(t.pointer, Indv | Expl));
            assert!(t.group != C || t.pointer != Priv);
            assert!(t.style != Split || t.group == C);
        }
    }

    #[test]
    fn two_modes_for_blocking_writes_only() {
        let two: Vec<_> = all().iter().filter(|b| b.modes(ModeChoice::Both).len() == 2).map(|b| b.name).collect();
        let writes = ["S_Write_Indv", "S_Write_Expl", "P_Write_Indv", "P_Write_Expl", "P_Write_Shared", "P_Write_Priv"];
        assert_eq!(two, [&writes[..], &["C_Write_Indv", "C_Write_Expl", "C_Write_Shared"]].concat());
        for benchmark in all() {
            let only = if two.contains(&benchmark.name) { Mode::NonAggregate } else { Mode::Aggregate };
            assert_eq!(benchmark.modes(ModeChoice::NonAggregate), [only]);
            assert_eq!(benchmark.modes(ModeChoice::Aggregate), [Mode::Aggregate]);
        }
    }

    #[test]
    fn offsets_and_lengths_alone_need_no_mpi() {
        for benchmark in all() {
            let plain =
                ["S_", "P_"].iter().any(|p| benchmark.name.starts_with(p)) && !benchmark.name.ends_with("Shared");
            assert_eq!(benchmark.needs_mpi_file(), !plain, "{}", benchmark.name);
        }
        assert_eq!(all().iter().filter(|b| !b.needs_mpi_file() && !b.has_overlap()).count(), 4 + 6);
    }
}
