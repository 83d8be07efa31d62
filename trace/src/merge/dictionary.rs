//! Common clock and dictionaries, from a first pass over the files of all processes.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use crate::call::Call;
use crate::function::Function;
use crate::head::{OpenedFile, RecordingStatus};
use crate::raw::{Event, ProcessFile, ProcessHeader};
use crate::types::Datatype;

/// Conversion from the clock of a host to ns since the first begin of all calls.
#[derive(Clone, Copy, Debug)]
pub(super) struct CommonClock {
    from_ns: i128,
    offset_ns: [i128; 2],
    span_ns: i128,
    zero_ns: i128,
}

impl CommonClock {
    /// The offsets were measured at begin and end of the recording; between them the drift is linear.
    pub(super) fn new(head: &ProcessHeader) -> Self {
        let [from, to] = head.clock_samples.map(|moment| i128::from(moment.ns));
        let offset_ns = head.clock_offset_ns.map(i128::from);
        let span_ns = to - from;
        // Larger drifts cannot stem from a measurement.
        let sane = span_ns > 0 && (offset_ns[1] - offset_ns[0]).abs() < span_ns / 2;
        let offset_ns = if sane { offset_ns } else { [offset_ns[0]; 2] };
        Self { from_ns: from, offset_ns, span_ns: span_ns.max(1), zero_ns: 0 }
    }

    /// Time on the clock of rank 0.
    fn shared_ns(&self, ns: u64) -> i128 {
        let ns = i128::from(ns);
        let drift = (self.offset_ns[1] - self.offset_ns[0]) * (ns - self.from_ns).clamp(0, self.span_ns) / self.span_ns;
        ns + self.offset_ns[0] + drift
    }

    /// Time since the first begin of all calls.
    pub(super) fn ns(&self, ns: u64) -> u64 {
        u64::try_from((self.shared_ns(ns) - self.zero_ns).max(0)).unwrap_or(u64::MAX)
    }
}

/// Mapping from the numbers of one process to the common ones.
#[derive(Clone, Debug, Default)]
pub(super) struct NumberMap {
    types: HashMap<u32, u32>,
    comms: HashMap<u32, u32>,
    infos: HashMap<u32, u32>,
}

#[derive(Debug)]
struct Interner<T> {
    list: Vec<T>,
    numbers: HashMap<T, u32>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self { list: Vec::new(), numbers: HashMap::new() }
    }
}

impl<T: Clone + Eq + Hash> Interner<T> {
    fn intern(&mut self, value: T) -> u32 {
        if let Some(number) = self.numbers.get(&value) {
            return *number;
        }
        let number = self.list.len() as u32;
        self.list.push(value.clone());
        self.numbers.insert(value, number);
        number
    }
}

#[derive(Debug, Default)]
pub(super) struct CommonDictionary {
    types: Interner<Datatype>,
    comms: Interner<Vec<u32>>,
    infos: Interner<Vec<(String, String)>>,
    files: Interner<String>,
    /// Per file, its first successful opening.
    first_openings: Vec<Option<FirstOpening>>,
    /// Per file deleted through MPI, begin of the first deletion.
    first_deletions: HashMap<u32, i128>,
    /// Files and the communicators that opened them.
    opened_with: HashSet<(u32, u32)>,
    /// Last successful opening of each file, and when it was first found missing.
    last_openings: HashMap<u32, i128>,
    removals: HashMap<u32, i128>,
    zero_ns: i128,
    /// File-system types by path. Empty if processes reported different ones.
    fs_types: HashMap<String, String>,
    pub(super) numbers: Vec<NumberMap>,
    pub(super) ends: Vec<RecordingStatus>,
    pub(super) clocks: Vec<CommonClock>,
}

#[derive(Clone, Copy, Debug)]
struct FirstOpening {
    begin_ns: i128,
    /// Size before it, -1 if the file did not exist.
    size_bytes: Option<i64>,
    /// Time since the last modification.
    unchanged_ns: Option<u64>,
}

/// Driver prefixes of paths in ROMIO and its derivatives.
const DRIVER_PREFIXES: &[&str] = &[
    "ufs",
    "nfs",
    "xfs",
    "sfs",
    "pfs",
    "hfs",
    "piofs",
    "lustre",
    "gpfs",
    "panfs",
    "pvfs",
    "pvfs2",
    "daos",
    "ime",
    "quobyte",
    "testfs",
    "gridftp",
    "zoidfs",
    "bgl",
    "bglockless",
];

pub(super) fn strip_driver_prefix(name: &str) -> &str {
    match name.split_once(':') {
        Some((prefix, path)) if DRIVER_PREFIXES.contains(&prefix) => path,
        _ => name,
    }
}

impl CommonDictionary {
    pub(super) fn read(files: &[ProcessFile]) -> Self {
        let mut found = Self::default();
        let mut zero_ns = None;
        for file in files {
            let clock = CommonClock::new(file.head());
            let mut numbers = NumberMap::default();
            let mut events = file.events();
            let mut gone = Vec::new();
            for event in events.by_ref() {
                match event {
                    Event::Type { id, datatype } => {
                        if let Some(datatype) = renumber(datatype, &numbers.types) {
                            numbers.types.insert(id, found.types.intern(datatype));
                        }
                    }
                    Event::Comm { id, ranks } => {
                        numbers.comms.insert(id, found.comms.intern(ranks));
                    }
                    Event::Info { id, pairs } => {
                        numbers.infos.insert(id, found.infos.intern(pairs));
                    }
                    Event::Storage { path, fs_type, .. } => found.record_fs_type(&path, fs_type),
                    Event::Removed { path } => gone.push(path),
                    Event::Call(call) => {
                        let begin = clock.shared_ns(call.begin_ns);
                        if call.function == Function::Open {
                            gone.drain(..).for_each(|path| found.record_removal(&path, begin));
                        }
                        zero_ns = Some(zero_ns.map_or(begin, |zero: i128| zero.min(begin)));
                        found.record_file(&call, begin, &numbers);
                    }
                }
            }
            found.ends.push(events.end());
            found.numbers.push(numbers);
            found.clocks.push(clock);
        }
        found.zero_ns = zero_ns.unwrap_or(0);
        found.clocks.iter_mut().for_each(|clock| clock.zero_ns = found.zero_ns);
        found
    }

    fn record_fs_type(&mut self, path: &str, fs_type: String) {
        let known = self.fs_types.entry(strip_driver_prefix(path).to_owned()).or_insert_with(|| fs_type.clone());
        if *known != fs_type {
            known.clear();
        }
    }

    fn record_removal(&mut self, path: &str, seen_ns: i128) {
        // The process has opened it before.
        if let Some(file) = self.files.numbers.get(strip_driver_prefix(path)) {
            let first = self.removals.entry(*file).or_insert(seen_ns);
            *first = seen_ns.min(*first);
        }
    }

    fn record_file(&mut self, call: &Call, begin_ns: i128, numbers: &NumberMap) {
        if !matches!(call.function, Function::Open | Function::Delete) {
            return;
        }
        let Some(name) = &call.name else { return };
        let file = self.files.intern(strip_driver_prefix(name).to_owned()) as usize;
        self.first_openings.resize(self.files.list.len(), None);
        if call.function == Function::Delete && call.error.is_none() {
            let deleted = self.first_deletions.entry(file as u32).or_insert(begin_ns);
            *deleted = begin_ns.min(*deleted);
        }
        if call.function == Function::Open && call.error.is_none() {
            let last = self.last_openings.entry(file as u32).or_insert(begin_ns);
            *last = begin_ns.max(*last);
        }
        let first = &mut self.first_openings[file];
        let comm = call.comm.and_then(|comm| numbers.comms.get(&comm));
        self.opened_with.extend(comm.map(|comm| (file as u32, *comm)));
        let opens = call.function == Function::Open && call.error.is_none();
        if opens && first.is_none_or(|known| begin_ns < known.begin_ns) {
            *first = Some(FirstOpening { begin_ns, size_bytes: call.number, unchanged_ns: call.unchanged_ns });
        }
    }

    /// Replaces the numbers in a call by the common ones, and sets the number of the file that it opens or deletes.
    pub(super) fn translate(&self, process: usize, call: &mut Call) {
        let numbers = &self.numbers[process];
        let common = |map: &HashMap<u32, u32>, id: Option<u32>| id.and_then(|id| map.get(&id).copied());
        let is_lost = |id: Option<u32>| id.is_some_and(|id| !numbers.types.contains_key(&id));
        if is_lost(call.datatype) {
            // The type was not recorded; without it the count is meaningless.
            call.count = None;
        }
        if is_lost(call.etype) || is_lost(call.filetype) {
            call.offset = None;
        }
        call.datatype = common(&numbers.types, call.datatype);
        call.etype = common(&numbers.types, call.etype);
        call.filetype = common(&numbers.types, call.filetype);
        call.comm = common(&numbers.comms, call.comm);
        call.info = common(&numbers.infos, call.info);
        call.granted = common(&numbers.infos, call.granted);
        if matches!(call.function, Function::Open | Function::Delete) {
            call.file = call.name.take().and_then(|name| self.files.numbers.get(strip_driver_prefix(&name)).copied());
        }
        let clock = &self.clocks[process];
        (call.begin_ns, call.end_ns) = (clock.ns(call.begin_ns), clock.ns(call.end_ns));
    }

    pub(super) fn opened_with(&self) -> &HashSet<(u32, u32)> {
        &self.opened_with
    }

    pub(super) fn types(&self) -> &[Datatype] {
        &self.types.list
    }

    pub(super) fn comms(&self) -> &[Vec<u32>] {
        &self.comms.list
    }

    pub(super) fn infos(&self) -> &[Vec<(String, String)>] {
        &self.infos.list
    }

    fn first_opening(&self, file: usize) -> Option<FirstOpening> {
        self.first_openings.get(file).copied().flatten()
    }

    /// Files with their state before they were first opened.
    pub(super) fn files(&self) -> Vec<OpenedFile> {
        let mut comms = vec![0_u32; self.files.list.len()];
        self.opened_with.iter().for_each(|(file, _)| comms[*file as usize] += 1);
        let opened = |(index, path): (usize, &String)| OpenedFile {
            path: path.clone(),
            size_bytes: self.first_opening(index).and_then(|first| u64::try_from(first.size_bytes?).ok()),
            fs_type: self.fs_types.get(path).cloned().unwrap_or_default(),
            // With several communicators, the one that recreates the file is unknown.
            created_ns: self.created_ns(index).filter(|_| comms[index] == 1),
            removed_ns: self.removed_ns(index as u32).filter(|_| comms[index] == 1),
        };
        self.files.list.iter().enumerate().map(opened).collect()
    }

    /// Creation time of a file that existed at its first opening, if it is later than the first call.
    fn created_ns(&self, file: usize) -> Option<u64> {
        let first = self.first_opening(file).filter(|first| first.size_bytes.is_some_and(|bytes| bytes > 0))?;
        let made_ns = first.begin_ns - i128::from(first.unchanged_ns?);
        // A file that was deleted earlier has existed before.
        let is_first = self.first_deletions.get(&(file as u32)).is_none_or(|deleted_ns| first.begin_ns < *deleted_ns);
        u64::try_from(made_ns - self.zero_ns).ok().filter(|_| is_first)
    }

    /// Time when a file was found missing, if it was removed other than by MPI and not opened again.
    fn removed_ns(&self, file: u32) -> Option<u64> {
        let gone_ns = self.removals.get(&file).filter(|_| !self.first_deletions.contains_key(&file))?;
        let is_last = self.last_openings.get(&file).is_none_or(|last| last < gone_ns);
        u64::try_from(gone_ns - self.zero_ns).ok().filter(|_| is_last)
    }

    /// True if the size of a file before its first opening, or its absence, was recorded.
    pub(super) fn is_size_known(&self, file: usize) -> bool {
        self.first_opening(file).is_some_and(|first| first.size_bytes.is_some())
    }
}

/// Replaces the numbers of inner types by the common ones; None if one is missing.
fn renumber(mut datatype: Datatype, numbers: &HashMap<u32, u32>) -> Option<Datatype> {
    match &mut datatype {
        Datatype::Named { .. } => {}
        Datatype::Struct { of, .. } => {
            for part in of {
                *part = *numbers.get(part)?;
            }
        }
        Datatype::Contiguous { of, .. }
        | Datatype::Vector { of, .. }
        | Datatype::Hvector { of, .. }
        | Datatype::Indexed { of, .. }
        | Datatype::Hindexed { of, .. }
        | Datatype::IndexedBlock { of, .. }
        | Datatype::HindexedBlock { of, .. }
        | Datatype::Subarray { of, .. }
        | Datatype::Darray { of, .. }
        | Datatype::Resized { of, .. } => *of = *numbers.get(of)?,
    }
    Some(datatype)
}
