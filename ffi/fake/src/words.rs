//! C words: handles are numbers (MPICH and derivatives) or addresses (Open MPI), passed in the lower part of a register.

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

/// True if the test is linked with Open MPI.
pub fn is_open_mpi() -> bool {
    static KNOWN: OnceLock<bool> = OnceLock::new();
    *KNOWN.get_or_init(|| symbol(c"ompi_mpi_comm_world") != 0)
}

fn symbol(name: &CStr) -> Word {
    // SAFETY: the name is NUL-terminated.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) as Word }
}

pub fn handle(word: Word) -> Word {
    if is_open_mpi() {
        word
    } else {
        word as u32 as Word
    }
}

pub fn handle_at(address: Word, index: usize) -> Word {
    if is_open_mpi() {
        get(address + 8 * index)
    } else {
        get::<u32>(address + 4 * index) as Word
    }
}

pub fn put_handle(address: Word, index: usize, handle: Word) {
    if is_open_mpi() {
        put(address + 8 * index, handle);
    } else {
        put(address + 4 * index, handle as u32);
    }
}

/// A predefined handle: its number in MPICH, its symbol in Open MPI.
fn predefined(number: Word, name: &CStr) -> Word {
    if is_open_mpi() {
        symbol(name)
    } else {
        number
    }
}

pub fn comm_self() -> Word {
    predefined(0x4400_0001, c"ompi_mpi_comm_self")
}

pub fn comm_null() -> Word {
    predefined(0x0400_0000, c"ompi_mpi_comm_null")
}

pub fn request_null() -> Word {
    predefined(0x2c00_0000, c"ompi_request_null")
}

pub fn info_null() -> Word {
    predefined(0x1c00_0000, c"ompi_mpi_info_null")
}

pub fn file_null() -> Word {
    // A null pointer in MPICH.
    predefined(0, c"ompi_mpi_file_null")
}

/// Name and bytes of a predefined type.
pub fn predefined_type(handle: Word) -> Option<(String, i64)> {
    if !is_open_mpi() {
        let name = match handle {
            0x4c00_0101 => "CHAR",
            0x4c00_010d => "BYTE",
            0x4c00_0405 => "INT",
            0x4c00_080b => "DOUBLE",
            0x4c00_013b => "UINT8_T",
            0x4c00_083e => "UINT64_T",
            0x4c00_083a => "INT64_T",
            _ if handle >> 30 == 1 => "OTHER",
            _ => return None,
        };
        return Some((name.to_owned(), (handle >> 8 & 0xff) as i64));
    }
    // SAFETY: filled by the call, or unchanged.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: any address may be passed.
    let known = unsafe { libc::dladdr(handle as *const c_void, &raw mut info) } != 0 && !info.dli_sname.is_null();
    let name = known.then(|| text(info.dli_sname as Word))?;
    let name = name.strip_prefix("ompi_mpi_")?.to_uppercase();
    let bytes = match name.as_str() {
        "BYTE" | "CHAR" | "UINT8_T" => 1,
        "INT" => 4,
        _ => 8,
    };
    Some((name, bytes))
}

pub fn operation(handle: Word) -> &'static str {
    let names = ["", "MAX", "MIN", "SUM"];
    if !is_open_mpi() {
        return names.get(handle & 0xf).copied().unwrap_or("OTHER");
    }
    let all = [(c"ompi_mpi_op_max", "MAX"), (c"ompi_mpi_op_min", "MIN"), (c"ompi_mpi_op_sum", "SUM")];
    all.iter().find(|(name, _)| symbol(name) == handle).map_or("OTHER", |(_, name)| name)
}

pub fn status_bytes() -> usize {
    if is_open_mpi() {
        24
    } else {
        20
    }
}

/// True for MPI_STATUS_IGNORE.
pub fn is_status_ignore(status: Word) -> bool {
    status == usize::from(!is_open_mpi())
}

/// Fills a status with transferred bytes and an error.
pub fn put_status(status: Word, bytes: u64, error: i32) {
    if is_status_ignore(status) {
        return;
    }
    let (count, place) = if is_open_mpi() { (16, 8) } else { (0, 16) };
    put(status + count, bytes);
    put(status + place, error);
}

/// Bytes in a status.
pub fn status_count_bytes(status: Word) -> u64 {
    get(status + if is_open_mpi() { 16 } else { 0 })
}

/// The code of an error class by name, in the library that the test is linked with.
///
/// # Panics
/// For a class that is not in the table.
#[must_use]
pub fn error_code(class: &str) -> i32 {
    let (mpich, open_mpi) = match class {
        "MPI_ERR_TRUNCATE" => (14, 15),
        "MPI_ERR_OTHER" => (15, 16),
        "MPI_ERR_IN_STATUS" => (17, 18),
        "MPI_ERR_PENDING" => (18, 19),
        "MPI_ERR_ACCESS" => (20, 20),
        "MPI_ERR_IO" => (32, 35),
        "MPI_ERR_NO_SPACE" => (36, 41),
        "MPI_ERR_NO_SUCH_FILE" => (37, 42),
        "MPI_ERR_QUOTA" => (39, 44),
        "MPI_ERR_UNSUPPORTED_OPERATION" => (44, 52),
        _ => panic!("the code of {class} is not in the table of beff-fake-mpi"),
    };
    if is_open_mpi() {
        open_mpi
    } else {
        mpich
    }
}
