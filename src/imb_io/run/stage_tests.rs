//! One file through a driver that tells what it was asked for.

use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;
use std::rc::Rc;

use beff_backends::{driver, Driver, DriverOptions, InForce, Latency, Ring};

use super::*;
use crate::frame::run::evidence::Site;
use crate::frame::run::interrupt::Interrupt;
use crate::frame::run::run_dir::RunDir;
use crate::imb_io::config::ImbConfig;
use crate::imb_io::plan::names::find;
use crate::imb_io::plan::processes::{Groups, Member};
use crate::imb_io::plan::{Mode, Repetitions, Row};
use crate::imb_io::run::job::Backend;
use crate::imb_io::run::team::Team;
use crate::imb_io::values::fixture;

/// What the driver was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Asked {
    /// With the bytes of the file at that time; None: there was none.
    Open(OpenMode, Option<Vec<u8>>),
    Prepare,
    /// Calls, and where in the memory the window of each begins.
    Move(Batch, Vec<usize>),
    Sync,
    Close,
}

type Log = Rc<RefCell<Vec<Asked>>>;

/// posix, and a log.
struct Spy(Box<dyn Driver>, Log);

struct SpyFile {
    file: Box<dyn OpenFile>,
    pattern: Option<Pattern>,
    log: Log,
}

impl Driver for Spy {
    fn open(&self, request: &OpenRequest<'_>) -> beff_backends::Result<Box<dyn OpenFile>> {
        self.1.borrow_mut().push(Asked::Open(request.mode, fs::read(request.path).ok()));
        Ok(Box::new(SpyFile { file: self.0.open(request)?, pattern: None, log: self.1.clone() }))
    }
}

impl SpyFile {
    fn moved(&self, batch: Batch, ring: &Ring) {
        let pattern = self.pattern.unwrap();
        let calls = batch.first_call..batch.first_call + batch.calls;
        let windows = calls.map(|call| ring.index(pattern.stream_position(call))).collect();
        self.log.borrow_mut().push(Asked::Move(batch, windows));
    }
}

impl OpenFile for SpyFile {
    fn unsupported(&self, pattern: &Pattern) -> Option<String> {
        self.file.unsupported(pattern)
    }

    fn prepare(
        &mut self,
        pattern: &Pattern,
        direction: Direction,
        ring: &mut Ring,
        hints: &[(String, String)],
    ) -> beff_backends::Result<InForce> {
        self.log.borrow_mut().push(Asked::Prepare);
        self.pattern = Some(*pattern);
        self.file.prepare(pattern, direction, ring, hints)
    }

    fn write(&mut self, batch: Batch, ring: &Ring, latency: &mut Latency) -> beff_backends::Result<u64> {
        self.moved(batch, ring);
        self.file.write(batch, ring, latency)
    }

    fn read(&mut self, batch: Batch, ring: &mut Ring, latency: &mut Latency) -> beff_backends::Result<u64> {
        self.moved(batch, ring);
        self.file.read(batch, ring, latency)
    }

    fn sync(&mut self) -> beff_backends::Result<()> {
        self.log.borrow_mut().push(Asked::Sync);
        self.file.sync()
    }

    fn close(self: Box<Self>) -> beff_backends::Result<()> {
        self.log.borrow_mut().push(Asked::Close);
        self.file.close()
    }
}

/// What one file of `steps` samples was asked for, and what came out.
fn staged(name: &str, mode: Mode, steps: u64, config: &ImbConfig) -> (Vec<Asked>, Done) {
    let scratch = tempfile::tempdir().unwrap();
    let world = Comm::own();
    let log = Log::default();
    let posix = (driver("posix").unwrap().make)(&DriverOptions::default());
    let backend =
        Backend { name: "posix".into(), driver: Box::new(Spy(posix, log.clone())), moves_data: true, is_mpi: false };
    let run_dir = RunDir::make(&world, scratch.path(), "run", &["posix".into()]).unwrap().unwrap();
    let team = Team {
        groups: Groups { ranks: 1, groups: 1 },
        member: Member { group: 0, rank: 0 },
        active: Comm::own(),
        group: Comm::own(),
        site: Site::survey(&world, run_dir.path()).unwrap(),
    };
    let interrupt = Interrupt::watch().unwrap();
    let mut bench = Bench {
        config,
        run_dir: &run_dir,
        ring: Ring::new(1 << 20, 0).unwrap(),
        laps: Latency::laps(100),
        warnings: Vec::new(),
        interrupt: &interrupt,
        load: None,
    };
    let row = Row { benchmark: find(name).unwrap(), ranks: 1, mode, sample_bytes: Some(SAMPLE_BYTES) };
    let of = RowJob {
        row: &row,
        backend: &backend,
        team: &team,
        number: 7,
        keep: false,
        rule: &Repetitions::default(),
        wanted: steps,
        foreseen: None,
        previous: None,
        during: "test",
    };
    let transfer = row.benchmark.transfer().unwrap();
    let shape = Shape::new(*transfer, SAMPLE_BYTES, steps, (0, 1)).unwrap();
    let job = Job { of: &of, shape: &shape, way: Way::Blocking, which: Which::Only };
    let Ok(done) = stage(&mut bench, &job) else { panic!("{name} failed") };
    let left: Vec<PathBuf> = fs::read_dir(run_dir.path().join("posix")).unwrap().map(|e| e.unwrap().path()).collect();
    assert!(left.is_empty(), "{left:?}");
    let asked = log.borrow().clone();
    (asked, done)
}

const SAMPLE_BYTES: u64 = 1000;

fn config(file: FileState) -> ImbConfig {
    ImbConfig { file: Some(file), ..fixture::run().config }
}

/// What a file holds before and behind the writes of five samples.
#[test]
fn existing_files_hold_other_bytes_before_they_are_opened() {
    for name in ["S_Write_Indv", "S_Write_Expl"] {
        let (asked, done) = staged(name, Mode::Aggregate, 5, &config(FileState::Existing));
        let Asked::Open(OpenMode::Update, Some(before)) = &asked[0] else { panic!("{asked:?}") };
        let shape = Shape::new(*find(name).unwrap().transfer().unwrap(), SAMPLE_BYTES, 5, (0, 1)).unwrap();
        let data = shape.data(fixture::run().config.seed, 7 * Which::MOST + 1, 0);
        let wrong = data.compare(before, 0);
        assert_eq!((before.len(), wrong.bytes_wrong), (5000, 5000), "every byte differs: {name}");
        assert_eq!(data.diagnose(before, 0), "never written: the file holds what was there before");
        assert_eq!((done.checked.bytes_checked, done.checked.bytes_wrong), (5000, 0));
        assert_eq!(done.timed.moved_bytes, 5000);
    }
}

#[test]
fn new_files_are_made_by_the_opening() {
    let (asked, done) = staged("S_Write_Indv", Mode::Aggregate, 5, &config(FileState::New));
    assert_eq!(asked[0], Asked::Open(OpenMode::CreateNew, None));
    assert_eq!((done.checked.bytes_checked, done.checked.bytes_wrong), (5000, 0));
}

#[test]
fn syncs_stand_where_the_mode_says() {
    let of = |mode| {
        let (asked, _) = staged("S_Write_Indv", mode, 3, &config(FileState::Existing));
        asked[1..]
            .iter()
            .map(|asked| match asked {
                Asked::Prepare => 'p',
                Asked::Move(batch, _) => char::from_digit(batch.calls as u32, 10).unwrap(),
                Asked::Sync => 's',
                Asked::Close => 'c',
                Asked::Open(..) => 'o',
            })
            .collect::<String>()
    };
    assert_eq!(of(Mode::Aggregate), "p3ssc");
    assert_eq!(of(Mode::NonAggregate), "p1ss1ss1ssc");
}
