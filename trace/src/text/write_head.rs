//! What stands before the calls, as text.

use super::fields::{put, put_pair, put_text};
use super::predefined;
use super::section::FIRST_LINE;
use crate::types::Distribution;
use crate::{Head, OpenedFile, Order, Process, Type};

/// The head with its first line.
pub(super) fn write_head(out: &mut Vec<u8>, head: &Head) {
    out.extend_from_slice(FIRST_LINE.as_bytes());
    out.push(b'\n');
    line(out, "library", |out| put_text(out, &head.library));
    if !head.command.is_empty() {
        line(out, "command", |out| head.command.iter().for_each(|word| put_text(out, word)));
    }
    if head.started_unix_ns != 0 {
        line(out, "started", |out| put_index(out, head.started_unix_ns));
    }
    if let Some(cost) = head.cost_ns.filter(|cost| cost.is_finite()) {
        line(out, "cost", |out| put_text(out, &cost.to_string()));
    }
    line(out, "ranks", |out| put_index(out, head.processes.len()));
    for (rank, process) in head.processes.iter().enumerate() {
        line(out, "process", |out| write_process(out, rank, process));
    }
    for (n, comm) in head.comms.iter().enumerate() {
        line(out, "comm", |out| {
            put_index(out, n);
            out.push(b',');
            write_ranks(out, comm);
        });
    }
    for (n, datatype) in head.types.iter().enumerate() {
        line(out, "type", |out| {
            put_index(out, n);
            write_type(out, datatype);
        });
    }
    for (n, info) in head.infos.iter().enumerate() {
        line(out, "info", |out| {
            put_index(out, n);
            info.iter().for_each(|(key, value)| put_pair(out, key, value));
        });
    }
    for (n, file) in head.files.iter().enumerate() {
        line(out, "file", |out| write_file(out, n, file));
    }
}

fn line(out: &mut Vec<u8>, section: &str, fields: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(section.as_bytes());
    fields(out);
    out.push(b'\n');
}

fn put_index(out: &mut Vec<u8>, number: impl itoa::Integer) {
    out.push(b',');
    put(out, number);
}

fn write_process(out: &mut Vec<u8>, rank: usize, process: &Process) {
    put_index(out, rank);
    put_text(out, &process.host);
    put_index(out, process.pid);
    out.extend_from_slice(b",clock=");
    put(out, process.clock_offset_ns[0]);
    out.push(b';');
    put(out, process.clock_offset_ns[1]);
    out.extend_from_slice(b",end=");
    out.extend_from_slice(process.end.name().as_bytes());
    if process.calls != 0 {
        out.extend_from_slice(b",calls=");
        put(out, process.calls);
    }
    if let Some([read, written]) = process.storage_bytes {
        out.extend_from_slice(b",storage=");
        put(out, read);
        out.push(b';');
        put(out, written);
    }
}

/// World ranks; three or more in a row as `first-last`.
fn write_ranks(out: &mut Vec<u8>, ranks: &[u32]) {
    let mut rest = ranks;
    while let Some(&first) = rest.first() {
        let run = rest.iter().zip(u64::from(first)..).take_while(|(a, b)| u64::from(**a) == *b).count();
        let taken = if run < 3 { 1 } else { run };
        put(out, first);
        if taken > 1 {
            out.push(b'-');
            put(out, rest[taken - 1]);
        }
        rest = &rest[taken..];
        if !rest.is_empty() {
            out.push(b';');
        }
    }
}

fn write_file(out: &mut Vec<u8>, n: usize, file: &OpenedFile) {
    put_index(out, n);
    put_text(out, &file.path);
    match file.size_bytes {
        Some(size) => put_index(out, size),
        None => out.extend_from_slice(b",-"),
    }
    if !file.fs_type.is_empty() {
        put_pair(out, "fs", &file.fs_type);
    }
    if let Some(made_ns) = file.made_ns {
        number(out, "made", made_ns);
    }
    if let Some(gone_ns) = file.gone_ns {
        number(out, "gone", gone_ns);
    }
}

fn number(out: &mut Vec<u8>, key: &str, value: impl itoa::Integer) {
    out.push(b',');
    out.extend_from_slice(key.as_bytes());
    out.push(b'=');
    put(out, value);
}

fn list<T: itoa::Integer + Copy>(out: &mut Vec<u8>, key: &str, values: &[T]) {
    words(out, key, values.iter(), |out, value| put(out, **value));
}

fn words<T>(out: &mut Vec<u8>, key: &str, values: impl Iterator<Item = T>, one: impl Fn(&mut Vec<u8>, &T)) {
    out.push(b',');
    out.extend_from_slice(key.as_bytes());
    out.push(b'=');
    for (n, value) in values.enumerate() {
        if n > 0 {
            out.push(b';');
        }
        one(out, &value);
    }
}

fn write_type(out: &mut Vec<u8>, datatype: &Type) {
    if let Type::Named { name, size_bytes, extent_bytes } = datatype {
        if predefined::is_name(name) {
            put_text(out, name);
        } else {
            put_text(out, "named");
            put_pair(out, "name", name);
        }
        number(out, "size", *size_bytes);
        if i64::try_from(*size_bytes) != Ok(*extent_bytes) {
            number(out, "extent", *extent_bytes);
        }
        return;
    }
    put_text(out, constructor(datatype));
    match datatype {
        Type::Named { .. } => {}
        Type::Contiguous { count, of } => {
            number(out, "count", *count);
            number(out, "of", *of);
        }
        Type::Vector { count, block, stride, of } => {
            number(out, "count", *count);
            number(out, "block", *block);
            number(out, "stride", *stride);
            number(out, "of", *of);
        }
        Type::Hvector { count, block, stride_bytes, of } => {
            number(out, "count", *count);
            number(out, "block", *block);
            number(out, "stride_bytes", *stride_bytes);
            number(out, "of", *of);
        }
        Type::Resized { lower_bound_bytes, extent_bytes, of } => {
            number(out, "lower_bound", *lower_bound_bytes);
            number(out, "extent", *extent_bytes);
            number(out, "of", *of);
        }
        other => write_lists(out, other),
    }
}

fn write_lists(out: &mut Vec<u8>, datatype: &Type) {
    match datatype {
        Type::Indexed { blocks, displacements, of } => {
            list(out, "blocks", blocks);
            list(out, "displacements", displacements);
            number(out, "of", *of);
        }
        Type::Hindexed { blocks, displacements_bytes, of } => {
            list(out, "blocks", blocks);
            list(out, "displacements_bytes", displacements_bytes);
            number(out, "of", *of);
        }
        Type::IndexedBlock { block, displacements, of } => {
            number(out, "block", *block);
            list(out, "displacements", displacements);
            number(out, "of", *of);
        }
        Type::HindexedBlock { block, displacements_bytes, of } => {
            number(out, "block", *block);
            list(out, "displacements_bytes", displacements_bytes);
            number(out, "of", *of);
        }
        Type::Struct { blocks, displacements_bytes, of } => {
            list(out, "blocks", blocks);
            list(out, "displacements_bytes", displacements_bytes);
            list(out, "of", of);
        }
        Type::Subarray { sizes, subsizes, starts, order, of } => {
            list(out, "sizes", sizes);
            list(out, "subsizes", subsizes);
            list(out, "starts", starts);
            put_pair(out, "order", order_name(*order));
            number(out, "of", *of);
        }
        Type::Darray { ranks, rank, sizes, distributions, arguments, grid, order, of } => {
            number(out, "ranks", *ranks);
            number(out, "rank", *rank);
            list(out, "sizes", sizes);
            words(out, "distributions", distributions.iter(), |out, d| {
                out.extend_from_slice(distribution_name(**d).as_bytes())
            });
            words(out, "arguments", arguments.iter(), |out, argument| match argument {
                Some(argument) => put(out, *argument),
                None => out.push(b'-'),
            });
            list(out, "grid", grid);
            put_pair(out, "order", order_name(*order));
            number(out, "of", *of);
        }
        _ => {}
    }
}

/// The word of a constructor.
pub(super) fn constructor(datatype: &Type) -> &'static str {
    match datatype {
        Type::Named { .. } => "named",
        Type::Contiguous { .. } => "contiguous",
        Type::Vector { .. } => "vector",
        Type::Hvector { .. } => "hvector",
        Type::Indexed { .. } => "indexed",
        Type::Hindexed { .. } => "hindexed",
        Type::IndexedBlock { .. } => "indexed_block",
        Type::HindexedBlock { .. } => "hindexed_block",
        Type::Struct { .. } => "struct",
        Type::Subarray { .. } => "subarray",
        Type::Darray { .. } => "darray",
        Type::Resized { .. } => "resized",
    }
}

fn order_name(order: Order) -> &'static str {
    match order {
        Order::C => "c",
        Order::Fortran => "fortran",
    }
}

fn distribution_name(distribution: Distribution) -> &'static str {
    match distribution {
        Distribution::None => "none",
        Distribution::Block => "block",
        Distribution::Cyclic => "cyclic",
    }
}
