//! Information of the file system about direct I/O on one file, and what takes its place where there is none.

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;

use beff_ffi::page_cache;
use nix::sys::statfs::{fstatfs, EXT4_SUPER_MAGIC};

use crate::{Direct, DirectTrial, Direction};

/// The kernel reports the alignment of reads in `stx_dio_read_offset_align` (include/uapi/linux/stat.h, Linux 6.14).
const STATX_DIO_READ_ALIGN: u32 = 0x0002_0000;

/// Makes every file system one without STATX_DIOALIGN, as with a kernel before 6.1.
#[cfg(feature = "test-hooks")]
pub const NO_DIOALIGN_VARIABLE: &str = "BEFF_RAW_NO_DIOALIGN";

/// The file maps extents (include/uapi/linux/fs.h).
const FS_EXTENT_FL: libc::c_int = 0x0008_0000;

/// Alignment for direct I/O on one file, from statx(2) with STATX_DIOALIGN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectAlign {
    /// Addresses in memory must be multiples of this many bytes.
    pub memory_bytes: u64,
    /// File offsets and lengths must be multiples of this many bytes.
    pub offset_bytes: u64,
    /// The same for reads only, if the kernel reports it (STATX_DIO_READ_ALIGN, Linux 6.14); else `offset_bytes`.
    pub read_offset_bytes: u64,
    /// Block size of the file system (`st_blksize`): a write of whole blocks does not modify others.
    pub block_bytes: u64,
    /// The kernel always writes new blocks inside the file through its page cache (ext2, ext3: no extents).
    pub new_blocks_cached: bool,
    /// False if the file system accepts O_DIRECT with this alignment, but a bypass of the page cache is unproven.
    pub is_proven: bool,
}

/// Why a file with `new_blocks_cached` is refused if writes must be direct.
pub(crate) const BLOCK_MAPPED: &str =
    "the file has no extents (ext2, ext3): the kernel writes new blocks inside it through its page cache";

impl DirectAlign {
    /// The larger of both, which satisfies either: both are powers of two.
    #[must_use]
    pub fn common_bytes(&self) -> u64 {
        self.memory_bytes.max(self.offset_bytes)
    }

    /// [`DirectAlign::common_bytes`] of one direction.
    #[must_use]
    pub fn direction_bytes(&self, direction: Direction) -> u64 {
        match direction {
            Direction::Write => self.common_bytes(),
            Direction::Read => self.memory_bytes.max(self.read_offset_bytes),
        }
    }
}

/// Queries the alignment of direct I/O on `file`; `None` if the kernel (before 6.1) or the file system does not report it,
/// or if direct I/O is not possible. A successful open with O_DIRECT proves nothing: some file systems
/// accept it and use the page cache.
///
/// # Errors
/// What statx(2) reports.
pub fn direct_align(file: &File) -> io::Result<Option<DirectAlign>> {
    let mut answer = MaybeUninit::<libc::statx>::zeroed();
    let mask = libc::STATX_DIOALIGN | STATX_DIO_READ_ALIGN;
    // SAFETY: the descriptor is open as long as `file` is borrowed, the path is a terminated empty string, which
    // AT_EMPTY_PATH allows, and `answer` is writable memory of exactly one struct statx.
    let code = unsafe { libc::statx(file.as_raw_fd(), c"".as_ptr(), libc::AT_EMPTY_PATH, mask, answer.as_mut_ptr()) };
    if code != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: all-zero bytes are a valid struct statx (integers only), and the kernel has filled it.
    let answer = unsafe { answer.assume_init() };
    #[cfg(feature = "test-hooks")]
    if std::env::var_os(NO_DIOALIGN_VARIABLE).is_some() {
        return Ok(None);
    }
    if answer.stx_mask & libc::STATX_DIOALIGN == 0 || answer.stx_dio_mem_align == 0 || answer.stx_dio_offset_align == 0
    {
        return Ok(None);
    }
    let has_read_align = answer.stx_mask & STATX_DIO_READ_ALIGN != 0 && answer.stx_dio_read_offset_align != 0;
    let read = if has_read_align { answer.stx_dio_read_offset_align } else { answer.stx_dio_offset_align };
    let new_blocks_cached = is_block_mapped(file)?;
    let sector_bytes = u64::from(answer.stx_dio_offset_align);
    Ok(Some(DirectAlign {
        memory_bytes: u64::from(answer.stx_dio_mem_align),
        offset_bytes: if new_blocks_cached {
            sector_bytes.max(cache_unit_bytes(answer.stx_blksize))
        } else {
            sector_bytes
        },
        read_offset_bytes: u64::from(read),
        block_bytes: u64::from(answer.stx_blksize),
        new_blocks_cached,
        is_proven: true,
    }))
}

/// Alignment for direct I/O under a policy: that of statx(2), or of the trial where statx reports none or the trial overrides it.
///
/// # Errors
/// Why transfers of this file cannot be direct.
pub(crate) fn usable_align(
    file: &File,
    wanted: Direct,
    is_written: bool,
    trial: Option<&DirectTrial>,
    memory_align_bytes: u64,
) -> Result<DirectAlign, String> {
    let reported = match trial {
        Some(trial) if trial.overrides_statx => None,
        _ => direct_align(file).map_err(|e| format!("statx for the alignment of direct I/O failed: {e}"))?,
    };
    let align = match (reported, trial) {
        (Some(align), _) => align,
        (None, None) => {
            return Err("the file system reports no alignment for direct I/O (statx STATX_DIOALIGN, Linux 6.1)".into())
        }
        (None, Some(trial)) => trial_align(file, wanted, trial)?,
    };
    if !memory_align_bytes.is_multiple_of(align.memory_bytes) {
        return Err(format!(
            "the file system requires memory aligned to {} bytes, the buffers are aligned to {memory_align_bytes}",
            align.memory_bytes
        ));
    }
    if align.new_blocks_cached && wanted == Direct::Required && is_written {
        return Err(BLOCK_MAPPED.into());
    }
    Ok(align)
}

/// The alignment that a trial found, for this file.
fn trial_align(file: &File, wanted: Direct, trial: &DirectTrial) -> Result<DirectAlign, String> {
    let found = trial.align.as_ref().map_err(|reason| reason.to_string())?;
    if !found.is_proven && !trial.overrides_statx && wanted == Direct::Required {
        return Err(format!(
            "the file system accepts O_DIRECT, but a bypass of the page cache is unproven (--dio-align {} accepts it as direct)",
            found.offset_bytes
        ));
    }
    let new_blocks_cached = is_block_mapped(file).map_err(|e| format!("the flags of the file are unknown: {e}"))?;
    let block_bytes = file.metadata().map_err(|e| format!("fstat: {e}"))?.blksize();
    let unit_bytes = if new_blocks_cached { cache_unit_bytes(block_bytes as u32) } else { 1 };
    Ok(DirectAlign {
        memory_bytes: found.memory_bytes,
        offset_bytes: found.offset_bytes.max(unit_bytes),
        read_offset_bytes: found.offset_bytes,
        block_bytes,
        new_blocks_cached,
        is_proven: found.is_proven,
    })
}

/// Unit that two writes must not share if one may use the page cache and the other is direct: a page, or a block if that is larger.
/// Sectors are not sufficient: the cached write restores the whole block as it was before the direct one.
fn cache_unit_bytes(block_bytes: u32) -> u64 {
    u64::from(block_bytes).max(page_cache::page_bytes()).next_power_of_two()
}

/// True for a file of ext2, ext3 or ext4 that maps single blocks. Such a file has no unwritten extents, so that its direct writes
/// silently fall back to the page cache at holes (`ext4_iomap_alloc` in fs/ext4/inode.c).
pub(crate) fn is_block_mapped(file: &File) -> io::Result<bool> {
    if fstatfs(file)?.filesystem_type() != EXT4_SUPER_MAGIC {
        return Ok(false);
    }
    let mut flags: libc::c_int = 0;
    // SAFETY: the descriptor is open as long as `file` is borrowed, and FS_IOC_GETFLAGS writes one int (ioctl_iflags(2)).
    let code = unsafe { libc::ioctl(file.as_raw_fd(), libc::FS_IOC_GETFLAGS, &raw mut flags) };
    if code != 0 {
        let error = io::Error::last_os_error();
        // The ext drivers support these flags; any other file system with this magic number counts as not block-mapped.
        return if error.raw_os_error() == Some(libc::ENOTTY) { Ok(false) } else { Err(error) };
    }
    Ok(flags & FS_EXTENT_FL == 0)
}

// The struct grows only into its spare fields; these are the offsets of include/uapi/linux/stat.h.
const _: () = {
    assert!(size_of::<libc::statx>() == 256);
    assert!(std::mem::offset_of!(libc::statx, stx_mask) == 0);
    assert!(std::mem::offset_of!(libc::statx, stx_dio_mem_align) == 0x98);
    assert!(std::mem::offset_of!(libc::statx, stx_dio_offset_align) == 0x9c);
    assert!(std::mem::offset_of!(libc::statx, stx_dio_read_offset_align) == 0xb4);
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
            let whole_pages = align.offset_bytes % page_cache::page_bytes() == 0;
            assert!(whole_pages || !align.new_blocks_cached, "{align:?}");
            assert!(align.memory_bytes.is_power_of_two());
            assert!(align.offset_bytes.is_power_of_two());
            assert!(align.read_offset_bytes.is_power_of_two());
            assert!(align.direction_bytes(Direction::Read) <= align.direction_bytes(Direction::Write));
            assert!(align.common_bytes() >= align.memory_bytes && align.common_bytes() >= align.offset_bytes);
        }
    }

    fn trial(overrides_statx: bool, is_proven: bool) -> DirectTrial {
        let align = Ok(crate::TrialAlign { offset_bytes: 2048, memory_bytes: 256, is_proven });
        DirectTrial { overrides_statx, align }
    }

    #[test]
    fn a_trial_counts_where_statx_says_nothing_or_the_user_overrides_it() {
        let dir = scratch();
        let file = File::create(dir.path().join("f")).unwrap();
        let usable = |file, wanted, trial: Option<&DirectTrial>| usable_align(file, wanted, true, trial, 4096);
        let reported = direct_align(&file).unwrap();
        if let Some(align) = reported.filter(|align| !align.new_blocks_cached) {
            assert_eq!(usable(&file, Direct::Auto, Some(&trial(false, true))), Ok(align));
            let own = usable(&file, Direct::Auto, Some(&trial(true, false))).unwrap();
            assert_eq!((own.offset_bytes, own.memory_bytes, own.is_proven), (2048, 256, false));
        }
        // No alignment is reported for a device that is no disk.
        let untold = File::open("/dev/null").unwrap();
        assert!(usable(&untold, Direct::Auto, None).unwrap_err().contains("STATX_DIOALIGN"));
        for (overrides, is_proven) in [(false, true), (true, false), (true, true)] {
            let trial = trial(overrides, is_proven);
            let align = usable(&untold, Direct::Required, Some(&trial)).unwrap();
            assert_eq!((align.read_offset_bytes, align.is_proven), (2048, is_proven));
            assert!(usable_align(&untold, Direct::Auto, true, Some(&trial), 128).unwrap_err().contains("256"));
        }
        let unproven = trial(false, false);
        assert!(usable(&untold, Direct::Auto, Some(&unproven)).is_ok_and(|align| !align.is_proven));
        let why = usable(&untold, Direct::Required, Some(&unproven)).unwrap_err();
        assert!(why.contains("unproven") && why.contains("--dio-align 2048"), "{why}");
        for overrides_statx in [false, true] {
            let refused = DirectTrial { overrides_statx, align: Err("buffered anyway".into()) };
            assert_eq!(usable(&untold, Direct::Auto, Some(&refused)), Err("buffered anyway".into()));
        }
    }

    #[test]
    fn no_direct_io_on_a_character_device() {
        assert_eq!(direct_align(&File::open("/dev/null").unwrap()).unwrap(), None);
    }
}
