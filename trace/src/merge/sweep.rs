//! All calls in the order of the common time. An access is entered when it has ended and looked up when one begins, so that every
//! call that is waited for had ended before.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::io;

use super::common::Dictionary;
use super::content::Writer;
use super::files::{FileState, Limits, Times, concerned, places, until_ns};
use super::spool::Spool;
use super::together::Together;
use super::touched::Touch;
use crate::call::{After, Call, Content, Origin};
use crate::function::{Direction, Form, Function, Role};
use crate::layout::{Extent, Layouts};
use crate::places::{Access, Placed, Tracker};

/// Calls of a rank that are held back until a read among them has ended; then it is written without its origin.
pub(super) const MOST_HELD: usize = 1 << 16;

/// A source of the calls of one rank, in the order of their begin.
pub(super) trait Source {
    /// The next call with common numbers and times.
    fn next(&mut self) -> Option<Box<Call>>;

    /// True if later calls may be missing.
    fn is_cut(&self) -> bool;
}

/// The latest call of each rank among those to wait for.
#[derive(Default)]
struct Found(Vec<(u32, u64)>);

impl Found {
    fn add(&mut self, touch: Touch) {
        // The last one found is often of the same rank.
        match self.0.last_mut() {
            Some((rank, known)) if *rank == touch.rank => *known = touch.begin_ns.max(*known),
            _ => self.0.push((touch.rank, touch.begin_ns)),
        }
    }

    /// One for each rank.
    fn latest(mut self) -> Vec<(u32, u64)> {
        self.0.sort_unstable_by(|one, other| (one.0, other.1).cmp(&(other.0, one.1)));
        self.0.dedup_by_key(|(rank, _)| *rank);
        self.0
    }
}

/// A call that waits to be written.
struct Held {
    call: Box<Call>,
    waits: bool,
}

/// An access that was begun by a call, and ends with another one.
#[derive(Clone, Copy, Debug)]
struct Begun {
    /// Number of the call that began it.
    number: u64,
    begun_ns: u64,
}

/// An opening.
#[derive(Clone, Copy, Debug)]
struct Opened {
    file: Option<u32>,
    comm: Option<u32>,
    deletes: bool,
}

struct Rank<'a, S> {
    world: u32,
    source: S,
    tracker: Tracker<'a>,
    next: Option<Box<Call>>,
    last_begin_ns: Option<u64>,
    held: VecDeque<Held>,
    /// Calls that were written: the number of the first that is held.
    written: u64,
    waited: HashMap<u32, u64>,
    requests: HashMap<u64, Begun>,
    splits: HashMap<u32, Begun>,
    opened: HashMap<u32, Opened>,
}

/// What a call does when it has ended.
struct Ending {
    end_ns: u64,
    order: u64,
    index: usize,
    begin_ns: u64,
    accesses: Vec<(Placed, Begun)>,
    whole: Option<(u32, Option<u32>, Function)>,
}

impl PartialEq for Ending {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Ending {}
impl PartialOrd for Ending {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Ending {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.end_ns, self.order).cmp(&(other.end_ns, other.order))
    }
}

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
    most_held: usize,
}

impl<'a, S: Source> Sweep<'a, S> {
    /// `sources` are (world rank, calls).
    pub(super) fn new(dictionary: &Dictionary, layouts: &'a Layouts, sources: Vec<(u32, S)>, spool: &'a mut Spool, limits: Limits) -> Self {
        let there: Vec<u32> = sources.iter().map(|(world, _)| *world).collect();
        let known = |(index, file): (usize, crate::head::OpenedFile)| {
            FileState::new(dictionary.is_size_known(index).then_some(file.size_bytes.unwrap_or(0)), limits)
        };
        let ranks = sources.into_iter().map(|(world, mut source)| Rank {
            world,
            next: source.next(),
            source,
            tracker: Tracker::new(layouts),
            last_begin_ns: None,
            held: VecDeque::new(),
            written: 0,
            waited: HashMap::new(),
            requests: HashMap::new(),
            splits: HashMap::new(),
            opened: HashMap::new(),
        });
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
            most_held: MOST_HELD,
        }
    }

    /// Runs through all calls.
    ///
    /// # Errors
    /// The temporary file cannot be written.
    pub(super) fn run(&mut self) -> io::Result<()> {
        let first = |(index, rank): (usize, &Rank<'a, S>)| rank.next.as_ref().map(|call| Reverse((call.begin_ns, index)));
        let mut begins: BinaryHeap<_> = self.ranks.iter().enumerate().filter_map(first).collect();
        while let Some(Reverse((_, index))) = begins.pop() {
            let Some(mut call) = self.ranks[index].next.take() else { continue };
            let rank = &mut self.ranks[index];
            if let Some(last) = rank.last_begin_ns.filter(|last| call.begin_ns <= *last) {
                call.begin_ns = last + 1;
            }
            call.end_ns = call.end_ns.max(call.begin_ns);
            rank.last_begin_ns = Some(call.begin_ns);
            rank.next = rank.source.next();
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
            self.write_ready(index)?;
        }
        Ok(())
    }

    /// A rank was not recorded: it may have written to what it opened with others, at any time.
    pub(super) fn miss(&mut self, rank: u32, dictionary: &Dictionary) {
        for (file, comm) in dictionary.opened_with() {
            let is_in = dictionary.comms().get(*comm as usize).is_none_or(|ranks| ranks.is_empty() || ranks.contains(&rank));
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
                self.together.begin(world, file, comm, call.begin_ns);
            }
        }
        let mut ending = Ending {
            end_ns: call.end_ns,
            order: 0,
            index,
            begin_ns: call.begin_ns,
            accesses: Vec::new(),
            whole: None,
        };
        let form = match call.function.role() {
            Role::Data { form, .. } => Some(form),
            _ => None,
        };
        match (placed, form) {
            (Placed::Nothing, None) => self.manage(index, &mut call, opened, &mut ending),
            (Placed::Nothing, Some(_)) => {
                if let (Some(Form::End), Some(handle)) = (form, call.handle) {
                    if let Some(begun) = self.ranks[index].splits.remove(&handle) {
                        self.release(index, begun, Vec::new());
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
        let waits = ends && matches!(placed, Placed::Data(access) if access.direction == Direction::Read && access.bytes > 0);
        if !ending.accesses.is_empty() || ending.whole.is_some() {
            self.order += 1;
            ending.order = self.order;
            self.endings.push(Reverse(ending));
        }
        self.hold(index, Held { call, waits })
    }

    /// Writes a call as soon as those before it are written.
    fn hold(&mut self, index: usize, held: Held) -> io::Result<()> {
        let rank = &mut self.ranks[index];
        if rank.held.is_empty() && !held.waits {
            rank.written += 1;
            return self.spool.call(index, &held.call);
        }
        rank.held.push_back(held);
        if rank.held.len() > self.most_held {
            if let Some(first) = rank.held.front_mut().filter(|first| first.waits) {
                first.waits = false;
                self.given_up += 1;
            }
        }
        self.write_ready(index)
    }

    fn write_ready(&mut self, index: usize) -> io::Result<()> {
        let rank = &mut self.ranks[index];
        while let Some(held) = rank.held.pop_front() {
            if held.waits {
                rank.held.push_front(held);
                break;
            }
            rank.written += 1;
            self.spool.call(index, &held.call)?;
        }
        Ok(())
    }

    /// A read has ended: its call can be written, with what it has seen.
    fn release(&mut self, index: usize, begun: Begun, from: Vec<Origin>) {
        let rank = &mut self.ranks[index];
        let place = begun.number.checked_sub(rank.written).and_then(|place| usize::try_from(place).ok());
        if let Some(held) = place.and_then(|place| rank.held.get_mut(place)) {
            held.waits = false;
            held.call.from = from;
        }
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
                    self.release(index, begun, Vec::new());
                }
            }
            return;
        }
        let rank = &mut self.ranks[index];
        let is_whole = matches!(
            call.function,
            Function::Open | Function::Close | Function::Delete | Function::Sync | Function::SetSize | Function::Preallocate | Function::GetSize
        );
        let asks_end = call.function == Function::Seek && call.whence == Some(crate::names::Whence::End);
        if !is_whole && !asks_end {
            return;
        }
        let new = Opened { file: call.file, comm: call.comm, deletes: call.amode.is_some_and(|amode| amode.has("delete_on_close")) };
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
            self.write_ready(index)?;
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
                    self.release(ending.index, begun, from);
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
    if access.bytes > 0 { vec![all] } else { Vec::new() }
}
