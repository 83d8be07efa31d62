//! C words: handles are numbers (MPICH and derivatives, in the lower part of a register; the standard ABI) or addresses (Open MPI).

use std::ffi::{c_void, CStr};
use std::sync::OnceLock;

pub type Word = usize;

pub fn put<T>(address: Word, value: T) {
    // SAFETY: the caller of the MPI function passes the address of memory for such a value, according to its prototype.
    unsafe { (address as *mut T).write_unaligned(value) };
}

pub fn get<T: Copy>(address: Word) -> T {
    // SAFETY: the caller of the MPI function passes the address of such a value, according to its prototype.
    unsafe { (address as *const T).read_unaligned() }
}

pub fn list<T: Copy>(address: Word, count: Word) -> Vec<T> {
    (0..int(count)).map(|n| get(address + n as usize * size_of::<T>())).collect()
}

pub fn text(address: Word) -> String {
    // SAFETY: the caller of the MPI function passes a NUL-terminated string, according to its prototype.
    unsafe { CStr::from_ptr(address as *const _) }.to_string_lossy().into_owned()
}

pub fn int(word: Word) -> i64 {
    i64::from(word as i32)
}

/// Binary interfaces, which differ in handles, statuses and numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Interface {
    Mpich,
    OpenMpi,
    Standard,
}

/// The interface of the library that the test is linked with.
pub fn interface() -> Interface {
    static KNOWN: OnceLock<Interface> = OnceLock::new();
    *KNOWN.get_or_init(|| {
        if symbol(c"ompi_mpi_comm_world") != 0 {
            Interface::OpenMpi
        } else if symbol_info(symbol(c"PMPI_Init"))
            .is_some_and(|info| text(info.dli_fname as Word).contains("libmpi_abi"))
        {
            Interface::Standard
        } else {
            Interface::Mpich
        }
    })
}

fn symbol(name: &CStr) -> Word {
    // SAFETY: the name is NUL-terminated.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) as Word }
}

/// Library and symbol of an address.
fn symbol_info(address: Word) -> Option<libc::Dl_info> {
    // SAFETY: filled by the call, or unchanged.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: any address may be passed.
    (unsafe { libc::dladdr(address as *const c_void, &raw mut info) } != 0).then_some(info)
}

/// True if handles are numbers of 4 bytes, not pointers.
fn has_small_handles() -> bool {
    interface() == Interface::Mpich
}

pub fn handle(word: Word) -> Word {
    if has_small_handles() {
        word as u32 as Word
    } else {
        word
    }
}

pub fn handle_at(address: Word, index: usize) -> Word {
    if has_small_handles() {
        get::<u32>(address + 4 * index) as Word
    } else {
        get(address + 8 * index)
    }
}

pub fn put_handle(address: Word, index: usize, handle: Word) {
    if has_small_handles() {
        put(address + 4 * index, handle as u32);
    } else {
        put(address + 8 * index, handle);
    }
}

/// A predefined handle: its number in MPICH, its symbol in Open MPI, its number in the standard ABI.
fn predefined(mpich: Word, open_mpi: &CStr, standard: Word) -> Word {
    match interface() {
        Interface::Mpich => mpich,
        Interface::OpenMpi => symbol(open_mpi),
        Interface::Standard => standard,
    }
}

pub fn comm_self() -> Word {
    predefined(0x4400_0001, c"ompi_mpi_comm_self", 0x102)
}

pub fn comm_null() -> Word {
    predefined(0x0400_0000, c"ompi_mpi_comm_null", 0x100)
}

pub fn request_null() -> Word {
    predefined(0x2c00_0000, c"ompi_request_null", 0x180)
}

pub fn info_null() -> Word {
    predefined(0x1c00_0000, c"ompi_mpi_info_null", 0x130)
}

pub fn file_null() -> Word {
    // A null pointer in MPICH.
    predefined(0, c"ompi_mpi_file_null", 0x118)
}

pub fn errors_are_fatal() -> Word {
    predefined(0x5400_0000, c"ompi_mpi_errors_are_fatal", 0x141)
}

pub fn errors_return() -> Word {
    // As in the mpi.h of MPICH 5.0; in that of Intel MPI 2021.19 it is 0x142.
    predefined(0x5400_0001, c"ompi_mpi_errors_return", 0x143)
}

/// Name and bytes of a predefined type.
pub fn predefined_type(handle: Word) -> Option<(String, i64)> {
    let name = match interface() {
        Interface::Mpich => match handle {
            0x4c00_0101 => "CHAR",
            0x4c00_010d => "BYTE",
            0x4c00_0405 => "INT",
            0x4c00_080b => "DOUBLE",
            0x4c00_013b => "UINT8_T",
            0x4c00_083e => "UINT64_T",
            0x4c00_083a => "INT64_T",
            _ if handle >> 30 == 1 => return Some(("OTHER".to_owned(), (handle >> 8 & 0xff) as i64)),
            _ => return None,
        }
        .to_owned(),
        Interface::OpenMpi => {
            let info = symbol_info(handle).filter(|info| !info.dli_sname.is_null())?;
            text(info.dli_sname as Word).strip_prefix("ompi_mpi_")?.to_uppercase()
        }
        Interface::Standard => match handle {
            0x243 => "CHAR",
            0x247 => "BYTE",
            0x209 => "INT",
            0x214 => "DOUBLE",
            0x241 => "UINT8_T",
            0x259 => "UINT64_T",
            0x258 => "INT64_T",
            _ if handle >> 8 == 2 => "OTHER",
            _ => return None,
        }
        .to_owned(),
    };
    let bytes = match name.as_str() {
        "BYTE" | "CHAR" | "UINT8_T" => 1,
        "INT" => 4,
        _ => 8,
    };
    Some((name, bytes))
}

pub fn operation(handle: Word) -> &'static str {
    let all = [
        (0x5800_0001, c"ompi_mpi_op_max", 0x23, "MAX"),
        (0x5800_0002, c"ompi_mpi_op_min", 0x22, "MIN"),
        (0x5800_0003, c"ompi_mpi_op_sum", 0x21, "SUM"),
    ];
    let found = all.iter().find(|(mpich, open_mpi, standard, _)| predefined(*mpich, open_mpi, *standard) == handle);
    found.map_or("OTHER", |(_, _, _, name)| name)
}

/// Offsets of the transferred bytes and of the error in a status, its size, and the address of MPI_STATUS_IGNORE.
fn status_layout() -> (usize, usize, usize, usize) {
    match interface() {
        Interface::Mpich => (0, 16, 20, 1),
        Interface::OpenMpi => (16, 8, 24, 0),
        // The bytes are in the part that belongs to the library.
        Interface::Standard => (16, 8, 32, 0),
    }
}

pub fn status_bytes() -> usize {
    status_layout().2
}

/// True for MPI_STATUS_IGNORE.
pub fn is_status_ignore(status: Word) -> bool {
    status == status_layout().3
}

/// Fills a status with transferred bytes and an error.
pub fn put_status(status: Word, bytes: u64, error: i32) {
    if is_status_ignore(status) {
        return;
    }
    let (count, place, ..) = status_layout();
    put(status + count, bytes);
    put(status + place, error);
}

/// Bytes in a status.
pub fn status_count_bytes(status: Word) -> u64 {
    get(status + status_layout().0)
}

/// The code of an error class by name, in the library that the test is linked with.
///
/// # Panics
/// For a class that is not in the table.
#[must_use]
pub fn error_code(class: &str) -> i32 {
    let (mpich, open_mpi, standard) = match class {
        "MPI_ERR_TRUNCATE" => (14, 15, 15),
        "MPI_ERR_OTHER" => (15, 16, 16),
        "MPI_ERR_IN_STATUS" => (17, 18, 19),
        "MPI_ERR_PENDING" => (18, 19, 18),
        "MPI_ERR_ACCESS" => (20, 20, 20),
        "MPI_ERR_IO" => (32, 35, 35),
        "MPI_ERR_NO_SPACE" => (36, 41, 41),
        "MPI_ERR_NO_SUCH_FILE" => (37, 42, 42),
        "MPI_ERR_QUOTA" => (39, 44, 44),
        "MPI_ERR_UNSUPPORTED_OPERATION" => (44, 52, 55),
        _ => panic!("the code of {class} is not in the table of beff-fake-mpi"),
    };
    match interface() {
        Interface::Mpich => mpich,
        Interface::OpenMpi => open_mpi,
        Interface::Standard => standard,
    }
}
