//! The comparison with fio: an old file is gone before the next run begins.

#[path = "../../benches/fio/removal.rs"]
mod bench;

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;

use crate::support::Scratch;

/// A program that has ended may still hold its file, by a queue that the kernel takes down later: the blocks go all the same.
#[test]
fn a_removed_file_has_no_blocks_although_somebody_holds_it() {
    let scratch = Scratch::new();
    let path = scratch.join("old");
    fs::write(&path, vec![1; 1 << 20]).unwrap();
    let held = File::open(&path).unwrap();
    held.sync_all().unwrap();
    assert!(held.metadata().unwrap().blocks() > 0);
    bench::remove(&path).unwrap();
    let after = held.metadata().unwrap();
    assert_eq!((after.len(), after.blocks(), after.nlink()), (0, 0, 0));
    assert!(!path.exists());
    // None is there.
    bench::remove(&path).unwrap();
    assert!(bench::remove(scratch.path()).is_err(), "a directory is not removed");
}
