//! The table of drivers: what each is called and what it can do, asked before anything runs.

use crate::mmap::MmapDriver;
use crate::mpiio::MpiIoDriver;
use crate::null::NullDriver;
use crate::posix::PosixDriver;
use crate::uring::UringDriver;
use crate::{Driver, DriverOptions};

/// One driver and its capabilities.
#[derive(Debug)]
pub struct DriverRow {
    /// The name as it is typed and reported.
    pub name: &'static str,
    /// One line for help and info.
    pub summary: &'static str,
    /// Follows [`crate::Direct`]: can bypass the page cache, and knows whether it does.
    pub can_direct: bool,
    /// Takes hints, and reports which are granted.
    pub has_hints: bool,
    /// Has a shared file pointer; without one, shared-ordered patterns use their offsets directly.
    pub has_shared_pointer: bool,
    /// Really stores data: files take space, and what was written can be read and verified.
    pub uses_space: bool,
    /// Collective patterns are collective calls, not independent ones at the same offsets.
    pub is_collective_native: bool,
    /// Makes the driver.
    pub make: fn(&DriverOptions) -> Box<dyn Driver>,
}

static DRIVERS: [DriverRow; 5] = [
    DriverRow {
        name: "mpiio",
        summary: "MPI-IO: file views, collective calls, shared pointers, hints",
        can_direct: false,
        has_hints: true,
        has_shared_pointer: true,
        uses_space: true,
        is_collective_native: true,
        make: |options| Box::new(MpiIoDriver::new(options)),
    },
    DriverRow {
        name: "posix",
        summary: "pread and pwrite at the same offsets, one system call per chunk; direct or buffered",
        can_direct: true,
        has_hints: false,
        has_shared_pointer: false,
        uses_space: true,
        is_collective_native: false,
        make: |options| Box::new(PosixDriver::new(options)),
    },
    DriverRow {
        name: "uring",
        summary: "io_uring at the same offsets, many chunks in flight; direct or buffered",
        can_direct: true,
        has_hints: false,
        has_shared_pointer: false,
        uses_space: true,
        is_collective_native: false,
        make: |options| Box::new(UringDriver::new(options)),
    },
    DriverRow {
        name: "mmap",
        summary: "memcpy into and out of a shared mapping at the same offsets; always the page cache",
        can_direct: false,
        has_hints: false,
        has_shared_pointer: false,
        uses_space: true,
        is_collective_native: false,
        make: |_| Box::new(MmapDriver),
    },
    DriverRow {
        name: "null",
        summary: "computes every address and offset, moves nothing: the cost of the program itself",
        can_direct: false,
        has_hints: false,
        has_shared_pointer: false,
        uses_space: false,
        is_collective_native: false,
        make: |_| Box::new(NullDriver),
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
