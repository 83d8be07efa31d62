//! All wrapped functions, one row each, grouped by their arguments. All arguments are passed as words, so calls of another MPI are
//! unaffected.

use std::ffi::c_int;

use beff_trace::Function;

use crate::data::{self, AccessArguments};
use crate::files::{self, output_value};
use crate::mpi::{handle, Word};
use crate::name::Name;
use crate::original::Symbol;
use crate::requests::{self, Statuses};
use crate::{dictionary, environment, program};

/// Exports one function: resolves the original and passes both to the body.
macro_rules! export {
    ($symbol:ident, $function:ident, $large:literal, $pmpi:literal, ($($argument:ident),*), |$name:ident, $call:ident| $body:expr) => {
        #[no_mangle]
        unsafe extern "C-unwind" fn $symbol($($argument: Word),*) -> c_int {
            static ORIGINAL: Symbol = Symbol::new(match std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($symbol), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("a name without zero"),
            });
            // SAFETY: the function of this name takes that many words.
            let original = unsafe {
                core::mem::transmute::<usize, unsafe extern "C-unwind" fn($(export!(@word $argument)),*) -> c_int>(ORIGINAL.function())
            };
            #[allow(unused_variables)]
            let $name = Name { function: Function::$function, large: $large, pmpi: $pmpi };
            // SAFETY: the arguments of the program, or a status of this library if it ignores the status.
            let $call = |$($argument: Word),*| unsafe { original($($argument),*) };
            $body
        }
    };
    (@word $argument:ident) => { Word };
}

/// Exports a function under its `MPI_` and `PMPI_` names.
macro_rules! twice {
    ($function:ident, $large:literal, $mpi:ident, $pmpi:ident, $arguments:tt, |$name:ident, $call:ident| $body:expr) => {
        export!($mpi, $function, $large, false, $arguments, |$name, $call| $body);
        export!($pmpi, $function, $large, true, $arguments, |$name, $call| $body);
    };
}

/// Data access routines, with large-count variants if the library has them.
macro_rules! accesses {
    ($arguments:tt, |$name:ident, $call:ident| $body:expr; $($function:ident: $mpi:ident $pmpi:ident $mpi_c:ident $pmpi_c:ident;)+) => {
        $(
            twice!($function, false, $mpi, $pmpi, $arguments, |$name, $call| $body);
            #[cfg(mpi_large)]
            twice!($function, true, $mpi_c, $pmpi_c, $arguments, |$name, $call| $body);
        )+
    };
}

accesses! {
    (file, offset, memory, count, datatype, status), |name, call| data::blocking(
        name, AccessArguments { file, offset: Some(offset), count, datatype, memory }, status,
        |status| call(file, offset, memory, count, datatype, status));
    ReadAt: MPI_File_read_at PMPI_File_read_at MPI_File_read_at_c PMPI_File_read_at_c;
    ReadAtAll: MPI_File_read_at_all PMPI_File_read_at_all MPI_File_read_at_all_c PMPI_File_read_at_all_c;
    WriteAt: MPI_File_write_at PMPI_File_write_at MPI_File_write_at_c PMPI_File_write_at_c;
    WriteAtAll: MPI_File_write_at_all PMPI_File_write_at_all MPI_File_write_at_all_c PMPI_File_write_at_all_c;
}

accesses! {
    (file, offset, memory, count, datatype, request), |name, call| data::nonblocking(
        name, AccessArguments { file, offset: Some(offset), count, datatype, memory }, request,
        || call(file, offset, memory, count, datatype, request));
    IreadAt: MPI_File_iread_at PMPI_File_iread_at MPI_File_iread_at_c PMPI_File_iread_at_c;
    IreadAtAll: MPI_File_iread_at_all PMPI_File_iread_at_all MPI_File_iread_at_all_c PMPI_File_iread_at_all_c;
    IwriteAt: MPI_File_iwrite_at PMPI_File_iwrite_at MPI_File_iwrite_at_c PMPI_File_iwrite_at_c;
    IwriteAtAll: MPI_File_iwrite_at_all PMPI_File_iwrite_at_all MPI_File_iwrite_at_all_c PMPI_File_iwrite_at_all_c;
}

accesses! {
    (file, offset, memory, count, datatype), |name, call| data::begin(
        name, AccessArguments { file, offset: Some(offset), count, datatype, memory }, || call(file, offset, memory, count, datatype));
    ReadAtAllBegin: MPI_File_read_at_all_begin PMPI_File_read_at_all_begin MPI_File_read_at_all_begin_c PMPI_File_read_at_all_begin_c;
    WriteAtAllBegin: MPI_File_write_at_all_begin PMPI_File_write_at_all_begin MPI_File_write_at_all_begin_c PMPI_File_write_at_all_begin_c;
}

accesses! {
    (file, memory, count, datatype, status), |name, call| data::blocking(
        name, AccessArguments { file, offset: None, count, datatype, memory }, status, |status| call(file, memory, count, datatype, status));
    Read: MPI_File_read PMPI_File_read MPI_File_read_c PMPI_File_read_c;
    ReadAll: MPI_File_read_all PMPI_File_read_all MPI_File_read_all_c PMPI_File_read_all_c;
    Write: MPI_File_write PMPI_File_write MPI_File_write_c PMPI_File_write_c;
    WriteAll: MPI_File_write_all PMPI_File_write_all MPI_File_write_all_c PMPI_File_write_all_c;
    ReadShared: MPI_File_read_shared PMPI_File_read_shared MPI_File_read_shared_c PMPI_File_read_shared_c;
    WriteShared: MPI_File_write_shared PMPI_File_write_shared MPI_File_write_shared_c PMPI_File_write_shared_c;
    ReadOrdered: MPI_File_read_ordered PMPI_File_read_ordered MPI_File_read_ordered_c PMPI_File_read_ordered_c;
    WriteOrdered: MPI_File_write_ordered PMPI_File_write_ordered MPI_File_write_ordered_c PMPI_File_write_ordered_c;
}

accesses! {
    (file, memory, count, datatype, request), |name, call| data::nonblocking(
        name, AccessArguments { file, offset: None, count, datatype, memory }, request, || call(file, memory, count, datatype, request));
    Iread: MPI_File_iread PMPI_File_iread MPI_File_iread_c PMPI_File_iread_c;
    IreadAll: MPI_File_iread_all PMPI_File_iread_all MPI_File_iread_all_c PMPI_File_iread_all_c;
    Iwrite: MPI_File_iwrite PMPI_File_iwrite MPI_File_iwrite_c PMPI_File_iwrite_c;
    IwriteAll: MPI_File_iwrite_all PMPI_File_iwrite_all MPI_File_iwrite_all_c PMPI_File_iwrite_all_c;
    IreadShared: MPI_File_iread_shared PMPI_File_iread_shared MPI_File_iread_shared_c PMPI_File_iread_shared_c;
    IwriteShared: MPI_File_iwrite_shared PMPI_File_iwrite_shared MPI_File_iwrite_shared_c PMPI_File_iwrite_shared_c;
}

accesses! {
    (file, memory, count, datatype), |name, call| data::begin(
        name, AccessArguments { file, offset: None, count, datatype, memory }, || call(file, memory, count, datatype));
    ReadAllBegin: MPI_File_read_all_begin PMPI_File_read_all_begin MPI_File_read_all_begin_c PMPI_File_read_all_begin_c;
    WriteAllBegin: MPI_File_write_all_begin PMPI_File_write_all_begin MPI_File_write_all_begin_c PMPI_File_write_all_begin_c;
    ReadOrderedBegin: MPI_File_read_ordered_begin PMPI_File_read_ordered_begin MPI_File_read_ordered_begin_c PMPI_File_read_ordered_begin_c;
    WriteOrderedBegin: MPI_File_write_ordered_begin PMPI_File_write_ordered_begin MPI_File_write_ordered_begin_c PMPI_File_write_ordered_begin_c;
}

/// Functions without a large-count variant.
macro_rules! calls {
    ($arguments:tt, |$name:ident, $call:ident| $body:expr; $($function:ident: $mpi:ident $pmpi:ident;)+) => {
        $(twice!($function, false, $mpi, $pmpi, $arguments, |$name, $call| $body);)+
    };
}

calls! {
    (file, memory, status), |name, call| data::end(name, file, status, |status| call(file, memory, status));
    ReadAtAllEnd: MPI_File_read_at_all_end PMPI_File_read_at_all_end;
    WriteAtAllEnd: MPI_File_write_at_all_end PMPI_File_write_at_all_end;
    ReadAllEnd: MPI_File_read_all_end PMPI_File_read_all_end;
    WriteAllEnd: MPI_File_write_all_end PMPI_File_write_all_end;
    ReadOrderedEnd: MPI_File_read_ordered_end PMPI_File_read_ordered_end;
    WriteOrderedEnd: MPI_File_write_ordered_end PMPI_File_write_ordered_end;
}

calls! {
    (comm, path, mode, info, file), |name, call| files::open(name, [comm, path, mode, info, file], || call(comm, path, mode, info, file));
    Open: MPI_File_open PMPI_File_open;
}
calls! {
    (file), |name, call| files::close(name, file, || call(file));
    Close: MPI_File_close PMPI_File_close;
}
calls! {
    (path, info), |name, call| files::delete(name, path, info, || call(path, info));
    Delete: MPI_File_delete PMPI_File_delete;
}
calls! {
    (file, offset, etype, filetype, representation, info), |name, call| files::set_view(
        name, [file, offset, etype, filetype, representation, info], || call(file, offset, etype, filetype, representation, info));
    SetView: MPI_File_set_view PMPI_File_set_view;
}
calls! {
    (file, info), |name, call| files::set_info(name, file, info, || call(file, info));
    SetInfo: MPI_File_set_info PMPI_File_set_info;
}
calls! {
    (file), |name, call| files::record_simple(name, || call(file), |lane, call| call.handle = lane.file(file));
    Sync: MPI_File_sync PMPI_File_sync;
}
calls! {
    (file, answer), |name, call| files::record_simple(name, || call(file, answer), |lane, call| call.handle = lane.file(file));
    GetGroup: MPI_File_get_group PMPI_File_get_group;
    GetInfo: MPI_File_get_info PMPI_File_get_info;
}
calls! {
    (file, offset), |name, call| files::record_simple(name, || call(file, offset), |lane, call| {
        call.handle = lane.file(file);
        call.offset = Some(offset as i64);
    });
    SetSize: MPI_File_set_size PMPI_File_set_size;
    Preallocate: MPI_File_preallocate PMPI_File_preallocate;
}
calls! {
    (file, number), |name, call| files::record_simple(name, || call(file, number), |lane, call| {
        call.handle = lane.file(file);
        // SAFETY: the call has written an MPI_Offset.
        call.number = unsafe { output_value::<i64>(call, number) };
    });
    GetSize: MPI_File_get_size PMPI_File_get_size;
    GetPosition: MPI_File_get_position PMPI_File_get_position;
    GetPositionShared: MPI_File_get_position_shared PMPI_File_get_position_shared;
}
calls! {
    (file, mode), |name, call| files::record_simple(name, || call(file, mode), |lane, call| {
        call.handle = lane.file(file);
        // SAFETY: the call has written an int.
        call.amode = unsafe { output_value::<c_int>(call, mode) }.map(files::amode);
    });
    GetAmode: MPI_File_get_amode PMPI_File_get_amode;
}
calls! {
    (file, offset, etype, filetype, representation), |name, call| files::record_simple(
        name, || call(file, offset, etype, filetype, representation), |lane, call| {
            call.handle = lane.file(file);
            // SAFETY: the call has written an MPI_Offset.
            call.number = unsafe { output_value::<i64>(call, offset) };
        });
    GetView: MPI_File_get_view PMPI_File_get_view;
}
calls! {
    (file, offset, whence), |name, call| files::record_simple(name, || call(file, offset, whence), |lane, call| {
        call.handle = lane.file(file);
        call.offset = Some(offset as i64);
        call.whence = files::whence(whence);
        call.number = files::end_position(call, file);
    });
    Seek: MPI_File_seek PMPI_File_seek;
    SeekShared: MPI_File_seek_shared PMPI_File_seek_shared;
}
calls! {
    (file, offset, bytes), |name, call| files::record_simple(name, || call(file, offset, bytes), |lane, call| {
        call.handle = lane.file(file);
        call.offset = Some(offset as i64);
        // SAFETY: the call has written an MPI_Offset.
        call.number = unsafe { output_value::<i64>(call, bytes) };
    });
    GetByteOffset: MPI_File_get_byte_offset PMPI_File_get_byte_offset;
}
accesses! {
    (file, datatype, extent), |name, call| files::type_extent(name, file, datatype, extent, || call(file, datatype, extent));
    GetTypeExtent: MPI_File_get_type_extent PMPI_File_get_type_extent MPI_File_get_type_extent_c PMPI_File_get_type_extent_c;
}
accesses! {
    (representation, read, write, extent, state), |name, call| files::record_simple(
        name, || call(representation, read, write, extent, state), |_, call| {
            // SAFETY: the program passes a name.
            call.name = unsafe { crate::decode::text_at(representation) };
        });
    RegisterDatarep: MPI_Register_datarep PMPI_Register_datarep MPI_Register_datarep_c PMPI_Register_datarep_c;
}
calls! {
    (file, flag), |name, call| files::record_simple(name, || call(file, flag), |lane, call| {
        call.handle = lane.file(file);
        call.flag = Some(flag as c_int != 0);
    });
    SetAtomicity: MPI_File_set_atomicity PMPI_File_set_atomicity;
}
calls! {
    (file, flag), |name, call| files::record_simple(name, || call(file, flag), |lane, call| {
        call.handle = lane.file(file);
        // SAFETY: the call has written an int.
        call.flag = unsafe { output_value::<c_int>(call, flag) }.map(|flag| flag != 0);
    });
    GetAtomicity: MPI_File_get_atomicity PMPI_File_get_atomicity;
}
calls! {
    (function, errhandler), |name, call| files::record_simple(name, || call(function, errhandler), |_, _| {});
    CreateErrhandler: MPI_File_create_errhandler PMPI_File_create_errhandler;
}
calls! {
    (file, errhandler), |name, call| files::record_simple(name, || call(file, errhandler), |lane, call| {
        call.handle = lane.file(file);
        call.number = Some(files::errhandler_number(errhandler));
    });
    SetErrhandler: MPI_File_set_errhandler PMPI_File_set_errhandler;
}
calls! {
    (file, errhandler), |name, call| files::record_simple(name, || call(file, errhandler), |lane, call| {
        call.handle = lane.file(file);
        call.number = files::errhandler_at(call, errhandler);
    });
    GetErrhandler: MPI_File_get_errhandler PMPI_File_get_errhandler;
}
calls! {
    (file, code), |name, call| files::record_simple(name, || call(file, code), |lane, call| {
        call.handle = lane.file(file);
        call.number = Some(i64::from(crate::mpi::error_class(code as c_int).number()));
    });
    CallErrhandler: MPI_File_call_errhandler PMPI_File_call_errhandler;
}

calls! {
    (count, arguments), |name, call| program::init(name, 0, || call(count, arguments));
    Init: MPI_Init PMPI_Init;
}
calls! {
    (count, arguments, required, provided), |name, call| program::init(name, provided, || call(count, arguments, required, provided));
    InitThread: MPI_Init_thread PMPI_Init_thread;
}
#[cfg(mpi_sessions)]
calls! {
    (info, errhandler, session), |name, call| program::session_init(name, session, || call(info, errhandler, session));
    SessionInit: MPI_Session_init PMPI_Session_init;
}
#[cfg(mpi_sessions)]
calls! {
    (session), |name, call| program::finalize(name, || call(session));
    SessionFinalize: MPI_Session_finalize PMPI_Session_finalize;
}
calls! {
    (), |name, call| program::finalize(name, call);
    Finalize: MPI_Finalize PMPI_Finalize;
}
calls! {
    (comm, code), |name, call| program::abort(name, code, || call(comm, code));
    Abort: MPI_Abort PMPI_Abort;
}
// Variadic arguments after the level are in registers.
calls! {
    (level, a, b, c, d, e), |name, call| files::record_simple(name, || call(level, a, b, c, d, e), |_, call| {
        call.number = Some(i64::from(level as c_int));
    });
    Pcontrol: MPI_Pcontrol PMPI_Pcontrol;
}

calls! {
    (datatype), |name, call| {
        dictionary::type_freed(datatype);
        call(datatype)
    };
    Init: MPI_Type_free PMPI_Type_free;
}
calls! {
    (command, arguments, ranks, info, root, comm, intercomm, codes), |name, call|
        environment::shown_to(|| call(command, arguments, ranks, info, root, comm, intercomm, codes));
    Init: MPI_Comm_spawn PMPI_Comm_spawn;
}
calls! {
    (count, commands, arguments, ranks, infos, root, comm, intercomm, codes), |name, call|
        environment::shown_to(|| call(count, commands, arguments, ranks, infos, root, comm, intercomm, codes));
    Init: MPI_Comm_spawn_multiple PMPI_Comm_spawn_multiple;
}

/// One request.
fn one(array: Word, flag: Word, statuses: Statuses) -> requests::RequestArguments {
    requests::RequestArguments { array, length: 1, statuses, flag, completes: true }
}

/// An array of requests.
fn many(length: Word, array: Word, flag: Word, statuses: Statuses) -> requests::RequestArguments {
    requests::RequestArguments {
        array,
        length: usize::try_from(length as c_int).unwrap_or(0),
        statuses,
        flag,
        completes: true,
    }
}

calls! {
    (request, status), |name, call| requests::intercept(name, one(request, 0, Statuses::One(status)), |status| call(request, status));
    Wait: MPI_Wait PMPI_Wait;
}
calls! {
    (request, flag, status), |name, call| requests::intercept(
        name, one(request, flag, Statuses::One(status)), |status| call(request, flag, status));
    Test: MPI_Test PMPI_Test;
}
calls! {
    (request), |name, call| requests::intercept(name, one(request, 0, Statuses::None), |_| call(request));
    RequestFree: MPI_Request_free PMPI_Request_free;
}
calls! {
    (request), |name, call| requests::intercept(
        name, requests::RequestArguments { completes: false, ..one(request, 0, Statuses::None) }, |_| call(request));
    Cancel: MPI_Cancel PMPI_Cancel;
}
calls! {
    (count, array, index, status), |name, call| requests::intercept(
        name, many(count, array, 0, Statuses::One(status)), |status| call(count, array, index, status));
    Waitany: MPI_Waitany PMPI_Waitany;
}
calls! {
    (count, array, statuses), |name, call| requests::intercept(
        name, many(count, array, 0, Statuses::Each(statuses)), |statuses| call(count, array, statuses));
    Waitall: MPI_Waitall PMPI_Waitall;
}
calls! {
    (count, array, found, indices, statuses), |name, call| requests::intercept(
        name, many(count, array, 0, Statuses::Listed(statuses, found, indices)),
        |statuses| call(count, array, found, indices, statuses));
    Waitsome: MPI_Waitsome PMPI_Waitsome;
    Testsome: MPI_Testsome PMPI_Testsome;
}
calls! {
    (count, array, index, flag, status), |name, call| requests::intercept(
        name, many(count, array, flag, Statuses::One(status)), |status| call(count, array, index, flag, status));
    Testany: MPI_Testany PMPI_Testany;
}
calls! {
    (count, array, flag, statuses), |name, call| requests::intercept(
        name, many(count, array, flag, Statuses::Each(statuses)), |statuses| call(count, array, flag, statuses));
    Testall: MPI_Testall PMPI_Testall;
}
// Takes the request itself, not its address.
calls! {
    (request, flag, status), |name, call| {
        let word = handle(request);
        let given = requests::RequestArguments { completes: false, ..one(&raw const word as Word, flag, Statuses::None) };
        requests::intercept(name, given, |_| call(request, flag, status))
    };
    RequestGetStatus: MPI_Request_get_status PMPI_Request_get_status;
}
#[cfg(mpi_request_get_status_any)]
calls! {
    (count, array, index, flag, status), |name, call| requests::intercept(
        name, requests::RequestArguments { completes: false, ..many(count, array, flag, Statuses::None) },
        |_| call(count, array, index, flag, status));
    RequestGetStatusAny: MPI_Request_get_status_any PMPI_Request_get_status_any;
}
#[cfg(mpi_request_get_status_any)]
calls! {
    (count, array, flag, statuses), |name, call| requests::intercept(
        name, requests::RequestArguments { completes: false, ..many(count, array, flag, Statuses::None) }, |_| call(count, array, flag, statuses));
    RequestGetStatusAll: MPI_Request_get_status_all PMPI_Request_get_status_all;
}
#[cfg(mpi_request_get_status_any)]
calls! {
    (count, array, found, indices, statuses), |name, call| requests::intercept(
        name, requests::RequestArguments { completes: false, ..many(count, array, found, Statuses::None) },
        |_| call(count, array, found, indices, statuses));
    RequestGetStatusSome: MPI_Request_get_status_some PMPI_Request_get_status_some;
}

#[cfg(test)]
mod tests;
