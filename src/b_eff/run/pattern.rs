//! One pattern: preparation of the messages of this rank, timed loops, and comparison of the data after each.

use beff_ffi::{
    Comm, ExchangeCall, MemoryWalk, MessageLayout, MessagePlacement, MessageWindows, MpiError, NeighborExchange,
    StepPeers,
};

use crate::b_eff::plan::walk::{advance_bytes, WalkSegment, LMAX_MESSAGES};
use crate::b_eff::plan::{BufferMode, CommPattern, ExchangeStep};
use crate::b_eff::records::{CommCorruption, MessageMethod};
use crate::frame::run::clock::{self, Instant};
use beff_stamp::POISON_BYTE;

use super::check::{compare_bytes, diagnose, expected_byte, CorruptedByte};
use super::ffi_method;
use super::layout::{windows, BufferLayout, LoopKey};
use super::message_buffers::MessageBuffers;
use super::received_data::{intact_window_ranges, ReceivedRange, WalkedLoop};

/// Most corruptions of a pattern that one rank describes; all are counted.
const MAX_DESCRIBED_CORRUPTIONS: usize = 10;

/// A failed MPI call of a pattern. The other ranks may wait forever for messages of this one.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{context}: {error}")]
pub struct PatternError {
    /// Pattern, size, method.
    pub context: String,
    /// Error of MPI.
    pub error: MpiError,
}

/// One loop.
#[derive(Clone, Copy, Debug)]
pub struct MessageLoop {
    /// Method.
    pub method: MessageMethod,
    /// Repetition, from 0.
    pub repetition: u32,
    /// Number of the loop among those of this size.
    pub number: u64,
    /// Message size.
    pub message_bytes: u64,
    /// Iterations.
    pub iterations: u64,
}

/// A pattern prepared for this rank.
#[derive(Debug)]
pub struct PreparedPattern<'a> {
    comm: &'a Comm,
    index: u64,
    name: &'a str,
    steps: Vec<ExchangeStep>,
    exchange: NeighborExchange<'a>,
    layout: BufferLayout,
    /// Largest number of messages of a rank in an iteration.
    max_steps: u64,
    /// For each step, messages of its sender in an iteration.
    sender_steps: Vec<u64>,
    /// With reused buffers: offsets of the next loop.
    send_offsets: Vec<usize>,
    receive_offsets: Vec<usize>,
    /// With cyclic buffers: walk of the last loop.
    segment: Option<WalkSegment>,
    /// Bytes compared by this rank.
    pub bytes_checked: u64,
    /// Wrong bytes.
    pub bytes_wrong: u64,
    /// Allocations in timed loops.
    pub allocations: u64,
    /// Described corruptions.
    pub corruptions: Vec<CommCorruption>,
}

impl<'a> PreparedPattern<'a> {
    /// Prepares this rank's part of pattern `index`.
    ///
    /// # Errors
    /// What MPI reports.
    pub fn new(comm: &'a Comm, layout: BufferLayout, index: u64, plan: &'a CommPattern) -> Result<Self, MpiError> {
        let steps = plan.steps(comm.rank());
        let links: Vec<StepPeers> =
            steps.iter().map(|s| StepPeers { send_to: s.send_to, receive_from: s.receive_from }).collect();
        Ok(Self {
            comm,
            index,
            name: &plan.name,
            exchange: NeighborExchange::new(comm, &links)?,
            layout,
            max_steps: plan.max_steps(),
            sender_steps: steps
                .iter()
                .map(|s| s.receive_from.map_or(0, |from| plan.steps(from).len() as u64))
                .collect(),
            segment: None,
            send_offsets: vec![0; steps.len()],
            // Offsets in mapped memory fit.
            receive_offsets: (0..steps.len()).map(|step| layout.receive_offset(step as u64) as usize).collect(),
            steps,
            bytes_checked: 0,
            bytes_wrong: 0,
            allocations: 0,
            corruptions: Vec::new(),
        })
    }

    fn key(&self, l: &MessageLoop) -> LoopKey {
        LoopKey { pattern: self.index, message_bytes: l.message_bytes, number: l.number }
    }

    /// Runs a barrier, then the loop. Returns the time of the loop on this rank.
    ///
    /// # Errors
    /// A failed MPI call.
    pub fn run_timed(&mut self, memory: &mut MessageBuffers, l: &MessageLoop) -> Result<f64, PatternError> {
        self.place_messages(memory, l);
        let places = match self.segment {
            Some(stretch) => MessagePlacement::Walk(ffi_walk(self.layout, stretch, l.message_bytes)),
            None => {
                let [send, receive] = windows(l.message_bytes);
                MessagePlacement::Windows {
                    send_at: &self.send_offsets,
                    receive_at: &self.receive_offsets,
                    send,
                    receive,
                }
            }
        };
        let flow = MessageLayout { message_bytes: l.message_bytes as usize, placement: places };
        let (send, receive) = memory.split();
        let timed = self.comm.bare_barrier().and_then(|()| {
            let before = clock::allocations();
            let begin = Instant::now();
            self.exchange.run(ffi_method(l.method), &flow, send, receive, l.iterations)?;
            let seconds = begin.elapsed().as_secs_f64();
            Ok((seconds, clock::allocations() - before))
        });
        let (seconds, allocations) = timed.map_err(|error| self.error_in_loop(l, error))?;
        self.allocations += allocations;
        Ok(seconds)
    }

    /// Places the messages of a loop and, with cyclic buffers, advances the walk. Not timed.
    fn place_messages(&mut self, memory: &mut MessageBuffers, l: &MessageLoop) {
        if self.layout.buffers == BufferMode::Cyclic {
            self.segment = Some(memory.walk.segment(l.message_bytes));
            memory.walk.advance(l.message_bytes, l.iterations * self.max_steps);
            return;
        }
        let key = self.key(l);
        for (step, at) in self.send_offsets.iter_mut().enumerate() {
            if let Some(to) = self.steps[step].send_to {
                *at = self.layout.send_offset(key, step as u64, to) as usize;
            }
        }
    }

    /// Places the messages as [`PreparedPattern::run_timed`] does, for a loop outside this type.
    pub fn reserve_walk(&mut self, memory: &mut MessageBuffers, l: &MessageLoop) -> MemoryWalk {
        self.place_messages(memory, l);
        let memory_bytes = self.layout.memory_bytes() as usize;
        self.segment.map_or(MemoryWalk { begin: 0, advance_bytes: 0, memory_bytes }, |stretch| {
            ffi_walk(self.layout, stretch, l.message_bytes)
        })
    }

    /// Adds pattern, size, method and rank to an MPI error.
    fn error_in_loop(&self, l: &MessageLoop, error: MpiError) -> PatternError {
        let (name, rank) = (self.name, self.comm.rank());
        PatternError { context: format!("{name}, {} bytes, {}, rank {rank}", l.message_bytes, l.method.name()), error }
    }

    /// Fault injection: flips one bit of a message received by this rank, if any.
    #[cfg(feature = "test-hooks")]
    pub fn inject_fault(&self, memory: &mut MessageBuffers, l: &MessageLoop) {
        if let Some(step) = self.steps.iter().position(|s| s.receive_from.is_some()) {
            let last = |stretch: WalkSegment| {
                stretch.message_offset((l.iterations - 1) * self.steps.len() as u64 + step as u64)
            };
            let at = self.segment.map_or(self.receive_offsets[step], |stretch| last(stretch) as usize);
            memory.split().1[at + l.message_bytes as usize / 2] ^= 0x10;
        }
    }

    /// Ranges of the messages of a step that are in memory after the loop.
    fn intact_ranges(&self, step: usize, l: &MessageLoop) -> Vec<ReceivedRange> {
        let (steps, sender_steps, number) = (self.steps.len() as u64, self.sender_steps[step], step as u64);
        match self.segment {
            Some(stretch) => {
                WalkedLoop { stretch, steps, sender_steps }.intact_ranges(number, l.message_bytes, l.iterations)
            }
            None => intact_window_ranges(self.layout, self.key(l), number, self.comm.rank(), l.iterations),
        }
    }

    /// Compares the received data of the loop. With cyclic buffers, the data is then wiped, so that it cannot be mistaken for
    /// messages of the next loop.
    pub fn check(&mut self, memory: &mut MessageBuffers, l: &MessageLoop) {
        for step in 0..self.steps.len() {
            let Some(sender) = self.steps[step].receive_from else { continue };
            let stream = self.layout.stream(sender);
            let mut wrong = 0;
            let mut first = None;
            for piece in self.intact_ranges(step, l) {
                let bytes = &memory.received()[piece.range.start as usize..piece.range.end as usize];
                let (more, at) = compare_bytes(stream, piece.send_offset, bytes);
                wrong += more;
                self.bytes_checked += bytes.len() as u64;
                if let (None, Some(at)) = (&first, at) {
                    first = Some((piece, at as u64));
                }
            }
            self.bytes_wrong += wrong;
            if let (Some((piece, offset)), true) = (first, self.corruptions.len() < MAX_DESCRIBED_CORRUPTIONS) {
                let corruption = self.describe(memory.received(), l, sender, (&piece, offset), wrong);
                self.corruptions.push(corruption);
            }
        }
        if let Some(stretch) = self.segment {
            let (_, received) = memory.split();
            for range in stretch.written_ranges(l.iterations * self.steps.len() as u64) {
                received[range.start as usize..range.end as usize].fill(POISON_BYTE);
            }
        }
    }

    /// Describes the wrong byte `offset` bytes into a range.
    fn describe(
        &self,
        received: &[u8],
        l: &MessageLoop,
        sender: u64,
        (piece, offset): (&ReceivedRange, u64),
        bytes_wrong: u64,
    ) -> CommCorruption {
        let at = (piece.range.start + offset) as usize;
        let (place, position) = (piece.message_offset + offset, piece.send_offset + offset);
        // Its word may extend beyond the message, or into bytes of another iteration.
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
            expected: expected_byte(layout.stream(sender), position),
            actual: found,
            diagnosis: diagnose(&CorruptedByte { layout, ranks, sender, position, actual: found, word }),
            bytes_wrong,
        }
    }

    /// Exchanges all of the memory once, so that pages are mapped and memory is registered before any loop.
    ///
    /// # Errors
    /// A failed MPI call.
    pub fn first_touch(&mut self, memory: &mut MessageBuffers) -> Result<(), PatternError> {
        let whole: Vec<usize> =
            (0..self.steps.len()).map(|step| self.layout.receive_offset(step as u64) as usize).collect();
        let one = MessageWindows { count: 1, stride_bytes: 0 };
        // An int holds a slot: Lmax is at most 128 MiB.
        let (message_bytes, places, iterations) = match self.layout.buffers {
            BufferMode::Reused => {
                let places = MessagePlacement::Windows { send_at: &whole, receive_at: &whole, send: one, receive: one };
                (self.layout.slot_bytes(), places, 1)
            }
            BufferMode::Cyclic => {
                let lmax_bytes = self.layout.lmax_bytes;
                (
                    lmax_bytes,
                    MessagePlacement::Walk(ffi_walk(self.layout, memory.walk.segment(lmax_bytes), lmax_bytes)),
                    LMAX_MESSAGES,
                )
            }
        };
        let flow = MessageLayout { message_bytes: message_bytes as usize, placement: places };
        let (send, receive) = memory.split();
        let done = self.exchange.run(ExchangeCall::Nonblocking, &flow, send, receive, iterations);
        memory.poison();
        done.map_err(|error| PatternError { context: format!("{}, first touch of the memory", self.name), error })
    }
}

/// Converts a walk for the loops of `ffi`. Offsets are within mapped memory.
fn ffi_walk(layout: BufferLayout, stretch: WalkSegment, message_bytes: u64) -> MemoryWalk {
    MemoryWalk {
        begin: stretch.base() as usize,
        advance_bytes: advance_bytes(message_bytes) as usize,
        memory_bytes: layout.memory_bytes() as usize,
    }
}
