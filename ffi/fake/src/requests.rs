//! Requests: pending operations and their completion.

use std::ffi::c_int;

use crate::words::{
    error_code, handle_at, int, predefined_type, put, put_handle, put_status, request_null, status_bytes,
    status_count_bytes, Word,
};
use crate::world::{wait_until, with, OutstandingOperation, RankContext};

pub fn put_request(address: Word, pending: OutstandingOperation) -> c_int {
    let request_handle = with(|rank| {
        let handle = rank.new_handle();
        rank.requests.insert(handle, pending);
        handle
    });
    put_handle(address, 0, request_handle);
    0
}

/// Bytes and code of an operation if it has completed.
pub fn poll(pending: &OutstandingOperation) -> Option<(u64, i32)> {
    match pending {
        OutstandingOperation::Completed(bytes, code) => Some((*bytes, *code)),
        OutstandingOperation::Receive(key, memory, most) => {
            let found = with(|rank| {
                if rank.is_alone {
                    return Some(None);
                }
                rank.world.lock().messages.remove(key).map(Some)
            })?;
            let Some(bytes) = found else { return Some((*most as u64, 0)) };
            let fits = bytes.len().min(*most);
            bytes[..fits].iter().enumerate().for_each(|(n, byte)| put(memory + n, *byte));
            Some((fits as u64, if bytes.len() > fits { error_code("MPI_ERR_TRUNCATE") } else { 0 }))
        }
        OutstandingOperation::Collective(key, members, complete) => {
            let all = with(|rank| {
                let shared = rank.world.lock();
                let given = &shared.collectives[key];
                (rank.is_alone || given.len() == *members).then(|| given.values().cloned().collect::<Vec<_>>())
            })?;
            complete(all);
            Some((0, 0))
        }
        // An inactive request is complete (MPI-4.1, section 3.9).
        OutstandingOperation::Persistent(_, active) => active.as_ref().map_or(Some((0, 0)), |active| poll(active)),
    }
}

fn pending_operation(request: Word) -> Option<OutstandingOperation> {
    if request == request_null() {
        return None;
    }
    let known = with(|rank| rank.requests.get(&request).cloned());
    Some(known.unwrap_or_else(|| panic!("an invalid or completed request: {request:#x}")))
}

/// Completes the request at an address if possible.
fn try_complete(requests: Word, index: usize) -> Option<(u64, i32)> {
    let request = handle_at(requests, index);
    let Some(pending) = pending_operation(request) else { return Some((0, 0)) };
    let result = poll(&pending)?;
    if let OutstandingOperation::Persistent(start, _) = pending {
        with(|rank| rank.requests.insert(request, OutstandingOperation::Persistent(start, None)));
    } else {
        with(|rank| rank.requests.remove(&request));
        put_handle(requests, index, request_null());
    }
    Some(result)
}

#[no_mangle]
extern "C" fn MPI_Start(request: Word) -> c_int {
    let request = handle_at(request, 0);
    let Some(OutstandingOperation::Persistent(start, None)) = pending_operation(request) else {
        panic!("MPI_Start of a request that is not persistent, or active")
    };
    match start() {
        Ok(active) => {
            let active = OutstandingOperation::Persistent(start, Some(Box::new(active)));
            with(|rank| rank.requests.insert(request, active));
            0
        }
        Err(code) => code,
    }
}

fn complete(requests: Word, index: usize, what: &str) -> (u64, i32) {
    wait_until(what, || try_complete(requests, index))
}

fn status_at(statuses: Word, index: usize) -> Word {
    if crate::words::is_status_ignore(statuses) {
        statuses
    } else {
        statuses + index * status_bytes()
    }
}

fn is_active(requests: Word, index: usize) -> bool {
    handle_at(requests, index) != request_null()
}

/// Return code of a call on several requests.
fn combined_code(results: &[(u64, i32)]) -> c_int {
    if results.iter().any(|(_, code)| *code != 0) {
        error_code("MPI_ERR_IN_STATUS")
    } else {
        0
    }
}

#[no_mangle]
extern "C" fn MPI_Wait(request: Word, status: Word) -> c_int {
    with(|rank| rank.log("Wait".to_owned()));
    let (bytes, code) = complete(request, 0, "MPI_Wait");
    put_status(status, bytes, 0);
    code
}

#[no_mangle]
extern "C" fn MPI_Test(request: Word, flag: Word, status: Word) -> c_int {
    let result = try_complete(request, 0);
    if result.is_none() {
        // A rank that polls would never see it.
        with(|rank| assert!(!rank.world.lock().failed, "rank {}: another rank has panicked", rank.rank));
    }
    put(flag, c_int::from(result.is_some()));
    let (bytes, code) = result.unwrap_or_default();
    put_status(status, bytes, 0);
    code
}

#[no_mangle]
extern "C" fn MPI_Waitall(count: Word, requests: Word, statuses: Word) -> c_int {
    with(|rank| rank.log(format!("Waitall of {}", int(count))));
    let all: Vec<_> = (0..int(count) as usize).map(|n| complete(requests, n, "MPI_Waitall")).collect();
    all.iter().enumerate().for_each(|(n, (bytes, code))| put_status(status_at(statuses, n), *bytes, *code));
    combined_code(&all)
}

#[no_mangle]
extern "C" fn MPI_Testall(count: Word, requests: Word, flag: Word, statuses: Word) -> c_int {
    with(|rank| rank.log(format!("Testall of {}", int(count))));
    put(flag, 1 as c_int);
    MPI_Waitall(count, requests, statuses)
}

#[no_mangle]
extern "C" fn MPI_Waitany(count: Word, requests: Word, index: Word, status: Word) -> c_int {
    with(|rank| rank.log(format!("Waitany of {}", int(count))));
    let first = (0..int(count) as usize).find(|n| is_active(requests, *n));
    put(index, first.map_or(-32766, |n| n as c_int));
    let (bytes, code) = first.map(|n| complete(requests, n, "MPI_Waitany")).unwrap_or_default();
    put_status(status, bytes, 0);
    code
}

#[no_mangle]
extern "C" fn MPI_Testany(count: Word, requests: Word, index: Word, flag: Word, status: Word) -> c_int {
    put(flag, 1 as c_int);
    MPI_Waitany(count, requests, index, status)
}

#[no_mangle]
extern "C" fn MPI_Waitsome(count: Word, requests: Word, found: Word, indices: Word, statuses: Word) -> c_int {
    with(|rank| rank.log(format!("Waitsome of {}", int(count))));
    let active: Vec<usize> = (0..int(count) as usize).filter(|n| is_active(requests, *n)).collect();
    let all: Vec<_> = active.iter().map(|n| complete(requests, *n, "MPI_Waitsome")).collect();
    for (place, (n, (bytes, code))) in active.iter().zip(&all).enumerate() {
        put(indices + 4 * place, *n as c_int);
        put_status(status_at(statuses, place), *bytes, *code);
    }
    put(found, if active.is_empty() { -32766 } else { active.len() as c_int });
    combined_code(&all)
}

#[no_mangle]
extern "C" fn MPI_Testsome(count: Word, requests: Word, found: Word, indices: Word, statuses: Word) -> c_int {
    MPI_Waitsome(count, requests, found, indices, statuses)
}

#[no_mangle]
extern "C" fn MPI_Request_free(request: Word) -> c_int {
    with(|rank: &mut RankContext| {
        rank.log("Request_free".to_owned());
        rank.requests.remove(&handle_at(request, 0));
    });
    put_handle(request, 0, request_null());
    0
}

#[no_mangle]
extern "C" fn MPI_Cancel(_: Word) -> c_int {
    with(|rank| rank.log("Cancel".to_owned()));
    0
}

#[no_mangle]
extern "C" fn MPI_Request_get_status(request: Word, flag: Word, status: Word) -> c_int {
    with(|rank| rank.log("Request_get_status".to_owned()));
    put(flag, 1 as c_int);
    if let Some(OutstandingOperation::Completed(bytes, _)) = pending_operation(crate::words::handle(request)) {
        put_status(status, bytes, 0);
    }
    0
}

#[no_mangle]
extern "C" fn MPI_Get_count(status: Word, datatype: Word, count: Word) -> c_int {
    put(count, elements(status, datatype).and_then(|n| c_int::try_from(n).ok()).unwrap_or(-32766));
    0
}

#[no_mangle]
extern "C" fn MPI_Get_elements_x(status: Word, datatype: Word, count: Word) -> c_int {
    put(count, elements(status, datatype).unwrap_or(-32766));
    0
}

/// None if the bytes are not a multiple of the element.
fn elements(status: Word, datatype: Word) -> Option<i64> {
    let (_, bytes) = predefined_type(crate::words::handle(datatype))?;
    let transferred = status_count_bytes(status) as i64;
    (transferred % bytes == 0).then_some(transferred / bytes)
}

#[no_mangle]
extern "C" fn MPI_Error_class(code: Word, class: Word) -> c_int {
    put(class, int(code) as c_int);
    0
}

#[no_mangle]
extern "C" fn MPI_Error_string(code: Word, out: Word, length: Word) -> c_int {
    let message = format!("error {}", int(code));
    message.bytes().chain([0]).enumerate().for_each(|(n, byte)| put(out + n, byte));
    put(length, message.len() as c_int);
    0
}
