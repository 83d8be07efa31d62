//! `beff-raw profile merge DIR`: merges the recordings of the processes into one profile.

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use beff_trace::merge::MergeError;
use beff_trace::raw::WORLD_PREFIX;

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
    if std::env::var_os(LAUNCHED_VARIABLE).is_some() {
        // Started by rank 0 of this world.
        return merge(&args.directory, &output).map(|()| Exit::Ok);
    }
    let mut worlds = worlds(&args.directory, &output);
    if worlds.is_empty() {
        worlds.push((args.directory.clone(), output));
    }
    for (_, output) in &worlds {
        check_absent(output)?;
    }
    for (recording, output) in worlds {
        merge(&recording, &output)?;
        print_diagnostic(&format!(
            "wrote {}; the files in {} are no longer needed",
            output.display(),
            recording.display()
        ));
    }
    Ok(Exit::Ok)
}

/// The recordings in a directory, of one MPI world each, in the order of their start, with the names of their profiles: the first has
/// that of the output, the others are numbered. Worlds of launchers that the recorded command started have directories of their own.
pub fn worlds(parts: &Path, output: &Path) -> Vec<(PathBuf, PathBuf)> {
    let own = Some(parts.to_owned()).filter(|parts| has_recordings(parts));
    let mut others: Vec<PathBuf> = world_directories(parts).filter(|directory| has_recordings(directory)).collect();
    others.sort();
    let all = own.into_iter().chain(others).enumerate();
    all.map(|(index, recording)| (recording, numbered_output(output, index + 1))).collect()
}

fn world_directories(parts: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(parts).into_iter().flatten().flatten();
    let entries = entries.filter(|entry| entry.file_name().as_bytes().starts_with(WORLD_PREFIX.as_bytes()));
    entries.map(|entry| entry.path())
}

/// `a-2.csv.zst` for `a.csv.zst` and 2.
fn numbered_output(output: &Path, number: usize) -> PathBuf {
    if number == 1 {
        return output.to_owned();
    }
    let name = output.file_name().unwrap_or_default().as_bytes();
    let stem = name.strip_suffix(b".zst").unwrap_or(name);
    let stem = stem.strip_suffix(b".csv").unwrap_or(stem);
    let name = [stem, format!("-{number}").as_bytes(), &name[stem.len()..]].concat();
    output.with_file_name(OsString::from_vec(name))
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
fn has_recordings(parts: &Path) -> bool {
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

/// Removes the directory of a recording and those of its worlds, unless they contain files.
pub fn remove_empty(parts: &Path) {
    for directory in world_directories(parts) {
        let _ = std::fs::remove_dir(directory);
    }
    let _ = std::fs::remove_dir(parts);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_of_further_worlds_are_numbered() {
        let directory = tempfile::tempdir().unwrap();
        let parts = directory.path().join("a.csv.parts");
        let recordings = ["", "world-5-77", "world-10-3", "world-spawned-1"].map(|name| parts.join(name));
        for recording in &recordings {
            std::fs::create_dir(recording).unwrap();
        }
        // Nothing is recorded in the first one of a launcher.
        let of = |output: &str| worlds(&parts, Path::new(output));
        assert_eq!(of("/d/a.csv"), []);
        for recording in [0, 2, 3] {
            std::fs::write(recordings[recording].join("rank-0.beff"), "").unwrap();
        }
        let expected = |names: [&str; 3]| -> Vec<(PathBuf, PathBuf)> {
            [0, 2, 3].iter().zip(names).map(|(index, name)| (recordings[*index].clone(), name.into())).collect()
        };
        assert_eq!(of("/d/a.csv"), expected(["/d/a.csv", "/d/a-2.csv", "/d/a-3.csv"]));
        assert_eq!(of("x.csv.zst"), expected(["x.csv.zst", "x-2.csv.zst", "x-3.csv.zst"]));
        std::fs::remove_file(parts.join("rank-0.beff")).unwrap();
        let named = of("x.trace.1");
        assert_eq!(named[0], (recordings[2].clone(), "x.trace.1".into()));
        assert_eq!(named[1], (recordings[3].clone(), "x.trace.1-2".into()));
        remove_empty(&parts);
        assert!(!recordings[1].exists() && recordings[2].exists() && recordings[3].exists());
        remove_parts(&recordings[2]);
        remove_parts(&recordings[3]);
        remove_empty(&parts);
        assert!(!parts.exists());
    }
}
