//! Numbers of files, types, communicators and hints, for all threads. Every dictionary event has the time of its call, and a call only
//! uses entries that are not later than itself: a reader in time order sees entries before their uses.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hasher};
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use beff_trace::raw::event;
use beff_trace::Datatype;

use crate::mpi::Word;
use crate::thread::is_inside_call;
use crate::thread_buffer::ThreadBuffer;

/// Number and tick of an entry.
type DictionaryEntry = (u32, u64);

struct OpenFileEntry {
    number: u32,
    path: Option<String>,
}

/// Closed files that are checked at the next open: each costs a request to the file server.
const MAX_CLOSED: usize = 4;

/// Dictionary of handles; see the module.
#[derive(Default)]
pub struct HandleDictionary {
    files: HashMap<Word, OpenFileEntry>,
    open_count: u32,
    /// The most recent files that were closed and not reopened.
    closed: VecDeque<String>,
    /// Types by handle.
    types_by_handle: HashMap<Word, DictionaryEntry>,
    /// All entries by a hash of their content.
    by_content: HashMap<[u64; 2], DictionaryEntry>,
    next: [u32; 5],
    /// Components examined for the type that is being decoded.
    pub component_count: usize,
    /// Encoded content of the entry to be looked up.
    pub scratch: Vec<u8>,
}

static DICTIONARY: LazyLock<Mutex<HandleDictionary>> = LazyLock::new(Mutex::default);
/// Incremented when cached handles of threads may be invalid.
pub static GENERATION: AtomicU32 = AtomicU32::new(1);
static KNOWN_TYPES: AtomicUsize = AtomicUsize::new(0);

pub fn lock() -> MutexGuard<'static, HandleDictionary> {
    DICTIONARY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The kind of an entry.
#[derive(Clone, Copy)]
pub enum EntryKind {
    Type = 1,
    Comm = 2,
    Info = 3,
    Storage = 4,
}

impl HandleDictionary {
    /// The number of the entry in `scratch`; `put` encodes it if it is new or known only after `tick`.
    pub fn number_entry(
        &mut self,
        kind: EntryKind,
        tick: u64,
        put: impl FnOnce(&mut Vec<u8>, u32),
        lane: &mut ThreadBuffer,
    ) -> u32 {
        // The number is not part of the content, which is hashed with number 0 and encoded again if new.
        let hash = |salt: u64| {
            let mut hasher = DefaultHasher::new();
            hasher.write_u64(salt);
            hasher.write_u8(kind as u8);
            hasher.write(&self.scratch);
            hasher.finish()
        };
        let key = [hash(1), hash(2)];
        if let Some((id, _)) = self.by_content.get(&key).filter(|(_, since)| *since <= tick) {
            return *id;
        }
        let id = self.next[kind as usize];
        self.next[kind as usize] += 1;
        self.by_content.insert(key, (id, tick));
        let mut out = Vec::new();
        put(&mut out, id);
        lane.record_event(&out, tick);
        id
    }

    pub fn file_number(&self, handle: Word) -> Option<u32> {
        self.files.get(&handle).map(|opening| opening.number)
    }

    pub fn type_number(&mut self, datatype: &Datatype, tick: u64, lane: &mut ThreadBuffer) -> u32 {
        self.scratch.clear();
        event::put_datatype(&mut self.scratch, datatype);
        self.number_entry(EntryKind::Type, tick, |out, id| event::put_type(out, tick, id, datatype), lane)
    }

    pub fn by_handle(&self, handle: Word, tick: u64) -> Option<u32> {
        self.types_by_handle.get(&handle).filter(|(_, since)| *since <= tick).map(|(id, _)| *id)
    }

    pub fn remember_type(&mut self, handle: Word, id: u32, tick: u64) {
        self.types_by_handle.insert(handle, (id, tick));
        KNOWN_TYPES.store(self.types_by_handle.len(), Ordering::Relaxed);
    }
}

/// Numbers an opening. `handle` is given if the call succeeded; its absolute `path`, if this process checks whether
/// the file disappears.
pub fn file_opened(handle: Option<Word>, path: Option<&str>) -> u32 {
    let mut shared = lock();
    shared.open_count += 1;
    let number = shared.open_count;
    if let Some(handle) = handle {
        shared.closed.retain(|closed| path != Some(closed));
        shared.files.insert(handle, OpenFileEntry { number, path: path.map(str::to_owned) });
    }
    GENERATION.fetch_add(1, Ordering::Release);
    number
}

/// Removes a file handle from this opening, unless another thread's opening has reused it.
pub fn file_closed(handle: Word, number: Option<u32>) {
    let mut shared = lock();
    if number.is_some() && shared.files.get(&handle).map(|opening| opening.number) == number {
        let path = shared.files.remove(&handle).and_then(|opening| opening.path);
        if let Some(path) = path.filter(|path| !shared.closed.contains(path)) {
            if shared.closed.len() == MAX_CLOSED {
                shared.closed.pop_front();
            }
            shared.closed.push_back(path);
        }
    }
    drop(shared);
    GENERATION.fetch_add(1, Ordering::Release);
}

pub fn file_deleted(path: &str) {
    lock().closed.retain(|closed| closed != path);
}

/// Paths of closed files that no longer exist. Each is returned once.
pub fn take_missing_files() -> Vec<String> {
    let closed = std::mem::take(&mut lock().closed);
    // Without the lock, because a file server may be slow.
    let (gone, there): (Vec<_>, Vec<_>) = closed.into_iter().partition(|path| {
        Path::new(path).symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
    });
    let mut shared = lock();
    there.into_iter().rev().for_each(|path| shared.closed.push_front(path));
    gone
}

/// Called before a type handle is freed.
#[inline(always)]
pub fn type_freed(address: Word) {
    if KNOWN_TYPES.load(Ordering::Relaxed) > 0 && address != 0 {
        forget_type(address);
    }
}

#[cold]
fn forget_type(address: Word) {
    // SAFETY: the program passes the address of a handle to MPI_Type_free.
    let handle = unsafe { crate::mpi::handle_at(address, 0) };
    // The library frees internal types while this thread holds the lock; those are not in the dictionary.
    if let Ok(mut shared) = DICTIONARY.try_lock() {
        if shared.types_by_handle.remove(&handle).is_some() {
            GENERATION.fetch_add(1, Ordering::Release);
        }
    } else if !is_inside_call() {
        lock().types_by_handle.remove(&handle);
        GENERATION.fetch_add(1, Ordering::Release);
    }
}
