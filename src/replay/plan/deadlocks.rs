//! Simulation of the waits of all ranks, to find deadlocks before the run.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt::Write;

use beff_trace::{CallId, OpenedFile};

use super::collective_counts::OpeningId;
use super::matching::{CollectivePhase, CollectiveStep, SynchronizationStep};

/// Maximum number of waits in a message.
const MAX_REPORTED_WAITS: usize = 8;

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
    ranks: &'a [Vec<SynchronizationStep>],
    openings: BTreeMap<OpeningId, OpeningProgress>,
    /// Next step of each rank, and whether it has been reached.
    positions: Vec<(usize, bool)>,
    /// Ranks that wait for a call of each rank.
    followers: Vec<Vec<usize>>,
    ready: VecDeque<usize>,
}

impl<'a> MatchingSimulation<'a> {
    fn new(ranks: &'a [Vec<SynchronizationStep>], comms: &[Vec<u32>]) -> Self {
        let mut openings = BTreeMap::<OpeningId, OpeningProgress>::new();
        for step in ranks.iter().flatten() {
            let SynchronizationStep::Collective(step) = step else { continue };
            let members = || comms.get(step.opening.0 as usize).map_or(0, |ranks| ranks.len() as u64);
            openings
                .entry(step.opening)
                .or_insert_with(|| OpeningProgress { members: members(), ..OpeningProgress::default() });
        }
        Self {
            ranks,
            openings,
            positions: vec![(0, false); ranks.len()],
            followers: vec![Vec::new(); ranks.len()],
            ready: (0..ranks.len()).collect(),
        }
    }

    /// Proceeds until all ranks wait or have ended. Error: two calls that do not match.
    fn run(&mut self) -> Result<(), StepMismatch> {
        while let Some(rank) = self.ready.pop_front() {
            while self.advance(rank)? {}
        }
        Ok(())
    }

    fn step(&self, rank: usize) -> Option<&'a SynchronizationStep> {
        self.ranks.get(rank)?.get(self.positions[rank].0)
    }

    /// Next step of a rank; false if it waits or has ended.
    fn advance(&mut self, rank: usize) -> Result<bool, StepMismatch> {
        let passes = match self.step(rank) {
            None => return Ok(false),
            Some(SynchronizationStep::Collective(step)) => self.reach(rank, step)?,
            Some(SynchronizationStep::Follows(dependency)) => {
                let ended = self.has_ended(dependency.call());
                if !ended {
                    self.followers[dependency.call().rank as usize].push(rank);
                }
                ended
            }
        };
        if passes {
            self.pass(rank);
        }
        Ok(passes)
    }

    fn pass(&mut self, rank: usize) {
        self.positions[rank] = (self.positions[rank].0 + 1, false);
        self.ready.append(&mut self.followers[rank].drain(..).collect());
    }

    /// True if the rank has passed the call. It issues its calls in the order of their begins.
    fn has_ended(&self, call: CallId) -> bool {
        self.step(call.rank as usize).is_none_or(|next| next.begin_ns() > call.begin_ns)
    }

    /// A rank at a collective call. True if it does not wait.
    fn reach(&mut self, rank: usize, step: &CollectiveStep) -> Result<bool, StepMismatch> {
        let (at, has_come) = self.positions[rank];
        let Some(group) = self.openings.get_mut(&step.opening) else { return Ok(true) };
        if !has_come && !matches!(step.way, CollectivePhase::Completes(_)) {
            let count = group.arrived.entry(rank).or_default();
            *count += 1;
            let place = (*count - group.complete - 1) as usize;
            match group.incomplete.get_mut(place) {
                None => group.incomplete.push_back((1, rank, at)),
                Some((come, other, first)) => {
                    if let Some(SynchronizationStep::Collective(met)) = self.ranks[*other].get(*first) {
                        if met.match_key() != step.match_key() {
                            return Err([(*other, *first), (rank, at)]);
                        }
                    }
                    *come += 1;
                }
            }
            while group.incomplete.front().is_some_and(|(come, ..)| *come >= group.members) {
                group.incomplete.pop_front();
                group.complete += 1;
                self.ready.extend(group.waiting.drain(..));
            }
            self.positions[rank].1 = true;
        }
        let needed = match step.way {
            CollectivePhase::Begins => 0,
            CollectivePhase::Blocking => group.arrived.get(&rank).copied().unwrap_or(0),
            CollectivePhase::Completes(count) => count,
        };
        let waits = needed > group.complete;
        if waits {
            group.waiting.push(rank);
        }
        Ok(!waits)
    }

    /// The rank that a waiting rank waits for.
    fn awaited_rank(&self, rank: usize, comms: &[Vec<u32>]) -> Option<usize> {
        let step = match self.step(rank)? {
            SynchronizationStep::Follows(dependency) => return Some(dependency.call().rank as usize),
            SynchronizationStep::Collective(step) => step,
        };
        let group = self.openings.get(&step.opening)?;
        let needed = match step.way {
            CollectivePhase::Completes(count) => count,
            _ => group.arrived.get(&rank).copied().unwrap_or(0),
        };
        let lacks = |member: &usize| group.arrived.get(member).copied().unwrap_or(0) < needed;
        comms.get(step.opening.0 as usize)?.iter().map(|member| *member as usize).find(lacks)
    }

    /// Waiting ranks in a circle, or in a chain that ends at a rank that never issues the call. None if no rank waits.
    fn deadlock(&self, comms: &[Vec<u32>]) -> Option<Vec<usize>> {
        let mut rank = (0..self.ranks.len()).find(|rank| self.awaited_rank(*rank, comms).is_some())?;
        let mut way: Vec<usize> = Vec::new();
        while !way.contains(&rank) {
            let Some(awaited) = self.awaited_rank(rank, comms) else { break };
            way.push(rank);
            rank = awaited;
        }
        let circle = way.iter().position(|first| *first == rank).unwrap_or(0);
        let mut circle = way.split_off(circle);
        let lowest = (0..circle.len()).min_by_key(|at| circle[*at]).unwrap_or(0);
        circle.rotate_left(lowest);
        Some(circle)
    }

    fn describe(&self, circle: &[usize], comms: &[Vec<u32>], files: &[OpenedFile]) -> String {
        let mut text = String::new();
        for (n, rank) in circle.iter().take(MAX_REPORTED_WAITS).enumerate() {
            let Some(SynchronizationStep::Collective(step)) = self.step(*rank) else { continue };
            let between = if n > 0 { "; " } else { "" };
            let keeper = self.awaited_rank(*rank, comms).unwrap_or(*rank);
            let _ = write!(text, "{between}{}, waits for rank {keeper}", step.describe(*rank, files));
        }
        if circle.len() > MAX_REPORTED_WAITS {
            let _ = write!(text, "; and {} more", circle.len() - MAX_REPORTED_WAITS);
        }
        text
    }
}

/// Simulates the ranks. Returns the dependencies that would deadlock with collective calls, as waiting rank and awaited call: they occur if
/// the collective calls of the recorded library did not synchronize, and they are given up.
///
/// # Errors
/// Collective calls that do not match or deadlock among themselves, in words.
pub fn find_deadlocks(
    ranks: &[Vec<SynchronizationStep>],
    comms: &[Vec<u32>],
    files: &[OpenedFile],
) -> Result<Vec<(usize, CallId)>, String> {
    let mut simulation = MatchingSimulation::new(ranks, comms);
    let mut given_up = Vec::new();
    loop {
        if let Err(pair) = simulation.run() {
            let [one, other] = pair.map(|(rank, step)| match &ranks[rank][step] {
                SynchronizationStep::Collective(step) => step.describe(rank, files),
                SynchronizationStep::Follows(_) => format!("rank {rank}"),
            });
            return Err(format!("{one}, would have to match {other}"));
        }
        let Some(circle) = simulation.deadlock(comms) else { return Ok(given_up) };
        let follows = circle.iter().find_map(|rank| match simulation.step(*rank) {
            Some(SynchronizationStep::Follows(dependency)) => Some((*rank, dependency.call())),
            _ => None,
        });
        let Some((rank, call)) = follows else { return Err(simulation.describe(&circle, comms, files)) };
        given_up.push((rank, call));
        simulation.pass(rank);
        simulation.ready.push_back(rank);
    }
}

#[cfg(test)]
mod tests {
    use beff_trace::{Call, Function};

    use super::*;
    use crate::replay::plan::matching::{StepSummary, SynchronizationStepTracker};

    fn steps(calls: &[(Function, u32, u32)], by_offsets: bool) -> Vec<SynchronizationStep> {
        let comms = [vec![0, 1], vec![0, 1], vec![0]];
        let mut steps = SynchronizationStepTracker::new(&comms, by_offsets);
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
            find_deadlocks(&[with(one), with(other)], &comms, &[]).err()
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
            assert_eq!(find_deadlocks(&[same.clone(), same.clone()], &comms, &[]), Ok(vec![]), "{function:?}");
            find_deadlocks(&[same, other], &comms, &[]).is_err_and(|text| text.contains("waits for rank"))
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
            let mut summary = StepSummary::default();
            let call = Call::new(Open, 0, 0);
            steps(calls, false).iter().for_each(|step| summary.add(step, &call));
            summary.digest
        };
        let (open, view, sync) = ((Open, 1, 0), (SetView, 1, 0), (Sync, 1, 0));
        assert_eq!(digest(&[open, view, sync]), digest(&[open, view, sync]));
        assert_ne!(digest(&[open, view, sync]), digest(&[open, sync, view]));
    }

    /// Rank 1 waits before a collective call for a call of rank 0 that follows the same collective call there.
    #[test]
    fn a_dependency_behind_an_own_collective_call_is_given_up() {
        use Function::{Open, ReadAtAll, WriteAt};
        let comms = [vec![0, 1]];
        let of = |calls: &[(Function, u64, Option<u64>)], by_offsets: bool| {
            let mut tracker = SynchronizationStepTracker::new(&comms, by_offsets);
            let mut all = Vec::new();
            for (function, begin_ns, after_ns) in calls {
                let after = after_ns.map(|begin_ns| CallId { rank: 0, begin_ns }).into_iter().collect();
                let (handle, comm) = (Some(1), Some(0));
                let call = Call { handle, comm, after, ..Call::new(*function, *begin_ns, *begin_ns + 10) };
                tracker.observe(&call, true, |step| all.push(step));
            }
            all
        };
        let zero = [(Open, 0, None), (ReadAtAll, 40, None), (WriteAt, 60, None), (WriteAt, 70, None)];
        let one = |after_ns| [(Open, 1, None), (ReadAtAll, 100, Some(after_ns)), (WriteAt, 120, Some(70))];
        let lost = |by_offsets, after_ns| {
            find_deadlocks(&[of(&zero, by_offsets), of(&one(after_ns), by_offsets)], &comms, &[]).unwrap()
        };
        assert_eq!(lost(false, 60), [(1, CallId { rank: 0, begin_ns: 60 })]);
        assert_eq!(lost(false, 40), [(1, CallId { rank: 0, begin_ns: 40 })], "the end of the same collective call");
        assert_eq!(lost(false, 0), [], "the call after it is no obstacle");
        assert_eq!(lost(true, 60), [], "reads do not synchronize");
    }
}
