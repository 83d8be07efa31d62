//! The system calls that make room and give it back, and what their errors mean.

use std::fs::File;
use std::io;

use nix::errno::Errno;
use nix::fcntl::{fallocate, FallocateFlags};

use crate::patience::uninterrupted;

pub(super) fn allocate(file: &File, from: u64, to: u64) -> io::Result<()> {
    fallocate_with(FallocateFlags::empty(), file, from, to)
}

pub(super) fn fallocate_with(flags: FallocateFlags, file: &File, from: u64, to: u64) -> io::Result<()> {
    let position = |bytes| i64::try_from(bytes).map_err(|_| io::Error::from_raw_os_error(libc::EFBIG));
    let (from, len) = (position(from)?, position(to - from)?);
    uninterrupted(|| Ok(fallocate(file, flags, from, len)?))
}

fn errno(error: &io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::UnknownErrno, Errno::from_raw)
}

/// The file system, a filter or a limit is against it, whatever the size.
pub(super) fn is_refusal(error: &io::Error) -> bool {
    matches!(errno(error), Errno::EOPNOTSUPP | Errno::ENOSYS | Errno::EPERM | Errno::EINVAL | Errno::ENODEV)
}

/// No space, no quota, or a file that may not become so long.
pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(errno(error), Errno::ENOSPC | Errno::EDQUOT | Errno::EFBIG)
}
