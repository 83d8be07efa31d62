//! `beff-raw profile merge DIR`: merges the recordings of the processes into one profile.

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use beff_trace::merge::MergeError;

use super::options::{check_absent, MergeArgs};
use crate::frame::command::print_diagnostic;
use crate::frame::error::{Exit, UsageError};
use crate::frame::paths::shell_word;

/// Suffix of the directory to which the processes of a program write.
const PARTS_SUFFIX: &str = ".parts";

/// Prefix of the files that a merge by the ranks writes there.
const MERGED_NAME: &str = "merged.csv";

/// Set for programs started by `beff-raw profile`, which itself reports the output.
pub const LAUNCHED_VARIABLE: &str = "BEFF_PROFILE_LAUNCHED";

/// Directory of the recordings for a profile.
pub fn parts_directory(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(PARTS_SUFFIX);
    name.into()
}

/// Runs the command.
///
/// # Errors
/// A directory without recordings, a file that exists, I/O errors.
pub fn run(args: &MergeArgs) -> anyhow::Result<Exit> {
    let output = match &args.output {
        Some(output) => output.clone(),
        None => default_output(&args.directory)?,
    };
    check_absent(&output)?;
    merge(&args.directory, &output)?;
    if std::env::var_os(LAUNCHED_VARIABLE).is_none() {
        print_diagnostic(&format!(
            "wrote {}; the files in {} are no longer needed",
            output.display(),
            args.directory.display()
        ));
    }
    Ok(Exit::Ok)
}

fn default_output(directory: &Path) -> Result<PathBuf, UsageError> {
    let name = directory.as_os_str().to_string_lossy().into_owned();
    let name = name.trim_end_matches('/');
    name.strip_suffix(PARTS_SUFFIX).filter(|name| !name.is_empty()).map(PathBuf::from).ok_or_else(|| {
        UsageError::new(
            format!("{name} does not end in {PARTS_SUFFIX}, so the profile has no name"),
            "Name it with -o FILE.",
        )
    })
}

/// Output of a merge by the ranks: a separate name, so that the file is known to be of this merge. It is complete, as
/// [`beff_trace::merge::merge`] names no incomplete file.
pub fn merged_path(parts: &Path, output: &Path) -> PathBuf {
    parts.join(if beff_trace::text::is_zstd(output) { "merged.csv.zst" } else { MERGED_NAME })
}

/// Publishes the profile under its name: the merge by the ranks, or else a merge of their files.
///
/// # Errors
/// As [`run`]. A file of that name, and the files of the processes, are unchanged then.
pub fn publish_profile(parts: &Path, output: &Path) -> anyhow::Result<()> {
    match std::fs::hard_link(merged_path(parts, output), output) {
        Ok(()) => return Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            Err(merge_error(&MergeError::Exists(output.to_owned()), parts, output))?;
        }
        // The ranks have not merged, or the file system does not support links.
        Err(_) => {}
    }
    merge(parts, output)
}

/// Merges, and prints what is missing.
///
/// # Errors
/// As [`run`]. No part of the profile is left then.
pub fn merge(parts: &Path, output: &Path) -> anyhow::Result<()> {
    let report = beff_trace::merge::merge(parts, output, &beff_trace::merge::MergeOptions::default())
        .map_err(|error| merge_error(&error, parts, output))?;
    report.remarks().iter().for_each(|remark| print_diagnostic(remark));
    Ok(())
}

fn merge_error(error: &MergeError, parts: &Path, output: &Path) -> UsageError {
    let command =
        |output: &OsStr| format!("beff-raw profile merge {} -o {}", shell_word(parts.as_os_str()), shell_word(output));
    let next = match error {
        MergeError::Exists(_) => format!("Merge under another name: {}", command(unused_output(output).as_os_str())),
        _ => format!("Once that is fixed: {}, or -o FILE on another disk.", command(output.as_os_str())),
    };
    UsageError::new(error.to_string(), next)
}

fn unused_output(output: &Path) -> PathBuf {
    let numbered = |number: u32| {
        let mut name = OsString::from(format!("{number}-"));
        name.push(output.file_name().unwrap_or_default());
        output.with_file_name(name)
    };
    (2..10_000).map(numbered).find(|path| path.symlink_metadata().is_err()).unwrap_or_else(|| numbered(10_000))
}

/// True if a process has recorded into the directory, or it cannot be read: then merging reports why.
pub fn has_recordings(parts: &Path) -> bool {
    let any = |entries: std::fs::ReadDir| entries.flatten().any(|entry| is_recording(&entry.file_name()));
    std::fs::read_dir(parts).map_or(true, any)
}

fn is_recording(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with("rank-") && name.ends_with(".beff")
}

/// Removes the files of the processes and their merge, and nothing else: the directory stays if it contains other files.
pub fn remove_parts(parts: &Path) {
    for entry in std::fs::read_dir(parts).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if is_recording(&name) || name.to_string_lossy().starts_with(MERGED_NAME) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
    let _ = std::fs::remove_dir(parts);
}
