//! Old files of a comparison go away before the next run begins.

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Removes a file if it is there, and waits until the file system has done so: freeing its blocks is nobody's work in the
/// next run. The file becomes empty first: the kernel takes a queue of io_uring down after its program has ended, holds a registered file
/// until then, and frees the blocks of one that is only unlinked a tenth of a second later.
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
