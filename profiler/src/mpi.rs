//! MPI functions and constants used by the profiler itself. Handles are words: a pointer (also the small numbers of the standard ABI), or a
//! number in the lower half.

use std::ffi::{c_char, c_int, c_void, CStr};
use std::sync::OnceLock;

use beff_trace::ErrorClass;

use crate::original::{find_data, Symbol};

/// A handle as passed in a register.
pub type Word = usize;

/// Memory for one MPI_Status of any library.
#[repr(C, align(16))]
pub struct StatusBuffer(pub [u8; 64]);

#[repr(C)]
struct ErrorClassEntry {
    name: *const c_char,
    value: c_int,
}

unsafe extern "C" {
    static beff_handle_symbols: [*const c_char; HANDLES];
    static beff_handle_values: [usize; HANDLES];
    static beff_classes: [ErrorClassEntry; 39];
    pub static beff_status_size: c_int;
    fn beff_status_error(status: *const StatusBuffer) -> c_int;
    pub static beff_combiners: [c_int; 19];
    pub static beff_modes: [c_int; 9];
    pub static beff_whences: [c_int; 3];
    pub static beff_distributions: [c_int; 3];
    pub static beff_default_argument: c_int;
    pub static beff_order_fortran: c_int;
    pub static beff_undefined: c_int;
    pub static beff_err_in_status: c_int;
    pub static beff_err_pending: c_int;
    pub static beff_info_key_bytes: c_int;
    pub static beff_name_bytes: c_int;
    #[cfg(standard_abi)]
    pub static beff_file_null: Word;
}

macro_rules! constant {
    ($name:path) => {
        // SAFETY: initialized by the compiler, never written.
        unsafe { $name }
    };
}
pub(crate) use constant;

/// Calls an MPI function by its `PMPI_` name, with words as arguments; returns its code, or -1 if the library lacks it.
macro_rules! pmpi {
    ($name:ident($($argument:expr),* $(,)?)) => {{
        static SYMBOL: Symbol = Symbol::new(match CStr::from_bytes_with_nul(concat!("PMPI_", stringify!($name), "\0").as_bytes()) {
            Ok(name) => name,
            Err(_) => panic!("a name without zero"),
        });
        match SYMBOL.address() {
            0 => -1,
            address => {
                // SAFETY: words are passed like the handles, pointers and integers of the prototype (4-byte ones in the lower half of a
                // register), and the caller passes the arguments of the prototype.
                unsafe {
                    let function = core::mem::transmute::<usize, unsafe extern "C" fn($(pmpi!(@word $argument)),*) -> c_int>(address);
                    function($($argument as usize),*)
                }
            }
        }
    }};
    (@word $argument:expr) => { usize };
}
pub(crate) use pmpi;

const HANDLES: usize = 8;

/// True if built for Open MPI, else for the standard ABI or for MPICH and derivatives. The shim asserts the assumptions.
pub const OPEN_MPI: bool = cfg!(open_mpi);
/// True if built for the standard ABI of MPI-5, of any library.
pub const STANDARD_ABI: bool = cfg!(standard_abi);
/// Bytes of a handle in memory.
pub const HANDLE_BYTES: usize = if OPEN_MPI || STANDARD_ABI { 8 } else { 4 };

/// Predefined handles, in the order of the shim.
pub struct PredefinedHandles {
    pub comm_world: Word,
    pub comm_null: Word,
    pub datatype_null: Word,
    pub byte: Word,
    pub request_null: Word,
    pub info_null: Word,
    pub errors_are_fatal: Word,
    pub errors_return: Word,
}

/// The predefined handles. With Open MPI they are addresses in the library, which must be loaded.
pub fn predefined_handles() -> &'static PredefinedHandles {
    static FOUND: OnceLock<PredefinedHandles> = OnceLock::new();
    FOUND.get_or_init(|| {
        let one = |index: usize| {
            if !OPEN_MPI {
                return handle(constant!(beff_handle_values)[index]);
            }
            // SAFETY: the shim for Open MPI has a name for each.
            find_data(unsafe { CStr::from_ptr(beff_handle_symbols[index]) })
        };
        PredefinedHandles {
            comm_world: one(0),
            comm_null: one(1),
            datatype_null: one(2),
            byte: one(3),
            request_null: one(4),
            info_null: one(5),
            errors_are_fatal: one(6),
            errors_return: one(7),
        }
    })
}

/// A handle from a register, whose upper half is undefined if handles are numbers.
#[inline(always)]
pub fn handle(word: Word) -> Word {
    if HANDLE_BYTES == 8 {
        word
    } else {
        word as u32 as usize
    }
}

/// The handle (not of a file) at an address.
///
/// # Safety
/// A handle is stored there.
pub unsafe fn handle_at(address: Word, index: usize) -> Word {
    if HANDLE_BYTES == 8 {
        // SAFETY: guaranteed by the caller.
        unsafe { *(address as *const usize).add(index) }
    } else {
        // SAFETY: guaranteed by the caller.
        unsafe { *(address as *const u32).add(index) as usize }
    }
}

/// True for a predefined type, whose handle is always valid.
#[cold]
pub fn is_predefined(datatype: Word) -> bool {
    if STANDARD_ABI {
        // Predefined handles are in the first page, where no object is.
        return datatype < 0x1000;
    }
    if !OPEN_MPI {
        // The upper two bits are the kind of the handle: 1 is built-in.
        return datatype >> 30 == 1;
    }
    // SAFETY: filled by the call, or unchanged.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: any address may be passed; names of the linker are NUL-terminated.
    unsafe {
        libc::dladdr(datatype as *const c_void, &raw mut info) != 0
            && !info.dli_sname.is_null()
            && CStr::from_ptr(info.dli_sname).to_bytes().starts_with(b"ompi_mpi_")
    }
}

/// MPI_STATUS_IGNORE and MPI_STATUSES_IGNORE.
const STATUS_IGNORE: Word = if HANDLE_BYTES == 8 { 0 } else { 1 };

/// True for MPI_STATUS_IGNORE.
#[inline(always)]
pub fn is_status_ignore(status: Word) -> bool {
    status == STATUS_IGNORE
}

/// True for MPI_STATUSES_IGNORE.
pub fn is_statuses_ignore(statuses: Word) -> bool {
    statuses == STATUS_IGNORE
}

/// Bytes in a status.
///
/// # Safety
/// A call has filled the status at this address.
#[inline(always)]
pub unsafe fn status_bytes(status: Word) -> u64 {
    if STANDARD_ABI {
        return counted_bytes(status);
    }
    if OPEN_MPI {
        // SAFETY: guaranteed by the caller; the shim asserts the offset of the field.
        return unsafe { *((status + 16) as *const u64) };
    }
    // SAFETY: guaranteed by the caller; the shim asserts the offsets of the fields.
    let [low, high] = unsafe { *(status as *const [u32; 2]) };
    u64::from(low) | (u64::from(high >> 1) << 32)
}

/// Bytes in a status whose layout is that of the library; 0 if unknown.
fn counted_bytes(status: Word) -> u64 {
    let mut count: i64 = 0;
    let code = pmpi!(Get_count_c(status, predefined_handles().byte, &raw mut count));
    if code == 0 {
        u64::try_from(count).unwrap_or(0)
    } else {
        0
    }
}

/// The error in a status.
///
/// # Safety
/// A call has filled the status at this address.
pub unsafe fn status_error(status: Word) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { beff_status_error(status as *const StatusBuffer) }
}

#[cold]
pub fn error_class(code: c_int) -> ErrorClass {
    let mut number: c_int = 0;
    if pmpi!(Error_class(code, &raw mut number)) != 0 {
        return ErrorClass::OTHER;
    }
    class_by_number(number)
}

fn class_by_number(number: c_int) -> ErrorClass {
    // SAFETY: a constant table of the shim; its last row is empty.
    let classes = unsafe { &beff_classes[..38] };
    for class in classes {
        if class.value == number {
            // SAFETY: names of the shim are NUL-terminated.
            let name = unsafe { CStr::from_ptr(class.name) }.to_str().unwrap_or_default();
            return ErrorClass::from_name(name).unwrap_or(ErrorClass::OTHER);
        }
    }
    ErrorClass::OTHER
}

pub fn library_version() -> String {
    let mut text = vec![0_u8; 1 << 14];
    let mut length: c_int = 0;
    if pmpi!(Get_library_version(text.as_mut_ptr(), &raw mut length)) != 0 {
        return String::new();
    }
    text.truncate(usize::try_from(length).unwrap_or(0).min(1 << 13));
    String::from_utf8_lossy(&text).trim_end_matches(['\0', '\n', ' ']).to_owned()
}
