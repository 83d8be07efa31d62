//! Files of a program, from the open to the close.

use beff_ffi::replay::File;
use beff_ffi::Comm;

use crate::program::memory::Landing;

/// A file, or the place of one.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) file: File,
    /// A split collective call that was begun.
    pub(super) split: Option<Split>,
    /// Who opened it, and how many files they had opened before it: the same on all ranks.
    pub(super) by: (u32, u64),
    /// Its number among the names.
    pub(super) name: Option<u32>,
}

/// The memory of a split collective call.
#[derive(Debug)]
pub(super) struct Split {
    pub(super) memory: *mut u8,
    pub(super) landing: Option<Landing>,
}

impl Opened {
    pub(super) fn none() -> Self {
        Self { file: File::none(), split: None, by: (u32::MAX, 0), name: None }
    }
}

/// Closes what the program left open, where all ranks that opened it have it. How many could not be closed.
pub(super) fn close_all(files: &mut [Opened], comms: &[Option<Comm>]) -> beff_ffi::Result<u64> {
    let mut left = 0;
    for (number, comm) in comms.iter().enumerate() {
        let Some(comm) = comm else { continue };
        let mut mine: Vec<&mut Opened> =
            files.iter_mut().filter(|it| it.by.0 as usize == number && it.file.is_open()).collect();
        mine.sort_unstable_by_key(|it| it.by.1);
        left += close_of(&mut mine, comm)?;
    }
    Ok(left)
}

/// Goes through the files of one communicator in the order in which they were opened.
fn close_of(mine: &mut [&mut Opened], comm: &Comm) -> beff_ffi::Result<u64> {
    const NONE: u64 = u64::MAX;
    let (mut left, mut next) = (0, 0);
    loop {
        // The earliest that anybody has; odd with a split collective call that was not ended, which nobody can close.
        let own = mine.get(next).map_or(NONE, |it| it.by.1 * 2 + u64::from(it.split.is_some()));
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
