//! The second seam: one rank's part of a recorded *program*.
//!
//! A pattern has one file, one direction, arithmetic, and nothing pending behind a batch. A program has none of this: files and
//! requests interleave, any view and any type in memory, calls that fail or come short because they did so when they were recorded.
//! So a list of steps crosses, made before the clock and run in ranges. Every step has an [`Outcome`] in a slice of the caller; a step
//! that fails is an outcome like another, and the caller compares it with what was recorded.

pub mod memory;
pub(crate) mod numbers;

use std::ops::Range;

use beff_ffi::Comm;
use beff_trace::{Call, Completion, ErrorClass, Type};

use crate::{DriverOptions, FilePath, Result, Ring};

pub use memory::{area, Memory};

/// What the numbers in calls mean. Numbers are indices.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    /// What MPI_Get_library_version said where the calls were recorded: libraries differ in bounds of types, and in how far a read
    /// at the end of a file moves the pointer. Empty: as the standard says.
    pub library: String,
    /// World ranks of each communicator, in its order.
    pub comms: Vec<Vec<u32>>,
    /// Types, each behind those it is made of.
    pub types: Vec<Type>,
    /// Hints.
    pub infos: Vec<Vec<(String, String)>>,
    /// Hints for all files, which win over those.
    pub hints: Vec<(String, String)>,
    /// Where the files are now.
    pub paths: Vec<FilePath>,
}

/// A call and where its data lies.
#[derive(Clone, Debug)]
pub struct Step {
    /// The recorded call.
    pub call: Call,
    /// Of data accesses that have memory: the address that is given to MPI, as bytes from the begin of the area (the source for writes,
    /// the landing area for reads). All that the type touches from there lies inside the area: the caller sees to it, the driver checks.
    pub memory_at: u64,
}

/// What came of a step. Times by the clock of the host (CLOCK_MONOTONIC), in ns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Just before the call.
    pub begin_ns: u64,
    /// Just behind it.
    pub end_ns: u64,
    /// The error it returned.
    pub error: Option<ErrorClass>,
    /// Bytes that were moved, as in [`Call::bytes`].
    pub bytes: Option<u64>,
    /// What was answered, as in [`Call::number`] and, 0 or 1, [`Call::flag`].
    pub number: Option<i64>,
    /// Requests that it completed. Room for them is made before the clock.
    pub completions: Vec<Completion>,
    /// Calls before this one that found nothing, as in [`Call::polls`].
    pub polls: u64,
}

/// What a program needs to begin. Collective over `world`.
pub struct ProgramRequest<'a> {
    /// The ranks that take part, numbered as in the profile.
    pub world: &'a Comm,
    /// What the numbers in calls mean.
    pub tables: Tables,
    /// Settings of the driver.
    pub options: DriverOptions,
    /// What writes take their data from: laid out by the caller in an [`area`]. While the program runs it is changed only through
    /// [`Program::source_mut`].
    pub source: Ring,
    /// Bytes of the area where reads land.
    pub landing_bytes: u64,
}

/// One rank's part of a recorded program, in one backend.
pub trait Program {
    /// Makes steps ready: types, lists of places, room for completions. Outside the clock, not collective. They replace those made
    /// ready before; files that are open and requests that are pending stay.
    ///
    /// # Errors
    /// What the library refuses, a number that is in no table, memory outside its area.
    fn make_ready(&mut self, steps: Vec<Step>) -> Result<()>;

    /// Runs a range of the steps, one behind the other. `outcomes[0]` is that of the first of the range. A step that fails does not
    /// end the range; the message of the first one whose error was not recorded is kept for [`Program::complaint`].
    fn run(&mut self, range: Range<usize>, outcomes: &mut [Outcome]);

    /// What the library said of the first step whose error was not recorded, once.
    fn complaint(&mut self) -> Option<String> {
        None
    }

    /// How data is moved, in words.
    fn strategy(&self) -> String {
        String::new()
    }

    /// Bytes that were moved past the page cache until now, and all; None where nobody knows.
    fn direct_bytes(&self) -> Option<[u64; 2]> {
        None
    }

    /// The steps, as made ready.
    fn steps(&self) -> &[Step];

    /// Part of the landing area in which nothing is under way.
    ///
    /// # Errors
    /// A pending request reads into it, or it lies outside.
    fn landed(&mut self, range: Range<u64>) -> Result<&mut [u8]>;

    /// What writes take their data from.
    fn source(&self) -> &[u8];

    /// Part of the source from which nothing is under way, to be changed between two ranges of steps.
    ///
    /// # Errors
    /// A pending request writes from it, or it lies outside.
    fn source_mut(&mut self, range: Range<u64>) -> Result<&mut [u8]>;

    /// Completes what is pending, frees everything. Collective.
    ///
    /// # Errors
    /// What the library reports.
    fn finish(self: Box<Self>) -> Result<()>;
}

/// How a driver replays programs.
#[derive(Clone, Copy, Debug)]
pub struct Replay {
    /// Begins a program. Collective over `request.world`.
    pub begin: fn(ProgramRequest<'_>) -> Result<Box<dyn Program>>,
    /// Why a call cannot be replayed, None if it can. It is then left out, and said so before the run.
    pub unable: fn(&Call) -> Option<&'static str>,
}
