//! Do the collective calls of all ranks match? The threads of a program may begin them in any order; in a replay one thread of each rank makes
//! them in the order of their begins. Ranks that come to a call in another order than others would wait for each other for ever.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};

use beff_trace::{Call, Form, Function, OpenedFile, Role};
use serde::{Deserialize, Serialize};

use super::meeting::{Counter, Opening};

/// Waits of one rank for others, as many as are told.
const MOST_TOLD: usize = 8;

/// Tells which calls of a rank end only when others have come to theirs.
#[derive(Clone, Debug)]
pub struct Waits<'a> {
    comms: &'a [Vec<u32>],
    /// Of a backend that moves data without MPI: its data accesses are independent.
    by_offsets: bool,
    /// Handles of files of one rank.
    own: HashSet<u32>,
    /// Handles of files that go when they are closed.
    deletes: HashSet<u32>,
    /// Requests of collective accesses.
    requests: HashSet<u64>,
}

impl<'a> Waits<'a> {
    /// Of a rank before its first call. `comms` has the world ranks of each communicator.
    #[must_use]
    pub fn new(comms: &'a [Vec<u32>], by_offsets: bool) -> Self {
        Self { comms, by_offsets, own: HashSet::new(), deletes: HashSet::new(), requests: HashSet::new() }
    }

    /// True if the next call of the rank is such a one.
    pub fn take(&mut self, call: &Call) -> bool {
        if call.amode.is_some_and(|amode| amode.has("delete_on_close")) {
            self.deletes.extend(call.handle);
        }
        let ranks = call.comm.and_then(|comm| self.comms.get(comm as usize));
        if call.function == Function::Open && ranks.is_none_or(|ranks| ranks.len() < 2) {
            self.own.extend(call.handle);
        }
        let is_own = call.handle.is_some_and(|handle| self.own.contains(&handle));
        if self.by_offsets {
            let is_whole = matches!(call.function, Function::Open | Function::SetSize | Function::Preallocate);
            let deletes =
                call.function == Function::Close && call.handle.is_some_and(|handle| self.deletes.contains(&handle));
            return !is_own && (is_whole || deletes);
        }
        let completes = call.requests.iter().any(|request| self.requests.contains(request));
        for completion in &call.completions {
            self.requests.remove(&completion.request);
        }
        let is_collective = !is_own && call.function.is_collective();
        if is_collective {
            self.requests.extend(call.request);
        }
        is_collective || completes
    }
}

/// How a step of a rank has to do with the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum Way {
    /// It ends when all have come to this call of the opening.
    Meets,
    /// It only begins: the others may come later.
    Begins,
    /// It ends when all have begun the call of this number.
    Completes(u64),
}

/// A call of one rank that has to do with others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Packed", into = "Packed")]
pub struct Step {
    opening: Opening,
    way: Way,
    function: Function,
    /// Its number among the calls of the rank, from 1.
    number: u64,
    handle: u32,
    file: Option<u32>,
}

/// A step as it travels.
type Packed = (Opening, Way, u8, u64, u32, Option<u32>);

impl From<Step> for Packed {
    fn from(step: Step) -> Self {
        (step.opening, step.way, step.function as u8, step.number, step.handle, step.file)
    }
}

impl From<Packed> for Step {
    fn from((opening, way, function, number, handle, file): Packed) -> Self {
        // It was one when it left.
        let function = Function::from_number(function).unwrap_or(Function::Open);
        Self { opening, way, function, number, handle, file }
    }
}

impl Step {
    /// What has to be equal on all ranks. Libraries make the accesses of one direction alike.
    fn kind(&self) -> (u8, Option<u32>) {
        match self.function.role() {
            Role::Data { direction, .. } => (u8::MAX - direction as u8, None),
            _ => (self.function as u8, self.file.filter(|_| self.function == Function::Open)),
        }
    }

    fn text(&self, rank: usize, files: &[OpenedFile]) -> String {
        let file = self
            .file
            .and_then(|file| files.get(file as usize))
            .map_or_else(String::new, |file| format!(", {}", file.path));
        format!("rank {rank}, call {}, {} (handle {}{file})", self.number, self.function.name(), self.handle)
    }
}

/// Finds the steps of one rank as its calls come.
#[derive(Debug)]
pub struct Steps<'a> {
    waits: Waits<'a>,
    counter: Counter,
    /// Of this backend, by opening.
    counts: HashMap<Opening, u64>,
    requests: HashMap<u64, (Opening, u64, u32)>,
    files: HashMap<u32, u32>,
    number: u64,
}

impl<'a> Steps<'a> {
    /// Of a rank before its first call.
    #[must_use]
    pub fn new(comms: &'a [Vec<u32>], by_offsets: bool) -> Self {
        Self {
            waits: Waits::new(comms, by_offsets),
            counter: Counter::default(),
            counts: HashMap::new(),
            requests: HashMap::new(),
            files: HashMap::new(),
            number: 0,
        }
    }

    /// Takes the next call in, which is replayed or not, and gives its steps to `put`.
    pub fn take(&mut self, call: &Call, is_replayed: bool, mut put: impl FnMut(Step)) {
        self.number += 1;
        let waits = self.waits.take(call);
        for completion in &call.completions {
            let Some((opening, count, handle)) = self.requests.remove(&completion.request) else { continue };
            put(self.step(call, handle, opening, Way::Completes(count)));
        }
        let Some((opening, _)) = self.counter.take(call) else { return };
        let Some(handle) = call.handle else { return };
        if let Some(file) = call.file {
            self.files.insert(handle, file);
        }
        if !is_replayed || !waits {
            return;
        }
        let form = match call.function.role() {
            Role::Data { form, .. } => form,
            _ => Form::Blocking,
        };
        // The library may do all of a split access in its first half.
        if form == Form::End {
            return;
        }
        let count = self.counts.entry(opening).or_default();
        *count += 1;
        let way = match (form, call.request) {
            (Form::Nonblocking, Some(request)) => {
                self.requests.insert(request, (opening, *count, handle));
                Way::Begins
            }
            (Form::Nonblocking, None) => Way::Begins,
            _ => Way::Meets,
        };
        put(self.step(call, handle, opening, way));
    }

    fn step(&self, call: &Call, handle: u32, opening: Opening, way: Way) -> Step {
        let file = self.files.get(&handle).copied();
        Step { opening, way, function: call.function, number: self.number, handle, file }
    }
}

/// A number for all steps of a rank: ranks with the same number come to the same calls in the same order.
#[derive(Debug, Default)]
pub struct Digest(DefaultHasher);

impl Digest {
    /// Takes a step in.
    pub fn take(&mut self, step: &Step) {
        (step.opening, step.way, step.kind()).hash(&mut self.0);
    }

    /// The number.
    #[must_use]
    pub fn finish(&self) -> u64 {
        self.0.finish()
    }
}

/// The calls of an opening, as far as not all ranks have come to them.
#[derive(Debug, Default)]
struct Group {
    members: u64,
    /// Calls that each rank has come to.
    arrived: HashMap<usize, u64>,
    /// Calls that all have come to.
    complete: u64,
    /// Behind those: how many ranks have come, and the first of them with its step.
    open: VecDeque<(u64, usize, usize)>,
    /// Ranks that wait.
    waiting: Vec<usize>,
}

/// Two calls in the same place of an opening that are not the same, as (rank, step).
type Unlike = [(usize, usize); 2];

/// Lets all ranks go as far as they come.
struct Run<'a> {
    ranks: &'a [Vec<Step>],
    groups: BTreeMap<Opening, Group>,
    /// Next step of each rank, and whether it has come to it already.
    at: Vec<(usize, bool)>,
}

impl<'a> Run<'a> {
    fn new(ranks: &'a [Vec<Step>], comms: &[Vec<u32>]) -> Self {
        let mut groups = BTreeMap::<Opening, Group>::new();
        for step in ranks.iter().flatten() {
            let members = || comms.get(step.opening.0 as usize).map_or(0, |ranks| ranks.len() as u64);
            groups.entry(step.opening).or_insert_with(|| Group { members: members(), ..Group::default() });
        }
        Self { ranks, groups, at: vec![(0, false); ranks.len()] }
    }

    /// As far as all come. Error: two calls that do not match.
    fn go(&mut self) -> Result<(), Unlike> {
        let mut ready: VecDeque<usize> = (0..self.ranks.len()).collect();
        while let Some(rank) = ready.pop_front() {
            while self.step(rank, &mut ready)? {}
        }
        Ok(())
    }

    /// The next step of a rank. False: it waits, or is at its end.
    fn step(&mut self, rank: usize, ready: &mut VecDeque<usize>) -> Result<bool, Unlike> {
        let (at, has_come) = self.at[rank];
        let Some(step) = self.ranks[rank].get(at) else { return Ok(false) };
        let Some(group) = self.groups.get_mut(&step.opening) else { return Ok(false) };
        if !has_come && !matches!(step.way, Way::Completes(_)) {
            let count = group.arrived.entry(rank).or_default();
            *count += 1;
            let place = (*count - group.complete - 1) as usize;
            match group.open.get_mut(place) {
                None => group.open.push_back((1, rank, at)),
                Some((come, other, first)) => {
                    if self.ranks[*other][*first].kind() != step.kind() {
                        return Err([(*other, *first), (rank, at)]);
                    }
                    *come += 1;
                }
            }
            while group.open.front().is_some_and(|(come, ..)| *come >= group.members) {
                group.open.pop_front();
                group.complete += 1;
                ready.extend(group.waiting.drain(..));
            }
            self.at[rank].1 = true;
        }
        let needed = match step.way {
            Way::Begins => 0,
            Way::Meets => group.arrived.get(&rank).copied().unwrap_or(0),
            Way::Completes(count) => count,
        };
        if needed > group.complete {
            group.waiting.push(rank);
            return Ok(false);
        }
        self.at[rank] = (at + 1, false);
        Ok(true)
    }

    /// Who keeps a rank, if it waits: a member that has not come to where it is needed.
    fn keeper(&self, rank: usize, comms: &[Vec<u32>]) -> Option<(&'a Step, usize)> {
        let step = self.ranks[rank].get(self.at[rank].0)?;
        let group = self.groups.get(&step.opening)?;
        let needed = match step.way {
            Way::Completes(count) => count,
            _ => group.arrived.get(&rank).copied().unwrap_or(0),
        };
        let lacks = |member: &usize| group.arrived.get(member).copied().unwrap_or(0) < needed;
        let members = comms.get(step.opening.0 as usize)?.iter().map(|member| *member as usize);
        Some((step, members.into_iter().find(lacks)?))
    }
}

/// Why the ranks would wait for each other for ever, in words; None: they do not.
#[must_use]
pub fn mismatch(ranks: &[Vec<Step>], comms: &[Vec<u32>], files: &[OpenedFile]) -> Option<String> {
    let mut run = Run::new(ranks, comms);
    if let Err([(one, first), (other, second)]) = run.go() {
        let [one, other] = [(one, first), (other, second)].map(|(rank, step)| ranks[rank][step].text(rank, files));
        return Some(format!("{one}, would have to match {other}"));
    }
    let mut rank = (0..ranks.len()).find(|rank| run.keeper(*rank, comms).is_some())?;
    // From any rank that waits the way ends in a circle, or at a rank that makes no such call.
    let mut way: Vec<usize> = Vec::new();
    while !way.contains(&rank) && run.keeper(rank, comms).is_some() {
        way.push(rank);
        rank = run.keeper(rank, comms)?.1;
    }
    let circle = way.iter().position(|first| *first == rank).unwrap_or(0);
    let mut circle = way.split_off(circle);
    let lowest = (0..circle.len()).min_by_key(|at| circle[*at]).unwrap_or(0);
    circle.rotate_left(lowest);
    let mut text = String::new();
    for (n, rank) in circle.iter().take(MOST_TOLD).enumerate() {
        let (step, keeper) = run.keeper(*rank, comms)?;
        let between = if n > 0 { "; " } else { "" };
        // Writing to a string does not fail.
        let _ = write!(text, "{between}{}, waits for rank {keeper}", step.text(*rank, files));
    }
    if circle.len() > MOST_TOLD {
        let _ = write!(text, "; and {} more", circle.len() - MOST_TOLD);
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(calls: &[(Function, u32, u32)], by_offsets: bool) -> Vec<Step> {
        let comms = [vec![0, 1], vec![0, 1], vec![0]];
        let mut steps = Steps::new(&comms, by_offsets);
        let mut all = Vec::new();
        for (n, (function, handle, comm)) in calls.iter().enumerate() {
            let request = Some(u64::from(*handle)).filter(|_| *function == Function::IwriteAtAll);
            let call =
                Call { handle: Some(*handle), comm: Some(*comm), request, ..Call::new(*function, n as u64, n as u64) };
            steps.take(&call, true, |step| all.push(step));
        }
        all
    }

    #[test]
    fn only_what_waits_for_others_is_a_step() {
        use Function::{Close, Open, SetSize, Sync, WriteAt, WriteAtAll, WriteAtAllBegin, WriteAtAllEnd};
        let functions = [Open, WriteAt, WriteAtAll, WriteAtAllBegin, WriteAtAllEnd, Sync, SetSize, Close];
        let on = |comm| functions.map(|function| (function, 1, comm));
        assert_eq!(steps(&on(0), false).len(), 6);
        assert_eq!(steps(&on(0), true).len(), 2, "open and set_size");
        assert_eq!(steps(&on(2), false), [], "one rank alone waits for nobody");
    }

    #[test]
    fn orders_that_cross_are_told_and_others_are_not() {
        use Function::{IwriteAtAll, Open, Sync};
        let open = [(Open, 1, 0), (Open, 2, 1)];
        let with = |calls: &[(Function, u32, u32)]| steps(&[&open, calls].concat(), false);
        let comms = [vec![0, 1], vec![0, 1]];
        let told = |one: &[(Function, u32, u32)], other: &[(Function, u32, u32)]| {
            mismatch(&[with(one), with(other)], &comms, &[])
        };
        let (first, second) = ((Sync, 1, 0), (Sync, 2, 1));
        assert_eq!(told(&[first, second], &[first, second]), None);
        let text = "rank 0, call 3, File_sync (handle 1), waits for rank 1; rank 1, call 3, File_sync (handle 2), waits for rank 0";
        assert_eq!(told(&[first, second], &[second, first]).as_deref(), Some(text));
        let (first, second) = ((IwriteAtAll, 1, 0), (IwriteAtAll, 2, 1));
        assert_eq!(told(&[first, second], &[second, first]), None, "they only begin");
        assert_eq!(told(&[first], &[(Sync, 1, 0)]).unwrap().split(',').nth(1), Some(" call 3"), "no match");
    }

    #[test]
    fn ranks_with_one_digest_have_the_same_steps() {
        use Function::{Open, SetView, Sync};
        let digest = |calls: &[(Function, u32, u32)]| {
            let mut digest = Digest::default();
            steps(calls, false).iter().for_each(|step| digest.take(step));
            digest.finish()
        };
        let (open, view, sync) = ((Open, 1, 0), (SetView, 1, 0), (Sync, 1, 0));
        assert_eq!(digest(&[open, view, sync]), digest(&[open, view, sync]));
        assert_ne!(digest(&[open, view, sync]), digest(&[open, sync, view]));
    }
}
