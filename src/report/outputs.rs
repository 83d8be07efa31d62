//! The output files of a run: made before it, so that a name that is taken or a directory that is missing is found
//! before any machine time is spent; filled at its end.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::results::RunResult;
use crate::stats::Derived;

use super::journal::Journal;
use super::{csv, json, sum};

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
    #[error(
        "cannot write {}: {source}; the journal ({}) has all records: make room and run beff-raw report on it",
        path.display(), journal.display()
    )]
    Write {
        /// File.
        path: PathBuf,
        /// Where the records are all the same.
        journal: PathBuf,
        /// Cause.
        source: io::Error,
    },
}

/// The open output files of a run.
#[derive(Debug)]
pub struct Outputs {
    journal: Journal,
    journal_path: PathBuf,
    json: Output,
    csv: Output,
    /// By backend name.
    sums: Vec<(String, Output)>,
}

#[derive(Debug)]
struct Output {
    path: PathBuf,
    file: File,
}

impl Outputs {
    /// Makes PREFIX.jsonl, PREFIX.json, PREFIX.csv and PREFIX.sum; with several backends PREFIX.BACKEND.sum for each.
    /// If one of them cannot be made, those made before it are removed again.
    ///
    /// # Errors
    /// A file exists, the directory does not, or open(2) fails.
    pub fn create(prefix: &Path, backends: &[String]) -> Result<Self, OutputError> {
        if prefix.file_name().is_none() || prefix.as_os_str().as_encoded_bytes().ends_with(b"/") {
            return Err(OutputError::NoName(prefix.to_owned()));
        }
        let mut made = Vec::new();
        let outputs = Self::create_all(prefix, backends, &mut made);
        if outputs.is_err() {
            for path in made {
                // They are empty and ours; the error that is returned matters more than one from here.
                let _ = std::fs::remove_file(path);
            }
        }
        outputs
    }

    fn create_all(prefix: &Path, backends: &[String], made: &mut Vec<PathBuf>) -> Result<Self, OutputError> {
        let journal_path = with_suffix(prefix, ".jsonl");
        let journal = Journal::create(&journal_path).map_err(|e| creation_error(&journal_path, e))?;
        made.push(journal_path.clone());
        let mut output = |suffix: &str| {
            let path = with_suffix(prefix, suffix);
            let file = OpenOptions::new().write(true).create_new(true).open(&path);
            let file = file.map_err(|e| creation_error(&path, e))?;
            made.push(path.clone());
            Ok(Output { path, file })
        };
        let json = output(".json")?;
        let csv = output(".csv")?;
        let sums = backends
            .iter()
            .map(|backend| {
                let suffix = if backends.len() == 1 { ".sum".to_owned() } else { format!(".{backend}.sum") };
                Ok((backend.clone(), output(&suffix)?))
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { journal, journal_path, json, csv, sums })
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
        let sums = self.sums.into_iter().map(|(_, output)| output.path);
        for path in [self.journal_path, self.json.path, self.csv.path].into_iter().chain(sums) {
            // They are empty and ours; what kept the run from beginning matters more than an error from here.
            let _ = std::fs::remove_file(path);
        }
    }

    /// Fills all files but the journal, syncs them, and returns the paths of all. One that cannot be written does not
    /// keep the others from being written.
    ///
    /// # Errors
    /// The first file that could not be written.
    pub fn write(self, result: &RunResult, derived: &Derived) -> Result<Vec<PathBuf>, OutputError> {
        let mut paths = vec![self.journal_path.clone()];
        let mut first_error = None;
        let mut save = |output: Output, bytes: io::Result<Vec<u8>>| {
            if let Err(source) = bytes.and_then(|bytes| fill(&output.file, &bytes)) {
                let (path, journal) = (output.path.clone(), self.journal_path.clone());
                first_error.get_or_insert(OutputError::Write { path, journal, source });
            }
            paths.push(output.path);
        };
        save(self.json, json::document(result, derived).map_err(io::Error::from));
        save(self.csv, csv::rows(result, derived).map_err(io::Error::from));
        for (backend, output) in self.sums {
            save(output, Ok(sum::summary(result, derived, &backend).into_bytes()));
        }
        first_error.map_or(Ok(paths), Err)
    }
}

fn fill(mut file: &File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    file.sync_all()
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
    use crate::report::fixtures;
    use crate::stats::derive;

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn all_files_are_made_first_and_filled_at_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let result = fixtures::complete();
        let derived = derive(&result);
        let mut outputs = Outputs::create(&dir.path().join("run1.5"), &result.config.backends).unwrap();
        let expected = ["run1.5.csv", "run1.5.json", "run1.5.jsonl", "run1.5.mpiio.sum", "run1.5.posix.sum"];
        assert_eq!(names(dir.path()), expected);
        outputs.journal().append(&result.start_line()).unwrap();
        assert!(outputs.journal_path().ends_with("run1.5.jsonl"));
        let paths = outputs.write(&result, &derived).unwrap();
        assert_eq!(paths.len(), 5);
        for path in &paths {
            assert!(std::fs::metadata(path).unwrap().len() > 0, "{}", path.display());
        }
        let bytes = std::fs::read(dir.path().join("run1.5.json")).unwrap();
        assert_eq!(json::parse(&bytes).unwrap(), result);
    }

    #[test]
    fn nothing_is_overwritten_and_nothing_is_left_behind() {
        let dir = tempfile::tempdir().unwrap();
        let taken = dir.path().join("run.sum");
        std::fs::write(&taken, "precious").unwrap();
        let error = Outputs::create(&dir.path().join("run"), &["posix".to_owned()]).unwrap_err();
        assert!(matches!(&error, OutputError::Exists(path) if *path == taken));
        assert!(error.to_string().contains("run.sum exists already and is not overwritten"));
        assert_eq!(names(dir.path()), ["run.sum"]);
        assert_eq!(std::fs::read(&taken).unwrap(), b"precious");
    }

    #[test]
    fn a_run_that_never_began_leaves_no_files() {
        let dir = tempfile::tempdir().unwrap();
        let backends = ["mpiio".to_owned(), "posix".to_owned()];
        Outputs::create(&dir.path().join("run"), &backends).unwrap().discard();
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

    #[test]
    fn a_file_that_cannot_be_written_does_not_stop_the_others() {
        let dir = tempfile::tempdir().unwrap();
        let result = fixtures::failed();
        let mut outputs = Outputs::create(&dir.path().join("run"), &result.config.backends).unwrap();
        outputs.json.file = File::open(&outputs.json.path).unwrap();
        let error = outputs.write(&result, &derive(&result)).unwrap_err().to_string();
        assert!(error.contains("run.json") && error.contains("run.jsonl"), "{error}");
        assert!(std::fs::metadata(dir.path().join("run.csv")).unwrap().len() > 0);
    }
}
