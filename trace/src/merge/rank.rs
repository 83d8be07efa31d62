//! State of one rank in the sweep: its calls, the held ones, and accesses in flight.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;

use super::collectives::RankReadiness;
use super::history::EndedAccess;
use super::shared_pointer::PointerUse;
use super::spool::Spool;
use crate::access::{AccessTracker, CallEffect};
use crate::call::{Call, Completion, OriginRange, PAGE_BYTES};
use crate::Function;

/// Maximum number of calls of a rank held until a read among them has ended; beyond it the read is written without its origin.
pub(super) const MAX_HELD_CALLS: usize = 1 << 16;

/// Source of the calls of one rank, in the order of their begin.
pub(super) trait CallSource {
    /// Returns the next call with common numbers and times.
    fn next(&mut self) -> Option<Box<Call>>;

    /// True if later calls may be missing.
    fn is_truncated(&self) -> bool;
}

/// Latest call of each rank among the dependencies.
#[derive(Default)]
pub(super) struct LatestCalls(Vec<(u32, u64)>);

impl LatestCalls {
    pub(super) fn add(&mut self, touch: EndedAccess) {
        // Consecutive calls are often of the same rank.
        match self.0.last_mut() {
            Some((rank, known)) if *rank == touch.rank => *known = touch.begin_ns.max(*known),
            _ => self.0.push((touch.rank, touch.begin_ns)),
        }
    }

    pub(super) fn latest(mut self) -> Vec<(u32, u64)> {
        self.0.sort_unstable_by(|one, other| (one.0, other.1).cmp(&(other.0, one.1)));
        self.0.dedup_by_key(|(rank, _)| *rank);
        self.0
    }
}

pub(super) struct HeldCall {
    pub(super) call: Box<Call>,
    pub(super) awaits_end: bool,
}

/// An access begun by one call and ended by another.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnfinishedAccess {
    /// Number of the call that began it.
    pub(super) number: u64,
    pub(super) begin_ns: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct OpenHandle {
    pub(super) file: Option<u32>,
    pub(super) comm: Option<u32>,
    pub(super) deletes_on_close: bool,
}

pub(super) struct SweepRank<'a, S> {
    pub(super) world_rank: u32,
    pub(super) source: S,
    pub(super) tracker: AccessTracker<'a>,
    pub(super) next: Option<Box<Call>>,
    /// Markers before the next call.
    marks: Vec<HeldCall>,
    pub(super) last_begin_ns: Option<u64>,
    /// End of the calls so far, without and with the last one.
    ended_ns: (u64, u64),
    /// Page of the buffer of the first access.
    first_page: Option<i64>,
    pub(super) held: VecDeque<HeldCall>,
    /// Number of written calls, which is the number of the first held one.
    pub(super) written_calls: u64,
    pub(super) waited_for: HashMap<u32, u64>,
    /// Begins of reads in flight whose order a replay cannot keep.
    pub(super) unordered_reads: HashSet<u64>,
    pub(super) requests: HashMap<u64, UnfinishedAccess>,
    pub(super) splits: HashMap<u32, UnfinishedAccess>,
    pub(super) handles: HashMap<u32, OpenHandle>,
}

impl<'a, S: CallSource> SweepRank<'a, S> {
    pub(super) fn new(world_rank: u32, source: S, tracker: AccessTracker<'a>) -> Self {
        let mut rank = Self {
            world_rank,
            next: None,
            marks: Vec::new(),
            source,
            tracker,
            last_begin_ns: None,
            ended_ns: (0, 0),
            first_page: None,
            held: VecDeque::new(),
            written_calls: 0,
            waited_for: HashMap::new(),
            unordered_reads: HashSet::new(),
            requests: HashMap::new(),
            splits: HashMap::new(),
            handles: HashMap::new(),
        };
        rank.read_next();
        rank
    }

    /// Reads the next call. Markers are kept aside: they are no calls that ranks wait for.
    fn read_next(&mut self) {
        self.next = self.source.next();
        while let Some(mark) = self.next.take_if(|call| call.function == Function::Marker) {
            self.marks.push(HeldCall { call: mark, awaits_end: false });
            self.next = self.source.next();
        }
    }

    /// Writes the markers before the next call.
    pub(super) fn write_marks(&mut self, spool: &mut Spool, index: usize) -> io::Result<()> {
        for mut mark in std::mem::take(&mut self.marks) {
            self.make_distinct(&mut mark.call);
            self.hold(mark, spool, index)?;
        }
        Ok(())
    }

    fn make_distinct(&mut self, call: &mut Call) {
        if let Some(last) = self.last_begin_ns.filter(|last| call.begin_ns <= *last) {
            call.begin_ns = last + 1;
        }
        call.end_ns = call.end_ns.max(call.begin_ns);
        self.last_begin_ns = Some(call.begin_ns);
    }

    /// Returns the next call. Begin times are made distinct.
    pub(super) fn next_call(&mut self) -> Option<Box<Call>> {
        let mut call = self.next.take()?;
        self.make_distinct(&mut call);
        self.ended_ns = (self.ended_ns.1, self.ended_ns.1.max(call.end_ns));
        call.buffer = call.buffer.map(|address| {
            let first = *self.first_page.get_or_insert(address / PAGE_BYTES * PAGE_BYTES);
            address.wrapping_sub(first)
        });
        self.read_next();
        Some(call)
    }

    /// State of this rank immediately before its current call.
    pub(super) fn readiness_at(&self, begin_ns: u64) -> RankReadiness {
        RankReadiness { ended_ns: self.ended_ns.0, next_begin_ns: Some(begin_ns) }
    }

    /// State of this rank before its next call, which may be the collective one of a file and a communicator.
    pub(super) fn readiness(&self, of: (Option<u32>, u32)) -> RankReadiness {
        let is_it = |call: &&Call| {
            let opened = call.handle.and_then(|handle| self.handles.get(&handle));
            let (file, comm) = opened.map_or((call.file, call.comm), |opened| (opened.file, opened.comm));
            call.function.is_collective() && comm == Some(of.1) && file == of.0
        };
        RankReadiness {
            ended_ns: self.ended_ns.1,
            next_begin_ns: self.next.as_deref().filter(is_it).map(|call| call.begin_ns),
        }
    }

    /// Writes a call as soon as those before it are written. Returns 1 if another one could not be held any longer.
    pub(super) fn hold(&mut self, held: HeldCall, spool: &mut Spool, index: usize) -> io::Result<u64> {
        if self.held.is_empty() && !held.awaits_end {
            self.written_calls += 1;
            return spool.call(index, &held.call).map(|()| 0);
        }
        self.held.push_back(held);
        let mut given_up = 0;
        if self.held.len() > MAX_HELD_CALLS {
            if let Some(first) = self.held.front_mut().filter(|first| first.awaits_end) {
                first.awaits_end = false;
                given_up = 1;
            }
        }
        self.write_ready(spool, index)?;
        Ok(given_up)
    }

    /// Writes the calls that need not be held.
    pub(super) fn write_ready(&mut self, spool: &mut Spool, index: usize) -> io::Result<()> {
        while let Some(held) = self.held.pop_front() {
            if held.awaits_end {
                self.held.push_front(held);
                break;
            }
            self.written_calls += 1;
            spool.call(index, &held.call)?;
        }
        Ok(())
    }

    fn held_mut(&mut self, begun: UnfinishedAccess) -> Option<&mut HeldCall> {
        let place = begun.number.checked_sub(self.written_calls).and_then(|place| usize::try_from(place).ok());
        place.and_then(|place| self.held.get_mut(place))
    }

    /// Sets the bytes of a read, unless they are known, in the call that ended it.
    pub(super) fn set_read_bytes(&mut self, begun: UnfinishedAccess, end_call_ns: u64, bytes: u64) {
        let request = self.held_mut(begun).and_then(|held| held.call.request);
        let Some(ended) = self.held.iter_mut().find(|held| held.call.begin_ns == end_call_ns) else { return };
        match request {
            None => ended.call.bytes = ended.call.bytes.or(Some(bytes)),
            Some(_) => {
                let is_it = |completion: &&mut Completion| Some(completion.request) == request;
                if let Some(completion) = ended.call.completions.iter_mut().find(is_it) {
                    completion.bytes = completion.bytes.or(Some(bytes));
                }
            }
        }
    }

    /// A read has ended: its call is written with its origins. A workload written by hand may contain them.
    pub(super) fn release(&mut self, begun: UnfinishedAccess, from: Vec<OriginRange>) {
        if let Some(held) = self.held_mut(begun) {
            held.awaits_end = false;
            if held.call.from.is_empty() {
                held.call.from = from;
            }
        }
    }
}

/// End of a call that concerned a file as a whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct WholeFileEnd {
    pub(super) file: u32,
    pub(super) comm: Option<u32>,
    /// No other rank takes part in it.
    pub(super) is_independent: bool,
    pub(super) closes: bool,
}

/// Effects of a call at its end.
pub(super) struct CallEnd {
    pub(super) end_ns: u64,
    pub(super) order: u64,
    pub(super) index: usize,
    pub(super) begin_ns: u64,
    pub(super) accesses: Vec<(CallEffect, UnfinishedAccess)>,
    pub(super) whole_file: Option<WholeFileEnd>,
    /// File whose size the call found; 0 if the size is unknown.
    pub(super) found_size: Option<(u32, i64)>,
    /// File and communicator whose shared file pointer the call used.
    pub(super) shared_pointer: Option<(u32, Option<u32>, PointerUse)>,
}

impl CallEnd {
    pub(super) fn new(call: &Call, index: usize) -> Self {
        Self {
            end_ns: call.end_ns,
            order: 0,
            index,
            begin_ns: call.begin_ns,
            accesses: Vec::new(),
            whole_file: None,
            found_size: None,
            shared_pointer: None,
        }
    }

    pub(super) fn has_effect(&self) -> bool {
        !self.accesses.is_empty()
            || self.whole_file.is_some()
            || self.found_size.is_some()
            || self.shared_pointer.is_some()
    }
}

impl PartialEq for CallEnd {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for CallEnd {}
impl PartialOrd for CallEnd {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for CallEnd {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.end_ns, self.order).cmp(&(other.end_ns, other.order))
    }
}
