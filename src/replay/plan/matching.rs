//! Matching of the collective calls of all ranks. Threads of a program may begin them in any order; in a replay one thread of each rank
//! issues them in the order of their begins. Ranks with different orders would deadlock.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};

use beff_trace::{AccessForm, Call, Function, OpenedFile, Role};
use serde::{Deserialize, Serialize};

use super::collective_counts::{CollectiveCounter, OpeningId};

/// Maximum number of waits in a message.
const MAX_REPORTED_WAITS: usize = 8;

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
enum CollectivePhase {
    /// Ends when all ranks have reached this call of the opening.
    Blocking,
    /// Begins only: the others may reach it later.
    Begins,
    /// Ends when all ranks have begun the call of this number.
    Completes(u64),
}

/// A collective call of one rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "PackedStep", into = "PackedStep")]
pub struct CollectiveStep {
    opening: OpeningId,
    way: CollectivePhase,
    function: Function,
    /// Its number among the calls of the rank, from 1.
    number: u64,
    handle: u32,
    file: Option<u32>,
}

type PackedStep = (OpeningId, CollectivePhase, u8, u64, u32, Option<u32>);

impl From<CollectiveStep> for PackedStep {
    fn from(step: CollectiveStep) -> Self {
        (step.opening, step.way, step.function as u8, step.number, step.handle, step.file)
    }
}

impl From<PackedStep> for CollectiveStep {
    fn from((opening, way, function, number, handle, file): PackedStep) -> Self {
        // Valid, because it was packed from a step.
        let function = Function::from_number(function).unwrap_or(Function::Open);
        Self { opening, way, function, number, handle, file }
    }
}

impl CollectiveStep {
    /// Properties that must be equal on all ranks. Libraries treat the accesses of one direction alike.
    fn match_key(&self) -> (u8, Option<u32>) {
        match self.function.role() {
            Role::Data { direction, .. } => (u8::MAX - direction as u8, None),
            _ => (self.function as u8, self.file.filter(|_| self.function == Function::Open)),
        }
    }

    fn describe(&self, rank: usize, files: &[OpenedFile]) -> String {
        let file = self
            .file
            .and_then(|file| files.get(file as usize))
            .map_or_else(String::new, |file| format!(", {}", file.path));
        format!("rank {rank}, call {}, {} (handle {}{file})", self.number, self.function.name(), self.handle)
    }
}

/// Derives the steps of one rank from its calls.
#[derive(Debug)]
pub struct CollectiveStepTracker<'a> {
    synchronization: SynchronizationTracker<'a>,
    counter: CollectiveCounter,
    /// Calls of this backend, by opening.
    calls_by_opening: HashMap<OpeningId, u64>,
    pending_requests: HashMap<u64, (OpeningId, u64, u32)>,
    file_of_handle: HashMap<u32, u32>,
    call_number: u64,
}

impl<'a> CollectiveStepTracker<'a> {
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
        }
    }

    /// Processes the next call, whether replayed or not, and passes its steps to `put`.
    pub fn observe(&mut self, call: &Call, is_replayed: bool, mut put: impl FnMut(CollectiveStep)) {
        self.call_number += 1;
        let waits = self.synchronization.observe(call);
        for completion in &call.completions {
            let Some((opening, count, handle)) = self.pending_requests.remove(&completion.request) else { continue };
            put(self.step(call, handle, opening, CollectivePhase::Completes(count)));
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
        put(self.step(call, handle, opening, way));
    }

    fn step(&self, call: &Call, handle: u32, opening: OpeningId, way: CollectivePhase) -> CollectiveStep {
        let file = self.file_of_handle.get(&handle).copied();
        CollectiveStep { opening, way, function: call.function, number: self.call_number, handle, file }
    }
}

/// Digest of all steps of a rank: equal digests mean equal calls in equal order.
#[derive(Debug, Default)]
pub struct StepDigest(DefaultHasher);

impl StepDigest {
    /// Adds a step.
    pub fn add(&mut self, step: &CollectiveStep) {
        (step.opening, step.way, step.match_key()).hash(&mut self.0);
    }

    /// The digest.
    #[must_use]
    pub fn finish(&self) -> u64 {
        self.0.finish()
    }
}

/// Calls of an opening that not all ranks have reached.
#[derive(Debug, Default)]
struct OpeningProgress {
    members: u64,
    /// Number of calls that each rank has reached.
    arrived: HashMap<usize, u64>,
    /// Number of calls that all ranks have reached.
    complete: u64,
    /// The calls after those: number of ranks that have reached each, and the first rank with its step.
    incomplete: VecDeque<(u64, usize, usize)>,
    waiting: Vec<usize>,
}

/// Two different calls at the same position of an opening, as (rank, step).
type StepMismatch = [(usize, usize); 2];

/// Simulates all ranks as far as they proceed.
struct MatchingSimulation<'a> {
    ranks: &'a [Vec<CollectiveStep>],
    openings: BTreeMap<OpeningId, OpeningProgress>,
    /// Next step of each rank, and whether it has been reached.
    positions: Vec<(usize, bool)>,
}

impl<'a> MatchingSimulation<'a> {
    fn new(ranks: &'a [Vec<CollectiveStep>], comms: &[Vec<u32>]) -> Self {
        let mut openings = BTreeMap::<OpeningId, OpeningProgress>::new();
        for step in ranks.iter().flatten() {
            let members = || comms.get(step.opening.0 as usize).map_or(0, |ranks| ranks.len() as u64);
            openings
                .entry(step.opening)
                .or_insert_with(|| OpeningProgress { members: members(), ..OpeningProgress::default() });
        }
        Self { ranks, openings, positions: vec![(0, false); ranks.len()] }
    }

    /// Proceeds until all ranks wait or have ended. Error: two calls that do not match.
    fn run_to_end(&mut self) -> Result<(), StepMismatch> {
        let mut ready: VecDeque<usize> = (0..self.ranks.len()).collect();
        while let Some(rank) = ready.pop_front() {
            while self.advance(rank, &mut ready)? {}
        }
        Ok(())
    }

    /// Next step of a rank; false if it waits or has ended.
    fn advance(&mut self, rank: usize, ready: &mut VecDeque<usize>) -> Result<bool, StepMismatch> {
        let (at, has_come) = self.positions[rank];
        let Some(step) = self.ranks[rank].get(at) else { return Ok(false) };
        let Some(group) = self.openings.get_mut(&step.opening) else { return Ok(false) };
        if !has_come && !matches!(step.way, CollectivePhase::Completes(_)) {
            let count = group.arrived.entry(rank).or_default();
            *count += 1;
            let place = (*count - group.complete - 1) as usize;
            match group.incomplete.get_mut(place) {
                None => group.incomplete.push_back((1, rank, at)),
                Some((come, other, first)) => {
                    if self.ranks[*other][*first].match_key() != step.match_key() {
                        return Err([(*other, *first), (rank, at)]);
                    }
                    *come += 1;
                }
            }
            while group.incomplete.front().is_some_and(|(come, ..)| *come >= group.members) {
                group.incomplete.pop_front();
                group.complete += 1;
                ready.extend(group.waiting.drain(..));
            }
            self.positions[rank].1 = true;
        }
        let needed = match step.way {
            CollectivePhase::Begins => 0,
            CollectivePhase::Blocking => group.arrived.get(&rank).copied().unwrap_or(0),
            CollectivePhase::Completes(count) => count,
        };
        if needed > group.complete {
            group.waiting.push(rank);
            return Ok(false);
        }
        self.positions[rank] = (at + 1, false);
        Ok(true)
    }

    /// The step of a waiting rank, and a member that has not reached the required call.
    fn awaited_member(&self, rank: usize, comms: &[Vec<u32>]) -> Option<(&'a CollectiveStep, usize)> {
        let step = self.ranks[rank].get(self.positions[rank].0)?;
        let group = self.openings.get(&step.opening)?;
        let needed = match step.way {
            CollectivePhase::Completes(count) => count,
            _ => group.arrived.get(&rank).copied().unwrap_or(0),
        };
        let lacks = |member: &usize| group.arrived.get(member).copied().unwrap_or(0) < needed;
        let members = comms.get(step.opening.0 as usize)?.iter().map(|member| *member as usize);
        Some((step, members.into_iter().find(lacks)?))
    }
}

/// Describes the deadlock or mismatch of the ranks; None if there is none.
#[must_use]
pub fn find_mismatch(ranks: &[Vec<CollectiveStep>], comms: &[Vec<u32>], files: &[OpenedFile]) -> Option<String> {
    let mut run = MatchingSimulation::new(ranks, comms);
    if let Err([(one, first), (other, second)]) = run.run_to_end() {
        let [one, other] = [(one, first), (other, second)].map(|(rank, step)| ranks[rank][step].describe(rank, files));
        return Some(format!("{one}, would have to match {other}"));
    }
    let mut rank = (0..ranks.len()).find(|rank| run.awaited_member(*rank, comms).is_some())?;
    // From any waiting rank the chain ends in a cycle, or at a rank that never issues the call.
    let mut way: Vec<usize> = Vec::new();
    while !way.contains(&rank) && run.awaited_member(rank, comms).is_some() {
        way.push(rank);
        rank = run.awaited_member(rank, comms)?.1;
    }
    let circle = way.iter().position(|first| *first == rank).unwrap_or(0);
    let mut circle = way.split_off(circle);
    let lowest = (0..circle.len()).min_by_key(|at| circle[*at]).unwrap_or(0);
    circle.rotate_left(lowest);
    let mut text = String::new();
    for (n, rank) in circle.iter().take(MAX_REPORTED_WAITS).enumerate() {
        let (step, keeper) = run.awaited_member(*rank, comms)?;
        let between = if n > 0 { "; " } else { "" };
        let _ = write!(text, "{between}{}, waits for rank {keeper}", step.describe(*rank, files));
    }
    if circle.len() > MAX_REPORTED_WAITS {
        let _ = write!(text, "; and {} more", circle.len() - MAX_REPORTED_WAITS);
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(calls: &[(Function, u32, u32)], by_offsets: bool) -> Vec<CollectiveStep> {
        let comms = [vec![0, 1], vec![0, 1], vec![0]];
        let mut steps = CollectiveStepTracker::new(&comms, by_offsets);
        let mut all = Vec::new();
        for (n, (function, handle, comm)) in calls.iter().enumerate() {
            let request = Some(u64::from(*handle)).filter(|_| *function == Function::IwriteAtAll);
            let call =
                Call { handle: Some(*handle), comm: Some(*comm), request, ..Call::new(*function, n as u64, n as u64) };
            steps.observe(&call, true, |step| all.push(step));
        }
        all
    }

    #[test]
    fn only_synchronizing_calls_are_steps() {
        use Function::{Close, Open, SetSize, Sync, WriteAt, WriteAtAll, WriteAtAllBegin, WriteAtAllEnd};
        let functions = [Open, WriteAt, WriteAtAll, WriteAtAllBegin, WriteAtAllEnd, Sync, SetSize, Close];
        let on = |comm| functions.map(|function| (function, 1, comm));
        assert_eq!(steps(&on(0), false).len(), 6);
        assert_eq!(steps(&on(0), true).len(), 4, "open, sync, set_size and close");
        assert_eq!(steps(&on(2), false), [], "a single rank waits for none");
    }

    #[test]
    fn crossing_orders_are_reported() {
        use Function::{IwriteAtAll, Open, Sync};
        let open = [(Open, 1, 0), (Open, 2, 1)];
        let with = |calls: &[(Function, u32, u32)]| steps(&[&open, calls].concat(), false);
        let comms = [vec![0, 1], vec![0, 1]];
        let mismatch = |one: &[(Function, u32, u32)], other: &[(Function, u32, u32)]| {
            find_mismatch(&[with(one), with(other)], &comms, &[])
        };
        let (first, second) = ((Sync, 1, 0), (Sync, 2, 1));
        assert_eq!(mismatch(&[first, second], &[first, second]), None);
        let text = "rank 0, call 3, File_sync (handle 1), waits for rank 1; rank 1, call 3, File_sync (handle 2), waits for rank 0";
        assert_eq!(mismatch(&[first, second], &[second, first]).as_deref(), Some(text));
        let (first, second) = ((IwriteAtAll, 1, 0), (IwriteAtAll, 2, 1));
        assert_eq!(mismatch(&[first, second], &[second, first]), None, "nonblocking calls only begin");
        assert_eq!(mismatch(&[first], &[(Sync, 1, 0)]).unwrap().split(',').nth(1), Some(" call 3"), "no match");
    }

    /// Openings with two communicators, split accesses, and synchronizing calls of backends without MPI.
    #[test]
    fn crossing_orders_of_every_synchronizing_call_are_reported() {
        use Function::{Close, Open, Preallocate, ReadAtAllBegin, ReadAtAllEnd, SetSize, SetView, Sync, WriteOrdered};
        let comms = [vec![0, 1], vec![0, 1]];
        let crossed = |function: Function, end: Option<Function>, by_offsets: bool| {
            let open = if function == Open { vec![] } else { vec![(Open, 1, 0), (Open, 2, 1)] };
            let of = |order: [(u32, u32); 2]| {
                let both = order.into_iter().flat_map(|(handle, comm)| {
                    std::iter::once((function, handle, comm)).chain(end.map(|end| (end, handle, comm)))
                });
                steps(&open.iter().copied().chain(both).collect::<Vec<_>>(), by_offsets)
            };
            let [same, other] = [[(1, 0), (2, 1)], [(2, 1), (1, 0)]].map(of);
            assert_eq!(find_mismatch(&[same.clone(), same.clone()], &comms, &[]), None, "{function:?}");
            find_mismatch(&[same, other], &comms, &[]).is_some_and(|text| text.contains("waits for rank"))
        };
        for function in [Open, Close, SetSize, Preallocate, Sync] {
            assert!(crossed(function, None, true) && crossed(function, None, false), "{function:?}");
        }
        for (function, end) in [(ReadAtAllBegin, Some(ReadAtAllEnd)), (SetView, None), (WriteOrdered, None)] {
            assert!(crossed(function, end, false) && !crossed(function, end, true), "{function:?}");
        }
    }

    #[test]
    fn ranks_with_one_digest_have_the_same_steps() {
        use Function::{Open, SetView, Sync};
        let digest = |calls: &[(Function, u32, u32)]| {
            let mut digest = StepDigest::default();
            steps(calls, false).iter().for_each(|step| digest.add(step));
            digest.finish()
        };
        let (open, view, sync) = ((Open, 1, 0), (SetView, 1, 0), (Sync, 1, 0));
        assert_eq!(digest(&[open, view, sync]), digest(&[open, view, sync]));
        assert_ne!(digest(&[open, view, sync]), digest(&[open, sync, view]));
    }
}
