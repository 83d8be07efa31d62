//! Ranks, what they have in common, and what each of them has.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::words::{comm_self, handle, Word};

/// How long a rank waits for the others before the test fails.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a call answers instead of success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// As if nothing were scripted.
    Fine,
    /// This code, see [`crate::error_code`]; of a data access that does not block, with its end.
    Code(i32),
    /// This code at once: nothing is under way.
    Refused(i32),
    /// Success with so many bytes moved.
    Bytes(u64),
    /// Success of a read that brings as many of this byte as it was asked for, beside each other.
    Filled(u8),
}

/// Which message: communicator, from and to (ranks of the world), tag.
pub type Key = (u64, usize, usize, i64);

/// What a request stands for.
#[derive(Clone)]
pub enum Pending {
    /// It has ended already: bytes and code.
    Ended(u64, i32),
    /// A message to be received, by its number among those of its key; memory and its length.
    Receive((Key, u64), Word, usize),
    /// A collective call: communicator and number, how many take part; what is made of what all gave.
    Meeting((u64, u64), usize, Arc<dyn Fn(Vec<Vec<u8>>)>),
}

/// A derived type.
#[derive(Clone, Debug)]
pub struct Type {
    pub told: String,
    pub size: i64,
    pub committed: bool,
}

/// What all ranks share.
#[derive(Default)]
pub struct Shared {
    /// Messages that were sent and not received, by their number among those of their key.
    pub messages: HashMap<(Key, u64), Vec<u8>>,
    /// How many were sent of each key.
    pub sent: HashMap<Key, u64>,
    /// Collective calls by communicator and number: what each rank gave.
    pub meetings: HashMap<(u64, u64), BTreeMap<usize, Vec<u8>>>,
    /// A rank has ended with a panic.
    pub failed: bool,
}

pub struct World {
    pub size: usize,
    shared: Mutex<Shared>,
    changed: Condvar,
}

impl World {
    pub fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn tell(&self) {
        self.changed.notify_all();
    }
}

/// A communicator: its number, the same on all its ranks, and their ranks in the world.
#[derive(Clone)]
pub struct Comm {
    pub id: u64,
    pub members: Vec<usize>,
    /// Collective calls of this rank on it.
    pub calls: u64,
    pub name: String,
}

/// What one rank has.
pub struct Rank {
    pub world: Arc<World>,
    pub rank: usize,
    /// Nobody else comes.
    pub poses: bool,
    pub comms: HashMap<Word, Comm>,
    pub groups: HashMap<Word, Vec<usize>>,
    pub types: HashMap<Word, Type>,
    pub infos: HashMap<Word, Vec<(String, String)>>,
    /// Files that are open, by name.
    pub files: HashMap<Word, String>,
    pub file_bytes: i64,
    pub requests: HashMap<Word, Pending>,
    /// Receives that were begun: the next one is for the next message of its key, whatever is completed first.
    pub received: HashMap<Key, u64>,
    memories: Vec<(String, Word, usize)>,
    log: Vec<String>,
    scripts: HashMap<String, VecDeque<Answer>>,
    next: Word,
}

thread_local! {
    static RANK: RefCell<Option<Rank>> = const { RefCell::new(None) };
}

impl Rank {
    fn new(world: &Arc<World>, rank: usize, poses: bool) -> Self {
        Self {
            world: Arc::clone(world),
            rank,
            poses,
            comms: HashMap::new(),
            groups: HashMap::new(),
            types: HashMap::new(),
            infos: HashMap::new(),
            files: HashMap::new(),
            file_bytes: 0,
            requests: HashMap::new(),
            received: HashMap::new(),
            memories: Vec::new(),
            log: Vec::new(),
            scripts: HashMap::new(),
            next: 0x0f00_0000,
        }
    }

    /// A handle that nothing else has.
    pub fn handle(&mut self) -> Word {
        self.next += 16;
        self.next
    }

    /// A communicator; the predefined ones are there when they are first used.
    pub fn comm(&mut self, word: Word) -> &mut Comm {
        let (handle, rank, size) = (handle(word), self.rank, self.world.size);
        self.comms.entry(handle).or_insert_with(|| {
            if handle == comm_self() {
                Comm { id: 2 + rank as u64, members: vec![rank], calls: 0, name: "self".to_owned() }
            } else {
                Comm { id: 1, members: (0..size).collect(), calls: 0, name: "world".to_owned() }
            }
        })
    }

    pub fn log(&mut self, line: String) {
        self.log.push(line);
    }

    /// The answer to the next call of this name.
    pub fn answer(&mut self, name: &str) -> Answer {
        self.scripts.get_mut(name).and_then(VecDeque::pop_front).unwrap_or(Answer::Fine)
    }

    /// An address as it is written down: the name of the memory that it is in, and the distance from its begin.
    pub fn place(&self, address: Word) -> String {
        let known = self.memories.iter().find(|(_, begin, bytes)| (*begin..*begin + *bytes).contains(&address));
        known.map_or_else(|| "memory".to_owned(), |(name, begin, _)| format!("{name}+{}", address - begin))
    }
}

/// With this thread's rank.
pub fn with<R>(work: impl FnOnce(&mut Rank) -> R) -> R {
    RANK.with_borrow_mut(|rank| match rank {
        Some(rank) => work(rank),
        None => panic!("a call of MPI outside of beff_fake_mpi::ranks and pose"),
    })
}

/// As [`with`], or None outside of all ranks.
pub fn perhaps<R>(work: impl FnOnce(&mut Rank) -> R) -> Option<R> {
    RANK.with_borrow_mut(|rank| rank.as_mut().map(work))
}

/// Waits until `look` has found something.
pub fn await_others<R>(what: &str, mut look: impl FnMut() -> Option<R>) -> R {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        let (world, rank) = with(|rank| (Arc::clone(&rank.world), rank.rank));
        let shared = world.lock();
        assert!(!shared.failed, "rank {rank}: another rank has ended with a panic; this one waits in {what}");
        assert!(Instant::now() < until, "rank {rank} waits for ever in {what}");
        drop(world.changed.wait_timeout(shared, Duration::from_millis(2)));
    }
}

/// Runs `body` as each of `size` ranks at the same time, and returns what they return, in the order of ranks.
///
/// # Panics
/// If one of them does, or waits for others that do not come.
pub fn ranks<R: Send>(size: usize, body: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let world = Arc::new(World { size, shared: Mutex::default(), changed: Condvar::new() });
    std::thread::scope(|scope| {
        let run = |rank: usize| {
            let (world, body) = (Arc::clone(&world), &body);
            scope.spawn(move || {
                let failed = Failed(Arc::clone(&world));
                let result = on_this_thread(&world, rank, false, || body(rank));
                std::mem::forget(failed);
                result
            })
        };
        let all: Vec<_> = (0..size).map(run).collect();
        let ended: Vec<_> = all.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        ended.into_iter().map(|one| one.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    })
}

/// Dropped by a panic it lets the other ranks end too.
struct Failed(Arc<World>);

impl Drop for Failed {
    fn drop(&mut self) {
        self.0.lock().failed = true;
        self.0.tell();
    }
}

/// Runs `body` as one rank of `size` to which nobody else comes.
pub fn pose<R>(rank: usize, size: usize, body: impl FnOnce() -> R) -> R {
    let world = Arc::new(World { size, shared: Mutex::default(), changed: Condvar::new() });
    on_this_thread(&world, rank, true, body)
}

fn on_this_thread<R>(world: &Arc<World>, rank: usize, poses: bool, body: impl FnOnce() -> R) -> R {
    RANK.set(Some(Rank::new(world, rank, poses)));
    let result = body();
    RANK.set(None);
    result
}

/// What this rank has called since it began or last asked.
#[must_use]
pub fn take_log() -> Vec<String> {
    with(|rank| std::mem::take(&mut rank.log))
}

/// The next calls of this rank by this name, for instance `File_write_at`, answer these.
pub fn script(name: &str, answers: &[Answer]) {
    with(|rank| rank.scripts.entry(name.to_owned()).or_default().extend(answers));
}

/// Addresses in this memory are written down by this name.
pub fn name_memory(name: &str, memory: &[u8]) {
    with(|rank| rank.memories.push((name.to_owned(), memory.as_ptr() as Word, memory.len())));
}

/// What MPI_File_get_size answers.
pub fn set_file_bytes(bytes: i64) {
    with(|rank| rank.file_bytes = bytes);
}
