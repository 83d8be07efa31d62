//! Head of a profile: the program, its processes, and the dictionaries. Numbers in a dictionary are indices.

use crate::types::Datatype;

/// Head of a profile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProfileHead {
    /// MPI_Get_library_version.
    pub library: String,
    /// Command line of rank 0, one element per word.
    pub command: Vec<String>,
    /// Start of the recording, Unix time in ns; 0 if unknown.
    pub started_unix_ns: u64,
    /// Overhead of the profiler per call in ns, measured at the start; None if not measured.
    pub cost_ns: Option<f64>,
    /// One per world rank, in rank order.
    pub processes: Vec<Process>,
    /// World ranks of each communicator, in its order.
    pub comms: Vec<Vec<u32>>,
    /// Datatypes; inner types precede the types built from them.
    pub types: Vec<Datatype>,
    /// Hints as (key, value).
    pub infos: Vec<Vec<(String, String)>>,
    /// Files.
    pub files: Vec<OpenedFile>,
}

impl ProfileHead {
    /// True for a workload written by hand: neither program, library nor start of a recording. Its times are invented.
    #[must_use]
    pub fn is_handwritten(&self) -> bool {
        self.command.is_empty() && self.library.is_empty() && self.started_unix_ns == 0
    }
}

/// A process.
#[derive(Clone, Debug, PartialEq)]
pub struct Process {
    /// Name of the host.
    pub host: String,
    /// Process id on the host.
    pub pid: u32,
    /// Offset of the clock of rank 0 relative to this host's, at begin and end of the recording, in ns.
    pub clock_offset_ns: [i64; 2],
    /// How the recording ended.
    pub end: RecordingStatus,
    /// Number of calls.
    pub calls: u64,
    /// Bytes read from and written to storage by the kernel's accounting (/proc/self/io), if available.
    pub storage_bytes: Option<[u64; 2]>,
}

/// How the recording of a process ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecordingStatus {
    /// By MPI_Finalize (or the end of the last session).
    #[default]
    Complete,
    /// By MPI_Abort.
    Aborted,
    /// The process ended without either; the last calls may be missing.
    Truncated,
    /// The file of the process could not be written (full disk, size limit, error, truncation); later calls are missing.
    LimitReached,
}

impl RecordingStatus {
    /// Name in the text.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Aborted => "aborted",
            Self::Truncated => "cut",
            Self::LimitReached => "full",
        }
    }

    /// Returns the variant of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Complete, Self::Aborted, Self::Truncated, Self::LimitReached].into_iter().find(|end| end.name() == name)
    }
}

/// A file of the recorded program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenedFile {
    /// Path without a file-system prefix (`ufs:`).
    pub path: String,
    /// Size before the first opening, None if it did not exist.
    pub size_bytes: Option<u64>,
    /// File-system type, if known.
    pub fs_type: String,
    /// If the file was created or modified by other means than MPI-IO while the program ran: time of the last modification, in ns since the
    /// first call. None if it was unchanged or did not exist.
    pub created_ns: Option<u64>,
    /// If the file was removed or renamed by other means than MPI-IO: time when the first rank that had opened it began to open another
    /// file and no longer found it, in ns since the first call. None if it existed, or if no rank checked.
    pub removed_ns: Option<u64>,
}

impl OpenedFile {
    /// True if a file system of this type reports the size of a file, or its absence, as it is after the calls of other hosts. Clients with
    /// an attribute cache may be seconds behind.
    #[must_use]
    pub fn has_current_size(&self) -> bool {
        !["nfs", "cifs", "smb", "9p", "afs", "fuse"].iter().any(|kind| self.fs_type.starts_with(kind))
    }
}
