//! MPI_Info.

use std::ffi::c_int;

use crate::words::{handle, handle_at, info_null, int, put, put_handle, text, Word};
use crate::world::with;

/// Description for the log.
pub fn describe(info: Word) -> String {
    if handle(info) == info_null() {
        return "none".to_owned();
    }
    let pairs = with(|rank| rank.infos.get(&handle(info)).cloned());
    let Some(pairs) = pairs else { return "freed".to_owned() };
    let pairs: Vec<String> = pairs.iter().map(|(key, value)| format!("{key}={value}")).collect();
    format!("{{{}}}", pairs.join(" "))
}

pub fn new_info(pairs: Vec<(String, String)>) -> Word {
    with(|rank| {
        let handle = rank.new_handle();
        rank.infos.insert(handle, pairs);
        handle
    })
}

#[no_mangle]
extern "C" fn MPI_Info_create(info: Word) -> c_int {
    put_handle(info, 0, new_info(Vec::new()));
    0
}

#[no_mangle]
extern "C" fn MPI_Info_free(info: Word) -> c_int {
    let known = with(|rank| rank.infos.remove(&handle_at(info, 0)));
    assert!(known.is_some(), "MPI_Info_free of an invalid info");
    put_handle(info, 0, info_null());
    0
}

#[no_mangle]
extern "C" fn MPI_Info_set(info: Word, key: Word, value: Word) -> c_int {
    let pair = (text(key), text(value));
    with(|rank| rank.infos.get_mut(&handle(info)).map(|pairs| pairs.push(pair)));
    0
}

fn pair(info: Word, find: impl Fn(usize, &str) -> bool) -> Option<(String, String)> {
    with(|rank| {
        let pairs = rank.infos.get(&handle(info))?;
        pairs.iter().enumerate().find(|(n, (key, _))| find(*n, key)).map(|(_, pair)| pair.clone())
    })
}

fn put_text(address: Word, text: &str) {
    text.bytes().chain([0]).enumerate().for_each(|(n, byte)| put(address + n, byte));
}

#[no_mangle]
extern "C" fn MPI_Info_get_nkeys(info: Word, keys: Word) -> c_int {
    put(keys, with(|rank| rank.infos.get(&handle(info)).map_or(0, Vec::len)) as c_int);
    0
}

#[no_mangle]
extern "C" fn MPI_Info_get_nthkey(info: Word, number: Word, key: Word) -> c_int {
    let found = pair(info, |n, _| n as i64 == int(number));
    put_text(key, &found.map(|(key, _)| key).unwrap_or_default());
    0
}

#[no_mangle]
extern "C" fn MPI_Info_get(info: Word, key: Word, _: Word, value: Word, found: Word) -> c_int {
    let key = text(key);
    let known = pair(info, |_, one| one == key);
    put(found, c_int::from(known.is_some()));
    put_text(value, &known.map(|(_, value)| value).unwrap_or_default());
    0
}
