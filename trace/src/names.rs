//! Values with standard names and library-dependent numbers.

/// MPI error classes that file functions can return, by name (MPI-4.0 table 9.1 and 9.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ErrorClass(u8);

const CLASSES: &[&str] = &[
    "MPI_ERR_OTHER",
    "MPI_ERR_UNKNOWN",
    "MPI_ERR_INTERN",
    "MPI_ERR_ACCESS",
    "MPI_ERR_AMODE",
    "MPI_ERR_ARG",
    "MPI_ERR_BAD_FILE",
    "MPI_ERR_BUFFER",
    "MPI_ERR_COMM",
    "MPI_ERR_CONVERSION",
    "MPI_ERR_COUNT",
    "MPI_ERR_DUP_DATAREP",
    "MPI_ERR_FILE",
    "MPI_ERR_FILE_EXISTS",
    "MPI_ERR_FILE_IN_USE",
    "MPI_ERR_GROUP",
    "MPI_ERR_INFO",
    "MPI_ERR_INFO_KEY",
    "MPI_ERR_INFO_NOKEY",
    "MPI_ERR_INFO_VALUE",
    "MPI_ERR_IN_STATUS",
    "MPI_ERR_IO",
    "MPI_ERR_NAME",
    "MPI_ERR_NO_MEM",
    "MPI_ERR_NO_SPACE",
    "MPI_ERR_NO_SUCH_FILE",
    "MPI_ERR_NOT_SAME",
    "MPI_ERR_OP",
    "MPI_ERR_PENDING",
    "MPI_ERR_QUOTA",
    "MPI_ERR_RANK",
    "MPI_ERR_READ_ONLY",
    "MPI_ERR_REQUEST",
    "MPI_ERR_TAG",
    "MPI_ERR_TRUNCATE",
    "MPI_ERR_TYPE",
    "MPI_ERR_UNSUPPORTED_DATAREP",
    "MPI_ERR_UNSUPPORTED_OPERATION",
];

impl ErrorClass {
    /// Errors without a class of their own.
    pub const OTHER: Self = Self(0);

    /// All classes.
    pub fn all() -> impl Iterator<Item = Self> {
        (0_u8..).take(CLASSES.len()).map(Self)
    }

    /// The name, `MPI_ERR_...`.
    #[must_use]
    pub fn name(self) -> &'static str {
        CLASSES[usize::from(self.0)]
    }

    /// Returns the class of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::all().find(|class| class.name() == name)
    }

    /// Number in this table; unrelated to the number in a library.
    #[must_use]
    pub fn number(self) -> u8 {
        self.0
    }

    /// Returns the class of a number of this table.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        (usize::from(number) < CLASSES.len()).then_some(Self(number))
    }
}

/// Access mode of MPI_File_open, with our own bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Amode(pub u16);

impl Amode {
    /// Names in bit order, as in `MPI_MODE_...`, in lower case.
    pub const NAMES: [&'static str; 9] =
        ["rdonly", "rdwr", "wronly", "create", "excl", "delete_on_close", "unique_open", "append", "sequential"];

    /// True if it contains the mode of this name.
    #[must_use]
    pub fn has(self, name: &str) -> bool {
        Self::NAMES.iter().position(|n| *n == name).is_some_and(|bit| self.0 & (1 << bit) != 0)
    }
}

/// Origin of a seek.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Whence {
    /// MPI_SEEK_SET.
    Set,
    /// MPI_SEEK_CUR.
    Current,
    /// MPI_SEEK_END.
    End,
}

impl Whence {
    /// Name in the text: `set`, `cur`, `end`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Set => "set",
            Self::Current => "cur",
            Self::End => "end",
        }
    }

    /// Returns the variant of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Set, Self::Current, Self::End].into_iter().find(|w| w.name() == name)
    }
}

/// Driver prefixes of paths in ROMIO and its derivatives.
const DRIVER_PREFIXES: &[&str] = &[
    "ufs",
    "nfs",
    "xfs",
    "sfs",
    "pfs",
    "hfs",
    "piofs",
    "lustre",
    "gpfs",
    "panfs",
    "pvfs",
    "pvfs2",
    "daos",
    "ime",
    "quobyte",
    "testfs",
    "gridftp",
    "zoidfs",
    "bgl",
    "bglockless",
];

/// The path of a file name without the prefix of a ROMIO driver (`ufs:path`).
#[must_use]
pub fn strip_driver_prefix(name: &str) -> &str {
    match name.split_once(':') {
        Some((prefix, path)) if DRIVER_PREFIXES.iter().any(|driver| driver.eq_ignore_ascii_case(prefix)) => path,
        _ => name,
    }
}
