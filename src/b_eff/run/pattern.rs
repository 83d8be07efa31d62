//! One pattern: its messages prepared for this rank, its loops inside the clock, its data compared after each.

use std::time::Instant;

use beff_ffi::{alloc, Comm, Exchange, Flow, Link, MpiError, Way, Windows};

use crate::b_eff::plan::{CommPattern, Step};
use crate::b_eff::records::{CommCorruption, Method};

use super::check::{byte, compare, looks_like, Wrong};
use super::memory::{left_by, windows, Layout, LoopKey, Memory, Piece};
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
    /// Index of the size.
    pub size: usize,
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
    send_at: Vec<usize>,
    receive_at: Vec<usize>,
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
        let key = self.key(l);
        for (step, at) in self.send_at.iter_mut().enumerate() {
            if let Some(to) = self.steps[step].send_to {
                // Inside of memory that is mapped.
                *at = self.layout.send_at(key, step as u64, to) as usize;
            }
        }
        let [send_windows, receive_windows] = windows(l.message_bytes);
        let flow = Flow {
            message_bytes: l.message_bytes as usize,
            send_at: &self.send_at,
            receive_at: &self.receive_at,
            send_windows,
            receive_windows,
        };
        let (send, receive) = memory.halves();
        let timed = self.comm.barrier().and_then(|()| {
            let before = alloc::allocations();
            let begin = Instant::now();
            self.exchange.run(way(l.method), &flow, send, receive, l.iterations)?;
            let seconds = begin.elapsed().as_secs_f64();
            Ok((seconds, alloc::allocations() - before))
        });
        let (seconds, allocations) = timed.map_err(|error| self.broken(l, error))?;
        self.allocations += allocations;
        Ok(seconds)
    }

    /// Ties an MPI error to a place.
    fn broken(&self, l: &Loop, error: MpiError) -> Broken {
        let (name, rank) = (self.name, self.comm.rank());
        Broken { place: format!("{name}, {} bytes, {}, rank {rank}", l.message_bytes, l.method.name()), error }
    }

    /// Turns one bit of what this rank has received over, if it received anything. For the proof that it is found.
    pub fn damage(&self, memory: &mut Memory, l: &Loop) {
        if let Some(step) = self.steps.iter().position(|s| s.receive_from.is_some()) {
            let at = self.receive_at[step] + l.message_bytes as usize / 2;
            memory.halves().1[at] ^= 0x10;
        }
    }

    /// Compares what the loop left in memory.
    pub fn check(&mut self, memory: &Memory, l: &Loop) {
        let key = self.key(l);
        let left = left_by(l.message_bytes, l.iterations);
        for step in 0..self.steps.len() {
            let Some(sender) = self.steps[step].receive_from else { continue };
            let (from, to) = (self.layout.send_at(key, step as u64, self.comm.rank()), self.receive_at[step]);
            let mut wrong = 0;
            let mut first = None;
            for piece in &left {
                let bytes = &memory.received()[to + piece.range.start as usize..to + piece.range.end as usize];
                let (more, at) = compare(self.layout.stream(sender), from + piece.sent_from(l.message_bytes), bytes);
                wrong += more;
                first = first.or(at.map(|at| (piece, at as u64)));
                self.bytes_checked += bytes.len() as u64;
            }
            self.bytes_wrong += wrong;
            if let (Some(first), true) = (first, self.corruptions.len() < DESCRIBED) {
                let corruption = self.describe(memory.received(), l, (sender, from, to), first, wrong);
                self.corruptions.push(corruption);
            }
        }
    }

    /// Names the wrong byte `offset` bytes into a piece; `from` and `to` are where the first windows are sent from and received.
    fn describe(
        &self,
        received: &[u8],
        l: &Loop,
        (sender, from, to): (u64, u64, usize),
        (piece, offset): (&Piece, u64),
        bytes_wrong: u64,
    ) -> CommCorruption {
        let at = to + (piece.range.start + offset) as usize;
        let place = piece.place + offset;
        // The word it belongs to may reach beyond the message, or into what another iteration wrote.
        let (before, after) = (offset.min(place % 8), piece.range.end - piece.range.start - offset);
        let whole = before == place % 8 && after >= 8 - place % 8;
        let word = whole.then(|| &received[at - before as usize..][..8]);
        let found = received[at];
        let (layout, ranks, position) =
            (self.layout, self.comm.size(), from + piece.sent_from(l.message_bytes) + offset);
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

    /// Exchanges whole slots once, so that pages are mapped and memory is registered before any loop.
    ///
    /// # Errors
    /// An MPI call that failed.
    pub fn touch(&mut self, memory: &mut Memory) -> Result<(), Broken> {
        let whole: Vec<usize> =
            (0..self.steps.len()).map(|step| self.layout.receive_at(step as u64) as usize).collect();
        let one = Windows { count: 1, stride_bytes: 0 };
        // An int holds a slot: Lmax is at most 128 MiB.
        let message_bytes = self.layout.slot_bytes() as usize;
        let flow = Flow { message_bytes, send_at: &whole, receive_at: &whole, send_windows: one, receive_windows: one };
        let (send, receive) = memory.halves();
        let done = self.exchange.run(Way::Nonblocking, &flow, send, receive, 1);
        memory.poison();
        done.map_err(|error| Broken { place: format!("{}, first touch of the memory", self.name), error })
    }
}
