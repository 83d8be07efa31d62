//! `beff-raw profile merge DIR`: one profile of what the processes wrote.

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use beff_trace::merge::MergeError;

use super::options::{must_be_new, MergeArgs};
use crate::frame::command::complain;
use crate::frame::error::{Exit, UsageError};
use crate::frame::paths::word_of;

/// Ending of the directory where the processes of a program write.
const PARTS: &str = ".parts";

/// Begin of the names that a merge by the ranks has in it.
const MERGED: &str = "merged.csv";

/// Set for programs that `beff-raw profile` has started: it says itself what was written.
pub const SILENT: &str = "BEFF_PROFILE_LAUNCHED";

/// The directory for a profile.
pub fn parts_of(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(PARTS);
    name.into()
}

/// Runs the command.
///
/// # Errors
/// A directory without recordings, a file that exists, what the disk says.
pub fn run(args: &MergeArgs) -> anyhow::Result<Exit> {
    let output = match &args.output {
        Some(output) => output.clone(),
        None => default_output(&args.directory)?,
    };
    must_be_new(&output)?;
    merge(&args.directory, &output)?;
    if std::env::var_os(SILENT).is_none() {
        complain(&format!("wrote {}; the files in {} can go", output.display(), args.directory.display()));
    }
    Ok(Exit::Ok)
}

fn default_output(directory: &Path) -> Result<PathBuf, UsageError> {
    let name = directory.as_os_str().to_string_lossy().into_owned();
    let name = name.trim_end_matches('/');
    name.strip_suffix(PARTS).filter(|name| !name.is_empty()).map(PathBuf::from).ok_or_else(|| {
        UsageError::new(format!("{name} does not end in {PARTS}, so the profile has no name"), "Name it with -o FILE.")
    })
}

/// Where the ranks merge: a name of their own, so that what has it was made by this merge. Whole, as [`beff_trace::merge::merge`] names
/// nothing that is not.
pub fn merged_in(parts: &Path, output: &Path) -> PathBuf {
    parts.join(if beff_trace::text::is_zstd(output) { "merged.csv.zst" } else { MERGED })
}

/// Gives the profile its name: the one that the ranks have merged, or else the one that their files make.
///
/// # Errors
/// As [`run`]. What has the name is as it was then, and so are the files of the processes.
pub fn publish(parts: &Path, output: &Path) -> anyhow::Result<()> {
    match std::fs::hard_link(merged_in(parts, output), output) {
        Ok(()) => return Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            Err(explained(&MergeError::Exists(output.to_owned()), parts, output))?;
        }
        // The ranks have not merged, or the file system knows no links.
        Err(_) => {}
    }
    merge(parts, output)
}

/// Merges, and says what is missing.
///
/// # Errors
/// As [`run`]. Nothing of the profile is left then.
pub fn merge(parts: &Path, output: &Path) -> anyhow::Result<()> {
    let report = beff_trace::merge::merge(parts, output, &beff_trace::merge::Options::default())
        .map_err(|error| explained(&error, parts, output))?;
    report.remarks().iter().for_each(|remark| complain(remark));
    Ok(())
}

fn explained(error: &MergeError, parts: &Path, output: &Path) -> UsageError {
    let command =
        |output: &OsStr| format!("beff-raw profile merge {} -o {}", word_of(parts.as_os_str()), word_of(output));
    let next = match error {
        MergeError::Exists(_) => format!("Merge under another name: {}", command(another(output).as_os_str())),
        _ => format!("Once that is mended: {}, or -o FILE on another disk.", command(output.as_os_str())),
    };
    UsageError::new(error.to_string(), next)
}

/// The first free name like this one.
fn another(output: &Path) -> PathBuf {
    let numbered = |number: u32| {
        let mut name = OsString::from(format!("{number}-"));
        name.push(output.file_name().unwrap_or_default());
        output.with_file_name(name)
    };
    (2..10_000).map(numbered).find(|path| path.symlink_metadata().is_err()).unwrap_or_else(|| numbered(10_000))
}

/// True if a process has recorded into the directory, or nobody can tell: then merging says why.
pub fn has_recordings(parts: &Path) -> bool {
    let any = |entries: std::fs::ReadDir| entries.flatten().any(|entry| is_recording(&entry.file_name()));
    std::fs::read_dir(parts).map_or(true, any)
}

fn is_recording(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with("rank-") && name.ends_with(".beff")
}

/// Takes away what the processes wrote and their merge, and nothing else: the directory stays if something foreign is in it.
pub fn remove_parts(parts: &Path) {
    for entry in std::fs::read_dir(parts).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if is_recording(&name) || name.to_string_lossy().starts_with(MERGED) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
    let _ = std::fs::remove_dir(parts);
}
