//! Whether a file system makes room before it is written, and whether much of it costs more than little.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;

use nix::sys::statfs::fstatfs;

use super::calls::{allocate, is_full, is_refusal};
use crate::direct::FdPair;
use crate::error::Cause;
use crate::patience::uninterrupted;
use crate::statx::{is_block_mapped, BLOCK_MAPPED};
use crate::{BackendError, OpenRequest, Result};

/// Rank 0's trial on the new file, made while the others wait for its outcome, as all ranks learn it. Whoever could not open the
/// file comes here too.
pub(super) fn agreed_refusal(request: &OpenRequest<'_>, files: Option<&FdPair>) -> Result<Option<String>> {
    let tried = match files.filter(|_| request.comm.rank() == 0) {
        Some(files) if files.direct_file().is_some() => refusal(&files.buffered),
        _ => Ok(None),
    };
    let text = tried.as_ref().ok().cloned().flatten().unwrap_or_default();
    let agreed = request.comm.bcast_bytes(text.into_bytes(), 0).map_err(|e| {
        let text = format!("agreement on the room of the new file failed: {e}");
        BackendError::new("open", request.path, Cause::Io, text)
    })?;
    tried.map_err(|e| BackendError::from_io("fallocate", request.path, Some(0), &e))?;
    Ok((!agreed.is_empty()).then(|| String::from_utf8_lossy(&agreed).into_owned()))
}

/// Length of the trial: more than what is kept beside the description of a file, in no block of its own.
const TRIAL_BYTES: u64 = 64 << 10;
/// What stat(2) counts blocks in.
const STAT_BLOCK_BYTES: u64 = 512;

/// Why blocks cannot be made in an empty file, which stays empty. With mode 0, as they will be: NFS knows no other. A full disk is no
/// answer. A success is not believed where the blocks can be counted: ZFS, which copies what it writes, makes the file longer and no more.
pub(super) fn refusal(file: &File) -> io::Result<Option<String>> {
    let name = file_system(file);
    let counts = COUNTS_AT_ONCE.contains(&name.as_str());
    let blocks = || if counts { file.metadata().map(|told| told.blocks()) } else { Ok(0) };
    let before = blocks()?;
    match allocate(file, 0, TRIAL_BYTES) {
        Ok(()) => {
            let after = blocks();
            empty(file)?;
            let made_bytes = after?.saturating_sub(before) * STAT_BLOCK_BYTES;
            let is_faked = counts && made_bytes < TRIAL_BYTES / 2;
            Ok(is_faked.then(|| format!("fallocate accepted by {name}, which made no blocks")))
        }
        Err(error) if is_refusal(&error) => {
            let cached = is_block_mapped(file)?;
            let why = if cached { format!("; {BLOCK_MAPPED}") } else { String::new() };
            Ok(Some(format!("fallocate refused by {name}: {error}{why}")))
        }
        Err(error) if is_full(&error) => empty(file).map(|()| None),
        Err(error) => Err(error),
    }
}

/// Takes the trial away. Some file systems need space for that, too: what comes next will tell that there is none.
fn empty(file: &File) -> io::Result<()> {
    match uninterrupted(|| file.set_len(0)) {
        Err(error) if is_full(&error) => Ok(()),
        other => other,
    }
}

/// True unless blocks are known to be made by the extent, which takes no longer for many of them. Others may write zeros into each, or
/// have a server that does.
pub(super) fn is_dear(file: &File) -> bool {
    !CHEAP.contains(&file_system(file).as_str())
}

/// Names of file systems by the number that statfs(2) tells.
const NAMES: [(u64, &str); 14] = [
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

/// These have extents that are not written yet.
const CHEAP: [&str; 3] = ["ext4", "xfs", "btrfs"];

/// The blocks of a file that these tell are those it has now. A server may tell later, or never, how many it has made.
const COUNTS_AT_ONCE: [&str; 8] = ["ext4", "xfs", "btrfs", "tmpfs", "overlay", "zfs", "vfat", "f2fs"];

fn file_system(file: &File) -> String {
    let Ok(told) = fstatfs(file) else { return "the file system".into() };
    let number = told.filesystem_type().0 as u64 & 0xffff_ffff;
    let name = NAMES.iter().find(|(known, _)| *known == number);
    name.map_or_else(|| format!("the file system {number:#x}"), |(_, name)| (*name).to_owned())
}
