//! Result files that a user names.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::anyhow;

use crate::benchmarks::{load, LoadError};
use crate::frame::benchmark::BenchmarkModule;
use crate::frame::error::UsageError;
use crate::frame::input;
use crate::frame::paths::shell_word;
use crate::frame::report::LoadedReport;
use crate::frame::result_directory::ResultDirectory;
use crate::frame::terminal_escape::line;

/// Extensions of journals, documents, and files of other programs: summaries, tables of IMB-IO.
const EXTENSIONS: [&str; 7] = ["jsonl", "json", "sum", "imb", "txt", "out", "log"];

/// Names of files in one line of a message.
const MAX_NAMES: usize = 3;

/// The files that the user named, with the results of each directory in its place. What is no result in a directory is skipped, which is said
/// in one line.
///
/// # Errors
/// A directory that cannot be read, or has no results.
pub(super) fn expand_directories(named: &[PathBuf]) -> Result<Vec<PathBuf>, UsageError> {
    let mut files = Vec::new();
    for path in named {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let ResultDirectory { results, others, .. } = ResultDirectory::results_of(path)?;
        if !others.is_empty() {
            skip(path, &others, "no results that this version reads");
        }
        files.extend(results);
    }
    Ok(files)
}

/// Says which files of a directory are skipped.
pub(super) fn skip(directory: &Path, names: &[String], reason: &str) {
    let more = names.len().saturating_sub(MAX_NAMES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let first = names.iter().take(MAX_NAMES).cloned().collect::<Vec<_>>().join(", ");
    eprintln!("beff-raw: {}", line(&format!("skipped in {}, {reason}: {first}{more}", directory.display())));
}

/// Short names of files, for curves: without directory and extension where these still differ.
pub(super) fn short_names(files: &[PathBuf]) -> Vec<String> {
    let stem = |path: &PathBuf| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let stems: Vec<String> = files.iter().map(stem).collect();
    let has_own = |name: &String| stems.iter().filter(|other| *other == name).count() == 1;
    let name =
        |(path, stem): (&PathBuf, &String)| if has_own(stem) { stem.clone() } else { path.display().to_string() };
    files.iter().zip(&stems).map(name).collect()
}

/// Refuses files whose extension is not that of a result.
pub(super) fn check_names(files: &[PathBuf]) -> Result<(), UsageError> {
    let is_result =
        |path: &&PathBuf| path.extension().is_some_and(|ending| EXTENSIONS.iter().any(|known| ending == *known));
    if let Some(error) = files.iter().find_map(|path| recording_error(path)) {
        return Err(error);
    }
    // Tables are written for other programs and not read here. An empty one shows that the run was killed.
    let is_empty_output =
        |path: &&PathBuf| is_output_name(path) && path.metadata().is_ok_and(|m| m.is_file() && m.len() == 0);
    if let Some(path) = files.iter().find(is_empty_output) {
        return Err(empty_file_error(path));
    }
    // Directories stand for the results in them.
    files.iter().find(|path| !is_result(path) && !path.is_dir()).map_or(Ok(()), |path| {
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

/// True for names of files that a run with `--out` creates.
fn is_output_name(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ["json", "jsonl", "csv", "sum", "imb"].map(OsStr::new).contains(&ending))
}

/// Magic number of a Darshan log, which follows its version.
const DARSHAN_MAGIC: [u8; 8] = 6_567_223_u64.to_le_bytes();
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The error for a recording of an application, which is no result but can be shown by another command.
fn recording_error(path: &Path) -> Option<UsageError> {
    // No pipe or device, whose opening may block.
    let begin = if path.metadata().ok()?.is_file() { first_bytes(path).ok()? } else { return None };
    let (name, word) = (path.display(), shell_word(path.as_os_str()));
    let is_profile = begin.starts_with(b"beff-raw profile,")
        || (begin.starts_with(&ZSTD_MAGIC) && beff_trace::text::read_head(path).is_ok());
    if is_profile {
        return Some(UsageError::new(
            format!("{name} is the profile of an application, not a result"),
            format!(
                "Show it with: beff-raw profile show {word}; measure its I/O with: mpirun -n N beff-raw replay {word}"
            ),
        ));
    }
    let is_darshan =
        path.extension().is_some_and(|ending| ending == "darshan") || begin.get(8..16) == Some(&DARSHAN_MAGIC);
    is_darshan.then(|| {
        UsageError::new(
            format!("{name} is a log of Darshan, not a result"),
            format!(
                "Show it with: darshan-parser {word}, or python3 -m darshan summary {word} (PyDarshan). It has counters, but not the calls \
                 that a replay needs: record those with beff-raw profile -o app.csv -- mpirun ..."
            ),
        )
    })
}

fn first_bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut begin = Vec::new();
    File::open(path)?.take(32).read_to_end(&mut begin)?;
    Ok(begin)
}

pub(super) fn open(path: &Path) -> anyhow::Result<(&'static BenchmarkModule, Box<dyn LoadedReport>)> {
    let name = path.display();
    let next = "Name a file that a run with --out PREFIX wrote: PREFIX.jsonl or PREFIX.json.";
    let bytes = input::read_result(path).map_err(|e| UsageError::new(format!("cannot read {name}: {e}"), next))?;
    if bytes.is_empty() && is_output_name(path) {
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

/// Opens a result and sets the Rmax of LINPACK, if it is given.
pub(super) fn open_with(
    path: &Path,
    rmax_gflops: Option<f64>,
) -> anyhow::Result<(&'static BenchmarkModule, Box<dyn LoadedReport>)> {
    let (benchmark, mut report) = open(path)?;
    if rmax_gflops.is_some_and(|gflops| !report.set_rmax(gflops)) {
        return Err(UsageError::new(
            format!(
                "{} is a result of {}: --rmax has no effect, it has no balance factor",
                path.display(),
                benchmark.title
            ),
            "Name results of io and comm only, or omit --rmax.",
        )
        .into());
    }
    Ok((benchmark, report))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_are_recognized_and_their_command_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let profile = b"beff-raw profile,1\nranks,1\ncalls,0,0\n";
        std::fs::write(dir.path().join("app.csv"), profile).unwrap();
        let mut log = b"3.41\0\0\0\0".to_vec();
        log.extend(DARSHAN_MAGIC);
        let mut writer = beff_trace::text::ProfileWriter::new(Vec::new(), true);
        writer.head(&beff_trace::text::read_head(&dir.path().join("app.csv")).unwrap()).unwrap();
        writer.begin_calls(0, 0).unwrap();
        let packed = writer.finish().unwrap();
        for (name, content, command) in [
            ("app.csv", &profile[..], Some("beff-raw profile show ")),
            ("app.txt", profile, Some("beff-raw profile show ")),
            ("app.csv.zst", &packed, Some("beff-raw profile show ")),
            ("job.darshan", b"truncated", Some("darshan-parser ")),
            ("log", &log, Some("darshan-parser ")),
            ("run.json", b"{}", None),
            ("run.txt", b"", None),
        ] {
            let path = dir.path().join(name);
            std::fs::write(&path, content).unwrap();
            let answer = check_names(std::slice::from_ref(&path));
            let Some(command) = command else {
                assert!(answer.is_ok(), "{name}");
                continue;
            };
            let error = answer.unwrap_err();
            assert!(error.cause.contains(name) && error.next_step.contains(command), "{error}");
        }
        // Tables of results have the same extension as profiles.
        let table = dir.path().join("table.csv");
        std::fs::write(&table, "run,started_utc\n").unwrap();
        assert!(check_names(&[table]).unwrap_err().cause.contains("neither a journal"));
        assert!(check_names(&[dir.path().join("missing.darshan")]).unwrap_err().cause.contains("neither"));
        assert!(check_names(&[dir.path().join("missing.json")]).is_ok());
    }

    #[test]
    fn a_directory_stands_for_its_results() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, content: &[u8]| std::fs::write(dir.path().join(name), content).unwrap();
        write("b.json", b"{\"program\": \"beff-raw\", \"schema_version\": 1}\n");
        write("a.json", b"{\"program\": \"beff-raw\", \"schema_version\": 1}\n");
        write("notes.json", b"{}");
        let named = [PathBuf::from("first.json"), dir.path().to_owned(), PathBuf::from("last.json")];
        let names: Vec<String> = short_names(&expand_directories(&named).unwrap());
        assert_eq!(names, ["first", "a", "b", "last"]);
        check_names(&named).unwrap();
        let empty = dir.path().join("empty");
        std::fs::create_dir(&empty).unwrap();
        let error = expand_directories(&[empty]).unwrap_err();
        assert!(error.cause.contains("without results"), "{error}");
        let same = ["x/run.json", "y/run.json", "y/other.json"].map(PathBuf::from);
        assert_eq!(short_names(&same), ["x/run.json", "y/run.json", "other"]);
    }

    /// A job killed while it wrote its results leaves files of 0 bytes.
    #[test]
    fn empty_outputs_are_refused_and_the_journal_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, content: &[u8]| {
            let path = dir.path().join(name);
            std::fs::write(&path, content).unwrap();
            path
        };
        let full = write("a run.json", b"{}");
        for name in ["killed.json", "killed.csv", "killed.sum", "killed.mpiio.sum", "killed.imb", "killed.jsonl"] {
            let path = write(name, b"");
            let error = check_names(&[full.clone(), path.clone()]).unwrap_err();
            assert!(error.cause.contains(&format!("{name} is empty")), "{error}");
            assert!(error.next_step.contains("measure again"), "{error}");
            std::fs::remove_file(path).unwrap();
        }
        write("killed.jsonl", b"{}\n");
        for name in ["killed.json", "killed.csv", "killed.sum", "killed.mpiio.sum", "killed.imb"] {
            let path = write(name, b"");
            let [named, opened] = [
                check_names(std::slice::from_ref(&path)).unwrap_err().to_string(),
                open(&path).err().unwrap().to_string(),
            ];
            assert!(named.contains("beff-raw report ") && named.contains("killed.jsonl"), "{named}");
            assert_eq!(named, opened);
        }
    }
}
