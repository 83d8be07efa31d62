//! MPI-IO: every call is logged and transfers all requested bytes.

use std::ffi::c_int;

use crate::requests::put_request;
use crate::words::{
    errors_are_fatal, errors_return, file_null, get, int, interface, put, put_handle, put_status, text, Interface, Word,
};
use crate::world::{with, OutstandingOperation, ScriptedResult};
use crate::{infos, types};

/// Logs a call and returns its scripted result.
fn log_call(name: &str, arguments: &str) -> ScriptedResult {
    with(|rank| {
        rank.log(format!("File_{name}{}{arguments}", if arguments.is_empty() { "" } else { " " }));
        rank.next_result(&format!("File_{name}"))
    })
}

/// A call that returns only its code.
fn plain(name: &str, file: Word, arguments: &str) -> c_int {
    assert_open(name, file);
    match log_call(name, arguments) {
        ScriptedResult::Code(code) | ScriptedResult::Refused(code) => code,
        _ => 0,
    }
}

fn assert_open(name: &str, file: Word) {
    assert!(with(|rank| rank.files.contains_key(&file)), "MPI_File_{name} with a file that is not open");
}

/// Names of the flags of an access mode, which have the same numbers in MPICH and Open MPI.
fn mode_names(mode: Word) -> String {
    let names =
        ["create", "rdonly", "wronly", "rdwr", "delete_on_close", "unique_open", "excl", "append", "sequential"];
    let bits =
        if interface() == Interface::Standard { [1, 4, 8, 5, 2, 7, 3, 0, 6] } else { [0, 1, 2, 3, 4, 5, 6, 7, 8] };
    let set = names.iter().zip(bits).filter(|(_, bit)| mode >> bit & 1 != 0);
    set.map(|(name, _)| *name).collect::<Vec<_>>().join("|")
}

#[no_mangle]
extern "C" fn MPI_File_open(comm: Word, name: Word, mode: Word, info: Word, file: Word) -> c_int {
    let (name, on) = (text(name), with(|rank| rank.comm(comm).name.clone()));
    let arguments = format!("{name} by {on} {} hints {}", mode_names(mode), infos::describe(info));
    if let ScriptedResult::Code(code) | ScriptedResult::Refused(code) = log_call("open", &arguments) {
        return code;
    }
    let handle = with(|rank| {
        let handle = rank.new_handle();
        rank.files.insert(handle, name);
        handle
    });
    put(file, handle);
    0
}

#[no_mangle]
extern "C" fn MPI_File_close(file: Word) -> c_int {
    let code = plain("close", get(file), "");
    with(|rank| rank.files.remove(&get(file)));
    put(file, file_null());
    code
}

#[no_mangle]
extern "C" fn MPI_File_delete(name: Word, info: Word) -> c_int {
    match log_call("delete", &format!("{} hints {}", text(name), infos::describe(info))) {
        ScriptedResult::Code(code) | ScriptedResult::Refused(code) => code,
        _ => 0,
    }
}

#[no_mangle]
extern "C" fn MPI_File_set_view(file: Word, place: Word, etype: Word, filetype: Word, name: Word, info: Word) -> c_int {
    let (etype, filetype) = (types::describe_committed(etype).0, types::describe_committed(filetype).0);
    let arguments =
        format!("from {} of {etype} in {filetype} {} hints {}", place as i64, text(name), infos::describe(info));
    plain("set_view", file, &arguments)
}

#[no_mangle]
extern "C" fn MPI_File_get_info(file: Word, info: Word) -> c_int {
    let code = plain("get_info", file, "");
    put_handle(info, 0, infos::new_info(vec![("in_force".to_owned(), "yes".to_owned())]));
    code
}

#[no_mangle]
extern "C" fn MPI_File_set_info(file: Word, info: Word) -> c_int {
    plain("set_info", file, &infos::describe(info))
}

#[no_mangle]
extern "C" fn MPI_File_sync(file: Word) -> c_int {
    plain("sync", file, "")
}

#[no_mangle]
extern "C" fn MPI_File_set_size(file: Word, bytes: Word) -> c_int {
    plain("set_size", file, &(bytes as i64).to_string())
}

#[no_mangle]
extern "C" fn MPI_File_preallocate(file: Word, bytes: Word) -> c_int {
    plain("preallocate", file, &(bytes as i64).to_string())
}

#[no_mangle]
extern "C" fn MPI_File_seek(file: Word, offset: Word, whence: Word) -> c_int {
    // MPI_SEEK_SET and MPI_SEEK_CUR; those of the standard ABI as in the mpi.h of MPICH 5.0.
    let (set, current) = if interface() == Interface::Standard { (403, 401) } else { (600, 602) };
    with(|rank| {
        let begin = if int(whence) == current { rank.position } else { 0 };
        let end = if [set, current].contains(&int(whence)) { 0 } else { rank.file_bytes };
        rank.position = begin + end + offset as i64;
    });
    plain("seek", file, &format!("{} by {}", offset as i64, int(whence)))
}

#[no_mangle]
extern "C" fn MPI_File_seek_shared(file: Word, offset: Word, whence: Word) -> c_int {
    plain("seek_shared", file, &format!("{} by {}", offset as i64, int(whence)))
}

#[no_mangle]
extern "C" fn MPI_File_set_atomicity(file: Word, flag: Word) -> c_int {
    plain("set_atomicity", file, &int(flag).to_string())
}

#[no_mangle]
extern "C" fn MPI_File_get_atomicity(file: Word, flag: Word) -> c_int {
    put(flag, 1 as c_int);
    plain("get_atomicity", file, "")
}

#[no_mangle]
extern "C" fn MPI_File_set_errhandler(_: Word, _: Word) -> c_int {
    0
}

#[no_mangle]
extern "C" fn MPI_File_get_errhandler(_: Word, handler: Word) -> c_int {
    put_handle(handler, 0, if with(|rank| rank.fatal_file_errors) { errors_are_fatal() } else { errors_return() });
    0
}

#[no_mangle]
extern "C" fn MPI_Errhandler_free(_: Word) -> c_int {
    0
}

/// The position is a scripted number of bytes, else that of the last seek.
#[no_mangle]
extern "C" fn MPI_File_get_position(file: Word, answer: Word) -> c_int {
    assert_open("get_position", file);
    let position = match log_call("get_position", "") {
        ScriptedResult::Code(code) | ScriptedResult::Refused(code) => return code,
        ScriptedResult::Bytes(bytes) => bytes as i64,
        ScriptedResult::Success | ScriptedResult::Filled(_) => with(|rank| rank.position),
    };
    put(answer, position);
    0
}

/// Calls that return a number.
macro_rules! ask {
    ($($name:ident $told:literal $answer:expr;)+) => {
        $(
            #[no_mangle]
            extern "C" fn $name(file: Word, answer: Word) -> c_int {
                put::<i64>(answer, with($answer));
                plain($told, file, "")
            }
        )+
    };
}

ask! {
    MPI_File_get_size "get_size" |rank| rank.file_bytes;
    MPI_File_get_position_shared "get_position_shared" |_| 12;
}

#[no_mangle]
extern "C" fn MPI_File_get_byte_offset(file: Word, offset: Word, answer: Word) -> c_int {
    put::<i64>(answer, 100 + offset as i64);
    plain("get_byte_offset", file, &(offset as i64).to_string())
}

/// Result of a data access: transferred bytes or error code.
enum AccessResult {
    Transferred(u64),
    Failed(c_int),
    Refused(c_int),
}

/// A data access.
fn access(name: &str, file: Word, offset: Option<Word>, memory: Word, count: Word, kind: Word) -> AccessResult {
    assert_open(name, file);
    let (datatype, size) = types::describe_committed(kind);
    let offset = offset.map_or_else(String::new, |offset| format!("at {} ", offset as i64));
    let place = with(|rank| rank.describe_address(memory));
    match log_call(name, &format!("{offset}{}x {datatype} {place}", int(count))) {
        ScriptedResult::Code(code) => AccessResult::Failed(code),
        ScriptedResult::Refused(code) => AccessResult::Refused(code),
        ScriptedResult::Bytes(bytes) => AccessResult::Transferred(bytes),
        ScriptedResult::Filled(byte) => {
            let bytes = (int(count) * size) as usize;
            (0..bytes).for_each(|n| put(memory + n, byte));
            AccessResult::Transferred(bytes as u64)
        }
        ScriptedResult::Success => AccessResult::Transferred((int(count) * size) as u64),
    }
}

fn blocking(result: AccessResult, status: Word) -> c_int {
    match result {
        AccessResult::Transferred(bytes) => {
            put_status(status, bytes, 0);
            0
        }
        AccessResult::Failed(code) | AccessResult::Refused(code) => code,
    }
}

/// A request whose error is reported on completion.
fn nonblocking(result: AccessResult, request: Word) -> c_int {
    match result {
        AccessResult::Transferred(bytes) => put_request(request, OutstandingOperation::Completed(bytes, 0)),
        AccessResult::Failed(code) => put_request(request, OutstandingOperation::Completed(0, code)),
        AccessResult::Refused(code) => code,
    }
}

macro_rules! accesses {
    ($($at:ident $at_told:literal $here:ident $here_told:literal $end:ident;)+) => {
        $(
            #[no_mangle]
            extern "C" fn $at(file: Word, offset: Word, memory: Word, count: Word, kind: Word, out: Word) -> c_int {
                $end(access($at_told, file, Some(offset), memory, count, kind), out)
            }
            #[no_mangle]
            extern "C" fn $here(file: Word, memory: Word, count: Word, kind: Word, out: Word) -> c_int {
                $end(access($here_told, file, None, memory, count, kind), out)
            }
        )+
    };
}

accesses! {
    MPI_File_read_at "read_at" MPI_File_read "read" blocking;
    MPI_File_write_at "write_at" MPI_File_write "write" blocking;
    MPI_File_read_at_all "read_at_all" MPI_File_read_all "read_all" blocking;
    MPI_File_write_at_all "write_at_all" MPI_File_write_all "write_all" blocking;
    MPI_File_iread_at "iread_at" MPI_File_iread "iread" nonblocking;
    MPI_File_iwrite_at "iwrite_at" MPI_File_iwrite "iwrite" nonblocking;
    MPI_File_iread_at_all "iread_at_all" MPI_File_iread_all "iread_all" nonblocking;
    MPI_File_iwrite_at_all "iwrite_at_all" MPI_File_iwrite_all "iwrite_all" nonblocking;
}

/// Functions without a variant with an offset.
macro_rules! shared {
    ($($here:ident $told:literal $end:ident;)+) => {
        $(
            #[no_mangle]
            extern "C" fn $here(file: Word, memory: Word, count: Word, kind: Word, out: Word) -> c_int {
                $end(access($told, file, None, memory, count, kind), out)
            }
        )+
    };
}

shared! {
    MPI_File_read_shared "read_shared" blocking;
    MPI_File_write_shared "write_shared" blocking;
    MPI_File_read_ordered "read_ordered" blocking;
    MPI_File_write_ordered "write_ordered" blocking;
    MPI_File_iread_shared "iread_shared" nonblocking;
    MPI_File_iwrite_shared "iwrite_shared" nonblocking;
}

/// Begin of a split collective call; keeps the bytes for the end.
fn begun(result: AccessResult) -> c_int {
    match result {
        AccessResult::Transferred(bytes) => {
            with(|rank| rank.requests.insert(usize::MAX, OutstandingOperation::Completed(bytes, 0)));
            0
        }
        AccessResult::Failed(code) | AccessResult::Refused(code) => code,
    }
}

fn over(name: &str, file: Word, memory: Word, status: Word) -> c_int {
    let place = with(|rank| rank.describe_address(memory));
    assert_open(name, file);
    let answer = log_call(name, &place);
    let begun = with(|rank| rank.requests.remove(&usize::MAX));
    let Some(OutstandingOperation::Completed(bytes, _)) = begun else { panic!("MPI_File_{name} without a begin") };
    match answer {
        ScriptedResult::Code(code) | ScriptedResult::Refused(code) => return code,
        ScriptedResult::Bytes(bytes) => put_status(status, bytes, 0),
        ScriptedResult::Success | ScriptedResult::Filled(_) => put_status(status, bytes, 0),
    }
    0
}

macro_rules! split {
    ($($at:ident $at_told:literal $at_end:ident $at_end_told:literal
       $here:ident $here_told:literal $here_end:ident $here_end_told:literal;)+) => {
        $(
            #[no_mangle]
            extern "C" fn $at(file: Word, offset: Word, memory: Word, count: Word, kind: Word) -> c_int {
                begun(access($at_told, file, Some(offset), memory, count, kind))
            }
            #[no_mangle]
            extern "C" fn $at_end(file: Word, memory: Word, status: Word) -> c_int {
                over($at_end_told, file, memory, status)
            }
            split_here! { $here $here_told $here_end $here_end_told; }
        )+
    };
}

macro_rules! split_here {
    ($($here:ident $told:literal $end:ident $end_told:literal;)+) => {
        $(
            #[no_mangle]
            extern "C" fn $here(file: Word, memory: Word, count: Word, kind: Word) -> c_int {
                begun(access($told, file, None, memory, count, kind))
            }
            #[no_mangle]
            extern "C" fn $end(file: Word, memory: Word, status: Word) -> c_int {
                over($end_told, file, memory, status)
            }
        )+
    };
}

split! {
    MPI_File_read_at_all_begin "read_at_all_begin" MPI_File_read_at_all_end "read_at_all_end"
        MPI_File_read_all_begin "read_all_begin" MPI_File_read_all_end "read_all_end";
    MPI_File_write_at_all_begin "write_at_all_begin" MPI_File_write_at_all_end "write_at_all_end"
        MPI_File_write_all_begin "write_all_begin" MPI_File_write_all_end "write_all_end";
}
split_here! {
    MPI_File_read_ordered_begin "read_ordered_begin" MPI_File_read_ordered_end "read_ordered_end";
    MPI_File_write_ordered_begin "write_ordered_begin" MPI_File_write_ordered_end "write_ordered_end";
}
