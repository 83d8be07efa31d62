//! Order and origin in random programs, compared with a slow model that compares all pairs of calls byte by byte.
use std::collections::HashMap;

use proptest::prelude::*;

use super::{merged, types};
use crate::merge::MergeOptions;
use crate::{Amode, Call, CallId, Completion, DataOrigin, Function, TypeLayouts};

const RANKS: u32 = 3;

#[derive(Clone, Debug)]
enum ModelOperation {
    Access { writes: bool, blocking: bool, offset: i64, count: i64, memory: u32, short: u64 },
    Wait,
}

fn op() -> impl Strategy<Value = (usize, ModelOperation, u64, u64)> {
    let access = (
        any::<bool>(),
        prop::bool::weighted(0.7),
        0_i64..30,
        0_i64..4,
        0..4_u32,
        prop_oneof![3 => Just(0_u64), 1 => 0..5_u64],
    );
    let access = access.prop_map(|(writes, blocking, offset, count, memory, short)| ModelOperation::Access {
        writes,
        blocking,
        offset,
        count,
        memory,
        short,
    });
    (0..RANKS as usize, prop_oneof![4 => access, 1 => Just(ModelOperation::Wait)], 0_u64..30, 0_u64..30)
}

fn at(time: &mut u64, gap: u64, duration: u64, function: Function) -> Call {
    let begin_ns = *time + gap;
    *time = begin_ns + duration + 1;
    let mut call = Call::new(function, begin_ns, begin_ns + duration);
    call.handle = Some(1);
    call
}

/// Calls of one rank with their accesses.
#[derive(Default)]
struct ModelProgram {
    calls: Vec<Call>,
    accesses: Vec<ModelAccess>,
    time: u64,
    pending: Vec<usize>,
    view: (i64, u32),
}

/// Access in the model; offsets of single bytes, in the order of the data.
#[derive(Clone, Debug)]
struct ModelAccess {
    rank: u32,
    writes: bool,
    begin_ns: u64,
    /// Begin and end of the call that ended it.
    end_call: Option<(u64, u64)>,
    requested_bytes: Vec<i64>,
    moved_bytes: Vec<i64>,
    memory: Vec<i64>,
    /// Libraries differ in the memory of its datatype.
    is_moved: bool,
}

fn bytes(layouts: &TypeLayouts, of: u32, first: u64, bytes: u64, base: i64) -> Vec<i64> {
    layouts.byte_ranges(of, first, bytes, base).flat_map(|e| e.at..e.at + e.bytes as i64).collect()
}

impl ModelProgram {
    fn open(&mut self, rank: u32, gap: u64, view: (i64, u32)) {
        self.time = 100;
        let mut open = at(&mut self.time, gap, 7, Function::Open);
        open.name = Some("ufs:dir/a,\"b\"".to_owned());
        (open.comm, open.amode) = (Some(rank), Some(Amode(2)));
        self.calls.push(open);
        let mut set = at(&mut self.time, 1, 1, Function::SetView);
        (set.offset, set.etype, set.filetype) = (Some(view.0), Some(0), Some(view.1));
        self.calls.push(set);
        self.view = view;
    }

    fn step(&mut self, rank: u32, layouts: &TypeLayouts, op: &ModelOperation, gap: u64, duration: u64) {
        match op {
            ModelOperation::Access { writes, blocking, offset, count, memory, short } => {
                let function = match (writes, blocking) {
                    (true, true) => Function::WriteAt,
                    (true, false) => Function::IwriteAt,
                    (false, true) => Function::ReadAt,
                    (false, false) => Function::IreadAt,
                };
                let mut call = at(&mut self.time, gap, duration, function);
                (call.offset, call.count, call.datatype) = (Some(*offset), Some(*count), Some(*memory));
                let asked = *count as u64 * layouts.size(*memory);
                let moved = if *writes { asked } else { asked.saturating_sub(*short) };
                let all = bytes(layouts, self.view.1, *offset as u64, asked, self.view.0);
                let access = ModelAccess {
                    rank,
                    writes: *writes,
                    begin_ns: call.begin_ns,
                    end_call: blocking.then_some((call.begin_ns, call.end_ns)),
                    moved_bytes: all[..moved as usize].to_vec(),
                    requested_bytes: all,
                    memory: bytes(layouts, *memory, 0, asked, 0),
                    is_moved: layouts.moved_bytes(*memory) > 0,
                };
                if *blocking {
                    call.bytes = Some(moved);
                } else {
                    call.request = Some(self.accesses.len() as u64);
                    self.pending.push(self.accesses.len());
                }
                self.accesses.push(access);
                self.calls.push(call);
            }
            ModelOperation::Wait if !self.pending.is_empty() => {
                let index = self.pending.remove(0);
                let mut call = at(&mut self.time, gap, duration, Function::Wait);
                call.handle = None;
                call.requests = vec![index as u64];
                let access = &mut self.accesses[index];
                access.end_call = Some((call.begin_ns, call.end_ns));
                call.completions = vec![Completion {
                    request: index as u64,
                    bytes: Some(access.moved_bytes.len() as u64),
                    error: None,
                }];
                self.calls.push(call);
            }
            ModelOperation::Wait => {}
        }
    }
}

/// Origin of one byte of a read, from all writes in the order of their begin.
fn content(read: &ModelAccess, place: i64, writes: &[&ModelAccess], base_bytes: i64) -> DataOrigin {
    if read.is_moved {
        return DataOrigin::Unknown;
    }
    let end_ns = read.end_call.unwrap().1;
    // Writer and its end; None if there are several.
    let mut state: Option<(Option<(&ModelAccess, i64)>, u64)> = None;
    let until = |access: &ModelAccess, now: u64| {
        access
            .end_call
            .map_or(u64::MAX, |(call, end)| if call != access.begin_ns && end >= now { u64::MAX } else { end })
    };
    for write in writes.iter().filter(|write| write.begin_ns <= end_ns) {
        let Some(index) = write.requested_bytes.iter().position(|at| *at == place) else { continue };
        let own = if write.end_call.is_some_and(|(call, _)| call == write.begin_ns) {
            write.end_call.unwrap().1
        } else {
            u64::MAX
        };
        // Memory that libraries move is unknown; an unknown nonblocking write ends at an unknown time.
        let this = (!write.is_moved).then(|| (*write, write.memory[index]));
        state = Some(match state {
            Some((known, old)) => {
                let old = known.map_or(old, |(writer, _)| until(writer, write.begin_ns));
                if old >= write.begin_ns {
                    (None, old.max(own))
                } else {
                    (this, own)
                }
            }
            None => (this, own),
        });
    }
    match state {
        None if place < base_bytes => DataOrigin::File,
        None => {
            let begun = writes.iter().filter(|write| write.begin_ns <= end_ns);
            let is_inside = begun.flat_map(|write| &write.requested_bytes).any(|at| *at > place);
            if is_inside {
                DataOrigin::Hole
            } else {
                DataOrigin::Unknown
            }
        }
        Some((Some((write, memory)), _)) if write.end_call.is_some_and(|(_, end)| end < read.begin_ns) => {
            DataOrigin::Call { rank: write.rank, begin_ns: write.begin_ns, memory }
        }
        Some(_) => DataOrigin::Unknown,
    }
}

fn shared(one: &[i64], other: &[i64]) -> bool {
    one.iter().any(|at| other.contains(at))
}

/// Dependencies of a call, before implied ones are removed.
fn before(
    rank: u32,
    begin_ns: u64,
    touches: impl Fn(&ModelAccess) -> bool,
    accesses: &[ModelAccess],
    whole: &[(u32, u64, u64)],
) -> Vec<CallId> {
    let mut latest: HashMap<u32, u64> = HashMap::new();
    let ended =
        accesses.iter().filter(|a| touches(a)).filter_map(|a| a.end_call.map(|(call, end)| (a.rank, call, end)));
    for (peer, call, end) in ended.chain(whole.iter().copied()) {
        if peer != rank && end < begin_ns {
            let known = latest.entry(peer).or_default();
            *known = call.max(*known);
        }
    }
    let mut all: Vec<CallId> = latest.into_iter().map(|(rank, begin_ns)| CallId { rank, begin_ns }).collect();
    all.sort_unstable();
    all
}

fn end_of(places: &[i64]) -> i64 {
    places.iter().max().map_or(0, |last| last + 1)
}

/// Ended calls that an access depends on because of the size: writes on those that found the file shorter, reads of bytes that no call
/// wrote on the writes that made it longer. As (rank, begin, end).
fn size_calls(own: &ModelAccess, is_blocking: bool, accesses: &[ModelAccess], size: i64) -> Vec<(u32, u64, u64)> {
    let mut ended: Vec<_> = accesses
        .iter()
        .filter_map(|a| a.end_call.map(|(call, end)| (end, call, a)))
        .filter(|(end, ..)| *end < own.begin_ns)
        .collect();
    ended.sort_by_key(|(end, call, a)| (*end, *call, a.rank));
    if own.writes {
        let mut seen: HashMap<u32, ((u32, u64, u64), i64)> = HashMap::new();
        for (end, call, a) in ended {
            if a.writes || a.moved_bytes.len() == a.requested_bytes.len() {
                continue;
            }
            let (latest, smallest) = seen.entry(a.rank).or_insert(((a.rank, call, end), i64::MAX));
            *latest = (a.rank, call.max(latest.1), end);
            *smallest = end_of(&a.moved_bytes).min(*smallest);
        }
        return seen.into_values().filter(|(_, bytes)| *bytes < end_of(&own.requested_bytes)).map(|(a, _)| a).collect();
    }
    let read = end_of(if is_blocking { &own.moved_bytes } else { &own.requested_bytes });
    let covers = |a: &ModelAccess| a.writes && a.moved_bytes.contains(&(read - 1));
    if read <= size.max(0) || ended.iter().any(|(.., a)| covers(a)) {
        return Vec::new();
    }
    let mut longest = 0;
    let mut extensions = Vec::new();
    for (end, call, a) in ended.into_iter().filter(|(.., a)| a.writes) {
        if end_of(&a.moved_bytes) > longest {
            longest = end_of(&a.moved_bytes);
            extensions.push((a.rank, call, end));
        }
    }
    extensions
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn order_and_origin_are_those_of_the_slow_model(
        ops in prop::collection::vec(op(), 0..60),
        views in prop::collection::vec((0_i64..8, 0_u32..2), RANKS as usize),
        gaps in prop::collection::vec(0_u64..40, RANKS as usize),
        size in -1_i64..40,
        few in any::<bool>(),
    ) {
        // With low limits less is known, but nothing wrong.
        let options = if few { MergeOptions { max_written_ranges: 8, max_history_ranges: 2 } } else { MergeOptions::default() };
        let layouts = TypeLayouts::new(&types()).unwrap();
        let mut programs: Vec<ModelProgram> = (0..RANKS).map(|_| ModelProgram::default()).collect();
        for (rank, program) in (0..).zip(&mut programs) {
            program.open(rank, gaps[rank as usize], views[rank as usize]);
        }
        // The first to open sees the size; that found by the others would depend on the calls until then.
        let first = (0..RANKS as usize).min_by_key(|rank| (programs[*rank].calls[0].begin_ns, *rank)).unwrap();
        programs[first].calls[0].number = Some(size);
        for (rank, op, gap, duration) in &ops {
            programs[*rank].step(*rank as u32, &layouts, op, *gap, *duration);
        }
        for program in &mut programs {
            let close = at(&mut program.time, 3, 5, Function::Close);
            program.calls.push(close);
        }
        let comms: Vec<Vec<u32>> = (0..RANKS).map(|rank| vec![rank]).collect();
        let raw: Vec<Vec<Call>> = programs.iter().map(|program| program.calls.clone()).collect();
        let (head, found, remarks) = merged(&raw, &comms, |_| {}, &options);
        prop_assert!(few || remarks.is_empty(), "{:?}", remarks);
        prop_assert_eq!(&head.files[0].path, "dir/a,\"b\"");
        prop_assert_eq!(head.files[0].size_bytes, u64::try_from(size).ok());

        let zero = raw.iter().map(|calls| calls[0].begin_ns).min().unwrap();
        let accesses: Vec<ModelAccess> = programs.iter().flat_map(|program| program.accesses.clone()).collect();
        let mut writes: Vec<&ModelAccess> = accesses.iter().filter(|access| access.writes).collect();
        writes.sort_by_key(|access| (access.begin_ns, access.rank));
        let whole: Vec<(u32, u64, u64)> = raw.iter().zip(0..).flat_map(|(calls, rank)| {
            let is_whole = |call: &&Call| matches!(call.function, Function::Open | Function::Close);
            calls.iter().filter(is_whole).map(move |call| (rank, call.begin_ns, call.end_ns)).collect::<Vec<_>>()
        }).collect();
        for (rank, (calls, found)) in (0..).zip(raw.iter().zip(&found)) {
            prop_assert_eq!(calls.len(), found.len());
            let mut waited: HashMap<u32, u64> = HashMap::new();
            for (call, found) in calls.iter().zip(found) {
                prop_assert_eq!((call.begin_ns - zero, call.end_ns - zero, call.function), (found.begin_ns, found.end_ns, found.function));
                let own = accesses.iter().find(|access| (access.rank, access.begin_ns) == (rank, call.begin_ns));
                let mut after = match (own, call.function) {
                    (Some(own), _) => {
                        let touches = |a: &ModelAccess| (a.writes || own.writes) && shared(&a.requested_bytes, &own.requested_bytes);
                        let is_blocking = !matches!(call.function, Function::IreadAt | Function::IwriteAt);
                        let others = [&whole[..], &size_calls(own, is_blocking, &accesses, size)].concat();
                        before(rank, call.begin_ns, touches, &accesses, &others)
                    }
                    (None, Function::Open | Function::Close) => before(rank, call.begin_ns, |_| true, &accesses, &whole),
                    _ => Vec::new(),
                };
                if few {
                    for after in &found.after {
                        let named = raw[after.rank as usize].iter().find(|call| call.begin_ns - zero == after.begin_ns).unwrap();
                        prop_assert!(named.end_ns < call.begin_ns, "{:?} had not ended", after);
                        waited.insert(after.rank, after.begin_ns + zero);
                    }
                    for needed in after {
                        prop_assert!(waited.get(&needed.rank).is_some_and(|begin| *begin >= needed.begin_ns), "{:?} is not waited for", needed);
                    }
                } else {
                after.retain(|after| waited.insert(after.rank, after.begin_ns.max(waited.get(&after.rank).copied().unwrap_or(0))).is_none_or(|old| old < after.begin_ns));
                let shifted: Vec<CallId> = after.iter().map(|a| CallId { begin_ns: a.begin_ns - zero, ..*a }).collect();
                prop_assert_eq!(&found.after, &shifted, "rank {} {:?}", rank, call);
                }

                let expected: Vec<DataOrigin> = own.filter(|own| !own.writes && own.end_call.is_some()).map_or(Vec::new(), |own| {
                    own.moved_bytes.iter().map(|place| content(own, *place, &writes, size)).collect()
                });
                let mut seen = Vec::new();
                for origin in &found.from {
                    seen.extend((0..origin.bytes as i64).map(|n| match origin.origin {
                        DataOrigin::Call { rank, begin_ns, memory } => DataOrigin::Call { rank, begin_ns: begin_ns + zero, memory: memory + n },
                        other => other,
                    }));
                }
                if few {
                    let unsure = seen.iter().zip(&expected).all(|(seen, expected)| *seen == DataOrigin::Unknown || seen == expected);
                    prop_assert!(unsure && seen.len() == expected.len(), "{:?} {:?} {:?}", call, seen, expected);
                } else {
                    prop_assert_eq!(seen, expected, "rank {} {:?}", rank, call);
                }
            }
        }
    }
}
