//! Output files of a run: created before it, so that existing files and missing directories are reported before machine time is
//! spent; written at its end.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::libc;

use super::journal::Journal;

/// Why the output files could not be created or written.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// The prefix has no file name.
    #[error("'{}' names no file: --out takes the beginning of file names, such as results/run1", .0.display())]
    NoName(PathBuf),
    /// The directory is missing.
    #[error(
        "cannot create {}: the directory {} does not exist; create it (mkdir -p) or give another --out",
        path.display(), directory.display()
    )]
    NoDirectory {
        /// File to be created.
        path: PathBuf,
        /// Missing directory.
        directory: PathBuf,
    },
    /// The file exists.
    #[error("{} exists already and is not overwritten; move it away or give another --out", .0.display())]
    Exists(PathBuf),
    /// Anything else open(2) reports.
    #[error("cannot create {}: {source}; check the permissions or give another --out", path.display())]
    Create {
        /// File.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// A file could not be written.
    #[error("cannot write {}: {source}; {}{kept}", path.display(), space_advice(source))]
    Write {
        /// File, which is empty.
        path: PathBuf,
        /// Where the complete result is.
        kept: ResultLocation,
        /// Cause.
        source: io::Error,
    },
}

/// What to do first if the file system is full.
fn space_advice(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG) => "free space; ",
        _ => "",
    }
}

/// Location of the complete result if not all files could be written.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResultLocation {
    /// In the journal.
    #[error("the journal ({}) has all records: run beff-raw report on it", .0.display())]
    Journal(PathBuf),
    /// In the document.
    #[error("the complete result is in {}: run beff-raw report on it", .0.display())]
    Document(PathBuf),
    /// In a document in another directory, because the journal is incomplete too.
    #[error(
        "the journal ({}) is incomplete too, so the complete result was written to {}: keep that file, beff-raw report reads it",
        journal.display(), document.display()
    )]
    FallbackDocument {
        /// Has the records before its first write error.
        journal: PathBuf,
        /// Has the complete result.
        document: PathBuf,
    },
    /// Nowhere.
    #[error(
        "the journal ({}) is incomplete too, and the result could not be written elsewhere ({reasons}): only the output on \
         stdout is left; the journal has the earlier records",
        journal.display()
    )]
    Lost {
        /// Has the records before its first write error.
        journal: PathBuf,
        /// Directories tried, each with its error.
        reasons: String,
    },
}

/// The open output files of a run.
#[derive(Debug)]
pub struct Outputs {
    journal: Journal,
    journal_path: PathBuf,
    views: Vec<OutputFile>,
}

#[derive(Debug)]
struct OutputFile {
    suffix: String,
    path: PathBuf,
    file: File,
}

impl Outputs {
    /// Creates PREFIX.jsonl and one file for each suffix (`.json`, `.csv`, ...). If one cannot be created, the files already created
    /// are removed.
    ///
    /// # Errors
    /// A file exists, the directory does not, or open(2) fails.
    pub fn create(prefix: &Path, suffixes: &[String]) -> Result<Self, OutputError> {
        if prefix.file_name().is_none() || prefix.as_os_str().as_encoded_bytes().ends_with(b"/") {
            return Err(OutputError::NoName(prefix.to_owned()));
        }
        let journal_path = with_suffix(prefix, ".jsonl");
        let journal = Journal::create(&journal_path).map_err(|e| creation_error(&journal_path, e))?;
        let mut this = Self { journal, journal_path, views: Vec::new() };
        for suffix in suffixes {
            match OutputFile::create(prefix, suffix) {
                Ok(output) => this.views.push(output),
                Err(error) => {
                    this.discard();
                    return Err(error);
                }
            }
        }
        Ok(this)
    }

    /// The journal, for appending during the run.
    pub fn journal(&mut self) -> &mut Journal {
        &mut self.journal
    }

    /// Path of the journal.
    #[must_use]
    pub fn journal_path(&self) -> &Path {
        &self.journal_path
    }

    /// Removes the files, for a run that does not start.
    pub fn discard(self) {
        let views = self.views.into_iter().map(|output| output.path);
        for path in [self.journal_path].into_iter().chain(views) {
            // The files are empty and created by this run; the error that prevented the run takes precedence.
            let _ = std::fs::remove_file(path);
        }
    }

    /// Writes the output of `view` for each suffix to its file, syncs the files, and returns all paths, including the journal. If one
    /// cannot be written, the others are still written. If neither the journal nor the document has the complete result, the
    /// document is written to another directory.
    ///
    /// # Errors
    /// The first file that could not be written, and where the result is.
    pub fn write(self, mut view: impl FnMut(&str) -> io::Result<Vec<u8>>) -> Result<Vec<PathBuf>, OutputError> {
        let mut paths = vec![self.journal_path.clone()];
        let mut first_error = None;
        let mut document = None;
        for output in &self.views {
            match view(&output.suffix).and_then(|bytes| write_and_sync(&output.file, &bytes)) {
                Ok(()) if output.suffix == DOCUMENT_SUFFIX => document = Some(output.path.clone()),
                Ok(()) => {}
                Err(source) => {
                    first_error.get_or_insert((output.path.clone(), source));
                }
            }
            paths.push(output.path.clone());
        }
        let Some((path, source)) = first_error else { return Ok(paths) };
        let kept = match document {
            _ if self.journal.is_complete() => ResultLocation::Journal(self.journal_path),
            Some(document) => ResultLocation::Document(document),
            None => write_fallback_document(self.journal_path, view(DOCUMENT_SUFFIX)),
        };
        Err(OutputError::Write { path, kept, source })
    }
}

const DOCUMENT_SUFFIX: &str = ".json";

/// Writes the document to the first directory with space: that of temporary files, the current one, /dev/shm.
fn write_fallback_document(journal: PathBuf, document: io::Result<Vec<u8>>) -> ResultLocation {
    let bytes = match document {
        Ok(bytes) => bytes,
        Err(defect) => return ResultLocation::Lost { journal, reasons: defect.to_string() },
    };
    let name = journal.file_stem().unwrap_or_default().to_string_lossy();
    let name = format!("beff-raw-{name}-{}.json", std::process::id());
    let mut reasons = Vec::new();
    for directory in [std::env::temp_dir(), PathBuf::from("."), PathBuf::from("/dev/shm")] {
        let document = directory.join(&name);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&document);
        match file.and_then(|file| write_and_sync(&file, &bytes)) {
            Ok(()) => return ResultLocation::FallbackDocument { journal, document },
            Err(error) => {
                if error.kind() != io::ErrorKind::AlreadyExists {
                    // Created here, and empty.
                    let _ = std::fs::remove_file(&document);
                }
                reasons.push(format!("{}: {error}", directory.display()));
            }
        }
    }
    ResultLocation::Lost { journal, reasons: reasons.join(", ") }
}

impl OutputFile {
    fn create(prefix: &Path, suffix: &str) -> Result<Self, OutputError> {
        let path = with_suffix(prefix, suffix);
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        let file = file.map_err(|e| creation_error(&path, e))?;
        Ok(Self { suffix: suffix.to_owned(), path, file })
    }
}

/// Writes and syncs all bytes, or truncates the file to zero: a partial document is useless.
fn write_and_sync(mut file: &File, bytes: &[u8]) -> io::Result<()> {
    let filled = file.write_all(bytes).and_then(|()| file.sync_all());
    if filled.is_err() {
        // The write error is returned; if truncation fails too, every reader detects the missing end.
        let _ = file.set_len(0);
    }
    filled
}

/// Appends a suffix; a dot inside the prefix stays (`run1.5` gives `run1.5.json`).
fn with_suffix(prefix: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(prefix);
    name.push(suffix);
    PathBuf::from(name)
}

fn creation_error(path: &Path, source: io::Error) -> OutputError {
    let path = path.to_owned();
    let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned();
    match source.kind() {
        io::ErrorKind::AlreadyExists => OutputError::Exists(path),
        io::ErrorKind::NotFound => OutputError::NoDirectory { path, directory },
        _ => OutputError::Create { path, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn suffixes(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn all_files_are_created_first_and_written_at_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let suffixes = suffixes(&[".json", ".csv", ".mpiio.sum", ".posix.sum"]);
        let mut outputs = Outputs::create(&dir.path().join("run1.5"), &suffixes).unwrap();
        let expected = ["run1.5.csv", "run1.5.json", "run1.5.jsonl", "run1.5.mpiio.sum", "run1.5.posix.sum"];
        assert_eq!(names(dir.path()), expected);
        outputs.journal().append(&"the first line").unwrap();
        assert!(outputs.journal_path().ends_with("run1.5.jsonl"));
        let paths = outputs.write(|suffix| Ok(format!("of {suffix}").into_bytes())).unwrap();
        assert_eq!(paths.len(), 5);
        for path in &paths {
            assert!(std::fs::metadata(path).unwrap().len() > 0, "{}", path.display());
        }
        assert_eq!(std::fs::read(dir.path().join("run1.5.mpiio.sum")).unwrap(), b"of .mpiio.sum");
        assert_eq!(std::fs::read(dir.path().join("run1.5.jsonl")).unwrap(), b"\"the first line\"\n");
    }

    #[test]
    fn nothing_is_overwritten_and_nothing_is_left_behind() {
        let dir = tempfile::tempdir().unwrap();
        let existing = dir.path().join("run.sum");
        std::fs::write(&existing, "precious").unwrap();
        let error = Outputs::create(&dir.path().join("run"), &suffixes(&[".json", ".csv", ".sum"])).unwrap_err();
        assert!(matches!(&error, OutputError::Exists(path) if *path == existing));
        assert!(error.to_string().contains("run.sum exists already and is not overwritten"));
        assert_eq!(names(dir.path()), ["run.sum"]);
        assert_eq!(std::fs::read(&existing).unwrap(), b"precious");
    }

    #[test]
    fn a_run_that_never_began_leaves_no_files() {
        let dir = tempfile::tempdir().unwrap();
        let suffixes = suffixes(&[".json", ".mpiio.sum", ".posix.sum"]);
        Outputs::create(&dir.path().join("run"), &suffixes).unwrap().discard();
        assert!(names(dir.path()).is_empty());
    }

    #[test]
    fn a_missing_directory_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let message = Outputs::create(&dir.path().join("no/run"), &[]).unwrap_err().to_string();
        assert!(message.contains("/no does not exist; create it"), "{message}");
        for bad in ["", "..", "results/"] {
            let error = Outputs::create(Path::new(bad), &[]).unwrap_err();
            assert!(matches!(error, OutputError::NoName(_)), "{bad}: {error}");
        }
    }

    /// Outputs whose documents cannot be written, and whose journal can be written only if it `is_whole`.
    fn outputs_on_full_disk(prefix: &Path, full: &[usize], is_whole: bool) -> Outputs {
        let mut outputs = Outputs::create(prefix, &suffixes(&[".json", ".csv"])).unwrap();
        for n in full {
            outputs.views[*n].file = OpenOptions::new().write(true).open("/dev/full").unwrap();
        }
        if !is_whole {
            outputs.journal = Journal::on_full_device();
        }
        assert_eq!(outputs.journal().append(&"a line").is_ok(), is_whole);
        outputs
    }

    #[test]
    fn a_file_that_cannot_be_written_does_not_stop_the_others() {
        let dir = tempfile::tempdir().unwrap();
        let outputs = outputs_on_full_disk(&dir.path().join("run"), &[0], true);
        let error = outputs.write(|suffix| Ok(suffix.into())).unwrap_err().to_string();
        for part in ["run.json: No space left", "run.jsonl) has all records"] {
            assert!(error.contains(part), "{error}");
        }
        assert_eq!(std::fs::read(dir.path().join("run.csv")).unwrap(), b".csv");
    }

    #[test]
    fn the_document_replaces_an_incomplete_journal() {
        let dir = tempfile::tempdir().unwrap();
        let outputs = outputs_on_full_disk(&dir.path().join("run"), &[1], false);
        let error = outputs.write(|suffix| Ok(suffix.into())).unwrap_err().to_string();
        assert!(error.contains("run.csv: No space left") && error.contains("complete result is in "), "{error}");
        assert!(error.contains("run.json:") && !error.contains("all records"), "{error}");
    }

    #[test]
    fn a_result_that_no_file_holds_has_a_fallback_document() {
        let dir = tempfile::tempdir().unwrap();
        let outputs = outputs_on_full_disk(&dir.path().join("kept-elsewhere"), &[0, 1], false);
        let error = outputs.write(|suffix| Ok(suffix.into())).unwrap_err();
        let OutputError::Write { kept: ResultLocation::FallbackDocument { document, .. }, .. } = &error else {
            panic!("{error}")
        };
        assert_eq!(std::fs::read(document).unwrap(), b".json");
        std::fs::remove_file(document).unwrap();
        let words = error.to_string();
        assert!(words.contains("is incomplete too") && !words.contains("all records"), "{words}");
    }

    #[test]
    fn space_is_advised_only_where_it_is_missing() {
        let error = |errno| {
            let (path, kept) = ("run.csv".into(), ResultLocation::Document("run.json".into()));
            OutputError::Write { path, kept, source: io::Error::from_raw_os_error(errno) }.to_string()
        };
        let full = error(libc::ENOSPC);
        assert!(full.ends_with("free space; the complete result is in run.json: run beff-raw report on it"), "{full}");
        let refused = error(libc::EPERM);
        assert!(refused.contains("not permitted") && !refused.contains("free space"), "{refused}");
    }

    #[test]
    fn a_partly_written_file_is_emptied() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, "before").unwrap();
        // Open for reading: both the write and the truncation fail.
        assert!(write_and_sync(&File::open(&path).unwrap(), b"x").is_err());
        let kept = write_fallback_document("half/run.jsonl".into(), Err(io::Error::other("a defect")));
        assert!(matches!(&kept, ResultLocation::Lost { reasons, .. } if reasons == "a defect"), "{kept:?}");
        assert!(kept.to_string().contains("only the output on stdout is left"), "{kept}");
    }
}
