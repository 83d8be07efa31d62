//! Processes all calls in the order of the common time. An access is recorded when it ends and looked up when another begins, so that every
//! dependency has ended before.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

use super::collectives::CollectiveTracker;
use super::contents::{unknown_origin, WriteCall};
use super::dictionary::CommonDictionary;
use super::files::{
    is_about_whole_file, is_moved_by_libraries, list_ranges, ordering_bytes, write_end_ns, AccessTimes, SweepFile,
    TrackingLimits,
};
use super::history::EndedAccess;
use super::rank::{CallEnd, CallSource, HeldCall, LatestCalls, OpenHandle, SweepRank, UnfinishedAccess, WholeFileEnd};
use super::shared_pointer::PointerUse;
use super::spool::Spool;
use crate::access::{AccessTracker, CallEffect, ResolvedAccess};
use crate::call::{Call, CallId, DataOrigin, OriginRange};
use crate::function::{AccessForm, Direction, Function, Role};
use crate::layout::{ByteRange, TypeLayouts};

pub(super) struct Sweep<'a, S> {
    layouts: &'a TypeLayouts,
    ranks: Vec<SweepRank<'a, S>>,
    pub(super) files: Vec<SweepFile>,
    collectives: CollectiveTracker,
    call_ends: BinaryHeap<Reverse<CallEnd>>,
    sequence: u64,
    spool: &'a mut Spool,
    extents: Vec<ByteRange>,
    /// The calls are a workload written by hand: bytes of reads are derived.
    pub(super) is_handwritten: bool,
    /// Reads that were written before their end.
    pub(super) abandoned_reads: u64,
}

impl<'a, S: CallSource> Sweep<'a, S> {
    /// `sources` are (world rank, calls), in the order of the ranks.
    pub(super) fn new(
        dictionary: &CommonDictionary,
        layouts: &'a TypeLayouts,
        sources: Vec<(u32, S)>,
        spool: &'a mut Spool,
        limits: TrackingLimits,
    ) -> Self {
        let known = |(index, file): (usize, crate::head::OpenedFile)| {
            dictionary.is_size_known(index).then_some(file.size_bytes.unwrap_or(0))
        };
        let files = dictionary.files();
        let current: Vec<bool> = files.iter().map(crate::head::OpenedFile::has_current_size).collect();
        let sizes = files.into_iter().enumerate().map(known).collect();
        let mut sweep = Self::with_files((sizes, dictionary.comms()), layouts, sources, spool, limits);
        for (file, has_current_size) in sweep.files.iter_mut().zip(current) {
            file.has_current_size = has_current_size;
        }
        sweep
    }

    /// The same for files of these sizes (None if unknown) before the first opening.
    pub(super) fn with_files(
        (sizes, comms): (Vec<Option<u64>>, &[Vec<u32>]),
        layouts: &'a TypeLayouts,
        sources: Vec<(u32, S)>,
        spool: &'a mut Spool,
        limits: TrackingLimits,
    ) -> Self {
        let there: Vec<u32> = sources.iter().map(|(world, _)| *world).collect();
        let ranks =
            sources.into_iter().map(|(world, source)| SweepRank::new(world, source, AccessTracker::new(layouts)));
        Self {
            layouts,
            ranks: ranks.collect(),
            files: sizes.into_iter().map(|size| SweepFile::new(size, limits)).collect(),
            collectives: CollectiveTracker::new(comms, |rank| there.contains(&rank)),
            call_ends: BinaryHeap::new(),
            sequence: 0,
            spool,
            extents: Vec::new(),
            is_handwritten: false,
            abandoned_reads: 0,
        }
    }

    /// Processes all calls.
    ///
    /// # Errors
    /// The temporary file cannot be written.
    pub(super) fn run(&mut self) -> io::Result<()> {
        let first =
            |(index, rank): (usize, &SweepRank<'a, S>)| rank.next.as_ref().map(|call| Reverse((call.begin_ns, index)));
        let mut begins: BinaryHeap<_> = self.ranks.iter().enumerate().filter_map(first).collect();
        while let Some(Reverse((_, index))) = begins.pop() {
            let rank = &mut self.ranks[index];
            rank.write_marks(self.spool, index)?;
            let Some(call) = rank.next_call() else { continue };
            if let Some(next) = &rank.next {
                begins.push(Reverse((next.begin_ns.max(call.begin_ns + 1), index)));
            }
            self.end_until(call.begin_ns)?;
            self.begin_call(index, call)?;
            if self.ranks[index].next.is_none() && self.ranks[index].source.is_truncated() {
                self.invalidate_files(index);
            }
        }
        self.end_until(u64::MAX)?;
        for index in 0..self.ranks.len() {
            self.ranks[index].write_marks(self.spool, index)?;
            self.ranks[index].held.iter_mut().for_each(|held| held.awaits_end = false);
            self.ranks[index].write_ready(self.spool, index)?;
        }
        Ok(())
    }

    /// A rank was not recorded: it may have written at any time to files that it opened with others.
    pub(super) fn mark_missing(&mut self, rank: u32, dictionary: &CommonDictionary) {
        for (file, comm) in dictionary.opened_with() {
            let is_in =
                dictionary.comms().get(*comm as usize).is_none_or(|ranks| ranks.is_empty() || ranks.contains(&rank));
            if let Some(state) = self.files.get_mut(*file as usize).filter(|_| is_in) {
                state.invalidate();
            }
        }
    }

    /// The recording of a rank ends here, but not the rank.
    fn invalidate_files(&mut self, index: usize) {
        for opened in self.ranks[index].handles.values() {
            if let Some(file) = opened.file {
                self.files[file as usize].invalidate();
            }
        }
    }

    fn begin_call(&mut self, index: usize, mut call: Box<Call>) -> io::Result<()> {
        self.set_seek_position(index, &mut call);
        self.fail_write(index, &call);
        let placed = self.ranks[index].tracker.resolve(&call);
        let rank = &self.ranks[index];
        let begun = UnfinishedAccess { number: rank.written_calls + rank.held.len() as u64, begin_ns: call.begin_ns };
        let opened = call.handle.and_then(|handle| rank.handles.get(&handle).copied());
        let met = self.begin_collective(index, &mut call, opened);
        let mut ending = CallEnd::new(&call, index);
        let mut found = LatestCalls::default();
        let form = match call.function.role() {
            Role::Data { form, .. } => Some(form),
            _ => None,
        };
        self.use_shared_pointer(&call, opened, &mut found, &mut ending);
        match (placed, form) {
            (CallEffect::NoAccess, None) => self.manage_file(index, &call, opened, &mut found, &mut ending),
            (CallEffect::NoAccess, Some(_)) => {
                if let (Some(AccessForm::End), Some(handle)) = (form, call.handle) {
                    if let Some(begun) = self.ranks[index].splits.remove(&handle) {
                        self.ranks[index].release(begun, Vec::new());
                    }
                }
            }
            (CallEffect::SplitEnd(_) | CallEffect::Unknown { .. }, Some(AccessForm::End)) => {
                let known = call.handle.and_then(|handle| self.ranks[index].splits.remove(&handle));
                ending.accesses.extend(known.map(|begun| (placed, begun)));
            }
            (CallEffect::Access(_) | CallEffect::SplitEnd(_) | CallEffect::Unknown { .. }, _) => {
                self.begin_access(index, &call, placed, form == Some(AccessForm::Blocking), &mut found);
                match form {
                    Some(AccessForm::Nonblocking) => {
                        call.request.and_then(|request| self.ranks[index].requests.insert(request, begun));
                    }
                    Some(AccessForm::Begin) => {
                        call.handle.and_then(|handle| self.ranks[index].splits.insert(handle, begun));
                    }
                    _ => ending.accesses.push((placed, begun)),
                }
            }
        }
        if !self.set_dependencies(index, &mut call, found, &met) {
            self.forget_content(index, &call, placed);
        }
        let ends = form != Some(AccessForm::Nonblocking) || call.request.is_some();
        let waits = ends
            && matches!(placed, CallEffect::Access(access) if access.direction == Direction::Read && access.bytes > 0);
        if ending.has_effect() {
            self.sequence += 1;
            ending.order = self.sequence;
            self.call_ends.push(Reverse(ending));
        }
        let rank = &mut self.ranks[index];
        self.abandoned_reads += rank.hold(HeldCall { call, awaits_end: waits }, self.spool, index)?;
        Ok(())
    }

    /// Notes the begin of a collective call, and whether its ranks synchronized before it. Returns the ranks that have begun it, with their
    /// begin.
    fn begin_collective(&mut self, index: usize, call: &mut Call, opened: Option<OpenHandle>) -> Vec<(u32, u64)> {
        let (file, comm) = opened.map_or((call.file, call.comm), |opened| (opened.file, opened.comm));
        let Some(comm) = comm.filter(|_| call.function.is_collective()) else { return Vec::new() };
        let ranks = &self.ranks;
        let world = ranks[index].world_rank;
        let ready = |peer: u32| {
            let at = ranks.binary_search_by_key(&peer, |rank| rank.world_rank).ok()?;
            Some(if at == index { ranks[at].readiness_at(call.begin_ns) } else { ranks[at].readiness((file, comm)) })
        };
        let met = self.collectives.begun_by_others(world, (file, comm)).to_vec();
        let since_barrier_ns = self.collectives.begin(world, (file, comm), call.begin_ns, ready);
        if !self.is_handwritten {
            call.since_barrier_ns = since_barrier_ns;
        }
        met
    }

    /// A failed write may have written any of its bytes, as on a full disk.
    fn fail_write(&mut self, index: usize, call: &Call) {
        let is_write = call.function.direction() == Some(Direction::Write);
        if !is_write || call.error.is_none() {
            return;
        }
        let tried = Call { error: None, bytes: Some(0), request: None, ..call.clone() };
        let rank = &self.ranks[index];
        let CallEffect::Access(access) = rank.tracker.clone().resolve(&tried) else { return };
        let writer = WriteCall { rank: rank.world_rank, begin_ns: call.begin_ns, until_ns: call.end_ns };
        if let Some(file) = access.file.and_then(|file| self.files.get_mut(file as usize)) {
            let access = ResolvedAccess { bytes: 0, ..access };
            file.write_unknown(&access, self.layouts, &mut self.extents, writer);
        }
    }

    /// A seek to the end of the file without its result: the position follows from the size at that time.
    fn set_seek_position(&self, index: usize, call: &mut Call) {
        let rank = &self.ranks[index];
        let opened = call.handle.and_then(|handle| rank.handles.get(&handle)).and_then(|opened| opened.file);
        let is_open = call.function == Function::Open;
        let file = if is_open { call.file } else { opened };
        let size = file.and_then(|file| self.files.get(file as usize)?.size.bytes());
        let appends = is_open && call.amode.is_some_and(|amode| amode.has("append"));
        match (call.number.or(call.error.map(|_| 0)), size) {
            (None, Some(size)) if appends => call.number = i64::try_from(size).ok(),
            (None, Some(size)) if call.function == Function::Seek => {
                call.number = rank.tracker.end_position(call, size)
            }
            _ => {}
        }
    }

    /// Finds the calls that a call at the shared file pointer depends on.
    fn use_shared_pointer(
        &self,
        call: &Call,
        opened: Option<OpenHandle>,
        found: &mut LatestCalls,
        ending: &mut CallEnd,
    ) {
        let Some(pointer_use) = PointerUse::of(call) else { return };
        let Some(OpenHandle { file: Some(id), comm, .. }) = opened else { return };
        let Some(file) = self.files.get(id as usize) else { return };
        if call.function == Function::SetView && file.shared_pointer.is_unused() {
            return;
        }
        file.shared_pointer.visit(pointer_use, comm, |touch| found.add(touch));
        ending.shared_pointer = Some((id, comm, pointer_use));
    }

    /// Begins an access: finds its dependencies and applies its effect on the file.
    fn begin_access(
        &mut self,
        index: usize,
        call: &Call,
        placed: CallEffect,
        is_blocking: bool,
        found: &mut LatestCalls,
    ) {
        let rank = &self.ranks[index];
        let world = rank.world_rank;
        let mut visit = |touch: EndedAccess| found.add(touch);
        let is_member = |comm: Option<u32>| self.collectives.is_member(comm, world);
        match placed {
            CallEffect::Access(access) | CallEffect::SplitEnd(access) => {
                let Some(file) = access.file.and_then(|file| self.files.get_mut(file as usize)) else { return };
                let writes = access.direction == Direction::Write;
                let bytes = if writes { access.bytes } else { ordering_bytes(&access, self.layouts) };
                list_ranges(&access, self.layouts, bytes, &mut self.extents);
                file.visit_conflicts(&self.extents, writes, is_member, &mut visit);
                file.visit_size_calls(&access, self.layouts, &self.extents, &mut visit);
                if writes {
                    let writer =
                        WriteCall { rank: world, begin_ns: call.begin_ns, until_ns: write_end_ns(call, is_blocking) };
                    let key = rank.handles.get(&access.handle).and_then(|opened| Some((opened.file, opened.comm?)));
                    let key = key.filter(|_| call.function.is_collective());
                    file.contents.collective_since_ns = key.and_then(|key| self.collectives.first_begin_ns(world, key));
                    file.write(&access, self.layouts, &self.extents, writer);
                    file.contents.collective_since_ns = None;
                    if is_blocking {
                        file.write_unknown(&access, self.layouts, &mut self.extents, writer);
                    }
                }
            }
            CallEffect::Unknown { file: Some(file), direction, .. } => {
                let Some(file) = self.files.get_mut(file as usize) else { return };
                file.visit_whole_file_calls(is_member, &mut visit);
                // Accesses at the shared file pointer have their own order.
                file.visit_latest(PointerUse::of(call).is_none(), &mut visit);
                if direction == Direction::Write {
                    file.size_calls.visit_observations(i64::MAX, &mut visit);
                }
                file.begin_unplaced(direction == Direction::Write, is_blocking.then_some(call.end_ns));
            }
            _ => {}
        }
    }

    /// Sets the dependencies, except those implied by earlier ones. False if one cannot be kept, because of a collective call that this
    /// rank begins later than the other, or now (`met`: the ranks that have begun it).
    fn set_dependencies(&mut self, index: usize, call: &mut Call, found: LatestCalls, met: &[(u32, u64)]) -> bool {
        let mut is_kept = true;
        let rank = &mut self.ranks[index];
        for (peer, begin_ns) in found.latest() {
            let is_given = call.after.iter().any(|after| after.rank == peer);
            let is_new = peer != rank.world_rank
                && !is_given
                && rank.waited_for.get(&peer).is_none_or(|waited| *waited < begin_ns);
            if !is_new {
                continue;
            }
            let is_behind = met.iter().any(|(one, since_ns)| *one == peer && *since_ns <= begin_ns);
            if is_behind || !self.collectives.may_wait(rank.world_rank, peer, begin_ns) {
                is_kept = false;
                continue;
            }
            rank.waited_for.insert(peer, begin_ns);
            call.after.push(CallId { rank: peer, begin_ns });
        }
        is_kept
    }

    /// A replay cannot keep the recorded order of an access: what it reads or leaves is unknown.
    fn forget_content(&mut self, index: usize, call: &Call, placed: CallEffect) {
        let CallEffect::Access(access) = placed else { return };
        if access.direction == Direction::Read {
            self.ranks[index].unordered_reads.insert(call.begin_ns);
            return;
        }
        let Some(file) = access.file.and_then(|file| self.files.get_mut(file as usize)) else { return };
        let is_blocking = matches!(call.function.role(), Role::Data { form: AccessForm::Blocking, .. });
        let until_ns = write_end_ns(call, is_blocking);
        let writer = WriteCall { rank: self.ranks[index].world_rank, begin_ns: call.begin_ns, until_ns };
        file.write_unknown_from(0, &access, self.layouts, &mut self.extents, writer);
    }

    /// Ends the accesses of completed or freed requests.
    fn end_requests(&mut self, index: usize, call: &Call, ending: &mut CallEnd) {
        let rank = &mut self.ranks[index];
        for completion in &call.completions {
            let begun = rank.requests.remove(&completion.request);
            ending.accesses.extend(rank.tracker.complete(completion).zip(begun));
        }
        let is_free = call.function == Function::RequestFree && call.error.is_none();
        for request in call.requests.iter().filter(|_| is_free) {
            rank.tracker.forget(*request);
            if let Some(begun) = rank.requests.remove(request) {
                rank.release(begun, Vec::new());
            }
        }
    }

    /// Processes a call that moves no data itself.
    fn manage_file(
        &mut self,
        index: usize,
        call: &Call,
        opened: Option<OpenHandle>,
        found: &mut LatestCalls,
        ending: &mut CallEnd,
    ) {
        self.end_requests(index, call, ending);
        let rank = &mut self.ranks[index];
        let is_whole = is_about_whole_file(call.function);
        let asks_end = matches!(call.function, Function::Seek | Function::SeekShared)
            && call.whence == Some(crate::names::Whence::End);
        if !is_whole && !asks_end {
            return;
        }
        let new = OpenHandle {
            file: call.file,
            comm: call.comm,
            deletes_on_close: call.amode.is_some_and(|amode| amode.has("delete_on_close")),
        };
        let about = if call.function == Function::Open { Some(new) } else { opened };
        let Some(id) = about.map_or(call.file, |about| about.file) else { return };
        let Some(file) = self.files.get_mut(id as usize) else { return };
        let world = rank.world_rank;
        let is_member = |comm: Option<u32>| self.collectives.is_member(comm, world);
        // Sizes and contents change for all ranks; opening, closing and syncing matters only to ranks outside the communicator.
        let for_all = !matches!(call.function, Function::Open | Function::Close | Function::Sync);
        let mine = about.and_then(|about| about.comm);
        let mut visit = |touch: EndedAccess| found.add(touch);
        file.visit_whole_file_calls(is_member, &mut visit);
        file.visit_latest(true, |touch| {
            if for_all || !self.collectives.is_member(mine, touch.rank) {
                visit(touch);
            }
        });
        if matches!(call.function, Function::SetSize | Function::Preallocate) {
            file.size_calls.visit_observations(i64::MAX, &mut visit);
        }
        if is_whole && call.function != Function::GetSize {
            // A failed call, too: later calls must not change its result.
            ending.whole_file = Some(WholeFileEnd {
                file: id,
                comm: mine,
                // A deletion belongs to no communicator.
                is_independent: call.function == Function::Delete,
                closes: call.function == Function::Close && call.error.is_none(),
            });
        }
        if call.function == Function::Open {
            file.open(call, world, self.collectives.is_first(call.comm, world));
        }
        file.apply_management(call, world, opened.is_some_and(|opened| opened.deletes_on_close));
        if call.error.is_none() {
            if asks_end || call.function == Function::GetSize {
                ending.found_size = Some((id, call.number.filter(|_| !asks_end).unwrap_or(0)));
            }
            match (call.function, call.handle) {
                (Function::Open, Some(handle)) => drop(rank.handles.insert(handle, new)),
                (Function::Close, Some(handle)) => drop(rank.handles.remove(&handle)),
                _ => {}
            }
        }
    }

    /// Processes the ends of all calls that ended before a time.
    fn end_until(&mut self, now_ns: u64) -> io::Result<()> {
        while self.call_ends.peek().is_some_and(|Reverse(ending)| ending.end_ns < now_ns) {
            let Some(Reverse(ending)) = self.call_ends.pop() else { break };
            let index = ending.index;
            for (placed, begun) in &ending.accesses {
                self.end_access(&ending, *placed, *begun);
            }
            let world = self.ranks[index].world_rank;
            if let Some(whole) = ending.whole_file {
                self.files[whole.file as usize].end_whole_file_call(world, ending.begin_ns, whole);
            }
            if let Some((id, bytes)) = ending.found_size {
                self.files[id as usize].size_calls.record_observation(bytes, world, ending.begin_ns);
            }
            if let Some((id, comm, pointer_use)) = ending.shared_pointer {
                let times = [ending.begin_ns, ending.end_ns];
                self.files[id as usize].shared_pointer.record(world, times, pointer_use, comm);
            }
            self.ranks[index].write_ready(self.spool, index)?;
        }
        Ok(())
    }

    fn end_access(&mut self, ending: &CallEnd, placed: CallEffect, begun: UnfinishedAccess) {
        let world = self.ranks[ending.index].world_rank;
        let times = AccessTimes { begin_ns: begun.begin_ns, call_ns: ending.begin_ns, end_ns: ending.end_ns };
        match placed {
            CallEffect::Access(access) | CallEffect::SplitEnd(access) => {
                let known = access.file.and_then(|file| self.files.get_mut(file as usize));
                let is_known = !self.ranks[ending.index].unordered_reads.remove(&begun.begin_ns)
                    && !is_moved_by_libraries(&access, self.layouts);
                let from = match known {
                    Some(file) if !is_known => {
                        file.end_access(&access, self.layouts, &mut self.extents, world, times);
                        unknown_origin(access.bytes)
                    }
                    Some(file) => file.end_access(&access, self.layouts, &mut self.extents, world, times),
                    None => unknown_origin(access.bytes),
                };
                if access.direction == Direction::Read {
                    let rank = &mut self.ranks[ending.index];
                    if self.is_handwritten && ends_in_known_data(&from) {
                        rank.set_read_bytes(begun, ending.begin_ns, access.bytes);
                    }
                    rank.release(begun, from);
                }
            }
            CallEffect::Unknown { file: Some(file), direction, .. } => {
                let touch =
                    EndedAccess { rank: world, writes: direction == Direction::Write, begin_ns: ending.begin_ns };
                if let Some(file) = self.files.get_mut(file as usize) {
                    file.end_unplaced(touch, times.begin_ns != times.call_ns, ending.end_ns);
                }
            }
            _ => {}
        }
    }
}

/// True if the file was at least as long as the end of a read.
fn ends_in_known_data(from: &[OriginRange]) -> bool {
    from.last().is_some_and(|last| matches!(last.origin, DataOrigin::Call { .. } | DataOrigin::File))
}
