//! The second backend interface: one rank's part of a recorded *program*.
//!
//! A pattern has one file, one direction, arithmetic offsets, and nothing pending after a batch. In a program files and requests
//! interleave, views and memory types are arbitrary, and calls fail or transfer less as recorded. Therefore a list of steps is
//! passed, prepared before the clock and run in ranges. Every step has an [`StepOutcome`] in a slice of the caller, also a failed one,
//! which the caller compares with the recording.

pub mod memory;
pub(crate) mod slot_numbers;

use std::ops::Range;

use beff_ffi::Comm;
use beff_trace::{Call, Completion, Datatype, ErrorClass};

use crate::{DriverOptions, FilePath, Result, TransferBuffer};

pub use memory::{allocate_area, ProgramMemory};

/// Objects that the numbers in calls refer to, by index.
#[derive(Clone, Debug, Default)]
pub struct ProgramTables {
    /// MPI_Get_library_version of the recording: libraries differ in type bounds, and in how far a read at the end of a file
    /// advances the pointer. Empty: standard behaviour.
    pub library: String,
    /// World ranks of each communicator, in its order.
    pub comms: Vec<Vec<u32>>,
    /// Types, each after those it is constructed from.
    pub types: Vec<Datatype>,
    /// Hints.
    pub infos: Vec<Vec<(String, String)>>,
    /// Hints for all files, which override `infos`.
    pub hints: Vec<(String, String)>,
    /// Current paths of the files.
    pub paths: Vec<FilePath>,
}

/// A call and the location of its data.
#[derive(Clone, Debug)]
pub struct ProgramStep {
    /// The recorded call.
    pub call: Call,
    /// Address passed to MPI by data accesses, as bytes from the begin of the area (the source for writes, the landing area for
    /// reads). The caller ensures, and the driver checks, that all memory of the type lies inside the area.
    pub memory_at: u64,
}

/// Outcome of a step. Times in ns of CLOCK_MONOTONIC.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepOutcome {
    /// Just before the call.
    pub begin_ns: u64,
    /// Just after it.
    pub end_ns: u64,
    /// The error it returned.
    pub error: Option<ErrorClass>,
    /// Bytes moved, as in [`Call::bytes`].
    pub bytes: Option<u64>,
    /// The value returned, as in [`Call::number`] and, 0 or 1, [`Call::flag`].
    pub number: Option<i64>,
    /// Requests that it completed. Allocated before the clock.
    pub completions: Vec<Completion>,
    /// Preceding calls that found nothing, as in [`Call::polls`].
    pub polls: u64,
}

/// Arguments to start a program. Collective over `world`.
pub struct ProgramRequest<'a> {
    /// The participating ranks, numbered as in the profile.
    pub world: &'a Comm,
    /// Objects that the numbers in calls refer to.
    pub tables: ProgramTables,
    /// Settings of the driver.
    pub options: DriverOptions,
    /// Source of the data of writes, an [`allocate_area`].
    pub source: TransferBuffer,
    /// Bytes of the area that receives reads.
    pub landing_bytes: u64,
}

/// One rank's part of a recorded program, in one backend.
pub trait ReplayProgram {
    /// Prepares steps: types, lists of slots, memory for completions. Outside the clock, not collective. Replaces the previous
    /// steps; open files and pending requests remain.
    ///
    /// # Errors
    /// An error of the library, an unknown number, memory outside its area.
    fn prepare(&mut self, steps: Vec<ProgramStep>) -> Result<()>;

    /// Runs a range of the steps in order, with `outcomes[0]` for the first of them. A failed step does not end the range; the
    /// message of the first unexpected error is kept for [`ReplayProgram::unexpected_error`].
    fn run(&mut self, range: Range<usize>, outcomes: &mut [StepOutcome]);

    /// Message of the first error that was not recorded, returned once.
    fn unexpected_error(&mut self) -> Option<String> {
        None
    }

    /// Description of how data is moved.
    fn strategy(&self) -> String {
        String::new()
    }

    /// Bytes moved by direct I/O so far, and all bytes; None if unknown.
    fn direct_bytes(&self) -> Option<[u64; 2]> {
        None
    }

    /// The prepared steps.
    fn steps(&self) -> &[ProgramStep];

    /// Part of the landing area without transfers in flight.
    ///
    /// # Errors
    /// A pending request reads into it, or it lies outside.
    fn landing_range(&mut self, range: Range<u64>) -> Result<&mut [u8]>;

    /// Source of the data of writes.
    fn source(&self) -> &[u8];

    /// Completes pending requests and frees everything. Collective.
    ///
    /// # Errors
    /// Errors of the library.
    fn finish(self: Box<Self>) -> Result<()>;
}

/// How a driver replays programs.
#[derive(Clone, Copy, Debug)]
pub struct Replay {
    /// Starts a program. Collective over `request.world`.
    pub begin: fn(ProgramRequest<'_>) -> Result<Box<dyn ReplayProgram>>,
    /// Why a call cannot be replayed, if so. It is then omitted, which is reported before the run.
    pub unsupported_reason: fn(&Call) -> Option<&'static str>,
}
