//! The points at which a rank waits for others: collective calls, and calls that follow a call of another rank.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use beff_trace::{AccessForm, Call, CallId, Function, OpenedFile, Role};
use serde::{Deserialize, Serialize};

use super::collective_counts::{CollectiveCounter, OpeningId};

/// Determines which calls of a rank synchronize with other ranks.
#[derive(Clone, Debug)]
pub struct SynchronizationTracker<'a> {
    comms: &'a [Vec<u32>],
    /// The backend transfers data without MPI: its data accesses are independent.
    by_offsets: bool,
    single_rank_handles: HashSet<u32>,
    collective_requests: HashSet<u64>,
}

impl<'a> SynchronizationTracker<'a> {
    /// State of a rank before its first call. `comms` has the world ranks of each communicator.
    #[must_use]
    pub fn new(comms: &'a [Vec<u32>], by_offsets: bool) -> Self {
        Self { comms, by_offsets, single_rank_handles: HashSet::new(), collective_requests: HashSet::new() }
    }

    /// True if the next call of the rank synchronizes.
    pub fn observe(&mut self, call: &Call) -> bool {
        let ranks = call.comm.and_then(|comm| self.comms.get(comm as usize));
        if call.function == Function::Open && ranks.is_none_or(|ranks| ranks.len() < 2) {
            self.single_rank_handles.extend(call.handle);
        }
        let is_own = call.handle.is_some_and(|handle| self.single_rank_handles.contains(&handle));
        if self.by_offsets {
            use Function::{Close, Open, Preallocate, SetSize, Sync};
            return !is_own && matches!(call.function, Open | Close | SetSize | Preallocate | Sync);
        }
        let completes = call.requests.iter().any(|request| self.collective_requests.contains(request));
        for completion in &call.completions {
            self.collective_requests.remove(&completion.request);
        }
        let is_collective = !is_own && call.function.is_collective();
        if is_collective {
            self.collective_requests.extend(call.request);
        }
        is_collective || completes
    }
}

/// Synchronization of a step with other ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) enum CollectivePhase {
    /// Ends when all ranks have reached this call of the opening.
    Blocking,
    /// Begins only: the others may reach it later.
    Begins,
    /// Ends when all ranks have begun the call of this number.
    Completes(u64),
}

/// A point at which a rank may wait for others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SynchronizationStep {
    /// A collective call.
    Collective(CollectiveStep),
    /// A call that begins after the end of a call of another rank.
    Follows(Dependency),
}

/// The first call of a rank that begins after the end of a call of another rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dependency {
    rank: u32,
    call_ns: u64,
    begin_ns: u64,
}

impl Dependency {
    /// The call of the other rank.
    #[must_use]
    pub fn call(&self) -> CallId {
        CallId { rank: self.rank, begin_ns: self.call_ns }
    }
}

impl SynchronizationStep {
    /// Begin of the call.
    pub(super) fn begin_ns(&self) -> u64 {
        match self {
            Self::Collective(step) => step.begin_ns,
            Self::Follows(dependency) => dependency.begin_ns,
        }
    }
}

/// A collective call of one rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "PackedStep", into = "PackedStep")]
pub struct CollectiveStep {
    pub(super) opening: OpeningId,
    pub(super) way: CollectivePhase,
    function: Function,
    /// Its number among the calls of the rank, from 1.
    number: u64,
    begin_ns: u64,
    handle: u32,
    file: Option<u32>,
}

type PackedStep = (OpeningId, CollectivePhase, u8, [u64; 2], u32, Option<u32>);

impl From<CollectiveStep> for PackedStep {
    fn from(step: CollectiveStep) -> Self {
        (step.opening, step.way, step.function as u8, [step.number, step.begin_ns], step.handle, step.file)
    }
}

impl From<PackedStep> for CollectiveStep {
    fn from((opening, way, function, [number, begin_ns], handle, file): PackedStep) -> Self {
        // Valid, because it was packed from a step.
        let function = Function::from_number(function).unwrap_or(Function::Open);
        Self { opening, way, function, number, begin_ns, handle, file }
    }
}

impl CollectiveStep {
    /// Properties that must be equal on all ranks. Libraries treat the accesses of one direction alike.
    pub(super) fn match_key(&self) -> (u8, Option<u32>) {
        match self.function.role() {
            Role::Data { direction, .. } => (u8::MAX - direction as u8, None),
            _ => (self.function as u8, self.file.filter(|_| self.function == Function::Open)),
        }
    }

    pub(super) fn describe(&self, rank: usize, files: &[OpenedFile]) -> String {
        let file = self
            .file
            .and_then(|file| files.get(file as usize))
            .map_or_else(String::new, |file| format!(", {}", file.path));
        format!("rank {rank}, call {}, {} (handle {}{file})", self.number, self.function.name(), self.handle)
    }
}

/// Derives the steps of one rank from its calls.
#[derive(Debug)]
pub struct SynchronizationStepTracker<'a> {
    synchronization: SynchronizationTracker<'a>,
    counter: CollectiveCounter,
    /// Calls of this backend, by opening.
    calls_by_opening: HashMap<OpeningId, u64>,
    pending_requests: HashMap<u64, (OpeningId, u64, u32)>,
    file_of_handle: HashMap<u32, u32>,
    call_number: u64,
    followed: HashSet<CallId>,
}

impl<'a> SynchronizationStepTracker<'a> {
    /// State of a rank before its first call.
    #[must_use]
    pub fn new(comms: &'a [Vec<u32>], by_offsets: bool) -> Self {
        Self {
            synchronization: SynchronizationTracker::new(comms, by_offsets),
            counter: CollectiveCounter::default(),
            calls_by_opening: HashMap::new(),
            pending_requests: HashMap::new(),
            file_of_handle: HashMap::new(),
            call_number: 0,
            followed: HashSet::new(),
        }
    }

    /// Processes the next call, whether replayed or not, and passes its steps to `put`.
    pub fn observe(&mut self, call: &Call, is_replayed: bool, mut put: impl FnMut(SynchronizationStep)) {
        self.call_number += 1;
        for after in call.after.iter().filter(|_| is_replayed) {
            if self.followed.insert(*after) {
                put(SynchronizationStep::Follows(Dependency {
                    rank: after.rank,
                    call_ns: after.begin_ns,
                    begin_ns: call.begin_ns,
                }));
            }
        }
        let waits = self.synchronization.observe(call);
        for completion in &call.completions {
            let Some((opening, count, handle)) = self.pending_requests.remove(&completion.request) else { continue };
            put(SynchronizationStep::Collective(self.step(call, handle, opening, CollectivePhase::Completes(count))));
        }
        let Some((opening, _)) = self.counter.count_call(call) else { return };
        let Some(handle) = call.handle else { return };
        if let Some(file) = call.file {
            self.file_of_handle.insert(handle, file);
        }
        if !is_replayed || !waits {
            return;
        }
        let form = match call.function.role() {
            Role::Data { form, .. } => form,
            _ => AccessForm::Blocking,
        };
        // The library may execute a split access completely in its first half.
        if form == AccessForm::End {
            return;
        }
        let count = self.calls_by_opening.entry(opening).or_default();
        *count += 1;
        let way = match (form, call.request) {
            (AccessForm::Nonblocking, Some(request)) => {
                self.pending_requests.insert(request, (opening, *count, handle));
                CollectivePhase::Begins
            }
            (AccessForm::Nonblocking, None) => CollectivePhase::Begins,
            _ => CollectivePhase::Blocking,
        };
        put(SynchronizationStep::Collective(self.step(call, handle, opening, way)));
    }

    fn step(&self, call: &Call, handle: u32, opening: OpeningId, way: CollectivePhase) -> CollectiveStep {
        let file = self.file_of_handle.get(&handle).copied();
        let (function, begin_ns) = (call.function, call.begin_ns);
        CollectiveStep { opening, way, function, number: self.call_number, begin_ns, handle, file }
    }
}

/// Summary of the steps of a rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepSummary {
    /// Equal on ranks with equal collective calls in equal order.
    pub digest: u64,
    /// Begin and end of each collective call; the ends of calls that return before others begin are `u64::MAX`.
    pub times_ns: Vec<[u64; 2]>,
    /// A call follows one of another rank, or completes a nonblocking collective call.
    pub has_other_waits: bool,
}

impl StepSummary {
    /// Adds a step of `call`.
    pub fn add(&mut self, step: &SynchronizationStep, call: &Call) {
        let SynchronizationStep::Collective(step) = step else {
            self.has_other_waits = true;
            return;
        };
        let mut hasher = DefaultHasher::new();
        (self.digest, step.opening, step.way, step.match_key()).hash(&mut hasher);
        self.digest = hasher.finish();
        self.has_other_waits |= matches!(step.way, CollectivePhase::Completes(_));
        let end_ns = if step.way == CollectivePhase::Blocking { call.end_ns } else { u64::MAX };
        self.times_ns.push([call.begin_ns, end_ns]);
    }
}
