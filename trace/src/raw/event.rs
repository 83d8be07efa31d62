//! Encoding of events that do not fit a compact record. Times are ticks.

use super::varint::{put, put_list, put_signed, put_signed_list, put_text, VarintReader};
use super::Event;
use crate::call::{Call, Completion, FileIdentity};
use crate::function::Function;
use crate::names::{Amode, ErrorClass, Whence};
use crate::types::{ArrayOrder, Datatype, Distribution};

/// Appends a datatype as an event at this tick.
pub fn put_type(out: &mut Vec<u8>, tick: u64, id: u32, datatype: &Datatype) {
    put_header(out, 1, tick, id);
    put_datatype(out, datatype);
}

/// Appends a communicator.
pub fn put_comm(out: &mut Vec<u8>, tick: u64, id: u32, ranks: &[u32]) {
    put_header(out, 2, tick, id);
    put(out, ranks.len() as u64);
    ranks.iter().for_each(|rank| put(out, u64::from(*rank)));
}

/// Appends hints.
pub fn put_info(out: &mut Vec<u8>, tick: u64, id: u32, pairs: &[(String, String)]) {
    put_header(out, 3, tick, id);
    put(out, pairs.len() as u64);
    for (key, value) in pairs {
        put_text(out, key);
        put_text(out, value);
    }
}

/// Appends the file-system type of a file.
pub fn put_storage(out: &mut Vec<u8>, tick: u64, id: u32, path: &str, fs_type: &str) {
    put_header(out, 5, tick, id);
    put_text(out, path);
    put_text(out, fs_type);
}

/// Appends a file that was missing before the opening at this tick.
pub fn put_removed(out: &mut Vec<u8>, tick: u64, path: &str) {
    put_header(out, 6, tick, 0);
    put_text(out, path);
}

fn put_header(out: &mut Vec<u8>, kind: u8, tick: u64, id: u32) {
    out.push(kind);
    put(out, tick);
    put(out, u64::from(id));
}

/// Appends a call; its times are ticks. Fields that only the text has are omitted.
pub fn put_call(out: &mut Vec<u8>, call: &Call) {
    out.push(4);
    put(out, call.begin_ns);
    put(out, call.end_ns.saturating_sub(call.begin_ns));
    out.push(call.function as u8);
    out.push(u8::from(call.large_count));
    put(out, u64::from(call.thread));
    let at = out.len();
    out.extend_from_slice(&[0; 3]);
    let mut mask = 0_u32;
    let mut field = |bit: u32, out: &mut Vec<u8>, value: Option<u64>| {
        if let Some(value) = value {
            mask |= 1 << bit;
            put(out, value);
        }
    };
    let zigzag = |value: i64| ((value << 1) ^ (value >> 63)) as u64;
    field(0, out, call.error.map(|e| u64::from(e.number())));
    field(1, out, call.handle.map(u64::from));
    field(2, out, call.offset.map(zigzag));
    field(3, out, call.count.map(zigzag));
    field(4, out, call.datatype.map(u64::from));
    field(5, out, call.etype.map(u64::from));
    field(6, out, call.filetype.map(u64::from));
    field(7, out, call.comm.map(u64::from));
    field(8, out, call.amode.map(|a| u64::from(a.0)));
    field(9, out, call.info.map(u64::from));
    field(10, out, call.granted.map(u64::from));
    field(11, out, call.whence.map(|w| w as u64));
    field(12, out, call.flag.map(u64::from));
    field(13, out, call.number.map(zigzag));
    field(14, out, call.bytes);
    field(15, out, call.request);
    field(16, out, (call.polls > 0).then_some(call.polls));
    field(17, out, call.buffer.map(|address| address as u64));
    field(18, out, call.name.as_ref().map(|name| name.len() as u64));
    if let Some(name) = &call.name {
        out.extend_from_slice(name.as_bytes());
    }
    if let Some(unchanged_ns) = call.unchanged_ns {
        mask |= 1 << 19;
        put(out, unchanged_ns);
    }
    if let Some(path) = &call.path {
        mask |= 1 << 20;
        put_text(out, path);
    }
    if let Some(FileIdentity { device, inode, created_unix_ns }) = call.identity {
        mask |= 1 << 21;
        [device, inode, created_unix_ns].into_iter().for_each(|number| put(out, number));
    }
    if let Some(path) = &call.target_path {
        mask |= 1 << 22;
        put_text(out, path);
    }
    out[at..at + 3].copy_from_slice(&mask.to_le_bytes()[..3]);
    put_list(out, &call.requests);
    put(out, call.completions.len() as u64);
    for done in &call.completions {
        put(out, done.request);
        put(out, done.bytes.map_or(0, |bytes| bytes.saturating_add(1)));
        put(out, done.error.map_or(0, |error| u64::from(error.number()) + 1));
    }
}

/// Decodes an event and its tick; None if the bytes are invalid. Times of calls are ticks.
#[must_use]
pub fn read(bytes: &[u8]) -> Option<(u64, Event)> {
    let mut from = VarintReader(bytes);
    let kind = from.byte()?;
    let tick = from.number()?;
    let event = match kind {
        1 => Event::Type { id: from.number32()?, datatype: datatype(&mut from)? },
        2 => Event::Comm { id: from.number32()?, ranks: from.sequence(VarintReader::number32)? },
        3 => Event::Info { id: from.number32()?, pairs: from.sequence(|from| Some((from.text()?, from.text()?)))? },
        4 => Event::Call(Box::new(call(&mut from, tick)?)),
        5 => Event::Storage { id: from.number32()?, path: from.text()?, fs_type: from.text()? },
        6 => {
            from.number32()?;
            Event::Removed { path: from.text()? }
        }
        _ => return None,
    };
    from.finish((tick, event))
}

fn error(number: u64) -> Option<ErrorClass> {
    ErrorClass::from_number(u8::try_from(number).ok()?)
}

fn call(from: &mut VarintReader<'_>, tick: u64) -> Option<Call> {
    let end = tick.checked_add(from.number()?)?;
    let mut call = Call::new(Function::from_number(from.byte()?)?, tick, end);
    call.large_count = from.byte()? == 1 && call.function.has_large_count_variant();
    call.thread = from.number32()?;
    let mask = u32::from_le_bytes([from.byte()?, from.byte()?, from.byte()?, 0]);
    let signed = |value: u64| (value >> 1) as i64 ^ -((value & 1) as i64);
    for bit in (0..24).filter(|bit| mask & 1 << bit != 0) {
        if bit == 20 || bit == 22 {
            *(if bit == 20 { &mut call.path } else { &mut call.target_path }) = Some(from.text()?);
            continue;
        }
        let value = from.number()?;
        let id = u32::try_from(value).ok();
        match bit {
            0 => call.error = Some(error(value)?),
            1 => call.handle = Some(id?),
            2 => call.offset = Some(signed(value)),
            3 => call.count = Some(signed(value)),
            4 => call.datatype = Some(id?),
            5 => call.etype = Some(id?),
            6 => call.filetype = Some(id?),
            7 => call.comm = Some(id?),
            8 => call.amode = Some(Amode(u16::try_from(value).ok()?)),
            9 => call.info = Some(id?),
            10 => call.granted = Some(id?),
            11 => call.whence = Some(*[Whence::Set, Whence::Current, Whence::End].get(value as usize)?),
            12 => call.flag = Some(value == 1),
            13 => call.number = Some(signed(value)),
            14 => call.bytes = Some(value),
            15 => call.request = Some(value),
            16 => call.polls = value,
            17 => call.buffer = Some(value as i64),
            18 => {
                let length = usize::try_from(value).ok().filter(|n| *n <= from.0.len())?;
                let (name, rest) = from.0.split_at(length);
                call.name = Some(String::from_utf8(name.to_vec()).ok()?);
                from.0 = rest;
            }
            19 => call.unchanged_ns = Some(value),
            21 => {
                let (inode, created_unix_ns) = (from.number()?, from.number()?);
                call.identity = Some(FileIdentity { device: value, inode, created_unix_ns });
            }
            _ => return None,
        }
    }
    call.requests = from.list()?;
    call.completions = from.sequence(|from| {
        let request = from.number()?;
        let bytes = from.number()?.checked_sub(1);
        let error = match from.number()? {
            0 => None,
            number => Some(error(number - 1)?),
        };
        Some(Completion { request, bytes, error })
    })?;
    Some(call)
}

/// Appends a datatype without time or number, so that equal types have equal bytes.
pub fn put_datatype(out: &mut Vec<u8>, datatype: &Datatype) {
    let kind = |out: &mut Vec<u8>, kind: u8, of: u32| {
        out.push(kind);
        put(out, u64::from(of));
    };
    match datatype {
        Datatype::Named { name, size_bytes, extent_bytes } => {
            kind(out, 0, 0);
            put_text(out, name);
            put(out, *size_bytes);
            put_signed(out, *extent_bytes);
        }
        Datatype::Contiguous { count, of } => {
            kind(out, 1, *of);
            put(out, *count);
        }
        Datatype::Vector { count, block, stride, of }
        | Datatype::Hvector { count, block, stride_bytes: stride, of } => {
            kind(out, if matches!(datatype, Datatype::Vector { .. }) { 2 } else { 3 }, *of);
            put(out, *count);
            put(out, *block);
            put_signed(out, *stride);
        }
        Datatype::Indexed { blocks, displacements, of }
        | Datatype::Hindexed { blocks, displacements_bytes: displacements, of } => {
            kind(out, if matches!(datatype, Datatype::Indexed { .. }) { 4 } else { 5 }, *of);
            put_list(out, blocks);
            put_signed_list(out, displacements);
        }
        Datatype::IndexedBlock { block, displacements, of }
        | Datatype::HindexedBlock { block, displacements_bytes: displacements, of } => {
            kind(out, if matches!(datatype, Datatype::IndexedBlock { .. }) { 6 } else { 7 }, *of);
            put(out, *block);
            put_signed_list(out, displacements);
        }
        Datatype::Struct { blocks, displacements_bytes, of } => {
            kind(out, 8, 0);
            put_list(out, blocks);
            put_signed_list(out, displacements_bytes);
            put(out, of.len() as u64);
            of.iter().for_each(|id| put(out, u64::from(*id)));
        }
        Datatype::Subarray { sizes, subsizes, starts, order, of } => {
            kind(out, 9, *of);
            [sizes, subsizes, starts].into_iter().for_each(|list| put_list(out, list));
            out.push(*order as u8);
        }
        Datatype::Darray { ranks, rank, sizes, distributions, arguments, grid, order, of } => {
            kind(out, 10, *of);
            put(out, *ranks);
            put(out, *rank);
            [sizes, grid].into_iter().for_each(|list| put_list(out, list));
            put(out, distributions.len() as u64);
            distributions.iter().for_each(|one| out.push(*one as u8));
            put(out, arguments.len() as u64);
            arguments.iter().for_each(|one| put(out, one.map_or(0, |value| value.saturating_add(1))));
            out.push(*order as u8);
        }
        Datatype::Resized { lower_bound_bytes, extent_bytes, of } => {
            kind(out, 11, *of);
            put_signed(out, *lower_bound_bytes);
            put_signed(out, *extent_bytes);
        }
    }
}

fn order(from: &mut VarintReader<'_>) -> Option<ArrayOrder> {
    [ArrayOrder::C, ArrayOrder::Fortran].get(usize::from(from.byte()?)).copied()
}

fn distribution(from: &mut VarintReader<'_>) -> Option<Distribution> {
    [Distribution::None, Distribution::Block, Distribution::Cyclic].get(usize::from(from.byte()?)).copied()
}

fn datatype(from: &mut VarintReader<'_>) -> Option<Datatype> {
    let kind = from.byte()?;
    let of = from.number32()?;
    Some(match kind {
        0 => Datatype::Named { name: from.text()?, size_bytes: from.number()?, extent_bytes: from.signed()? },
        1 => Datatype::Contiguous { count: from.number()?, of },
        2 => Datatype::Vector { count: from.number()?, block: from.number()?, stride: from.signed()?, of },
        3 => Datatype::Hvector { count: from.number()?, block: from.number()?, stride_bytes: from.signed()?, of },
        4 => Datatype::Indexed { blocks: from.list()?, displacements: from.signed_list()?, of },
        5 => Datatype::Hindexed { blocks: from.list()?, displacements_bytes: from.signed_list()?, of },
        6 => Datatype::IndexedBlock { block: from.number()?, displacements: from.signed_list()?, of },
        7 => Datatype::HindexedBlock { block: from.number()?, displacements_bytes: from.signed_list()?, of },
        8 => Datatype::Struct {
            blocks: from.list()?,
            displacements_bytes: from.signed_list()?,
            of: from.sequence(VarintReader::number32)?,
        },
        9 => Datatype::Subarray {
            sizes: from.list()?,
            subsizes: from.list()?,
            starts: from.list()?,
            order: order(from)?,
            of,
        },
        10 => Datatype::Darray {
            ranks: from.number()?,
            rank: from.number()?,
            sizes: from.list()?,
            grid: from.list()?,
            distributions: from.sequence(distribution)?,
            arguments: from.sequence(|from| from.number().map(|value| value.checked_sub(1)))?,
            order: order(from)?,
            of,
        },
        11 => Datatype::Resized { lower_bound_bytes: from.signed()?, extent_bytes: from.signed()?, of },
        _ => return None,
    })
}
