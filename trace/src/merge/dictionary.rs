//! Common clock and dictionaries, from a first pass over the files of all processes.

use std::collections::{HashMap, HashSet};

use super::file_names::{FileTable, NameTable};
use super::interner::Interner;
use crate::call::Call;
use crate::function::{Function, Role};
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

#[derive(Debug, Default)]
pub(super) struct CommonDictionary {
    types: Interner<Datatype>,
    comms: Interner<Vec<u32>>,
    infos: Interner<Vec<(String, String)>>,
    files: FileTable,
    zero_ns: i128,
    pub(super) numbers: Vec<NumberMap>,
    pub(super) ends: Vec<RecordingStatus>,
    pub(super) clocks: Vec<CommonClock>,
}

impl CommonDictionary {
    pub(super) fn read(files: &[ProcessFile]) -> Self {
        let mut found = Self::default();
        let mut zero_ns = None;
        let mut names = NameTable::default();
        for (process, file) in files.iter().enumerate() {
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
                    Event::Storage { path, fs_type, .. } => names.record_fs_type(&path, fs_type),
                    Event::Removed { path } => gone.push(path),
                    Event::Call(call) => {
                        let begin = clock.shared_ns(call.begin_ns);
                        if call.function == Function::Open {
                            gone.drain(..).for_each(|path| names.record_removal(&path, begin));
                        }
                        zero_ns = Some(zero_ns.map_or(begin, |zero: i128| zero.min(begin)));
                        let comm = call.comm.and_then(|comm| numbers.comms.get(&comm)).copied();
                        names.record_call(process, &call, begin, comm);
                    }
                }
            }
            found.ends.push(events.end());
            found.numbers.push(numbers);
            found.clocks.push(clock);
        }
        let hosts: Vec<&str> = files.iter().map(|file| file.head().host.as_str()).collect();
        let process_of = |rank: &u32| files.iter().position(|file| file.head().rank == *rank);
        let first_ranks: Vec<_> = found.comms.list.iter().map(|ranks| ranks.first().and_then(process_of)).collect();
        found.files = names.into_files(&hosts, &first_ranks);
        found.zero_ns = zero_ns.unwrap_or(0);
        found.clocks.iter_mut().for_each(|clock| clock.zero_ns = found.zero_ns);
        found
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
        if matches!(call.function, Function::Open | Function::Delete) || call.function.role() == Role::Posix {
            (call.file, call.target) = self.files.files_of(call);
            (call.name, call.path, call.identity, call.target_path) = (None, None, None, None);
            if call.function == Function::Delete {
                call.number = None;
            }
        }
        let clock = &self.clocks[process];
        (call.begin_ns, call.end_ns) = (clock.ns(call.begin_ns), clock.ns(call.end_ns));
    }

    pub(super) fn opened_with(&self) -> &HashSet<(u32, u32)> {
        &self.files.opened_with
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

    /// Files with their state before they were first used.
    pub(super) fn files(&self) -> Vec<OpenedFile> {
        self.files.list(self.zero_ns)
    }

    /// True if the size of a file before its first use, or its absence, was recorded.
    pub(super) fn is_size_known(&self, file: usize) -> bool {
        self.files.is_size_known(file)
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
