//! Both drivers compared with a reference model: bytes, lengths, and the memory adjacent to what was read.

use std::cell::Cell;
use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::direct::FdPair;
use crate::error::FailureCause;
use crate::offset_file::OffsetFile;
use crate::posix::PosixFile;
use crate::route::FileRoute;
use crate::statx::direct_align;
use crate::testing::{fill_stream, pattern, scratch, stream_byte};
use crate::uring::UringFile;
use crate::{Batches, CallForm, Collective, Direct, DriverOptions, Latency, OpenFile, OpenMode, RankPartition};

const SEED: u64 = 5;
const DRIVERS: [&str; 2] = ["posix", "uring"];

/// One rank's part of a file that may have contents.
#[derive(Clone, Debug)]
struct EdgeCase {
    pattern: AccessPattern,
    /// Number of calls of each batch, and whether a sync follows.
    batches: Vec<(u64, bool)>,
    period: u64,
    align: u64,
    /// Block size of the file system.
    block: u64,
    depth: u32,
    piece_shift: u32,
    /// Initial length of the file.
    before: u64,
}

prop_compose! {
    fn cases()(
        chunk in prop_oneof![
            Just(8), Just(512), Just(1024), Just(1032), Just(4096), Just(4104), Just(32776),
            (1_u64..600).prop_map(|w| 8 * w)
        ],
        chunks_per_call in 1_u64..5,
        batches in prop::collection::vec((0_u64..6, any::<bool>()), 1..5),
        stream in prop_oneof![Just(0), Just(4096 * 7), (0_u64..4000).prop_map(|w| 8 * w)],
        lead in 0_u64..3,
        segment in prop_oneof![Just(None), (0_u64..2).prop_map(Some)],
        pages in 1_u64..12,
        (align, block) in prop_oneof![Just((512_u64, 512)), Just((512, 1024)), Just((512, 4096)), Just((4096, 4096))],
        depth in 1_u32..20,
        piece_shift in prop_oneof![Just(12_u32), Just(14), Just(30)],
        before in prop_oneof![Just(0), 0_u64..200_000, (0_u64..50).prop_map(|s| 512 * s)],
        end_near in prop::option::of(-600_i64..600),
    ) -> EdgeCase {
        let calls = batches.iter().map(|b| b.0).sum::<u64>();
        let bytes = calls * chunks_per_call * chunk;
        let distance = ceil(stream + bytes, 1 << 20);
        let (rank, ranks) = segment.map_or((0, 1), |rank| (rank, 2));
        let base_bytes = if ranks == 1 { stream + 4096 * lead } else { rank * distance + stream };
        let part = AccessPattern {
            base_bytes,
            stream_bytes: stream,
            rank,
            ranks,
            rank_distance_bytes: if ranks == 1 { 0 } else { distance },
            partition: RankPartition::Equal,
            form: CallForm::default(),
            ..pattern(chunk, chunks_per_call, calls)
        };
        // Often a length close to the end of the pattern.
        let before = end_near.map_or(before, |d| (base_bytes + bytes).saturating_add_signed(d));
        EdgeCase { pattern: part, batches, period: 4096 * pages, align, block, depth, piece_shift, before }
    }
}

/// Initial contents of a file.
fn previous_bytes(len: u64) -> Vec<u8> {
    (0..len).map(|i| stream_byte(99, i, 1 << 40)).collect()
}

impl EdgeCase {
    fn open(&self, name: &str, path: &Path) -> Box<dyn OpenFile> {
        let mut files = FdPair::open_alone(path, OpenMode::Update, Direct::Required).unwrap();
        files.force_align(self.align);
        files.force_block(self.block);
        open(name, files, self.depth, self.piece_shift)
    }

    fn ring(&self) -> TransferBuffer {
        let mut buffer = TransferBuffer::new(self.period, self.pattern.call_bytes()).unwrap();
        fill_stream(&mut buffer, SEED);
        buffer
    }

    /// Batches, and whether a sync follows.
    fn steps(&self) -> impl Iterator<Item = (Batch, bool)> + '_ {
        let mut first_call = 0;
        self.batches.iter().map(move |&(calls, sync)| {
            let batch = Batch { first_call, calls };
            first_call += calls;
            (batch, sync)
        })
    }

    fn expected_file(&self, calls: u64) -> Vec<u8> {
        let p = &self.pattern;
        let mut file = previous_bytes(self.before);
        if calls > 0 {
            let len = file.len().max((p.base_bytes + calls * p.call_bytes()) as usize);
            file.resize(len, 0);
        }
        for i in 0..calls * p.call_bytes() {
            file[(p.base_bytes + i) as usize] = stream_byte(SEED, p.stream_bytes + i, self.period);
        }
        file
    }

    fn check_file(&self, path: &Path, calls: u64) -> std::result::Result<(), TestCaseError> {
        let (got, expected) = (std::fs::read(path).unwrap(), self.expected_file(calls));
        if self.pattern.ranks == 1 {
            prop_assert_eq!(got.len(), expected.len());
        } else {
            // Up to the end of the sector, which the rank owns, or of the block if chunks are at least as long.
            let last = if self.pattern.chunk_bytes >= self.block { self.block } else { self.align };
            prop_assert!(got.len() >= expected.len() && got.len() as u64 <= ceil(expected.len() as u64, last));
            prop_assert!(got[expected.len()..].iter().all(|b| *b == 0));
        }
        let wrong = got.iter().zip(&expected).position(|(a, b)| a != b);
        prop_assert_eq!(wrong, None, "first wrong byte");
        Ok(())
    }
}

fn open(name: &str, files: FdPair, queue_depth: u32, piece_shift: u32) -> Box<dyn OpenFile> {
    let options = DriverOptions { queue_depth, ..DriverOptions::default() };
    match name {
        "posix" => Box::new(PosixFile::new(OffsetFile::single_rank(files))),
        _ => Box::new(
            UringFile::with_piece_shift(OffsetFile::single_rank(files), (&options).into(), piece_shift).unwrap(),
        ),
    }
}

thread_local! {
    /// Whether this test, in its own thread, has reported that it is skipped.
    static SKIP_REPORTED: Cell<bool> = const { Cell::new(false) };
}

/// True if the scratch directory supports direct I/O with sectors of this many bytes; otherwise the test is skipped with one message.
fn can_be_direct(path: &Path, sector_bytes: u64) -> bool {
    let align = direct_align(&File::open(path).unwrap()).unwrap();
    let can = align.is_some_and(|a| a.common_bytes() <= sector_bytes);
    if !can && !SKIP_REPORTED.replace(true) {
        println!("SKIPPED: no direct I/O in sectors of {sector_bytes} bytes here");
    }
    can
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn writes_leave_the_bytes_of_the_model(case in cases()) {
        for name in DRIVERS {
            let dir = scratch();
            let path = dir.path().join("f");
            std::fs::write(&path, previous_bytes(case.before)).unwrap();
            if !can_be_direct(&path, case.align) {
                return Ok(());
            }
            let (mut file, mut buffer) = (case.open(name, &path), case.ring());
            let prepared = file.prepare(&case.pattern, Direction::Write, &mut buffer, &[]).unwrap();
            prop_assert_eq!(prepared.direct, Some(true));
            for (batch, sync) in case.steps() {
                let moved = file.write(Batches::new(batch, &mut Latency::off()), &buffer).unwrap();
                prop_assert_eq!(moved, batch.calls * case.pattern.call_bytes());
                if sync {
                    file.sync().unwrap();
                    case.check_file(&path, batch.first_call + batch.calls)?;
                }
            }
            // Without a sync the close writes the last sector.
            file.close().unwrap();
            case.check_file(&path, case.pattern.max_calls)?;
        }
    }

    #[test]
    fn reads_touch_nothing_but_their_windows(case in cases()) {
        for name in DRIVERS {
            let dir = scratch();
            let path = dir.path().join("f");
            let p = &case.pattern;
            let len = case.before;
            std::fs::write(&path, previous_bytes(len)).unwrap();
            if !can_be_direct(&path, case.align) {
                return Ok(());
            }
            let (mut file, mut buffer) = (case.open(name, &path), case.ring());
            buffer.mapped_mut().iter_mut().enumerate().for_each(|(i, byte)| *byte = stream_byte(7, i as u64, 1 << 40));
            let mut memory = buffer.mapped().to_vec();
            file.prepare(p, Direction::Read, &mut buffer, &[]).unwrap();
            for (batch, _) in case.steps() {
                let numbers = batch.first_call * p.chunks_per_call..(batch.first_call + batch.calls) * p.chunks_per_call;
                let short = numbers.map(|k| p.chunk_offset(k)).find(|offset| offset + p.chunk_bytes > len);
                match (file.read(Batches::new(batch, &mut Latency::off()), &mut buffer), short) {
                    (Ok(moved), None) => prop_assert_eq!(moved, batch.calls * p.call_bytes()),
                    (Err(error), Some(offset)) => {
                        prop_assert_eq!(error.cause, FailureCause::Short, "{}", error);
                        prop_assert_eq!(error.offset_bytes, Some(offset));
                        prop_assert_eq!(error.expected_got_bytes, Some((p.chunk_bytes, len.saturating_sub(offset))));
                        break;
                    }
                    (outcome, short) => prop_assert!(false, "{name}: {outcome:?}, expected {short:?}"),
                }
                for call in batch.first_call..batch.first_call + batch.calls {
                    let (index, offset) = (buffer.index(p.stream_position(call)), p.base_bytes + call * p.call_bytes());
                    for i in 0..p.call_bytes() as usize {
                        memory[index + i] = stream_byte(99, offset + i as u64, 1 << 40);
                    }
                }
                let wrong = memory.iter().zip(buffer.mapped()).position(|(a, b)| a != b);
                prop_assert_eq!(wrong, None, "{} after {:?}", name, batch);
            }
            file.close().unwrap();
        }
    }
}

#[test]
fn strategy_names_the_sectors() {
    let dir = scratch();
    let path = dir.path().join("f");
    std::fs::write(&path, []).unwrap();
    if !can_be_direct(&path, 512) {
        return;
    }
    let mut buffer = TransferBuffer::new(1 << 16, 1 << 16).unwrap();
    for name in DRIVERS {
        let mut file = open(name, FdPair::open_alone(&path, OpenMode::Update, Direct::Required).unwrap(), 4, 30);
        let prepared = file.prepare(&pattern(1032, 1, 4), Direction::Write, &mut buffer, &[]).unwrap();
        let text = "O_DIRECT, whole sectors of 512 directly from memory, edges read-modify-written";
        assert!(prepared.strategy.contains(text), "{}", prepared.strategy);
        let prepared = file.prepare(&pattern(1032, 1, 4), Direction::Read, &mut buffer, &[]).unwrap();
        assert!(prepared.strategy.contains("directly into memory"), "{}", prepared.strategy);
        // In a new file, chunks longer than a block are written in whole blocks.
        let mut files = FdPair::open_alone(&path, OpenMode::Update, Direct::Required).unwrap();
        files.force_block(4096);
        let mut file = open(name, files, 4, 30);
        for (chunk, text) in [(1032, text), (32776, "O_DIRECT, whole blocks of 4096 directly from memory")] {
            let prepared = file.prepare(&pattern(chunk, 1, 4), Direction::Write, &mut buffer, &[]).unwrap();
            assert!(prepared.strategy.contains(text), "{}", prepared.strategy);
        }
    }
}

#[test]
fn a_full_device_is_reported_for_every_edge() {
    let dir = scratch();
    let path = dir.path().join("f");
    std::fs::write(&path, []).unwrap();
    if !can_be_direct(&path, 512) {
        return;
    }
    for name in DRIVERS {
        let full = || {
            let mut files = FdPair::open_alone(&path, OpenMode::Update, Direct::Required).unwrap();
            files.force_direct_file(File::options().read(true).write(true).open("/dev/full").unwrap());
            open(name, files, 4, 30)
        };
        let mut buffer = TransferBuffer::new(1 << 16, 1 << 16).unwrap();
        let run = |file: &mut dyn OpenFile, p: &AccessPattern, buffer: &mut TransferBuffer| {
            file.prepare(p, Direction::Write, buffer, &[]).unwrap();
            file.write(Batches::new(Batch { first_call: 0, calls: p.max_calls }, &mut Latency::off()), buffer)
        };
        let head = AccessPattern { base_bytes: 8, stream_bytes: 8, ..pattern(1032, 1, 4) };
        let error = run(full().as_mut(), &head, &mut buffer).unwrap_err();
        assert_eq!((error.operation, error.cause), ("pwrite (edge sector)", FailureCause::NoSpace), "{name}");
        let error = run(full().as_mut(), &pattern(1032, 1, 4), &mut buffer).unwrap_err();
        assert_eq!((error.cause, error.offset_bytes), (FailureCause::NoSpace, Some(0)), "{name}: {error}");
        let mut file = full();
        run(file.as_mut(), &pattern(8, 1, 4), &mut buffer).unwrap();
        let error = file.sync().unwrap_err();
        assert_eq!((error.operation, error.cause), ("pwrite (edge sector)", FailureCause::NoSpace), "{name}");
        file.close().unwrap();
    }
}

#[test]
fn another_pattern_keeps_the_carried_sector() {
    let dir = scratch();
    for name in DRIVERS {
        let path = dir.path().join(name);
        std::fs::write(&path, []).unwrap();
        if !can_be_direct(&path, 512) {
            return;
        }
        let mut file = open(name, FdPair::open_alone(&path, OpenMode::Update, Direct::Required).unwrap(), 4, 30);
        let mut buffer = TransferBuffer::new(1 << 16, 1 << 12).unwrap();
        fill_stream(&mut buffer, SEED);
        for at in [0, 1032] {
            let p = AccessPattern { base_bytes: at, stream_bytes: at, ..pattern(1032, 1, 1) };
            file.prepare(&p, Direction::Write, &mut buffer, &[]).unwrap();
            file.write(Batches::new(Batch { first_call: 0, calls: 1 }, &mut Latency::off()), &buffer).unwrap();
        }
        buffer.bytes_mut()[..2064].fill(0);
        file.prepare(&pattern(2064, 1, 1), Direction::Read, &mut buffer, &[]).unwrap();
        file.read(Batches::new(Batch { first_call: 0, calls: 1 }, &mut Latency::off()), &mut buffer).unwrap();
        assert!((0..2064).all(|i| buffer.bytes()[i] == stream_byte(SEED, i as u64, 1 << 16)), "{name}");
        file.close().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), buffer.bytes()[..2064]);
    }
}

#[test]
fn a_period_that_is_no_sector_is_right_up_to_its_end() {
    let dir = scratch();
    for name in DRIVERS {
        let path = dir.path().join(name);
        File::create(&path).unwrap();
        if !can_be_direct(&path, 4096) {
            return;
        }
        let files = || FdPair::open_alone(&path, OpenMode::Update, Direct::Required).unwrap();
        let p = pattern(1031, 1, 7);
        let mut buffer = TransferBuffer::new(8192, 0).unwrap();
        buffer.set_period_bytes(7 * 1031);
        fill_stream(&mut buffer, SEED);
        let right = buffer.bytes()[..7 * 1031].to_vec();
        let mut file = open(name, files(), 3, 30);
        assert_eq!(file.prepare(&p, Direction::Write, &mut buffer, &[]).unwrap().direct, Some(true));
        for (first_call, calls) in [(0, 2), (2, 5)] {
            file.write(Batches::new(Batch { first_call, calls }, &mut Latency::off()), &buffer).unwrap();
        }
        file.sync().unwrap();
        assert!(std::fs::read(&path).unwrap() == right, "{name}");
        buffer.bytes_mut().fill(0);
        file.prepare(&p, Direction::Read, &mut buffer, &[]).unwrap();
        for (first_call, calls) in [(0, 2), (2, 5)] {
            file.read(Batches::new(Batch { first_call, calls }, &mut Latency::off()), &mut buffer).unwrap();
        }
        assert!(buffer.bytes()[..7 * 1031] == right, "{name}");
        assert!(buffer.bytes()[7 * 1031..].iter().all(|b| *b == 0), "{name}: memory outside the batch");
        file.close().unwrap();
    }
}

#[test]
fn unsafe_route_writes_shared_sectors_one_rank_after_the_other() {
    let dir = scratch();
    for name in ["posix"] {
        let path = dir.path().join(name);
        std::fs::write(&path, []).unwrap();
        if !can_be_direct(&path, 512) {
            return;
        }
        let options = DriverOptions {
            direct: Direct::Required,
            collective: Collective::UnsafeReadModifyWrite,
            ..DriverOptions::default()
        };
        let mut expected = vec![0; 2 * 1032 * 12];
        for rank in 0..2 {
            let p = AccessPattern {
                base_bytes: rank * 1032,
                stride_bytes: 2 * 1032,
                rank,
                ranks: 2,
                rank_distance_bytes: 1032,
                partition: RankPartition::Equal,
                form: CallForm::default(),
                ..pattern(1032, 3, 4)
            };
            let files = FdPair::open_alone(&path, OpenMode::Update, &options).unwrap();
            assert_eq!(files.route(&p, Direction::Write), Ok(FileRoute::UnsafeReadModifyWrite { align_bytes: 512 }));
            let mut file = open(name, files, 4, 30);
            let mut buffer = TransferBuffer::new(4096 * 3, p.call_bytes()).unwrap();
            fill_stream(&mut buffer, rank + 1);
            let prepared = file.prepare(&p, Direction::Write, &mut buffer, &[]).unwrap();
            assert!(prepared.strategy.contains("UNSAFE"), "{}", prepared.strategy);
            let all = Batch { first_call: 0, calls: 4 };
            file.write(Batches::new(all, &mut Latency::off()), &buffer).unwrap();
            file.sync().unwrap();
            for k in 0..12 {
                for i in 0..1032 {
                    expected[(p.chunk_offset(k) + i) as usize] = stream_byte(rank + 1, k * 1032 + i, 4096 * 3);
                }
            }
            let last = p.stream_position(3);
            buffer.window_mut(last, p.call_bytes() as usize).fill(0);
            file.prepare(&p, Direction::Read, &mut buffer, &[]).unwrap();
            file.read(Batches::new(all, &mut Latency::off()), &mut buffer).unwrap();
            let window = buffer.window(last, p.call_bytes() as usize);
            assert!((0..3096).all(|i| window[i] == stream_byte(rank + 1, last + i as u64, 4096 * 3)), "{name}");
            file.close().unwrap();
        }
        assert!(std::fs::read(&path).unwrap()[..expected.len()] == expected, "{name}");
    }
}
