//! Ranks that are threads: collective calls and messages in memory, with the time that ranks wait for each other.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use beff_ffi::{Comm, Ranks};

use super::script;
use super::Script;

/// A communicator: how it came out of those before it.
type Group = Vec<u64>;

/// Messages from one rank to another that were not received yet, each with the time at which it was sent.
type Messages = VecDeque<(Vec<u8>, Duration)>;

/// What a rank waits for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Awaited {
    Meeting(Group, u64),
    Message(Group, u64, u64),
}

#[derive(Debug, Default)]
struct Meeting {
    call: &'static str,
    brought: BTreeMap<u64, (Vec<u8>, Duration)>,
    ranks: u64,
    /// Ranks that have left it.
    left: u64,
}

#[derive(Debug)]
enum Standing {
    Runs,
    Waits(Awaited),
    Gone,
}

#[derive(Debug)]
struct State {
    meetings: BTreeMap<(Group, u64), Meeting>,
    messages: BTreeMap<(Group, u64, u64), Messages>,
    standing: Vec<Standing>,
    failed: Option<String>,
}

impl State {
    fn has_come(&self, awaited: &Awaited) -> bool {
        match awaited {
            Awaited::Meeting(group, number) => self
                .meetings
                .get(&(group.clone(), *number))
                .is_some_and(|meeting| meeting.brought.len() as u64 == meeting.ranks),
            Awaited::Message(group, from, to) => {
                self.messages.get(&(group.clone(), *from, *to)).is_some_and(|queue| !queue.is_empty())
            }
        }
    }

    /// Nobody can go on.
    fn is_stuck(&self) -> bool {
        self.standing.iter().all(|standing| match standing {
            Standing::Runs => false,
            Standing::Waits(awaited) => !self.has_come(awaited),
            Standing::Gone => true,
        })
    }

    fn whereabouts(&self) -> String {
        let of = |standing: &Standing| match standing {
            Standing::Waits(Awaited::Meeting(group, number)) => {
                let meeting = &self.meetings[&(group.clone(), *number)];
                format!("waits in {} (number {number} of {group:?})", meeting.call)
            }
            Standing::Waits(Awaited::Message(_, from, _)) => format!("waits for a message of rank {from}"),
            Standing::Runs => "runs".to_owned(),
            Standing::Gone => "has left".to_owned(),
        };
        let all = self.standing.iter().enumerate().map(|(rank, standing)| format!("rank {rank} {}", of(standing)));
        all.collect::<Vec<_>>().join("; ")
    }
}

#[derive(Debug)]
struct World {
    state: Mutex<State>,
    changed: Condvar,
}

impl World {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until it has come.
    fn wait(&self, me: usize, awaited: &Awaited) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        state.standing[me] = Standing::Waits(awaited.clone());
        loop {
            if state.has_come(awaited) {
                state.standing[me] = Standing::Runs;
                return state;
            }
            if state.failed.is_none() && state.is_stuck() {
                state.failed = Some(state.whereabouts());
                self.changed.notify_all();
            }
            if let Some(why) = state.failed.clone() {
                drop(state);
                panic!("nobody can go on: {why}");
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// One rank of one group.
#[derive(Debug)]
struct Rank {
    world: Arc<World>,
    /// Its number in the world.
    me: usize,
    group: Group,
    rank: u64,
    size: u64,
    /// Meetings so far.
    met: std::cell::Cell<u64>,
}

impl Rank {
    fn bring(&self, call: &'static str, mine: &[u8]) -> u64 {
        let number = self.met.replace(self.met.get() + 1);
        let now = script::now().unwrap_or_default();
        let mut state = self.world.lock();
        let meeting = state.meetings.entry((self.group.clone(), number)).or_default();
        if meeting.brought.is_empty() {
            (meeting.call, meeting.ranks) = (call, self.size);
        }
        if meeting.call != call {
            let why = format!("rank {} comes to {call}, others to {}, number {number}", self.me, meeting.call);
            state.failed = Some(why.clone());
            self.world.changed.notify_all();
            drop(state);
            panic!("{why}");
        }
        meeting.brought.insert(self.rank, (mine.to_vec(), now));
        self.world.changed.notify_all();
        number
    }

    /// What all have brought, at the time of the last one.
    fn take(&self, number: u64) -> Vec<Vec<u8>> {
        let key = (self.group.clone(), number);
        let mut state = self.world.wait(self.me, &Awaited::Meeting(self.group.clone(), number));
        let Some(meeting) = state.meetings.get_mut(&key) else { return Vec::new() };
        let last = meeting.brought.values().map(|(_, at)| *at).max().unwrap_or_default();
        let all = meeting.brought.values().map(|(bytes, _)| bytes.clone()).collect();
        meeting.left += 1;
        if meeting.left == meeting.ranks {
            state.meetings.remove(&key);
        }
        drop(state);
        script::wait_until(last);
        all
    }
}

impl Ranks for Rank {
    fn rank(&self) -> u64 {
        self.rank
    }

    fn size(&self) -> u64 {
        self.size
    }

    /// All leave at the time of the last one, and then it takes its own time.
    fn meet(&self, call: &'static str, mine: &[u8]) -> Vec<Vec<u8>> {
        let number = self.bring(call, mine);
        let all = self.take(number);
        script::passes(call, "");
        all
    }

    fn begin(&self, mine: &[u8]) -> u64 {
        let number = self.bring("agreement", mine);
        script::passes("tell", "");
        number
    }

    fn finish(&self, number: u64) -> Vec<Vec<u8>> {
        let all = self.take(number);
        script::passes("hear", "");
        all
    }

    fn split(&self, number: Option<u64>) -> Option<Box<dyn Ranks>> {
        let met = self.met.get();
        let all = self.meet("split", &number.map_or(u64::MAX, |number| number).to_le_bytes());
        let own = number?;
        let of = |rank: &u64| all[*rank as usize] == own.to_le_bytes();
        let size = (0..self.size).filter(of).count() as u64;
        let rank = (0..self.rank).filter(of).count() as u64;
        let group = self.group.iter().copied().chain([met, own]).collect();
        let world = Arc::clone(&self.world);
        Some(Box::new(Self { world, me: self.me, group, rank, size, met: 0.into() }))
    }

    fn send(&self, to: u64, bytes: &[u8]) {
        script::passes("send", &format!("{} to {to}", bytes.len()));
        let key = (self.group.clone(), self.rank, to);
        let at = script::now().unwrap_or_default();
        self.world.lock().messages.entry(key).or_default().push_back((bytes.to_vec(), at));
        self.world.changed.notify_all();
    }

    fn receive(&self, from: u64) -> Vec<u8> {
        let key = (self.group.clone(), from, self.rank);
        let awaited = Awaited::Message(self.group.clone(), from, self.rank);
        let mut state = self.world.wait(self.me, &awaited);
        let (bytes, at) = state.messages.get_mut(&key).and_then(VecDeque::pop_front).unwrap_or_default();
        drop(state);
        script::wait_until(at);
        script::passes("receive", &format!("{} from {from}", bytes.len()));
        bytes
    }
}

/// Runs `work` on so many ranks, each with the script that it has by its number; what each came to, in order. Time begins at 0.
///
/// # Panics
/// As the first rank that does; and where nobody can go on any more.
pub fn play<T: Send>(ranks: u64, scripts: impl Fn(u64) -> Script + Sync, work: impl Fn(&Comm) -> T + Sync) -> Vec<T> {
    let standing = (0..ranks).map(|_| Standing::Runs).collect();
    let state = State { meetings: BTreeMap::new(), messages: BTreeMap::new(), standing, failed: None };
    let world = Arc::new(World { state: Mutex::new(state), changed: Condvar::new() });
    let one = |rank: u64| {
        script::begin(scripts(rank));
        let (shared, me) = (Arc::clone(&world), rank as usize);
        let own = Rank { world: shared, me, group: Vec::new(), rank, size: ranks, met: 0.into() };
        let done = catch_unwind(AssertUnwindSafe(|| work(&Comm::of(Box::new(own)))));
        let mut state = world.lock();
        state.standing[me] = Standing::Gone;
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
