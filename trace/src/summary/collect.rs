//! Accumulates totals over the calls. Memory grows with the files, functions and open requests, not with the calls.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::analysis::{Analysis, AnalysisTotals};
use super::charts::ProfileCharts;
use super::model::PatternCounts;
use super::pattern::PatternDetector;
use super::sizes::SizeCounter;
use crate::access::{AccessTracker, CallEffect};
use crate::layout::TypeLayouts;
use crate::{AccessForm, Call, Direction, ErrorClass, Function, ProfileHead, Role};

/// Maximum number of pending requests per rank; further ones are not tracked.
const MAX_PENDING: usize = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FunctionKey {
    pub file: Option<u32>,
    pub function: Function,
    pub large: bool,
}

#[derive(Clone, Debug)]
pub(super) struct FunctionTotals {
    pub key: FunctionKey,
    pub calls: u64,
    pub bytes: u64,
    pub ns: u64,
    pub longest_ns: u64,
    pub size_counter: SizeCounter,
    pub errors: BTreeMap<&'static str, u64>,
    pub short: u64,
    pub ranks: u64,
    /// The rank with the most time in it.
    pub slowest: RankShare,
    current: RankShare,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RankShare {
    pub rank: u32,
    pub ns: u64,
    pub calls: u64,
}

/// State of a file besides its functions.
#[derive(Clone, Debug, Default)]
pub(super) struct FileTotals {
    pub reads: PatternCounts,
    pub writes: PatternCounts,
    pub ranks: u64,
    /// Infos requested and in use.
    pub infos: BTreeSet<(u32, Option<u32>)>,
    is_current: bool,
}

struct RequestedAccess {
    row: usize,
    requested_bytes: Option<u64>,
}

/// State of the rank whose calls are read.
#[derive(Default)]
struct CurrentRank {
    rank: u32,
    io_ns: u64,
    handles: HashMap<u32, Option<u32>>,
    detectors: HashMap<(u32, Direction), PatternDetector>,
    pending: HashMap<u64, RequestedAccess>,
    /// Rows and files with calls of this rank.
    rows: Vec<usize>,
    files: Vec<u32>,
}

#[derive(Default)]
pub(super) struct ProfileTotals {
    rows: Vec<FunctionTotals>,
    index: HashMap<FunctionKey, usize>,
    pub files: BTreeMap<u32, FileTotals>,
    pub calls: u64,
    pub data_calls: u64,
    pub io_ns: u64,
    pub slowest: Option<(u32, u64)>,
    pub last_end_ns: u64,
    /// Per rank: number of calls and end of the last one.
    pub rank_totals: Vec<(u64, u64)>,
    pub unknown_bytes_calls: u64,
    pub never_completed: u64,
    pub polls: u64,
    /// Of each function on all files: its ranks, and the one with the most time in it.
    pub function_ranks: HashMap<(Function, bool), (u64, RankShare)>,
}

pub(super) struct SummaryCollector<'a> {
    layouts: Option<&'a TypeLayouts>,
    analysis: Option<Analysis<'a>>,
    charts: Option<ProfileCharts>,
    tracker: Option<AccessTracker<'a>>,
    current: CurrentRank,
    totals: ProfileTotals,
}

impl<'a> SummaryCollector<'a> {
    /// Without layouts, sizes by type and positions are unknown.
    pub(super) fn new(head: &'a ProfileHead, layouts: Option<&'a TypeLayouts>, has_charts: bool) -> Self {
        let totals = ProfileTotals { rank_totals: vec![(0, 0); head.processes.len()], ..ProfileTotals::default() };
        Self {
            layouts,
            analysis: layouts.map(|layouts| Analysis::new(head, layouts)),
            charts: has_charts.then(|| ProfileCharts::new(head.processes.len())),
            tracker: layouts.map(AccessTracker::new),
            current: CurrentRank::default(),
            totals,
        }
    }

    /// Adds the next call; calls of a rank are consecutive.
    pub(super) fn call(&mut self, rank: u32, call: &Call) {
        if rank != self.current.rank {
            self.end_rank();
            self.current.rank = rank;
        }
        let ns = call.end_ns - call.begin_ns;
        self.totals.calls += 1;
        self.totals.polls = self.totals.polls.saturating_add(call.polls);
        self.totals.last_end_ns = self.totals.last_end_ns.max(call.end_ns);
        if let Some(of_rank) = self.totals.rank_totals.get_mut(rank as usize) {
            *of_rank = (of_rank.0 + 1, of_rank.1.max(call.end_ns));
        }
        let role = call.function.role();
        let file = self.file(call);
        let row = self.row(FunctionKey { file, function: call.function, large: call.large_count });
        self.current.io_ns += if role == Role::Program { 0 } else { ns };
        let row_number = row;
        let row = &mut self.totals.rows[row_number];
        if row.current.calls == 0 {
            self.current.rows.push(row_number);
        }
        row.calls += 1;
        row.ns = row.ns.saturating_add(ns);
        row.longest_ns = row.longest_ns.max(ns);
        row.current = RankShare { rank, ns: row.current.ns.saturating_add(ns), calls: row.current.calls + 1 };
        if let Some(error) = call.error {
            *row.errors.entry(error.name()).or_default() += 1;
        }
        self.record_file_use(file, call);
        let placed = self.tracker.as_mut().map(|tracker| tracker.resolve(call));
        if let (Some(analysis), Some(effect)) = (&mut self.analysis, placed) {
            analysis.call(rank, call, file, u32::try_from(row_number).unwrap_or(u32::MAX), effect);
        }
        if let Some(charts) = &mut self.charts {
            charts.call(rank, call, file, placed.zip(self.layouts));
        }
        match role {
            Role::Data { form, direction, .. } => self.record_data(call, (form, direction), row_number, placed),
            Role::Request => self.record_completions(call),
            Role::File { .. } | Role::Program | Role::Posix => {}
        }
    }

    fn file(&mut self, call: &Call) -> Option<u32> {
        match call.function.role() {
            Role::Request => {
                let mut all = call.completions.iter().map(|done| done.request).chain(call.requests.iter().copied());
                all.find_map(|request| self.current.pending.get(&request))
                    .and_then(|pending| self.totals.rows[pending.row].key.file)
            }
            _ => {
                let handle = call.handle;
                if let (Function::Open, Some(handle), None) = (call.function, handle, call.error) {
                    self.current.handles.insert(handle, call.file);
                }
                let of_handle = handle.and_then(|handle| self.current.handles.get(&handle).copied().flatten());
                if let (Function::Close, Some(handle)) = (call.function, handle) {
                    self.current.handles.remove(&handle);
                }
                call.file.or(of_handle)
            }
        }
    }

    fn row(&mut self, key: FunctionKey) -> usize {
        let rows = &mut self.totals.rows;
        *self.totals.index.entry(key).or_insert_with(|| {
            rows.push(FunctionTotals {
                key,
                calls: 0,
                bytes: 0,
                ns: 0,
                longest_ns: 0,
                size_counter: SizeCounter::default(),
                errors: BTreeMap::new(),
                short: 0,
                ranks: 0,
                slowest: RankShare::default(),
                current: RankShare::default(),
            });
            rows.len() - 1
        })
    }

    fn record_file_use(&mut self, file: Option<u32>, call: &Call) {
        let Some(file) = file else { return };
        let state = self.totals.files.entry(file).or_default();
        if !std::mem::replace(&mut state.is_current, true) {
            state.ranks += 1;
            self.current.files.push(file);
        }
        if let Some(asked) = call.info {
            state.infos.insert((asked, call.granted));
        }
    }

    fn record_data(
        &mut self,
        call: &Call,
        (form, direction): (AccessForm, Direction),
        row_number: usize,
        placed: Option<CallEffect>,
    ) {
        let elements = call.count.and_then(|count| u64::try_from(count).ok());
        let by_type = self.layouts.zip(call.datatype).and_then(|(layouts, of)| elements?.checked_mul(layouts.size(of)));
        let asked_bytes = match placed {
            Some(CallEffect::SplitEnd(access)) => Some(access.requested_bytes),
            _ => by_type,
        };
        let row = &mut self.totals.rows[row_number];
        self.totals.data_calls += u64::from(form != AccessForm::End);
        if let Some(size) = asked_bytes.or(call.bytes).filter(|_| form != AccessForm::End) {
            row.size_counter.add(size);
        }
        if let Some(bytes) = call.bytes {
            row.bytes = row.bytes.saturating_add(bytes);
            row.short += u64::from(call.error.is_none() && asked_bytes.is_some_and(|asked| bytes < asked));
        } else if call.error.is_none() && matches!(form, AccessForm::Blocking | AccessForm::End) {
            self.totals.unknown_bytes_calls += 1;
        }
        if let (AccessForm::Nonblocking, Some(request)) = (form, call.request) {
            if self.current.pending.len() < MAX_PENDING {
                self.current.pending.insert(request, RequestedAccess { row: row_number, requested_bytes: asked_bytes });
            }
        }
        if form != AccessForm::End && call.error.is_none() {
            self.record_pattern(placed, direction, self.totals.rows[row_number].key.file);
        }
    }

    fn record_pattern(&mut self, placed: Option<CallEffect>, direction: Direction, file: Option<u32>) {
        let Some(file) = file else { return };
        let follower = self.current.detectors.entry((file, direction)).or_default();
        let (Some(CallEffect::Access(access)), Some(layouts)) = (placed, self.layouts) else {
            return follower.add_unplaced();
        };
        match access.file_ranges(layouts).next() {
            Some(first) if first.bytes < access.bytes => follower.add_noncontiguous(first.at, access.hull(layouts).end),
            Some(first) => follower.add_contiguous(first.at, first.at.saturating_add_unsigned(first.bytes)),
            // Without bytes it continues at the last access, wherever that is.
            None => follower.pattern.sequential += 1,
        }
    }

    fn record_completions(&mut self, call: &Call) {
        for done in &call.completions {
            if let Some(tracker) = &mut self.tracker {
                tracker.complete(done);
            }
            let Some(pending) = self.current.pending.remove(&done.request) else { continue };
            let row = &mut self.totals.rows[pending.row];
            if let Some(error) = done.error {
                *row.errors.entry(ErrorClass::name(error)).or_default() += 1;
            }
            match done.bytes {
                Some(bytes) => {
                    row.bytes = row.bytes.saturating_add(bytes);
                    row.short +=
                        u64::from(done.error.is_none() && pending.requested_bytes.is_some_and(|asked| bytes < asked));
                }
                None => self.totals.unknown_bytes_calls += u64::from(done.error.is_none()),
            }
        }
        if call.function == Function::RequestFree && call.error.is_none() {
            for request in &call.requests {
                if let Some(tracker) = &mut self.tracker {
                    tracker.forget(*request);
                }
                self.totals.never_completed += u64::from(self.current.pending.remove(request).is_some());
            }
        }
    }

    fn end_rank(&mut self) {
        let now = std::mem::take(&mut self.current);
        self.tracker = self.layouts.map(AccessTracker::new);
        let sums = &mut self.totals;
        sums.never_completed += now.pending.len() as u64;
        sums.io_ns = sums.io_ns.saturating_add(now.io_ns);
        if now.io_ns > 0 && sums.slowest.is_none_or(|(_, ns)| now.io_ns > ns) {
            sums.slowest = Some((now.rank, now.io_ns));
        }
        for ((file, direction), follower) in now.detectors {
            let state = sums.files.entry(file).or_default();
            match direction {
                Direction::Read => state.reads.add(follower.pattern),
                Direction::Write => state.writes.add(follower.pattern),
            }
        }
        for file in now.files {
            sums.files.entry(file).or_default().is_current = false;
        }
        if let Some(analysis) = &mut self.analysis {
            analysis.end_rank();
        }
        let mut of_functions: HashMap<(Function, bool), RankShare> = HashMap::new();
        for number in now.rows {
            let row = &mut sums.rows[number];
            let part = std::mem::take(&mut row.current);
            let of_function = of_functions.entry((row.key.function, row.key.large)).or_default();
            *of_function = RankShare {
                rank: now.rank,
                ns: of_function.ns.saturating_add(part.ns),
                calls: of_function.calls + part.calls,
            };
            row.ranks += 1;
            if row.slowest.calls == 0 || part.ns > row.slowest.ns {
                row.slowest = part;
            }
        }
        for (key, part) in of_functions {
            let (ranks, slowest) = sums.function_ranks.entry(key).or_default();
            *ranks += 1;
            if slowest.calls == 0 || part.ns > slowest.ns {
                *slowest = part;
            }
        }
    }

    /// Returns the charts, empty ones if they were not requested.
    pub(super) fn take_charts(&mut self) -> ProfileCharts {
        self.charts.take().unwrap_or_else(|| ProfileCharts::new(1))
    }

    /// Returns the totals, the rows and the analysis after the last call.
    pub(super) fn finish(mut self) -> (ProfileTotals, Vec<FunctionTotals>, Option<AnalysisTotals>) {
        self.end_rank();
        let rows = std::mem::take(&mut self.totals.rows);
        (self.totals, rows, self.analysis.map(Analysis::finish))
    }
}
