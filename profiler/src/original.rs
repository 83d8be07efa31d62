//! Finds the functions of the MPI library, when they are first called. The library may come after this one in the order of symbols, or
//! be loaded privately (by an extension of Python or Julia), or not at all.

use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::message::say;

/// No address: it was looked for, which takes long in a program of many libraries.
const MISSING: usize = 1;

/// A symbol of the MPI library.
pub struct Symbol {
    name: &'static CStr,
    at: AtomicUsize,
}

impl Symbol {
    pub const fn new(name: &'static CStr) -> Self {
        Self { name, at: AtomicUsize::new(0) }
    }

    /// Its address; 0 if no library that is loaded has it. Asked for only when MPI is there, so what is missing stays missing.
    #[inline(always)]
    pub fn address(&self) -> usize {
        match self.at.load(Ordering::Relaxed) {
            0 => self.find(),
            MISSING => 0,
            at => at,
        }
    }

    /// Its address. Without it the call cannot be passed on, so the program ends.
    #[inline(always)]
    pub fn function(&self) -> usize {
        match self.address() {
            0 => self.missing(),
            at => at,
        }
    }

    #[cold]
    fn find(&self) -> usize {
        let at = find(self.name);
        self.at.store(if at == 0 { MISSING } else { at }, Ordering::Relaxed);
        at
    }

    #[cold]
    fn missing(&self) -> ! {
        let name = self.name.to_string_lossy();
        say(&format!("no loaded library has {name}, which the program calls: it must end here"));
        std::process::abort()
    }
}

/// The address of a function behind this library, 0 if there is none.
pub fn find(name: &CStr) -> usize {
    find_from(libc::RTLD_NEXT, name)
}

/// The address of data. The program itself may hold the copy that counts, which comes before this library.
pub fn find_data(name: &CStr) -> usize {
    find_from(libc::RTLD_DEFAULT, name)
}

fn find_from(from: *mut c_void, name: &CStr) -> usize {
    // SAFETY: the name ends with zero.
    let first = unsafe { libc::dlsym(from, name.as_ptr()) };
    if !first.is_null() {
        return first as usize;
    }
    let mut libraries: Vec<CString> = Vec::new();
    // SAFETY: `visit` gets the list that lives until the call is over.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut libraries).cast()) };
    libraries.iter().map(|library| find_in(library, name)).find(|address| *address != 0).unwrap_or(0)
}

/// The address of a symbol in one loaded library and what it needs, 0 if there is none.
fn find_in(library: &CStr, name: &CStr) -> usize {
    // SAFETY: a library that is loaded is not loaded again; the handle's count goes back.
    unsafe {
        let library = libc::dlopen(library.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY);
        if library.is_null() {
            return 0;
        }
        let address = libc::dlsym(library, name.as_ptr());
        libc::dlclose(library);
        address as usize
    }
}

/// Notes a loaded library if it is called like an MPI. It is not opened here: a thread that loads one has the lock of dlopen and waits
/// for that of this list.
unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, libraries: *mut c_void) -> c_int {
    // SAFETY: the linker gives a valid entry, and `find_from` its list.
    let (path, libraries) = unsafe { ((*info).dlpi_name, &mut *libraries.cast::<Vec<CString>>()) };
    if !path.is_null() && is_mpi(path) {
        // SAFETY: the linker's names end with zero.
        libraries.push(unsafe { CStr::from_ptr(path) }.to_owned());
    }
    0
}

/// `libmpi.so.40`, `libmpich.so.12`, `libmpi_abi.so`, `libpmpi.so`; not the bindings of other languages, which have no C functions.
fn is_mpi(path: *const c_char) -> bool {
    // SAFETY: the linker's names end with zero.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    [&b"libmpi"[..], b"libpmpi", b"libmsmpi"].iter().any(|start| name.starts_with(start))
}

/// File name of the library that has a symbol.
pub fn library_of(name: &CStr) -> Option<String> {
    let address = find(name);
    // SAFETY: filled by the call, or left as it is.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: any address may be asked about.
    let known = address != 0 && unsafe { libc::dladdr(address as *const c_void, &raw mut info) } != 0;
    // SAFETY: the linker's names end with zero.
    (known && !info.dli_fname.is_null())
        .then(|| unsafe { CStr::from_ptr(info.dli_fname) }.to_string_lossy().into_owned())
}
