//! The storage sheet: parameters of a file system that a result must state, queried from a file, its mount, /sys, or the file system's own
//! tools.

mod access;
mod devices;
mod network;
mod parameter;
mod parse;
#[cfg(test)]
mod tests;

pub use parameter::{sheet, FoundParameters, StorageKey, StorageParameter};

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use super::command::output_of;
use super::mount::find_mount;
use super::traffic::device_levels;
use access::Access;

/// A tool that does not answer in this time is killed.
const TOOL_TIMEOUT: Duration = Duration::from_secs(5);

/// Queries the parameters of the storage of a file at `path`, which is open as `file`. Runs tools of the file system, with a time limit.
#[must_use]
pub fn query(path: &Path, file: &File) -> FoundParameters {
    let attribute = |name: &str| {
        let mut bytes = vec![0; 1 << 16];
        let length = rustix::fs::fgetxattr(file, name, bytes.as_mut_slice()).ok()?;
        bytes.truncate(length);
        Some(bytes)
    };
    let tool = |words: &[&str]| output_of(words, TOOL_TIMEOUT);
    let mut found = FoundParameters::default();
    let parent = path.parent().unwrap_or(path);
    let mount = match find_mount(parent) {
        Ok((mount, _)) => mount,
        Err(cause) => {
            found.problems.push(cause);
            return found;
        }
    };
    network::query(&network::Target::of(path, &mount), &Access { attribute: &attribute, tool: &tool }, &mut found);
    if let Ok(levels) = device_levels(parent) {
        devices::query(Path::new("/sys"), &mount, &levels, &mut found);
    }
    let block = nix::sys::statvfs::fstatvfs(file).ok().map(|space| space.fragment_size());
    found.add_size(StorageKey::Block, block, "statvfs");
    found
}
