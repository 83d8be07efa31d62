//! Programs on one rank against a model of the file, by each driver.

use std::path::{Path, PathBuf};

use beff_ffi::Comm;
use beff_trace::{Amode, Call, Completion, ErrorClass, Function as F, Type};
use tempfile::TempDir;

use crate::program::area;
use crate::testing::scratch;
use crate::{driver, Direct, DriverOptions, Outcome, Program, ProgramRequest, Step, Tables};

pub(super) const AREA_BYTES: u64 = 1 << 20;
pub(super) const BYTE: u32 = 0;
pub(super) const INT: u32 = 1;
/// Ints with holes of the same length.
pub(super) const HOLES: u32 = 2;
/// Two ints, the second before the address.
pub(super) const BACK: u32 = 3;
const TABLE: [fn() -> Type; 4] = [
    || Type::Named { name: "BYTE".into(), size_bytes: 1, extent_bytes: 1 },
    || Type::Named { name: "INT".into(), size_bytes: 4, extent_bytes: 4 },
    || Type::Resized { lower_bound_bytes: 0, extent_bytes: 8, of: INT },
    || Type::Hindexed { blocks: vec![1, 1], displacements_bytes: vec![8, -8], of: INT },
];

pub(super) fn class(name: &str) -> Option<ErrorClass> {
    Some(ErrorClass::named(name).unwrap())
}

/// The modes of these names.
pub(super) fn amode(names: &[&str]) -> Amode {
    Amode(names.iter().map(|name| 1 << Amode::NAMES.iter().position(|n| n == name).unwrap()).sum())
}

/// A program of one rank, with its files in a scratch directory.
pub(super) struct Rig {
    pub(super) program: Box<dyn Program>,
    pub(super) dir: TempDir,
    next_ns: u64,
}

impl Rig {
    /// None, and said, where the driver is not available.
    pub(super) fn new(name: &str, direct: Direct) -> Option<Self> {
        Self::with(name, DriverOptions { direct, queue_depth: 4, ..DriverOptions::default() }, |dir| dir.join("f"))
    }

    pub(super) fn with(name: &str, options: DriverOptions, path: impl Fn(&Path) -> PathBuf) -> Option<Self> {
        let dir = scratch();
        let mut source = area(AREA_BYTES).unwrap();
        source.bytes_mut().iter_mut().enumerate().for_each(|(n, byte)| *byte = source_byte(n as u64));
        let tables = Tables {
            comms: vec![vec![0]],
            types: TABLE.iter().map(|make| make()).collect(),
            paths: vec![path(dir.path()), dir.path().join("g")],
            ..Tables::default()
        };
        let request = ProgramRequest { world: &Comm::own(), tables, options, source, landing_bytes: AREA_BYTES };
        match (driver(name).unwrap().replay.unwrap().begin)(request) {
            Ok(program) => Some(Self { program, dir, next_ns: 0 }),
            Err(error) if error.operation == "io_uring_setup" => {
                println!("SKIPPED: {error}");
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.dir.path().join("f")
    }

    pub(super) fn file(&self) -> Vec<u8> {
        std::fs::read(self.path()).unwrap()
    }

    pub(super) fn steps(&mut self, steps: Vec<Step>) -> Vec<Outcome> {
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

    pub(super) fn one(&mut self, step: Step) -> Outcome {
        self.steps(vec![step]).remove(0)
    }

    /// Opens, and expects no error.
    pub(super) fn open(&mut self, names: &[&str]) {
        assert_eq!(self.one(open(names)).error, None, "{:?}", self.program.complaint());
    }

    pub(super) fn landing(&mut self, at: u64, bytes: u64) -> Vec<u8> {
        self.program.landed(at..at + bytes).unwrap().to_vec()
    }
}

pub(super) fn source_byte(at: u64) -> u8 {
    (at.wrapping_mul(0x9e37_79b9) >> 13) as u8 | 1
}

fn step(function: F, set: impl FnOnce(&mut Call)) -> Step {
    let mut call = Call::new(function, 0, 0);
    call.handle = Some(1);
    set(&mut call);
    Step { call, memory_at: 0 }
}

pub(super) fn open(names: &[&str]) -> Step {
    step(F::Open, |call| {
        (call.file, call.comm, call.amode) = (Some(0), Some(0), Some(amode(names)));
    })
}

pub(super) fn manage(function: F) -> Step {
    step(function, |_| {})
}

pub(super) fn sized(function: F, bytes: i64) -> Step {
    step(function, |call| call.offset = Some(bytes))
}

/// A data access; `offset` of those with an explicit one.
pub(super) fn data(function: F, offset: Option<i64>, count: i64, datatype: u32, memory_at: u64) -> Step {
    let made = step(function, |call| {
        (call.offset, call.count, call.datatype) = (offset, Some(count), Some(datatype));
    });
    Step { memory_at, ..made }
}

pub(super) fn left(request: u64, made: Step) -> Step {
    Step { call: Call { request: Some(request), ..made.call }, ..made }
}

pub(super) fn wait(function: F, requests: &[u64]) -> Step {
    let completed = |request: &u64| Completion { request: *request, bytes: None, error: None };
    step(function, |call| {
        call.handle = None;
        call.requests = requests.to_vec();
        call.completions = requests.iter().map(completed).collect();
    })
}

pub(super) fn view(displacement: i64, etype: u32, filetype: u32) -> Step {
    step(F::SetView, |call| {
        (call.offset, call.etype, call.filetype) = (Some(displacement), Some(etype), Some(filetype));
    })
}

const STORES: [&str; 2] = ["posix", "uring"];

fn each(direct: Direct, mut test: impl FnMut(&mut Rig)) {
    for name in STORES {
        if let Some(mut rig) = Rig::new(name, direct) {
            test(&mut rig);
            assert_eq!(rig.program.complaint(), None, "{name}");
            rig.program.finish().unwrap();
        }
    }
}

#[test]
fn holes_in_file_and_memory_and_negative_bounds() {
    for direct in [Direct::Off, Direct::Auto] {
        each(direct, |rig| {
            rig.open(&["rdwr", "create", "excl"]);
            // Bytes 8..12 and -8..-4 of memory from 100 on into ints at 3, 11, 19 and 27.
            let outcomes = rig.steps(vec![
                view(3, INT, HOLES),
                data(F::WriteAt, Some(1), 1, BACK, 100),
                data(F::Write, None, 1, INT, 40),
                data(F::ReadAt, Some(0), 4, HOLES, 1000),
            ]);
            let bytes: Vec<_> = outcomes.iter().map(|outcome| (outcome.error, outcome.bytes)).collect();
            assert_eq!(bytes, [(None, None), (None, Some(8)), (None, Some(4)), (None, Some(12))]);
            let mut expected = vec![0; 23];
            let source = |at: u64| (at..at + 4).map(source_byte).collect::<Vec<_>>();
            expected[3..7].copy_from_slice(&source(40));
            expected[11..15].copy_from_slice(&source(108));
            expected[19..23].copy_from_slice(&source(92));
            assert_eq!(rig.file(), expected);
            let landed = rig.landing(1000, 32);
            for (n, at) in [3, 11, 19].into_iter().enumerate() {
                assert_eq!(landed[n * 8..n * 8 + 8], [&expected[at..at + 4], &[0; 4]].concat());
            }
            assert_eq!(landed[24..], [0; 8], "the file has ended");
        });
    }
}
