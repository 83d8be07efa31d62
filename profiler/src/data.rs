//! The calls that move data.

use std::ffi::c_int;
use std::mem::MaybeUninit;

use beff_trace::raw::record::{buffer, has, Compact};
use beff_trace::Call;

use crate::clock::ticks;
use crate::lane::Lane;
use crate::mpi::{handle, ignores, status_bytes, Status, Word};
use crate::name::Name;
use crate::requests;

/// What a data access is given.
#[derive(Clone, Copy)]
pub struct Given {
    pub file: Word,
    pub offset: Option<Word>,
    pub count: Word,
    pub datatype: Word,
    pub memory: Word,
}

impl Given {
    #[inline(always)]
    fn count(&self, name: Name) -> i64 {
        if name.large {
            self.count as i64
        } else {
            i64::from(self.count as i32)
        }
    }

    /// As far as a file of a process has it.
    fn address(&self) -> i64 {
        (buffer(self.memory as u64) >> 8) as i64
    }
}

/// A call with a status.
#[inline(always)]
pub fn blocking(name: Name, given: Given, status: Word, call: impl FnOnce(Word) -> c_int) -> c_int {
    let Some(mut inside) = name.enter() else { return call(status) };
    let mut own = MaybeUninit::<Status>::uninit();
    let status = if ignores(status) { own.write(Status([0; 64])) as *mut Status as Word } else { status };
    let begin = ticks();
    let code = call(status);
    let end = ticks();
    // SAFETY: the call has filled it.
    let bytes = (code == 0).then(|| unsafe { status_bytes(status) });
    record(inside.lane(), name, given, begin, end, code, bytes, None);
    code
}

/// A call that leaves a request.
#[inline(always)]
pub fn nonblocking(name: Name, given: Given, request: Word, call: impl FnOnce() -> c_int) -> c_int {
    let Some(mut inside) = name.enter() else { return call() };
    let begin = ticks();
    let code = call();
    let end = ticks();
    // SAFETY: the call has left one there.
    let number = (code == 0).then(|| unsafe { requests::add(request) });
    record(inside.lane(), name, given, begin, end, code, None, number);
    code
}

/// The first half of a split call.
#[inline(always)]
pub fn begin(name: Name, given: Given, call: impl FnOnce() -> c_int) -> c_int {
    let Some(mut inside) = name.enter() else { return call() };
    let begin = ticks();
    let code = call();
    let end = ticks();
    record(inside.lane(), name, given, begin, end, code, None, None);
    code
}

/// The second half.
#[inline(always)]
pub fn end(name: Name, file: Word, status: Word, call: impl FnOnce(Word) -> c_int) -> c_int {
    let Some(mut inside) = name.enter() else { return call(status) };
    let mut own = MaybeUninit::<Status>::uninit();
    let status = if ignores(status) { own.write(Status([0; 64])) as *mut Status as Word } else { status };
    let begin = ticks();
    let code = call(status);
    let end = ticks();
    // SAFETY: the call has filled it.
    let bytes = (code == 0).then(|| unsafe { status_bytes(status) });
    let lane = inside.lane();
    let mut call = name.call(begin, end, code);
    call.handle = lane.file(file);
    call.bytes = bytes;
    lane.short(&mut call);
    code
}

#[inline(always)]
#[allow(clippy::too_many_arguments)] // inlined into every wrapper
fn record(
    lane: &mut Lane,
    name: Name,
    given: Given,
    begin: u64,
    end: u64,
    code: c_int,
    bytes: Option<u64>,
    request: Option<u64>,
) {
    if code != 0 {
        return failed(lane, name, given, begin, end, code);
    }
    let file = lane.file(given.file);
    // SAFETY: the call was given it and found nothing wrong.
    let datatype = unsafe { lane.datatype(handle(given.datatype), begin) };
    let count = given.count(name);
    let moved = bytes.or(request).unwrap_or(0);
    match (file, datatype) {
        (Some(file), Some(datatype)) if (count as u64 | moved) >> 32 == 0 && (file | datatype) >> 16 == 0 => {
            let has = has::COUNT
                | has::HANDLE
                | has::DATATYPE
                | if name.large { has::LARGE } else { 0 }
                | if given.offset.is_some() { has::OFFSET } else { 0 }
                | if bytes.is_some() { has::BYTES } else { 0 }
                | if request.is_some() { has::REQUEST } else { 0 };
            let record = Compact {
                function: name.function as u8,
                has,
                datatype: datatype as u16,
                handle: file as u16,
                since_ticks: 0,
                took_ticks: 0,
                offset: given.offset.unwrap_or(0) as i64,
                count: count as u32,
                bytes: moved as u32,
            };
            lane.access(record, given.memory as u64, begin, end);
        }
        _ => long(lane, name, given, begin, end, [file, datatype], [bytes, request]),
    }
}

#[cold]
fn long(
    lane: &mut Lane,
    name: Name,
    given: Given,
    begin: u64,
    end: u64,
    [file, datatype]: [Option<u32>; 2],
    [bytes, request]: [Option<u64>; 2],
) {
    let mut call = name.call(begin, end, 0);
    call.handle = file;
    call.datatype = datatype;
    call.offset = given.offset.map(|offset| offset as i64);
    call.count = Some(given.count(name));
    call.buffer = Some(given.address());
    call.bytes = bytes;
    call.request = request;
    lane.call(&mut call);
}

#[cold]
fn failed(lane: &mut Lane, name: Name, given: Given, begin: u64, end: u64, code: c_int) {
    let mut call = name.call(begin, end, code);
    call.handle = lane.file(given.file);
    call.datatype = lane.datatype_of(&call, given.datatype);
    call.offset = given.offset.map(|offset| offset as i64);
    call.count = Some(given.count(name));
    call.buffer = Some(given.address());
    lane.call(&mut call);
}

impl Lane {
    /// A call with a handle, an offset and bytes at most, compact if it can be.
    pub fn short(&mut self, call: &mut Call) {
        let small = call.bytes.unwrap_or(0) >> 32 == 0 && call.handle.unwrap_or(0) >> 16 == 0;
        let plain =
            Call { begin_ns: 0, end_ns: 0, handle: None, offset: None, bytes: None, large: false, ..call.clone() };
        if !small || plain != Call::new(call.function, 0, 0) {
            return self.call(call);
        }
        let bit = |bit: u8, yes: bool| if yes { bit } else { 0 };
        let record = Compact {
            function: call.function as u8,
            has: bit(has::LARGE, call.large)
                | bit(has::HANDLE, call.handle.is_some())
                | bit(has::OFFSET, call.offset.is_some())
                | bit(has::BYTES, call.bytes.is_some()),
            datatype: 0,
            handle: call.handle.unwrap_or(0) as u16,
            since_ticks: 0,
            took_ticks: 0,
            offset: call.offset.unwrap_or(0),
            count: 0,
            bytes: call.bytes.unwrap_or(0) as u32,
        };
        self.compact(record, call.begin_ns, call.end_ns);
    }
}
