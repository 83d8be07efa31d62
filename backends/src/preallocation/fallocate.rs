//! System calls for blocks, and the meaning of their errors.

use std::fs::File;
use std::io;

use nix::errno::Errno;
use nix::fcntl::{fallocate, FallocateFlags};

use crate::retry::retry_interrupted;

pub(super) fn allocate(file: &File, from: u64, to: u64) -> io::Result<()> {
    fallocate_with(FallocateFlags::empty(), file, from, to)
}

pub(super) fn fallocate_with(flags: FallocateFlags, file: &File, from: u64, to: u64) -> io::Result<()> {
    let position = |bytes| i64::try_from(bytes).map_err(|_| io::Error::from_raw_os_error(libc::EFBIG));
    let (from, len) = (position(from)?, position(to - from)?);
    retry_interrupted(|| Ok(fallocate(file, flags, from, len)?))
}

fn errno(error: &io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::UnknownErrno, Errno::from_raw)
}

/// Not permitted by the file system, a filter or a limit, for any size.
pub(super) fn is_unsupported(error: &io::Error) -> bool {
    matches!(errno(error), Errno::EOPNOTSUPP | Errno::ENOSYS | Errno::EPERM | Errno::EINVAL | Errno::ENODEV)
}

/// No space, no quota, or a file beyond its maximum length.
pub(super) fn is_out_of_space(error: &io::Error) -> bool {
    matches!(errno(error), Errno::ENOSPC | Errno::EDQUOT | Errno::EFBIG)
}
