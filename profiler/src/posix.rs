//! POSIX calls that change a file by its name or size: MPI-IO may use it before or after. The merge drops those on other files. What the
//! MPI library calls inside a recorded MPI function is not recorded.

use std::ffi::{c_char, c_int, c_uint, c_void, CStr};
use std::path::{Path, PathBuf};

use beff_trace::{Amode, Call, ErrorClass, Function};

use crate::clock::ticks;
use crate::original::Symbol;
use crate::sink;
use crate::storage::{link_path, target_path};
use crate::thread::CallGuard;

type CText = *const c_char;

/// Defines a function under its name; `call` calls the original.
macro_rules! export {
    ($symbol:ident($($argument:ident: $kind:ty),*) -> $result:ty, |$call:ident| $body:expr) => {
        #[no_mangle]
        unsafe extern "C" fn $symbol($($argument: $kind),*) -> $result {
            export!(@original $symbol, ($($kind),*), ($($argument),*), $result, $call);
            $body
        }
    };
    // With an optional mode, which is in a register even if the program does not pass it.
    ($symbol:ident($($argument:ident: $kind:ty),*; $mode:ident) -> $result:ty, |$call:ident| $body:expr) => {
        #[no_mangle]
        unsafe extern "C" fn $symbol($($argument: $kind,)* $mode: c_uint) -> $result {
            export!(@original $symbol, ($($kind),*, ...), ($($argument,)* $mode), $result, $call);
            $body
        }
    };
    (@original $symbol:ident, ($($kind:tt)*), ($($argument:ident),*), $result:ty, $call:ident) => {
        static ORIGINAL: Symbol = Symbol::new(match CStr::from_bytes_with_nul(concat!(stringify!($symbol), "\0").as_bytes()) {
            Ok(name) => name,
            Err(_) => panic!("a name without zero"),
        });
        // SAFETY: the function of this name has this type.
        let original = unsafe {
            core::mem::transmute::<usize, unsafe extern "C" fn($($kind)*) -> $result>(ORIGINAL.function())
        };
        // SAFETY: the arguments of the program.
        let $call = || unsafe { original($($argument),*) };
    };
}

/// Result of a call.
trait Outcome: Copy {
    fn is_failure(self) -> bool;
}

impl Outcome for c_int {
    fn is_failure(self) -> bool {
        self < 0
    }
}

impl Outcome for *mut c_void {
    fn is_failure(self) -> bool {
        self.is_null()
    }
}

fn errno() -> c_int {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

fn set_errno(value: c_int) {
    // SAFETY: thread-local memory of the C library.
    unsafe { *libc::__errno_location() = value };
}

fn error_class(errno: c_int) -> ErrorClass {
    let name = match errno {
        libc::ENOENT => "MPI_ERR_NO_SUCH_FILE",
        libc::EEXIST => "MPI_ERR_FILE_EXISTS",
        libc::EACCES | libc::EPERM => "MPI_ERR_ACCESS",
        libc::EROFS => "MPI_ERR_READ_ONLY",
        libc::ENOSPC => "MPI_ERR_NO_SPACE",
        libc::EDQUOT => "MPI_ERR_QUOTA",
        libc::EIO => "MPI_ERR_IO",
        _ => "MPI_ERR_OTHER",
    };
    ErrorClass::from_name(name).unwrap_or(ErrorClass::OTHER)
}

/// Records a call. `path` is determined before it: the file may then have no name.
fn record<R: Outcome>(
    function: Function,
    path: impl FnOnce() -> Option<String>,
    fill: impl FnOnce(&mut Call),
    call: impl FnOnce() -> R,
) -> R {
    if !sink::is_recording() {
        return call();
    }
    let before = errno();
    let Some(mut inside) = CallGuard::enter() else { return call() };
    let path = path();
    set_errno(before);
    let begin = ticks();
    let result = call();
    let (end, after) = (ticks(), errno());
    let mut recorded = Call::new(function, begin, end);
    recorded.error = result.is_failure().then(|| error_class(after));
    recorded.name = path;
    fill(&mut recorded);
    if recorded.name.is_some() {
        inside.buffer().record_call(&mut recorded);
    }
    set_errno(after);
    result
}

/// A name relative to a directory descriptor.
fn path_at(directory: c_int, name: CText) -> Option<PathBuf> {
    if name.is_null() {
        return None;
    }
    // SAFETY: the program passes a NUL-terminated name.
    let name = Path::new(unsafe { CStr::from_ptr(name) }.to_str().ok()?);
    if directory == libc::AT_FDCWD || name.is_absolute() {
        return Some(name.to_owned());
    }
    Some(descriptor_path(directory)?.join(name))
}

fn descriptor_path(file: c_int) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{file}")).ok()
}

/// Path of a name itself.
fn link_at(directory: c_int, name: CText) -> Option<String> {
    link_path(&path_at(directory, name)?)
}

/// Path of the file to which a name leads.
fn file_at(directory: c_int, name: CText) -> Option<String> {
    target_path(&path_at(directory, name)?)
}

fn unlink_at<R: Outcome>(directory: c_int, name: CText, call: impl FnOnce() -> R) -> R {
    record(Function::Unlink, || link_at(directory, name), |_| (), call)
}

export!(unlink(name: CText) -> c_int, |call| unlink_at(libc::AT_FDCWD, name, call));
export!(remove(name: CText) -> c_int, |call| unlink_at(libc::AT_FDCWD, name, call));
export!(unlinkat(directory: c_int, name: CText, flags: c_int) -> c_int, |call| match flags & libc::AT_REMOVEDIR {
    0 => unlink_at(directory, name, call),
    _ => call(),
});

fn rename_at(from: (c_int, CText), to: (c_int, CText), call: impl FnOnce() -> c_int) -> c_int {
    let set_target = |call: &mut Call| call.target_path = link_at(to.0, to.1);
    record(Function::Rename, || link_at(from.0, from.1), set_target, call)
}

export!(rename(from: CText, to: CText) -> c_int, |call| rename_at((libc::AT_FDCWD, from), (libc::AT_FDCWD, to), call));
export!(renameat(from: c_int, old: CText, to: c_int, new: CText) -> c_int, |call| rename_at((from, old), (to, new), call));
export!(renameat2(from: c_int, old: CText, to: c_int, new: CText, flags: c_uint) -> c_int, |call| {
    match flags & libc::RENAME_EXCHANGE {
        0 => rename_at((from, old), (to, new), call),
        _ => call(),
    }
});

fn truncate_to(path: impl FnOnce() -> Option<String>, bytes: i64, call: impl FnOnce() -> c_int) -> c_int {
    record(Function::Truncate, path, |call| call.offset = Some(bytes), call)
}

fn truncate_open(file: c_int, bytes: i64, call: impl FnOnce() -> c_int) -> c_int {
    truncate_to(|| target_path(&descriptor_path(file)?), bytes, call)
}

export!(truncate(name: CText, bytes: i64) -> c_int, |call| truncate_to(|| file_at(libc::AT_FDCWD, name), bytes, call));
export!(truncate64(name: CText, bytes: i64) -> c_int, |call| truncate_to(|| file_at(libc::AT_FDCWD, name), bytes, call));
export!(ftruncate(file: c_int, bytes: i64) -> c_int, |call| truncate_open(file, bytes, call));
export!(ftruncate64(file: c_int, bytes: i64) -> c_int, |call| truncate_open(file, bytes, call));

fn open_at(directory: c_int, name: CText, flags: c_int, call: impl FnOnce() -> c_int) -> c_int {
    if flags & libc::O_TRUNC == 0 {
        return call();
    }
    let access = match flags & libc::O_ACCMODE {
        libc::O_RDONLY => "rdonly",
        libc::O_RDWR => "rdwr",
        _ => "wronly",
    };
    let is_set = |mode: &str| match mode {
        "create" => flags & libc::O_CREAT != 0,
        "excl" => flags & libc::O_EXCL != 0,
        mode => mode == access,
    };
    open_truncating(directory, name, is_set, call)
}

fn open_truncating<R: Outcome>(
    directory: c_int,
    name: CText,
    is_set: impl Fn(&str) -> bool,
    call: impl FnOnce() -> R,
) -> R {
    let modes = Amode::NAMES.iter().enumerate().filter(|(_, mode)| is_set(mode));
    let amode = Amode(modes.map(|(bit, _)| 1 << bit).sum());
    record(Function::OpenTruncate, || file_at(directory, name), |call| call.amode = Some(amode), call)
}

export!(open(name: CText, flags: c_int; mode) -> c_int, |call| open_at(libc::AT_FDCWD, name, flags, call));
export!(open64(name: CText, flags: c_int; mode) -> c_int, |call| open_at(libc::AT_FDCWD, name, flags, call));
export!(openat(directory: c_int, name: CText, flags: c_int; mode) -> c_int, |call| open_at(directory, name, flags, call));
export!(openat64(directory: c_int, name: CText, flags: c_int; mode) -> c_int, |call| open_at(directory, name, flags, call));

const CREAT_FLAGS: c_int = libc::O_CREAT | libc::O_TRUNC | libc::O_WRONLY;
export!(creat(name: CText, mode: c_uint) -> c_int, |call| open_at(libc::AT_FDCWD, name, CREAT_FLAGS, call));
export!(creat64(name: CText, mode: c_uint) -> c_int, |call| open_at(libc::AT_FDCWD, name, CREAT_FLAGS, call));

/// fopen and freopen: `w` truncates.
fn open_stream(name: CText, mode: CText, call: impl FnOnce() -> *mut c_void) -> *mut c_void {
    // SAFETY: the program passes a NUL-terminated mode.
    let mode = unsafe { CStr::from_ptr(mode) }.to_bytes();
    if mode.first() != Some(&b'w') {
        return call();
    }
    let is_set = |wanted: &str| match wanted {
        "create" => true,
        "excl" => mode.contains(&b'x'),
        "rdwr" => mode.contains(&b'+'),
        "wronly" => !mode.contains(&b'+'),
        _ => false,
    };
    open_truncating(libc::AT_FDCWD, name, is_set, call)
}

export!(fopen(name: CText, mode: CText) -> *mut c_void, |call| open_stream(name, mode, call));
export!(fopen64(name: CText, mode: CText) -> *mut c_void, |call| open_stream(name, mode, call));
export!(freopen(name: CText, mode: CText, stream: *mut c_void) -> *mut c_void, |call| open_stream(name, mode, call));
export!(freopen64(name: CText, mode: CText, stream: *mut c_void) -> *mut c_void, |call| open_stream(name, mode, call));
