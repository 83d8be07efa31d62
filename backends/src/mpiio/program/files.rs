//! Files of a program, from open to close.

use beff_ffi::replay::FileHandle;
use beff_ffi::Comm;

use crate::program::memory::AccessId;

/// A file, or an empty entry for one.
#[derive(Debug)]
pub(super) struct FileEntry {
    pub(super) file: FileHandle,
    pub(super) split: Option<SplitAccess>,
    /// Communicator, and number of files that it opened before: the same on all ranks.
    pub(super) open_order: (u32, u64),
    /// Index of its name.
    pub(super) name: Option<u32>,
}

#[derive(Debug)]
pub(super) struct SplitAccess {
    pub(super) memory: *mut u8,
    pub(super) access: Option<AccessId>,
}

impl FileEntry {
    pub(super) fn unopened() -> Self {
        Self { file: FileHandle::null(), split: None, open_order: (u32::MAX, 0), name: None }
    }
}

/// Closes the files left open that all ranks of their communicator have. Returns the number of the others.
pub(super) fn close_all(files: &mut [FileEntry], comms: &[Option<Comm>]) -> beff_ffi::Result<u64> {
    let mut left = 0;
    for (number, comm) in comms.iter().enumerate() {
        let Some(comm) = comm else { continue };
        let mut mine: Vec<&mut FileEntry> =
            files.iter_mut().filter(|it| it.open_order.0 as usize == number && it.file.is_open()).collect();
        mine.sort_unstable_by_key(|it| it.open_order.1);
        left += close_of_comm(&mut mine, comm)?;
    }
    Ok(left)
}

/// In the order in which the files were opened.
fn close_of_comm(mine: &mut [&mut FileEntry], comm: &Comm) -> beff_ffi::Result<u64> {
    const NONE: u64 = u64::MAX;
    let (mut left, mut next) = (0, 0);
    loop {
        // Odd if a split collective call was not ended, which prevents the close.
        let own = mine.get(next).map_or(NONE, |it| it.open_order.1 * 2 + u64::from(it.split.is_some()));
        let mut earliest = [own];
        comm.min_u64(&mut earliest)?;
        if earliest[0] == NONE {
            return Ok(left);
        }
        let mut latest = [own];
        comm.max_u64(&mut latest)?;
        if own != earliest[0] {
            continue;
        }
        next += 1;
        if latest[0] == own && own % 2 == 0 {
            let _ = mine[next - 1].file.close();
        } else {
            left += 1;
        }
    }
}
