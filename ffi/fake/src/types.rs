//! Datatypes, described by their construction.

use std::ffi::c_int;

use crate::words::{handle, handle_at, int, list, predefined_type, put_handle, Word};
use crate::world::{with, DerivedTypeState};

/// Description and size.
pub fn describe(word: Word) -> (String, i64) {
    let handle = handle(word);
    let derived = with(|rank| rank.types.get(&handle).cloned());
    match derived {
        Some(derived) => (derived.description, derived.size),
        None => predefined_type(handle).unwrap_or_else(|| panic!("an invalid or freed datatype: {handle:#x}")),
    }
}

/// As [`describe`], for a type used in a call, which must be committed.
pub fn describe_committed(word: Word) -> (String, i64) {
    let committed = with(|rank| rank.types.get(&handle(word)).is_none_or(|derived| derived.committed));
    assert!(committed, "a datatype that is not committed: {}", describe(word).0);
    describe(word)
}

fn new_type(new: Word, text: String, size: i64) -> c_int {
    let type_handle = with(|rank| {
        let handle = rank.new_handle();
        rank.types.insert(handle, DerivedTypeState { description: text, size, committed: false });
        handle
    });
    put_handle(new, 0, type_handle);
    0
}

#[no_mangle]
extern "C" fn MPI_Type_contiguous(count: Word, old: Word, new: Word) -> c_int {
    let (description, size) = describe(old);
    new_type(new, format!("{}*{description}", int(count)), int(count) * size)
}

#[no_mangle]
extern "C" fn MPI_Type_create_resized(old: Word, lower: Word, extent: Word, new: Word) -> c_int {
    let (description, size) = describe(old);
    new_type(new, format!("{description} from {} every {}", lower as i64, extent as i64), size)
}

#[no_mangle]
extern "C" fn MPI_Type_create_struct(count: Word, lengths: Word, places: Word, types: Word, new: Word) -> c_int {
    let (lengths, places) = (list::<i32>(lengths, count), list::<i64>(places, count));
    let parts = (0..lengths.len()).map(|n| (lengths[n], places[n], describe(handle_at(types, n))));
    let (mut components, mut size) = (Vec::new(), 0);
    for (length, place, (part, bytes)) in parts {
        components.push(format!("{length}*({part}) at {place}"));
        size += i64::from(length) * bytes;
    }
    new_type(new, format!("[{}]", components.join(", ")), size)
}

#[no_mangle]
extern "C" fn MPI_Type_commit(datatype: Word) -> c_int {
    let known = with(|rank| rank.types.get_mut(&handle_at(datatype, 0)).map(|derived| derived.committed = true));
    assert!(known.is_some(), "MPI_Type_commit of an invalid type");
    0
}

#[no_mangle]
extern "C" fn MPI_Type_free(datatype: Word) -> c_int {
    let known = with(|rank| rank.types.remove(&handle_at(datatype, 0)));
    assert!(known.is_some(), "MPI_Type_free of an invalid type");
    0
}
