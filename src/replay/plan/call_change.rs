//! Changes of the calls of a profile (`--what-if`), made where they are read.

use std::collections::{BTreeMap, HashSet};

use beff_trace::layout::TypeLayouts;
use beff_trace::{AccessForm, Call, CallId, Direction, Function, PointerKind, Role, Whence};
use serde::{Deserialize, Serialize};

use crate::frame::units::{count, format_size};

use super::collective_change::CollectiveForms;
use super::collective_counts::{CollectiveCounter, OpeningId};

/// What replaces a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Edit {
    /// Nothing. Calls that wait for it wait for the call of its rank before it, if there is one.
    Omitted { previous_ns: Option<u64> },
    /// A move of the file pointer.
    Seek { etypes: i64 },
    /// The same collective call without data.
    Empty,
}

/// Writes that are not made, as edits of the calls of each rank by their begin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OmittedWrites {
    edits: Vec<BTreeMap<u64, Edit>>,
    /// Number of writes that are not made, or are empty.
    pub writes: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A write of one rank that may be omitted, or its part in a collective write.
#[derive(Clone, Copy)]
struct Part {
    call: CallId,
    previous_ns: Option<u64>,
    /// Bytes that are overwritten; None if they are needed.
    overwritten_bytes: Option<u64>,
    /// Written etypes, if the file pointer advances.
    etypes: Option<i64>,
}

/// Finds the edits for writes that are overwritten, from the calls of all ranks, one rank after the other.
pub struct OmittedWritesBuilder<'a> {
    overwritten: &'a HashSet<CallId>,
    layouts: &'a TypeLayouts,
    comms: &'a [Vec<u32>],
    rank: u32,
    previous_ns: Option<u64>,
    etypes: BTreeMap<u32, Option<u32>>,
    collectives: CollectiveCounter,
    single: Vec<Part>,
    groups: BTreeMap<(OpeningId, u64), Vec<Part>>,
}

impl<'a> OmittedWritesBuilder<'a> {
    /// For these writes.
    #[must_use]
    pub fn new(overwritten: &'a HashSet<CallId>, layouts: &'a TypeLayouts, comms: &'a [Vec<u32>]) -> Self {
        Self {
            overwritten,
            layouts,
            comms,
            rank: 0,
            previous_ns: None,
            etypes: BTreeMap::new(),
            collectives: CollectiveCounter::default(),
            single: Vec::new(),
            groups: BTreeMap::new(),
        }
    }

    /// Adds the next call of a rank.
    pub fn add(&mut self, rank: u32, call: &Call) {
        if rank != self.rank {
            (self.rank, self.previous_ns) = (rank, None);
            self.etypes.clear();
            self.collectives = CollectiveCounter::default();
        }
        let meeting = self.collectives.count_call(call);
        if let (Function::SetView, Some(handle), None) = (call.function, call.handle, call.error) {
            self.etypes.insert(handle, call.etype);
        }
        let part = self.part(rank, call);
        match (part, meeting) {
            (Some(part), Some(meeting)) => self.groups.entry(meeting).or_default().push(part),
            (Some(part), None) if part.overwritten_bytes.is_some() => self.single.push(part),
            _ => {}
        }
        self.previous_ns = Some(call.begin_ns);
    }

    fn part(&self, rank: u32, call: &Call) -> Option<Part> {
        let Role::Data { direction: Direction::Write, form: AccessForm::Blocking, pointer, .. } = call.function.role()
        else {
            return None;
        };
        let id = CallId { rank, begin_ns: call.begin_ns };
        let bytes = call.bytes.filter(|bytes| *bytes == 0 || self.overwritten.contains(&id));
        let etype = call.handle.and_then(|handle| self.etypes.get(&handle).copied().flatten());
        let etype_bytes = etype.map_or(1, |etype| self.layouts.size(etype)).max(1);
        let etypes = |bytes: u64| i64::try_from(bytes / etype_bytes).ok();
        let is_at_pointer = pointer != PointerKind::Offset;
        Some(Part {
            call: id,
            previous_ns: self.previous_ns,
            overwritten_bytes: bytes.filter(|_| call.error.is_none() && pointer != PointerKind::Shared),
            etypes: call.bytes.and_then(etypes).filter(|_| is_at_pointer),
        })
    }

    /// The edits for this number of ranks.
    #[must_use]
    pub fn finish(self, ranks: usize) -> OmittedWrites {
        let mut found = OmittedWrites { edits: vec![BTreeMap::new(); ranks], ..OmittedWrites::default() };
        self.single.iter().for_each(|part| found.omit(part));
        for ((opening, _), parts) in &self.groups {
            let members = self.comms.get(opening.0 as usize).map_or(0, Vec::len);
            let is_needed = |part: &Part| part.overwritten_bytes.is_none();
            if parts.iter().all(|part| part.overwritten_bytes.is_none_or(|bytes| bytes == 0)) {
                continue;
            }
            match parts.len() == members && !parts.iter().any(is_needed) {
                true => parts.iter().for_each(|part| found.omit(part)),
                false => parts.iter().for_each(|part| found.empty(part)),
            }
        }
        found
    }
}

impl OmittedWrites {
    fn insert(&mut self, part: &Part, edit: Edit) {
        if let (Some(edits), Some(bytes)) = (self.edits.get_mut(part.call.rank as usize), part.overwritten_bytes) {
            edits.insert(part.call.begin_ns, edit);
            self.writes += u64::from(bytes > 0);
            self.bytes = self.bytes.saturating_add(bytes);
        }
    }

    fn omit(&mut self, part: &Part) {
        let edit = part.etypes.map_or(Edit::Omitted { previous_ns: part.previous_ns }, |etypes| Edit::Seek { etypes });
        self.insert(part, edit);
    }

    /// A part at the file pointer stays, because without data it would not move the pointer.
    fn empty(&mut self, part: &Part) {
        if part.etypes.is_none() && part.overwritten_bytes.is_some_and(|bytes| bytes > 0) {
            self.insert(part, Edit::Empty);
        }
    }

    fn edit(&self, rank: u32, begin_ns: u64) -> Option<Edit> {
        self.edits.get(rank as usize)?.get(&begin_ns).copied()
    }

    /// The latest call that is made, up to this one.
    fn made_call(&self, mut call: CallId) -> Option<CallId> {
        while let Some(Edit::Omitted { previous_ns }) = self.edit(call.rank, call.begin_ns) {
            call.begin_ns = previous_ns?;
        }
        Some(call)
    }
}

/// A change of the calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CallChange {
    /// Some writes are not made.
    OmitWrites(OmittedWrites),
    /// Independent accesses become collective.
    Collective {
        /// For each communicator whether it has several ranks.
        shared: Vec<bool>,
        /// Number of changed calls.
        calls: u64,
    },
}

impl CallChange {
    /// The change, in words.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::OmitWrites(omitted) => {
                format!("fill-never omits {} of {}", count(omitted.writes, "write"), format_size(omitted.bytes))
            }
            Self::Collective { calls, .. } => {
                format!("collective makes {} collective", count(*calls, "independent call"))
            }
        }
    }
}

/// Changes the calls of one rank, in their order.
#[derive(Clone, Debug)]
pub struct ChangedCalls<'a> {
    change: &'a CallChange,
    rank: u32,
    /// Calls that omitted calls wait for.
    after: Vec<CallId>,
    forms: CollectiveForms,
}

impl<'a> ChangedCalls<'a> {
    /// Before the first call of a rank.
    #[must_use]
    pub fn new(change: &'a CallChange, rank: u32) -> Self {
        Self { change, rank, after: Vec::new(), forms: CollectiveForms::default() }
    }

    /// The changed call; None if it is not made.
    pub fn change(&mut self, mut call: Call) -> Option<Call> {
        match self.change {
            CallChange::OmitWrites(omitted) => self.omit(omitted, call),
            CallChange::Collective { shared, .. } => {
                self.forms.change(&mut call, shared);
                Some(call)
            }
        }
    }

    fn omit(&mut self, omitted: &OmittedWrites, mut call: Call) -> Option<Call> {
        let after = std::mem::take(&mut call.after);
        self.after.extend(after.into_iter().filter_map(|after| omitted.made_call(after)));
        let edit = omitted.edit(self.rank, call.begin_ns);
        if matches!(edit, Some(Edit::Omitted { .. })) {
            return None;
        }
        // Calls other than those of MPI-IO are not replayed as such, so they cannot wait.
        if !matches!(call.function.role(), Role::Program | Role::Posix) {
            call.after = std::mem::take(&mut self.after);
        }
        Some(match edit {
            Some(Edit::Seek { etypes }) => Call {
                handle: call.handle,
                thread: call.thread,
                offset: Some(etypes),
                whence: Some(Whence::Current),
                after: call.after,
                ..Call::new(Function::Seek, call.begin_ns, call.end_ns)
            },
            Some(Edit::Empty) => Call { count: Some(0), bytes: Some(0), ..call },
            _ => call,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(function: Function, begin_ns: u64) -> Call {
        Call { handle: Some(1), comm: Some(0), bytes: Some(10), ..Call::new(function, begin_ns, begin_ns + 1) }
    }

    fn id(rank: u32, begin_ns: u64) -> CallId {
        CallId { rank, begin_ns }
    }

    /// Remaining calls of two ranks, as (function, begin, count).
    fn changed(calls: [Vec<Call>; 2], overwritten: &[(u32, u64)]) -> ([Vec<Call>; 2], OmittedWrites) {
        let overwritten = overwritten.iter().map(|(rank, begin_ns)| id(*rank, *begin_ns)).collect();
        let layouts = TypeLayouts::new(&[]).unwrap();
        let comms = [vec![0, 1]];
        let mut builder = OmittedWritesBuilder::new(&overwritten, &layouts, &comms);
        for (rank, calls) in (0..).zip(&calls) {
            calls.iter().for_each(|call| builder.add(rank, call));
        }
        let omitted = builder.finish(2);
        let change = CallChange::OmitWrites(omitted.clone());
        let mut rank = 0;
        let changed = calls.map(|calls| {
            let mut changed = ChangedCalls::new(&change, rank);
            rank += 1;
            calls.into_iter().filter_map(|call| changed.change(call)).collect()
        });
        (changed, omitted)
    }

    fn begins(calls: &[Call]) -> Vec<u64> {
        calls.iter().map(|call| call.begin_ns).collect()
    }

    #[test]
    fn independent_writes_are_omitted_and_pointers_move() {
        use Function::{Open, Write, WriteAt};
        let calls = [vec![call(Open, 1), call(WriteAt, 2), call(Write, 3), call(WriteAt, 4)], vec![call(Open, 1)]];
        let ([first, second], omitted) = changed(calls, &[(0, 2), (0, 3)]);
        assert_eq!((begins(&first), begins(&second)), (vec![1, 3, 4], vec![1]));
        assert_eq!(
            (first[1].function, first[1].offset, first[1].whence),
            (Function::Seek, Some(10), Some(Whence::Current))
        );
        assert_eq!((omitted.writes, omitted.bytes), (2, 20));
    }

    #[test]
    fn a_collective_write_is_omitted_if_no_rank_needs_it_and_else_empty() {
        use Function::{Close, Open, WriteAll, WriteAtAll};
        let rank = |function, bytes| {
            let write = Call { bytes: Some(bytes), count: Some(5), ..call(function, 2) };
            vec![call(Open, 1), write, call(Close, 3)]
        };
        let calls = || [rank(WriteAtAll, 10), rank(WriteAtAll, 10)];
        let ([first, second], omitted) = changed(calls(), &[(0, 2), (1, 2)]);
        assert_eq!((begins(&first), begins(&second), omitted.writes), (vec![1, 3], vec![1, 3], 2));
        let ([first, second], omitted) = changed(calls(), &[(0, 2)]);
        assert_eq!((first[1].count, first[1].bytes, second[1].count), (Some(0), Some(0), Some(5)));
        assert_eq!((omitted.writes, omitted.bytes), (1, 10));
        let ([first, second], _) = changed([rank(WriteAtAll, 10), rank(WriteAtAll, 0)], &[(0, 2)]);
        assert_eq!((begins(&first), begins(&second)), (vec![1, 3], vec![1, 3]), "a rank without data");
        let ([first, second], _) = changed([rank(WriteAtAll, 0), rank(WriteAtAll, 0)], &[]);
        assert_eq!((begins(&first), begins(&second)), (vec![1, 2, 3], vec![1, 2, 3]), "nothing is overwritten");
        let ([first, second], _) = changed([rank(WriteAll, 10), rank(WriteAll, 10)], &[(0, 2), (1, 2)]);
        assert_eq!([&first, &second].map(|calls| calls[1].function), [Function::Seek; 2]);
        let ([first, second], omitted) = changed([rank(WriteAll, 10), rank(WriteAll, 10)], &[(0, 2)]);
        assert_eq!([&first, &second].map(|calls| calls[1].function), [WriteAll; 2], "the pointer must move");
        assert_eq!((first[1].count, omitted.writes), (Some(5), 0));
        let alone = [rank(WriteAtAll, 10), vec![call(Open, 1)]];
        assert_eq!(begins(&changed(alone, &[(0, 2)]).0[0]), [1, 2, 3], "the other rank did not make it");
    }

    #[test]
    fn the_order_passes_through_omitted_calls() {
        use Function::{Finalize, Open, WriteAt};
        let after = |begin_ns, after: &[CallId]| Call { after: after.to_vec(), ..call(WriteAt, begin_ns) };
        let calls = [
            vec![call(Open, 1), after(10, &[id(1, 5)]), after(12, &[]), call(Finalize, 13), after(14, &[])],
            vec![call(Open, 1), after(5, &[]), after(20, &[id(0, 12)]), after(22, &[id(0, 14)])],
        ];
        let ([first, second], _) = changed(calls, &[(0, 10), (0, 12)]);
        assert_eq!(begins(&first), [1, 13, 14]);
        assert_eq!((&first[1].after[..], &first[2].after[..]), (&[][..], &[id(1, 5)][..]), "the next call waits");
        assert_eq!(second[2].after, [id(0, 1)], "for the call before the omitted ones");
        assert_eq!(second[3].after, [id(0, 14)]);
    }
}
