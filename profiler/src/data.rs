//! Data access routines.

use std::ffi::c_int;
use std::mem::MaybeUninit;

use beff_trace::raw::record::{buffer_word, has, CompactRecord};
use beff_trace::Call;

use crate::clock::ticks;
use crate::mpi::{handle, is_status_ignore, status_bytes, StatusBuffer, Word};
use crate::name::Name;
use crate::requests;
use crate::thread_buffer::ThreadBuffer;

#[derive(Clone, Copy)]
pub struct AccessArguments {
    pub file: Word,
    pub offset: Option<Word>,
    pub count: Word,
    pub datatype: Word,
    pub memory: Word,
}

impl AccessArguments {
    #[inline(always)]
    fn count(&self, name: Name) -> i64 {
        if name.large {
            self.count as i64
        } else {
            i64::from(self.count as i32)
        }
    }

    /// The address in the precision of the process file.
    fn address(&self) -> i64 {
        (buffer_word(self.memory as u64) >> 8) as i64
    }
}

#[inline(always)]
pub fn blocking(name: Name, given: AccessArguments, status: Word, call: impl FnOnce(Word) -> c_int) -> c_int {
    let Some(mut inside) = name.enter() else { return call(status) };
    let mut own = MaybeUninit::<StatusBuffer>::uninit();
    let status =
        if is_status_ignore(status) { own.write(StatusBuffer([0; 64])) as *mut StatusBuffer as Word } else { status };
    let begin = ticks();
    let code = call(status);
    let end = ticks();
    // SAFETY: the call has filled the status.
    let bytes = (code == 0).then(|| unsafe { status_bytes(status) });
    record_access(inside.buffer(), name, given, begin, end, code, bytes, None);
    code
}

#[inline(always)]
pub fn nonblocking(name: Name, given: AccessArguments, request: Word, call: impl FnOnce() -> c_int) -> c_int {
    let Some(mut inside) = name.enter() else { return call() };
    let begin = ticks();
    let code = call();
    let end = ticks();
    // SAFETY: the call has written a request there.
    let number = (code == 0).then(|| unsafe { requests::track(request) });
    record_access(inside.buffer(), name, given, begin, end, code, None, number);
    code
}

#[inline(always)]
pub fn begin(name: Name, given: AccessArguments, call: impl FnOnce() -> c_int) -> c_int {
    let Some(mut inside) = name.enter() else { return call() };
    let begin = ticks();
    let code = call();
    let end = ticks();
    record_access(inside.buffer(), name, given, begin, end, code, None, None);
    code
}

#[inline(always)]
pub fn end(name: Name, file: Word, status: Word, call: impl FnOnce(Word) -> c_int) -> c_int {
    let Some(mut inside) = name.enter() else { return call(status) };
    let mut own = MaybeUninit::<StatusBuffer>::uninit();
    let status =
        if is_status_ignore(status) { own.write(StatusBuffer([0; 64])) as *mut StatusBuffer as Word } else { status };
    let begin = ticks();
    let code = call(status);
    let end = ticks();
    // SAFETY: the call has filled the status.
    let bytes = (code == 0).then(|| unsafe { status_bytes(status) });
    let lane = inside.buffer();
    let mut call = name.new_call(begin, end, code);
    call.handle = lane.file(file);
    call.bytes = bytes;
    lane.record_short(&mut call);
    code
}

#[inline(always)]
#[allow(clippy::too_many_arguments)] // inlined into every wrapper
fn record_access(
    lane: &mut ThreadBuffer,
    name: Name,
    given: AccessArguments,
    begin: u64,
    end: u64,
    code: c_int,
    bytes: Option<u64>,
    request: Option<u64>,
) {
    if code != 0 {
        return record_failed(lane, name, given, begin, end, code);
    }
    let file = lane.file(given.file);
    // SAFETY: MPI has accepted this handle.
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
            let record = CompactRecord {
                function: name.function as u8,
                present: has,
                datatype: datatype as u16,
                handle: file as u16,
                since_ticks: 0,
                duration_ticks: 0,
                offset: given.offset.unwrap_or(0) as i64,
                count: count as u32,
                bytes: moved as u32,
            };
            lane.record_access(record, given.memory as u64, begin, end);
        }
        _ => record_long(lane, name, given, begin, end, [file, datatype], [bytes, request]),
    }
}

#[cold]
fn record_long(
    lane: &mut ThreadBuffer,
    name: Name,
    given: AccessArguments,
    begin: u64,
    end: u64,
    [file, datatype]: [Option<u32>; 2],
    [bytes, request]: [Option<u64>; 2],
) {
    let mut call = name.new_call(begin, end, 0);
    call.handle = file;
    call.datatype = datatype;
    call.offset = given.offset.map(|offset| offset as i64);
    call.count = Some(given.count(name));
    call.buffer = Some(given.address());
    call.bytes = bytes;
    call.request = request;
    lane.record_call(&mut call);
}

#[cold]
fn record_failed(lane: &mut ThreadBuffer, name: Name, given: AccessArguments, begin: u64, end: u64, code: c_int) {
    let mut call = name.new_call(begin, end, code);
    call.handle = lane.file(given.file);
    call.datatype = lane.datatype_of(&call, given.datatype);
    call.offset = given.offset.map(|offset| offset as i64);
    call.count = Some(given.count(name));
    call.buffer = Some(given.address());
    lane.record_call(&mut call);
}

impl ThreadBuffer {
    /// Records a call with at most a handle, an offset and bytes, compact if possible.
    pub fn record_short(&mut self, call: &mut Call) {
        let small = call.bytes.unwrap_or(0) >> 32 == 0 && call.handle.unwrap_or(0) >> 16 == 0;
        let plain = Call {
            begin_ns: 0,
            end_ns: 0,
            handle: None,
            offset: None,
            bytes: None,
            large_count: false,
            ..call.clone()
        };
        if !small || plain != Call::new(call.function, 0, 0) {
            return self.record_call(call);
        }
        let bit = |bit: u8, yes: bool| if yes { bit } else { 0 };
        let record = CompactRecord {
            function: call.function as u8,
            present: bit(has::LARGE, call.large_count)
                | bit(has::HANDLE, call.handle.is_some())
                | bit(has::OFFSET, call.offset.is_some())
                | bit(has::BYTES, call.bytes.is_some()),
            datatype: 0,
            handle: call.handle.unwrap_or(0) as u16,
            since_ticks: 0,
            duration_ticks: 0,
            offset: call.offset.unwrap_or(0),
            count: 0,
            bytes: call.bytes.unwrap_or(0) as u32,
        };
        self.record_compact(record, call.begin_ns, call.end_ns);
    }
}
