//! Support for preallocation in file systems, and its cost.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;

use nix::sys::statfs::fstatfs;

use super::fallocate::{allocate, is_out_of_space, is_unsupported};
use crate::direct::FdPair;
use crate::error::FailureCause;
use crate::retry::retry_interrupted;
use crate::statx::{is_block_mapped, BLOCK_MAPPED};
use crate::{BackendError, OpenRequest, Result};

/// Rank 0 checks the new file and broadcasts the reason of a refusal. Also called by ranks that could not open the file.
pub(super) fn agreed_refusal_reason(request: &OpenRequest<'_>, files: Option<&FdPair>) -> Result<Option<String>> {
    let tried = match files.filter(|_| request.comm.rank() == 0) {
        Some(files) if files.direct_file().is_some() => refusal_reason(&files.buffered),
        _ => Ok(None),
    };
    let text = tried.as_ref().ok().cloned().flatten().unwrap_or_default();
    let agreed = request.comm.bcast_bytes(text.into_bytes(), 0).map_err(|e| {
        let text = format!("agreement on the preallocation of the new file failed: {e}");
        BackendError::new("open", request.path, FailureCause::Io, text)
    })?;
    tried.map_err(|e| BackendError::from_io("fallocate", request.path, Some(0), &e))?;
    Ok((!agreed.is_empty()).then(|| String::from_utf8_lossy(&agreed).into_owned()))
}

/// Length of the check: beyond what an inode stores inline.
const CHECK_BYTES: u64 = 64 << 10;
/// Unit of the block count of stat(2).
const STAT_BLOCK_BYTES: u64 = 512;

/// Why blocks cannot be preallocated in an empty file, which stays empty. By mode 0, as NFS supports no other. A full disk decides
/// nothing. Success is verified where blocks can be counted: ZFS, which copies on write, only extends the file.
pub(super) fn refusal_reason(file: &File) -> io::Result<Option<String>> {
    let name = file_system_name(file);
    let counts = WITH_IMMEDIATE_BLOCK_COUNT.contains(&name.as_str());
    let blocks = || if counts { file.metadata().map(|stat| stat.blocks()) } else { Ok(0) };
    let before = blocks()?;
    match allocate(file, 0, CHECK_BYTES) {
        Ok(()) => {
            let after = blocks();
            truncate_to_zero(file)?;
            let allocated_bytes = after?.saturating_sub(before) * STAT_BLOCK_BYTES;
            let is_faked = counts && allocated_bytes < CHECK_BYTES / 2;
            Ok(is_faked.then(|| format!("fallocate accepted by {name}, which allocated no blocks")))
        }
        Err(error) if is_unsupported(&error) => {
            let cached = is_block_mapped(file)?;
            let why = if cached { format!("; {BLOCK_MAPPED}") } else { String::new() };
            Ok(Some(format!("fallocate refused by {name}: {error}{why}")))
        }
        Err(error) if is_out_of_space(&error) => truncate_to_zero(file).map(|()| None),
        Err(error) => Err(error),
    }
}

/// Removes the allocation. Some file systems need space for that; a lack of it will be reported by the next call.
fn truncate_to_zero(file: &File) -> io::Result<()> {
    match retry_interrupted(|| file.set_len(0)) {
        Err(error) if is_out_of_space(&error) => Ok(()),
        other => other,
    }
}

/// True unless blocks are known to be allocated by extents, in a time independent of their number. Others may write zeros into each
/// block, also on a server.
pub(super) fn is_allocation_costly(file: &File) -> bool {
    !WITH_UNWRITTEN_EXTENTS.contains(&file_system_name(file).as_str())
}

/// File system names by the number that statfs(2) returns.
const FILE_SYSTEM_NAMES: [(u64, &str); 14] = [
    (0xef53, "ext4"),
    (0x5846_5342, "xfs"),
    (0x9123_683e, "btrfs"),
    (0x0102_1994, "tmpfs"),
    (0x6969, "nfs"),
    (0x6573_5546, "FUSE"),
    (0x794c_7630, "overlay"),
    (0x0bd0_0bd0, "lustre"),
    (0x4750_4653, "gpfs"),
    (0x00c3_6400, "ceph"),
    (0xfe53_4d42, "smb"),
    (0x2fc1_2fc1, "zfs"),
    (0x4d44, "vfat"),
    (0xf2f5_2010, "f2fs"),
];

/// File systems with unwritten extents.
const WITH_UNWRITTEN_EXTENTS: [&str; 3] = ["ext4", "xfs", "btrfs"];

/// File systems with a current block count. A server may report it later, or never.
const WITH_IMMEDIATE_BLOCK_COUNT: [&str; 8] = ["ext4", "xfs", "btrfs", "tmpfs", "overlay", "zfs", "vfat", "f2fs"];

fn file_system_name(file: &File) -> String {
    let Ok(stat) = fstatfs(file) else { return "the file system".into() };
    let number = stat.filesystem_type().0 as u64 & 0xffff_ffff;
    let name = FILE_SYSTEM_NAMES.iter().find(|(known, _)| *known == number);
    name.map_or_else(|| format!("the file system {number:#x}"), |(_, name)| (*name).to_owned())
}
