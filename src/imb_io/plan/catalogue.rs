//! Catalogue of the benchmarks: the 37 of the release, and 4 for the non-blocking collectives of MPI 3.1.

use beff_backends::Direction::{self, Read, Write};

use super::benchmark::BenchmarkClass::{self, Collective as C, Parallel as P, Single as S};
use super::benchmark::Positioning::{self, Expl, Indv, Priv, Shared};
use super::benchmark::Synchronism::{self, Blocking, Request, Split};
use super::benchmark::{ImbBenchmark, MeasuredOperation, TransferSpec};

/// Number of benchmarks of the release.
pub const RELEASE_COUNT: usize = 37;

/// Entry of a benchmark that moves data.
const fn row(
    name: &'static str,
    (group, pointer): (BenchmarkClass, Positioning),
    direction: Direction,
    style: Synchronism,
    calls: &'static str,
) -> ImbBenchmark {
    ImbBenchmark {
        name,
        operation: MeasuredOperation::Transfer(TransferSpec {
            class: group,
            positioning: pointer,
            direction,
            synchronism: style,
        }),
        calls,
    }
}

/// The 37 benchmarks of the release in run order, then the additional ones.
static ALL: [ImbBenchmark; RELEASE_COUNT + 4] = [
    row("S_Write_Indv", (S, Indv), Write, Blocking, "MPI_File_write"),
    row("S_Read_Indv", (S, Indv), Read, Blocking, "MPI_File_read"),
    row("S_Write_Expl", (S, Expl), Write, Blocking, "MPI_File_write_at"),
    row("S_Read_Expl", (S, Expl), Read, Blocking, "MPI_File_read_at"),
    row("S_IWrite_Indv", (S, Indv), Write, Request, "MPI_File_iwrite, MPI_Wait"),
    row("S_IRead_Indv", (S, Indv), Read, Request, "MPI_File_iread, MPI_Wait"),
    row("S_IWrite_Expl", (S, Expl), Write, Request, "MPI_File_iwrite_at, MPI_Wait"),
    row("S_IRead_Expl", (S, Expl), Read, Request, "MPI_File_iread_at, MPI_Wait"),
    row("P_Write_Indv", (P, Indv), Write, Blocking, "MPI_File_write"),
    row("P_Read_Indv", (P, Indv), Read, Blocking, "MPI_File_read"),
    row("P_Write_Expl", (P, Expl), Write, Blocking, "MPI_File_write_at"),
    row("P_Read_Expl", (P, Expl), Read, Blocking, "MPI_File_read_at"),
    row("P_Write_Shared", (P, Shared), Write, Blocking, "MPI_File_write_shared"),
    row("P_Read_Shared", (P, Shared), Read, Blocking, "MPI_File_read_shared"),
    row("P_Write_Priv", (P, Priv), Write, Blocking, "MPI_File_write"),
    row("P_Read_Priv", (P, Priv), Read, Blocking, "MPI_File_read"),
    row("P_IWrite_Indv", (P, Indv), Write, Request, "MPI_File_iwrite, MPI_Wait"),
    row("P_IRead_Indv", (P, Indv), Read, Request, "MPI_File_iread, MPI_Wait"),
    row("P_IWrite_Expl", (P, Expl), Write, Request, "MPI_File_iwrite_at, MPI_Wait"),
    row("P_IRead_Expl", (P, Expl), Read, Request, "MPI_File_iread_at, MPI_Wait"),
    row("P_IWrite_Shared", (P, Shared), Write, Request, "MPI_File_iwrite_shared, MPI_Wait"),
    row("P_IRead_Shared", (P, Shared), Read, Request, "MPI_File_iread_shared, MPI_Wait"),
    row("P_IWrite_Priv", (P, Priv), Write, Request, "MPI_File_iwrite, MPI_Wait"),
    row("P_IRead_Priv", (P, Priv), Read, Request, "MPI_File_iread, MPI_Wait"),
    row("C_Write_Indv", (C, Indv), Write, Blocking, "MPI_File_write_all"),
    row("C_Read_Indv", (C, Indv), Read, Blocking, "MPI_File_read_all"),
    row("C_Write_Expl", (C, Expl), Write, Blocking, "MPI_File_write_at_all"),
    row("C_Read_Expl", (C, Expl), Read, Blocking, "MPI_File_read_at_all"),
    row("C_Write_Shared", (C, Shared), Write, Blocking, "MPI_File_write_ordered"),
    row("C_Read_Shared", (C, Shared), Read, Blocking, "MPI_File_read_ordered"),
    row("C_IWrite_Indv", (C, Indv), Write, Split, "MPI_File_write_all_begin, MPI_File_write_all_end"),
    row("C_IRead_Indv", (C, Indv), Read, Split, "MPI_File_read_all_begin, MPI_File_read_all_end"),
    row("C_IWrite_Expl", (C, Expl), Write, Split, "MPI_File_write_at_all_begin, MPI_File_write_at_all_end"),
    row("C_IRead_Expl", (C, Expl), Read, Split, "MPI_File_read_at_all_begin, MPI_File_read_at_all_end"),
    row("C_IWrite_Shared", (C, Shared), Write, Split, "MPI_File_write_ordered_begin, MPI_File_write_ordered_end"),
    row("C_IRead_Shared", (C, Shared), Read, Split, "MPI_File_read_ordered_begin, MPI_File_read_ordered_end"),
    ImbBenchmark {
        name: "Open_Close",
        operation: MeasuredOperation::OpenClose,
        calls: "MPI_File_open, MPI_File_write_at (1 byte), MPI_File_close",
    },
    row("C_IWrite_All_Indv", (C, Indv), Write, Request, "MPI_File_iwrite_all, MPI_Wait"),
    row("C_IRead_All_Indv", (C, Indv), Read, Request, "MPI_File_iread_all, MPI_Wait"),
    row("C_IWrite_All_Expl", (C, Expl), Write, Request, "MPI_File_iwrite_at_all, MPI_Wait"),
    row("C_IRead_All_Expl", (C, Expl), Read, Request, "MPI_File_iread_at_all, MPI_Wait"),
];

impl ImbBenchmark {
    /// True for the 37 benchmarks of the release.
    #[must_use]
    pub fn in_release(&self) -> bool {
        default_list().contains(self)
    }
}

/// Benchmarks that run by default: all 37, class by class as in the guide, S, P, C, then Open_Close. The order within a
/// class is specific to this program: blocking before non-blocking; by pointer (Indv, Expl, Shared, Priv); a read after its
/// write.
#[must_use]
pub fn default_list() -> &'static [ImbBenchmark] {
    &ALL[..RELEASE_COUNT]
}

/// All benchmarks: [`default_list`], then the additional ones.
#[must_use]
pub fn all() -> &'static [ImbBenchmark] {
    &ALL
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imb_io::plan::{Mode, ModeChoice};

    fn style(style: Synchronism) -> usize {
        all().iter().filter_map(ImbBenchmark::transfer).filter(|t| t.synchronism == style).count()
    }

    fn of(group: BenchmarkClass, style: Synchronism) -> usize {
        default_list()
            .iter()
            .filter_map(ImbBenchmark::transfer)
            .filter(|t| t.class == group && t.synchronism == style)
            .count()
    }

    #[test]
    fn blocking_calls_at_own_offsets_have_bare_loops() {
        let names: Vec<_> = all().iter().filter(|one| one.has_bare_loop()).map(|one| one.name).collect();
        let of =
            |group: &str| ["Write_Indv", "Read_Indv", "Write_Expl", "Read_Expl"].map(|end| format!("{group}_{end}"));
        assert_eq!(names, ["S", "P", "C"].map(of).concat());
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
            assert!(all()[..n]
                .iter()
                .all(|other| other.name != benchmark.name && other.operation != benchmark.operation));
        }
    }

    /// Checks the entries against the naming rules.
    #[test]
    fn names_and_calls_follow_from_what_is_done() {
        for benchmark in all() {
            let Some(t) = benchmark.transfer() else { continue };
            let ours = t.class == C && t.synchronism == Request;
            let (word, verb) = if t.direction == Write { ("Write", "write") } else { ("Read", "read") };
            let i = if t.synchronism == Blocking { "" } else { "I" };
            let all = if ours { "_All" } else { "" };
            assert_eq!(benchmark.name, format!("{}_{i}{word}{all}_{}", t.class.letter(), t.positioning.name()));
            let end = match (t.class, t.positioning) {
                (C, Indv | Priv) => "_all",
                (C, Expl) => "_at_all",
                (C, Shared) => "_ordered",
                (_, Indv | Priv) => "",
                (_, Expl) => "_at",
                (_, Shared) => "_shared",
            };
            let calls = match t.synchronism {
                Blocking => format!("MPI_File_{verb}{end}"),
                Request => format!("MPI_File_i{verb}{end}, MPI_Wait"),
                Split => format!("MPI_File_{verb}{end}_begin, MPI_File_{verb}{end}_end"),
            };
            assert_eq!(benchmark.calls, calls);
        }
    }

    /// t_pure of a non-blocking benchmark is the time of the benchmark with its name without the I.
    #[test]
    fn every_non_blocking_benchmark_has_its_blocking_call() {
        let non_blocking: Vec<_> = all().iter().filter(|b| b.has_overlap()).collect();
        assert_eq!(non_blocking.len(), 18 + 4);
        for benchmark in non_blocking {
            let name = benchmark.name.replace("_All", "").replace("_IWrite", "_Write").replace("_IRead", "_Read");
            let blocking = all().iter().find(|b| b.name == name).unwrap();
            assert_eq!(benchmark.transfer().map(TransferSpec::blocking), blocking.transfer().copied(), "{name}");
            assert!(!blocking.has_overlap(), "{name}");
        }
    }

    #[test]
    fn every_benchmark_of_the_catalogue_is_possible() {
        for t in all().iter().filter_map(ImbBenchmark::transfer) {
            assert!(t.class != S || matches!(t.positioning, Indv | Expl));
            assert!(t.class != C || t.positioning != Priv);
            assert!(t.synchronism != Split || t.class == C);
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
