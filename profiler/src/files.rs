//! The calls that manage files.

use std::ffi::{c_int, CStr, CString};
use std::time::{SystemTime, UNIX_EPOCH};

use beff_trace::{Amode, Call, Whence};

use crate::clock::ticks;
use crate::decode::text_at;
use crate::dictionary;
use crate::handles::is;
use crate::lane::Lane;
use crate::mpi::{beff_modes, beff_whences, constant, constants, handle, handle_at, pmpi, Word};
use crate::name::Name;
use crate::original::Symbol;
use crate::storage::without_driver;

/// A call that is recorded when it is over; `fill` adds what it was given and answered.
#[inline(always)]
pub fn simple(name: Name, call: impl FnOnce() -> c_int, fill: impl FnOnce(&mut Lane, &mut Call)) -> c_int {
    let Some(mut inside) = name.enter() else { return call() };
    let begin = ticks();
    let code = call();
    let end = ticks();
    let mut call = name.call(begin, end, code);
    fill(inside.lane(), &mut call);
    inside.lane().short(&mut call);
    code
}

/// A value that a call has answered, if it succeeded.
///
/// # Safety
/// One is there if it did.
pub unsafe fn answer<T: Copy>(call: &Call, address: Word) -> Option<T> {
    // SAFETY: as promised.
    (call.error.is_none() && address != 0).then(|| unsafe { *(address as *const T) })
}

/// The access mode in bits of our own.
pub fn amode(value: c_int) -> Amode {
    let modes = constant!(beff_modes);
    let bits = modes.iter().enumerate().filter(|(_, mode)| value & **mode != 0);
    Amode(bits.map(|(bit, _)| 1 << bit).sum())
}

/// From where a seek counts; None if it is no such number.
pub fn whence(value: Word) -> Option<Whence> {
    let place = constant!(beff_whences).iter().position(|one| *one == value as c_int)?;
    Some([Whence::Set, Whence::Current, Whence::End][place])
}

/// A file before it is opened: its size in bytes and how long it has been as it is, in ns. None: there is none.
fn before(name: &str) -> Option<(i64, u64)> {
    let path = CString::new(without_driver(name)).ok()?;
    // SAFETY: a status is numbers, for which zeros are values.
    let mut status: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the path ends with zero, the status is ours.
    if unsafe { libc::stat(path.as_ptr(), &raw mut status) } != 0 {
        return None;
    }
    let changed_ns = i128::from(status.st_mtime) * 1_000_000_000 + i128::from(status.st_mtime_nsec);
    let now_ns = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i128);
    // The clock of a server may be ahead.
    Some((status.st_size, u64::try_from(now_ns - changed_ns).unwrap_or(0)))
}

/// True on one rank of a communicator. One that looks is enough, and thousands would be a burden.
fn is_first(comm: Word) -> bool {
    let mut rank: c_int = -1;
    pmpi!(Comm_rank(comm, &raw mut rank)) == 0 && rank == 0
}

/// MPI_File_open.
pub fn open(name: Name, [comm, path, mode, info, file]: [Word; 5], call: impl FnOnce() -> c_int) -> c_int {
    let Some(mut inside) = name.enter() else { return call() };
    // SAFETY: the program gives a name.
    let path = unsafe { text_at(path) };
    let found = path.as_deref().map(before);
    let gone = dictionary::gone();
    let begin = ticks();
    let code = call();
    let end = ticks();
    let mut call = name.call(begin, end, code);
    let lane = inside.lane();
    // SAFETY: a successful call has left a handle there; it is a pointer in every MPI.
    let opened = (code == 0).then(|| unsafe { *(file as *const Word) });
    call.handle = Some(dictionary::opened(opened, path.as_deref().filter(|_| code == 0 && is_first(comm))));
    call.name = path;
    call.number = found.map(|found| found.map_or(-1, |(size_bytes, _)| size_bytes));
    call.unchanged_ns = found.flatten().map(|(_, unchanged_ns)| unchanged_ns);
    call.amode = Some(amode(mode as c_int));
    if !is(&call, "MPI_ERR_COMM") {
        call.comm = lane.comm(handle(comm), begin);
    }
    if !is(&call, "MPI_ERR_INFO") {
        call.info = lane.info(handle(info), begin);
    }
    call.granted = opened.and_then(|file| lane.granted(file, begin));
    if let (Some(path), 0) = (&call.name, code) {
        lane.storage(path, begin);
    }
    gone.iter().for_each(|path| lane.gone(path, begin));
    lane.call(&mut call);
    code
}

/// MPI_File_close.
pub fn close(name: Name, address: Word, call: impl FnOnce() -> c_int) -> c_int {
    let Some(mut inside) = name.enter() else { return call() };
    // SAFETY: the program gives the address of a handle.
    let file = unsafe { *(address as *const Word) };
    let number = inside.lane().file(file);
    let begin = ticks();
    let code = call();
    let end = ticks();
    if code == 0 {
        dictionary::closed(file, number);
    }
    let mut call = name.call(begin, end, code);
    call.handle = number;
    inside.lane().short(&mut call);
    code
}

/// MPI_File_set_view.
pub fn set_view(name: Name, given: [Word; 6], call: impl FnOnce() -> c_int) -> c_int {
    let Some(mut inside) = name.enter() else { return call() };
    let [file, offset, etype, filetype, representation, info] = given;
    // SAFETY: the program gives a name.
    let representation = unsafe { text_at(representation) };
    let begin = ticks();
    let code = call();
    let end = ticks();
    let mut call = name.call(begin, end, code);
    let lane = inside.lane();
    call.handle = lane.file(file);
    call.offset = Some(offset as i64);
    call.name = representation.filter(|name| name != "native");
    call.etype = lane.datatype_of(&call, etype);
    call.filetype = lane.datatype_of(&call, filetype);
    call.info = lane.info_of(&call, info);
    if code == 0 {
        call.granted = lane.granted(file, begin);
    }
    lane.call(&mut call);
    code
}

/// MPI_File_set_info.
pub fn set_info(name: Name, file: Word, info: Word, call: impl FnOnce() -> c_int) -> c_int {
    simple(name, call, |lane, call| {
        call.handle = lane.file(file);
        call.info = lane.info_of(call, info);
        if call.error.is_none() {
            call.granted = lane.granted(file, call.begin_ns);
        }
    })
}

/// MPI_File_delete.
pub fn delete(name: Name, path: Word, info: Word, call: impl FnOnce() -> c_int) -> c_int {
    simple(name, call, |lane, call| {
        // SAFETY: the program gives a name.
        call.name = unsafe { text_at(path) };
        call.name.as_deref().filter(|_| call.error.is_none()).into_iter().for_each(dictionary::deleted);
        if !is(call, "MPI_ERR_INFO") {
            call.info = lane.info(handle(info), call.begin_ns);
        }
    })
}

/// MPI_File_get_type_extent.
pub fn type_extent(name: Name, file: Word, datatype: Word, extent: Word, call: impl FnOnce() -> c_int) -> c_int {
    simple(name, call, |lane, call| {
        call.handle = lane.file(file);
        call.datatype = lane.datatype_of(call, datatype);
        // SAFETY: the call has answered an MPI_Aint or an MPI_Count, both of 8 bytes.
        call.number = unsafe { answer::<i64>(call, extent) };
    })
}

/// MPI_File_set_errhandler: 0 for MPI_ERRORS_ARE_FATAL, 1 for MPI_ERRORS_RETURN, 2 for any other.
pub fn errhandler_number(word: Word) -> i64 {
    match handle(word) {
        value if value == constants().errors_are_fatal => 0,
        value if value == constants().errors_return => 1,
        _ => 2,
    }
}

/// The number of the error handler at an address.
pub fn errhandler_at(call: &Call, address: Word) -> Option<i64> {
    // SAFETY: a call that succeeded has answered one.
    (call.error.is_none() && address != 0).then(|| errhandler_number(unsafe { handle_at(address, 0) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_the_driver_and_nothing_else() {
        for (name, path) in [
            ("ufs:/a/b", "/a/b"),
            ("nfs2:b:c", "b:c"),
            ("/a:b", "/a:b"),
            ("x:b", "x:b"),
            ("a", "a"),
            ("a b:c", "a b:c"),
        ] {
            assert_eq!(without_driver(name), path);
        }
    }

    #[test]
    fn flags_have_bits_of_our_own() {
        let modes = constant!(beff_modes);
        for (bit, mode) in modes.iter().enumerate() {
            assert_eq!(amode(*mode), Amode(1 << bit));
        }
        assert_eq!(amode(modes[1] | modes[3] | modes[8]), Amode(1 << 1 | 1 << 3 | 1 << 8));
        let whences = constant!(beff_whences).map(|number| whence(number as Word));
        assert_eq!(whences, [Some(Whence::Set), Some(Whence::Current), Some(Whence::End)]);
        assert_eq!(whence(77_777), None);
    }

    #[test]
    fn a_file_is_as_long_and_as_old_as_it_was_before() {
        assert_eq!(before("/nowhere/f"), None);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), [0; 77]).unwrap();
        let (bytes, unchanged_ns) = before(&format!("ufs:{}", file.path().display())).unwrap();
        assert!(bytes == 77 && unchanged_ns < 3_600_000_000_000, "{bytes} {unchanged_ns}");
    }
}
