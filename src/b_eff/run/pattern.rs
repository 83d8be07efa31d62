//! One pattern: its messages prepared for this rank, its loops inside the clock, its data compared after each.

use beff_ffi::{Comm, Exchange, Flow, Link, MpiError, Places, Walk, Way, Windows};

use crate::b_eff::plan::walk::{advance_bytes, Stretch, PLACES};
use crate::b_eff::plan::{Buffers, CommPattern, Step};
use crate::b_eff::records::{CommCorruption, Method};
use crate::frame::run::clock::{self, Instant};
use beff_stamp::POISON_BYTE;

use super::check::{byte, compare, looks_like, Wrong};
use super::layout::{windows, Layout, LoopKey};
use super::left::{by_windows, Piece, Walked};
use super::memory::Memory;
use super::way;

/// Corruptions one rank describes of a pattern; all are counted.
const DESCRIBED: usize = 10;

/// An MPI call that failed inside a pattern. The other ranks may wait for ever for what this one will not send.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{place}: {error}")]
pub struct Broken {
    /// Pattern, size, method.
    pub place: String,
    /// What MPI says.
    pub error: MpiError,
}

/// One loop.
#[derive(Clone, Copy, Debug)]
pub struct Loop {
    /// How.
    pub method: Method,
    /// Repetition, from 0.
    pub repetition: u32,
    /// Number of the loop with this size.
    pub number: u64,
    /// Message size.
    pub message_bytes: u64,
    /// Iterations.
    pub iterations: u64,
}

/// A pattern on its way.
#[derive(Debug)]
pub struct Pattern<'a> {
    comm: &'a Comm,
    index: u64,
    name: &'a str,
    steps: Vec<Step>,
    exchange: Exchange<'a>,
    layout: Layout,
    /// Messages that a rank with most of them has in an iteration.
    most_steps: u64,
    /// Of each step, how many messages its sender has in an iteration.
    sender_steps: Vec<u64>,
    /// Of reused buffers, for the next loop.
    send_at: Vec<usize>,
    receive_at: Vec<usize>,
    /// Of cyclic ones, where the last loop walked.
    stretch: Option<Stretch>,
    /// Bytes compared by this rank.
    pub bytes_checked: u64,
    /// Bytes that were wrong.
    pub bytes_wrong: u64,
    /// Allocations inside the clock.
    pub allocations: u64,
    /// Places that were wrong.
    pub corruptions: Vec<CommCorruption>,
}

impl<'a> Pattern<'a> {
    /// Prepares this rank's part of pattern `index`.
    ///
    /// # Errors
    /// What MPI reports.
    pub fn new(comm: &'a Comm, layout: Layout, index: u64, plan: &'a CommPattern) -> Result<Self, MpiError> {
        let steps = plan.steps(comm.rank());
        let links: Vec<Link> =
            steps.iter().map(|s| Link { send_to: s.send_to, receive_from: s.receive_from }).collect();
        Ok(Self {
            comm,
            index,
            name: &plan.name,
            exchange: Exchange::new(comm, &links)?,
            layout,
            most_steps: plan.most_steps(),
            sender_steps: steps
                .iter()
                .map(|s| s.receive_from.map_or(0, |from| plan.steps(from).len() as u64))
                .collect(),
            stretch: None,
            send_at: vec![0; steps.len()],
            // Slots are counted in memory that is mapped: they fit.
            receive_at: (0..steps.len()).map(|step| layout.receive_at(step as u64) as usize).collect(),
            steps,
            bytes_checked: 0,
            bytes_wrong: 0,
            allocations: 0,
            corruptions: Vec::new(),
        })
    }

    fn key(&self, l: &Loop) -> LoopKey {
        LoopKey { pattern: self.index, message_bytes: l.message_bytes, number: l.number }
    }

    /// Barrier, then the loop: its time on this rank.
    ///
    /// # Errors
    /// An MPI call that failed.
    pub fn timed(&mut self, memory: &mut Memory, l: &Loop) -> Result<f64, Broken> {
        self.place(memory, l);
        let places = match self.stretch {
            Some(stretch) => Places::Walk(walk(self.layout, stretch, l.message_bytes)),
            None => {
                let [send, receive] = windows(l.message_bytes);
                Places::Windows { send_at: &self.send_at, receive_at: &self.receive_at, send, receive }
            }
        };
        let flow = Flow { message_bytes: l.message_bytes as usize, places };
        let (send, receive) = memory.halves();
        let timed = self.comm.bare_barrier().and_then(|()| {
            let before = clock::allocations();
            let begin = Instant::now();
            self.exchange.run(way(l.method), &flow, send, receive, l.iterations)?;
            let seconds = begin.elapsed().as_secs_f64();
            Ok((seconds, clock::allocations() - before))
        });
        let (seconds, allocations) = timed.map_err(|error| self.broken(l, error))?;
        self.allocations += allocations;
        Ok(seconds)
    }

    /// Where the messages of a loop lie, and with cyclic buffers where the next loop begins. Before the clock.
    fn place(&mut self, memory: &mut Memory, l: &Loop) {
        if self.layout.buffers == Buffers::Cyclic {
            self.stretch = Some(memory.walk.stretch(l.message_bytes));
            memory.walk.pass(l.message_bytes, l.iterations * self.most_steps);
            return;
        }
        let key = self.key(l);
        for (step, at) in self.send_at.iter_mut().enumerate() {
            if let Some(to) = self.steps[step].send_to {
                // Inside of memory that is mapped.
                *at = self.layout.send_at(key, step as u64, to) as usize;
            }
        }
    }

    /// As [`Pattern::timed`] places its messages, for a loop that somebody else runs.
    pub fn lend(&mut self, memory: &mut Memory, l: &Loop) -> Walk {
        self.place(memory, l);
        let memory_bytes = self.layout.memory_bytes() as usize;
        self.stretch.map_or(Walk { begin: 0, advance_bytes: 0, memory_bytes }, |stretch| {
            walk(self.layout, stretch, l.message_bytes)
        })
    }

    /// Ties an MPI error to a place.
    fn broken(&self, l: &Loop, error: MpiError) -> Broken {
        let (name, rank) = (self.name, self.comm.rank());
        Broken { place: format!("{name}, {} bytes, {}, rank {rank}", l.message_bytes, l.method.name()), error }
    }

    /// Turns one bit of what this rank has received over, if it received anything. For the proof that it is found.
    #[cfg(feature = "test-hooks")]
    pub fn damage(&self, memory: &mut Memory, l: &Loop) {
        if let Some(step) = self.steps.iter().position(|s| s.receive_from.is_some()) {
            let last = |stretch: Stretch| stretch.place((l.iterations - 1) * self.steps.len() as u64 + step as u64);
            let at = self.stretch.map_or(self.receive_at[step], |stretch| last(stretch) as usize);
            memory.halves().1[at + l.message_bytes as usize / 2] ^= 0x10;
        }
    }

    /// What the loop left of the messages of a step.
    fn left(&self, step: usize, l: &Loop) -> Vec<Piece> {
        let (steps, sender_steps, number) = (self.steps.len() as u64, self.sender_steps[step], step as u64);
        match self.stretch {
            Some(stretch) => Walked { stretch, steps, sender_steps }.left(number, l.message_bytes, l.iterations),
            None => by_windows(self.layout, self.key(l), number, self.comm.rank(), l.iterations),
        }
    }

    /// Compares what the loop left in memory. With cyclic buffers it is wiped then: what the next loop does not deliver is no
    /// message of this one.
    pub fn check(&mut self, memory: &mut Memory, l: &Loop) {
        for step in 0..self.steps.len() {
            let Some(sender) = self.steps[step].receive_from else { continue };
            let stream = self.layout.stream(sender);
            let mut wrong = 0;
            let mut first = None;
            for piece in self.left(step, l) {
                // Inside of memory that is mapped.
                let bytes = &memory.received()[piece.range.start as usize..piece.range.end as usize];
                let (more, at) = compare(stream, piece.sent_at, bytes);
                wrong += more;
                self.bytes_checked += bytes.len() as u64;
                if let (None, Some(at)) = (&first, at) {
                    first = Some((piece, at as u64));
                }
            }
            self.bytes_wrong += wrong;
            if let (Some((piece, offset)), true) = (first, self.corruptions.len() < DESCRIBED) {
                let corruption = self.describe(memory.received(), l, sender, (&piece, offset), wrong);
                self.corruptions.push(corruption);
            }
        }
        if let Some(stretch) = self.stretch {
            let (_, received) = memory.halves();
            for range in stretch.touched(l.iterations * self.steps.len() as u64) {
                received[range.start as usize..range.end as usize].fill(POISON_BYTE);
            }
        }
    }

    /// Names the wrong byte `offset` bytes into a piece.
    fn describe(
        &self,
        received: &[u8],
        l: &Loop,
        sender: u64,
        (piece, offset): (&Piece, u64),
        bytes_wrong: u64,
    ) -> CommCorruption {
        let at = (piece.range.start + offset) as usize;
        let (place, position) = (piece.place + offset, piece.sent_at + offset);
        // The word it belongs to may reach beyond the message, or into what another iteration wrote.
        let (before, after) = (offset.min(position % 8), piece.range.end - piece.range.start - offset);
        let whole = before == position % 8 && after >= 8 - position % 8;
        let word = whole.then(|| &received[at - before as usize..][..8]);
        let found = received[at];
        let (layout, ranks) = (self.layout, self.comm.size());
        CommCorruption {
            pattern: self.name.to_owned(),
            method: l.method,
            repetition: l.repetition,
            message_bytes: l.message_bytes,
            iteration: piece.iteration,
            sender,
            receiver: self.comm.rank(),
            offset_bytes: place,
            expected: byte(layout.stream(sender), position),
            found,
            looks_like: looks_like(&Wrong { layout, ranks, sender, position, found, word }),
            bytes_wrong,
        }
    }

    /// Exchanges all of the memory once, so that pages are mapped and memory is registered before any loop.
    ///
    /// # Errors
    /// An MPI call that failed.
    pub fn touch(&mut self, memory: &mut Memory) -> Result<(), Broken> {
        let whole: Vec<usize> =
            (0..self.steps.len()).map(|step| self.layout.receive_at(step as u64) as usize).collect();
        let one = Windows { count: 1, stride_bytes: 0 };
        // An int holds a slot: Lmax is at most 128 MiB.
        let (message_bytes, places, iterations) = match self.layout.buffers {
            Buffers::Reused => {
                let places = Places::Windows { send_at: &whole, receive_at: &whole, send: one, receive: one };
                (self.layout.slot_bytes(), places, 1)
            }
            Buffers::Cyclic => {
                let lmax_bytes = self.layout.lmax_bytes;
                (lmax_bytes, Places::Walk(walk(self.layout, memory.walk.stretch(lmax_bytes), lmax_bytes)), PLACES)
            }
        };
        let flow = Flow { message_bytes: message_bytes as usize, places };
        let (send, receive) = memory.halves();
        let done = self.exchange.run(Way::Nonblocking, &flow, send, receive, iterations);
        memory.poison();
        done.map_err(|error| Broken { place: format!("{}, first touch of the memory", self.name), error })
    }
}

/// As MPI's loops want it. Places are inside of memory that is mapped.
fn walk(layout: Layout, stretch: Stretch, message_bytes: u64) -> Walk {
    Walk {
        begin: stretch.base() as usize,
        advance_bytes: advance_bytes(message_bytes) as usize,
        memory_bytes: layout.memory_bytes() as usize,
    }
}
