//! File management calls.

use std::ffi::{c_int, CStr, CString};
use std::time::{SystemTime, UNIX_EPOCH};

use beff_trace::{strip_driver_prefix, Amode, Call, Function, Whence};

use crate::clock::ticks;
use crate::decode::text_at;
use crate::dictionary;
use crate::handles::has_error_class;
use crate::mpi::{beff_modes, beff_whences, constant, handle, handle_at, pmpi, predefined_handles, Word};
use crate::name::Name;
use crate::original::Symbol;
use crate::storage::{file_path, inspect, name_path};
use crate::thread_buffer::ThreadBuffer;

/// Records a call after it has returned; `fill` adds arguments and results.
#[inline(always)]
pub fn record_simple(
    name: Name,
    call: impl FnOnce() -> c_int,
    fill: impl FnOnce(&mut ThreadBuffer, &mut Call),
) -> c_int {
    let Some(mut inside) = name.enter() else { return call() };
    let begin = ticks();
    let code = call();
    let end = ticks();
    let mut call = name.new_call(begin, end, code);
    fill(inside.buffer(), &mut call);
    inside.buffer().record_short(&mut call);
    code
}

/// An output value of a successful call.
///
/// # Safety
/// The address contains a value if the call succeeded.
pub unsafe fn output_value<T: Copy>(call: &Call, address: Word) -> Option<T> {
    // SAFETY: guaranteed by the caller.
    (call.error.is_none() && address != 0).then(|| unsafe { *(address as *const T) })
}

pub fn amode(value: c_int) -> Amode {
    let modes = constant!(beff_modes);
    let bits = modes.iter().enumerate().filter(|(_, mode)| value & **mode != 0);
    Amode(bits.map(|(bit, _)| 1 << bit).sum())
}

/// Reference of a seek; None if invalid.
pub fn whence(value: Word) -> Option<Whence> {
    let place = constant!(beff_whences).iter().position(|one| *one == value as c_int)?;
    Some([Whence::Set, Whence::Current, Whence::End][place])
}

/// The position after a seek relative to the end of the file: its size at that time cannot be derived later.
pub fn end_position(call: &Call, file: Word) -> Option<i64> {
    let is_it = call.function == Function::Seek && call.whence == Some(Whence::End) && call.error.is_none();
    let mut position: i64 = 0;
    (is_it && pmpi!(File_get_position(file, &raw mut position)) == 0).then_some(position)
}

/// A file before its opening or, with AT_SYMLINK_NOFOLLOW, its deletion: size in bytes and time since its last modification in ns. None if
/// it does not exist.
fn file_state(name: &str, flags: c_int) -> Option<(i64, u64)> {
    let path = CString::new(strip_driver_prefix(name)).ok()?;
    // SAFETY: the structure contains numbers only, for which zeros are valid.
    let mut status: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the path is NUL-terminated, the structure is a local variable.
    if unsafe { libc::fstatat(libc::AT_FDCWD, path.as_ptr(), &raw mut status, flags) } != 0 {
        return None;
    }
    let changed_ns = i128::from(status.st_mtime) * 1_000_000_000 + i128::from(status.st_mtime_nsec);
    let now_ns = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i128);
    // The clock of a file server may be ahead.
    Some((status.st_size, u64::try_from(now_ns - changed_ns).unwrap_or(0)))
}

/// True on rank 0 of a communicator. One rank that checks suffices; thousands would load the server.
fn is_first_rank(comm: Word) -> bool {
    let mut rank: c_int = -1;
    pmpi!(Comm_rank(comm, &raw mut rank)) == 0 && rank == 0
}

/// Sets the name as given, and the path if it differs.
fn set_name(call: &mut Call, name: Option<String>, path: Option<String>) {
    call.path = path.filter(|path| name.as_deref().map(strip_driver_prefix) != Some(path));
    call.name = name;
}

/// MPI_File_open.
pub fn open(name: Name, [comm, path, mode, info, file]: [Word; 5], call: impl FnOnce() -> c_int) -> c_int {
    let Some(mut inside) = name.enter() else { return call() };
    // SAFETY: the program passes a name.
    let given = unsafe { text_at(path) };
    let found = given.as_deref().map(|name| file_state(name, 0));
    let gone = dictionary::take_missing_files();
    let begin = ticks();
    let code = call();
    let end = ticks();
    let mut call = name.new_call(begin, end, code);
    let lane = inside.buffer();
    // SAFETY: a successful call has written a handle there, which is a pointer in every MPI.
    let opened = (code == 0).then(|| unsafe { *(file as *const Word) });
    // It may exist only now.
    let path = given.as_deref().and_then(file_path);
    call.handle = Some(dictionary::file_opened(opened, path.as_deref().filter(|_| code == 0 && is_first_rank(comm))));
    let facts = path.as_deref().filter(|_| code == 0).and_then(inspect);
    call.identity = facts.as_ref().map(|facts| facts.identity);
    if let (Some(path), Some(fs_type)) = (&path, facts.and_then(|facts| facts.fs_type)) {
        lane.storage(path, &fs_type, begin);
    }
    set_name(&mut call, given, path);
    call.number = found.map(|found| found.map_or(-1, |(size_bytes, _)| size_bytes));
    call.unchanged_ns = found.flatten().map(|(_, unchanged_ns)| unchanged_ns);
    call.amode = Some(amode(mode as c_int));
    if !has_error_class(&call, "MPI_ERR_COMM") {
        call.comm = lane.comm(handle(comm), begin);
    }
    if !has_error_class(&call, "MPI_ERR_INFO") {
        call.info = lane.info(handle(info), begin);
    }
    call.granted = opened.and_then(|file| lane.granted(file, begin));
    gone.iter().for_each(|path| lane.record_missing_file(path, begin));
    lane.record_call(&mut call);
    code
}

/// MPI_File_close.
pub fn close(name: Name, address: Word, call: impl FnOnce() -> c_int) -> c_int {
    let Some(mut inside) = name.enter() else { return call() };
    // SAFETY: the program passes the address of a handle.
    let file = unsafe { *(address as *const Word) };
    let number = inside.buffer().file(file);
    let begin = ticks();
    let code = call();
    let end = ticks();
    if code == 0 {
        dictionary::file_closed(file, number);
    }
    let mut call = name.new_call(begin, end, code);
    call.handle = number;
    inside.buffer().record_short(&mut call);
    code
}

/// MPI_File_set_view.
pub fn set_view(name: Name, given: [Word; 6], call: impl FnOnce() -> c_int) -> c_int {
    let Some(mut inside) = name.enter() else { return call() };
    let [file, offset, etype, filetype, representation, info] = given;
    // SAFETY: the program passes a name.
    let representation = unsafe { text_at(representation) };
    let begin = ticks();
    let code = call();
    let end = ticks();
    let mut call = name.new_call(begin, end, code);
    let lane = inside.buffer();
    call.handle = lane.file(file);
    call.offset = Some(offset as i64);
    call.name = representation.filter(|name| name != "native");
    call.etype = lane.datatype_of(&call, etype);
    call.filetype = lane.datatype_of(&call, filetype);
    call.info = lane.info_of(&call, info);
    if code == 0 {
        call.granted = lane.granted(file, begin);
    }
    lane.record_call(&mut call);
    code
}

/// MPI_File_set_info.
pub fn set_info(name: Name, file: Word, info: Word, call: impl FnOnce() -> c_int) -> c_int {
    record_simple(name, call, |lane, call| {
        call.handle = lane.file(file);
        call.info = lane.info_of(call, info);
        if call.error.is_none() {
            call.granted = lane.granted(file, call.begin_ns);
        }
    })
}

/// MPI_File_delete.
pub fn delete(name: Name, path: Word, info: Word, call: impl FnOnce() -> c_int) -> c_int {
    let Some(mut inside) = name.enter() else { return call() };
    // SAFETY: the program passes a name.
    let given = unsafe { text_at(path) };
    let found = given.as_deref().and_then(|name| file_state(name, libc::AT_SYMLINK_NOFOLLOW));
    let begin = ticks();
    let code = call();
    let end = ticks();
    let mut call = name.new_call(begin, end, code);
    let path = given.as_deref().and_then(name_path);
    if code == 0 {
        path.as_deref().into_iter().for_each(dictionary::file_deleted);
        (call.number, call.unchanged_ns) = found.unzip();
    }
    set_name(&mut call, given, path);
    if !has_error_class(&call, "MPI_ERR_INFO") {
        call.info = inside.buffer().info(handle(info), begin);
    }
    inside.buffer().record_call(&mut call);
    code
}

/// MPI_File_get_type_extent.
pub fn type_extent(name: Name, file: Word, datatype: Word, extent: Word, call: impl FnOnce() -> c_int) -> c_int {
    record_simple(name, call, |lane, call| {
        call.handle = lane.file(file);
        call.datatype = lane.datatype_of(call, datatype);
        // SAFETY: the call has written an MPI_Aint or an MPI_Count, both of 8 bytes.
        call.number = unsafe { output_value::<i64>(call, extent) };
    })
}

/// MPI_File_set_errhandler: 0 for MPI_ERRORS_ARE_FATAL, 1 for MPI_ERRORS_RETURN, 2 for any other.
pub fn errhandler_number(word: Word) -> i64 {
    match handle(word) {
        value if value == predefined_handles().errors_are_fatal => 0,
        value if value == predefined_handles().errors_return => 1,
        _ => 2,
    }
}

pub fn errhandler_at(call: &Call, address: Word) -> Option<i64> {
    // SAFETY: a successful call has written one.
    (call.error.is_none() && address != 0).then(|| errhandler_number(unsafe { handle_at(address, 0) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_the_driver_and_nothing_else() {
        for (name, path) in [
            ("ufs:/a/b", "/a/b"),
            ("nfs2:b:c", "nfs2:b:c"),
            ("UFS:b:c", "b:c"),
            ("/a:b", "/a:b"),
            ("x:b", "x:b"),
            ("a", "a"),
            ("a b:c", "a b:c"),
        ] {
            assert_eq!(strip_driver_prefix(name), path);
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
    fn size_and_age_are_those_before_the_open() {
        assert_eq!(file_state("/nowhere/f", 0), None);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), [0; 77]).unwrap();
        let (bytes, unchanged_ns) = file_state(&format!("ufs:{}", file.path().display()), 0).unwrap();
        assert!(bytes == 77 && unchanged_ns < 3_600_000_000_000, "{bytes} {unchanged_ns}");
    }
}
