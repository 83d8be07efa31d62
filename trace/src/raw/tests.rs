//! Round trips through files of arbitrary events in arbitrary blocks, and truncated, damaged or random files.

use std::io::Write;
use std::path::Path;

use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

use super::block::{closed_header, BlockHeader, BlockKind, HEADER_BYTES, PAYLOAD_BYTES};
use super::clock::ClockSample;
use super::record::{buffer_word, has, repeat_words, CompactRecord, REPEAT_TICKS, TAG_BASE, TAG_LAST, TAG_PART};
use super::{event, Event, ProcessFile, ProcessHeader, RawError, BLOCK_BYTES, VERSION};
use crate::{
    Amode, ArrayOrder, Call, Completion, Datatype, ErrorClass, FileIdentity, Function, RecordingStatus, Whence,
};

fn head(end: RecordingStatus) -> ProcessHeader {
    ProcessHeader {
        version: VERSION,
        rank: 3,
        ranks: 4,
        host: "host é".into(),
        pid: 17,
        library: "MPI 1".into(),
        command: vec!["./a".into(), String::new(), "b c".into()],
        started_unix_ns: u64::MAX,
        clock_offset_ns: [i64::MIN, 5],
        cost_ns: Some(0.25),
        storage_bytes: Some([0, u64::MAX]),
        end,
        clock_samples: [ClockSample { tick: 0, ns: 0 }, ClockSample { tick: 1 << 50, ns: 1 << 50 }],
    }
}

/// Records of one lane, closed after every `block_bytes`.
struct LaneFixture {
    number: u32,
    tick: u64,
    base: u64,
    sequence: u32,
    records: Vec<u8>,
    blocks: Vec<Vec<u8>>,
    block_bytes: usize,
}

impl LaneFixture {
    fn new(number: u32, block_bytes: usize) -> Self {
        Self { number, tick: 0, base: 0, sequence: 0, records: Vec::new(), blocks: Vec::new(), block_bytes }
    }

    fn block(&self, kind: BlockKind) -> Vec<u8> {
        let length = if kind == BlockKind::Live { 0 } else { self.records.len() as u32 };
        let moment = ClockSample { tick: self.base, ns: self.base };
        let (lane, sequence) = (self.number, self.sequence);
        let head = BlockHeader {
            kind,
            lane,
            thread: self.number,
            sequence,
            length,
            base_tick: self.base,
            clock_sample: moment,
        };
        let bytes = if kind == BlockKind::Live { head.bytes() } else { closed_header(&head, &self.records) };
        let mut block = [&bytes[..], &self.records].concat();
        block.resize(BLOCK_BYTES, 0);
        block
    }

    fn close(&mut self) {
        self.blocks.push(self.block(BlockKind::Closed));
        self.sequence += 1;
        self.base = self.tick;
        self.records.clear();
    }

    fn reserve(&mut self, bytes: usize) {
        if self.records.len() + bytes > self.block_bytes {
            self.close();
        }
    }

    fn words(&mut self, words: &[u64]) {
        words.iter().for_each(|word| self.records.extend_from_slice(&word.to_le_bytes()));
    }

    fn event(&mut self, tick: u64, event: &Event) {
        let mut bytes = Vec::new();
        match event {
            Event::Type { id, datatype } => event::put_type(&mut bytes, tick, *id, datatype),
            Event::Comm { id, ranks } => event::put_comm(&mut bytes, tick, *id, ranks),
            Event::Info { id, pairs } => event::put_info(&mut bytes, tick, *id, pairs),
            Event::Storage { id, path, fs_type } => event::put_storage(&mut bytes, tick, *id, path, fs_type),
            Event::Removed { path } => event::put_removed(&mut bytes, tick, path),
            Event::Call(call) => event::put_call(&mut bytes, call),
        }
        let mut rest = &bytes[..];
        loop {
            self.reserve(32);
            let (part, after) = rest.split_at(rest.len().min((self.block_bytes - self.records.len() - 8) / 8 * 8));
            let tag = if after.is_empty() { TAG_LAST } else { TAG_PART };
            self.words(&[u64::from(tag) | (part.len() as u64) << 32]);
            self.records.extend_from_slice(part);
            self.records.resize(self.records.len().next_multiple_of(8), 0);
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        self.tick = tick;
    }

    fn compact(&mut self, record: CompactRecord, tick: u64) {
        self.reserve(48);
        if tick - self.tick > u64::from(u32::MAX) {
            self.words(&[u64::from(TAG_BASE), tick]);
            self.tick = tick;
        }
        self.words(&CompactRecord { since_ticks: (tick - self.tick) as u32, ..record }.words());
        self.tick = tick;
    }
}

fn write(path: &Path, head: &ProcessHeader, blocks: &[Vec<u8>]) {
    let mut first = head.block();
    first.resize(BLOCK_BYTES, 0);
    let mut file = std::fs::File::create(path).unwrap();
    file.write_all(&first).unwrap();
    blocks.iter().for_each(|block| file.write_all(block).unwrap());
}

fn types() -> impl Strategy<Value = Datatype> {
    let order = prop_oneof![Just(ArrayOrder::C), Just(ArrayOrder::Fortran)];
    prop_oneof![
        ("[A-Z_(),0-9é]{0,30}", any::<u64>(), any::<i64>())
            .prop_map(|(name, size_bytes, extent_bytes)| Datatype::Named { name, size_bytes, extent_bytes }),
        (any::<u64>(), any::<u32>()).prop_map(|(count, of)| Datatype::Contiguous { count, of }),
        any::<(u64, u64, i64, u32)>().prop_map(|(count, block, stride_bytes, of)| Datatype::Hvector {
            count,
            block,
            stride_bytes,
            of
        }),
        any::<(u64, u64, i64, u32)>().prop_map(|(count, block, stride, of)| Datatype::Vector {
            count,
            block,
            stride,
            of
        }),
        any::<(Vec<u64>, Vec<i64>, u32)>().prop_map(|(blocks, displacements, of)| Datatype::Indexed {
            blocks,
            displacements,
            of
        }),
        any::<(Vec<u64>, Vec<i64>, u32)>().prop_map(|(blocks, displacements_bytes, of)| Datatype::Hindexed {
            blocks,
            displacements_bytes,
            of
        }),
        any::<(u64, Vec<i64>, u32)>().prop_map(|(block, displacements, of)| Datatype::IndexedBlock {
            block,
            displacements,
            of
        }),
        any::<(u64, Vec<i64>, u32)>().prop_map(|(block, displacements_bytes, of)| Datatype::HindexedBlock {
            block,
            displacements_bytes,
            of
        }),
        any::<(Vec<u64>, Vec<i64>, Vec<u32>)>().prop_map(|(blocks, displacements_bytes, of)| Datatype::Struct {
            blocks,
            displacements_bytes,
            of
        }),
        (any::<(Vec<u64>, Vec<u64>, Vec<u64>, u32)>(), order.clone()).prop_map(
            |((sizes, subsizes, starts, of), order)| Datatype::Subarray { sizes, subsizes, starts, order, of }
        ),
        (any::<(u64, u64, Vec<u64>, Vec<u64>, u32)>(), vec(of(0..u64::MAX - 1), 0..4), vec(0..3_usize, 0..4), order)
            .prop_map(|((ranks, rank, sizes, grid, of), arguments, distributions, order)| {
                use crate::types::Distribution::{Block, Cyclic, None};
                let distributions = distributions.into_iter().map(|n| [None, Block, Cyclic][n]).collect();
                Datatype::Darray { ranks, rank, sizes, distributions, arguments, grid, order, of }
            }),
        any::<(i64, i64, u32)>().prop_map(|(lower_bound_bytes, extent_bytes, of)| Datatype::Resized {
            lower_bound_bytes,
            extent_bytes,
            of
        }),
    ]
}

fn error() -> impl Strategy<Value = ErrorClass> {
    (0_u8..38).prop_map(|number| ErrorClass::from_number(number).unwrap())
}

fn calls() -> impl Strategy<Value = Call> {
    let ids =
        (of(any::<u32>()), of(any::<u32>()), of(any::<u32>()), of(any::<u32>()), of(any::<u32>()), of(any::<u32>()));
    let numbers = (
        (of(any::<i64>()), of(any::<i64>())),
        of(any::<i64>()),
        of(any::<i64>()),
        of(any::<u64>()),
        of(any::<u64>()),
        any::<u64>(),
    );
    let rest =
        (of(error()), of("[a-zé/]{0,200}"), of(any::<u16>()), of(0..3_usize), of(any::<bool>()), of(any::<u32>()));
    let completion = (any::<u64>(), of(0..u64::MAX - 1), of(error())).prop_map(|(request, bytes, error)| Completion {
        request,
        bytes,
        error,
    });
    let lists = (vec(any::<u64>(), 0..20), vec(completion, 0..20));
    let file = (of("[a-zé/]{0,200}"), of(any::<[u64; 3]>()), of(any::<u64>()), of("[a-zé/]{0,200}"));
    let name = (0_u8..85, any::<bool>(), any::<u32>(), 0..1_u64 << 40);
    (name, ids, numbers, rest, lists, file).prop_map(|(name, ids, numbers, rest, lists, file)| {
        let mut call = Call::new(Function::from_number(name.0).unwrap(), 0, name.3);
        call.large_count = name.1 && call.function.has_large_count_variant();
        call.thread = name.2;
        (call.handle, call.datatype, call.etype, call.filetype, call.comm, call.info) = ids;
        ((call.offset, call.buffer), call.count, call.number, call.bytes, call.request, call.polls) = numbers;
        (call.error, call.name) = (rest.0, rest.1);
        call.amode = rest.2.map(Amode);
        call.whence = rest.3.map(|n| [Whence::Set, Whence::Current, Whence::End][n]);
        (call.flag, call.granted) = (rest.4, rest.5);
        (call.requests, call.completions) = lists;
        let identity = |[device, inode, created_unix_ns]: [u64; 3]| FileIdentity { device, inode, created_unix_ns };
        (call.path, call.identity, call.unchanged_ns, call.target_path) =
            (file.0, file.1.map(identity), file.2, file.3);
        call
    })
}

fn events() -> impl Strategy<Value = Event> {
    prop_oneof![
        (any::<u32>(), types()).prop_map(|(id, datatype)| Event::Type { id, datatype }),
        (any::<u32>(), vec(any::<u32>(), 0..2000)).prop_map(|(id, ranks)| Event::Comm { id, ranks }),
        (any::<u32>(), vec(("[a-z]{0,9}", "[ -~é]{0,40}"), 0..9)).prop_map(|(id, pairs)| Event::Info { id, pairs }),
        (any::<u32>(), "[ -~é]{0,40}", "[a-z.]{0,9}").prop_map(|(id, path, fs_type)| Event::Storage {
            id,
            path,
            fs_type
        }),
        "[ -~é]{0,40}".prop_map(|path| Event::Removed { path }),
        calls().prop_map(|call| Event::Call(Box::new(call))),
    ]
}

/// Events at distinct times, each in one of three lanes.
fn programs() -> impl Strategy<Value = Vec<(u64, usize, Event)>> {
    vec((1..1_u64 << 34, 0..3_usize, events()), 0..60).prop_map(|list| {
        let mut tick = 0;
        list.into_iter()
            .map(|(since, lane, mut event)| {
                tick += since;
                if let Event::Call(call) = &mut event {
                    call.end_ns += tick;
                    call.begin_ns = tick;
                }
                (tick, lane, event)
            })
            .collect()
    })
}

/// Blocks of a program, lanes interleaved; the last of each is live if `live`.
fn blocks(program: &[(u64, usize, Event)], block_bytes: usize, live: bool) -> Vec<Vec<u8>> {
    let mut lanes: Vec<LaneFixture> = (0..3).map(|number| LaneFixture::new(number, block_bytes)).collect();
    for (tick, lane, event) in program {
        lanes[*lane].event(*tick, event);
    }
    for lane in &mut lanes {
        let last = lane.block(if live { BlockKind::Live } else { BlockKind::Closed });
        lane.blocks.push(last);
    }
    let most = lanes.iter().map(|lane| lane.blocks.len()).max().unwrap_or(0);
    (0..most).rev().flat_map(|n| lanes.iter().filter_map(move |lane| lane.blocks.get(n).cloned())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn events_come_back_in_the_order_of_begin(program in programs(), block_bytes in 64..2048_usize, live: bool) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rank-3.beff");
        write(&path, &head(RecordingStatus::Complete), &blocks(&program, block_bytes / 8 * 8, live));
        let file = ProcessFile::open(&path).unwrap();
        prop_assert_eq!(file.head(), &head(RecordingStatus::Complete));
        let mut events = file.events();
        let read: Vec<Event> = events.by_ref().collect();
        prop_assert_eq!(events.end(), RecordingStatus::Complete);
        let expected: Vec<Event> = program.into_iter().map(|(_, _, event)| event).collect();
        prop_assert_eq!(read, expected);
    }

    #[test]
    fn a_damaged_file_is_read_up_to_the_damage(program in programs(), at in any::<prop::sample::Index>(), to: u8, cut: bool) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rank-3.beff");
        let blocks = blocks(&program, 512, false);
        write(&path, &head(RecordingStatus::Complete), &blocks);
        let mut bytes = std::fs::read(&path).unwrap();
        let at = at.index(bytes.len());
        let changed = bytes[at] != to;
        if cut { bytes.truncate(at) } else { bytes[at] = to }
        std::fs::write(&path, &bytes).unwrap();
        match ProcessFile::open(&path) {
            Err(RawError::Head { .. }) => prop_assert!(at < head(RecordingStatus::Complete).block().len()),
            Err(e) => prop_assert!(false, "{}", e),
            Ok(file) => {
                let mut events = file.events();
                let read: Vec<Event> = events.by_ref().collect();
                let mut all = program.iter().map(|(_, _, event)| event);
                // A truncated lane ends earlier than the others: the read events are an ordered subset.
                for event in &read {
                    prop_assert!(all.any(|one| one == event));
                }
                if read.len() < program.len() {
                    prop_assert!(changed || cut);
                    // Missing blocks at the end of the file can only be detected by the last number of their lane.
                    prop_assert!(cut || events.end() == RecordingStatus::Truncated);
                }
            }
        }
    }

    #[test]
    fn no_bytes_make_it_panic(noise in vec(any::<u8>(), 0..600), words in vec(any::<u64>(), 0..60), live: bool) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rank-0.beff");
        std::fs::write(&path, &noise).unwrap();
        prop_assert!(ProcessFile::open(&path).is_err());
        let mut lane = LaneFixture::new(0, PAYLOAD_BYTES);
        lane.records.extend_from_slice(&noise);
        lane.words(&words);
        write(&path, &head(RecordingStatus::Complete), &[lane.block(if live { BlockKind::Live } else { BlockKind::Closed })]);
        let file = ProcessFile::open(&path).unwrap();
        prop_assert!(file.events().count() <= words.len() + noise.len());
        let _ = event::read(&noise);
    }

    #[test]
    fn compact_records_are_the_calls_they_stand_for(
        fields in any::<(u8, u16, u16, u32, i64, u32, u32)>(), function in 0..60_u8, since in 0..1_u64 << 40,
    ) {
        let (present, datatype, handle, took_ticks, offset, count, bytes) = fields;
        let record = CompactRecord { function, present, datatype, handle, since_ticks: 0, duration_ticks: took_ticks, offset, count, bytes };
        prop_assert_eq!(CompactRecord::from_words(record.words()), record);
        let mut lane = LaneFixture::new(0, PAYLOAD_BYTES);
        lane.compact(record, since);
        let next = offset.wrapping_mul(3);
        lane.words(&repeat_words(REPEAT_TICKS - 1, u64::from(took_ticks) % REPEAT_TICKS, next));
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rank-0.beff");
        write(&path, &head(RecordingStatus::Complete), &[lane.block(BlockKind::Live)]);
        let file = ProcessFile::open(&path).unwrap();
        let mut events = file.events();
        let (Some(Event::Call(call)), Some(Event::Call(same))) = (events.next(), events.next()) else { panic!("no call") };
        prop_assert!(events.next().is_none());
        prop_assert_eq!(call.begin_ns, since);
        prop_assert_eq!(call.end_ns - since, u64::from(took_ticks));
        prop_assert_eq!(call.function as u8, function);
        prop_assert_eq!(call.handle, (present & has::HANDLE != 0).then(|| u32::from(handle)));
        prop_assert_eq!(call.count, (present & has::COUNT != 0).then(|| i64::from(count)));
        let completes = present & has::COMPLETES != 0;
        prop_assert_eq!(call.offset, (present & has::OFFSET != 0 && !completes).then_some(offset));
        prop_assert_eq!(call.completions.len(), usize::from(completes));
        let repeated = CompactRecord { duration_ticks: took_ticks % REPEAT_TICKS as u32, offset: next, ..record };
        prop_assert_eq!(*same, repeated.call(since + REPEAT_TICKS - 1, 0).unwrap());
    }
}

#[test]
fn buffer_words_apply_to_the_data_accesses_after_them() {
    let data = |has| CompactRecord {
        function: Function::WriteAt as u8,
        present: has | has::HANDLE,
        datatype: 0,
        handle: 1,
        since_ticks: 1,
        duration_ticks: 1,
        offset: 0,
        count: 5,
        bytes: 5,
    };
    let mut lane = LaneFixture::new(0, PAYLOAD_BYTES);
    lane.words(&data(has::COUNT).words());
    for address in [0, 0x7fff_1234_5678_9abc, u64::MAX] {
        lane.words(&[buffer_word(address)]);
        lane.words(&data(has::COUNT).words());
        lane.words(&repeat_words(1, 1, 9));
        lane.words(&data(has::BYTES).words());
    }
    lane.words(&data(has::COUNT).words());
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rank-0.beff");
    write(&path, &head(RecordingStatus::Complete), &[lane.block(BlockKind::Live)]);
    let file = ProcessFile::open(&path).unwrap();
    let buffers: Vec<_> =
        file.events().map(|event| if let Event::Call(call) = event { call.buffer } else { None }).collect();
    let (zero, some, most) = (Some(0), Some(0x00ff_1234_5678_9abc), Some((u64::MAX >> 8) as i64));
    assert_eq!(buffers, [None, zero, zero, None, some, some, None, most, most, None, most]);
}

#[test]
fn a_newer_version_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rank-0.beff");
    let records = [0_u8; 8];
    let head = BlockHeader {
        kind: BlockKind::Head,
        lane: 0,
        thread: 0,
        sequence: VERSION + 1,
        length: 8,
        base_tick: 0,
        clock_sample: ClockSample::default(),
    };
    let mut block = closed_header(&head, &records).to_vec();
    assert_eq!(block.len(), HEADER_BYTES);
    block.extend_from_slice(&records);
    std::fs::write(&path, block).unwrap();
    let error = ProcessFile::open(&path).unwrap_err();
    assert!(matches!(error, RawError::Version { found, .. } if found == VERSION + 1), "{error}");
    assert!(error.to_string().contains("merge with the version that recorded it"), "{error}");
}

#[test]
fn a_copy_of_the_live_block_counts_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rank-0.beff");
    let mut lane = LaneFixture::new(0, PAYLOAD_BYTES);
    lane.event(5, &Event::Comm { id: 0, ranks: vec![1] });
    let (live, closed) = (lane.block(BlockKind::Live), lane.block(BlockKind::Closed));
    write(&path, &head(RecordingStatus::Truncated), &[live, closed, vec![0; BLOCK_BYTES]]);
    let file = ProcessFile::open(&path).unwrap();
    assert_eq!(file.events().count(), 1);
    assert_eq!(file.head().end, RecordingStatus::Truncated);
}

#[test]
fn a_very_long_command_line_is_cut_not_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rank-0.beff");
    let mut head = head(RecordingStatus::Complete);
    head.command = vec!["é".repeat(20_000); 40];
    head.library = "é".repeat(40_000);
    write(&path, &head, &[]);
    let file = ProcessFile::open(&path).unwrap();
    assert!(file.head().library.len() <= 16_384);
    assert_eq!(file.head().rank, 3);
}
