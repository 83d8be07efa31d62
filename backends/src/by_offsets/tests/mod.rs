//! Programs, most of them on one rank, compared with a model of the file, for each driver.

mod contents;
mod direct;
mod manage;
mod requests;

use std::path::{Path, PathBuf};

use beff_ffi::Comm;
use beff_trace::{Amode, Call, Completion, Datatype, ErrorClass, Function as F};
use tempfile::TempDir;

use crate::program::allocate_area;
use crate::testing::scratch;
use crate::{
    driver, Direct, DriverOptions, FilePath, ProgramRequest, ProgramStep, ProgramTables, ReplayProgram, StepOutcome,
};

pub(in crate::by_offsets) const AREA_BYTES: u64 = 1 << 20;
pub(in crate::by_offsets) const BYTE: u32 = 0;
pub(in crate::by_offsets) const INT: u32 = 1;
/// Ints with holes of the same length.
pub(in crate::by_offsets) const HOLES: u32 = 2;
/// Two ints, the second at a negative displacement.
pub(in crate::by_offsets) const NEGATIVE: u32 = 3;
const TABLE: [fn() -> Datatype; 4] = [
    || Datatype::Named { name: "BYTE".into(), size_bytes: 1, extent_bytes: 1 },
    || Datatype::Named { name: "INT".into(), size_bytes: 4, extent_bytes: 4 },
    || Datatype::Resized { lower_bound_bytes: 0, extent_bytes: 8, of: INT },
    || Datatype::Hindexed { blocks: vec![1, 1], displacements_bytes: vec![8, -8], of: INT },
];

pub(in crate::by_offsets) fn class(name: &str) -> Option<ErrorClass> {
    Some(ErrorClass::from_name(name).unwrap())
}

pub(in crate::by_offsets) fn amode(names: &[&str]) -> Amode {
    Amode(names.iter().map(|name| 1 << Amode::NAMES.iter().position(|n| n == name).unwrap()).sum())
}

/// A program of one rank, with its files in a scratch directory.
pub(in crate::by_offsets) struct ProgramRig {
    pub(in crate::by_offsets) program: Box<dyn ReplayProgram>,
    pub(in crate::by_offsets) dir: TempDir,
    next_ns: u64,
}

impl ProgramRig {
    /// None, with a message, if the driver is not available.
    pub(in crate::by_offsets) fn new(name: &str, direct: Direct) -> Option<Self> {
        Self::with(name, DriverOptions { direct, queue_depth: 4, ..DriverOptions::default() }, |dir| dir.join("f"))
    }

    pub(in crate::by_offsets) fn with(
        name: &str,
        options: DriverOptions,
        path: impl FnOnce(&Path) -> PathBuf,
    ) -> Option<Self> {
        Self::among(&Comm::comm_self(), name, options, path)
    }

    /// One of several ranks that share communicator 0. Each has its own scratch directory.
    pub(in crate::by_offsets) fn among(
        world: &Comm,
        name: &str,
        options: DriverOptions,
        path: impl FnOnce(&Path) -> PathBuf,
    ) -> Option<Self> {
        let dir = scratch();
        let mut source = allocate_area(AREA_BYTES).unwrap();
        source.bytes_mut().iter_mut().enumerate().for_each(|(n, byte)| *byte = source_byte(n as u64));
        let tables = ProgramTables {
            comms: vec![(0..world.size() as u32).collect()],
            types: TABLE.iter().map(|make| make()).collect(),
            paths: [path(dir.path()), dir.path().join("g")].map(|path| FilePath::of(&path).unwrap()).to_vec(),
            ..ProgramTables::default()
        };
        let request = ProgramRequest { world, tables, options, source, landing_bytes: AREA_BYTES };
        match (driver(name).unwrap().replay.unwrap().begin)(request) {
            Ok(program) => Some(Self { program, dir, next_ns: 0 }),
            Err(error) if error.operation == "io_uring_setup" => {
                println!("SKIPPED: {error}");
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    pub(in crate::by_offsets) fn path(&self) -> PathBuf {
        self.dir.path().join("f")
    }

    pub(in crate::by_offsets) fn file(&self) -> Vec<u8> {
        std::fs::read(self.path()).unwrap()
    }

    pub(in crate::by_offsets) fn run_steps(&mut self, steps: Vec<ProgramStep>) -> Vec<StepOutcome> {
        let number = steps.len();
        let steps = steps.into_iter().map(|mut step| {
            self.next_ns += 10;
            (step.call.begin_ns, step.call.end_ns) = (self.next_ns, self.next_ns + 5);
            step
        });
        let steps = steps.collect();
        self.program.prepare(steps).unwrap();
        let mut outcomes = vec![StepOutcome::default(); number];
        self.program.run(0..number, &mut outcomes);
        let mut last = 0;
        for outcome in &outcomes {
            assert!(last <= outcome.begin_ns && outcome.begin_ns <= outcome.end_ns && outcome.end_ns > 0);
            last = outcome.end_ns;
        }
        outcomes
    }

    pub(in crate::by_offsets) fn run_step(&mut self, step: ProgramStep) -> StepOutcome {
        self.run_steps(vec![step]).remove(0)
    }

    /// Opens without an error.
    pub(in crate::by_offsets) fn open(&mut self, names: &[&str]) {
        assert_eq!(self.run_step(open(names)).error, None, "{:?}", self.program.unexpected_error());
    }

    pub(in crate::by_offsets) fn landing(&mut self, at: u64, bytes: u64) -> Vec<u8> {
        self.program.landing_range(at..at + bytes).unwrap().to_vec()
    }
}

pub(in crate::by_offsets) fn source_byte(at: u64) -> u8 {
    (at.wrapping_mul(0x9e37_79b9) >> 13) as u8 | 1
}

fn step(function: F, set: impl FnOnce(&mut Call)) -> ProgramStep {
    let mut call = Call::new(function, 0, 0);
    call.handle = Some(1);
    set(&mut call);
    ProgramStep { call, memory_at: 0 }
}

pub(in crate::by_offsets) fn open(names: &[&str]) -> ProgramStep {
    step(F::Open, |call| {
        (call.file, call.comm, call.amode) = (Some(0), Some(0), Some(amode(names)));
    })
}

pub(in crate::by_offsets) fn file_call(function: F) -> ProgramStep {
    step(function, |_| {})
}

pub(in crate::by_offsets) fn sized(function: F, bytes: i64) -> ProgramStep {
    step(function, |call| call.offset = Some(bytes))
}

/// A data access; `offset` for explicit offsets only.
pub(in crate::by_offsets) fn data(
    function: F,
    offset: Option<i64>,
    count: i64,
    datatype: u32,
    memory_at: u64,
) -> ProgramStep {
    let base = step(function, |call| {
        (call.offset, call.count, call.datatype) = (offset, Some(count), Some(datatype));
    });
    ProgramStep { memory_at, ..base }
}

pub(in crate::by_offsets) fn nonblocking(request: u64, blocking: ProgramStep) -> ProgramStep {
    ProgramStep { call: Call { request: Some(request), ..blocking.call }, ..blocking }
}

pub(in crate::by_offsets) fn wait(function: F, requests: &[u64]) -> ProgramStep {
    let completed = |request: &u64| Completion { request: *request, bytes: None, error: None };
    step(function, |call| {
        call.handle = None;
        call.requests = requests.to_vec();
        call.completions = requests.iter().map(completed).collect();
    })
}

pub(in crate::by_offsets) fn view(displacement: i64, etype: u32, filetype: u32) -> ProgramStep {
    step(F::SetView, |call| {
        (call.offset, call.etype, call.filetype) = (Some(displacement), Some(etype), Some(filetype));
    })
}

const STORAGE_BACKENDS: [&str; 2] = ["posix", "uring"];

/// Runs a test on a program of each driver that stores data; no complaint may remain.
pub(in crate::by_offsets) fn for_each_backend(direct: Direct, mut test: impl FnMut(&mut ProgramRig)) {
    for name in STORAGE_BACKENDS {
        if let Some(mut rig) = ProgramRig::new(name, direct) {
            test(&mut rig);
            assert_eq!(rig.program.unexpected_error(), None, "{name}");
            rig.program.finish().unwrap();
        }
    }
}
