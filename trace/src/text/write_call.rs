//! A call into a line, without format!: 10^7 of them in a second or two.

use super::fields::{put, put_pair};
use super::keys::{self, Key, Set};
use crate::{Amode, Call, Completion, Content, Origin};

/// Appends the line of a call, with its end.
pub fn write_call(out: &mut Vec<u8>, call: &Call) {
    put(out, call.begin_ns);
    out.push(b',');
    put(out, call.end_ns);
    out.push(b',');
    out.extend_from_slice(call.function.name().as_bytes());
    if call.large {
        out.extend_from_slice(b"_c");
    }
    if call.thread != 0 {
        number(out, Key::Thread, call.thread);
    }
    if let Some(error) = call.error {
        word(out, Key::Error, error.name());
    }
    optional(out, Key::Handle, call.handle);
    optional(out, Key::File, call.file);
    if let Some(name) = &call.name {
        put_pair(out, Key::Name.name(), name);
    }
    optional(out, Key::Offset, call.offset);
    optional(out, Key::Count, call.count);
    optional(out, Key::Type, call.datatype);
    optional(out, Key::Buffer, call.buffer);
    optional(out, Key::Etype, call.etype);
    optional(out, Key::Filetype, call.filetype);
    optional(out, Key::Comm, call.comm);
    if let Some(mode) = call.amode {
        amode(out, mode);
    }
    optional(out, Key::Info, call.info);
    optional(out, Key::Granted, call.granted);
    if let Some(whence) = call.whence {
        word(out, Key::Whence, whence.name());
    }
    optional(out, Key::Flag, call.flag.map(u8::from));
    optional(out, Key::Number, call.number);
    optional(out, Key::Bytes, call.bytes);
    optional(out, Key::Request, call.request);
    lists(out, call);
    if call.error.is_none() {
        unknown(out, call);
    }
    out.push(b'\n');
}

/// What the function needs, but the recording does not know: `?`.
fn unknown(out: &mut Vec<u8>, call: &Call) {
    let mut have = Set::default();
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
    keys::of(call.function).0.beyond(have).for_each(|key| word(out, key, "?"));
}

fn lists(out: &mut Vec<u8>, call: &Call) {
    list(out, Key::Requests, &call.requests, |out, request| put(out, *request));
    list(out, Key::Done, &call.completions, completion);
    if call.polls != 0 {
        number(out, Key::Polls, call.polls);
    }
    list(out, Key::After, &call.after, |out, after| {
        put(out, after.rank);
        out.push(b'@');
        put(out, after.begin_ns);
    });
    optional(out, Key::Met, call.met_ns);
    list(out, Key::From, &call.from, origin);
}

fn key(out: &mut Vec<u8>, key: Key) {
    out.push(b',');
    out.extend_from_slice(key.name().as_bytes());
    out.push(b'=');
}

fn number(out: &mut Vec<u8>, name: Key, value: impl itoa::Integer) {
    key(out, name);
    put(out, value);
}

fn optional(out: &mut Vec<u8>, name: Key, value: Option<impl itoa::Integer>) {
    if let Some(value) = value {
        number(out, name, value);
    }
}

fn word(out: &mut Vec<u8>, name: Key, value: &str) {
    key(out, name);
    out.extend_from_slice(value.as_bytes());
}

fn list<T>(out: &mut Vec<u8>, name: Key, values: &[T], one: impl Fn(&mut Vec<u8>, &T)) {
    for (n, value) in values.iter().enumerate() {
        if n == 0 {
            key(out, name);
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
        return word(out, Key::Mode, "none");
    }
    list(out, Key::Mode, &names, |out, name| out.extend_from_slice(name.as_bytes()));
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

fn origin(out: &mut Vec<u8>, origin: &Origin) {
    put(out, origin.bytes);
    out.push(b'@');
    match origin.content {
        Content::File => out.extend_from_slice(b"file"),
        Content::Hole => out.extend_from_slice(b"hole"),
        Content::Unknown => out.push(b'?'),
        Content::Call { rank, begin_ns, memory } => {
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
