//! From the files of the processes to one profile: a common clock, common dictionaries, the order of calls that touch the same bytes,
//! and the origin of what was read. Streaming: what is in memory does not grow with the calls, but with the parts of files that different
//! calls touched, up to a limit.

mod common;
mod content;
mod files;
mod rank;
mod spool;
mod sweep;
mod together;
mod touched;

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::call::Call;
use crate::head::{End, Head, Process};
use crate::layout::{Layouts, TypeError};
use crate::raw::{Event, Events, ProcessFile, RawError};
use crate::text::{is_zstd, Writer};

use common::Dictionary;
use files::Limits;
use rank::Source;
use spool::Spool;
use sweep::Sweep;

/// How to merge.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Pieces of one file of which the last writer is remembered; with more, the oldest become unknown.
    pub most_pieces: usize,
    /// Parts of one file for which the last calls are kept apart; with more, neighbours are joined.
    pub most_parts: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { most_pieces: content::MOST_PIECES, most_parts: touched::MOST_PARTS }
    }
}

/// Why nothing was merged.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// No file of a process is there.
    #[error("{0}: no file of a process (rank-N.beff) in it; was the program recorded into another directory?")]
    Nothing(PathBuf),
    /// No file of a process can be read.
    #[error(transparent)]
    Unreadable(#[from] RawError),
    /// Two files are of the same rank, or of programs of another size.
    #[error("{0}: {1}; the directory holds more than one recording: merge each in a directory of its own")]
    Mixed(PathBuf, String),
    /// Something has the name of the profile, perhaps since the merge began.
    #[error("{0} exists already, and nothing is overwritten; the files of the processes are as they were")]
    Exists(PathBuf),
    /// The disk does not play along.
    #[error("{path}: {source}; the files of the processes are as they were")]
    Io {
        /// What was read or written.
        path: PathBuf,
        /// Why it was not.
        source: io::Error,
    },
}

/// What the profile lacks.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Ranks of the program.
    pub ranks: u32,
    /// Calls of all.
    pub calls: u64,
    /// Ranks without a file that can be read, and why.
    pub missing: Vec<(u32, String)>,
    /// Ranks whose record does not reach to MPI_Finalize.
    pub incomplete: Vec<(u32, End)>,
    /// Types that are too large to be followed: their accesses have no order and no origin.
    pub types: Vec<TypeError>,
    /// Files of which old origins were given up, with how often.
    pub forgotten: Vec<(String, u64)>,
    /// Files of which parts were joined, with how often: calls wait for more than they must.
    pub joined: Vec<(String, u64)>,
    /// Reads whose origin is missing, as they ended too long after their begin.
    pub given_up: u64,
}

impl Report {
    /// A sentence for each thing that the profile lacks.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let mut all = Vec::new();
        all.extend(self.missing.iter().map(|(rank, why)| format!("rank {rank} is missing: {why}")));
        for (rank, end) in &self.incomplete {
            let what = match end {
                End::Full => "stops where the disk or the limit was full",
                End::Aborted => "ends with MPI_Abort",
                _ => "ends without MPI_Finalize, its last calls may be missing",
            };
            all.push(format!("the record of rank {rank} {what}"));
        }
        all.extend(
            self.types
                .iter()
                .map(|error| format!("{error}: what is accessed with it is recorded, but has no order and no origin")),
        );
        for (path, times) in &self.forgotten {
            all.push(format!(
                "{path}: written in more pieces than are followed; old origins were given up {times} times"
            ));
        }
        for (path, times) in &self.joined {
            all.push(format!("{path}: accessed in more parts than are followed; neighbours were joined {times} times, and calls wait for more than they must"));
        }
        if self.given_up > 0 {
            all.push(format!(
                "{} reads ended so long after their begin that their origin is not recorded",
                self.given_up
            ));
        }
        if self.calls == 0 {
            all.push("no calls were recorded".to_owned());
        }
        all
    }
}

/// The calls of a process with common numbers and times.
struct Calls<'a> {
    dictionary: &'a Dictionary,
    process: usize,
    events: Events<'a>,
}

impl Source for Calls<'_> {
    fn next(&mut self) -> Option<Box<Call>> {
        loop {
            if let Event::Call(mut call) = self.events.next()? {
                self.dictionary.translate(self.process, &mut call);
                return Some(call);
            }
        }
    }

    fn is_cut(&self) -> bool {
        matches!(self.events.end(), End::Cut | End::Full)
    }
}

/// How the name of a profile ends that is not whole yet. Only a merge that was killed leaves one.
pub const UNFINISHED: &str = ".unfinished";

/// Merges the files of the processes in a directory to a profile; one that ends in `.zst` is compressed. A temporary file of the size of
/// the profile is made beside it. The profile gets its name when it is whole, so that a merge that is killed leaves none (but perhaps a file
/// that ends in [`UNFINISHED`]). When this fails, nothing is left.
///
/// # Errors
/// There is nothing to merge, two recordings are mixed, the name is taken, or the disk does not play along.
pub fn merge(directory: &Path, out: &Path, options: &Options) -> Result<Report, MergeError> {
    if out.symlink_metadata().is_ok() {
        return Err(MergeError::Exists(out.to_owned()));
    }
    let (files, mut report) = open_all(directory)?;
    let dictionary = Dictionary::read(&files);
    let library = files.first().map_or("", |file| file.head().library.as_str());
    let (layouts, refused) = Layouts::what_can_be(dictionary.types(), library);
    report.types = refused;
    let beside = out.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let io_of = |path: &Path| {
        let path = path.to_owned();
        move |source| MergeError::Io { path, source }
    };
    let mut spool = Spool::new(beside, files.len()).map_err(io_of(beside))?;
    let sources = files
        .iter()
        .enumerate()
        .map(|(process, file)| (file.head().rank, Calls { dictionary: &dictionary, process, events: file.events() }));
    let limits = Limits { parts: options.most_parts.max(2), pieces: options.most_pieces.max(8) };
    let mut sweep = Sweep::new(&dictionary, &layouts, sources.collect(), &mut spool, limits);
    for (rank, _) in &report.missing {
        sweep.miss(*rank, &dictionary);
    }
    sweep.run().map_err(io_of(beside))?;
    report.given_up = sweep.given_up;
    let paths = dictionary.files();
    for (file, opened) in sweep.files.iter().zip(&paths) {
        if file.contents.forgotten > 0 {
            report.forgotten.push((opened.path.clone(), file.contents.forgotten));
        }
        if file.touched.joined > 0 {
            report.joined.push((opened.path.clone(), file.touched.joined));
        }
    }
    drop(sweep);
    // What was written counts: a process may still have added to its file between the passes.
    let calls: Vec<u64> = (0..files.len()).map(|index| spool.calls(index)).collect();
    report.calls = calls.iter().sum();
    let head = head_of(&files, &dictionary, &calls, report.ranks);
    let whole = write(beside, out, &head, &files, &mut spool).map_err(io_of(out))?;
    whole.persist_noclobber(out).map_err(|error| match error.error.kind() {
        io::ErrorKind::AlreadyExists => MergeError::Exists(out.to_owned()),
        _ => io_of(out)(error.error),
    })?;
    for (file, end) in files.iter().zip(&dictionary.ends) {
        if *end != End::Complete {
            report.incomplete.push((file.head().rank, *end));
        }
    }
    Ok(report)
}

/// Opens the files of all processes, in the order of their ranks.
fn open_all(directory: &Path) -> Result<(Vec<ProcessFile>, Report), MergeError> {
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
        return Err(bad.pop().map_or_else(|| MergeError::Nothing(directory.to_owned()), |(_, error)| error.into()));
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
    let mut report = Report { ranks, ..Report::default() };
    let mut there = files.iter().map(|file| file.head().rank).peekable();
    for rank in 0..ranks {
        if there.next_if_eq(&rank).is_none() {
            let why = bad.iter().find(|(of, _)| *of == Some(rank));
            report
                .missing
                .push((rank, why.map_or_else(|| "it left no file".to_owned(), |(_, error)| error.to_string())));
        }
    }
    Ok((files, report))
}

fn head_of(files: &[ProcessFile], dictionary: &Dictionary, calls: &[u64], ranks: u32) -> Head {
    let mut head = Head {
        types: dictionary.types().to_vec(),
        comms: dictionary.comms().to_vec(),
        infos: dictionary.infos().to_vec(),
        files: dictionary.files(),
        ..Head::default()
    };
    if let Some(first) = files.first().map(ProcessFile::head) {
        head.library.clone_from(&first.library);
        head.command.clone_from(&first.command);
        head.started_unix_ns = first.started_unix_ns;
        head.cost_ns = first.cost_ns;
    }
    let unknown =
        Process { host: String::new(), pid: 0, clock_offset_ns: [0; 2], end: End::Cut, calls: 0, storage_bytes: None };
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

/// The whole profile in a file beside `out`, which goes away unless it gets a name.
fn write(
    beside: &Path,
    out: &Path,
    head: &Head,
    files: &[ProcessFile],
    spool: &mut Spool,
) -> io::Result<NamedTempFile> {
    let mut prefix = out.file_name().unwrap_or_default().to_owned();
    prefix.push(".");
    let mut named = tempfile::Builder::new();
    // The mask of the process takes from these, as from those of any new file.
    named.prefix(&prefix).suffix(UNFINISHED).permissions(Permissions::from_mode(0o666));
    let mut writer = Writer::new(named.tempfile_in(beside)?, is_zstd(out));
    writer.head(head)?;
    for (index, file) in files.iter().enumerate() {
        writer.begin_calls(file.head().rank, spool.calls(index))?;
        writer.copy_calls(&mut spool.lines(index)?)?;
    }
    writer.finish()
}

#[cfg(test)]
mod tests;
