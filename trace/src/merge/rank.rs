//! One rank in the sweep: its calls, those that are held back, and what is under way.

use std::collections::{HashMap, VecDeque};
use std::io;

use super::spool::Spool;
use super::together::Ready;
use super::touched::Touch;
use crate::call::{Call, Origin, PAGE_BYTES};
use crate::function::Function;
use crate::places::{Placed, Tracker};

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
pub(super) struct Found(Vec<(u32, u64)>);

impl Found {
    pub(super) fn add(&mut self, touch: Touch) {
        // The last one found is often of the same rank.
        match self.0.last_mut() {
            Some((rank, known)) if *rank == touch.rank => *known = touch.begin_ns.max(*known),
            _ => self.0.push((touch.rank, touch.begin_ns)),
        }
    }

    /// One for each rank.
    pub(super) fn latest(mut self) -> Vec<(u32, u64)> {
        self.0.sort_unstable_by(|one, other| (one.0, other.1).cmp(&(other.0, one.1)));
        self.0.dedup_by_key(|(rank, _)| *rank);
        self.0
    }
}

/// A call that waits to be written.
pub(super) struct Held {
    pub(super) call: Box<Call>,
    pub(super) waits: bool,
}

/// An access that was begun by a call, and ends with another one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begun {
    /// Number of the call that began it.
    pub(super) number: u64,
    pub(super) begun_ns: u64,
}

/// An opening.
#[derive(Clone, Copy, Debug)]
pub(super) struct Opened {
    pub(super) file: Option<u32>,
    pub(super) comm: Option<u32>,
    pub(super) deletes: bool,
}

pub(super) struct Rank<'a, S> {
    pub(super) world: u32,
    pub(super) source: S,
    pub(super) tracker: Tracker<'a>,
    pub(super) next: Option<Box<Call>>,
    pub(super) last_begin_ns: Option<u64>,
    /// End of the calls that were taken, without and with the last of them.
    ended_ns: (u64, u64),
    /// Page of the memory of the first access.
    first_page: Option<i64>,
    pub(super) held: VecDeque<Held>,
    /// Calls that were written: the number of the first that is held.
    pub(super) written: u64,
    pub(super) waited: HashMap<u32, u64>,
    pub(super) requests: HashMap<u64, Begun>,
    pub(super) splits: HashMap<u32, Begun>,
    pub(super) opened: HashMap<u32, Opened>,
}

impl<'a, S: Source> Rank<'a, S> {
    pub(super) fn new(world: u32, mut source: S, tracker: Tracker<'a>) -> Self {
        Self {
            world,
            next: source.next(),
            source,
            tracker,
            last_begin_ns: None,
            ended_ns: (0, 0),
            first_page: None,
            held: VecDeque::new(),
            written: 0,
            waited: HashMap::new(),
            requests: HashMap::new(),
            splits: HashMap::new(),
            opened: HashMap::new(),
        }
    }

    /// Takes the next call. No two begin at the same time.
    pub(super) fn take(&mut self) -> Option<Box<Call>> {
        let mut call = self.next.take()?;
        if let Some(last) = self.last_begin_ns.filter(|last| call.begin_ns <= *last) {
            call.begin_ns = last + 1;
        }
        call.end_ns = call.end_ns.max(call.begin_ns);
        self.last_begin_ns = Some(call.begin_ns);
        self.ended_ns = (self.ended_ns.1, self.ended_ns.1.max(call.end_ns));
        call.buffer = call.buffer.map(|address| {
            let first = *self.first_page.get_or_insert(address / PAGE_BYTES * PAGE_BYTES);
            address.wrapping_sub(first)
        });
        self.next = self.source.next();
        Some(call)
    }

    /// This rank just before the call it has begun now.
    pub(super) fn began(&self, begin_ns: u64) -> Ready {
        Ready { ended_ns: self.ended_ns.0, begins_ns: Some(begin_ns) }
    }

    /// This rank before its next call, which may be the collective one of a file and a communicator.
    pub(super) fn ready(&self, of: (Option<u32>, u32)) -> Ready {
        let is_it = |call: &&Call| {
            let opened = call.handle.and_then(|handle| self.opened.get(&handle));
            let (file, comm) = opened.map_or((call.file, call.comm), |opened| (opened.file, opened.comm));
            call.function.is_collective() && comm == Some(of.1) && file == of.0
        };
        Ready { ended_ns: self.ended_ns.1, begins_ns: self.next.as_deref().filter(is_it).map(|call| call.begin_ns) }
    }

    /// Writes a call as soon as those before it are written. Gives 1 if another one could not wait any longer.
    pub(super) fn hold(&mut self, held: Held, spool: &mut Spool, index: usize) -> io::Result<u64> {
        if self.held.is_empty() && !held.waits {
            self.written += 1;
            return spool.call(index, &held.call).map(|()| 0);
        }
        self.held.push_back(held);
        let mut given_up = 0;
        if self.held.len() > MOST_HELD {
            if let Some(first) = self.held.front_mut().filter(|first| first.waits) {
                first.waits = false;
                given_up = 1;
            }
        }
        self.write_ready(spool, index)?;
        Ok(given_up)
    }

    /// Writes the calls that wait for nothing.
    pub(super) fn write_ready(&mut self, spool: &mut Spool, index: usize) -> io::Result<()> {
        while let Some(held) = self.held.pop_front() {
            if held.waits {
                self.held.push_front(held);
                break;
            }
            self.written += 1;
            spool.call(index, &held.call)?;
        }
        Ok(())
    }

    /// A read has ended: its call can be written, with what it has seen.
    pub(super) fn release(&mut self, begun: Begun, from: Vec<Origin>) {
        let place = begun.number.checked_sub(self.written).and_then(|place| usize::try_from(place).ok());
        if let Some(held) = place.and_then(|place| self.held.get_mut(place)) {
            held.waits = false;
            held.call.from = from;
        }
    }
}

/// What a call does when it has ended.
pub(super) struct Ending {
    pub(super) end_ns: u64,
    pub(super) order: u64,
    pub(super) index: usize,
    pub(super) begin_ns: u64,
    pub(super) accesses: Vec<(Placed, Begun)>,
    pub(super) whole: Option<(u32, Option<u32>, Function)>,
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
