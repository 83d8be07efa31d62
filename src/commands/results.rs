//! Result files that a user names.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::anyhow;

use crate::benchmarks::{load, LoadError};
use crate::frame::benchmark::BenchmarkModule;
use crate::frame::error::UsageError;
use crate::frame::input;
use crate::frame::paths::shell_word;
use crate::frame::report::LoadedReport;

/// Extensions of journals, documents, and files of other programs: summaries, tables of IMB-IO.
const EXTENSIONS: [&str; 7] = ["jsonl", "json", "sum", "imb", "txt", "out", "log"];

/// Refuses files whose extension is not that of a result.
pub(super) fn check_names(files: &[PathBuf]) -> Result<(), UsageError> {
    let is_result =
        |path: &&PathBuf| path.extension().is_some_and(|ending| EXTENSIONS.iter().any(|known| ending == *known));
    files.iter().find(|path| !is_result(path)).map_or(Ok(()), |path| {
        Err(UsageError::new(
            format!(
                "{}: neither a journal (.jsonl) nor a result (.json), nor a text of another program (.sum, .imb, .txt, .out, \
                 .log)",
                path.display()
            ),
            "Name the files that a run with --out PREFIX wrote: PREFIX.jsonl or PREFIX.json.",
        ))
    })
}

pub(super) fn open(path: &Path) -> anyhow::Result<(&'static BenchmarkModule, Box<dyn LoadedReport>)> {
    let name = path.display();
    let next = "Name a file that a run with --out PREFIX wrote: PREFIX.jsonl or PREFIX.json.";
    let bytes = input::read_result(path).map_err(|e| anyhow!("cannot read {name}: {e}. {next}"))?;
    if bytes.is_empty()
        && path.extension().is_some_and(|ending| ["json", "jsonl", "sum"].map(OsStr::new).contains(&ending))
    {
        return Err(empty_file_error(path).into());
    }
    let is_own = path.extension().is_some_and(|ending| ending == "json" || ending == "jsonl");
    load(&bytes).map_err(|e| match e {
        LoadError::Json(_) | LoadError::Journal(_) if !is_own => UsageError::new(
            format!("{name}: neither a summary of b_eff_io (release 2.1) nor tables of IMB-IO"),
            "Name a file of one of these programs, or PREFIX.json or PREFIX.jsonl of a run with --out PREFIX.",
        )
        .into(),
        e => anyhow!("{name}: {e}"),
    })
}

/// Error for an empty file: a run writes its files at its end, but the journal continuously.
fn empty_file_error(path: &Path) -> UsageError {
    let journal = journal_path(path);
    let next = if journal.metadata().is_ok_and(|metadata| metadata.len() > 0) {
        format!("Its journal has what was measured until then: beff-raw report {}", shell_word(journal.as_os_str()))
    } else {
        "There is no journal (PREFIX.jsonl) with anything in it either: measure again.".to_owned()
    };
    UsageError::new(format!("{} is empty: its run was ended before it wrote its results", path.display()), next)
}

/// `PREFIX.jsonl` for `PREFIX.json`, and for a summary `PREFIX.BACKEND.sum`.
fn journal_path(path: &Path) -> PathBuf {
    let journal = path.with_extension("jsonl");
    if path.extension().is_some_and(|ending| ending == "sum") && !journal.exists() {
        return journal.with_extension("").with_extension("jsonl");
    }
    journal
}
