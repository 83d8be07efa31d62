//! One file through a driver that logs its calls.

use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;
use std::rc::Rc;

use beff_backends::{driver, Batches, Driver, DriverOptions, Latency, Support, TransferBuffer, TransferStrategy};

use super::*;
use crate::frame::rank_directories::RankDirectories;
use crate::frame::run::evidence::StorageSite;
use crate::frame::run::interference::HostCpus;
use crate::frame::run::interrupt::Interrupt;
use crate::frame::run::run_dir::RunDir;
use crate::frame::system::residency;
use crate::imb_io::config::{ImbConfig, IterationBuffers};
use crate::imb_io::plan::names::find;
use crate::imb_io::plan::processes::{Groups, Member};
use crate::imb_io::plan::{IterationRule, Mode, PlannedRow};
use crate::imb_io::run::job::ConfiguredBackend;
use crate::imb_io::run::open_close;
use crate::imb_io::run::team::Team;
use crate::imb_io::values::fixture;

#[derive(Clone, Debug, PartialEq, Eq)]
enum DriverCall {
    /// With the contents of the file; None: it did not exist.
    Open(OpenMode, Option<Vec<u8>>),
    Prepare,
    /// Start of a write, with the bytes of the file in the page cache; None if unknown.
    Cached(Option<u64>),
    /// Calls, and the index of each window in memory.
    Move(Batch, Vec<usize>),
    Sync,
    Close,
}

type CallLog = Rc<RefCell<Vec<DriverCall>>>;

/// Injected bit flip: number of batches before it, and the call whose window has it.
type BitFlip = Option<(usize, u64)>;

/// The posix driver with a log, which may claim direct I/O.
struct Spy {
    driver: Box<dyn Driver>,
    log: CallLog,
    fault: BitFlip,
    direct: Option<bool>,
}

struct SpyFile {
    file: Box<dyn OpenFile>,
    pattern: Option<AccessPattern>,
    log: CallLog,
    fault: BitFlip,
    direct: Option<bool>,
    path: PathBuf,
}

impl Driver for Spy {
    fn open(&self, request: &OpenRequest<'_>) -> beff_backends::Result<Box<dyn OpenFile>> {
        self.log.borrow_mut().push(DriverCall::Open(request.mode, fs::read(request.path).ok()));
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
    fn moved(&self, batch: Batch, buffer: &TransferBuffer) {
        let pattern = self.pattern.unwrap();
        let calls = batch.first_call..batch.first_call + batch.calls;
        let windows = calls.map(|call| buffer.index(pattern.stream_position(call))).collect();
        self.log.borrow_mut().push(DriverCall::Move(batch, windows));
    }
}

impl OpenFile for SpyFile {
    fn support(&self, pattern: &AccessPattern) -> Support {
        self.file.support(pattern)
    }

    fn prepare(
        &mut self,
        pattern: &AccessPattern,
        direction: Direction,
        buffer: &mut TransferBuffer,
        hints: &[(String, String)],
    ) -> beff_backends::Result<TransferStrategy> {
        self.log.borrow_mut().push(DriverCall::Prepare);
        self.pattern = Some(*pattern);
        Ok(TransferStrategy { direct: self.direct, ..self.file.prepare(pattern, direction, buffer, hints)? })
    }

    fn write(&mut self, work: Batches<'_>, buffer: &TransferBuffer) -> beff_backends::Result<u64> {
        if self.direct.is_some() {
            let file = fs::File::open(&self.path).unwrap();
            let cached = residency::resident_bytes(&file, &(0..u64::MAX / 2)).ok().map(|(bytes, _)| bytes);
            self.log.borrow_mut().push(DriverCall::Cached(cached));
        }
        self.moved(work.batch, buffer);
        self.file.write(work, buffer)
    }

    fn read(&mut self, work: Batches<'_>, buffer: &mut TransferBuffer) -> beff_backends::Result<u64> {
        let batches = self.log.borrow().iter().filter(|asked| matches!(asked, DriverCall::Move(..))).count();
        self.moved(work.batch, buffer);
        let moved = self.file.read(work, buffer);
        if let Some((_, call)) = self.fault.filter(|(before, _)| *before == batches) {
            buffer.window_mut(self.pattern.unwrap().stream_position(call), 1)[0] ^= 0x10;
        }
        moved
    }

    fn transfer_mixed(&mut self, work: Batches<'_>, buffer: &mut TransferBuffer) -> beff_backends::Result<u64> {
        self.file.transfer_mixed(work, buffer)
    }

    fn sync(&mut self) -> beff_backends::Result<()> {
        self.log.borrow_mut().push(DriverCall::Sync);
        self.file.sync()
    }

    fn close(self: Box<Self>) -> beff_backends::Result<()> {
        self.log.borrow_mut().push(DriverCall::Close);
        self.file.close()
    }
}

/// Driver calls and result of one file of `steps` samples.
fn run_through_spy(name: &str, mode: Mode, steps: u64, config: &ImbConfig) -> (Vec<DriverCall>, FileResult) {
    with_fault(name, mode, steps, config, None)
}

fn with_fault(name: &str, mode: Mode, steps: u64, config: &ImbConfig, fault: BitFlip) -> (Vec<DriverCall>, FileResult) {
    through_spy((name, mode, steps), config, (fault, None), |bench, of| {
        let transfer = of.row.benchmark.transfer().unwrap();
        let shape = RowGeometry::new(*transfer, SAMPLE_BYTES, steps, (0, 1), config.buffers).unwrap();
        run_file(
            bench,
            &FileJob { row_job: of, geometry: &shape, overlap_mode: OverlapMode::Blocking, purpose: FilePurpose::Only },
        )
    })
}

fn through_spy(
    (name, mode, steps): (&str, Mode, u64),
    config: &ImbConfig,
    (fault, direct): (BitFlip, Option<bool>),
    work: impl FnOnce(&mut RowContext<'_>, &RowJob<'_>) -> Result<FileResult, RowAbort>,
) -> (Vec<DriverCall>, FileResult) {
    // On a file system where pages can be dropped: /tmp may be in memory.
    let scratch = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let world = Comm::comm_self();
    let log = CallLog::default();
    let posix = (driver("posix").unwrap().create)(&DriverOptions::default());
    let backend = ConfiguredBackend {
        options: DriverOptions::default(),
        name: "posix".into(),
        driver: Box::new(Spy { driver: posix, log: log.clone(), fault, direct }),
        moves_data: true,
        is_mpi: false,
        unavailable_reason: None,
        hints: Vec::new(),
    };
    let run_dir =
        RunDir::create(&world, scratch.path(), "run", (&["posix".into()], RankDirectories::NONE)).unwrap().unwrap();
    let team = Team {
        groups: Groups { ranks: 1, groups: 1 },
        member: Member { group: 0, rank: 0 },
        active: Comm::comm_self(),
        group: Comm::comm_self(),
        site: StorageSite::survey(&world, run_dir.path()).unwrap(),
        cpus: HostCpus::survey(&world).unwrap(),
    };
    let interrupt = Interrupt::watch().unwrap();
    let mut bench = RowContext {
        config,
        run_dir: &run_dir,
        buffer: TransferBuffer::new(1 << 20, 0).unwrap(),
        iteration_times: Latency::intervals(100),
        warnings: Vec::new(),
        corruptions: Vec::new(),
        interrupt: &interrupt,
        load: None,
    };
    let row = PlannedRow { benchmark: find(name).unwrap(), ranks: 1, mode, sample_bytes: Some(SAMPLE_BYTES) };
    let of = RowJob {
        row: &row,
        backend: &backend,
        team: &team,
        number: 7,
        keep_files: false,
        rule: &IterationRule::default(),
        requested_iterations: steps,
        estimate: None,
        previous_iterations: None,
        fixed_iterations: None,
        during: "test",
    };
    let Ok(done) = work(&mut bench, &of) else { panic!("{name} failed") };
    let left: Vec<PathBuf> = fs::read_dir(run_dir.path().join("posix")).unwrap().map(|e| e.unwrap().path()).collect();
    assert!(left.is_empty(), "{left:?}");
    let asked = log.borrow().clone();
    (asked, done)
}

const SAMPLE_BYTES: u64 = 1000;

fn config(file: InitialFileState) -> ImbConfig {
    ImbConfig { file: Some(file), ..buffers(IterationBuffers::Reused) }
}

fn buffers(buffers: IterationBuffers) -> ImbConfig {
    ImbConfig { buffers: Some(buffers), ..fixture::run().config }
}

/// Contents of a file before and after the writes of five samples.
#[test]
fn existing_files_hold_other_bytes_before_they_are_opened() {
    for name in ["S_Write_Indv", "S_Write_Expl"] {
        let config = config(InitialFileState::Existing);
        let (asked, done) = run_through_spy(name, Mode::Aggregate, 5, &config);
        let DriverCall::Open(OpenMode::Update, Some(before)) = &asked[0] else { panic!("{asked:?}") };
        let shape = RowGeometry::new(*find(name).unwrap().transfer().unwrap(), SAMPLE_BYTES, 5, (0, 1), config.buffers)
            .unwrap();
        let data = shape.data(fixture::run().config.seed, 7 * FilePurpose::COUNT + 1, 0);
        let wrong = data.compare(before, 0);
        assert_eq!((before.len(), wrong.bytes_wrong), (5000, 5000), "every byte differs: {name}");
        assert_eq!(data.diagnose(before, 0), "never written: the file has its initial data");
        assert_eq!((done.checked.bytes_checked, done.checked.bytes_wrong), (5000, 0));
        assert_eq!(done.timed.moved_bytes, 5000);
    }
}

#[test]
fn new_files_are_made_by_the_opening() {
    let (asked, done) = run_through_spy("S_Write_Indv", Mode::Aggregate, 5, &config(InitialFileState::New));
    assert_eq!(asked[0], DriverCall::Open(OpenMode::CreateNew, None));
    assert_eq!((done.checked.bytes_checked, done.checked.bytes_wrong), (5000, 0));
}

#[test]
fn syncs_follow_the_mode() {
    let of = |mode| {
        let (asked, _) = run_through_spy("S_Write_Indv", mode, 3, &config(InitialFileState::Existing));
        asked[1..]
            .iter()
            .map(|asked| match asked {
                DriverCall::Prepare => 'p',
                DriverCall::Move(batch, _) => char::from_digit(batch.calls as u32, 10).unwrap(),
                DriverCall::Sync => 's',
                DriverCall::Close => 'c',
                DriverCall::Open(..) => 'o',
                DriverCall::Cached(_) => '?',
            })
            .collect::<String>()
    };
    assert_eq!(of(Mode::Aggregate), "p3ssc");
    assert_eq!(of(Mode::NonAggregate), "p1ss1ss1ssc");
}

#[test]
fn the_opened_file_has_its_byte_or_is_empty() {
    for (file, length) in [(InitialFileState::Existing, 1), (InitialFileState::New, 0)] {
        let config = config(file);
        let run = |bench: &mut RowContext<'_>, of: &RowJob<'_>| open_close::run(bench, of, 3, true);
        let (asked, done) = through_spy(("Open_Close", Mode::Aggregate, 3), &config, (None, None), run);
        let opened =
            asked.iter().filter_map(|asked| if let DriverCall::Open(_, bytes) = asked { bytes.clone() } else { None });
        let opened: Vec<_> = opened.collect();
        assert_eq!(opened.iter().map(Vec::len).collect::<Vec<_>>(), [length, 1, 1], "{file:?}");
        assert!(length == 0 || opened[0][0] == !opened[1][0], "{opened:?}");
        assert_eq!((done.checked.bytes_checked, done.checked.bytes_wrong), (1, 0));
    }
}

/// Direct writes would invalidate the pages of the preparation inside the timed loop.
#[test]
fn direct_writes_have_no_cached_pages_of_the_preparation() {
    let cached = |direct| {
        let config = config(InitialFileState::Existing);
        let (asked, _) =
            through_spy(("S_Write_Indv", Mode::Aggregate, 100), &config, (None, Some(direct)), |bench, of| {
                let transfer = of.row.benchmark.transfer().unwrap();
                let shape = RowGeometry::new(*transfer, SAMPLE_BYTES, 100, (0, 1), config.buffers).unwrap();
                run_file(
                    bench,
                    &FileJob {
                        row_job: of,
                        geometry: &shape,
                        overlap_mode: OverlapMode::Blocking,
                        purpose: FilePurpose::Only,
                    },
                )
            });
        asked.iter().find_map(|asked| if let DriverCall::Cached(bytes) = asked { *bytes } else { None })
    };
    let Some(through_the_cache) = cached(false) else {
        println!("SKIPPED: page-cache residency is unknown here");
        return;
    };
    assert!(through_the_cache >= 100 * SAMPLE_BYTES, "{through_the_cache}");
    assert_eq!(cached(true), Some(0));
}

fn batches(asked: &[DriverCall]) -> Vec<&[usize]> {
    asked
        .iter()
        .filter_map(|asked| if let DriverCall::Move(_, windows) = asked { Some(&windows[..]) } else { None })
        .collect()
}

#[test]
fn one_buffer_for_all_repetitions_or_one_for_each() {
    let own = [0, 1000, 2000];
    for name in ["S_Write_Indv", "S_Read_Expl"] {
        let reads = name.contains("Read");
        let (asked, done) = run_through_spy(name, Mode::Aggregate, 3, &buffers(IterationBuffers::Cold));
        assert_eq!(batches(&asked), [own], "{name}");
        assert_eq!((done.checked.bytes_checked, done.checked.bytes_wrong), (3000, 0), "{name}");
        let (asked, done) = run_through_spy(name, Mode::Aggregate, 3, &buffers(IterationBuffers::Reused));
        // Reads are repeated from the beginning into separate windows.
        let expected: &[&[usize]] = if reads { &[&[0; 3], &own] } else { &[&[0; 3]] };
        assert_eq!(batches(&asked), expected, "{name}");
        assert_eq!(asked.iter().filter(|asked| **asked == DriverCall::Prepare).count(), expected.len(), "{name}");
        let checked = if reads { 4000 } else { 3000 };
        assert_eq!((done.checked.bytes_checked, done.checked.bytes_wrong), (checked, 0), "{name}");
        assert_eq!((done.timed.moved_bytes, done.timed.error), (3000, None), "{name}: timed loop alone");
    }
}

#[test]
fn wrong_reads_into_one_buffer_are_detected() {
    let wrong = |fault| {
        let (_, done) = with_fault("S_Read_Indv", Mode::Aggregate, 3, &buffers(IterationBuffers::Reused), Some(fault));
        (done.checked.bytes_wrong, done.checked.first_wrong.and_then(|finding| finding.iteration))
    };
    // The last timed read, and each read repeated for verification.
    assert_eq!(wrong((0, 2)), (1, Some(2)));
    assert_eq!([0, 1, 2].map(|call| wrong((1, call))), [(1, Some(0)), (1, Some(1)), (1, Some(2))]);
}

#[test]
fn a_single_read_is_not_repeated_for_verification() {
    let (asked, done) = run_through_spy("S_Read_Indv", Mode::Aggregate, 1, &buffers(IterationBuffers::Reused));
    assert_eq!(batches(&asked), [[0]]);
    assert_eq!((done.checked.bytes_checked, done.checked.bytes_wrong), (1000, 0));
}
