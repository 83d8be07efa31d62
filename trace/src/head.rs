//! What stands before the calls: the program, its processes, and the dictionaries. Numbers in a dictionary are indices.

use crate::types::Type;

/// Everything before the calls.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Head {
    /// MPI_Get_library_version.
    pub library: String,
    /// Command line of rank 0, one element a word.
    pub command: Vec<String>,
    /// Start of the recording, Unix time in ns; 0 if unknown.
    pub started_unix_ns: u64,
    /// What the profiler itself costs a call, in ns, measured at the start; None if it was not.
    pub cost_ns: Option<f64>,
    /// One for each world rank, in their order.
    pub processes: Vec<Process>,
    /// Each a list of world ranks, in the order of the communicator.
    pub comms: Vec<Vec<u32>>,
    /// Every type stands behind those it is made of.
    pub types: Vec<Type>,
    /// Hints as (key, value).
    pub infos: Vec<Vec<(String, String)>>,
    /// Files.
    pub files: Vec<OpenedFile>,
}

/// A process.
#[derive(Clone, Debug, PartialEq)]
pub struct Process {
    /// Name of its host.
    pub host: String,
    /// Process id there.
    pub pid: u32,
    /// What was added to its clock at the begin and at the end to have that of rank 0, in ns.
    pub clock_offset_ns: [i64; 2],
    /// How its recording ended.
    pub end: End,
    /// Calls it has.
    pub calls: u64,
    /// Bytes that the process read from and wrote to storage by the count of the kernel (/proc/self/io), if it was read.
    pub storage_bytes: Option<[u64; 2]>,
}

/// How the recording of a process ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// MPI_Finalize (or the last session) came.
    #[default]
    Complete,
    /// MPI_Abort came.
    Aborted,
    /// The process ended without either; the last calls may be missing.
    Cut,
    /// The disk or the limit was full; later calls are missing.
    Full,
}

impl End {
    /// As it is written.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Aborted => "aborted",
            Self::Cut => "cut",
            Self::Full => "full",
        }
    }

    /// The one of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [Self::Complete, Self::Aborted, Self::Cut, Self::Full].into_iter().find(|end| end.name() == name)
    }
}

/// A file of the recorded program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenedFile {
    /// Its name, without the prefix of a file system (`ufs:`).
    pub path: String,
    /// Its size before it was first opened, None if it did not exist.
    pub size_bytes: Option<u64>,
    /// Kind of its file system, if known.
    pub fs_type: String,
    /// If it was made, or changed, by other means than MPI-IO while the program ran: when that ended, in ns since the first call. None: it was
    /// as it was before, or did not exist.
    pub made_ns: Option<u64>,
    /// If it was removed, or renamed, by other means than MPI-IO: when the first rank that had opened it began to open another file and did not find
    /// it any more, in ns since the first call. None: it was there, or nobody looked.
    pub gone_ns: Option<u64>,
}
