//! Merges the files of the processes to one profile with a common clock, common dictionaries, the order of calls that touch the same bytes,
//! and the origin of read data. Streaming: memory does not grow with the calls, but, up to a limit, with the file ranges that different
//! calls touch.

mod collectives;
mod contents;
mod dictionary;
mod file_names;
mod file_size;
mod files;
mod history;
mod interner;
mod rank;
mod shared_pointer;
mod size_calls;
mod spool;
mod sweep;
pub(crate) mod workload;

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::call::Call;
use crate::function::Role;
use crate::head::{Process, ProfileHead, RecordingStatus};
use crate::layout::{TypeError, TypeLayouts};
use crate::raw::{Event, Events, ProcessFile, RawError};
use crate::text::{is_zstd, ProfileWriter};

use dictionary::CommonDictionary;
use files::TrackingLimits;
use rank::CallSource;
use spool::Spool;
use sweep::Sweep;

/// Limits of a merge.
#[derive(Clone, Copy, Debug)]
pub struct MergeOptions {
    /// Maximum number of ranges per file with a known last writer; beyond it the oldest become unknown.
    pub max_written_ranges: usize,
    /// Maximum number of ranges per file whose last calls are distinguished; beyond it neighbours are joined.
    pub max_history_ranges: usize,
}

impl Default for MergeOptions {
    fn default() -> Self {
        Self { max_written_ranges: contents::MAX_WRITTEN_RANGES, max_history_ranges: history::MAX_HISTORY_RANGES }
    }
}

/// Why the merge failed.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// There is no file of a process.
    #[error("{0}: contains no file of a process (rank-N.beff); was the program recorded to another directory?")]
    NoRecording(PathBuf),
    /// No file of a process can be read.
    #[error(transparent)]
    Unreadable(#[from] RawError),
    /// Two files are of the same rank, or of programs of different size.
    #[error("{0}: {1}; the directory holds more than one recording: merge each in a directory of its own")]
    Mixed(PathBuf, String),
    /// The output file exists, possibly since the merge began.
    #[error("{0} exists already and is not overwritten; the files of the processes are unchanged")]
    Exists(PathBuf),
    /// An I/O error occurred.
    #[error("{path}: {source}; the files of the processes are unchanged")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
}

/// Gaps of the profile.
#[derive(Clone, Debug, Default)]
pub struct MergeReport {
    /// Ranks of the program.
    pub ranks: u32,
    /// Calls of all ranks.
    pub calls: u64,
    /// Ranks without a readable file, with the reason.
    pub missing: Vec<(u32, String)>,
    /// Ranks whose recording does not extend to MPI_Finalize.
    pub incomplete: Vec<(u32, RecordingStatus)>,
    /// Types that are too large to be resolved: their accesses have no order and no origin.
    pub types: Vec<TypeError>,
    /// Files whose old origins were discarded, with the number of times.
    pub forgotten_origins: Vec<(String, u64)>,
    /// Files whose ranges were joined, with the number of times: calls have additional dependencies.
    pub joined_ranges: Vec<(String, u64)>,
    /// Reads without origin, because they ended too long after their begin.
    pub abandoned_reads: u64,
}

impl MergeReport {
    /// One sentence per gap of the profile.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let mut all = Vec::new();
        all.extend(self.missing.iter().map(|(rank, why)| format!("rank {rank} is missing: {why}")));
        for (rank, end) in &self.incomplete {
            let what = match end {
                RecordingStatus::LimitReached => {
                    "ends where its file could not be written (full disk, size limit, error, truncation)"
                }
                RecordingStatus::Aborted => "ends with MPI_Abort",
                _ => "ends without MPI_Finalize, its last calls may be missing",
            };
            all.push(format!("the recording of rank {rank} {what}"));
        }
        all.extend(
            self.types
                .iter()
                .map(|error| format!("{error}: accesses with it are recorded, but without order and origin")),
        );
        for (path, times) in &self.forgotten_origins {
            all.push(format!("{path}: written in too many ranges; old origins were discarded {times} times"));
        }
        for (path, times) in &self.joined_ranges {
            all.push(format!("{path}: accessed in too many ranges; neighbours were joined {times} times, and calls have additional dependencies"));
        }
        if self.abandoned_reads > 0 {
            all.push(format!(
                "{} reads ended so long after their begin that their origin is not recorded",
                self.abandoned_reads
            ));
        }
        if self.calls == 0 {
            all.push("no calls were recorded".to_owned());
        }
        all
    }
}

/// Calls of a process with common numbers and times.
struct ProcessCalls<'a> {
    dictionary: &'a CommonDictionary,
    process: usize,
    events: Events<'a>,
}

impl CallSource for ProcessCalls<'_> {
    fn next(&mut self) -> Option<Box<Call>> {
        loop {
            if let Event::Call(mut call) = self.events.next()? {
                self.dictionary.translate(self.process, &mut call);
                // POSIX calls on files that MPI-IO does not use.
                if call.function.role() == Role::Posix && call.file.is_none() {
                    continue;
                }
                return Some(call);
            }
        }
    }

    fn is_truncated(&self) -> bool {
        matches!(self.events.end(), RecordingStatus::Truncated | RecordingStatus::LimitReached)
    }
}

/// Suffix of an incomplete profile. Only a killed merge leaves one.
pub const UNFINISHED: &str = ".unfinished";

/// Merges the files of the processes in a directory to a profile, compressed if its name ends in `.zst`. A temporary file of the size of
/// the profile is created in the same directory. The profile gets its name when it is complete, so that a killed merge leaves none (but
/// possibly a file that ends in [`UNFINISHED`]). A failed merge leaves nothing.
///
/// # Errors
/// There is nothing to merge, two recordings are mixed, the output exists, or an I/O error occurs.
pub fn merge(directory: &Path, out: &Path, options: &MergeOptions) -> Result<MergeReport, MergeError> {
    if out.symlink_metadata().is_ok() {
        return Err(MergeError::Exists(out.to_owned()));
    }
    let (files, mut report) = open_all(directory)?;
    let dictionary = CommonDictionary::read(&files);
    let library = files.first().map_or("", |file| file.head().library.as_str());
    let (layouts, refused) = TypeLayouts::for_library_lenient(dictionary.types(), library);
    report.types = refused;
    let beside = out.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let io_of = |path: &Path| {
        let path = path.to_owned();
        move |source| MergeError::Io { path, source }
    };
    let mut spool = Spool::new(beside, files.len()).map_err(io_of(beside))?;
    let sources = files.iter().enumerate().map(|(process, file)| {
        (file.head().rank, ProcessCalls { dictionary: &dictionary, process, events: file.events() })
    });
    let limits = TrackingLimits {
        history_ranges: options.max_history_ranges.max(2),
        written_ranges: options.max_written_ranges.max(8),
    };
    let mut sweep = Sweep::new(&dictionary, &layouts, sources.collect(), &mut spool, limits);
    for (rank, _) in &report.missing {
        sweep.mark_missing(*rank, &dictionary);
    }
    sweep.run().map_err(io_of(beside))?;
    report.abandoned_reads = sweep.abandoned_reads;
    let paths = dictionary.files();
    for (file, opened) in sweep.files.iter().zip(&paths) {
        if file.contents.forget_count > 0 {
            report.forgotten_origins.push((opened.path.clone(), file.contents.forget_count));
        }
        if file.history.join_count > 0 {
            report.joined_ranges.push((opened.path.clone(), file.history.join_count));
        }
    }
    drop(sweep);
    // Written calls count: a process may have appended to its file between the passes.
    let calls: Vec<u64> = (0..files.len()).map(|index| spool.calls(index)).collect();
    report.calls = calls.iter().sum();
    let head = profile_head(&files, &dictionary, &calls, report.ranks);
    let whole = write_profile(beside, out, &head, &files, &mut spool).map_err(io_of(out))?;
    whole.persist_noclobber(out).map_err(|error| match error.error.kind() {
        io::ErrorKind::AlreadyExists => MergeError::Exists(out.to_owned()),
        _ => io_of(out)(error.error),
    })?;
    for (file, end) in files.iter().zip(&dictionary.ends) {
        if *end != RecordingStatus::Complete {
            report.incomplete.push((file.head().rank, *end));
        }
    }
    Ok(report)
}

/// Opens the files of all processes, in rank order.
fn open_all(directory: &Path) -> Result<(Vec<ProcessFile>, MergeReport), MergeError> {
    let io = |source| MergeError::Io { path: directory.to_owned(), source };
    let (mut files, mut bad) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(directory).map_err(io)? {
        let path = entry.map_err(io)?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let Some(rank) = name.strip_prefix("rank-").and_then(|name| name.strip_suffix(".beff")) else { continue };
        match ProcessFile::open(&path) {
            Ok(file) => files.push(file),
            Err(error) => bad.push((rank.parse::<u32>().ok(), error)),
        }
    }
    files.sort_by_key(|file| file.head().rank);
    let Some(first) = files.first() else {
        return Err(bad.pop().map_or_else(|| MergeError::NoRecording(directory.to_owned()), |(_, error)| error.into()));
    };
    let ranks = first.head().ranks;
    for pair in files.windows(2) {
        if pair[0].head().rank == pair[1].head().rank {
            let what = format!("there is another file of rank {}", pair[1].head().rank);
            return Err(MergeError::Mixed(pair[1].path().to_owned(), what));
        }
    }
    if let Some(other) = files.iter().find(|file| file.head().ranks != ranks || file.head().rank >= ranks) {
        let what = format!("it is rank {} of {}, others are of {ranks}", other.head().rank, other.head().ranks);
        return Err(MergeError::Mixed(other.path().to_owned(), what));
    }
    let mut report = MergeReport { ranks, ..MergeReport::default() };
    let mut there = files.iter().map(|file| file.head().rank).peekable();
    for rank in 0..ranks {
        if there.next_if_eq(&rank).is_none() {
            let why = bad.iter().find(|(of, _)| *of == Some(rank));
            report
                .missing
                .push((rank, why.map_or_else(|| "it has no file".to_owned(), |(_, error)| error.to_string())));
        }
    }
    Ok((files, report))
}

fn profile_head(files: &[ProcessFile], dictionary: &CommonDictionary, calls: &[u64], ranks: u32) -> ProfileHead {
    let mut head = ProfileHead {
        types: dictionary.types().to_vec(),
        comms: dictionary.comms().to_vec(),
        infos: dictionary.infos().to_vec(),
        files: dictionary.files(),
        ..ProfileHead::default()
    };
    if let Some(first) = files.first().map(ProcessFile::head) {
        head.library.clone_from(&first.library);
        head.command.clone_from(&first.command);
        head.started_unix_ns = first.started_unix_ns;
        head.cost_ns = first.cost_ns;
    }
    let unknown = Process {
        host: String::new(),
        pid: 0,
        clock_offset_ns: [0; 2],
        end: RecordingStatus::Truncated,
        calls: 0,
        storage_bytes: None,
    };
    head.processes = vec![unknown; ranks as usize];
    for (index, file) in files.iter().enumerate() {
        let raw = file.head();
        if let Some(process) = head.processes.get_mut(raw.rank as usize) {
            *process = Process {
                host: raw.host.clone(),
                pid: raw.pid,
                clock_offset_ns: raw.clock_offset_ns,
                end: dictionary.ends[index],
                calls: calls[index],
                storage_bytes: raw.storage_bytes,
            };
        }
    }
    head
}

/// Writes the profile to a file in directory `beside`, which is removed unless it gets a name.
fn write_profile(
    beside: &Path,
    out: &Path,
    head: &ProfileHead,
    files: &[ProcessFile],
    spool: &mut Spool,
) -> io::Result<NamedTempFile> {
    let mut prefix = out.file_name().unwrap_or_default().to_owned();
    prefix.push(".");
    let mut named = tempfile::Builder::new();
    // The umask applies, as to any new file.
    named.prefix(&prefix).suffix(UNFINISHED).permissions(Permissions::from_mode(0o666));
    let mut writer = ProfileWriter::new(named.tempfile_in(beside)?, is_zstd(out));
    writer.head(head)?;
    for (index, file) in files.iter().enumerate() {
        writer.begin_calls(file.head().rank, spool.calls(index))?;
        writer.copy_calls(&mut spool.lines(index)?)?;
    }
    writer.finish()
}

#[cfg(test)]
mod tests;
