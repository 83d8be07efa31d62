//! Table of drivers: names and capabilities, queried before a run.

use crate::by_offsets;
use crate::mmap::MmapDriver;
use crate::mpiio::MpiIoDriver;
use crate::null::NullDriver;
use crate::posix::PosixDriver;
use crate::program::Replay;
use crate::uring::UringDriver;
use crate::{Driver, DriverOptions};

/// One driver and its capabilities, as queried by options, reports and benchmarks.
#[derive(Clone, Copy, Debug)]
pub struct DriverRow {
    /// Name in options and reports.
    pub name: &'static str,
    /// One line for help and info.
    pub summary: &'static str,
    /// Supports [`crate::Direct`]: can bypass the page cache, and knows whether it does.
    pub can_direct: bool,
    /// Does so by default where the alignment allows it.
    pub is_direct_by_default: bool,
    /// Buffered transfers can drop their pages when done (RWF_DONTCACHE).
    pub can_drop_pages: bool,
    /// Opens files by name and not relative to an open directory: see [`crate::FilePath::check_name`].
    pub opens_by_name: bool,
    /// Accepts hints, and reports which are granted.
    pub has_hints: bool,
    /// Has a shared file pointer; without one, shared-ordered patterns use their offsets directly.
    pub has_shared_pointer: bool,
    /// Keeps several operations in flight: has a configurable depth, and nonblocking transfers.
    pub has_queue: bool,
    /// Collective patterns are collective calls, not independent ones at the same offsets.
    pub is_collective_native: bool,
    /// Collective patterns can be two-phase: supports [`crate::Collective`] and [`crate::ExchangeMethod`].
    pub has_two_phase: bool,
    /// Stores data: files occupy space, and written data can be read and verified.
    pub uses_space: bool,
    /// A write beyond the end of a file extends it; otherwise [`crate::OpenFile::preallocate`] must precede.
    pub grows_files: bool,
    /// Supports [`crate::Preallocate`] before direct writes of a new file.
    pub can_preallocate: bool,
    /// Requires features that may be missing: checked before a run, see [`crate::availability`].
    pub needs_support_check: bool,
    /// Creates the driver.
    pub create: fn(&DriverOptions) -> Box<dyn Driver>,
    /// Replay of recorded programs, if supported.
    pub replay: Option<Replay>,
}

/// Defaults: stores data at the offsets of a pattern, without further capabilities.
pub(crate) const OFFSET_DRIVER: DriverRow = DriverRow {
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
    needs_support_check: false,
    create: |_| Box::new(NullDriver),
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
        create: |options| Box::new(MpiIoDriver::new(options)),
        replay: Some(crate::mpiio::program::REPLAY),
        ..OFFSET_DRIVER
    },
    DriverRow {
        name: "posix",
        summary: "pread and pwrite at the same offsets, one system call per chunk; direct or buffered",
        can_direct: true,
        can_drop_pages: true,
        can_preallocate: true,
        has_two_phase: true,
        create: |options| Box::new(PosixDriver::new(options)),
        replay: Some(by_offsets::POSIX),
        ..OFFSET_DRIVER
    },
    DriverRow {
        name: "uring",
        summary: "io_uring at the same offsets, many chunks in flight; direct or buffered",
        can_direct: true,
        is_direct_by_default: true,
        can_drop_pages: true,
        can_preallocate: true,
        has_queue: true,
        needs_support_check: true,
        has_two_phase: true,
        create: |options| Box::new(UringDriver::new(options)),
        replay: Some(by_offsets::URING),
        ..OFFSET_DRIVER
    },
    DriverRow {
        name: "mmap",
        summary: "memcpy into and out of a shared mapping at the same offsets; always the page cache",
        grows_files: false,
        needs_support_check: true,
        create: |_| Box::new(MmapDriver),
        ..OFFSET_DRIVER
    },
    DriverRow {
        name: "null",
        summary: "computes every address and offset, moves nothing: measures the harness overhead",
        uses_space: false,
        create: |_| Box::new(NullDriver),
        replay: Some(by_offsets::NULL),
        ..OFFSET_DRIVER
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
