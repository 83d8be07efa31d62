//! One call as it was recorded. The same value in the files of single processes (with their own numbers) and in the text.

use crate::function::Function;
use crate::names::{Amode, ErrorClass, Whence};

/// Addresses are told from a multiple of this on.
pub const PAGE_BYTES: i64 = 4096;

/// A call. Fields that the function does not have are None or empty. Numbers of files, types, communicators, infos and requests
/// refer to the dictionaries: those of the process in a raw file, the common ones in the text. Handles (`handle`) and requests
/// always count within the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Begin in ns. In a raw file by the clock of the host, in the text since the first event of all processes. No two calls
    /// of a rank in the text begin at the same time, so that rank and begin name a call.
    pub begin_ns: u64,
    /// End in ns.
    pub end_ns: u64,
    /// What was called.
    pub function: Function,
    /// By its twin with large counts, `_c`.
    pub large: bool,
    /// Thread of the process, 0 for the first that called.
    pub thread: u32,
    /// The error it returned.
    pub error: Option<ErrorClass>,
    /// The opening of a file: 1 for the first one of this process. The failed ones count too.
    pub handle: Option<u32>,
    /// The file that is opened or deleted (dictionary; in a raw file None, see `name`).
    pub file: Option<u32>,
    /// Raw files only: name of the file that is opened or deleted. Data representation of views and Register_datarep, if it is not `native`.
    pub name: Option<String>,
    /// Explicit offset in etypes; displacement of a view in bytes; offset of a seek or of get_byte_offset; size of set_size and preallocate in bytes.
    pub offset: Option<i64>,
    /// Elements of `datatype` in memory.
    pub count: Option<i64>,
    /// Type in memory, or the type that get_type_extent asks about.
    pub datatype: Option<u32>,
    /// Address of the memory of a data access. Raw file: its lower 56 bits. Text: from the page of the first access of the rank on, so
    /// that distances, places in pages and what is used again are known.
    pub buffer: Option<i64>,
    /// Of a view.
    pub etype: Option<u32>,
    /// Of a view.
    pub filetype: Option<u32>,
    /// Of File_open.
    pub comm: Option<u32>,
    /// Of File_open.
    pub amode: Option<Amode>,
    /// Hints that were asked for; None for MPI_INFO_NULL.
    pub info: Option<u32>,
    /// Hints in force after File_open, set_view, set_info.
    pub granted: Option<u32>,
    /// Raw files only, of File_open: how long before it the file was last changed by anybody, in ns. None: unknown, or there was none.
    pub unchanged_ns: Option<u64>,
    /// Of seeks.
    pub whence: Option<Whence>,
    /// Atomicity that is set or found.
    pub flag: Option<bool>,
    /// What was answered: position, size, byte offset, extent; the level of Init_thread or Pcontrol, the code of Abort; for
    /// File_open the size of the file before it, -1 if there was none.
    pub number: Option<i64>,
    /// Bytes that were really moved by a data access that ended here (blocking call, End). None: unknown.
    pub bytes: Option<u64>,
    /// The request that this call left.
    pub request: Option<u64>,
    /// Requests of files that were handed to a function of role Request. Others are left out.
    pub requests: Vec<u64>,
    /// Those of them that it completed.
    pub completions: Vec<Completion>,
    /// Calls before this one that asked for the same requests and found nothing.
    pub polls: u64,
    /// Text only: calls of other ranks that had ended before this one began and touched the same bytes, at most one of each rank.
    pub after: Vec<After>,
    /// Text only, of collective calls before which the ranks had met, as behind a barrier: time from the end of the last call of any of them to the begin of this one, in ns.
    pub met_ns: Option<u64>,
    /// Text only, of reads, also those that are only begun here: where the bytes came from, in the order of the data.
    pub from: Vec<Origin>,
}

/// A request that was completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Its number.
    pub request: u64,
    /// Bytes that were moved. None: unknown.
    pub bytes: Option<u64>,
    /// Its error.
    pub error: Option<ErrorClass>,
}

/// A call of another rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct After {
    /// World rank.
    pub rank: u32,
    /// When that call began.
    pub begin_ns: u64,
}

/// Where some bytes of a read came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// How many.
    pub bytes: u64,
    /// What they are.
    pub content: Content,
}

/// What bytes of a file are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Written by a call, whose memory they left at this displacement from the address it was given (negative with a negative lower bound).
    Call {
        /// World rank.
        rank: u32,
        /// When that call began.
        begin_ns: u64,
        /// Displacement of the first byte in bytes; the others follow.
        memory: i64,
    },
    /// They were in the file when it was first opened.
    File,
    /// Never written: zero.
    Hole,
    /// Nobody knows: written at the same time, or too many pieces.
    Unknown,
}

impl Call {
    /// A call of a function, without arguments.
    #[must_use]
    pub fn new(function: Function, begin_ns: u64, end_ns: u64) -> Self {
        Self {
            begin_ns,
            end_ns,
            function,
            large: false,
            thread: 0,
            error: None,
            handle: None,
            file: None,
            name: None,
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
            met_ns: None,
            from: Vec::new(),
        }
    }
}
