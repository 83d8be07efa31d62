//! Numbers of files, types, communicators and hints, for all threads. Every event of the dictionary has the time of the call that it
//! is for, and a call may only use an entry that is not later than itself: so reading in the order of times meets entries first.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hasher};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use beff_trace::raw::event;
use beff_trace::Type;

use crate::lane::Lane;
use crate::mpi::Word;
use crate::storage::without_driver;
use crate::thread::inside;

/// Number and tick of an entry.
type Entry = (u32, u64);

/// A file that was opened: its name then, and one that means it in any working directory.
#[derive(Clone)]
struct Named {
    name: String,
    path: PathBuf,
}

struct Opening {
    number: u32,
    file: Option<Named>,
}

/// Closed files that are looked for when another one is opened: each costs a request to the server of the files.
const MOST_CLOSED: usize = 4;

/// See the module.
#[derive(Default)]
pub struct Dictionary {
    files: HashMap<Word, Opening>,
    openings: u32,
    /// Files that were closed and not opened again, the last ones.
    closed: VecDeque<Named>,
    /// Types by handle.
    handles: HashMap<Word, Entry>,
    /// Everything by what it is.
    known: HashMap<[u64; 2], Entry>,
    next: [u32; 5],
    /// Parts of a type that were looked at, as long as one is decoded.
    pub parts: usize,
    /// What an entry that is looked up says, encoded.
    pub scratch: Vec<u8>,
}

static SHARED: LazyLock<Mutex<Dictionary>> = LazyLock::new(Mutex::default);
/// Changes when what threads remember may be wrong.
pub static GENERATION: AtomicU32 = AtomicU32::new(1);
static TYPES: AtomicUsize = AtomicUsize::new(0);

/// The dictionary, for one thread at a time.
pub fn lock() -> MutexGuard<'static, Dictionary> {
    SHARED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The kind of an entry.
#[derive(Clone, Copy)]
pub enum Kind {
    Type = 1,
    Comm = 2,
    Info = 3,
    Storage = 4,
}

impl Dictionary {
    /// The number of what `bytes` say, which is written by `put` if it is new or known only later than `tick`.
    pub fn number(&mut self, kind: Kind, tick: u64, put: impl FnOnce(&mut Vec<u8>, u32), lane: &mut Lane) -> u32 {
        // The number is not part of what it is: encoded with 0, hashed, and encoded again if it is new.
        let hash = |salt: u64| {
            let mut hasher = DefaultHasher::new();
            hasher.write_u64(salt);
            hasher.write_u8(kind as u8);
            hasher.write(&self.scratch);
            hasher.finish()
        };
        let key = [hash(1), hash(2)];
        if let Some((id, _)) = self.known.get(&key).filter(|(_, since)| *since <= tick) {
            return *id;
        }
        let id = self.next[kind as usize];
        self.next[kind as usize] += 1;
        self.known.insert(key, (id, tick));
        let mut out = Vec::new();
        put(&mut out, id);
        lane.event(&out, tick);
        id
    }

    /// The number of an opening.
    pub fn file(&self, handle: Word) -> Option<u32> {
        self.files.get(&handle).map(|opening| opening.number)
    }

    /// The number of a type.
    pub fn datatype(&mut self, datatype: &Type, tick: u64, lane: &mut Lane) -> u32 {
        self.scratch.clear();
        event::put_datatype(&mut self.scratch, datatype);
        self.number(Kind::Type, tick, |out, id| event::put_type(out, tick, id, datatype), lane)
    }

    /// A type that was met under this handle.
    pub fn by_handle(&self, handle: Word, tick: u64) -> Option<u32> {
        self.handles.get(&handle).filter(|(_, since)| *since <= tick).map(|(id, _)| *id)
    }

    /// Remembers the handle of a type.
    pub fn remember(&mut self, handle: Word, id: u32, tick: u64) {
        self.handles.insert(handle, (id, tick));
        TYPES.store(self.handles.len(), Ordering::Relaxed);
    }
}

/// A number for an opening. `handle` is that of the file, if the call succeeded; `name`, if this process is to see when it is gone.
pub fn opened(handle: Option<Word>, name: Option<&str>) -> u32 {
    let file = name
        .map(without_driver)
        .and_then(|name| Some(Named { name: name.to_owned(), path: std::path::absolute(name).ok()? }));
    let mut shared = lock();
    shared.openings += 1;
    let number = shared.openings;
    if let Some(handle) = handle {
        shared.closed.retain(|closed| file.as_ref().is_none_or(|file| file.path != closed.path));
        shared.files.insert(handle, Opening { number, file });
    }
    GENERATION.fetch_add(1, Ordering::Release);
    number
}

/// A file handle is no longer that of this opening. It may be that of another one already, which another thread has made since.
pub fn closed(handle: Word, number: Option<u32>) {
    let mut shared = lock();
    if number.is_some() && shared.files.get(&handle).map(|opening| opening.number) == number {
        let file = shared.files.remove(&handle).and_then(|opening| opening.file);
        if let Some(file) = file.filter(|file| shared.closed.iter().all(|closed| closed.path != file.path)) {
            if shared.closed.len() == MOST_CLOSED {
                shared.closed.pop_front();
            }
            shared.closed.push_back(file);
        }
    }
    drop(shared);
    GENERATION.fetch_add(1, Ordering::Release);
}

/// A file was deleted by a call, which tells so itself.
pub fn deleted(name: &str) {
    if let Ok(path) = std::path::absolute(without_driver(name)) {
        lock().closed.retain(|closed| closed.path != path);
    }
}

/// Files that were closed and are not there any more, by name. Each is told once.
pub fn gone() -> Vec<String> {
    let closed = std::mem::take(&mut lock().closed);
    // Not under the lock: a server may take its time.
    let (gone, there): (Vec<_>, Vec<_>) = closed.into_iter().partition(|file| {
        file.path.symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
    });
    let mut shared = lock();
    there.into_iter().rev().for_each(|file| shared.closed.push_front(file));
    gone.into_iter().map(|file| file.name).collect()
}

/// A handle of a type is about to be freed.
#[inline(always)]
pub fn freed(address: Word) {
    if TYPES.load(Ordering::Relaxed) > 0 && address != 0 {
        freed_slowly(address);
    }
}

#[cold]
fn freed_slowly(address: Word) {
    // SAFETY: the program gives MPI_Type_free the address of a handle.
    let handle = unsafe { crate::mpi::handle_at(address, 0) };
    // The library frees types of its own while the dictionary is busy with this thread; those are not in it.
    if let Ok(mut shared) = SHARED.try_lock() {
        if shared.handles.remove(&handle).is_some() {
            GENERATION.fetch_add(1, Ordering::Release);
        }
    } else if !inside() {
        lock().handles.remove(&handle);
        GENERATION.fetch_add(1, Ordering::Release);
    }
}
