//! Ranks: shared state and state of each.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::rc::Rc;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::words::{comm_self, handle, Word};

/// Maximum time that a rank waits for others before the test fails.
const WAIT_LIMIT: Duration = Duration::from_secs(20);

/// Scripted result of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptedResult {
    /// Success, as without a script.
    Success,
    /// This code, see [`crate::error_code`]; for a nonblocking data access, on completion.
    Code(i32),
    /// This code at once; nothing is posted.
    Refused(i32),
    /// Success with this number of transferred bytes.
    Bytes(u64),
    /// Success of a read that fills the whole buffer with this byte.
    Filled(u8),
}

/// Identifies messages: communicator, sender and receiver (world ranks), tag.
pub type MessageKey = (u64, usize, usize, i64);

/// Operation of a request.
#[derive(Clone)]
pub enum OutstandingOperation {
    /// Completed: bytes and code.
    Completed(u64, i32),
    /// Receive of a message, by key and sequence number; memory and its length.
    Receive((MessageKey, u64), Word, usize),
    /// Collective call: communicator and sequence number, number of ranks; function of the bytes of all ranks.
    Collective((u64, u64), usize, Rc<dyn Fn(Vec<Vec<u8>>)>),
    /// Persistent request: begins the operation, or fails with a code; the active one.
    Persistent(StartOperation, Option<Box<OutstandingOperation>>),
}

type StartOperation = Rc<dyn Fn() -> Result<OutstandingOperation, i32>>;

/// A derived type.
#[derive(Clone, Debug)]
pub struct DerivedTypeState {
    pub description: String,
    pub size: i64,
    pub committed: bool,
}

/// State shared by all ranks.
#[derive(Default)]
pub struct SharedWorldState {
    /// Sent messages that have not been received, by key and sequence number.
    pub messages: HashMap<(MessageKey, u64), Vec<u8>>,
    /// Number of sent messages by key.
    pub sent: HashMap<MessageKey, u64>,
    /// Collective calls by communicator and sequence number: bytes of each rank.
    pub collectives: HashMap<(u64, u64), BTreeMap<usize, Vec<u8>>>,
    /// A rank has panicked.
    pub failed: bool,
}

pub struct World {
    pub size: usize,
    shared: Mutex<SharedWorldState>,
    changed: Condvar,
}

impl World {
    pub fn lock(&self) -> MutexGuard<'_, SharedWorldState> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn notify(&self) {
        self.changed.notify_all();
    }
}

/// A communicator: its id, the same on all its ranks, and their world ranks.
#[derive(Clone)]
pub struct CommunicatorState {
    pub id: u64,
    pub members: Vec<usize>,
    /// Collective calls of this rank on it.
    pub calls: u64,
    pub name: String,
}

/// State of one rank.
pub struct RankContext {
    pub world: Arc<World>,
    pub rank: usize,
    /// No other ranks exist.
    pub is_alone: bool,
    pub comms: HashMap<Word, CommunicatorState>,
    pub groups: HashMap<Word, Vec<usize>>,
    /// Communicators created by MPI_Comm_create_group, by parent and members.
    pub created_groups: HashMap<(u64, Vec<usize>), u64>,
    pub types: HashMap<Word, DerivedTypeState>,
    pub infos: HashMap<Word, Vec<(String, String)>>,
    /// Open files by handle, with their names.
    pub files: HashMap<Word, String>,
    pub file_bytes: i64,
    /// Of the last seek in any file.
    pub position: i64,
    pub fatal_file_errors: bool,
    pub finalize_time: Duration,
    pub requests: HashMap<Word, OutstandingOperation>,
    /// Posted receives by key: the next one matches the next message of its key, in any order of completion.
    pub received: HashMap<MessageKey, u64>,
    memories: Vec<(String, Word, usize)>,
    log: Vec<String>,
    scripts: HashMap<String, VecDeque<ScriptedResult>>,
    next: Word,
}

thread_local! {
    static RANK: RefCell<Option<RankContext>> = const { RefCell::new(None) };
}

impl RankContext {
    fn new(world: &Arc<World>, rank: usize, is_alone: bool) -> Self {
        Self {
            world: Arc::clone(world),
            rank,
            is_alone,
            comms: HashMap::new(),
            groups: HashMap::new(),
            created_groups: HashMap::new(),
            types: HashMap::new(),
            infos: HashMap::new(),
            files: HashMap::new(),
            file_bytes: 0,
            position: 11,
            fatal_file_errors: false,
            finalize_time: Duration::ZERO,
            requests: HashMap::new(),
            received: HashMap::new(),
            memories: Vec::new(),
            log: Vec::new(),
            scripts: HashMap::new(),
            next: 0x0f00_0000,
        }
    }

    /// A new, unique handle.
    pub fn new_handle(&mut self) -> Word {
        self.next += 16;
        self.next
    }

    /// A communicator; predefined ones are created on first use.
    pub fn comm(&mut self, word: Word) -> &mut CommunicatorState {
        let (handle, rank, size) = (handle(word), self.rank, self.world.size);
        self.comms.entry(handle).or_insert_with(|| {
            if handle == comm_self() {
                CommunicatorState { id: 2 + rank as u64, members: vec![rank], calls: 0, name: "self".to_owned() }
            } else {
                CommunicatorState { id: 1, members: (0..size).collect(), calls: 0, name: "world".to_owned() }
            }
        })
    }

    pub fn log(&mut self, line: String) {
        self.log.push(line);
    }

    pub fn next_result(&mut self, name: &str) -> ScriptedResult {
        self.scripts.get_mut(name).and_then(VecDeque::pop_front).unwrap_or(ScriptedResult::Success)
    }

    /// Description of an address for the log: name of its memory and offset.
    pub fn describe_address(&self, address: Word) -> String {
        let known = self.memories.iter().find(|(_, begin, bytes)| (*begin..*begin + *bytes).contains(&address));
        known.map_or_else(|| "memory".to_owned(), |(name, begin, _)| format!("{name}+{}", address - begin))
    }
}

/// Runs `work` with the rank of this thread.
pub fn with<R>(work: impl FnOnce(&mut RankContext) -> R) -> R {
    RANK.with_borrow_mut(|rank| match rank {
        Some(rank) => work(rank),
        None => panic!("an MPI call outside beff_fake_mpi::ranks and as_rank"),
    })
}

/// As [`with`], or None outside all ranks.
pub fn try_with<R>(work: impl FnOnce(&mut RankContext) -> R) -> Option<R> {
    RANK.with_borrow_mut(|rank| rank.as_mut().map(work))
}

/// Polls `look` until it returns a value.
pub fn wait_until<R>(what: &str, mut look: impl FnMut() -> Option<R>) -> R {
    let until = Instant::now() + WAIT_LIMIT;
    loop {
        if let Some(found) = look() {
            return found;
        }
        let (world, rank) = with(|rank| (Arc::clone(&rank.world), rank.rank));
        let shared = world.lock();
        assert!(!shared.failed, "rank {rank}: another rank has panicked; this one waits in {what}");
        assert!(Instant::now() < until, "rank {rank} waits in vain in {what}");
        drop(world.changed.wait_timeout(shared, Duration::from_millis(2)));
    }
}

/// Runs `body` concurrently as each of `size` ranks, and returns the results in rank order.
///
/// # Panics
/// If a rank panics, or waits for others in vain.
pub fn ranks<R: Send>(size: usize, body: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let world = Arc::new(World { size, shared: Mutex::default(), changed: Condvar::new() });
    std::thread::scope(|scope| {
        let run = |rank: usize| {
            let (world, body) = (Arc::clone(&world), &body);
            scope.spawn(move || {
                let failed = PanicNotice(Arc::clone(&world));
                let result = run_as_rank(&world, rank, false, || body(rank));
                std::mem::forget(failed);
                result
            })
        };
        let all: Vec<_> = (0..size).map(run).collect();
        let ended: Vec<_> = all.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        ended.into_iter().map(|one| one.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    })
}

/// Dropped by a panic, it lets the other ranks end too.
struct PanicNotice(Arc<World>);

impl Drop for PanicNotice {
    fn drop(&mut self) {
        self.0.lock().failed = true;
        self.0.notify();
    }
}

/// Runs `body` as a single rank of `size`; the others do not exist.
pub fn as_rank<R>(rank: usize, size: usize, body: impl FnOnce() -> R) -> R {
    let world = Arc::new(World { size, shared: Mutex::default(), changed: Condvar::new() });
    run_as_rank(&world, rank, true, body)
}

fn run_as_rank<R>(world: &Arc<World>, rank: usize, poses: bool, body: impl FnOnce() -> R) -> R {
    RANK.set(Some(RankContext::new(world, rank, poses)));
    let result = body();
    RANK.set(None);
    result
}

/// Calls of this rank since its start or the last call of this function.
#[must_use]
pub fn take_log() -> Vec<String> {
    with(|rank| std::mem::take(&mut rank.log))
}

/// Scripts the results of the next calls of this rank to a function, for instance `File_write_at`.
pub fn script(name: &str, answers: &[ScriptedResult]) {
    with(|rank| rank.scripts.entry(name.to_owned()).or_default().extend(answers));
}

/// Names a memory for the log.
pub fn name_memory(name: &str, memory: &[u8]) {
    with(|rank| rank.memories.push((name.to_owned(), memory.as_ptr() as Word, memory.len())));
}

/// Sets the result of MPI_File_get_size.
pub fn set_file_bytes(bytes: i64) {
    with(|rank| rank.file_bytes = bytes);
}

/// The error handler of files is MPI_ERRORS_ARE_FATAL, unlike in the standard.
pub fn set_fatal_file_errors() {
    with(|rank| rank.fatal_file_errors = true);
}

/// Sets the time that MPI_Finalize takes.
pub fn set_finalize_time(time: Duration) {
    with(|rank| rank.finalize_time = time);
}
