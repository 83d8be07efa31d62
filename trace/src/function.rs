//! Table of recorded functions. Names are those of the MPI standard without `MPI_`, or of POSIX.

/// Direction of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// From the file into memory.
    Read,
    /// From memory into the file.
    Write,
}

/// Positioning of a data access (MPI-4.0 section 14.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PointerKind {
    /// An explicit offset, in etypes of the view.
    Offset,
    /// The individual file pointer.
    Individual,
    /// The shared file pointer.
    Shared,
}

/// Blocking, nonblocking or split form of a data access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AccessForm {
    /// Returns when the access is complete.
    Blocking,
    /// Returns a request.
    Nonblocking,
    /// First half of a split collective call, with buffer, count and type.
    Begin,
    /// Second half, with the moved bytes.
    End,
}

/// Role of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// Data access.
    Data {
        /// Direction.
        direction: Direction,
        /// Positioning.
        pointer: PointerKind,
        /// Form.
        form: AccessForm,
        /// Collective over the ranks of the file.
        collective: bool,
    },
    /// File management or query.
    File {
        /// Collective over the ranks of the file.
        collective: bool,
    },
    /// Completes, tests, frees or cancels requests.
    Request,
    /// Begins, ends or marks the program.
    Program,
    /// POSIX call of the program that changes a file which MPI-IO uses.
    Posix,
}

const fn data(direction: Direction, pointer: PointerKind, form: AccessForm, collective: bool) -> Role {
    Role::Data { direction, pointer, form, collective }
}
const INDEPENDENT: Role = Role::File { collective: false };
const COLLECTIVE: Role = Role::File { collective: true };

macro_rules! functions {
    ($($name:ident, $typed:literal, $large:literal, $role:expr;)+) => {
        /// An MPI function, without the `_c` of its large-count variant, or a POSIX function.
        #[allow(missing_docs)] // the names are those of the standards
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Function { $($name,)+ }

        const ROWS: &[(Function, &str, bool, Role)] = {
            use Direction::{Read, Write};
            use AccessForm::{Begin, Blocking, End, Nonblocking};
            use PointerKind::{Individual, Offset, Shared};
            &[$((Function::$name, $typed, $large, $role),)+]
        };
    };
}

functions! {
    ReadAt, "File_read_at", true, data(Read, Offset, Blocking, false);
    ReadAtAll, "File_read_at_all", true, data(Read, Offset, Blocking, true);
    WriteAt, "File_write_at", true, data(Write, Offset, Blocking, false);
    WriteAtAll, "File_write_at_all", true, data(Write, Offset, Blocking, true);
    IreadAt, "File_iread_at", true, data(Read, Offset, Nonblocking, false);
    IreadAtAll, "File_iread_at_all", true, data(Read, Offset, Nonblocking, true);
    IwriteAt, "File_iwrite_at", true, data(Write, Offset, Nonblocking, false);
    IwriteAtAll, "File_iwrite_at_all", true, data(Write, Offset, Nonblocking, true);
    ReadAtAllBegin, "File_read_at_all_begin", true, data(Read, Offset, Begin, true);
    ReadAtAllEnd, "File_read_at_all_end", false, data(Read, Offset, End, true);
    WriteAtAllBegin, "File_write_at_all_begin", true, data(Write, Offset, Begin, true);
    WriteAtAllEnd, "File_write_at_all_end", false, data(Write, Offset, End, true);
    Read, "File_read", true, data(Read, Individual, Blocking, false);
    ReadAll, "File_read_all", true, data(Read, Individual, Blocking, true);
    Write, "File_write", true, data(Write, Individual, Blocking, false);
    WriteAll, "File_write_all", true, data(Write, Individual, Blocking, true);
    Iread, "File_iread", true, data(Read, Individual, Nonblocking, false);
    IreadAll, "File_iread_all", true, data(Read, Individual, Nonblocking, true);
    Iwrite, "File_iwrite", true, data(Write, Individual, Nonblocking, false);
    IwriteAll, "File_iwrite_all", true, data(Write, Individual, Nonblocking, true);
    ReadAllBegin, "File_read_all_begin", true, data(Read, Individual, Begin, true);
    ReadAllEnd, "File_read_all_end", false, data(Read, Individual, End, true);
    WriteAllBegin, "File_write_all_begin", true, data(Write, Individual, Begin, true);
    WriteAllEnd, "File_write_all_end", false, data(Write, Individual, End, true);
    ReadShared, "File_read_shared", true, data(Read, Shared, Blocking, false);
    WriteShared, "File_write_shared", true, data(Write, Shared, Blocking, false);
    IreadShared, "File_iread_shared", true, data(Read, Shared, Nonblocking, false);
    IwriteShared, "File_iwrite_shared", true, data(Write, Shared, Nonblocking, false);
    ReadOrdered, "File_read_ordered", true, data(Read, Shared, Blocking, true);
    WriteOrdered, "File_write_ordered", true, data(Write, Shared, Blocking, true);
    ReadOrderedBegin, "File_read_ordered_begin", true, data(Read, Shared, Begin, true);
    ReadOrderedEnd, "File_read_ordered_end", false, data(Read, Shared, End, true);
    WriteOrderedBegin, "File_write_ordered_begin", true, data(Write, Shared, Begin, true);
    WriteOrderedEnd, "File_write_ordered_end", false, data(Write, Shared, End, true);
    Open, "File_open", false, COLLECTIVE;
    Close, "File_close", false, COLLECTIVE;
    Delete, "File_delete", false, INDEPENDENT;
    SetSize, "File_set_size", false, COLLECTIVE;
    Preallocate, "File_preallocate", false, COLLECTIVE;
    GetSize, "File_get_size", false, INDEPENDENT;
    GetGroup, "File_get_group", false, INDEPENDENT;
    GetAmode, "File_get_amode", false, INDEPENDENT;
    SetInfo, "File_set_info", false, COLLECTIVE;
    GetInfo, "File_get_info", false, INDEPENDENT;
    SetView, "File_set_view", false, COLLECTIVE;
    GetView, "File_get_view", false, INDEPENDENT;
    Seek, "File_seek", false, INDEPENDENT;
    GetPosition, "File_get_position", false, INDEPENDENT;
    GetByteOffset, "File_get_byte_offset", false, INDEPENDENT;
    SeekShared, "File_seek_shared", false, COLLECTIVE;
    GetPositionShared, "File_get_position_shared", false, INDEPENDENT;
    GetTypeExtent, "File_get_type_extent", true, INDEPENDENT;
    RegisterDatarep, "Register_datarep", true, Role::Program;
    SetAtomicity, "File_set_atomicity", false, COLLECTIVE;
    GetAtomicity, "File_get_atomicity", false, INDEPENDENT;
    Sync, "File_sync", false, COLLECTIVE;
    CreateErrhandler, "File_create_errhandler", false, Role::Program;
    SetErrhandler, "File_set_errhandler", false, INDEPENDENT;
    GetErrhandler, "File_get_errhandler", false, INDEPENDENT;
    CallErrhandler, "File_call_errhandler", false, INDEPENDENT;
    Init, "Init", false, Role::Program;
    InitThread, "Init_thread", false, Role::Program;
    SessionInit, "Session_init", false, Role::Program;
    SessionFinalize, "Session_finalize", false, Role::Program;
    Finalize, "Finalize", false, Role::Program;
    Abort, "Abort", false, Role::Program;
    Pcontrol, "Pcontrol", false, Role::Program;
    Wait, "Wait", false, Role::Request;
    Waitany, "Waitany", false, Role::Request;
    Waitall, "Waitall", false, Role::Request;
    Waitsome, "Waitsome", false, Role::Request;
    Test, "Test", false, Role::Request;
    Testany, "Testany", false, Role::Request;
    Testall, "Testall", false, Role::Request;
    Testsome, "Testsome", false, Role::Request;
    RequestFree, "Request_free", false, Role::Request;
    Cancel, "Cancel", false, Role::Request;
    RequestGetStatus, "Request_get_status", false, Role::Request;
    RequestGetStatusAny, "Request_get_status_any", false, Role::Request;
    RequestGetStatusAll, "Request_get_status_all", false, Role::Request;
    RequestGetStatusSome, "Request_get_status_some", false, Role::Request;
    Unlink, "unlink", false, Role::Posix;
    Truncate, "truncate", false, Role::Posix;
    Rename, "rename", false, Role::Posix;
    OpenTruncate, "open_truncate", false, Role::Posix;
    Marker, "Marker", false, Role::Program;
}

impl Function {
    /// All functions, the 60 of the MPI-IO chapter first.
    pub fn all() -> impl Iterator<Item = Self> {
        ROWS.iter().map(|row| row.0)
    }

    fn row(self) -> &'static (Self, &'static str, bool, Role) {
        &ROWS[self as usize]
    }

    /// The name without `MPI_` and without `_c`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// The name for users: with `MPI_`, except for calls of POSIX.
    #[must_use]
    pub fn full_name(self) -> String {
        let prefix = if self.role() == Role::Posix { "" } else { "MPI_" };
        format!("{prefix}{}", self.name())
    }

    /// True if MPI-4 has a large-count variant, `_c`.
    #[must_use]
    pub fn has_large_count_variant(self) -> bool {
        self.row().2
    }

    /// Role of the function.
    #[must_use]
    pub fn role(self) -> Role {
        self.row().3
    }

    /// Returns the function of this number (`function as u8`).
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        ROWS.get(usize::from(number)).map(|row| row.0)
    }

    /// Returns the function of a name, with or without `MPI_`, and whether the name ends in `_c`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<(Self, bool)> {
        let name = name.strip_prefix("MPI_").unwrap_or(name);
        let find = |name: &str| ROWS.iter().find(|row| row.1 == name);
        match name.strip_suffix("_c").and_then(find) {
            Some(row) if row.2 => Some((row.0, true)),
            _ => find(name).map(|row| (row.0, false)),
        }
    }

    /// Direction of a data access.
    #[must_use]
    pub fn direction(self) -> Option<Direction> {
        match self.role() {
            Role::Data { direction, .. } => Some(direction),
            _ => None,
        }
    }

    /// True if the function is collective over the ranks of the file.
    #[must_use]
    pub fn is_collective(self) -> bool {
        matches!(self.role(), Role::Data { collective: true, .. } | Role::File { collective: true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_names_and_counts_are_those_of_the_standard() {
        for (n, function) in Function::all().enumerate() {
            assert_eq!(function as usize, n);
            assert_eq!(Function::from_name(function.name()), Some((function, false)));
            let twin = format!("MPI_{}_c", function.name());
            assert_eq!(Function::from_name(&twin), function.has_large_count_variant().then_some((function, true)));
        }
        let of_files = || Function::all().take(60);
        assert_eq!(of_files().filter(|f| f.direction().is_some()).count(), 34);
        assert_eq!(of_files().filter(|f| f.has_large_count_variant()).count(), 30);
        assert_eq!(Function::CallErrhandler as usize, 59);
        assert_eq!(Function::Init as usize, 60);
    }
}
