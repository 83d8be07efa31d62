//! Requests of files: which are pending, and the calls that complete them.

use std::collections::hash_map::Entry::Vacant;
use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use beff_trace::raw::record::{has, Compact};
use beff_trace::{Call, Completion, ErrorClass, Function};

use crate::clock::ticks;
use crate::lane::{Asked, Lane};
use crate::mpi::{
    beff_err_in_status, beff_err_pending, beff_status_size, class, constant, constants, handle_at, ignores,
    ignores_all, status_bytes, status_error, Status, Word, OPEN_MPI,
};
use crate::name::Name;

static PENDING: AtomicUsize = AtomicUsize::new(0);

#[derive(Clone, Copy)]
struct Entry {
    number: u64,
    /// Where the program keeps it. Two requests may have one handle: then this tells them apart.
    address: Word,
    polls: u64,
}

/// Pending requests by handle; those whose handle is there already stand in `twins`.
#[derive(Default)]
struct Table {
    first: HashMap<Word, Entry>,
    twins: Vec<(Word, Entry)>,
    next: u64,
}

static TABLE: LazyLock<Mutex<Table>> = LazyLock::new(Mutex::default);

fn lock() -> MutexGuard<'static, Table> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A number for the request that was just left at an address.
///
/// # Safety
/// One is there.
pub unsafe fn add(address: Word) -> u64 {
    // SAFETY: as promised.
    let handle = unsafe { handle_at(address, 0) };
    let mut table = lock();
    table.next += 1;
    let number = table.next;
    if handle == constants().request_null {
        return number;
    }
    let entry = Entry { number, address, polls: 0 };
    if let Vacant(place) = table.first.entry(handle) {
        place.insert(entry);
    } else {
        table.twins.push((handle, entry));
    }
    PENDING.fetch_add(1, Ordering::Relaxed);
    number
}

impl Table {
    /// The requests of files in an array. Of several with one handle, that which was left at this place, else the oldest that is
    /// not taken.
    fn find(&self, array: Word, length: usize, out: &mut Vec<Asked>) {
        out.clear();
        for index in 0..length {
            // SAFETY: the program gives an array of this length.
            let handle = unsafe { handle_at(array, index) };
            let Some(first) = self.first.get(&handle) else { continue };
            let number = if self.twins.is_empty() {
                first.number
            } else {
                let size = if OPEN_MPI { 8 } else { 4 };
                self.among_twins(handle, *first, array + index * size, out)
            };
            out.push(Asked { index, handle, number });
        }
    }

    fn among_twins(&self, handle: Word, first: Entry, address: Word, taken: &[Asked]) -> u64 {
        let twins = self.twins.iter().filter(|(twin, _)| *twin == handle).map(|(_, entry)| *entry);
        let all = || std::iter::once(first).chain(twins.clone());
        let free = |entry: &Entry| !taken.iter().any(|asked| asked.number == entry.number);
        let here = all().find(|entry| entry.address == address && free(entry));
        here.or_else(|| all().find(free)).map_or(first.number, |entry| entry.number)
    }

    fn entry(&mut self, asked: &Asked) -> Option<&mut Entry> {
        if self.first.get(&asked.handle).is_some_and(|entry| entry.number == asked.number) {
            return self.first.get_mut(&asked.handle);
        }
        self.twins.iter_mut().map(|(_, entry)| entry).find(|entry| entry.number == asked.number)
    }

    fn remove(&mut self, asked: &Asked) {
        if self.first.get(&asked.handle).is_some_and(|entry| entry.number == asked.number) {
            self.first.remove(&asked.handle);
            if let Some(at) = self.twins.iter().position(|(twin, _)| *twin == asked.handle) {
                let (handle, entry) = self.twins.remove(at);
                self.first.insert(handle, entry);
            }
        } else if let Some(at) = self.twins.iter().position(|(_, entry)| entry.number == asked.number) {
            self.twins.remove(at);
        } else {
            return;
        }
        PENDING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What a call about requests is given: words of the program.
#[derive(Clone, Copy)]
pub struct Given {
    pub array: Word,
    pub length: usize,
    pub statuses: Statuses,
    /// Where a flag is answered, 0 if none.
    pub flag: Word,
    /// False for calls that only ask (Request_get_status): then no request is completed.
    pub completes: bool,
}

/// Where the statuses are answered.
#[derive(Clone, Copy)]
pub enum Statuses {
    /// There are none.
    None,
    /// One, of the only one that is completed.
    One(Word),
    /// One for each request.
    Each(Word),
    /// One for each index in the list: statuses, count, indices.
    Listed(Word, Word, Word),
}

impl Statuses {
    /// Memory of our own where the program wants none.
    fn own(self, one: &mut Status, many: &mut Vec<u128>, length: usize) -> Self {
        let mut array = |word: Word| {
            if !ignores_all(word) {
                return word;
            }
            many.clear();
            many.resize((length * constant!(beff_status_size) as usize).div_ceil(16) + 1, 0);
            many.as_mut_ptr() as Word
        };
        match self {
            Self::One(word) if ignores(word) => Self::One(&raw mut *one as Word),
            Self::Each(word) => Self::Each(array(word)),
            Self::Listed(word, count, indices) => Self::Listed(array(word), count, indices),
            other => other,
        }
    }

    /// The word that the call is given.
    pub fn word(self) -> Word {
        match self {
            Self::None => 0,
            Self::One(word) | Self::Each(word) | Self::Listed(word, ..) => word,
        }
    }

    /// The status of the request at an index of the array, which was completed.
    fn of(self, index: usize) -> Option<Word> {
        let size = constant!(beff_status_size) as usize;
        match self {
            Self::None => None,
            Self::One(word) => Some(word),
            Self::Each(word) => Some(word + index * size),
            Self::Listed(word, count, indices) => {
                // SAFETY: the call has answered a count and that many indices.
                let place = unsafe {
                    let count = usize::try_from(*(count as *const c_int)).ok()?;
                    let indices = std::slice::from_raw_parts(indices as *const c_int, count);
                    indices.iter().position(|one| usize::try_from(*one) == Ok(index))?
                };
                Some(word + place * size)
            }
        }
    }
}

/// A call about requests. `call` gets the word of the statuses. As long as no request of a file is pending it is only passed on.
#[inline(always)]
pub fn about(name: Name, given: Given, call: impl FnOnce(Word) -> c_int) -> c_int {
    if PENDING.load(Ordering::Relaxed) == 0 {
        return call(given.statuses.word());
    }
    about_files(name, given, call)
}

#[cold]
#[inline(never)]
fn about_files(name: Name, given: Given, call: impl FnOnce(Word) -> c_int) -> c_int {
    let Some(mut inside) = name.enter() else { return call(given.statuses.word()) };
    let lane = inside.lane();
    let mut asked = std::mem::take(&mut lane.requests);
    lock().find(given.array, given.length, &mut asked);
    if asked.is_empty() {
        lane.requests = asked;
        return call(given.statuses.word());
    }
    let mut one = Status([0; 64]);
    let statuses = given.statuses.own(&mut one, &mut lane.statuses, given.length);
    let begin = ticks();
    let code = call(statuses.word());
    let end = ticks();
    record(lane, name, given, statuses, &asked, [begin, end], code);
    lane.requests = asked;
    returned(given.statuses, statuses, given.length, code)
}

/// Open MPI answers the error of the request itself to a program that ignores the statuses; given ours, it said that it is in there.
fn returned(wanted: Statuses, given: Statuses, length: usize, code: c_int) -> c_int {
    let own = wanted.word() != given.word() && !matches!(given, Statuses::One(_));
    if code == 0 || !own || !OPEN_MPI || class(code) != in_status() {
        return code;
    }
    let size = constant!(beff_status_size) as usize;
    let count = match given {
        // SAFETY: the call has answered it.
        Statuses::Listed(_, count, _) => usize::try_from(unsafe { *(count as *const c_int) }).unwrap_or(0),
        _ => length,
    };
    // SAFETY: our array has that many.
    let errors = (0..count).map(|index| unsafe { status_error(given.word() + index * size) });
    errors.into_iter().find(|error| *error != 0 && *error != constant!(beff_err_pending)).unwrap_or(code)
}

fn in_status() -> ErrorClass {
    class(constant!(beff_err_in_status))
}

fn record(
    lane: &mut Lane,
    name: Name,
    given: Given,
    statuses: Statuses,
    asked: &[Asked],
    times: [u64; 2],
    code: c_int,
) {
    let (mut requests, mut completions) = std::mem::take(&mut lane.lists);
    requests.clear();
    completions.clear();
    requests.extend(asked.iter().map(|one| one.number));
    let each = code != 0 && !matches!(statuses, Statuses::One(_)) && class(code) == in_status();
    let freed = name.function == Function::RequestFree && code == 0;
    let mut polls = 0;
    let mut table = lock();
    for one in asked {
        // SAFETY: the array of the program, as after the call.
        let now = unsafe { handle_at(given.array, one.index) };
        // Waiting answers the null handle; so a request that is no longer there was completed.
        if !given.completes || now == one.handle {
            continue;
        }
        polls = polls.max(table.entry(one).map_or(0, |entry| entry.polls));
        table.remove(one);
        if freed {
            continue;
        }
        let status = statuses.of(one.index);
        let error = match status {
            _ if code == 0 => 0,
            // SAFETY: the call has filled it.
            Some(status) if each => unsafe { status_error(status) },
            _ => code,
        };
        // SAFETY: as above.
        let bytes = status.filter(|_| error == 0).map(|status| unsafe { status_bytes(status) });
        let error = (error != 0).then(|| class(error));
        completions.push(Completion { request: one.number, bytes, error });
    }
    let found = !completions.is_empty() || freed || code != 0 || !tests(name.function) || flagged(given);
    if !found {
        asked.iter().for_each(|one| table.entry(one).into_iter().for_each(|entry| entry.polls += 1));
    } else if !given.completes {
        polls = asked.iter().filter_map(|one| table.entry(one).map(|entry| entry.polls)).max().unwrap_or(0);
    }
    drop(table);
    let mut call = name.call(times[0], times[1], code);
    call.requests = requests;
    call.completions = completions;
    call.polls = polls;
    if name.function == Function::RequestGetStatus {
        call.flag = Some(true);
    }
    if found {
        write(lane, &mut call);
    }
    lane.lists = (call.requests, call.completions);
}

/// Calls that may find nothing.
fn tests(function: Function) -> bool {
    !matches!(function, Function::Wait | Function::Waitall | Function::RequestFree | Function::Cancel)
}

/// A call that only asks has found something.
fn flagged(given: Given) -> bool {
    // SAFETY: the call has answered it.
    !given.completes && given.flag != 0 && unsafe { *(given.flag as *const c_int) } != 0
}

fn write(lane: &mut Lane, call: &mut Call) {
    let plain = call.polls == 0 && call.error.is_none() && call.flag.is_none();
    match (call.requests.as_slice(), call.completions.as_slice()) {
        (&[_], &[Completion { request, bytes, error: None }]) if plain && bytes.unwrap_or(0) >> 32 == 0 => {
            let record = Compact {
                function: call.function as u8,
                has: has::COMPLETES | if bytes.is_some() { has::BYTES } else { 0 },
                datatype: 0,
                handle: 0,
                since_ticks: 0,
                took_ticks: 0,
                offset: request as i64,
                count: 0,
                bytes: bytes.unwrap_or(0) as u32,
            };
            lane.compact(record, call.begin_ns, call.end_ns);
        }
        _ => lane.call(call),
    }
}
