//! Formats a call as a line, without format!: 10^7 calls in a second or two.

use super::fields::{put, put_pair};
use super::keys::{self, Key, KeySet};
use crate::{Amode, Call, Completion, DataOrigin, OriginRange};

/// Appends the line of a call, with its end.
pub fn write_call(out: &mut Vec<u8>, call: &Call) {
    put(out, call.begin_ns);
    out.push(b',');
    put(out, call.end_ns);
    out.push(b',');
    out.extend_from_slice(call.function.name().as_bytes());
    if call.large_count {
        out.extend_from_slice(b"_c");
    }
    if call.thread != 0 {
        write_number(out, Key::Thread, call.thread);
    }
    if let Some(error) = call.error {
        write_word(out, Key::Error, error.name());
    }
    write_optional(out, Key::Handle, call.handle);
    write_optional(out, Key::File, call.file);
    if let Some(name) = &call.name {
        put_pair(out, Key::Name.name(), name);
    }
    write_optional(out, Key::Offset, call.offset);
    write_optional(out, Key::Count, call.count);
    write_optional(out, Key::Type, call.datatype);
    write_optional(out, Key::Buffer, call.buffer);
    write_optional(out, Key::Etype, call.etype);
    write_optional(out, Key::Filetype, call.filetype);
    write_optional(out, Key::Comm, call.comm);
    if let Some(mode) = call.amode {
        amode(out, mode);
    }
    write_optional(out, Key::Info, call.info);
    write_optional(out, Key::Granted, call.granted);
    if let Some(whence) = call.whence {
        write_word(out, Key::Whence, whence.name());
    }
    write_optional(out, Key::Flag, call.flag.map(u8::from));
    write_optional(out, Key::Number, call.number);
    write_optional(out, Key::Bytes, call.bytes);
    write_optional(out, Key::Request, call.request);
    write_lists(out, call);
    if call.error.is_none() {
        write_unknown_keys(out, call);
    }
    out.push(b'\n');
}

/// Writes required keys that the recording does not know as `?`.
fn write_unknown_keys(out: &mut Vec<u8>, call: &Call) {
    let mut have = KeySet::default();
    let mut has = |key: Key, is: bool| {
        if is {
            have.insert(key);
        }
    };
    has(Key::Handle, call.handle.is_some());
    has(Key::File, call.file.is_some());
    has(Key::Offset, call.offset.is_some());
    has(Key::Count, call.count.is_some());
    has(Key::Type, call.datatype.is_some());
    has(Key::Etype, call.etype.is_some());
    has(Key::Filetype, call.filetype.is_some());
    has(Key::Comm, call.comm.is_some());
    has(Key::Mode, call.amode.is_some());
    has(Key::Whence, call.whence.is_some());
    has(Key::Flag, call.flag.is_some());
    has(Key::To, call.target.is_some());
    keys::of(call.function).0.difference(have).for_each(|key| write_word(out, key, "?"));
}

fn write_lists(out: &mut Vec<u8>, call: &Call) {
    write_list(out, Key::Requests, &call.requests, |out, request| put(out, *request));
    write_list(out, Key::Done, &call.completions, completion);
    if call.polls != 0 {
        write_number(out, Key::Polls, call.polls);
    }
    write_list(out, Key::After, &call.after, |out, after| {
        put(out, after.rank);
        out.push(b'@');
        put(out, after.begin_ns);
    });
    write_optional(out, Key::Met, call.since_barrier_ns);
    write_list(out, Key::From, &call.from, origin);
    write_optional(out, Key::To, call.target);
}

fn write_key(out: &mut Vec<u8>, key: Key) {
    out.push(b',');
    out.extend_from_slice(key.name().as_bytes());
    out.push(b'=');
}

fn write_number(out: &mut Vec<u8>, name: Key, value: impl itoa::Integer) {
    write_key(out, name);
    put(out, value);
}

fn write_optional(out: &mut Vec<u8>, name: Key, value: Option<impl itoa::Integer>) {
    if let Some(value) = value {
        write_number(out, name, value);
    }
}

fn write_word(out: &mut Vec<u8>, name: Key, value: &str) {
    write_key(out, name);
    out.extend_from_slice(value.as_bytes());
}

fn write_list<T>(out: &mut Vec<u8>, name: Key, values: &[T], one: impl Fn(&mut Vec<u8>, &T)) {
    for (n, value) in values.iter().enumerate() {
        if n == 0 {
            write_key(out, name);
        } else {
            out.push(b';');
        }
        one(out, value);
    }
}

fn amode(out: &mut Vec<u8>, mode: Amode) {
    let set = Amode::NAMES.iter().enumerate().filter(|(bit, _)| mode.0 & (1 << bit) != 0).map(|(_, name)| *name);
    let names: Vec<&str> = set.collect();
    if names.is_empty() {
        return write_word(out, Key::Mode, "none");
    }
    write_list(out, Key::Mode, &names, |out, name| out.extend_from_slice(name.as_bytes()));
}

fn completion(out: &mut Vec<u8>, done: &Completion) {
    put(out, done.request);
    if done.bytes.is_some() || done.error.is_some() {
        out.push(b':');
    }
    if let Some(bytes) = done.bytes {
        put(out, bytes);
    }
    if let Some(error) = done.error {
        out.push(b':');
        out.extend_from_slice(error.name().as_bytes());
    }
}

fn origin(out: &mut Vec<u8>, origin: &OriginRange) {
    put(out, origin.bytes);
    out.push(b'@');
    match origin.origin {
        DataOrigin::File => out.extend_from_slice(b"file"),
        DataOrigin::Hole => out.extend_from_slice(b"hole"),
        DataOrigin::Unknown => out.push(b'?'),
        DataOrigin::Call { rank, begin_ns, memory } => {
            put(out, rank);
            out.push(b':');
            put(out, begin_ns);
            if memory >= 0 {
                out.push(b'+');
            }
            put(out, memory);
        }
    }
}
