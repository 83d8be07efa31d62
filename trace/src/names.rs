//! Values that have a name in the standard and another number in each library.

/// Error classes of MPI that files can meet, by name (MPI-4.0 table 9.1 and 9.2).
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
    /// What has no class of its own.
    pub const OTHER: Self = Self(0);

    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        (0_u8..).take(CLASSES.len()).map(Self)
    }

    /// The name, `MPI_ERR_...`.
    #[must_use]
    pub fn name(self) -> &'static str {
        CLASSES[usize::from(self.0)]
    }

    /// The class of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|class| class.name() == name)
    }

    /// Its number in this table; has nothing to do with the number in a library.
    #[must_use]
    pub fn number(self) -> u8 {
        self.0
    }

    /// The class of this number of the table.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        (usize::from(number) < CLASSES.len()).then_some(Self(number))
    }
}

/// Access mode of MPI_File_open, bits of our own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Amode(pub u16);

impl Amode {
    /// Names in the order of the bits, as in `MPI_MODE_...`, in small letters.
    pub const NAMES: [&'static str; 9] =
        ["rdonly", "rdwr", "wronly", "create", "excl", "delete_on_close", "unique_open", "append", "sequential"];

    /// True if the mode of this name is in it.
    #[must_use]
    pub fn has(self, name: &str) -> bool {
        Self::NAMES.iter().position(|n| *n == name).is_some_and(|bit| self.0 & (1 << bit) != 0)
    }
}

/// From where a seek counts.
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
    /// As it is written: `set`, `cur`, `end`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Set => "set",
            Self::Current => "cur",
            Self::End => "end",
        }
    }

    /// The one of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [Self::Set, Self::Current, Self::End].into_iter().find(|w| w.name() == name)
    }
}
