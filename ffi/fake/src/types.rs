//! Datatypes, described by how they were made.

use std::ffi::c_int;

use crate::words::{handle, handle_at, int, list, predefined_type, put_handle, Word};
use crate::world::{with, Type};

/// Description and size.
pub fn of(word: Word) -> (String, i64) {
    let handle = handle(word);
    let derived = with(|rank| rank.types.get(&handle).cloned());
    match derived {
        Some(derived) => (derived.told, derived.size),
        None => predefined_type(handle).unwrap_or_else(|| panic!("a datatype that is none, or was freed: {handle:#x}")),
    }
}

/// As [`of`], for a type that is used in a call: it must be committed.
pub fn used(word: Word) -> (String, i64) {
    let committed = with(|rank| rank.types.get(&handle(word)).is_none_or(|derived| derived.committed));
    assert!(committed, "a datatype that was not committed: {}", of(word).0);
    of(word)
}

fn make(new: Word, told: String, size: i64) -> c_int {
    let made = with(|rank| {
        let handle = rank.handle();
        rank.types.insert(handle, Type { told, size, committed: false });
        handle
    });
    put_handle(new, 0, made);
    0
}

#[no_mangle]
extern "C" fn MPI_Type_contiguous(count: Word, old: Word, new: Word) -> c_int {
    let (told, size) = of(old);
    make(new, format!("{}*{told}", int(count)), int(count) * size)
}

#[no_mangle]
extern "C" fn MPI_Type_create_resized(old: Word, lower: Word, extent: Word, new: Word) -> c_int {
    let (told, size) = of(old);
    make(new, format!("{told} from {} every {}", lower as i64, extent as i64), size)
}

#[no_mangle]
extern "C" fn MPI_Type_create_struct(count: Word, lengths: Word, places: Word, types: Word, new: Word) -> c_int {
    let (lengths, places) = (list::<i32>(lengths, count), list::<i64>(places, count));
    let parts = (0..lengths.len()).map(|n| (lengths[n], places[n], of(handle_at(types, n))));
    let (mut told, mut size) = (Vec::new(), 0);
    for (length, place, (part, bytes)) in parts {
        told.push(format!("{length}*({part}) at {place}"));
        size += i64::from(length) * bytes;
    }
    make(new, format!("[{}]", told.join(", ")), size)
}

#[no_mangle]
extern "C" fn MPI_Type_commit(datatype: Word) -> c_int {
    let known = with(|rank| rank.types.get_mut(&handle_at(datatype, 0)).map(|derived| derived.committed = true));
    assert!(known.is_some(), "MPI_Type_commit of what is no derived type");
    0
}

#[no_mangle]
extern "C" fn MPI_Type_free(datatype: Word) -> c_int {
    let known = with(|rank| rank.types.remove(&handle_at(datatype, 0)));
    assert!(known.is_some(), "MPI_Type_free of what is no derived type");
    0
}
