//! Files that one rank makes ready before an opening: longer, as other means than MPI-IO had made them, or removed. That must not meet data that
//! is under way. So the rank waits before it for the calls on that file that had ended, fills nothing that calls under way write, and
//! later calls of others wait for it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use beff_trace::{After, Call, Form, Function, Head, Role};
use serde::{Deserialize, Serialize};

/// Sent instead of the begin of a call: the files of the opening that began then are ready.
pub const READY: u64 = 1 << 62;

/// What a rank does to files before an opening.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Files that other means had removed.
    pub gone: Vec<u32>,
    /// The file that is opened, and how long it was.
    pub grown: Option<(u32, u64)>,
}

/// Finds the work of one rank as its calls come.
#[derive(Clone, Debug)]
pub struct Tending<'a> {
    head: &'a Head,
    rank: u32,
    /// Files that this rank sees to and that are removed later: when, and which.
    ends: BTreeSet<(u64, u32)>,
}

impl<'a> Tending<'a> {
    /// Of a rank before its first call.
    #[must_use]
    pub fn new(head: &'a Head, rank: u32) -> Self {
        Self { head, rank, ends: BTreeSet::new() }
    }

    /// What to do before this call.
    pub fn take(&mut self, call: &Call) -> Work {
        let Some(file) = call.file.filter(|_| call.function == Function::Open && call.handle.is_some()) else {
            return Work::default();
        };
        let opens_first = self.opens_first(call);
        if opens_first {
            let gone_ns = self.head.files.get(file as usize).and_then(|file| file.gone_ns);
            self.ends.extend(gone_ns.map(|gone_ns| (gone_ns, file)));
        }
        let later = self.ends.split_off(&(call.begin_ns.saturating_add(1), 0));
        let gone = std::mem::replace(&mut self.ends, later).into_iter().map(|(_, file)| file).collect();
        let size = call.number.and_then(|number| u64::try_from(number).ok()).filter(|size| *size > 0 && opens_first);
        Work { gone, grown: size.map(|size| (file, size)) }
    }

    /// True for the one rank of an opening that sees to the file; the others cannot be through before it has come.
    fn opens_first(&self, call: &Call) -> bool {
        let ranks = call.comm.and_then(|comm| self.head.comms.get(comm as usize));
        call.error.is_none() && ranks.and_then(|ranks| ranks.first()) == Some(&self.rank)
    }
}

/// An opening before which a rank makes a file ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Preparation {
    /// Begin of the opening.
    pub begin_ns: u64,
    /// The rank that does it.
    pub rank: u32,
    /// The file.
    pub file: u32,
    /// Communicator of the opening, and how many were opened with it before.
    pub opening: (u32, u64),
}

/// What a rank knows of a preparation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Begin of its last call on the file that ends before.
    pub last_ns: Option<u64>,
    /// How far its writes reach that are under way then.
    pub under_way_bytes: u64,
    /// It has later calls on the file.
    pub waits: bool,
}

/// What the calls of this rank have to do with files that are made ready.
#[derive(Clone, Debug, Default)]
pub struct Ready {
    /// By begin of an opening of this rank: calls of others that end before it touches files.
    pub quiet: HashMap<u64, Vec<After>>,
    /// And how far calls write in its file that are under way then.
    pub under_way_bytes: HashMap<u64, u64>,
    /// And who is told that the files are ready.
    pub tells: HashMap<u64, BTreeSet<u32>>,
    /// By begin of a call of this rank: openings of others that come before.
    pub waits: BTreeMap<u64, Vec<After>>,
    /// Calls of others that more than one call of this rank may wait for.
    pub again: HashSet<After>,
}

/// A preparation, and what this rank has found of it.
#[derive(Clone, Copy, Debug)]
struct Found {
    one: Preparation,
    answer: Answer,
    /// Number of the call in which `last_ns` ended.
    ended_at: u64,
    /// A rank of the opening comes to it by a call of its own, which tells what was before, whatever clocks say.
    is_member: bool,
}

/// A data access that has begun.
#[derive(Clone, Copy, Debug)]
struct Begun {
    file: u32,
    begin_ns: u64,
    /// How far it writes in the file.
    reach_bytes: u64,
}

/// What one rank has to do with the preparations of files that it uses, as its calls come.
#[derive(Debug)]
pub struct Uses {
    rank: u32,
    /// By file, in the order of their begins.
    all: HashMap<u32, Vec<Found>>,
    /// The first by file that no call has come behind.
    behind: HashMap<u32, usize>,
    /// Preparations that later calls may have to do with.
    left: usize,
    openings: HashMap<u32, u64>,
    files: HashMap<u32, u32>,
    last_ns: HashMap<u32, u64>,
    requests: HashMap<u64, Begun>,
    split: HashMap<u32, Begun>,
    number: u64,
    /// Calls of this rank that wait for others to make files ready.
    pub waits: BTreeMap<u64, Vec<After>>,
}

impl Uses {
    /// Of a rank before its first call. `comms` has the world ranks of each communicator.
    #[must_use]
    pub fn new(comms: &[Vec<u32>], rank: u32, preparations: &[Preparation]) -> Self {
        let mut all: HashMap<u32, Vec<Found>> = HashMap::new();
        for one in preparations {
            let is_member = comms.get(one.opening.0 as usize).is_some_and(|ranks| ranks.contains(&rank));
            let found = Found { one: *one, answer: Answer::default(), ended_at: 0, is_member };
            all.entry(one.file).or_default().push(found);
        }
        all.values_mut().for_each(|list| list.sort_unstable_by_key(|found| found.one));
        Self {
            rank,
            all,
            behind: HashMap::new(),
            left: preparations.len(),
            openings: HashMap::new(),
            files: HashMap::new(),
            last_ns: HashMap::new(),
            requests: HashMap::new(),
            split: HashMap::new(),
            number: 0,
            waits: BTreeMap::new(),
        }
    }

    /// Takes the next call in. `reach_bytes`: how far it writes in its file. False: later calls have nothing to do with any preparation.
    pub fn take(&mut self, call: &Call, reach_bytes: u64) -> bool {
        self.number += 1;
        if let (Function::Open, Some(comm)) = (call.function, call.comm) {
            self.opens(comm);
        }
        for completion in &call.completions {
            if let Some(begun) = self.requests.remove(&completion.request) {
                self.ended(begun, call.end_ns);
            }
        }
        if let (Some(handle), Some(file)) = (call.handle, call.file) {
            self.files.insert(handle, file);
        }
        let of_handle = call.handle.and_then(|handle| self.files.get(&handle).copied());
        if let Some(file) = call.file.or(of_handle) {
            self.follows(call, file);
            self.begins(call, Begun { file, begin_ns: call.begin_ns, reach_bytes });
        }
        self.left > 0 || !self.requests.is_empty() || !self.split.is_empty()
    }

    fn begins(&mut self, call: &Call, begun: Begun) {
        let form = match call.function.role() {
            Role::Data { form, .. } => Some(form),
            _ => None,
        };
        match (form, call.request, call.handle) {
            (Some(Form::Nonblocking), Some(request), _) => drop(self.requests.insert(request, begun)),
            (Some(Form::Nonblocking), ..) => self.goes_on(begun),
            (Some(Form::Begin), _, Some(handle)) => drop(self.split.insert(handle, begun)),
            (Some(Form::End), _, Some(handle)) => {
                let first = self.split.remove(&handle).unwrap_or(begun);
                self.ended(first, call.end_ns);
            }
            _ => self.ended(begun, call.end_ns),
        }
    }

    /// The answers, where there is something to say. What is still under way stays so.
    pub fn finish(mut self) -> Vec<(Preparation, Answer)> {
        let requests: Vec<Begun> = self.requests.drain().map(|(_, begun)| begun).collect();
        let halves: Vec<Begun> = self.split.drain().map(|(_, begun)| begun).collect();
        requests.into_iter().chain(halves).for_each(|begun| self.goes_on(begun));
        let mut answers = Vec::new();
        for list in self.all.into_values() {
            let mut last = (0, None);
            for Found { one, mut answer, ended_at, is_member } in list {
                if !is_member {
                    // What ended before an earlier one has ended before this one, too.
                    last = last.max((ended_at, answer.last_ns));
                    answer.last_ns = last.1;
                }
                answers.extend((answer != Answer::default()).then_some((one, answer)));
            }
        }
        answers
    }

    /// This rank comes to an opening that a rank prepares.
    fn opens(&mut self, comm: u32) {
        let number = self.openings.entry(comm).or_default();
        let opening = (comm, *number);
        *number += 1;
        let pending: Vec<Begun> = self.requests.values().chain(self.split.values()).copied().collect();
        for (file, list) in &mut self.all {
            let reaches = pending.iter().filter(|begun| begun.file == *file).map(|begun| begun.reach_bytes);
            let under_way_bytes = reaches.max().unwrap_or(0);
            for Found { one, answer, .. } in
                list.iter_mut().filter(|found| found.is_member && found.one.opening == opening)
            {
                answer.last_ns = self.last_ns.get(file).copied().filter(|_| one.rank != self.rank);
                answer.under_way_bytes = under_way_bytes;
                self.left -= 1;
            }
        }
    }

    /// A call on a file has ended: preparations behind its end wait for it; while it was under way they keep off what it writes.
    fn ended(&mut self, begun: Begun, end_ns: u64) {
        self.last_ns.insert(begun.file, begun.begin_ns);
        let rank = self.rank;
        let Some(list) = self.all.get_mut(&begun.file) else { return };
        let first = list.partition_point(|found| (found.one.begin_ns, found.one.rank) < (begun.begin_ns, rank));
        for found in list[first..].iter_mut().filter(|found| !found.is_member) {
            if found.one.begin_ns >= end_ns {
                (found.answer.last_ns, found.ended_at) = (Some(begun.begin_ns), self.number);
                return;
            }
            found.answer.under_way_bytes = found.answer.under_way_bytes.max(begun.reach_bytes);
        }
    }

    /// An access whose end nobody sees.
    fn goes_on(&mut self, begun: Begun) {
        self.ended(begun, u64::MAX);
    }

    /// The first call behind a preparation waits for it.
    fn follows(&mut self, call: &Call, file: u32) {
        let rank = self.rank;
        let Some(list) = self.all.get_mut(&file) else { return };
        let next = self.behind.entry(file).or_default();
        let is_behind = |found: &&mut Found| (found.one.begin_ns, found.one.rank) < (call.begin_ns, rank);
        while let Some(found) = list.get_mut(*next).filter(is_behind) {
            *next += 1;
            if !found.is_member {
                found.answer.waits = true;
                self.left -= 1;
                let ready = After { rank: found.one.rank, begin_ns: READY | found.one.begin_ns };
                self.waits.entry(call.begin_ns).or_default().push(ready);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: u32 = 1;

    fn uses(preparations: &[(u64, u32)]) -> Uses {
        let comms = [vec![0, 1], vec![0]];
        let all = preparations.iter().map(|(begin_ns, comm)| Preparation {
            begin_ns: *begin_ns,
            rank: 0,
            file: 5,
            opening: (*comm, 0),
        });
        Uses::new(&comms, OWN, &all.collect::<Vec<_>>())
    }

    fn call(function: Function, begin_ns: u64, end_ns: u64) -> Call {
        Call { handle: Some(1), ..Call::new(function, begin_ns, end_ns) }
    }

    fn open(begin_ns: u64, comm: u32) -> Call {
        Call { file: Some(5), comm: Some(comm), ..call(Function::Open, begin_ns, begin_ns + 1) }
    }

    #[test]
    fn others_wait_by_time_and_ranks_of_the_opening_by_their_own_call() {
        let mut by_time = uses(&[(100, 1)]);
        by_time.take(&open(0, 2), 0);
        by_time.take(&call(Function::WriteAt, 10, 50), 70);
        by_time.take(&call(Function::WriteAt, 60, 150), 90);
        assert!(!by_time.take(&call(Function::ReadAt, 200, 250), 0), "nothing is left to see");
        assert_eq!(by_time.waits[&200], [After { rank: 0, begin_ns: READY | 100 }]);
        let answer = Answer { last_ns: Some(10), under_way_bytes: 90, waits: true };
        assert_eq!(by_time.finish().first().map(|(_, answer)| *answer), Some(answer));

        // Clocks of hosts differ: its own opening began before the preparation did there.
        let mut member = uses(&[(100, 0)]);
        member.files.insert(1, 5);
        member.take(&call(Function::WriteAt, 10, 150), 70);
        member.take(&Call { request: Some(1), ..call(Function::IwriteAt, 160, 170) }, 80);
        member.take(&open(180, 0), 0);
        let answer = Answer { last_ns: Some(10), under_way_bytes: 80, waits: false };
        assert_eq!(member.finish().first().map(|(_, answer)| *answer), Some(answer));
    }

    #[test]
    fn what_ended_before_one_preparation_has_ended_before_the_next() {
        let mut uses = uses(&[(100, 1), (300, 1)]);
        uses.take(&open(0, 2), 0);
        uses.take(&call(Function::WriteAt, 10, 50), 70);
        let answers: Vec<_> = uses.finish().into_iter().map(|(one, answer)| (one.begin_ns, answer.last_ns)).collect();
        assert_eq!(answers, [(100, Some(10)), (300, Some(10))]);
    }
}
