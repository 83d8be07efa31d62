//! The table of drivers: what each is called and what it can do, asked before anything runs.

use crate::by_offsets;
use crate::mmap::MmapDriver;
use crate::mpiio::MpiIoDriver;
use crate::null::NullDriver;
use crate::posix::PosixDriver;
use crate::program::Replay;
use crate::uring::UringDriver;
use crate::{Driver, DriverOptions};

/// One driver and its capabilities: what options, reports and benchmarks ask before they name it.
#[derive(Clone, Copy, Debug)]
pub struct DriverRow {
    /// The name as it is typed and reported.
    pub name: &'static str,
    /// One line for help and info.
    pub summary: &'static str,
    /// Follows [`crate::Direct`]: can bypass the page cache, and knows whether it does.
    pub can_direct: bool,
    /// Does so where nothing else is said and the alignment allows it.
    pub is_direct_by_default: bool,
    /// Buffered transfers can drop their pages when they are done (RWF_DONTCACHE).
    pub can_drop_pages: bool,
    /// Opens files by their names and not relative to a held directory: see [`crate::FilePath::check_name`].
    pub opens_by_name: bool,
    /// Takes hints, and reports which are granted.
    pub has_hints: bool,
    /// Has a shared file pointer; without one, shared-ordered patterns use their offsets directly.
    pub has_shared_pointer: bool,
    /// Keeps several operations in flight: has a depth to choose, and can leave transfers under way.
    pub has_queue: bool,
    /// Collective patterns are collective calls, not independent ones at the same offsets.
    pub is_collective_native: bool,
    /// Collective patterns can be moved in two phases: follows [`crate::Collective`] and [`crate::Exchange`].
    pub has_two_phase: bool,
    /// Really stores data: files take space, and what was written can be read and verified.
    pub uses_space: bool,
    /// A write behind the end of a file makes it longer; without that, [`crate::OpenFile::preallocate`] comes first.
    pub grows_files: bool,
    /// Follows [`crate::Preallocate`]: room before direct writes of a new file.
    pub can_preallocate: bool,
    /// Needs something that not every system or file system has: tried out before a run, see [`crate::trial`].
    pub may_be_missing: bool,
    /// Makes the driver.
    pub make: fn(&DriverOptions) -> Box<dyn Driver>,
    /// Replays recorded programs, if it can.
    pub replay: Option<Replay>,
}

/// A driver that stores data at the offsets of a pattern and can do nothing else. The rows say what theirs can.
pub(crate) const BY_OFFSETS: DriverRow = DriverRow {
    name: "",
    summary: "",
    can_direct: false,
    is_direct_by_default: false,
    can_drop_pages: false,
    opens_by_name: false,
    has_hints: false,
    has_shared_pointer: false,
    has_queue: false,
    is_collective_native: false,
    has_two_phase: false,
    uses_space: true,
    grows_files: true,
    can_preallocate: false,
    may_be_missing: false,
    make: |_| Box::new(NullDriver),
    replay: None,
};

static DRIVERS: [DriverRow; 5] = [
    DriverRow {
        name: "mpiio",
        summary: "MPI-IO: file views, collective calls, shared pointers, hints",
        opens_by_name: true,
        has_hints: true,
        has_shared_pointer: true,
        is_collective_native: true,
        make: |options| Box::new(MpiIoDriver::new(options)),
        replay: Some(crate::mpiio::program::REPLAY),
        ..BY_OFFSETS
    },
    DriverRow {
        name: "posix",
        summary: "pread and pwrite at the same offsets, one system call per chunk; direct or buffered",
        can_direct: true,
        can_drop_pages: true,
        can_preallocate: true,
        has_two_phase: true,
        make: |options| Box::new(PosixDriver::new(options)),
        replay: Some(by_offsets::POSIX),
        ..BY_OFFSETS
    },
    DriverRow {
        name: "uring",
        summary: "io_uring at the same offsets, many chunks in flight; direct or buffered",
        can_direct: true,
        is_direct_by_default: true,
        can_drop_pages: true,
        can_preallocate: true,
        has_queue: true,
        may_be_missing: true,
        has_two_phase: true,
        make: |options| Box::new(UringDriver::new(options)),
        replay: Some(by_offsets::URING),
        ..BY_OFFSETS
    },
    DriverRow {
        name: "mmap",
        summary: "memcpy into and out of a shared mapping at the same offsets; always the page cache",
        grows_files: false,
        may_be_missing: true,
        make: |_| Box::new(MmapDriver),
        ..BY_OFFSETS
    },
    DriverRow {
        name: "null",
        summary: "computes every address and offset, moves nothing: the cost of the program itself",
        uses_space: false,
        make: |_| Box::new(NullDriver),
        replay: Some(by_offsets::NULL),
        ..BY_OFFSETS
    },
];

/// All drivers, in the order of help and info.
#[must_use]
pub fn drivers() -> &'static [DriverRow] {
    &DRIVERS
}

/// The driver of this name.
#[must_use]
pub fn driver(name: &str) -> Option<&'static DriverRow> {
    DRIVERS.iter().find(|row| row.name == name)
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
