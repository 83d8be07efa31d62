//! Ranks that are threads: collective calls and messages in memory, with the time that ranks wait for each other.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use beff_ffi::{Comm, RankGroup};

use super::script;
use super::Script;

/// A communicator, identified by the splits that created it.
type CommunicatorPath = Vec<u64>;

/// Messages from one rank to another that are not yet received, each with the time at which it was sent.
type Messages = VecDeque<(Vec<u8>, Duration)>;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum WaitCondition {
    Collective(CommunicatorPath, u64),
    Message(CommunicatorPath, u64, u64),
}

#[derive(Debug, Default)]
struct CollectiveCall {
    call: &'static str,
    contributions: BTreeMap<u64, (Vec<u8>, Duration)>,
    ranks: u64,
    /// Ranks that have left the call.
    left: u64,
}

#[derive(Debug)]
enum RankState {
    Runs,
    Waits(WaitCondition),
    Finished,
}

#[derive(Debug)]
struct SimulatedState {
    collective_calls: BTreeMap<(CommunicatorPath, u64), CollectiveCall>,
    messages: BTreeMap<(CommunicatorPath, u64, u64), Messages>,
    rank_states: Vec<RankState>,
    failed: Option<String>,
}

impl SimulatedState {
    fn is_satisfied(&self, awaited: &WaitCondition) -> bool {
        match awaited {
            WaitCondition::Collective(group, number) => self
                .collective_calls
                .get(&(group.clone(), *number))
                .is_some_and(|meeting| meeting.contributions.len() as u64 == meeting.ranks),
            WaitCondition::Message(group, from, to) => {
                self.messages.get(&(group.clone(), *from, *to)).is_some_and(|queue| !queue.is_empty())
            }
        }
    }

    fn is_deadlocked(&self) -> bool {
        self.rank_states.iter().all(|standing| match standing {
            RankState::Runs => false,
            RankState::Waits(awaited) => !self.is_satisfied(awaited),
            RankState::Finished => true,
        })
    }

    fn describe_ranks(&self) -> String {
        let of = |standing: &RankState| match standing {
            RankState::Waits(WaitCondition::Collective(group, number)) => {
                let meeting = &self.collective_calls[&(group.clone(), *number)];
                format!("waits in {} (number {number} of {group:?})", meeting.call)
            }
            RankState::Waits(WaitCondition::Message(_, from, _)) => format!("waits for a message of rank {from}"),
            RankState::Runs => "runs".to_owned(),
            RankState::Finished => "has left".to_owned(),
        };
        let all = self.rank_states.iter().enumerate().map(|(rank, standing)| format!("rank {rank} {}", of(standing)));
        all.collect::<Vec<_>>().join("; ")
    }
}

#[derive(Debug)]
struct SimulatedWorld {
    state: Mutex<SimulatedState>,
    changed: Condvar,
}

impl SimulatedWorld {
    fn lock(&self) -> MutexGuard<'_, SimulatedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, me: usize, awaited: &WaitCondition) -> MutexGuard<'_, SimulatedState> {
        let mut state = self.lock();
        state.rank_states[me] = RankState::Waits(awaited.clone());
        loop {
            if state.is_satisfied(awaited) {
                state.rank_states[me] = RankState::Runs;
                return state;
            }
            if state.failed.is_none() && state.is_deadlocked() {
                state.failed = Some(state.describe_ranks());
                self.changed.notify_all();
            }
            if let Some(why) = state.failed.clone() {
                drop(state);
                panic!("deadlock: {why}");
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Collective calls of a rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Their number.
    pub collective_calls: u64,
    /// Bytes that the rank contributed.
    pub contributed_bytes: u64,
    /// Bytes that the rank receives at its place in a binomial tree, or from all in a gather.
    pub received_bytes: u64,
}

impl Traffic {
    /// What was added since then.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            collective_calls: self.collective_calls - before.collective_calls,
            contributed_bytes: self.contributed_bytes - before.contributed_bytes,
            received_bytes: self.received_bytes - before.received_bytes,
        }
    }
}

thread_local! {
    static TRAFFIC: Cell<Traffic> =
        const { Cell::new(Traffic { collective_calls: 0, contributed_bytes: 0, received_bytes: 0 }) };
}

/// Collective calls of this rank up to now, on all communicators.
#[must_use]
pub fn traffic() -> Traffic {
    TRAFFIC.get()
}

/// One rank of one communicator.
#[derive(Debug)]
struct ThreadRank {
    world: Arc<SimulatedWorld>,
    /// Rank in the world.
    me: usize,
    group: CommunicatorPath,
    rank: u64,
    size: u64,
    collective_count: Cell<u64>,
}

impl ThreadRank {
    fn enter_collective(&self, call: &'static str, mine: &[u8]) -> u64 {
        let number = self.collective_count.replace(self.collective_count.get() + 1);
        let mut traffic = TRAFFIC.get();
        traffic.collective_calls += 1;
        traffic.contributed_bytes += mine.len() as u64;
        TRAFFIC.set(traffic);
        let now = script::now().unwrap_or_default();
        let mut state = self.world.lock();
        let meeting = state.collective_calls.entry((self.group.clone(), number)).or_default();
        if meeting.contributions.is_empty() {
            (meeting.call, meeting.ranks) = (call, self.size);
        }
        if meeting.call != call {
            let why = format!("rank {} calls {call}, others {}, number {number}", self.me, meeting.call);
            state.failed = Some(why.clone());
            self.world.changed.notify_all();
            drop(state);
            panic!("{why}");
        }
        meeting.contributions.insert(self.rank, (mine.to_vec(), now));
        self.world.changed.notify_all();
        number
    }

    /// Contributions of all ranks, at the time of the last one.
    fn leave_collective(&self, number: u64) -> Vec<Vec<u8>> {
        let key = (self.group.clone(), number);
        let mut state = self.world.wait(self.me, &WaitCondition::Collective(self.group.clone(), number));
        let Some(meeting) = state.collective_calls.get_mut(&key) else { return Vec::new() };
        let last = meeting.contributions.values().map(|(_, at)| *at).max().unwrap_or_default();
        let all: Vec<Vec<u8>> = meeting.contributions.values().map(|(bytes, _)| bytes.clone()).collect();
        let received_bytes = received_bytes(meeting.call, self.rank, &all);
        meeting.left += 1;
        if meeting.left == meeting.ranks {
            state.collective_calls.remove(&key);
        }
        drop(state);
        let mut traffic = TRAFFIC.get();
        traffic.received_bytes += received_bytes;
        TRAFFIC.set(traffic);
        script::wait_until(last);
        all
    }
}

/// What `rank` receives in a call with these contributions: all others in a gather; else those of its children in a binomial tree, each as
/// long as the longest (values that are combined stay as long), and what the root of a broadcast has.
fn received_bytes(call: &str, rank: u64, all: &[Vec<u8>]) -> u64 {
    let lengths = || all.iter().map(|bytes| bytes.len() as u64);
    let (sum, longest, ranks) = (lengths().sum::<u64>(), lengths().max().unwrap_or(0), all.len() as u64);
    let own = all.get(rank as usize).map_or(0, |bytes| bytes.len() as u64);
    match call {
        "gather" if rank > 0 => 0,
        "gather" | "allgather" => sum - own,
        "bcast" => longest - own,
        _ => {
            let is_child =
                |distance: &u64| rank + distance < ranks && rank & distance == 0 && rank & (distance - 1) == 0;
            longest * (0..u64::BITS).map(|bit| 1 << bit).filter(is_child).count() as u64
        }
    }
}

impl RankGroup for ThreadRank {
    fn rank(&self) -> u64 {
        self.rank
    }

    fn size(&self) -> u64 {
        self.size
    }

    /// All ranks leave at the time of the last one, plus the cost of the call.
    fn allgather(&self, call: &'static str, mine: &[u8]) -> Vec<Vec<u8>> {
        let number = self.enter_collective(call, mine);
        let all = self.leave_collective(number);
        script::scripted_call(call, "");
        all
    }

    fn post_allgather(&self, mine: &[u8]) -> u64 {
        let number = self.enter_collective("agreement", mine);
        script::scripted_call("tell", "");
        number
    }

    fn complete_allgather(&self, number: u64) -> Vec<Vec<u8>> {
        let all = self.leave_collective(number);
        script::scripted_call("hear", "");
        all
    }

    fn split(&self, number: Option<u64>) -> Option<Box<dyn RankGroup>> {
        let met = self.collective_count.get();
        let all = self.allgather("split", &number.map_or(u64::MAX, |number| number).to_le_bytes());
        let own = number?;
        let of = |rank: &u64| all[*rank as usize] == own.to_le_bytes();
        let size = (0..self.size).filter(of).count() as u64;
        let rank = (0..self.rank).filter(of).count() as u64;
        let group = self.group.iter().copied().chain([met, own]).collect();
        let world = Arc::clone(&self.world);
        Some(Box::new(Self { world, me: self.me, group, rank, size, collective_count: 0.into() }))
    }

    fn send(&self, to: u64, bytes: &[u8]) {
        script::scripted_call("send", &format!("{} to {to}", bytes.len()));
        let key = (self.group.clone(), self.rank, to);
        let at = script::now().unwrap_or_default();
        self.world.lock().messages.entry(key).or_default().push_back((bytes.to_vec(), at));
        self.world.changed.notify_all();
    }

    fn receive(&self, from: u64) -> Vec<u8> {
        let key = (self.group.clone(), from, self.rank);
        let awaited = WaitCondition::Message(self.group.clone(), from, self.rank);
        let mut state = self.world.wait(self.me, &awaited);
        let (bytes, at) = state.messages.get_mut(&key).and_then(VecDeque::pop_front).unwrap_or_default();
        drop(state);
        script::wait_until(at);
        script::scripted_call("receive", &format!("{} from {from}", bytes.len()));
        bytes
    }
}

/// Runs `work` on `ranks` ranks, each with the script for its number; returns the results in rank order. Time begins at 0.
///
/// # Panics
/// Panics of the first rank that panics; a deadlock.
pub fn run_ranks<T: Send>(
    ranks: u64,
    scripts: impl Fn(u64) -> Script + Sync,
    work: impl Fn(&Comm) -> T + Sync,
) -> Vec<T> {
    let standing = (0..ranks).map(|_| RankState::Runs).collect();
    let state = SimulatedState {
        collective_calls: BTreeMap::new(),
        messages: BTreeMap::new(),
        rank_states: standing,
        failed: None,
    };
    let world = Arc::new(SimulatedWorld { state: Mutex::new(state), changed: Condvar::new() });
    let one = |rank: u64| {
        script::begin(scripts(rank));
        let (shared, me) = (Arc::clone(&world), rank as usize);
        let own = ThreadRank { world: shared, me, group: Vec::new(), rank, size: ranks, collective_count: 0.into() };
        let done = catch_unwind(AssertUnwindSafe(|| work(&Comm::from_ranks(Box::new(own)))));
        let mut state = world.lock();
        state.rank_states[me] = RankState::Finished;
        if done.is_err() && state.failed.is_none() {
            state.failed = Some(format!("rank {rank} has panicked"));
        }
        world.changed.notify_all();
        done
    };
    let all: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..ranks).map(|rank| scope.spawn(move || one(rank))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(Err)).collect()
    });
    all.into_iter().map(|done| done.unwrap_or_else(|panic| resume_unwind(panic))).collect()
}
