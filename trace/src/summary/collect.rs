//! The calls, one behind the other, into sums. Memory grows with the files, functions and open requests, not with the calls.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::model::Pattern;
use super::pattern::Follower;
use super::sizes::SizeCounter;
use crate::layout::Layouts;
use crate::places::{Placed, Tracker};
use crate::{Call, Direction, ErrorClass, Form, Function, Head, Role};

/// Requests of a rank that are remembered; a program that never completes more is told nothing about the rest.
const PENDING_LIMIT: usize = 1 << 20;

/// A function on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub file: Option<u32>,
    pub function: Function,
    pub large: bool,
}

/// What is known of a function on a file.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub key: Key,
    pub calls: u64,
    pub bytes: u64,
    pub ns: u64,
    pub longest_ns: u64,
    pub sizes: SizeCounter,
    pub errors: BTreeMap<&'static str, u64>,
    pub short: u64,
    pub ranks: u64,
    /// The rank with most time in it.
    pub slowest: Share,
    /// The rank of now.
    now: Share,
}

/// The part of a rank.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Share {
    pub rank: u32,
    pub ns: u64,
    pub calls: u64,
}

/// What is known of a file besides its functions.
#[derive(Clone, Debug, Default)]
pub(super) struct FileState {
    pub reads: Pattern,
    pub writes: Pattern,
    pub ranks: u64,
    /// Infos asked and granted.
    pub infos: BTreeSet<(u32, Option<u32>)>,
    seen_now: bool,
}

struct Pending {
    row: usize,
    asked_bytes: Option<u64>,
}

/// What is known of the rank whose calls are read.
#[derive(Default)]
struct Now {
    rank: u32,
    io_ns: u64,
    handles: HashMap<u32, Option<u32>>,
    followers: HashMap<(u32, Direction), Follower>,
    pending: HashMap<u64, Pending>,
    /// Rows and files that have something of this rank.
    rows: Vec<usize>,
    files: Vec<u32>,
}

/// The sums.
#[derive(Default)]
pub(super) struct Sums {
    rows: Vec<Row>,
    index: HashMap<Key, usize>,
    pub files: BTreeMap<u32, FileState>,
    pub calls: u64,
    pub data_calls: u64,
    pub io_ns: u64,
    pub slowest: Option<(u32, u64)>,
    pub last_end_ns: u64,
    /// Of each rank: its calls and the end of the last one.
    pub of_ranks: Vec<(u64, u64)>,
    pub unknown_bytes_calls: u64,
    pub never_completed: u64,
    pub polls: u64,
}

/// Makes the sums.
pub(super) struct Collector<'a> {
    layouts: Option<&'a Layouts>,
    tracker: Option<Tracker<'a>>,
    now: Now,
    sums: Sums,
}

impl<'a> Collector<'a> {
    /// Without layouts nothing is said about sizes by type, nor about places.
    pub(super) fn new(head: &Head, layouts: Option<&'a Layouts>) -> Self {
        let sums = Sums { of_ranks: vec![(0, 0); head.processes.len()], ..Sums::default() };
        Self { layouts, tracker: layouts.map(Tracker::new), now: Now::default(), sums }
    }

    /// The next call; those of a rank come together.
    pub(super) fn call(&mut self, rank: u32, call: &Call) {
        if rank != self.now.rank {
            self.end_rank();
            self.now.rank = rank;
        }
        let ns = call.end_ns - call.begin_ns;
        self.sums.calls += 1;
        self.sums.polls = self.sums.polls.saturating_add(call.polls);
        self.sums.last_end_ns = self.sums.last_end_ns.max(call.end_ns);
        if let Some(of_rank) = self.sums.of_ranks.get_mut(rank as usize) {
            *of_rank = (of_rank.0 + 1, of_rank.1.max(call.end_ns));
        }
        let role = call.function.role();
        let file = self.file(call);
        let row = self.row(Key { file, function: call.function, large: call.large });
        self.now.io_ns += if role == Role::Program { 0 } else { ns };
        let row_number = row;
        let row = &mut self.sums.rows[row_number];
        if row.now.calls == 0 {
            self.now.rows.push(row_number);
        }
        row.calls += 1;
        row.ns = row.ns.saturating_add(ns);
        row.longest_ns = row.longest_ns.max(ns);
        row.now = Share { rank, ns: row.now.ns.saturating_add(ns), calls: row.now.calls + 1 };
        if let Some(error) = call.error {
            *row.errors.entry(error.name()).or_default() += 1;
        }
        self.touch(file, call);
        let placed = self.tracker.as_mut().map(|tracker| tracker.place(call));
        match role {
            Role::Data { form, direction, .. } => self.data(call, (form, direction), row_number, placed),
            Role::Request => self.requests(call),
            Role::File { .. } | Role::Program => {}
        }
    }

    /// The file that a call is about.
    fn file(&mut self, call: &Call) -> Option<u32> {
        match call.function.role() {
            Role::Request => {
                let mut all = call.completions.iter().map(|done| done.request).chain(call.requests.iter().copied());
                all.find_map(|request| self.now.pending.get(&request))
                    .and_then(|pending| self.sums.rows[pending.row].key.file)
            }
            _ => {
                let handle = call.handle;
                if let (Function::Open, Some(handle), None) = (call.function, handle, call.error) {
                    self.now.handles.insert(handle, call.file);
                }
                let of_handle = handle.and_then(|handle| self.now.handles.get(&handle).copied().flatten());
                if let (Function::Close, Some(handle)) = (call.function, handle) {
                    self.now.handles.remove(&handle);
                }
                call.file.or(of_handle)
            }
        }
    }

    fn row(&mut self, key: Key) -> usize {
        let rows = &mut self.sums.rows;
        *self.sums.index.entry(key).or_insert_with(|| {
            rows.push(Row {
                key,
                calls: 0,
                bytes: 0,
                ns: 0,
                longest_ns: 0,
                sizes: SizeCounter::default(),
                errors: BTreeMap::new(),
                short: 0,
                ranks: 0,
                slowest: Share::default(),
                now: Share::default(),
            });
            rows.len() - 1
        })
    }

    fn touch(&mut self, file: Option<u32>, call: &Call) {
        let Some(file) = file else { return };
        let state = self.sums.files.entry(file).or_default();
        if !std::mem::replace(&mut state.seen_now, true) {
            state.ranks += 1;
            self.now.files.push(file);
        }
        if let Some(asked) = call.info {
            state.infos.insert((asked, call.granted));
        }
    }

    fn data(&mut self, call: &Call, (form, direction): (Form, Direction), row_number: usize, placed: Option<Placed>) {
        let elements = call.count.and_then(|count| u64::try_from(count).ok());
        let by_type = self.layouts.zip(call.datatype).and_then(|(layouts, of)| elements?.checked_mul(layouts.size(of)));
        let asked_bytes = match placed {
            Some(Placed::Ends(access)) => Some(access.asked_bytes),
            _ => by_type,
        };
        let row = &mut self.sums.rows[row_number];
        self.sums.data_calls += u64::from(form != Form::End);
        if let Some(size) = asked_bytes.or(call.bytes).filter(|_| form != Form::End) {
            row.sizes.add(size);
        }
        if let Some(bytes) = call.bytes {
            row.bytes = row.bytes.saturating_add(bytes);
            row.short += u64::from(call.error.is_none() && asked_bytes.is_some_and(|asked| bytes < asked));
        } else if call.error.is_none() && matches!(form, Form::Blocking | Form::End) {
            self.sums.unknown_bytes_calls += 1;
        }
        if let (Form::Nonblocking, Some(request)) = (form, call.request) {
            if self.now.pending.len() < PENDING_LIMIT {
                self.now.pending.insert(request, Pending { row: row_number, asked_bytes });
            }
        }
        if form != Form::End && call.error.is_none() {
            self.place(placed, direction, self.sums.rows[row_number].key.file);
        }
    }

    fn place(&mut self, placed: Option<Placed>, direction: Direction, file: Option<u32>) {
        let Some(file) = file else { return };
        let follower = self.now.followers.entry((file, direction)).or_default();
        let (Some(Placed::Data(access)), Some(layouts)) = (placed, self.layouts) else {
            return follower.unknown();
        };
        match access.extents(layouts).next() {
            Some(first) if first.bytes < access.bytes => follower.pieces(first.at, access.hull(layouts).end),
            Some(first) => follower.run(first.at, first.at.saturating_add_unsigned(first.bytes)),
            // No bytes: it is where the last one was, wherever that is.
            None => follower.pattern.sequential += 1,
        }
    }

    fn requests(&mut self, call: &Call) {
        for done in &call.completions {
            if let Some(tracker) = &mut self.tracker {
                tracker.completed(done);
            }
            let Some(pending) = self.now.pending.remove(&done.request) else { continue };
            let row = &mut self.sums.rows[pending.row];
            if let Some(error) = done.error {
                *row.errors.entry(ErrorClass::name(error)).or_default() += 1;
            }
            match done.bytes {
                Some(bytes) => {
                    row.bytes = row.bytes.saturating_add(bytes);
                    row.short +=
                        u64::from(done.error.is_none() && pending.asked_bytes.is_some_and(|asked| bytes < asked));
                }
                None => self.sums.unknown_bytes_calls += u64::from(done.error.is_none()),
            }
        }
        if call.function == Function::RequestFree && call.error.is_none() {
            for request in &call.requests {
                if let Some(tracker) = &mut self.tracker {
                    tracker.forget(*request);
                }
                self.sums.never_completed += u64::from(self.now.pending.remove(request).is_some());
            }
        }
    }

    fn end_rank(&mut self) {
        let now = std::mem::take(&mut self.now);
        self.tracker = self.layouts.map(Tracker::new);
        let sums = &mut self.sums;
        sums.never_completed += now.pending.len() as u64;
        sums.io_ns = sums.io_ns.saturating_add(now.io_ns);
        if now.io_ns > 0 && sums.slowest.is_none_or(|(_, ns)| now.io_ns > ns) {
            sums.slowest = Some((now.rank, now.io_ns));
        }
        for ((file, direction), follower) in now.followers {
            let state = sums.files.entry(file).or_default();
            match direction {
                Direction::Read => state.reads.add(follower.pattern),
                Direction::Write => state.writes.add(follower.pattern),
            }
        }
        for file in now.files {
            sums.files.entry(file).or_default().seen_now = false;
        }
        for number in now.rows {
            let row = &mut sums.rows[number];
            let part = std::mem::take(&mut row.now);
            row.ranks += 1;
            if row.slowest.calls == 0 || part.ns > row.slowest.ns {
                row.slowest = part;
            }
        }
    }

    /// The sums and the rows, when all calls are read.
    pub(super) fn finish(mut self) -> (Sums, Vec<Row>) {
        self.end_rank();
        let rows = std::mem::take(&mut self.sums.rows);
        (self.sums, rows)
    }
}
