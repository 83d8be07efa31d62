//! A recorded call: the same type in raw files of single processes (with their own numbers) and in the text.

use crate::function::Function;
use crate::names::{Amode, ErrorClass, Whence};

/// Buffer addresses are relative to a multiple of this.
pub const PAGE_BYTES: i64 = 4096;

/// A call. Fields that the function does not have are None or empty. Numbers of files, types, communicators, infos and requests
/// refer to the dictionaries: those of the process in a raw file, the common ones in the text. Handles (`handle`) and requests
/// always count within the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Begin in ns: in a raw file by the clock of the host, in the text since the first event of all processes. In the text, begin times
    /// within a rank are distinct, so that rank and begin identify a call.
    pub begin_ns: u64,
    /// End in ns.
    pub end_ns: u64,
    /// The function.
    pub function: Function,
    /// True for the large-count variant, `_c`.
    pub large_count: bool,
    /// Thread of the process; 0 is the first that called.
    pub thread: u32,
    /// Returned error.
    pub error: Option<ErrorClass>,
    /// The opening of a file, counted from 1 per process, failed ones included.
    pub handle: Option<u32>,
    /// The opened or deleted file (dictionary index; None in raw files, see `name`).
    pub file: Option<u32>,
    /// Raw files only: name of the opened or deleted file. Data representation of views and Register_datarep unless it is `native`.
    pub name: Option<String>,
    /// Of rename: the file that has the new name.
    pub target: Option<u32>,
    /// Raw files only: path of the opened, deleted or changed file, absolute and without symbolic links (the deleted name itself may be one). None if
    /// it equals `name`.
    pub path: Option<String>,
    /// Raw files only: the file after its opening.
    pub identity: Option<FileIdentity>,
    /// Raw files only, of rename: the new path.
    pub target_path: Option<String>,
    /// Explicit offset in etypes; displacement of a view in bytes; offset of a seek or of get_byte_offset; size of set_size,
    /// preallocate and truncate in bytes.
    pub offset: Option<i64>,
    /// Elements of `datatype` in memory.
    pub count: Option<i64>,
    /// Type in memory, or argument of get_type_extent.
    pub datatype: Option<u32>,
    /// Buffer address of a data access. Raw file: its lower 56 bits. Text: relative to the page of the rank's first access, which preserves
    /// distances, offsets in pages and reuse.
    pub buffer: Option<i64>,
    /// Of set_view and get_view.
    pub etype: Option<u32>,
    /// Of set_view and get_view.
    pub filetype: Option<u32>,
    /// Of File_open.
    pub comm: Option<u32>,
    /// Of File_open.
    pub amode: Option<Amode>,
    /// Requested hints; None for MPI_INFO_NULL.
    pub info: Option<u32>,
    /// Hints in use after File_open, set_view, set_info.
    pub granted: Option<u32>,
    /// Raw files only, of File_open: time since the last modification of the file by any process, in ns. None if unknown or if the file did
    /// not exist.
    pub unchanged_ns: Option<u64>,
    /// Of seeks.
    pub whence: Option<Whence>,
    /// Atomicity set or returned.
    pub flag: Option<bool>,
    /// Returned position, size, byte offset or extent; level of Init_thread or Pcontrol, code of Abort; for File_open the size of the file
    /// before it, -1 if it did not exist; raw files only, of File_delete: size of the file before it.
    pub number: Option<i64>,
    /// Bytes moved by a data access that ended here (blocking call, End). None if unknown.
    pub bytes: Option<u64>,
    /// The request that this call returned.
    pub request: Option<u64>,
    /// Requests of files passed to a function of role Request. Others are omitted.
    pub requests: Vec<u64>,
    /// Those requests that it completed.
    pub completions: Vec<Completion>,
    /// Earlier calls that tested the same requests without a completion.
    pub polls: u64,
    /// Text only: calls of other ranks that ended before this one began and touched the same bytes, at most one per rank.
    pub after: Vec<CallId>,
    /// Text only, of collective calls before which the ranks synchronized, as by a barrier: time from the end of the last preceding call of
    /// any rank to the begin of this one, in ns.
    pub since_barrier_ns: Option<u64>,
    /// Text only, of reads, including nonblocking and split ones: origin of the bytes, in the order of the data.
    pub from: Vec<OriginRange>,
}

/// Identity of a file on a host. A number of an inode may be reused for a later file, whose creation time differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileIdentity {
    /// Device number.
    pub device: u64,
    /// Inode number.
    pub inode: u64,
    /// Creation time, Unix time in ns; 0 if the file system does not report it.
    pub created_unix_ns: u64,
}

/// Completion of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Number of the request.
    pub request: u64,
    /// Moved bytes. None if unknown.
    pub bytes: Option<u64>,
    /// Error of the request.
    pub error: Option<ErrorClass>,
}

/// A call of another rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId {
    /// World rank.
    pub rank: u32,
    /// Begin of that call.
    pub begin_ns: u64,
}

/// Origin of some bytes of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OriginRange {
    /// Number of bytes.
    pub bytes: u64,
    /// Their origin.
    pub origin: DataOrigin,
}

/// Origin of bytes in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataOrigin {
    /// Written by a call, from this displacement relative to its buffer address (negative with a negative lower bound).
    Call {
        /// World rank.
        rank: u32,
        /// Begin of that call.
        begin_ns: u64,
        /// Displacement of the first byte in bytes; the others follow.
        memory: i64,
    },
    /// Content of the file when it was first opened.
    File,
    /// Never written: zero.
    Hole,
    /// Unknown: overlapping writes, or too many ranges.
    Unknown,
}

impl Call {
    /// A call without arguments.
    #[must_use]
    pub fn new(function: Function, begin_ns: u64, end_ns: u64) -> Self {
        Self {
            begin_ns,
            end_ns,
            function,
            large_count: false,
            thread: 0,
            error: None,
            handle: None,
            file: None,
            name: None,
            path: None,
            identity: None,
            target: None,
            target_path: None,
            offset: None,
            count: None,
            datatype: None,
            buffer: None,
            etype: None,
            filetype: None,
            comm: None,
            amode: None,
            info: None,
            granted: None,
            unchanged_ns: None,
            whence: None,
            flag: None,
            number: None,
            bytes: None,
            request: None,
            requests: Vec::new(),
            completions: Vec::new(),
            polls: 0,
            after: Vec::new(),
            since_barrier_ns: None,
            from: Vec::new(),
        }
    }
}
