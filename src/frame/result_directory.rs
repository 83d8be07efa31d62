//! Directories that stand for the results in them.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::error::UsageError;
use super::report::json::{self, JsonError};

/// Bytes of a file that show whether it is a result: those before the records.
const HEAD_BYTES: u64 = 1 << 16;
/// Bytes at the end that show whether it is complete.
const TAIL_BYTES: u64 = 64;
const START_FIELD: &str = "\"started_utc\"";

/// The documents (`*.json`) of a directory, in order of their names, and journals of runs that left none. Subdirectories are not read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResultDirectory {
    /// Those that are results of this program by their first and last bytes.
    pub results: Vec<PathBuf>,
    /// Names of the others: of other programs, empty, incomplete, unreadable.
    pub others: Vec<String>,
    /// Journals (`*.jsonl`) without a result of the same name: their runs are under way, or were killed.
    pub journals: Vec<PathBuf>,
}

impl ResultDirectory {
    /// Lists a directory, and reads the first and last bytes of each document.
    ///
    /// # Errors
    /// It is no directory, or cannot be read.
    pub fn read(directory: &Path) -> io::Result<Self> {
        let entries = fs::read_dir(directory)?.collect::<Result<Vec<_>, _>>()?;
        let mut all: Vec<PathBuf> = entries.iter().map(fs::DirEntry::path).collect();
        all.sort();
        let with_ending = |ending: &'static str| {
            all.iter().filter(move |path| path.extension().is_some_and(|found| found == ending) && path.is_file())
        };
        let mut found = Self::default();
        for path in with_ending("json").cloned() {
            match is_result(&path) {
                Ok(true) => found.results.push(path),
                Ok(false) | Err(_) => found.others.push(name_of(&path)),
            }
        }
        let is_without_result = |path: &&PathBuf| {
            is_journal(path).unwrap_or(false) && !found.results.contains(&path.with_extension("json"))
        };
        found.journals = with_ending("jsonl").filter(is_without_result).cloned().collect();
        Ok(found)
    }

    /// The results, at least one.
    ///
    /// # Errors
    /// It cannot be read, or has none.
    pub fn results_of(directory: &Path) -> Result<Self, UsageError> {
        let name = directory.display();
        let found = Self::read(directory).map_err(|e| {
            UsageError::new(format!("cannot read the directory {name}: {e}"), "Name a directory that can be read.")
        })?;
        if found.results.is_empty() {
            return Err(UsageError::new(
                format!("{name} is a directory without results (*.json)"),
                "Name a directory with the PREFIX.json of runs with --out PREFIX; its subdirectories are not read.",
            ));
        }
        Ok(found)
    }

    /// The result that started last, for what needs one; of several that started at once the last name. A run that was killed is the newest,
    /// too: its journal is returned.
    ///
    /// # Errors
    /// Those of [`ResultDirectory::results_of`].
    pub fn newest_of(directory: &Path) -> Result<PathBuf, UsageError> {
        let found = Self::results_of(directory)?;
        let start = |path: &PathBuf| read_head(path).ok().and_then(|head| start_of(&head)).unwrap_or_default();
        let newest = found.results.into_iter().chain(found.journals).max_by_key(start);
        newest.ok_or_else(|| UsageError::new("no result is left", "This is a defect: please report it."))
    }
}

/// File name for messages.
pub fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn read_head(path: &Path) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    File::open(path)?.take(HEAD_BYTES).read_to_end(&mut head)?;
    Ok(head)
}

/// True if a file begins and ends like a document of this program that this version reads.
fn is_result(path: &Path) -> io::Result<bool> {
    let head = read_head(path)?;
    let is_own = match json::benchmark(&head) {
        Ok(_) => true,
        // The fields that identify it may be followed by more than was read.
        Err(JsonError::Syntax(_)) if head.len() as u64 == HEAD_BYTES => {
            let text = String::from_utf8_lossy(&head);
            text.contains("\"program\"") && text.contains("\"schema_version\"")
        }
        Err(_) => false,
    };
    Ok(is_own && is_closed(path)?)
}

/// True if a file begins like a journal of this program.
fn is_journal(path: &Path) -> io::Result<bool> {
    let head = String::from_utf8_lossy(&read_head(path)?).into_owned();
    Ok(head.starts_with("{\"record\":\"start\"") && head.contains(START_FIELD))
}

/// True if the last character is the brace of a document: a run that was killed while it wrote leaves an incomplete one.
fn is_closed(path: &Path) -> io::Result<bool> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut tail = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut tail)?;
    Ok(tail.trim_ascii_end().ends_with(b"}"))
}

/// Start time in the head of a document. Times in UTC are in order as texts.
fn start_of(head: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(head);
    let value = text.split_once(START_FIELD)?.1.split('"').nth(1)?;
    Some(value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(start: &str) -> String {
        format!("{{\n  \"program\": \"beff-raw\",\n  \"schema_version\": 1,\n  \"benchmark\": \"b_eff\",\n  \"manifest\": {{\"started_utc\": \"{start}\"}}\n}}\n")
    }

    fn directory(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        files.iter().for_each(|(name, bytes)| fs::write(directory.path().join(name), bytes).unwrap());
        directory
    }

    #[test]
    fn results_are_told_from_other_documents_without_parsing_them() {
        let own = document("2026-11-01T03:00:00Z");
        let long =
            own.replace("\"benchmark\": \"b_eff\"", &format!("\"config\": {{\"path\": \"{}\"}}", "x".repeat(100_000)));
        let newer = own.replace("version\": 1", "version\": 99");
        let gated = r#"{"program": "beff-raw", "gated": "b_eff_io"}"#;
        let at = directory(&[
            ("b.json", own.as_bytes()),
            ("a.json", long.as_bytes()),
            ("cut.json", &own.as_bytes()[..own.len() - 5]),
            ("empty.json", b""),
            ("foreign.json", b"{\"a\": [1]}"),
            ("gate.json", gated.as_bytes()),
            ("newer.json", newer.as_bytes()),
            ("list.json", b"[1]"),
            ("b.jsonl", own.as_bytes()),
            ("b.csv", b"a,b\n"),
        ]);
        fs::create_dir(at.path().join("nested.json")).unwrap();
        std::os::unix::fs::symlink("nowhere", at.path().join("dangling.json")).unwrap();
        let found = ResultDirectory::read(at.path()).unwrap();
        let names: Vec<String> = found.results.iter().map(|path| name_of(path)).collect();
        assert_eq!(names, ["a.json", "b.json"]);
        assert_eq!(found.others, ["cut.json", "empty.json", "foreign.json", "gate.json", "list.json", "newer.json"]);
    }

    #[test]
    fn a_directory_without_results_is_refused_in_a_sentence() {
        let at = directory(&[("notes.json", b"{}")]);
        let error = ResultDirectory::results_of(at.path()).unwrap_err();
        assert!(error.cause.ends_with("is a directory without results (*.json)"), "{error}");
        for path in [at.path().join("notes.json"), at.path().join("missing")] {
            let error = ResultDirectory::results_of(&path).unwrap_err();
            assert!(error.cause.starts_with("cannot read the directory "), "{error}");
        }
    }

    #[test]
    fn the_newest_is_the_one_that_started_last() {
        let [first, last] = ["2026-11-01T03:00:00Z", "2026-11-30T03:00:00Z"].map(document);
        let at = directory(&[("1.json", last.as_bytes()), ("2.json", first.as_bytes())]);
        assert_eq!(name_of(&ResultDirectory::newest_of(at.path()).unwrap()), "1.json");
        fs::write(at.path().join("3.json"), &last).unwrap();
        assert_eq!(name_of(&ResultDirectory::newest_of(at.path()).unwrap()), "3.json");
        // Killed: the journal of a later start, and a document that was not begun, or not completed.
        let journal = |start: &str| {
            format!("{{\"record\":\"start\",\"schema_version\":3,\"manifest\":{{\"started_utc\":\"{start}\"}}}}\n")
        };
        fs::write(at.path().join("3.jsonl"), journal("2026-12-01T03:00:00Z")).unwrap();
        fs::write(at.path().join("other.jsonl"), "{\"started_utc\":\"2027-01-01T03:00:00Z\"}").unwrap();
        assert_eq!(name_of(&ResultDirectory::newest_of(at.path()).unwrap()), "3.json", "that of a complete run");
        for document in ["", "{"] {
            fs::write(at.path().join("4.json"), document).unwrap();
            fs::write(at.path().join("4.jsonl"), journal("2026-12-02T03:00:00Z")).unwrap();
            assert_eq!(name_of(&ResultDirectory::newest_of(at.path()).unwrap()), "4.jsonl");
        }
    }
}
