//! Removal of old files before the next run.

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Removes a file if it exists, and waits until the file system has done so, so that freeing its blocks does not disturb the next run. The
/// file is truncated first: the kernel tears down an io_uring queue after its program has ended, holds a registered file until then, and
/// frees the blocks of a file that was only unlinked a tenth of a second later.
pub fn remove(path: &Path) -> io::Result<()> {
    let removed =
        File::options().write(true).open(path).and_then(|file| file.set_len(0)).and_then(|()| fs::remove_file(path));
    match removed {
        Ok(()) => {}
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(e) => return Err(e),
    }
    path.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all())
}
