//! Buffered transfers that drop their pages when done: pwritev2(2) and preadv2(2) with RWF_DONTCACHE (Linux 6.14).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use crate::{BackendError, Direction};

/// RWF_DONTCACHE, in system calls and in io_uring entries.
pub(crate) const FLAG: i32 = libc::RWF_DONTCACHE;

/// pwrite(2) with the flag.
#[inline]
pub(crate) fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
    // SAFETY: borrowed memory, which is only read.
    unsafe { transfer(Direction::Write, file, bytes.as_ptr().cast_mut(), bytes.len(), offset, FLAG) }
}

/// pread(2) with the flag.
#[inline]
pub(crate) fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    // SAFETY: mutably borrowed memory.
    unsafe { transfer(Direction::Read, file, bytes.as_mut_ptr(), bytes.len(), offset, FLAG) }
}

/// pwritev2(2) or preadv2(2) with these flags.
///
/// # Safety
/// `len` bytes of `memory` are readable for a write, and writable and not otherwise used for a read.
#[inline]
pub(crate) unsafe fn transfer(
    direction: Direction,
    file: &File,
    memory: *mut u8,
    len: usize,
    offset: u64,
    flags: i32,
) -> io::Result<usize> {
    let part = libc::iovec { iov_base: memory.cast(), iov_len: len };
    let (fd, at) = (file.as_raw_fd(), offset as libc::off_t);
    // SAFETY: the descriptor is open while `file` is borrowed; one vector, of the caller's memory.
    let moved = unsafe {
        match direction {
            Direction::Write => libc::pwritev2(fd, &raw const part, 1, at, flags),
            Direction::Read => libc::preadv2(fd, &raw const part, 1, at, flags),
        }
    };
    usize::try_from(moved).map_err(|_| io::Error::last_os_error())
}

/// Explains an error caused by the flag, if the kernel or the file system does not support it.
pub(crate) fn explain(error: BackendError, errno: Option<i32>) -> BackendError {
    if !matches!(errno, Some(libc::EOPNOTSUPP | libc::EINVAL)) {
        return error;
    }
    let text = format!(
        "{}: RWF_DONTCACHE is not supported by this kernel (new in Linux 6.14) or by this file system; \
         use --cache drop",
        error.text
    );
    BackendError { text, cause: crate::error::FailureCause::Unsupported, ..error }
}

#[cfg(test)]
#[path = "dontcache_tests.rs"]
mod tests;
