//! Arbitrary profiles for tests.

use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;

use super::keys::{self, Key};
use crate::types::Distribution;
use crate::{
    Amode, ArrayOrder, Call, CallId, Completion, DataOrigin, Datatype, ErrorClass, Function, OpenedFile, OriginRange,
    Process, ProfileHead, Whence,
};

/// A head and the calls of each rank.
pub(super) type SampleProfile = (ProfileHead, Vec<Vec<Call>>);

const NATURAL: std::ops::RangeInclusive<u64> = 0..=(i64::MAX as u64);

fn any_word() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z/._=,\" \\\\#\n\r;-]{0,12}", any::<String>()]
}

fn numbers() -> impl Strategy<Value = Vec<u64>> {
    vec(NATURAL, 3)
}

fn displacements() -> impl Strategy<Value = Vec<i64>> {
    vec(any::<i64>(), 3)
}

/// A type after `n` others.
fn datatype(n: u32) -> BoxedStrategy<Datatype> {
    let named = (
        prop_oneof![select(vec!["INT", "DOUBLE_INT", "F90_REAL(6,30)", "named"]).prop_map(str::to_owned), any_word()],
        NATURAL,
        any::<i64>(),
    )
        .prop_map(|(name, size_bytes, extent_bytes)| Datatype::Named {
            name: name.trim().to_owned(),
            size_bytes,
            extent_bytes,
        });
    if n == 0 {
        return named.boxed();
    }
    let order = select(vec![ArrayOrder::C, ArrayOrder::Fortran]);
    let distribution = select(vec![Distribution::None, Distribution::Block, Distribution::Cyclic]);
    prop_oneof![
        named,
        (NATURAL, 0..n).prop_map(|(count, of)| Datatype::Contiguous { count, of }),
        (NATURAL, NATURAL, any::<i64>(), 0..n).prop_map(|(count, block, stride, of)| Datatype::Vector {
            count,
            block,
            stride,
            of
        }),
        (NATURAL, NATURAL, any::<i64>(), 0..n).prop_map(|(count, block, stride_bytes, of)| Datatype::Hvector {
            count,
            block,
            stride_bytes,
            of
        }),
        (numbers(), displacements(), 0..n).prop_map(|(blocks, displacements, of)| Datatype::Indexed {
            blocks,
            displacements,
            of
        }),
        (numbers(), displacements(), 0..n).prop_map(|(blocks, displacements_bytes, of)| Datatype::Hindexed {
            blocks,
            displacements_bytes,
            of
        }),
        (NATURAL, displacements(), 0..n).prop_map(|(block, displacements, of)| Datatype::IndexedBlock {
            block,
            displacements,
            of
        }),
        (NATURAL, vec(any::<i64>(), 0..3), 0..n).prop_map(|(block, displacements_bytes, of)| Datatype::HindexedBlock {
            block,
            displacements_bytes,
            of
        }),
        (numbers(), displacements(), vec(0..n, 3)).prop_map(|(blocks, displacements_bytes, of)| Datatype::Struct {
            blocks,
            displacements_bytes,
            of
        }),
        (vec((0..1000_u64, 0..1000_u64, 0..1000_u64), 0..4), order.clone(), 0..n).prop_map(|(dims, order, of)| {
            Datatype::Subarray {
                sizes: dims.iter().map(|d| d.0 + d.1 + d.2).collect(),
                subsizes: dims.iter().map(|d| d.1).collect(),
                starts: dims.iter().map(|d| d.2).collect(),
                order,
                of,
            }
        }),
        (vec((1..9_u64, NATURAL, distribution, of(NATURAL)), 1..4), order, 0..n).prop_map(|(dims, order, of)| {
            let ranks = dims.iter().map(|d| d.0).product();
            Datatype::Darray {
                ranks,
                rank: ranks - 1,
                sizes: dims.iter().map(|d| d.1).collect(),
                distributions: dims.iter().map(|d| d.2).collect(),
                arguments: dims.iter().map(|d| d.3).collect(),
                grid: dims.iter().map(|d| d.0).collect(),
                order,
                of,
            }
        }),
        (any::<i64>(), any::<i64>(), 0..n).prop_map(|(lower_bound_bytes, extent_bytes, of)| Datatype::Resized {
            lower_bound_bytes,
            extent_bytes,
            of
        }),
    ]
    .boxed()
}

fn process() -> impl Strategy<Value = Process> {
    let end = select(vec![
        crate::RecordingStatus::Complete,
        crate::RecordingStatus::Aborted,
        crate::RecordingStatus::Truncated,
        crate::RecordingStatus::LimitReached,
    ]);
    (any_word(), any::<u32>(), any::<[i64; 2]>(), end, of((NATURAL, NATURAL))).prop_map(
        |(host, pid, clock_offset_ns, end, storage)| Process {
            host,
            pid,
            clock_offset_ns,
            end,
            calls: 0,
            storage_bytes: storage.map(|(read, written)| [read, written]),
        },
    )
}

fn head() -> impl Strategy<Value = ProfileHead> {
    let types = (datatype(0), datatype(1), datatype(2), datatype(3)).prop_map(|t| vec![t.0, t.1, t.2, t.3]);
    let file = (any_word(), of(NATURAL), any_word(), of(NATURAL), of(NATURAL)).prop_map(
        |(path, size_bytes, fs_type, made_ns, gone_ns)| OpenedFile {
            path,
            size_bytes,
            fs_type,
            created_ns: made_ns,
            removed_ns: gone_ns,
        },
    );
    let program = (any_word(), vec(any_word(), 0..4), NATURAL, of(0.0..1e9_f64));
    let rest =
        (vec(process(), 1..9), types, vec(vec((any_word(), any_word()), 0..4), 1..4), vec(file, 1..4), any::<u64>());
    (program, rest).prop_map(
        |((library, command, started_unix_ns, cost_ns), (processes, types, infos, files, seed))| {
            let ranks = u32::try_from(processes.len()).unwrap();
            let turn = u32::try_from(seed % u64::from(ranks)).unwrap();
            let comms = vec![(0..ranks).collect(), (0..ranks).map(|r| (r + turn) % ranks).rev().collect(), vec![turn]];
            ProfileHead { library, command, started_unix_ns, cost_ns, processes, comms, types, infos, files }
        },
    )
}

fn origin(ranks: u32) -> impl Strategy<Value = OriginRange> {
    let call = (0..ranks, NATURAL, any::<i64>()).prop_map(|(rank, begin_ns, memory)| DataOrigin::Call {
        rank,
        begin_ns,
        memory,
    });
    let content = prop_oneof![call, Just(DataOrigin::File), Just(DataOrigin::Hole), Just(DataOrigin::Unknown)];
    (NATURAL, content).prop_map(|(bytes, content)| OriginRange { bytes, origin: content })
}

/// A call with some of the keys that its function allows. Begin and end are distances.
fn call(head: &ProfileHead) -> impl Strategy<Value = Call> {
    let ranks = u32::try_from(head.processes.len()).unwrap();
    let length = |n: usize| 0..u32::try_from(n).unwrap();
    let error = || select(ErrorClass::all().collect::<Vec<_>>());
    let function = (select(Function::all().collect::<Vec<_>>()), any::<bool>(), any::<u32>(), of(error()));
    let indices = (
        length(head.files.len()),
        length(head.types.len()),
        length(head.comms.len()),
        length(head.infos.len()),
        1..=u32::MAX,
    );
    let values = (
        any_word(),
        any::<i64>(),
        any::<i64>(),
        0..512_u16,
        select(vec![Whence::Set, Whence::Current, Whence::End]),
        any::<bool>(),
    );
    let done =
        (NATURAL, of(NATURAL), of(error())).prop_map(|(request, bytes, error)| Completion { request, bytes, error });
    let after = (0..ranks, NATURAL).prop_map(|(rank, begin_ns)| CallId { rank, begin_ns });
    let lists = (vec(NATURAL, 0..4), vec(done, 0..4), NATURAL, vec(after, 0..4), vec(origin(ranks), 0..4));
    ((1..1000_u64, 0..9000_u64, any::<u32>()), function, indices, values, lists).prop_map(
        |(times, function, i, v, l)| {
            let (_, allowed) = keys::of(function.0);
            let mut call = Call::new(function.0, times.0, times.1);
            call.error = function.3;
            let has = |key: Key| allowed.has(key) && times.2 & (1 << key as u8) != 0;
            call.large_count = function.1 && function.0.has_large_count_variant();
            call.thread = if has(Key::Thread) { function.2 } else { 0 };
            call.handle = has(Key::Handle).then_some(i.4);
            call.file = has(Key::File).then_some(i.0);
            call.target = has(Key::To).then_some(i.0);
            call.name = has(Key::Name).then_some(v.0);
            call.offset = has(Key::Offset).then_some(v.1);
            call.count = has(Key::Count).then_some(v.2);
            call.datatype = has(Key::Type).then_some(i.1);
            call.etype = has(Key::Etype).then_some(i.1);
            call.filetype = has(Key::Filetype).then_some(i.1);
            call.comm = has(Key::Comm).then_some(i.2);
            call.amode = has(Key::Mode).then_some(Amode(v.3));
            call.info = has(Key::Info).then_some(i.3);
            call.granted = has(Key::Granted).then_some(i.3);
            call.whence = has(Key::Whence).then_some(v.4);
            call.flag = has(Key::Flag).then_some(v.5);
            call.number = has(Key::Number).then_some(v.2);
            call.buffer = has(Key::Buffer).then_some(v.1);
            call.bytes = has(Key::Bytes).then_some(l.2);
            call.request = has(Key::Request).then_some(l.2);
            call.requests = if has(Key::Requests) { l.0 } else { Vec::new() };
            call.completions = if has(Key::Done) { l.1 } else { Vec::new() };
            call.polls = if has(Key::Polls) { l.2 } else { 0 };
            call.after = if has(Key::After) { l.3 } else { Vec::new() };
            call.since_barrier_ns = has(Key::Met).then_some(l.2);
            call.from = if has(Key::From) { l.4 } else { Vec::new() };
            call
        },
    )
}

pub(super) fn profiles() -> impl Strategy<Value = SampleProfile> {
    head().prop_flat_map(|head| {
        let ranks = head.processes.len();
        (vec(vec(call(&head), 0..12), ranks), Just(head), any::<bool>()).prop_map(|(mut calls, mut head, said)| {
            for (rank, calls) in calls.iter_mut().enumerate() {
                let mut now = 0;
                for call in calls.iter_mut() {
                    now += call.begin_ns;
                    call.begin_ns = now;
                    call.end_ns += now;
                }
                head.processes[rank].calls = if said { calls.len() as u64 } else { 0 };
            }
            (head, calls)
        })
    })
}
