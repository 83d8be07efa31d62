//! `beff-raw profile merge DIR`: one profile of what the processes wrote.

use std::path::{Path, PathBuf};

use super::{must_be_new, MergeArgs};
use crate::frame::command::complain;
use crate::frame::error::{Exit, UsageError};
use crate::frame::paths::word_of;

/// Ending of the directory where the processes of a program write.
const PARTS: &str = ".parts";

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

/// Merges, and says what is missing.
///
/// # Errors
/// As [`run`]. Nothing of the profile is left then.
pub fn merge(parts: &Path, output: &Path) -> anyhow::Result<()> {
    let report = beff_trace::merge::merge(parts, output, &beff_trace::merge::Options::default()).map_err(|e| {
        let next = format!(
            "Once that is mended: beff-raw profile merge {} -o FILE, which may be on another disk.",
            word_of(parts.as_os_str())
        );
        UsageError::new(e.to_string(), next)
    })?;
    report.remarks().iter().for_each(|remark| complain(remark));
    Ok(())
}

/// Takes the files of the processes away, and nothing else: the directory stays if something foreign is in it.
pub fn remove_parts(parts: &Path) {
    for entry in std::fs::read_dir(parts).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("rank-") && name.ends_with(".beff") {
            let _ = std::fs::remove_file(entry.path());
        }
    }
    let _ = std::fs::remove_dir(parts);
}
