//! `beff-raw profile merge DIR`: merges the recordings of the processes into one profile.

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use beff_trace::merge::{MergeError, MergeOptions, MergeReport};
use beff_trace::raw::WORLD_PREFIX;
use beff_trace::text::read_rank;
use beff_trace::{ProfileHead, RecordingStatus};

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
        // Started by rank 0 of this world, which does not wait forever for the others: what is not final is merged again.
        let report = merge_files(&args.directory, &output)?;
        if is_final(&output) {
            report.remarks().iter().for_each(|remark| print_diagnostic(remark));
        }
        return Ok(Exit::Ok);
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
        let rest = match unused_recording(&recording, &output) {
            None => format!("the files in {} are no longer needed", recording.display()),
            Some(file) => format!("{} is not part of it", file.display()),
        };
        print_diagnostic(&format!("wrote {}; {rest}", output.display()));
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

/// True if the recording of every rank had ended when it was merged.
fn is_final(profile: &Path) -> bool {
    let ended =
        |(head, _): (ProfileHead, _)| head.processes.iter().all(|process| process.end != RecordingStatus::Truncated);
    read_rank(profile, 0).is_ok_and(ended)
}

/// A file of a process that is not part of the profile, because it cannot be read or was created after the merge.
fn unused_recording(parts: &Path, profile: &Path) -> Option<PathBuf> {
    let processes = read_rank(profile, 0).map(|(head, _)| head.processes).unwrap_or_default();
    let is_used = |name: &OsStr| {
        let rank = recorded_rank(name).and_then(|rank| rank.parse::<usize>().ok());
        // Processes without a file have no number.
        rank.and_then(|rank| processes.get(rank)).is_some_and(|process| process.pid != 0)
    };
    let entries = std::fs::read_dir(parts).into_iter().flatten().flatten();
    let unused = entries.filter(|entry| is_recording(&entry.file_name()) && !is_used(&entry.file_name()));
    unused.map(|entry| entry.path()).min()
}

/// Publishes the profile under its name: the merge by the ranks, or else a merge of their files. Then removes these files.
///
/// # Errors
/// As [`run`]; a file of that name is unchanged then. Or the profile lacks the file of a process. The files of the processes are unchanged
/// in both cases.
pub fn publish_profile(parts: &Path, output: &Path) -> anyhow::Result<()> {
    link_or_merge(parts, output)?;
    if let Some(file) = unused_recording(parts, output) {
        let next = format!("If it is needed, merge again: {}", merge_command(parts, &unused_output(output)));
        let what = "cannot be read or was created after the merge";
        return Err(UsageError::new(
            format!("wrote {}, but without {}, which {what}", output.display(), file.display()),
            next,
        )
        .into());
    }
    remove_parts(parts);
    Ok(())
}

fn link_or_merge(parts: &Path, output: &Path) -> anyhow::Result<()> {
    let merged = merged_path(parts, output);
    if !is_final(&merged) {
        return merge(parts, output);
    }
    match std::fs::hard_link(merged, output) {
        Ok(()) => return Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            return Err(merge_error(&MergeError::Exists(output.to_owned()), parts, output).into());
        }
        // The file system does not support links.
        Err(_) => {}
    }
    merge(parts, output)
}

/// Merges, and prints what is missing.
///
/// # Errors
/// As [`run`]. No part of the profile is left then.
fn merge(parts: &Path, output: &Path) -> anyhow::Result<()> {
    merge_files(parts, output)?.remarks().iter().for_each(|remark| print_diagnostic(remark));
    Ok(())
}

fn merge_files(parts: &Path, output: &Path) -> Result<MergeReport, UsageError> {
    beff_trace::merge::merge(parts, output, &MergeOptions::default())
        .map_err(|error| merge_error(&error, parts, output))
}

fn merge_error(error: &MergeError, parts: &Path, output: &Path) -> UsageError {
    let next = match error {
        MergeError::Exists(_) => format!("Merge under another name: {}", merge_command(parts, &unused_output(output))),
        _ => format!("Once that is fixed: {}, or -o FILE on another disk.", merge_command(parts, output)),
    };
    UsageError::new(error.to_string(), next)
}

fn merge_command(parts: &Path, output: &Path) -> String {
    format!("beff-raw profile merge {} -o {}", shell_word(parts.as_os_str()), shell_word(output.as_os_str()))
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
    recorded_rank(name).is_some()
}

/// The rank in the name of its file.
fn recorded_rank(name: &OsStr) -> Option<String> {
    Some(name.to_string_lossy().strip_prefix("rank-")?.strip_suffix(".beff")?.to_owned())
}

/// Removes the files of the processes and their merge, and nothing else: the directory stays if it contains other files.
fn remove_parts(parts: &Path) {
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

    /// The file of one of two ranks, without calls.
    fn record(parts: &Path, rank: u32, end: RecordingStatus) {
        let sample = |ns| beff_trace::raw::clock::ClockSample { tick: ns, ns };
        let head = beff_trace::raw::ProcessHeader {
            version: beff_trace::raw::VERSION,
            rank,
            ranks: 2,
            host: "h".to_owned(),
            pid: 7,
            library: String::new(),
            command: Vec::new(),
            started_unix_ns: 1,
            clock_offset_ns: [0; 2],
            cost_ns: None,
            storage_bytes: None,
            end,
            clock_samples: [sample(0), sample(9)],
        };
        std::fs::write(parts.join(format!("rank-{rank}.beff")), head.block()).unwrap();
    }

    /// `early` is the file of rank 1 when rank 0 merges, `late` the one when the program has ended.
    fn published(early: Option<RecordingStatus>, late: Option<RecordingStatus>) -> (bool, Vec<RecordingStatus>, bool) {
        let directory = tempfile::tempdir().unwrap();
        let (parts, output) = (directory.path().join("a.csv.parts"), directory.path().join("a.csv"));
        std::fs::create_dir(&parts).unwrap();
        record(&parts, 0, RecordingStatus::Complete);
        early.into_iter().for_each(|end| record(&parts, 1, end));
        merge(&parts, &merged_path(&parts, &output)).unwrap();
        late.into_iter().for_each(|end| record(&parts, 1, end));
        let is_published = publish_profile(&parts, &output).is_ok();
        let (head, _) = read_rank(&output, 0).unwrap();
        (is_published, head.processes.iter().map(|process| process.end).collect(), parts.exists())
    }

    #[test]
    fn what_a_rank_wrote_after_the_merge_by_rank_0_is_merged() {
        use RecordingStatus::{Aborted, Complete, LimitReached, Truncated};
        for (early, late, end) in [
            (Some(Complete), None, Complete),
            (Some(Truncated), Some(Complete), Complete),
            (None, Some(Complete), Complete),
            (None, Some(Truncated), Truncated),
            (None, None, Truncated),
            (Some(LimitReached), None, LimitReached),
            (Some(Truncated), Some(Aborted), Aborted),
        ] {
            assert_eq!(published(early, late), (true, vec![Complete, end], false), "{early:?} {late:?}");
        }
    }

    #[test]
    fn a_file_that_is_not_in_the_profile_keeps_all_files() {
        let directory = tempfile::tempdir().unwrap();
        let (parts, output) = (directory.path().join("a.csv.parts"), directory.path().join("a.csv"));
        std::fs::create_dir(&parts).unwrap();
        record(&parts, 0, RecordingStatus::Complete);
        std::fs::write(parts.join("rank-1.beff"), "damaged").unwrap();
        let error = publish_profile(&parts, &output).unwrap_err().to_string();
        assert!(error.contains("rank-1.beff") && error.contains("2-a.csv"), "{error}");
        assert!(output.exists() && parts.join("rank-0.beff").exists() && parts.join("rank-1.beff").exists());
        // A file of a rank that appears after the merge.
        std::fs::remove_file(parts.join("rank-1.beff")).unwrap();
        std::fs::remove_file(&output).unwrap();
        merge(&parts, &output).unwrap();
        assert_eq!(unused_recording(&parts, &output), None);
        record(&parts, 1, RecordingStatus::Complete);
        assert_eq!(unused_recording(&parts, &output), Some(parts.join("rank-1.beff")));
    }

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
