//! All calls in the order of the common time. An access is entered when it has ended and looked up when one begins, so that every
//! call that is waited for had ended before.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

use super::common::Dictionary;
use super::content::Writer;
use super::files::{concerned, places, until_ns, FileState, Limits, Times};
use super::rank::{Begun, Ending, Found, Held, Opened, Rank, Source};
use super::spool::Spool;
use super::together::Together;
use super::touched::Touch;
use crate::call::{After, Call, Content, Origin};
use crate::function::{Direction, Form, Function, Role};
use crate::layout::{Extent, Layouts};
use crate::places::{Access, Placed, Tracker};

/// The sweep.
pub(super) struct Sweep<'a, S> {
    layouts: &'a Layouts,
    ranks: Vec<Rank<'a, S>>,
    pub(super) files: Vec<FileState>,
    together: Together,
    endings: BinaryHeap<Reverse<Ending>>,
    order: u64,
    spool: &'a mut Spool,
    extents: Vec<Extent>,
    /// Reads that were written before they had ended.
    pub(super) given_up: u64,
}

impl<'a, S: Source> Sweep<'a, S> {
    /// `sources` are (world rank, calls), in the order of the ranks.
    pub(super) fn new(
        dictionary: &Dictionary,
        layouts: &'a Layouts,
        sources: Vec<(u32, S)>,
        spool: &'a mut Spool,
        limits: Limits,
    ) -> Self {
        let there: Vec<u32> = sources.iter().map(|(world, _)| *world).collect();
        let known = |(index, file): (usize, crate::head::OpenedFile)| {
            FileState::new(dictionary.is_size_known(index).then_some(file.size_bytes.unwrap_or(0)), limits)
        };
        let ranks = sources.into_iter().map(|(world, source)| Rank::new(world, source, Tracker::new(layouts)));
        Self {
            layouts,
            ranks: ranks.collect(),
            files: dictionary.files().into_iter().enumerate().map(known).collect(),
            together: Together::new(dictionary.comms(), |rank| there.contains(&rank)),
            endings: BinaryHeap::new(),
            order: 0,
            spool,
            extents: Vec::new(),
            given_up: 0,
        }
    }

    /// Runs through all calls.
    ///
    /// # Errors
    /// The temporary file cannot be written.
    pub(super) fn run(&mut self) -> io::Result<()> {
        let first =
            |(index, rank): (usize, &Rank<'a, S>)| rank.next.as_ref().map(|call| Reverse((call.begin_ns, index)));
        let mut begins: BinaryHeap<_> = self.ranks.iter().enumerate().filter_map(first).collect();
        while let Some(Reverse((_, index))) = begins.pop() {
            let rank = &mut self.ranks[index];
            let Some(call) = rank.take() else { continue };
            if let Some(next) = &rank.next {
                begins.push(Reverse((next.begin_ns.max(call.begin_ns + 1), index)));
            }
            self.end_until(call.begin_ns)?;
            self.begin(index, call)?;
            if self.ranks[index].next.is_none() && self.ranks[index].source.is_cut() {
                self.lose_track(index);
            }
        }
        self.end_until(u64::MAX)?;
        for index in 0..self.ranks.len() {
            self.ranks[index].held.iter_mut().for_each(|held| held.waits = false);
            self.ranks[index].write_ready(self.spool, index)?;
        }
        Ok(())
    }

    /// A rank was not recorded: it may have written to what it opened with others, at any time.
    pub(super) fn miss(&mut self, rank: u32, dictionary: &Dictionary) {
        for (file, comm) in dictionary.opened_with() {
            let is_in =
                dictionary.comms().get(*comm as usize).is_none_or(|ranks| ranks.is_empty() || ranks.contains(&rank));
            if let Some(state) = self.files.get_mut(*file as usize).filter(|_| is_in) {
                state.lose_track();
            }
        }
    }

    /// The record of a rank ends here, but not the rank.
    fn lose_track(&mut self, index: usize) {
        for opened in self.ranks[index].opened.values() {
            if let Some(file) = opened.file {
                self.files[file as usize].lose_track();
            }
        }
    }

    fn begin(&mut self, index: usize, mut call: Box<Call>) -> io::Result<()> {
        let placed = self.ranks[index].tracker.place(&call);
        let rank = &mut self.ranks[index];
        let world = rank.world;
        let begun = Begun { number: rank.written + rank.held.len() as u64, begun_ns: call.begin_ns };
        let opened = call.handle.and_then(|handle| rank.opened.get(&handle).copied());
        if call.function.is_collective() {
            let (file, comm) = opened.map_or((call.file, call.comm), |opened| (opened.file, opened.comm));
            if let Some(comm) = comm {
                let ranks = &self.ranks;
                let ready = |peer: u32| {
                    let at = ranks.binary_search_by_key(&peer, |rank| rank.world).ok()?;
                    Some(if at == index { ranks[at].began(call.begin_ns) } else { ranks[at].ready((file, comm)) })
                };
                call.met_ns = self.together.begin(world, (file, comm), call.begin_ns, ready);
            }
        }
        let mut ending =
            Ending { end_ns: call.end_ns, order: 0, index, begin_ns: call.begin_ns, accesses: Vec::new(), whole: None };
        let form = match call.function.role() {
            Role::Data { form, .. } => Some(form),
            _ => None,
        };
        match (placed, form) {
            (Placed::Nothing, None) => self.manage(index, &mut call, opened, &mut ending),
            (Placed::Nothing, Some(_)) => {
                if let (Some(Form::End), Some(handle)) = (form, call.handle) {
                    if let Some(begun) = self.ranks[index].splits.remove(&handle) {
                        self.ranks[index].release(begun, Vec::new());
                    }
                }
            }
            (Placed::Ends(_) | Placed::Unknown { .. }, Some(Form::End)) => {
                let known = call.handle.and_then(|handle| self.ranks[index].splits.remove(&handle));
                ending.accesses.extend(known.map(|begun| (placed, begun)));
            }
            (Placed::Data(_) | Placed::Ends(_) | Placed::Unknown { .. }, _) => {
                self.begin_access(index, &mut call, placed, form == Some(Form::Blocking));
                match form {
                    Some(Form::Nonblocking) => {
                        call.request.and_then(|request| self.ranks[index].requests.insert(request, begun));
                    }
                    Some(Form::Begin) => {
                        call.handle.and_then(|handle| self.ranks[index].splits.insert(handle, begun));
                    }
                    _ => ending.accesses.push((placed, begun)),
                }
            }
        }
        let ends = form != Some(Form::Nonblocking) || call.request.is_some();
        let waits =
            ends && matches!(placed, Placed::Data(access) if access.direction == Direction::Read && access.bytes > 0);
        if !ending.accesses.is_empty() || ending.whole.is_some() {
            self.order += 1;
            ending.order = self.order;
            self.endings.push(Reverse(ending));
        }
        let rank = &mut self.ranks[index];
        self.given_up += rank.hold(Held { call, waits }, self.spool, index)?;
        Ok(())
    }

    /// An access begins: what it waits for, and what it leaves in the file.
    fn begin_access(&mut self, index: usize, call: &mut Call, placed: Placed, is_blocking: bool) {
        let world = self.ranks[index].world;
        let mut found = Found::default();
        let mut tell = |touch: Touch| found.add(touch);
        let is_member = |comm: Option<u32>| self.together.is_member(comm, world);
        match placed {
            Placed::Data(access) | Placed::Ends(access) => {
                let Some(file) = access.file.and_then(|file| self.files.get_mut(file as usize)) else { return };
                let writes = access.direction == Direction::Write;
                let bytes = if writes { access.bytes } else { concerned(&access, self.layouts) };
                places(&access, self.layouts, bytes, &mut self.extents);
                file.look(&self.extents, writes, is_member, &mut tell);
                if writes {
                    let writer = Writer { rank: world, begin_ns: call.begin_ns, until_ns: until_ns(call, is_blocking) };
                    file.write(&access, self.layouts, &self.extents, writer);
                }
            }
            Placed::Unknown { file: Some(file), direction, .. } => {
                let Some(file) = self.files.get_mut(file as usize) else { return };
                file.look_whole(is_member, &mut tell);
                file.look_anywhere(false, &mut tell);
                file.stray(direction == Direction::Write, is_blocking.then_some(call.end_ns));
            }
            _ => return,
        }
        self.set_after(index, call, found);
    }

    /// Names the calls to wait for, except those that an earlier wait implies.
    fn set_after(&mut self, index: usize, call: &mut Call, found: Found) {
        let rank = &mut self.ranks[index];
        for (peer, begin_ns) in found.latest() {
            let is_new = peer != rank.world && rank.waited.get(&peer).is_none_or(|waited| *waited < begin_ns);
            if is_new && self.together.may_wait(rank.world, peer, begin_ns) {
                rank.waited.insert(peer, begin_ns);
                call.after.push(After { rank: peer, begin_ns });
            }
        }
    }

    /// A call that moves no data itself.
    fn manage(&mut self, index: usize, call: &mut Call, opened: Option<Opened>, ending: &mut Ending) {
        let rank = &mut self.ranks[index];
        for completion in &call.completions {
            let begun = rank.requests.remove(&completion.request);
            ending.accesses.extend(rank.tracker.completed(completion).zip(begun));
        }
        if call.function == Function::RequestFree && call.error.is_none() {
            for request in &call.requests {
                let rank = &mut self.ranks[index];
                rank.tracker.forget(*request);
                if let Some(begun) = rank.requests.remove(request) {
                    self.ranks[index].release(begun, Vec::new());
                }
            }
            return;
        }
        let rank = &mut self.ranks[index];
        let is_whole = is_about_whole_file(call.function);
        let asks_end = call.function == Function::Seek && call.whence == Some(crate::names::Whence::End);
        if !is_whole && !asks_end {
            return;
        }
        let new = Opened {
            file: call.file,
            comm: call.comm,
            deletes: call.amode.is_some_and(|amode| amode.has("delete_on_close")),
        };
        let about = if call.function == Function::Open { Some(new) } else { opened };
        let Some(id) = about.map_or(call.file, |about| about.file) else { return };
        let Some(file) = self.files.get_mut(id as usize) else { return };
        let world = rank.world;
        let mut found = Found::default();
        let is_member = |comm: Option<u32>| self.together.is_member(comm, world);
        // Sizes and contents change for all; that others open, close or sync matters to those outside.
        let for_all = !matches!(call.function, Function::Open | Function::Close | Function::Sync);
        let mine = about.and_then(|about| about.comm);
        let mut tell = |touch: Touch| found.add(touch);
        file.look_whole(is_member, &mut tell);
        file.look_anywhere(true, |touch| {
            if for_all || !self.together.is_member(mine, touch.rank) {
                tell(touch);
            }
        });
        if call.error.is_none() {
            file.manage(call, world, opened.is_some_and(|opened| opened.deletes));
            if is_whole && call.function != Function::GetSize {
                ending.whole = Some((id, mine, call.function));
            }
            match (call.function, call.handle) {
                (Function::Open, Some(handle)) => {
                    if let Some(size) = call.number.and_then(|number| u64::try_from(number).ok()) {
                        file.contents.found(size);
                    }
                    file.open += 1;
                    rank.opened.insert(handle, new);
                }
                (Function::Close, Some(handle)) => drop(rank.opened.remove(&handle)),
                _ => {}
            }
        }
        self.set_after(index, call, found);
    }

    /// Ends all calls that had ended before a time.
    fn end_until(&mut self, now_ns: u64) -> io::Result<()> {
        while self.endings.peek().is_some_and(|Reverse(ending)| ending.end_ns < now_ns) {
            let Some(Reverse(ending)) = self.endings.pop() else { break };
            let index = ending.index;
            for (placed, begun) in &ending.accesses {
                self.end_access(&ending, *placed, *begun);
            }
            if let Some((id, comm, function)) = ending.whole {
                let world = self.ranks[index].world;
                let file = &mut self.files[id as usize];
                // A deletion belongs to no communicator: nobody takes part in it.
                file.enter_whole(world, ending.begin_ns, comm, function == Function::Delete);
                if function == Function::Close {
                    file.open = file.open.saturating_sub(1);
                }
            }
            self.ranks[index].write_ready(self.spool, index)?;
        }
        Ok(())
    }

    fn end_access(&mut self, ending: &Ending, placed: Placed, begun: Begun) {
        let world = self.ranks[ending.index].world;
        let times = Times { begun_ns: begun.begun_ns, call_ns: ending.begin_ns, end_ns: ending.end_ns };
        match placed {
            Placed::Data(access) | Placed::Ends(access) => {
                let known = access.file.and_then(|file| self.files.get_mut(file as usize));
                let from = match known {
                    Some(file) => file.ended(&access, self.layouts, &mut self.extents, world, times),
                    None => unknown(&access),
                };
                if access.direction == Direction::Read {
                    self.ranks[ending.index].release(begun, from);
                }
            }
            Placed::Unknown { file: Some(file), direction, .. } => {
                let touch = Touch { rank: world, writes: direction == Direction::Write, begin_ns: ending.begin_ns };
                if let Some(file) = self.files.get_mut(file as usize) {
                    file.stray_ended(touch, times.begun_ns != times.call_ns, ending.end_ns);
                }
            }
            _ => {}
        }
    }
}

fn unknown(access: &Access) -> Vec<Origin> {
    let all = Origin { bytes: access.bytes, content: Content::Unknown };
    if access.bytes > 0 {
        vec![all]
    } else {
        Vec::new()
    }
}

/// True if a call is about the whole file: its name, its size, or all of its data.
fn is_about_whole_file(function: Function) -> bool {
    matches!(
        function,
        Function::Open
            | Function::Close
            | Function::Delete
            | Function::Sync
            | Function::SetSize
            | Function::Preallocate
            | Function::GetSize
    )
}
