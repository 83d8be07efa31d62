//! Requests of files: pending ones, and the calls that complete them.

use std::collections::hash_map::Entry::Vacant;
use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use beff_trace::raw::record::{has, CompactRecord};
use beff_trace::{Call, Completion, ErrorClass, Function};

use crate::clock::ticks;
use crate::mpi::{
    beff_err_in_status, beff_err_pending, beff_status_size, constant, error_class, handle_at, is_status_ignore,
    is_statuses_ignore, predefined_handles, status_bytes, status_error, StatusBuffer, Word, HANDLE_BYTES, OPEN_MPI,
};
use crate::name::Name;
use crate::thread_buffer::{MatchedRequest, ThreadBuffer};

static PENDING: AtomicUsize = AtomicUsize::new(0);

#[derive(Clone, Copy)]
struct TrackedRequest {
    number: u64,
    /// Address of the request in the program; distinguishes requests with equal handles.
    address: Word,
    polls: u64,
}

/// Pending requests by handle; further ones with the same handle are in `twins`.
#[derive(Default)]
struct TrackedRequests {
    first: HashMap<Word, TrackedRequest>,
    twins: Vec<(Word, TrackedRequest)>,
    next: u64,
}

static TABLE: LazyLock<Mutex<TrackedRequests>> = LazyLock::new(Mutex::default);

fn lock() -> MutexGuard<'static, TrackedRequests> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Assigns a number to the new request at an address.
///
/// # Safety
/// A request is stored there.
pub unsafe fn track(address: Word) -> u64 {
    // SAFETY: guaranteed by the caller.
    let handle = unsafe { handle_at(address, 0) };
    let mut table = lock();
    table.next += 1;
    let number = table.next;
    if handle == predefined_handles().request_null {
        return number;
    }
    let entry = TrackedRequest { number, address, polls: 0 };
    if let Vacant(place) = table.first.entry(handle) {
        place.insert(entry);
    } else {
        table.twins.push((handle, entry));
    }
    PENDING.fetch_add(1, Ordering::Relaxed);
    number
}

impl TrackedRequests {
    /// Requests of files in an array. Among equal handles, the one posted at this address, else the oldest not yet matched.
    fn match_array(&self, array: Word, length: usize, out: &mut Vec<MatchedRequest>) {
        out.clear();
        for index in 0..length {
            // SAFETY: the program passes an array of this length.
            let handle = unsafe { handle_at(array, index) };
            let Some(first) = self.first.get(&handle) else { continue };
            let number = if self.twins.is_empty() {
                first.number
            } else {
                self.among_twins(handle, *first, array + index * HANDLE_BYTES, out)
            };
            out.push(MatchedRequest { index, handle, number });
        }
    }

    fn among_twins(&self, handle: Word, first: TrackedRequest, address: Word, matched: &[MatchedRequest]) -> u64 {
        let twins = self.twins.iter().filter(|(twin, _)| *twin == handle).map(|(_, entry)| *entry);
        let all = || std::iter::once(first).chain(twins.clone());
        let free = |entry: &TrackedRequest| !matched.iter().any(|asked| asked.number == entry.number);
        let here = all().find(|entry| entry.address == address && free(entry));
        here.or_else(|| all().find(free)).map_or(first.number, |entry| entry.number)
    }

    fn entry(&mut self, asked: &MatchedRequest) -> Option<&mut TrackedRequest> {
        if self.first.get(&asked.handle).is_some_and(|entry| entry.number == asked.number) {
            return self.first.get_mut(&asked.handle);
        }
        self.twins.iter_mut().map(|(_, entry)| entry).find(|entry| entry.number == asked.number)
    }

    fn remove(&mut self, asked: &MatchedRequest) {
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

/// Arguments of a call on requests.
#[derive(Clone, Copy)]
pub struct RequestArguments {
    pub array: Word,
    pub length: usize,
    pub statuses: Statuses,
    /// Address of the flag, 0 if none.
    pub flag: Word,
    /// False for calls that complete no request (Request_get_status).
    pub completes: bool,
}

/// Output of the statuses.
#[derive(Clone, Copy)]
pub enum Statuses {
    /// No statuses.
    None,
    /// One status, of the completed request.
    One(Word),
    /// One status for each request.
    Each(Word),
    /// One status for each returned index: statuses, count, indices.
    Listed(Word, Word, Word),
}

impl Statuses {
    /// Replaces MPI_STATUS(ES)_IGNORE by memory of this library.
    fn substituted(self, one: &mut StatusBuffer, many: &mut Vec<u128>, length: usize) -> Self {
        let mut array = |word: Word| {
            if !is_statuses_ignore(word) {
                return word;
            }
            many.clear();
            many.resize((length * constant!(beff_status_size) as usize).div_ceil(16) + 1, 0);
            many.as_mut_ptr() as Word
        };
        match self {
            Self::One(word) if is_status_ignore(word) => Self::One(&raw mut *one as Word),
            Self::Each(word) => Self::Each(array(word)),
            Self::Listed(word, count, indices) => Self::Listed(array(word), count, indices),
            other => other,
        }
    }

    pub fn word(self) -> Word {
        match self {
            Self::None => 0,
            Self::One(word) | Self::Each(word) | Self::Listed(word, ..) => word,
        }
    }

    fn status_of(self, index: usize) -> Option<Word> {
        let size = constant!(beff_status_size) as usize;
        match self {
            Self::None => None,
            Self::One(word) => Some(word),
            Self::Each(word) => Some(word + index * size),
            Self::Listed(word, count, indices) => {
                // SAFETY: the call has written a count and that many indices.
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

/// A call on requests, given the word of the statuses. Only passed on if no request of a file is pending.
#[inline(always)]
pub fn intercept(name: Name, given: RequestArguments, call: impl FnOnce(Word) -> c_int) -> c_int {
    if PENDING.load(Ordering::Relaxed) == 0 {
        return call(given.statuses.word());
    }
    intercept_tracked(name, given, call)
}

#[cold]
#[inline(never)]
fn intercept_tracked(name: Name, given: RequestArguments, call: impl FnOnce(Word) -> c_int) -> c_int {
    let Some(mut inside) = name.enter() else { return call(given.statuses.word()) };
    let lane = inside.buffer();
    let mut asked = std::mem::take(&mut lane.requests);
    lock().match_array(given.array, given.length, &mut asked);
    if asked.is_empty() {
        lane.requests = asked;
        return call(given.statuses.word());
    }
    let mut one = StatusBuffer([0; 64]);
    let statuses = given.statuses.substituted(&mut one, &mut lane.statuses, given.length);
    let begin = ticks();
    let code = call(statuses.word());
    let end = ticks();
    record_completions(lane, name, given, statuses, &asked, [begin, end], code);
    lane.requests = asked;
    returned_code(given.statuses, statuses, given.length, code)
}

/// Open MPI returns the error of the request itself if the statuses are ignored, but MPI_ERR_IN_STATUS with those of this library.
fn returned_code(wanted: Statuses, given: Statuses, length: usize, code: c_int) -> c_int {
    let own = wanted.word() != given.word() && !matches!(given, Statuses::One(_));
    if code == 0 || !own || !OPEN_MPI || error_class(code) != in_status_class() {
        return code;
    }
    let size = constant!(beff_status_size) as usize;
    let count = match given {
        // SAFETY: the call has written it.
        Statuses::Listed(_, count, _) => usize::try_from(unsafe { *(count as *const c_int) }).unwrap_or(0),
        _ => length,
    };
    // SAFETY: the array of this library has that many.
    let errors = (0..count).map(|index| unsafe { status_error(given.word() + index * size) });
    errors.into_iter().find(|error| *error != 0 && *error != constant!(beff_err_pending)).unwrap_or(code)
}

fn in_status_class() -> ErrorClass {
    error_class(constant!(beff_err_in_status))
}

fn record_completions(
    lane: &mut ThreadBuffer,
    name: Name,
    given: RequestArguments,
    statuses: Statuses,
    asked: &[MatchedRequest],
    times: [u64; 2],
    code: c_int,
) {
    let (mut requests, mut completions) = std::mem::take(&mut lane.scratch_lists);
    requests.clear();
    completions.clear();
    requests.extend(asked.iter().map(|one| one.number));
    let each = code != 0 && !matches!(statuses, Statuses::One(_)) && error_class(code) == in_status_class();
    let freed = name.function == Function::RequestFree && code == 0;
    let mut polls = 0;
    let mut table = lock();
    for one in asked {
        // SAFETY: the array of the program after the call.
        let now = unsafe { handle_at(given.array, one.index) };
        // Completion sets the handle to MPI_REQUEST_NULL, so a changed handle means a completed request.
        if !given.completes || now == one.handle {
            continue;
        }
        polls = polls.max(table.entry(one).map_or(0, |entry| entry.polls));
        table.remove(one);
        if freed {
            continue;
        }
        let status = statuses.status_of(one.index);
        let error = match status {
            _ if code == 0 => 0,
            // SAFETY: the call has filled the status.
            Some(status) if each => unsafe { status_error(status) },
            _ => code,
        };
        // SAFETY: as above.
        let bytes = status.filter(|_| error == 0).map(|status| unsafe { status_bytes(status) });
        let error = (error != 0).then(|| error_class(error));
        completions.push(Completion { request: one.number, bytes, error });
    }
    let found = !completions.is_empty() || freed || code != 0 || !may_find_nothing(name.function) || is_flag_set(given);
    if !found {
        asked.iter().for_each(|one| table.entry(one).into_iter().for_each(|entry| entry.polls += 1));
    } else if !given.completes {
        polls = asked.iter().filter_map(|one| table.entry(one).map(|entry| entry.polls)).max().unwrap_or(0);
    }
    drop(table);
    let mut call = name.new_call(times[0], times[1], code);
    call.requests = requests;
    call.completions = completions;
    call.polls = polls;
    if name.function == Function::RequestGetStatus {
        call.flag = Some(true);
    }
    if found {
        write_call(lane, &mut call);
    }
    lane.scratch_lists = (call.requests, call.completions);
}

/// True for calls that may complete nothing.
fn may_find_nothing(function: Function) -> bool {
    !matches!(function, Function::Wait | Function::Waitall | Function::RequestFree | Function::Cancel)
}

fn is_flag_set(given: RequestArguments) -> bool {
    // SAFETY: the call has written it.
    !given.completes && given.flag != 0 && unsafe { *(given.flag as *const c_int) } != 0
}

fn write_call(lane: &mut ThreadBuffer, call: &mut Call) {
    let plain = call.polls == 0 && call.error.is_none() && call.flag.is_none();
    match (call.requests.as_slice(), call.completions.as_slice()) {
        (&[_], &[Completion { request, bytes, error: None }]) if plain && bytes.unwrap_or(0) >> 32 == 0 => {
            let record = CompactRecord {
                function: call.function as u8,
                present: has::COMPLETES | if bytes.is_some() { has::BYTES } else { 0 },
                datatype: 0,
                handle: 0,
                since_ticks: 0,
                duration_ticks: 0,
                offset: request as i64,
                count: 0,
                bytes: bytes.unwrap_or(0) as u32,
            };
            lane.record_compact(record, call.begin_ns, call.end_ns);
        }
        _ => lane.record_call(call),
    }
}
