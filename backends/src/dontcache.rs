//! Buffered transfers that drop their pages when done: pwritev2(2) and preadv2(2) with RWF_DONTCACHE (Linux 6.14).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use crate::BackendError;

/// RWF_DONTCACHE, as the kernel takes it in calls and in entries of io_uring.
pub(crate) const FLAG: i32 = libc::RWF_DONTCACHE;

/// pwrite(2) with the flag.
#[inline]
pub(crate) fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
    let part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: the descriptor is open while `file` is borrowed, and `part` names memory that is borrowed and only read.
    let moved = unsafe { libc::pwritev2(file.as_raw_fd(), &part, 1, offset as libc::off_t, FLAG) };
    usize::try_from(moved).map_err(|_| io::Error::last_os_error())
}

/// pread(2) with the flag.
#[inline]
pub(crate) fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    let part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: the descriptor is open while `file` is borrowed, and `part` names memory that is borrowed mutably.
    let moved = unsafe { libc::preadv2(file.as_raw_fd(), &part, 1, offset as libc::off_t, FLAG) };
    usize::try_from(moved).map_err(|_| io::Error::last_os_error())
}

/// Says it if the flag is what the kernel or the file system refuses.
pub(crate) fn explain(error: BackendError, errno: Option<i32>) -> BackendError {
    if !matches!(errno, Some(libc::EOPNOTSUPP | libc::EINVAL)) {
        return error;
    }
    let text = format!(
        "{}: RWF_DONTCACHE is not supported by this kernel (it came with Linux 6.14) or by this file system; \
         use --cache drop",
        error.text
    );
    BackendError { text, cause: crate::error::Cause::Unsupported, ..error }
}

#[cfg(test)]
#[path = "dontcache_tests.rs"]
mod tests;
