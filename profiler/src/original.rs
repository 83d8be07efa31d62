//! Finds the functions of the MPI library at their first call. It may come after this one in symbol order, be loaded privately (Python or
//! Julia extensions), or be absent.

use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::message::report;

/// Marks a symbol that was not found, because the search is slow with many libraries.
const MISSING: usize = 1;

pub struct Symbol {
    name: &'static CStr,
    cached_address: AtomicUsize,
}

impl Symbol {
    pub const fn new(name: &'static CStr) -> Self {
        Self { name, cached_address: AtomicUsize::new(0) }
    }

    /// Its address; 0 if no loaded library has it. Called only when MPI is loaded, so the result is final.
    #[inline(always)]
    pub fn address(&self) -> usize {
        match self.cached_address.load(Ordering::Relaxed) {
            0 => self.find(),
            MISSING => 0,
            at => at,
        }
    }

    /// Its address. Without it the call cannot be passed on, and the program is aborted.
    #[inline(always)]
    pub fn function(&self) -> usize {
        match self.address() {
            0 => self.abort_missing(),
            at => at,
        }
    }

    #[cold]
    fn find(&self) -> usize {
        let at = find(self.name);
        self.cached_address.store(if at == 0 { MISSING } else { at }, Ordering::Relaxed);
        at
    }

    #[cold]
    fn abort_missing(&self) -> ! {
        let name = self.name.to_string_lossy();
        report(&format!("no loaded library has {name}, which the program calls: aborting"));
        std::process::abort()
    }
}

/// The address of a function after this library in symbol order, 0 if not found.
pub fn find(name: &CStr) -> usize {
    find_from(libc::RTLD_NEXT, name)
}

/// The address of data. The program itself may contain the effective copy, which precedes this library.
pub fn find_data(name: &CStr) -> usize {
    find_from(libc::RTLD_DEFAULT, name)
}

fn find_from(from: *mut c_void, name: &CStr) -> usize {
    // SAFETY: the name is NUL-terminated.
    let first = unsafe { libc::dlsym(from, name.as_ptr()) };
    if !first.is_null() {
        return first as usize;
    }
    let mut libraries: Vec<CString> = Vec::new();
    // SAFETY: `visit` gets a pointer to the list, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut libraries).cast()) };
    libraries.iter().map(|library| find_in(library, name)).find(|address| *address != 0).unwrap_or(0)
}

/// The address of a symbol in a loaded library and its dependencies, 0 if not found.
fn find_in(library: &CStr, name: &CStr) -> usize {
    // SAFETY: the library is already loaded; the reference count is decremented again.
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

/// Collects loaded libraries with the name of an MPI. They are not opened here: a thread that loads a library holds the lock of dlopen
/// and waits for that of this list.
unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, libraries: *mut c_void) -> c_int {
    // SAFETY: the linker passes a valid entry, and `find_from` its list.
    let (path, libraries) = unsafe { ((*info).dlpi_name, &mut *libraries.cast::<Vec<CString>>()) };
    if !path.is_null() && is_mpi(path) {
        // SAFETY: names of the linker are NUL-terminated.
        libraries.push(unsafe { CStr::from_ptr(path) }.to_owned());
    }
    0
}

/// `libmpi.so.40`, `libmpich.so.12`, `libmpi_abi.so`, `libpmpi.so`; not bindings of other languages.
fn is_mpi(path: *const c_char) -> bool {
    // SAFETY: names of the linker are NUL-terminated.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    [&b"libmpi"[..], b"libpmpi", b"libmsmpi"].iter().any(|start| name.starts_with(start))
}

/// File name of the library that defines a symbol.
pub fn library_with(name: &CStr) -> Option<String> {
    let address = find(name);
    // SAFETY: filled by the call, or unchanged.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: any address may be passed.
    let known = address != 0 && unsafe { libc::dladdr(address as *const c_void, &raw mut info) } != 0;
    // SAFETY: names of the linker are NUL-terminated.
    (known && !info.dli_fname.is_null())
        .then(|| unsafe { CStr::from_ptr(info.dli_fname) }.to_string_lossy().into_owned())
}
