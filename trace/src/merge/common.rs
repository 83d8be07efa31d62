//! The common clock and the common dictionaries: a first pass over the files of all processes.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use crate::call::Call;
use crate::function::Function;
use crate::head::{End, OpenedFile};
use crate::raw::{Event, ProcessFile, ProcessHead};
use crate::types::Type;

/// From the clock of one host to ns since the first begin of all.
#[derive(Clone, Copy, Debug)]
pub(super) struct Common {
    from_ns: i128,
    offset_ns: [i128; 2],
    span_ns: i128,
    zero_ns: i128,
}

impl Common {
    /// The offsets were measured at the begin and at the end of the recording; between them the clocks drift evenly.
    pub(super) fn new(head: &ProcessHead) -> Self {
        let [from, to] = head.moments.map(|moment| i128::from(moment.ns));
        let offset_ns = head.clock_offset_ns.map(i128::from);
        let span_ns = to - from;
        // Clocks that drift faster than time goes were not measured.
        let sane = span_ns > 0 && (offset_ns[1] - offset_ns[0]).abs() < span_ns / 2;
        let offset_ns = if sane { offset_ns } else { [offset_ns[0]; 2] };
        Self { from_ns: from, offset_ns, span_ns: span_ns.max(1), zero_ns: 0 }
    }

    /// On the clock of rank 0.
    fn shared(&self, ns: u64) -> i128 {
        let ns = i128::from(ns);
        let drift = (self.offset_ns[1] - self.offset_ns[0]) * (ns - self.from_ns).clamp(0, self.span_ns) / self.span_ns;
        ns + self.offset_ns[0] + drift
    }

    /// Since the first begin of all.
    pub(super) fn ns(&self, ns: u64) -> u64 {
        u64::try_from((self.shared(ns) - self.zero_ns).max(0)).unwrap_or(u64::MAX)
    }
}

/// From the numbers of one process to the common ones.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbers {
    types: HashMap<u32, u32>,
    comms: HashMap<u32, u32>,
    infos: HashMap<u32, u32>,
}

/// Values and their numbers.
#[derive(Debug)]
struct Table<T> {
    list: Vec<T>,
    numbers: HashMap<T, u32>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { list: Vec::new(), numbers: HashMap::new() }
    }
}

impl<T: Clone + Eq + Hash> Table<T> {
    fn number(&mut self, value: T) -> u32 {
        if let Some(number) = self.numbers.get(&value) {
            return *number;
        }
        let number = self.list.len() as u32;
        self.list.push(value.clone());
        self.numbers.insert(value, number);
        number
    }
}

/// What the first pass finds.
#[derive(Debug, Default)]
pub(super) struct Dictionary {
    types: Table<Type>,
    comms: Table<Vec<u32>>,
    infos: Table<Vec<(String, String)>>,
    files: Table<String>,
    /// Of each file: its first opening that succeeded.
    first_opened: Vec<Option<FirstOpening>>,
    /// Of the files that were deleted by MPI: begin of the first time.
    first_deleted: HashMap<u32, i128>,
    /// Files and the communicators with which they were opened.
    opened_with: HashSet<(u32, u32)>,
    /// When each file was last opened with success, and when it was first seen to be gone.
    last_opened: HashMap<u32, i128>,
    gone: HashMap<u32, i128>,
    /// When the first call of all began.
    zero_ns: i128,
    /// Kinds of file systems by path. Empty: processes saw different ones.
    fs_types: HashMap<String, String>,
    /// Of each file given.
    pub(super) numbers: Vec<Numbers>,
    pub(super) ends: Vec<End>,
    pub(super) clocks: Vec<Common>,
}

/// The first opening of a file that succeeded.
#[derive(Clone, Copy, Debug)]
struct FirstOpening {
    begin_ns: i128,
    /// Size before it, -1 if there was no file.
    size_bytes: Option<i64>,
    /// How long the file had been as it was.
    unchanged_ns: Option<u64>,
}

/// Names of file systems that ROMIO and its relatives take before a path.
const PREFIXES: &[&str] = &[
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

/// The path without the prefix of a file system.
pub(super) fn path_of(name: &str) -> &str {
    match name.split_once(':') {
        Some((prefix, path)) if PREFIXES.contains(&prefix) => path,
        _ => name,
    }
}

impl Dictionary {
    /// Reads all files once.
    pub(super) fn read(files: &[ProcessFile]) -> Self {
        let mut found = Self::default();
        let mut zero_ns = None;
        for file in files {
            let clock = Common::new(file.head());
            let mut numbers = Numbers::default();
            let mut events = file.events();
            let mut gone = Vec::new();
            for event in events.by_ref() {
                match event {
                    Event::Type { id, datatype } => {
                        if let Some(datatype) = renumbered(datatype, &numbers.types) {
                            numbers.types.insert(id, found.types.number(datatype));
                        }
                    }
                    Event::Comm { id, ranks } => {
                        numbers.comms.insert(id, found.comms.number(ranks));
                    }
                    Event::Info { id, pairs } => {
                        numbers.infos.insert(id, found.infos.number(pairs));
                    }
                    Event::Storage { path, fs_type, .. } => found.kept_on(&path, fs_type),
                    Event::Gone { path } => gone.push(path),
                    Event::Call(call) => {
                        let begin = clock.shared(call.begin_ns);
                        if call.function == Function::Open {
                            gone.drain(..).for_each(|path| found.gone(&path, begin));
                        }
                        zero_ns = Some(zero_ns.map_or(begin, |zero: i128| zero.min(begin)));
                        found.name(&call, begin, &numbers);
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

    fn kept_on(&mut self, path: &str, fs_type: String) {
        let known = self.fs_types.entry(path_of(path).to_owned()).or_insert_with(|| fs_type.clone());
        if *known != fs_type {
            known.clear();
        }
    }

    fn gone(&mut self, path: &str, seen_ns: i128) {
        // The process had opened it before.
        if let Some(file) = self.files.numbers.get(path_of(path)) {
            let first = self.gone.entry(*file).or_insert(seen_ns);
            *first = seen_ns.min(*first);
        }
    }

    fn name(&mut self, call: &Call, begin_ns: i128, numbers: &Numbers) {
        if !matches!(call.function, Function::Open | Function::Delete) {
            return;
        }
        let Some(name) = &call.name else { return };
        let file = self.files.number(path_of(name).to_owned()) as usize;
        self.first_opened.resize(self.files.list.len(), None);
        if call.function == Function::Delete && call.error.is_none() {
            let deleted = self.first_deleted.entry(file as u32).or_insert(begin_ns);
            *deleted = begin_ns.min(*deleted);
        }
        if call.function == Function::Open && call.error.is_none() {
            let last = self.last_opened.entry(file as u32).or_insert(begin_ns);
            *last = begin_ns.max(*last);
        }
        let first = &mut self.first_opened[file];
        let comm = call.comm.and_then(|comm| numbers.comms.get(&comm));
        self.opened_with.extend(comm.map(|comm| (file as u32, *comm)));
        let opens = call.function == Function::Open && call.error.is_none();
        if opens && first.is_none_or(|known| begin_ns < known.begin_ns) {
            *first = Some(FirstOpening { begin_ns, size_bytes: call.number, unchanged_ns: call.unchanged_ns });
        }
    }

    /// Puts the common numbers into a call, and gives the file that it opens or deletes its number.
    pub(super) fn translate(&self, process: usize, call: &mut Call) {
        let numbers = &self.numbers[process];
        let common = |map: &HashMap<u32, u32>, id: Option<u32>| id.and_then(|id| map.get(&id).copied());
        let is_lost = |id: Option<u32>| id.is_some_and(|id| !numbers.types.contains_key(&id));
        if is_lost(call.datatype) {
            // Never seen in a whole record. Without the type the count tells nothing.
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
            call.file = call.name.take().and_then(|name| self.files.numbers.get(path_of(&name)).copied());
        }
        let clock = &self.clocks[process];
        (call.begin_ns, call.end_ns) = (clock.ns(call.begin_ns), clock.ns(call.end_ns));
    }

    pub(super) fn opened_with(&self) -> &HashSet<(u32, u32)> {
        &self.opened_with
    }

    pub(super) fn types(&self) -> &[Type] {
        &self.types.list
    }

    pub(super) fn comms(&self) -> &[Vec<u32>] {
        &self.comms.list
    }

    pub(super) fn infos(&self) -> &[Vec<(String, String)>] {
        &self.infos.list
    }

    fn first_opened(&self, file: usize) -> Option<FirstOpening> {
        self.first_opened.get(file).copied().flatten()
    }

    /// The files with what they were before they were first opened.
    pub(super) fn files(&self) -> Vec<OpenedFile> {
        let mut comms = vec![0_u32; self.files.list.len()];
        self.opened_with.iter().for_each(|(file, _)| comms[*file as usize] += 1);
        let opened = |(index, path): (usize, &String)| OpenedFile {
            path: path.clone(),
            size_bytes: self.first_opened(index).and_then(|first| u64::try_from(first.size_bytes?).ok()),
            fs_type: self.fs_types.get(path).cloned().unwrap_or_default(),
            // With several communicators nobody would know who of them makes it again.
            made_ns: self.made_ns(index).filter(|_| comms[index] == 1),
            gone_ns: self.gone_ns(index as u32).filter(|_| comms[index] == 1),
        };
        self.files.list.iter().enumerate().map(opened).collect()
    }

    /// When a file that was there at its first opening was made, if that was after the first call.
    fn made_ns(&self, file: usize) -> Option<u64> {
        let first = self.first_opened(file).filter(|first| first.size_bytes.is_some_and(|bytes| bytes > 0))?;
        let made_ns = first.begin_ns - i128::from(first.unchanged_ns?);
        // One that was deleted first has been there before.
        let is_first = self.first_deleted.get(&(file as u32)).is_none_or(|deleted_ns| first.begin_ns < *deleted_ns);
        u64::try_from(made_ns - self.zero_ns).ok().filter(|_| is_first)
    }

    /// When a file was seen to be gone, if that was the end of it, and not by a call of MPI.
    fn gone_ns(&self, file: u32) -> Option<u64> {
        let gone_ns = self.gone.get(&file).filter(|_| !self.first_deleted.contains_key(&file))?;
        let is_last = self.last_opened.get(&file).is_none_or(|last| last < gone_ns);
        u64::try_from(gone_ns - self.zero_ns).ok().filter(|_| is_last)
    }

    /// True if the size of a file before its first opening was recorded, or that there was none.
    pub(super) fn is_size_known(&self, file: usize) -> bool {
        self.first_opened(file).is_some_and(|first| first.size_bytes.is_some())
    }
}

/// The type with the common numbers of its parts; None if a part is missing.
fn renumbered(mut datatype: Type, numbers: &HashMap<u32, u32>) -> Option<Type> {
    match &mut datatype {
        Type::Named { .. } => {}
        Type::Struct { of, .. } => {
            for part in of {
                *part = *numbers.get(part)?;
            }
        }
        Type::Contiguous { of, .. }
        | Type::Vector { of, .. }
        | Type::Hvector { of, .. }
        | Type::Indexed { of, .. }
        | Type::Hindexed { of, .. }
        | Type::IndexedBlock { of, .. }
        | Type::HindexedBlock { of, .. }
        | Type::Subarray { of, .. }
        | Type::Darray { of, .. }
        | Type::Resized { of, .. } => *of = *numbers.get(of)?,
    }
    Some(datatype)
}
