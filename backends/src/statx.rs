//! What the file system says about direct I/O on one file.

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;

/// Alignment direct I/O needs on one file, from statx(2) with STATX_DIOALIGN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectAlign {
    /// Addresses in memory must be multiples of this many bytes.
    pub memory_bytes: u64,
    /// File offsets and lengths must be multiples of this many bytes.
    pub offset_bytes: u64,
}

impl DirectAlign {
    /// The larger of both: what is a multiple of this many bytes satisfies either. Both are powers of two.
    #[must_use]
    pub fn both_bytes(&self) -> u64 {
        self.memory_bytes.max(self.offset_bytes)
    }
}

/// Asks for the alignment of direct I/O on `file`; `None` if the kernel (before 6.1) or the file system does not say,
/// or says that direct I/O is not possible. That an open with O_DIRECT succeeds proves nothing: some file systems
/// accept it and go through the page cache.
///
/// # Errors
/// What statx(2) reports.
pub fn direct_align(file: &File) -> io::Result<Option<DirectAlign>> {
    let mut answer = MaybeUninit::<libc::statx>::zeroed();
    // SAFETY: the descriptor is open as long as `file` is borrowed, the path is a terminated empty string, which
    // AT_EMPTY_PATH allows, and `answer` is writable memory of exactly one struct statx.
    let code = unsafe {
        libc::statx(file.as_raw_fd(), c"".as_ptr(), libc::AT_EMPTY_PATH, libc::STATX_DIOALIGN, answer.as_mut_ptr())
    };
    if code != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: all-zero bytes are a valid struct statx (integers only), and the kernel has filled it.
    let answer = unsafe { answer.assume_init() };
    if answer.stx_mask & libc::STATX_DIOALIGN == 0 || answer.stx_dio_mem_align == 0 || answer.stx_dio_offset_align == 0
    {
        return Ok(None);
    }
    Ok(Some(DirectAlign {
        memory_bytes: u64::from(answer.stx_dio_mem_align),
        offset_bytes: u64::from(answer.stx_dio_offset_align),
    }))
}

// The struct grows only into its spare room; these are the offsets of include/uapi/linux/stat.h.
const _: () = {
    assert!(size_of::<libc::statx>() == 256);
    assert!(std::mem::offset_of!(libc::statx, stx_mask) == 0);
    assert!(std::mem::offset_of!(libc::statx, stx_dio_mem_align) == 0x98);
    assert!(std::mem::offset_of!(libc::statx, stx_dio_offset_align) == 0x9c);
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::scratch;

    #[test]
    fn answer_is_usable_or_absent() {
        let dir = scratch();
        let file = File::create(dir.path().join("f")).unwrap();
        if let Some(align) = direct_align(&file).unwrap() {
            assert!(align.memory_bytes.is_power_of_two());
            assert!(align.offset_bytes.is_power_of_two());
            assert!(align.both_bytes() >= align.memory_bytes && align.both_bytes() >= align.offset_bytes);
        }
    }

    #[test]
    fn no_direct_io_on_a_character_device() {
        assert_eq!(direct_align(&File::open("/dev/null").unwrap()).unwrap(), None);
    }
}
