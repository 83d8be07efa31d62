//! One file through a driver that tells what it was asked for.

use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;
use std::rc::Rc;

use beff_backends::{driver, Batches, Driver, DriverOptions, InForce, Latency, Ring, Support};

use super::*;
use crate::frame::run::evidence::Site;
use crate::frame::run::interrupt::Interrupt;
use crate::frame::run::machine_share::HostCpus;
use crate::frame::run::run_dir::RunDir;
use crate::frame::system::residency;
use crate::imb_io::config::{Buffers, ImbConfig};
use crate::imb_io::plan::names::find;
use crate::imb_io::plan::processes::{Groups, Member};
use crate::imb_io::plan::{Mode, Repetitions, Row};
use crate::imb_io::run::job::Backend;
use crate::imb_io::run::open_close;
use crate::imb_io::run::team::Team;
use crate::imb_io::values::fixture;

/// What the driver was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Asked {
    /// With the bytes of the file at that time; None: there was none.
    Open(OpenMode, Option<Vec<u8>>),
    Prepare,
    /// A write begins, with so many bytes of the file in the page cache; None: nobody can know.
    Cached(Option<u64>),
    /// Calls, and where in the memory the window of each begins.
    Move(Batch, Vec<usize>),
    Sync,
    Close,
}

type Log = Rc<RefCell<Vec<Asked>>>;

/// A wrong byte: behind so many batches, the first one in the window of this call.
type Fault = Option<(usize, u64)>;

/// posix, and a log; it says that it is direct, if so.
struct Spy {
    driver: Box<dyn Driver>,
    log: Log,
    fault: Fault,
    direct: Option<bool>,
}

struct SpyFile {
    file: Box<dyn OpenFile>,
    pattern: Option<Pattern>,
    log: Log,
    fault: Fault,
    direct: Option<bool>,
    path: PathBuf,
}

impl Driver for Spy {
    fn open(&self, request: &OpenRequest<'_>) -> beff_backends::Result<Box<dyn OpenFile>> {
        self.log.borrow_mut().push(Asked::Open(request.mode, fs::read(request.path).ok()));
        Ok(Box::new(SpyFile {
            file: self.driver.open(request)?,
            pattern: None,
            log: self.log.clone(),
            fault: self.fault,
            direct: self.direct,
            path: request.path.to_path_buf(),
        }))
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
    fn support(&self, pattern: &Pattern) -> Support {
        self.file.support(pattern)
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
        Ok(InForce { direct: self.direct, ..self.file.prepare(pattern, direction, ring, hints)? })
    }

    fn write(&mut self, work: Batches<'_>, ring: &Ring) -> beff_backends::Result<u64> {
        if self.direct.is_some() {
            let file = fs::File::open(&self.path).unwrap();
            let cached = residency::resident_bytes(&file, &(0..u64::MAX / 2)).ok().map(|(bytes, _)| bytes);
            self.log.borrow_mut().push(Asked::Cached(cached));
        }
        self.moved(work.batch, ring);
        self.file.write(work, ring)
    }

    fn read(&mut self, work: Batches<'_>, ring: &mut Ring) -> beff_backends::Result<u64> {
        let batches = self.log.borrow().iter().filter(|asked| matches!(asked, Asked::Move(..))).count();
        self.moved(work.batch, ring);
        let moved = self.file.read(work, ring);
        if let Some((_, call)) = self.fault.filter(|(before, _)| *before == batches) {
            ring.window_mut(self.pattern.unwrap().stream_position(call), 1)[0] ^= 0x10;
        }
        moved
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
    with_fault(name, mode, steps, config, None)
}

fn with_fault(name: &str, mode: Mode, steps: u64, config: &ImbConfig, fault: Fault) -> (Vec<Asked>, Done) {
    through_spy((name, mode, steps), config, (fault, None), |bench, of| {
        let transfer = of.row.benchmark.transfer().unwrap();
        let shape = Shape::new(*transfer, SAMPLE_BYTES, steps, (0, 1), config.buffers).unwrap();
        stage(bench, &Job { of, shape: &shape, way: Way::Blocking, which: Which::Only })
    })
}

fn through_spy(
    (name, mode, steps): (&str, Mode, u64),
    config: &ImbConfig,
    (fault, direct): (Fault, Option<bool>),
    work: impl FnOnce(&mut Bench<'_>, &RowJob<'_>) -> Result<Done, Stopped>,
) -> (Vec<Asked>, Done) {
    // Where pages can be dropped: not in memory, as /tmp may be.
    let scratch = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let world = Comm::own();
    let log = Log::default();
    let posix = (driver("posix").unwrap().make)(&DriverOptions::default());
    let backend = Backend {
        name: "posix".into(),
        driver: Box::new(Spy { driver: posix, log: log.clone(), fault, direct }),
        moves_data: true,
        is_mpi: false,
        why_not: None,
    };
    let run_dir = RunDir::make(&world, scratch.path(), "run", &["posix".into()]).unwrap().unwrap();
    let team = Team {
        groups: Groups { ranks: 1, groups: 1 },
        member: Member { group: 0, rank: 0 },
        active: Comm::own(),
        group: Comm::own(),
        site: Site::survey(&world, run_dir.path()).unwrap(),
        cpus: HostCpus::survey(&world).unwrap(),
    };
    let interrupt = Interrupt::watch().unwrap();
    let mut bench = Bench {
        config,
        run_dir: &run_dir,
        ring: Ring::new(1 << 20, 0).unwrap(),
        laps: Latency::laps(100),
        warnings: Vec::new(),
        corruptions: Vec::new(),
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
        fixed: None,
        during: "test",
    };
    let Ok(done) = work(&mut bench, &of) else { panic!("{name} failed") };
    let left: Vec<PathBuf> = fs::read_dir(run_dir.path().join("posix")).unwrap().map(|e| e.unwrap().path()).collect();
    assert!(left.is_empty(), "{left:?}");
    let asked = log.borrow().clone();
    (asked, done)
}

const SAMPLE_BYTES: u64 = 1000;

fn config(file: FileState) -> ImbConfig {
    ImbConfig { file: Some(file), ..buffers(Buffers::Reused) }
}

fn buffers(buffers: Buffers) -> ImbConfig {
    ImbConfig { buffers: Some(buffers), ..fixture::run().config }
}

/// What a file holds before and behind the writes of five samples.
#[test]
fn existing_files_hold_other_bytes_before_they_are_opened() {
    for name in ["S_Write_Indv", "S_Write_Expl"] {
        let config = config(FileState::Existing);
        let (asked, done) = staged(name, Mode::Aggregate, 5, &config);
        let Asked::Open(OpenMode::Update, Some(before)) = &asked[0] else { panic!("{asked:?}") };
        let shape =
            Shape::new(*find(name).unwrap().transfer().unwrap(), SAMPLE_BYTES, 5, (0, 1), config.buffers).unwrap();
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
                Asked::Cached(_) => '?',
            })
            .collect::<String>()
    };
    assert_eq!(of(Mode::Aggregate), "p3ssc");
    assert_eq!(of(Mode::NonAggregate), "p1ss1ss1ssc");
}

#[test]
fn what_is_opened_and_closed_is_there_before_or_empty() {
    for (file, length) in [(FileState::Existing, 1), (FileState::New, 0)] {
        let config = config(file);
        let run = |bench: &mut Bench<'_>, of: &RowJob<'_>| open_close::run(bench, of, 3, true);
        let (asked, done) = through_spy(("Open_Close", Mode::Aggregate, 3), &config, (None, None), run);
        let opened =
            asked.iter().filter_map(|asked| if let Asked::Open(_, bytes) = asked { bytes.clone() } else { None });
        let opened: Vec<_> = opened.collect();
        assert_eq!(opened.iter().map(Vec::len).collect::<Vec<_>>(), [length, 1, 1], "{file:?}");
        assert!(length == 0 || opened[0][0] == !opened[1][0], "{opened:?}");
        assert_eq!((done.checked.bytes_checked, done.checked.bytes_wrong), (1, 0));
    }
}

/// Direct writes would have the pages of the preparation to throw away, in the clock.
#[test]
fn direct_writes_find_no_pages_of_what_was_there_before() {
    let cached = |direct| {
        let config = config(FileState::Existing);
        let (asked, _) =
            through_spy(("S_Write_Indv", Mode::Aggregate, 100), &config, (None, Some(direct)), |bench, of| {
                let transfer = of.row.benchmark.transfer().unwrap();
                let shape = Shape::new(*transfer, SAMPLE_BYTES, 100, (0, 1), config.buffers).unwrap();
                stage(bench, &Job { of, shape: &shape, way: Way::Blocking, which: Which::Only })
            });
        asked.iter().find_map(|asked| if let Asked::Cached(bytes) = asked { *bytes } else { None })
    };
    let Some(through_the_cache) = cached(false) else {
        println!("SKIPPED: nobody knows what is in the page cache here");
        return;
    };
    assert!(through_the_cache >= 100 * SAMPLE_BYTES, "{through_the_cache}");
    assert_eq!(cached(true), Some(0));
}

fn batches(asked: &[Asked]) -> Vec<&[usize]> {
    asked
        .iter()
        .filter_map(|asked| if let Asked::Move(_, windows) = asked { Some(&windows[..]) } else { None })
        .collect()
}

#[test]
fn one_buffer_for_all_repetitions_or_one_for_each() {
    let own = [0, 1000, 2000];
    for name in ["S_Write_Indv", "S_Read_Expl"] {
        let reads = name.contains("Read");
        let (asked, done) = staged(name, Mode::Aggregate, 3, &buffers(Buffers::Cold));
        assert_eq!(batches(&asked), [own], "{name}");
        assert_eq!((done.checked.bytes_checked, done.checked.bytes_wrong), (3000, 0), "{name}");
        let (asked, done) = staged(name, Mode::Aggregate, 3, &buffers(Buffers::Reused));
        // Reads once more, from the beginning, into memory of their own.
        let expected: &[&[usize]] = if reads { &[&[0; 3], &own] } else { &[&[0; 3]] };
        assert_eq!(batches(&asked), expected, "{name}");
        assert_eq!(asked.iter().filter(|asked| **asked == Asked::Prepare).count(), expected.len(), "{name}");
        let checked = if reads { 4000 } else { 3000 };
        assert_eq!((done.checked.bytes_checked, done.checked.bytes_wrong), (checked, 0), "{name}");
        assert_eq!((done.timed.moved_bytes, done.timed.error), (3000, None), "{name}: of the clock alone");
    }
}

#[test]
fn wrong_reads_into_one_buffer_are_found_as_far_as_is_promised() {
    let wrong = |fault| {
        let (_, done) = with_fault("S_Read_Indv", Mode::Aggregate, 3, &buffers(Buffers::Reused), Some(fault));
        (done.checked.bytes_wrong, done.checked.finding.and_then(|finding| finding.repetition))
    };
    // What the last one in the clock has left; and each of the second pass.
    assert_eq!(wrong((0, 2)), (1, Some(2)));
    assert_eq!([0, 1, 2].map(|call| wrong((1, call))), [(1, Some(0)), (1, Some(1)), (1, Some(2))]);
}

#[test]
fn a_single_read_needs_no_second_pass() {
    let (asked, done) = staged("S_Read_Indv", Mode::Aggregate, 1, &buffers(Buffers::Reused));
    assert_eq!(batches(&asked), [[0]]);
    assert_eq!((done.checked.bytes_checked, done.checked.bytes_wrong), (1000, 0));
}
