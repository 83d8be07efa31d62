//! Markers of HDF5: which file or dataset the MPI calls in between belong to. The functions of HDF5 are defined here under their names, and
//! passed on to the library that the caller would have called without this one. HDF5 is not linked.

use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::sync::atomic::{AtomicUsize, Ordering};

use beff_trace::{Call, Function};

use crate::clock::ticks;
use crate::mpi::Word;
use crate::thread::CallGuard;

/// Maximum length of recorded names.
const NAME_BYTES: usize = 256;
/// Result of a call that no library can execute: HDF5's value for a failure.
const FAILED: isize = -1;
/// Examined return addresses: the first outside this library is that of the caller.
const MAX_FRAMES: usize = 8;

/// A function of HDF5.
struct LibraryFunction {
    name: &'static CStr,
    /// Its address if it is in the global scope of the linker.
    global_address: AtomicUsize,
}

impl LibraryFunction {
    const fn new(name: &'static CStr) -> Self {
        Self { name, global_address: AtomicUsize::new(0) }
    }

    /// Its address; 0 if there is none.
    fn address(&self) -> usize {
        match self.global_address.load(Ordering::Relaxed) {
            0 => {
                // SAFETY: the name is NUL-terminated.
                let global = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) } as usize;
                self.global_address.store(global, Ordering::Relaxed);
                if global == 0 {
                    of_caller(self.name)
                } else {
                    global
                }
            }
            known => known,
        }
    }
}

/// The object that contains an address.
fn object_of(address: *const c_void) -> Option<libc::Dl_info> {
    // SAFETY: numbers and pointers, for which zeros are valid; filled by the call. Any address may be passed.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    (unsafe { libc::dladdr(address, &raw mut info) } != 0 && !info.dli_fname.is_null()).then_some(info)
}

/// The address of a function in the object that called this library, or in the libraries it depends on. Extensions of Python load
/// their own HDF5 privately, and there may be several.
#[cold]
fn of_caller(name: &CStr) -> usize {
    let mut frames = [std::ptr::null_mut::<c_void>(); MAX_FRAMES];
    // SAFETY: the array has that many elements.
    let count = unsafe { libc::backtrace(frames.as_mut_ptr(), MAX_FRAMES as c_int) };
    let Some(own) = object_of(of_caller as *const c_void) else { return 0 };
    let frames = frames.iter().take(usize::try_from(count).unwrap_or(0));
    let Some(caller) = frames.filter_map(|frame| object_of(*frame)).find(|object| object.dli_fbase != own.dli_fbase)
    else {
        return 0;
    };
    // SAFETY: the object is loaded; the reference count is decremented again.
    unsafe {
        let object = libc::dlopen(caller.dli_fname, libc::RTLD_NOLOAD | libc::RTLD_LAZY);
        if object.is_null() {
            return 0;
        }
        let address = libc::dlsym(object, name.as_ptr());
        libc::dlclose(object);
        // The scope of the program itself contains this library.
        match object_of(address) {
            Some(found) if found.dli_fbase != own.dli_fbase => address as usize,
            _ => 0,
        }
    }
}

/// A call of HDF5 in progress.
struct Marked;

impl Marked {
    /// Records the begin. None if nothing is recorded, or inside an MPI call.
    fn begin(function: &str, object: impl FnOnce() -> String) -> Option<Self> {
        // The name is obtained first: the call of HDF5 for it may call MPI.
        drop(CallGuard::enter()?);
        let object = object();
        let name = if object.is_empty() { function.to_owned() } else { format!("{function} {object}") };
        record(Some(name)).then_some(Self)
    }
}

impl Drop for Marked {
    fn drop(&mut self) {
        record(None);
    }
}

/// Records a begin with its name, or an end.
fn record(name: Option<String>) -> bool {
    let Some(mut inside) = CallGuard::enter() else { return false };
    let now = ticks();
    let mut call = Call::new(Function::Marker, now, now);
    call.flag = Some(name.is_some());
    call.name = name;
    inside.buffer().record_call(&mut call);
    true
}

/// A name passed by the program.
fn text(name: Word) -> String {
    if name == 0 {
        return String::new();
    }
    // SAFETY: the program passes a NUL-terminated name.
    let name = unsafe { CStr::from_ptr(name as *const c_char) };
    truncated(name.to_string_lossy().into_owned())
}

fn truncated(mut name: String) -> String {
    let end = (0..=NAME_BYTES.min(name.len())).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
    name.truncate(end);
    name
}

/// The path of an object in its file, by H5Iget_name.
fn path(object: Word) -> String {
    static GET_NAME: LibraryFunction = LibraryFunction::new(c"H5Iget_name");
    let mut name = [0_u8; NAME_BYTES];
    match GET_NAME.address() {
        0 => return String::new(),
        address => {
            // SAFETY: the function of this name, which writes at most that many bytes with a NUL.
            unsafe {
                let get =
                    core::mem::transmute::<usize, unsafe extern "C-unwind" fn(Word, *mut u8, usize) -> isize>(address);
                get(object, name.as_mut_ptr(), name.len());
            }
        }
    }
    CStr::from_bytes_until_nul(&name)
        .map(CString::from)
        .map_or_else(|_| String::new(), |name| name.to_string_lossy().into_owned())
}

/// The path of an object that is created below another one.
fn path_below(place: Word, name: Word) -> String {
    let name = text(name);
    if name.is_empty() || name.starts_with('/') {
        return name;
    }
    truncated(format!("{}/{name}", path(place).trim_end_matches('/')))
}

/// Exports a function. All arguments are passed as words, so identifiers of 32 and 64 bits are unaffected.
macro_rules! export {
    ($symbol:ident, $shown:literal, ($($argument:ident),*), $object:expr) => {
        #[no_mangle]
        unsafe extern "C-unwind" fn $symbol($($argument: Word),*) -> isize {
            static ORIGINAL: LibraryFunction = LibraryFunction::new(match CStr::from_bytes_with_nul(concat!(stringify!($symbol), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("a name without zero"),
            });
            let address = ORIGINAL.address();
            if address == 0 {
                return FAILED;
            }
            // SAFETY: the function of this name takes that many words.
            let original = unsafe {
                core::mem::transmute::<usize, unsafe extern "C-unwind" fn($(export!(@word $argument)),*) -> isize>(address)
            };
            let _marked = Marked::begin($shown, || $object);
            // SAFETY: the arguments of the program.
            unsafe { original($($argument),*) }
        }
    };
    (@word $argument:ident) => { Word };
}

export!(H5Fcreate, "H5Fcreate", (name, flags, creation, access), text(name));
export!(H5Fopen, "H5Fopen", (name, flags, access), text(name));
export!(H5Fclose, "H5Fclose", (file), String::new());
export!(H5Dcreate1, "H5Dcreate", (place, name, datatype, space, creation), path_below(place, name));
export!(H5Dcreate2, "H5Dcreate", (place, name, datatype, space, links, creation, access), path_below(place, name));
export!(H5Dwrite, "H5Dwrite", (dataset, memory, space, selection, transfer, buffer), path(dataset));
export!(H5Dread, "H5Dread", (dataset, memory, space, selection, transfer, buffer), path(dataset));
