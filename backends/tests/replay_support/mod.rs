//! Shared by the tests of replays: recorded calls, and programs of them.

#![allow(dead_code)] // each test uses its part

#[path = "../../../ffi/tests/ranks/mod.rs"]
mod ranks;

use std::path::{Path, PathBuf};

use beff_backends::program::allocate_area;
use beff_backends::{
    driver, DriverOptions, FilePath, ProgramRequest, ProgramStep, ProgramTables, ReplayProgram, StepOutcome,
};
use beff_ffi::Comm;
use beff_trace::{Amode, Call, Completion, Datatype, ErrorClass, Function};

pub const SOURCE_BYTES: u64 = 1 << 20;
pub const LANDING_BYTES: u64 = 1 << 20;
/// Types of every test.
pub const BYTE: u32 = 0;
pub const INT: u32 = 1;

pub fn on_1_2_and_3(name: &str, body: impl FnOnce(&Comm, &Path)) {
    ranks::on_1_2_and_3(name, Path::new(env!("CARGO_TARGET_TMPDIR")), body);
}

/// The byte at `at` of a rank's source.
pub fn byte_of(rank: u64, at: u64) -> u8 {
    ((rank * 83 + at * 7 + at / 251) % 255) as u8 + 1
}

pub fn bytes_of(rank: u64, at: u64, count: u64) -> Vec<u8> {
    (at..at + count).map(|at| byte_of(rank, at)).collect()
}

/// Communicators: 0 all, 1 all in reverse, then each rank by itself.
pub fn own_comm(rank: u64) -> u32 {
    2 + rank as u32
}

fn named(name: &str, bytes: u64) -> Datatype {
    Datatype::Named { name: name.into(), size_bytes: bytes, extent_bytes: bytes as i64 }
}

/// A program of one rank and its time of the last step.
pub struct ProgramRunner<'a> {
    pub comm: &'a Comm,
    pub program: Box<dyn ReplayProgram>,
    pub directory: PathBuf,
    clock: u64,
}

impl<'a> ProgramRunner<'a> {
    /// `types` follow the two predefined ones; `files` are in the directory.
    pub fn new(comm: &'a Comm, directory: &Path, types: Vec<Datatype>, files: &[&str]) -> Self {
        Self::begin(comm, directory, types, files).unwrap()
    }

    pub fn begin(
        comm: &'a Comm,
        directory: &Path,
        types: Vec<Datatype>,
        files: &[&str],
    ) -> beff_backends::Result<Self> {
        Self::with_backend("mpiio", comm, directory, types, files)
    }

    /// A program of another backend.
    pub fn with_backend(
        backend: &str,
        comm: &'a Comm,
        directory: &Path,
        types: Vec<Datatype>,
        files: &[&str],
    ) -> beff_backends::Result<Self> {
        let ranks = comm.size() as u32;
        let mut comms = vec![(0..ranks).collect(), (0..ranks).rev().collect()];
        comms.extend((0..ranks).map(|rank| vec![rank]));
        let infos = vec![vec![("cb_nodes".into(), "1".into())], Vec::new()];
        let types = [vec![named("BYTE", 1), named("INT", 4)], types].concat();
        let paths = files.iter().map(|name| FilePath::of(&directory.join(name)).unwrap()).collect();
        let tables = ProgramTables { library: String::new(), comms, types, infos, hints: Vec::new(), paths };
        let mut source = allocate_area(SOURCE_BYTES).unwrap();
        for (at, byte) in source.bytes_mut().iter_mut().enumerate() {
            *byte = byte_of(comm.rank(), at as u64);
        }
        let options = DriverOptions::default();
        let request = ProgramRequest { world: comm, tables, options, source, landing_bytes: LANDING_BYTES };
        let program = (driver(backend).unwrap().replay.unwrap().begin)(request)?;
        Ok(Self { comm, program, directory: directory.into(), clock: 0 })
    }

    /// Prepares the steps and runs them in two ranges.
    pub fn run(&mut self, steps: Vec<ProgramStep>) -> Vec<StepOutcome> {
        let count = steps.len();
        self.program.prepare(steps).unwrap();
        assert_eq!(self.program.steps().len(), count);
        let mut outcomes = vec![StepOutcome::default(); count];
        let (first, rest) = outcomes.split_at_mut(count / 2);
        self.program.run(0..count / 2, first);
        self.program.run(count / 2..count, rest);
        for outcome in &outcomes {
            assert!(self.clock <= outcome.begin_ns && outcome.begin_ns <= outcome.end_ns, "{outcome:?}");
            self.clock = outcome.end_ns;
        }
        outcomes
    }

    /// As [`ProgramRunner::play`], without failing calls.
    pub fn succeed(&mut self, steps: Vec<ProgramStep>) -> Vec<StepOutcome> {
        let outcomes = self.run(steps);
        let message = self.program.unexpected_error();
        for (outcome, step) in outcomes.iter().zip(self.program.steps()) {
            assert_eq!(outcome.error, None, "{:?}: {message:?}", step.call.function);
            assert!(outcome.completions.iter().all(|done| done.error.is_none()), "{:?} {outcome:?}", step.call);
        }
        assert_eq!(message, None);
        outcomes
    }

    pub fn barrier(&self) {
        self.comm.barrier().unwrap();
    }

    pub fn file(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.directory.join(name)).unwrap()
    }
}

pub fn call(function: Function) -> Call {
    Call::new(function, 0, 1)
}

pub fn step(call: Call) -> ProgramStep {
    ProgramStep { call, memory_at: 0 }
}

pub fn on(handle: u32, function: Function) -> Call {
    Call { handle: Some(handle), ..call(function) }
}

pub fn amode(names: &[&str]) -> Amode {
    let bit = |name: &&str| 1 << Amode::NAMES.iter().position(|n| n == name).unwrap();
    Amode(names.iter().map(bit).sum())
}

pub fn open(handle: u32, file: u32, comm: u32, modes: &[&str]) -> ProgramStep {
    let how = Some(amode(modes));
    step(Call { file: Some(file), comm: Some(comm), amode: how, ..on(handle, Function::Open) })
}

pub fn close(handle: u32) -> ProgramStep {
    step(on(handle, Function::Close))
}

/// A data access to bytes at an address.
pub fn data(handle: u32, function: Function, offset: Option<i64>, count: u64, memory_at: u64) -> ProgramStep {
    let (count, datatype) = (Some(count as i64), Some(BYTE));
    ProgramStep { call: Call { offset, count, datatype, ..on(handle, function) }, memory_at }
}

/// The same as a nonblocking call.
pub fn with_request(mut step: ProgramStep, request: u64) -> ProgramStep {
    step.call.request = Some(request);
    step
}

pub fn completion(request: u64) -> Completion {
    Completion { request, bytes: None, error: None }
}

/// A call on requests that completed some of them.
pub fn completion_call(function: Function, requests: &[u64], completed: &[u64]) -> ProgramStep {
    let completions = completed.iter().map(|request| completion(*request)).collect();
    step(Call { requests: requests.to_vec(), completions, ..call(function) })
}

pub fn failed(mut step: ProgramStep, class: &str) -> ProgramStep {
    step.call.error = ErrorClass::from_name(class);
    assert!(step.call.error.is_some(), "{class}");
    step
}

pub fn class(name: &str) -> Option<ErrorClass> {
    let class = ErrorClass::from_name(name);
    assert!(class.is_some(), "{name}");
    class
}

/// Open MPI 4.1 never completes a nonblocking or split collective read beyond the end of the file.
pub fn short_reads_never_complete() -> bool {
    beff_ffi::built_with().starts_with("Open MPI")
}
