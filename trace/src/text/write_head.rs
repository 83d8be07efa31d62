//! Formats the head.

use super::fields::{put, put_pair, put_text};
use super::predefined;
use super::section::FIRST_LINE;
use crate::types::Distribution;
use crate::{ArrayOrder, Datatype, OpenedFile, Process, ProfileHead};

/// Appends the head, including the first line.
pub(super) fn write_head(out: &mut Vec<u8>, head: &ProfileHead) {
    out.extend_from_slice(FIRST_LINE.as_bytes());
    out.push(b'\n');
    write_line(out, "library", |out| put_text(out, &head.library));
    if !head.command.is_empty() {
        write_line(out, "command", |out| head.command.iter().for_each(|word| put_text(out, word)));
    }
    if head.started_unix_ns != 0 {
        write_line(out, "started", |out| put_index(out, head.started_unix_ns));
    }
    if let Some(cost) = head.cost_ns.filter(|cost| cost.is_finite()) {
        write_line(out, "cost", |out| put_text(out, &cost.to_string()));
    }
    write_line(out, "ranks", |out| put_index(out, head.processes.len()));
    for (rank, process) in head.processes.iter().enumerate() {
        write_line(out, "process", |out| write_process(out, rank, process));
    }
    for (n, comm) in head.comms.iter().enumerate() {
        write_line(out, "comm", |out| {
            put_index(out, n);
            out.push(b',');
            write_ranks(out, comm);
        });
    }
    for (n, datatype) in head.types.iter().enumerate() {
        write_line(out, "type", |out| {
            put_index(out, n);
            write_type(out, datatype);
        });
    }
    for (n, info) in head.infos.iter().enumerate() {
        write_line(out, "info", |out| {
            put_index(out, n);
            info.iter().for_each(|(key, value)| put_pair(out, key, value));
        });
    }
    for (n, file) in head.files.iter().enumerate() {
        write_line(out, "file", |out| write_file(out, n, file));
    }
}

fn write_line(out: &mut Vec<u8>, section: &str, fields: impl FnOnce(&mut Vec<u8>)) {
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

/// World ranks; three or more consecutive ones as `first-last`.
fn write_ranks(out: &mut Vec<u8>, ranks: &[u32]) {
    let mut rest = ranks;
    while let Some(&first) = rest.first() {
        let run = rest.iter().zip(u64::from(first)..).take_while(|(a, b)| u64::from(**a) == *b).count();
        let run_len = if run < 3 { 1 } else { run };
        put(out, first);
        if run_len > 1 {
            out.push(b'-');
            put(out, rest[run_len - 1]);
        }
        rest = &rest[run_len..];
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
    if let Some(made_ns) = file.created_ns {
        write_number(out, "made", made_ns);
    }
    if let Some(gone_ns) = file.removed_ns {
        write_number(out, "gone", gone_ns);
    }
}

fn write_number(out: &mut Vec<u8>, key: &str, value: impl itoa::Integer) {
    out.push(b',');
    out.extend_from_slice(key.as_bytes());
    out.push(b'=');
    put(out, value);
}

fn write_list<T: itoa::Integer + Copy>(out: &mut Vec<u8>, key: &str, values: &[T]) {
    write_words(out, key, values.iter(), |out, value| put(out, **value));
}

fn write_words<T>(out: &mut Vec<u8>, key: &str, values: impl Iterator<Item = T>, one: impl Fn(&mut Vec<u8>, &T)) {
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

fn write_type(out: &mut Vec<u8>, datatype: &Datatype) {
    if let Datatype::Named { name, size_bytes, extent_bytes } = datatype {
        if predefined::is_name(name) {
            put_text(out, name);
        } else {
            put_text(out, "named");
            put_pair(out, "name", name);
        }
        write_number(out, "size", *size_bytes);
        if i64::try_from(*size_bytes) != Ok(*extent_bytes) {
            write_number(out, "extent", *extent_bytes);
        }
        return;
    }
    put_text(out, constructor_name(datatype));
    match datatype {
        Datatype::Named { .. } => {}
        Datatype::Contiguous { count, of } => {
            write_number(out, "count", *count);
            write_number(out, "of", *of);
        }
        Datatype::Vector { count, block, stride, of } => {
            write_number(out, "count", *count);
            write_number(out, "block", *block);
            write_number(out, "stride", *stride);
            write_number(out, "of", *of);
        }
        Datatype::Hvector { count, block, stride_bytes, of } => {
            write_number(out, "count", *count);
            write_number(out, "block", *block);
            write_number(out, "stride_bytes", *stride_bytes);
            write_number(out, "of", *of);
        }
        Datatype::Resized { lower_bound_bytes, extent_bytes, of } => {
            write_number(out, "lower_bound", *lower_bound_bytes);
            write_number(out, "extent", *extent_bytes);
            write_number(out, "of", *of);
        }
        other => write_lists(out, other),
    }
}

fn write_lists(out: &mut Vec<u8>, datatype: &Datatype) {
    match datatype {
        Datatype::Indexed { blocks, displacements, of } => {
            write_list(out, "blocks", blocks);
            write_list(out, "displacements", displacements);
            write_number(out, "of", *of);
        }
        Datatype::Hindexed { blocks, displacements_bytes, of } => {
            write_list(out, "blocks", blocks);
            write_list(out, "displacements_bytes", displacements_bytes);
            write_number(out, "of", *of);
        }
        Datatype::IndexedBlock { block, displacements, of } => {
            write_number(out, "block", *block);
            write_list(out, "displacements", displacements);
            write_number(out, "of", *of);
        }
        Datatype::HindexedBlock { block, displacements_bytes, of } => {
            write_number(out, "block", *block);
            write_list(out, "displacements_bytes", displacements_bytes);
            write_number(out, "of", *of);
        }
        Datatype::Struct { blocks, displacements_bytes, of } => {
            write_list(out, "blocks", blocks);
            write_list(out, "displacements_bytes", displacements_bytes);
            write_list(out, "of", of);
        }
        Datatype::Subarray { sizes, subsizes, starts, order, of } => {
            write_list(out, "sizes", sizes);
            write_list(out, "subsizes", subsizes);
            write_list(out, "starts", starts);
            put_pair(out, "order", order_name(*order));
            write_number(out, "of", *of);
        }
        Datatype::Darray { ranks, rank, sizes, distributions, arguments, grid, order, of } => {
            write_number(out, "ranks", *ranks);
            write_number(out, "rank", *rank);
            write_list(out, "sizes", sizes);
            write_words(out, "distributions", distributions.iter(), |out, d| {
                out.extend_from_slice(distribution_name(**d).as_bytes())
            });
            write_words(out, "arguments", arguments.iter(), |out, argument| match argument {
                Some(argument) => put(out, *argument),
                None => out.push(b'-'),
            });
            write_list(out, "grid", grid);
            put_pair(out, "order", order_name(*order));
            write_number(out, "of", *of);
        }
        _ => {}
    }
}

pub(super) fn constructor_name(datatype: &Datatype) -> &'static str {
    match datatype {
        Datatype::Named { .. } => "named",
        Datatype::Contiguous { .. } => "contiguous",
        Datatype::Vector { .. } => "vector",
        Datatype::Hvector { .. } => "hvector",
        Datatype::Indexed { .. } => "indexed",
        Datatype::Hindexed { .. } => "hindexed",
        Datatype::IndexedBlock { .. } => "indexed_block",
        Datatype::HindexedBlock { .. } => "hindexed_block",
        Datatype::Struct { .. } => "struct",
        Datatype::Subarray { .. } => "subarray",
        Datatype::Darray { .. } => "darray",
        Datatype::Resized { .. } => "resized",
    }
}

fn order_name(order: ArrayOrder) -> &'static str {
    match order {
        ArrayOrder::C => "c",
        ArrayOrder::Fortran => "fortran",
    }
}

fn distribution_name(distribution: Distribution) -> &'static str {
    match distribution {
        Distribution::None => "none",
        Distribution::Block => "block",
        Distribution::Cyclic => "cyclic",
    }
}
