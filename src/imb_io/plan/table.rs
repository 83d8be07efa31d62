//! The rows of the catalogue.

use beff_backends::Direction::{self, Read, Write};

use super::catalogue::Group;
use super::catalogue::Group::{Collective as C, Parallel as P, Single as S};
use super::catalogue::Pointer;
use super::catalogue::Pointer::{Expl, Indv, Priv, Shared};
use super::catalogue::Style;
use super::catalogue::Style::{Blocking, Request, Split};
use super::catalogue::{Action, Benchmark, Transfer, RELEASE};

/// A row that moves data.
const fn row(
    name: &'static str,
    (group, pointer): (Group, Pointer),
    direction: Direction,
    style: Style,
    calls: &'static str,
) -> Benchmark {
    Benchmark { name, action: Action::Transfer(Transfer { group, pointer, direction, style }), calls }
}

/// The 37 of the release in the order in which they run, then ours.
pub(super) static ALL: [Benchmark; RELEASE + 4] = [
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
    Benchmark {
        name: "Open_Close",
        action: Action::OpenClose,
        calls: "MPI_File_open, MPI_File_write_at (1 byte), MPI_File_close",
    },
    row("C_IWrite_All_Indv", (C, Indv), Write, Request, "MPI_File_iwrite_all, MPI_Wait"),
    row("C_IRead_All_Indv", (C, Indv), Read, Request, "MPI_File_iread_all, MPI_Wait"),
    row("C_IWrite_All_Expl", (C, Expl), Write, Request, "MPI_File_iwrite_at_all, MPI_Wait"),
    row("C_IRead_All_Expl", (C, Expl), Read, Request, "MPI_File_iread_at_all, MPI_Wait"),
];
