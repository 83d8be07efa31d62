//! Requests: what is under way, and how it ends.

use std::ffi::c_int;

use crate::words::{
    error_code, handle_at, int, predefined_type, put, put_handle, put_status, request_null, status_bytes, told_bytes,
    Word,
};
use crate::world::{await_others, with, Pending, Rank};

/// A request for it.
pub fn put_request(address: Word, pending: Pending) -> c_int {
    let made = with(|rank| {
        let handle = rank.handle();
        rank.requests.insert(handle, pending);
        handle
    });
    put_handle(address, 0, made);
    0
}

/// Bytes and code of what has ended by now.
pub fn ended(pending: &Pending) -> Option<(u64, i32)> {
    match pending {
        Pending::Ended(bytes, code) => Some((*bytes, *code)),
        Pending::Receive(key, memory, most) => {
            let found = with(|rank| {
                if rank.poses {
                    return Some(None);
                }
                rank.world.lock().messages.remove(key).map(Some)
            })?;
            let Some(bytes) = found else { return Some((*most as u64, 0)) };
            let fits = bytes.len().min(*most);
            bytes[..fits].iter().enumerate().for_each(|(n, byte)| put(memory + n, *byte));
            Some((fits as u64, if bytes.len() > fits { error_code("MPI_ERR_TRUNCATE") } else { 0 }))
        }
        Pending::Meeting(key, members, made) => {
            let all = with(|rank| {
                let shared = rank.world.lock();
                let given = &shared.meetings[key];
                (rank.poses || given.len() == *members).then(|| given.values().cloned().collect::<Vec<_>>())
            })?;
            made(all);
            Some((0, 0))
        }
    }
}

fn pending(request: Word) -> Option<Pending> {
    if request == request_null() {
        return None;
    }
    let known = with(|rank| rank.requests.get(&request).cloned());
    Some(known.unwrap_or_else(|| panic!("a request that is none, or has ended: {request:#x}")))
}

/// Completes the request at an address, if it has ended.
fn completed(requests: Word, index: usize) -> Option<(u64, i32)> {
    let request = handle_at(requests, index);
    let Some(pending) = pending(request) else { return Some((0, 0)) };
    let told = ended(&pending)?;
    with(|rank| rank.requests.remove(&request));
    put_handle(requests, index, request_null());
    Some(told)
}

fn complete(requests: Word, index: usize, what: &str) -> (u64, i32) {
    await_others(what, || completed(requests, index))
}

fn status_at(statuses: Word, index: usize) -> Word {
    if crate::words::ignores(statuses) {
        statuses
    } else {
        statuses + index * status_bytes()
    }
}

fn is_active(requests: Word, index: usize) -> bool {
    handle_at(requests, index) != request_null()
}

/// What a call on several says where one of them has failed.
fn overall(told: &[(u64, i32)]) -> c_int {
    if told.iter().any(|(_, code)| *code != 0) {
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
    let told = completed(request, 0);
    if told.is_none() {
        // Who asks again and again would never learn of it.
        with(|rank| assert!(!rank.world.lock().failed, "rank {}: another rank has ended with a panic", rank.rank));
    }
    put(flag, c_int::from(told.is_some()));
    let (bytes, code) = told.unwrap_or_default();
    put_status(status, bytes, 0);
    code
}

#[no_mangle]
extern "C" fn MPI_Waitall(count: Word, requests: Word, statuses: Word) -> c_int {
    with(|rank| rank.log(format!("Waitall of {}", int(count))));
    let all: Vec<_> = (0..int(count) as usize).map(|n| complete(requests, n, "MPI_Waitall")).collect();
    all.iter().enumerate().for_each(|(n, (bytes, code))| put_status(status_at(statuses, n), *bytes, *code));
    overall(&all)
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
    overall(&all)
}

#[no_mangle]
extern "C" fn MPI_Testsome(count: Word, requests: Word, found: Word, indices: Word, statuses: Word) -> c_int {
    MPI_Waitsome(count, requests, found, indices, statuses)
}

#[no_mangle]
extern "C" fn MPI_Request_free(request: Word) -> c_int {
    with(|rank: &mut Rank| {
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
    if let Some(Pending::Ended(bytes, _)) = pending(crate::words::handle(request)) {
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

/// None where the bytes are no whole number of them.
fn elements(status: Word, datatype: Word) -> Option<i64> {
    let (_, bytes) = predefined_type(crate::words::handle(datatype))?;
    let told = told_bytes(status) as i64;
    (told % bytes == 0).then_some(told / bytes)
}

#[no_mangle]
extern "C" fn MPI_Error_class(code: Word, class: Word) -> c_int {
    put(class, int(code) as c_int);
    0
}

#[no_mangle]
extern "C" fn MPI_Error_string(code: Word, out: Word, length: Word) -> c_int {
    let told = format!("error {}", int(code));
    told.bytes().chain([0]).enumerate().for_each(|(n, byte)| put(out + n, byte));
    put(length, told.len() as c_int);
    0
}
