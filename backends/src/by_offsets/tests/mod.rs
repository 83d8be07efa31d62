//! Programs, most of them on one rank, against a model of the file, by each driver.

mod contents;
mod direct;
mod manage;
mod requests;

use std::path::{Path, PathBuf};

use beff_ffi::Comm;
use beff_trace::{Amode, Call, Completion, ErrorClass, Function as F, Type};
use tempfile::TempDir;

use crate::program::area;
use crate::testing::scratch;
use crate::{driver, Direct, DriverOptions, FilePath, Outcome, Program, ProgramRequest, Step, Tables};

pub(in crate::by_offsets) const AREA_BYTES: u64 = 1 << 20;
pub(in crate::by_offsets) const BYTE: u32 = 0;
pub(in crate::by_offsets) const INT: u32 = 1;
/// Ints with holes of the same length.
pub(in crate::by_offsets) const HOLES: u32 = 2;
/// Two ints, the second before the address.
pub(in crate::by_offsets) const BACK: u32 = 3;
const TABLE: [fn() -> Type; 4] = [
    || Type::Named { name: "BYTE".into(), size_bytes: 1, extent_bytes: 1 },
    || Type::Named { name: "INT".into(), size_bytes: 4, extent_bytes: 4 },
    || Type::Resized { lower_bound_bytes: 0, extent_bytes: 8, of: INT },
    || Type::Hindexed { blocks: vec![1, 1], displacements_bytes: vec![8, -8], of: INT },
];

pub(in crate::by_offsets) fn class(name: &str) -> Option<ErrorClass> {
    Some(ErrorClass::named(name).unwrap())
}

/// The modes of these names.
pub(in crate::by_offsets) fn amode(names: &[&str]) -> Amode {
    Amode(names.iter().map(|name| 1 << Amode::NAMES.iter().position(|n| n == name).unwrap()).sum())
}

/// A program of one rank, with its files in a scratch directory.
pub(in crate::by_offsets) struct Rig {
    pub(in crate::by_offsets) program: Box<dyn Program>,
    pub(in crate::by_offsets) dir: TempDir,
    next_ns: u64,
}

impl Rig {
    /// None, and said, where the driver is not available.
    pub(in crate::by_offsets) fn new(name: &str, direct: Direct) -> Option<Self> {
        Self::with(name, DriverOptions { direct, queue_depth: 4, ..DriverOptions::default() }, |dir| dir.join("f"))
    }

    pub(in crate::by_offsets) fn with(
        name: &str,
        options: DriverOptions,
        path: impl FnOnce(&Path) -> PathBuf,
    ) -> Option<Self> {
        Self::among(&Comm::own(), name, options, path)
    }

    /// One of several ranks, which all have communicator 0. Each has a scratch directory of its own.
    pub(in crate::by_offsets) fn among(
        world: &Comm,
        name: &str,
        options: DriverOptions,
        path: impl FnOnce(&Path) -> PathBuf,
    ) -> Option<Self> {
        let dir = scratch();
        let mut source = area(AREA_BYTES).unwrap();
        source.bytes_mut().iter_mut().enumerate().for_each(|(n, byte)| *byte = source_byte(n as u64));
        let tables = Tables {
            comms: vec![(0..world.size() as u32).collect()],
            types: TABLE.iter().map(|make| make()).collect(),
            paths: [path(dir.path()), dir.path().join("g")].map(|path| FilePath::of(&path).unwrap()).to_vec(),
            ..Tables::default()
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

    pub(in crate::by_offsets) fn steps(&mut self, steps: Vec<Step>) -> Vec<Outcome> {
        let number = steps.len();
        let steps = steps.into_iter().map(|mut step| {
            self.next_ns += 10;
            (step.call.begin_ns, step.call.end_ns) = (self.next_ns, self.next_ns + 5);
            step
        });
        let steps = steps.collect();
        self.program.make_ready(steps).unwrap();
        let mut outcomes = vec![Outcome::default(); number];
        self.program.run(0..number, &mut outcomes);
        let mut last = 0;
        for outcome in &outcomes {
            assert!(last <= outcome.begin_ns && outcome.begin_ns <= outcome.end_ns && outcome.end_ns > 0);
            last = outcome.end_ns;
        }
        outcomes
    }

    pub(in crate::by_offsets) fn one(&mut self, step: Step) -> Outcome {
        self.steps(vec![step]).remove(0)
    }

    /// Opens, and expects no error.
    pub(in crate::by_offsets) fn open(&mut self, names: &[&str]) {
        assert_eq!(self.one(open(names)).error, None, "{:?}", self.program.complaint());
    }

    pub(in crate::by_offsets) fn landing(&mut self, at: u64, bytes: u64) -> Vec<u8> {
        self.program.landed(at..at + bytes).unwrap().to_vec()
    }
}

pub(in crate::by_offsets) fn source_byte(at: u64) -> u8 {
    (at.wrapping_mul(0x9e37_79b9) >> 13) as u8 | 1
}

fn step(function: F, set: impl FnOnce(&mut Call)) -> Step {
    let mut call = Call::new(function, 0, 0);
    call.handle = Some(1);
    set(&mut call);
    Step { call, memory_at: 0 }
}

pub(in crate::by_offsets) fn open(names: &[&str]) -> Step {
    step(F::Open, |call| {
        (call.file, call.comm, call.amode) = (Some(0), Some(0), Some(amode(names)));
    })
}

pub(in crate::by_offsets) fn manage(function: F) -> Step {
    step(function, |_| {})
}

pub(in crate::by_offsets) fn sized(function: F, bytes: i64) -> Step {
    step(function, |call| call.offset = Some(bytes))
}

/// A data access; `offset` of those with an explicit one.
pub(in crate::by_offsets) fn data(function: F, offset: Option<i64>, count: i64, datatype: u32, memory_at: u64) -> Step {
    let made = step(function, |call| {
        (call.offset, call.count, call.datatype) = (offset, Some(count), Some(datatype));
    });
    Step { memory_at, ..made }
}

pub(in crate::by_offsets) fn left(request: u64, made: Step) -> Step {
    Step { call: Call { request: Some(request), ..made.call }, ..made }
}

pub(in crate::by_offsets) fn wait(function: F, requests: &[u64]) -> Step {
    let completed = |request: &u64| Completion { request: *request, bytes: None, error: None };
    step(function, |call| {
        call.handle = None;
        call.requests = requests.to_vec();
        call.completions = requests.iter().map(completed).collect();
    })
}

pub(in crate::by_offsets) fn view(displacement: i64, etype: u32, filetype: u32) -> Step {
    step(F::SetView, |call| {
        (call.offset, call.etype, call.filetype) = (Some(displacement), Some(etype), Some(filetype));
    })
}

/// The drivers that store data.
const STORES: [&str; 2] = ["posix", "uring"];

/// Runs a test on a program of each driver that stores data; no complaint may be left.
pub(in crate::by_offsets) fn each(direct: Direct, mut test: impl FnMut(&mut Rig)) {
    for name in STORES {
        if let Some(mut rig) = Rig::new(name, direct) {
            test(&mut rig);
            assert_eq!(rig.program.complaint(), None, "{name}");
            rig.program.finish().unwrap();
        }
    }
}
