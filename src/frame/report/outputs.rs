//! The output files of a run: made before it, so that a name that is taken or a directory that is missing is found
//! before any machine time is spent; filled at its end.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::journal::Journal;

/// Why the output files could not be made or written.
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
        /// File that was to be made.
        path: PathBuf,
        /// Directory that is not there.
        directory: PathBuf,
    },
    /// There is such a file.
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
    /// A file could not be filled.
    #[error("cannot write {}: {source}; {kept}", path.display())]
    Write {
        /// File, which is empty.
        path: PathBuf,
        /// Where the result is all the same.
        kept: Kept,
        /// Cause.
        source: io::Error,
    },
}

/// Where the whole result is when not all files could be written.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Kept {
    /// In the journal.
    #[error("the journal ({}) has all records: make room and run beff-raw report on it", .0.display())]
    Journal(PathBuf),
    /// In the document.
    #[error("the whole result is in {}: make room and run beff-raw report on it", .0.display())]
    Document(PathBuf),
    /// In a document elsewhere, because the journal ends early too.
    #[error(
        "the journal ({}) ends early too, so the whole result was written to {}: keep that file, beff-raw report reads it",
        journal.display(), document.display()
    )]
    Elsewhere {
        /// With what was recorded before it could not be written any more.
        journal: PathBuf,
        /// With everything.
        document: PathBuf,
    },
    /// Nowhere.
    #[error(
        "the journal ({}) ends early too, and no other place takes the result ({reasons}): what is on stdout is all that is \
         left; the journal has what was recorded before",
        journal.display()
    )]
    Nowhere {
        /// With what was recorded before it could not be written any more.
        journal: PathBuf,
        /// Where it was tried, and why not there.
        reasons: String,
    },
}

/// The open output files of a run.
#[derive(Debug)]
pub struct Outputs {
    journal: Journal,
    journal_path: PathBuf,
    views: Vec<Output>,
}

#[derive(Debug)]
struct Output {
    suffix: String,
    path: PathBuf,
    file: File,
}

impl Outputs {
    /// Makes PREFIX.jsonl and one file for each suffix (`.json`, `.csv`, ...). If one of them cannot be made, those made
    /// before it are removed again.
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
            match Output::create(prefix, suffix) {
                Ok(output) => this.views.push(output),
                Err(error) => {
                    this.discard();
                    return Err(error);
                }
            }
        }
        Ok(this)
    }

    /// The journal, to append to during the run.
    pub fn journal(&mut self) -> &mut Journal {
        &mut self.journal
    }

    /// Path of the journal, for messages.
    #[must_use]
    pub fn journal_path(&self) -> &Path {
        &self.journal_path
    }

    /// Removes the files again: the run that was to fill them never began.
    pub fn discard(self) {
        let views = self.views.into_iter().map(|output| output.path);
        for path in [self.journal_path].into_iter().chain(views) {
            // They are empty and ours; what kept the run from beginning matters more than an error from here.
            let _ = std::fs::remove_file(path);
        }
    }

    /// Fills all files but the journal with what `view` makes for their suffixes, syncs them, and returns the paths of
    /// all. One that cannot be written does not keep the others from being written. Where neither the journal nor the document
    /// holds the whole result, the document is written to a second place.
    ///
    /// # Errors
    /// The first file that could not be written, and where the result is.
    pub fn write(self, mut view: impl FnMut(&str) -> io::Result<Vec<u8>>) -> Result<Vec<PathBuf>, OutputError> {
        let mut paths = vec![self.journal_path.clone()];
        let mut first_error = None;
        let mut document = None;
        for output in &self.views {
            match view(&output.suffix).and_then(|bytes| fill(&output.file, &bytes)) {
                Ok(()) if output.suffix == DOCUMENT => document = Some(output.path.clone()),
                Ok(()) => {}
                Err(source) => {
                    first_error.get_or_insert((output.path.clone(), source));
                }
            }
            paths.push(output.path.clone());
        }
        let Some((path, source)) = first_error else { return Ok(paths) };
        let kept = match document {
            _ if self.journal.is_whole() => Kept::Journal(self.journal_path),
            Some(document) => Kept::Document(document),
            None => keep_elsewhere(self.journal_path, view(DOCUMENT)),
        };
        Err(OutputError::Write { path, kept, source })
    }
}

/// Suffix of the file with everything.
const DOCUMENT: &str = ".json";

/// Writes the document where there may be room for it: where temporary files go, here, in memory.
fn keep_elsewhere(journal: PathBuf, document: io::Result<Vec<u8>>) -> Kept {
    let bytes = match document {
        Ok(bytes) => bytes,
        Err(defect) => return Kept::Nowhere { journal, reasons: defect.to_string() },
    };
    let name = journal.file_stem().unwrap_or_default().to_string_lossy();
    let name = format!("beff-raw-{name}-{}.json", std::process::id());
    let mut reasons = Vec::new();
    for directory in [std::env::temp_dir(), PathBuf::from("."), PathBuf::from("/dev/shm")] {
        let document = directory.join(&name);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&document);
        match file.and_then(|file| fill(&file, &bytes)) {
            Ok(()) => return Kept::Elsewhere { journal, document },
            Err(error) => {
                if error.kind() != io::ErrorKind::AlreadyExists {
                    // Ours, and empty.
                    let _ = std::fs::remove_file(&document);
                }
                reasons.push(format!("{}: {error}", directory.display()));
            }
        }
    }
    Kept::Nowhere { journal, reasons: reasons.join(", ") }
}

impl Output {
    fn create(prefix: &Path, suffix: &str) -> Result<Self, OutputError> {
        let path = with_suffix(prefix, suffix);
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        let file = file.map_err(|e| creation_error(&path, e))?;
        Ok(Self { suffix: suffix.to_owned(), path, file })
    }
}

/// Writes and syncs all of it, or leaves the file empty: half a document is no result.
fn fill(mut file: &File, bytes: &[u8]) -> io::Result<()> {
    let filled = file.write_all(bytes).and_then(|()| file.sync_all());
    if filled.is_err() {
        // What failed is told; an end that is missing is seen by every reader.
        let _ = file.set_len(0);
    }
    filled
}

/// The prefix with something behind it; a dot inside the prefix stays (`run1.5` gives `run1.5.json`).
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
    fn all_files_are_made_first_and_filled_at_the_end() {
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
        let taken = dir.path().join("run.sum");
        std::fs::write(&taken, "precious").unwrap();
        let error = Outputs::create(&dir.path().join("run"), &suffixes(&[".json", ".csv", ".sum"])).unwrap_err();
        assert!(matches!(&error, OutputError::Exists(path) if *path == taken));
        assert!(error.to_string().contains("run.sum exists already and is not overwritten"));
        assert_eq!(names(dir.path()), ["run.sum"]);
        assert_eq!(std::fs::read(&taken).unwrap(), b"precious");
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

    /// Outputs whose documents cannot be written, and their journal only if it `is_whole`.
    fn on_a_full_disk(prefix: &Path, full: &[usize], is_whole: bool) -> Outputs {
        let mut outputs = Outputs::create(prefix, &suffixes(&[".json", ".csv"])).unwrap();
        for n in full {
            outputs.views[*n].file = OpenOptions::new().write(true).open("/dev/full").unwrap();
        }
        if !is_whole {
            outputs.journal = Journal::full();
        }
        assert_eq!(outputs.journal().append(&"a line").is_ok(), is_whole);
        outputs
    }

    #[test]
    fn a_file_that_cannot_be_written_does_not_stop_the_others() {
        let dir = tempfile::tempdir().unwrap();
        let outputs = on_a_full_disk(&dir.path().join("run"), &[0], true);
        let error = outputs.write(|suffix| Ok(suffix.into())).unwrap_err().to_string();
        for part in ["run.json: No space left", "run.jsonl) has all records"] {
            assert!(error.contains(part), "{error}");
        }
        assert_eq!(std::fs::read(dir.path().join("run.csv")).unwrap(), b".csv");
    }

    #[test]
    fn the_document_has_what_the_journal_has_not() {
        let dir = tempfile::tempdir().unwrap();
        let outputs = on_a_full_disk(&dir.path().join("run"), &[1], false);
        let error = outputs.write(|suffix| Ok(suffix.into())).unwrap_err().to_string();
        assert!(error.contains("run.csv: No space left") && error.contains("whole result is in "), "{error}");
        assert!(error.contains("run.json:") && !error.contains("all records"), "{error}");
    }

    #[test]
    fn a_result_that_no_file_took_is_kept_elsewhere() {
        let dir = tempfile::tempdir().unwrap();
        let outputs = on_a_full_disk(&dir.path().join("kept-elsewhere"), &[0, 1], false);
        let error = outputs.write(|suffix| Ok(suffix.into())).unwrap_err();
        let OutputError::Write { kept: Kept::Elsewhere { document, .. }, .. } = &error else { panic!("{error}") };
        assert_eq!(std::fs::read(document).unwrap(), b".json");
        std::fs::remove_file(document).unwrap();
        let words = error.to_string();
        assert!(words.contains("ends early too") && !words.contains("all records"), "{words}");
    }

    #[test]
    fn half_a_file_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, "before").unwrap();
        // Open for reading: the write fails, and so does the cut.
        assert!(fill(&File::open(&path).unwrap(), b"x").is_err());
        let kept = keep_elsewhere("half/run.jsonl".into(), Err(io::Error::other("a defect")));
        assert!(matches!(&kept, Kept::Nowhere { reasons, .. } if reasons == "a defect"), "{kept:?}");
        assert!(kept.to_string().contains("what is on stdout is all that is left"), "{kept}");
    }
}
